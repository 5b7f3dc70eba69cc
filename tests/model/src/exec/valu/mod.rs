//! The vector ALU: VOP1, VOP2, VOP3, VOPC, VOP3P, VOPD.
//!
//! `table` names the operations; `visit` says how a table is used: `fast` for instructions without
//! modifiers under the usual MODE, `slow` for the rest. `lane` holds what happens to one lane.
#![allow(clippy::needless_range_loop)] // loops run over the same lane of several arrays

mod across;
mod dpp;
mod fast;
mod fp;
mod lane;
mod operands;
mod packed;
mod slow;
mod table;
#[cfg(test)]
mod tests_rng;
mod types;
mod visit;

use super::{Code, Env, Wave};
use crate::Target;
use crate::isa::Op;
use crate::isa::ir::{Inst, flag};
use fast::Fast;
use fp::mode;
use operands::Operands;
use slow::Slow;
use table::{hot, rare};
use visit::Probe;

/// The first vector operation: the enum is in alphabetical order and they are its end.
const FIRST: Op = Op::VAccvgprMovB32;

/// Executes a vector ALU instruction. False: not one, or it has no semantics; nothing changed.
///
/// For a VOPD pair the executor calls [`step_pair`] instead.
#[inline(always)]
pub(super) fn step<const N: usize>(
    wave: &mut Wave<N>,
    inst: &Inst,
    code: &Code,
    env: &Env,
) -> bool {
    let plain =
        inst.flags & flag::MODS == 0 && wave.mode & (mode::ROUND | mode::DENORM) == mode::USUAL;
    if plain && hot(inst.op, Fast { wave, inst, code, env }) {
        return true;
    }
    inst.op >= FIRST && step_slow(wave, inst, code, env)
}

/// Modifiers, an unusual MODE, or an operation that is not worth code in the interpreter's loop.
#[cold]
#[inline(never)]
fn step_slow<const N: usize>(wave: &mut Wave<N>, inst: &Inst, code: &Code, env: &Env) -> bool {
    let slow = Slow(Operands::new(wave, inst, code, env));
    if hot::<N, _>(inst.op, Probe) { hot(inst.op, slow) } else { rare(inst.op, slow) }
}

/// Executes both halves of a VOPD pair: all sources are read before either destination is written.
#[inline(always)]
pub(super) fn step_pair<const N: usize>(
    wave: &mut Wave<N>,
    x: &Inst,
    y: &Inst,
    code: &Code,
    env: &Env,
) -> bool {
    // Only one register of `x` can matter to `y`: take its new value away until `y` has read.
    let dst = usize::from(x.dst) & 511;
    let before = wave.v[dst];
    if !step(wave, x, code, env) {
        return false;
    }
    let after = std::mem::replace(&mut wave.v[dst], before);
    let done = step(wave, y, code, env);
    if done {
        wave.v[dst] = after;
    }
    done
}

/// Whether `step` has semantics for `op` on `target`.
pub fn implements(_target: Target, op: Op) -> bool {
    hot::<32, _>(op, Probe) || rare::<32, _>(op, Probe)
}
