//! The vector ALU: VOP1, VOP2, VOP3, VOPC, VOP3P, VOPD.
//!
//! `table` names the operations; `visit` says how a table is used: `fast` for instructions without
//! modifiers under the usual MODE, `slow` for the rest. `lane` holds what happens to one lane.
#![allow(clippy::needless_range_loop)] // loops run over the same lane of several arrays

mod across;
mod dpp;
pub(super) mod exceptions;
mod fast;
pub(super) mod fp;
mod index;
pub(super) mod lane;
mod matrix;
mod operands;
mod packed;
mod slow;
mod sparse;
mod table;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_rng;
mod types;
mod visit;
mod wmma;

use super::{Code, Env, Wave};
use crate::Target;
use crate::isa::Op;
use crate::isa::ir::{Inst, flag};
use fast::Fast;
use fp::mode;
use operands::Lanes;
use slow::Slow;
use table::{hot, rare};
use visit::Probe;

/// The first vector operation: the enum is in alphabetical order and they are its end.
const FIRST: Op = Op::VAccvgprMovB32;

/// Executes a vector ALU instruction. False: not one, or it has no semantics; nothing changed.
///
/// The halves of a VOPD pair come one by one: the interpreter sees to it that both read first.
#[inline(always)]
pub(super) fn step<const N: usize, const FAST: bool>(
    wave: &mut Wave<N>,
    inst: &Inst,
    code: &Code,
    env: &Env,
) -> bool {
    if is_plain(wave, inst) {
        if FAST && hot(inst.op, Fast { wave, inst, code, env }) {
            return true;
        }
        if inst.op >= FIRST && step_across(wave, inst, code) {
            return true;
        }
    }
    inst.op >= FIRST && step_slow(wave, inst, code, env)
}

/// Whether the fast path does all that the instruction asks for.
#[inline(always)]
fn is_plain<const N: usize>(wave: &Wave<N>, inst: &Inst) -> bool {
    const UNUSUAL: u32 = mode::ROUND | mode::DENORM | mode::GPR_IDX_EN;
    inst.flags & flag::MODS == 0 && wave.mode & UNUSUAL == mode::USUAL
}

/// Moves between lanes and register files: they have no float modifiers, and compiled code is full
/// of them.
#[inline(always)]
fn step_across<const N: usize>(wave: &mut Wave<N>, inst: &Inst, code: &Code) -> bool {
    match inst.op {
        Op::VReadfirstlaneB32 => across::readfirstlane(wave, inst, code),
        Op::VReadlaneB32 => across::readlane(wave, inst, code),
        Op::VWritelaneB32 => across::writelane(wave, inst, code),
        Op::VAccvgprReadB32 | Op::VAccvgprWriteB32 | Op::VAccvgprMovB32 => {
            across::accvgpr(wave, inst, code);
        }
        // The drain of the pipe and the scalar exception state (TRAPSTS[8:0]).
        Op::VPipeflush => {}
        Op::VClrexcp => wave.trapsts &= !0x1ff,
        _ => return false,
    }
    true
}

/// Modifiers, an unusual MODE, or an operation that is not worth code in the interpreter's loop.
#[cold]
#[inline(never)]
fn step_slow<const N: usize>(wave: &mut Wave<N>, inst: &Inst, code: &Code, env: &Env) -> bool {
    let indexed;
    let mut inst = inst;
    if wave.mode & mode::GPR_IDX_EN != 0 && env.target.is_gfx9() {
        match index::indexed(wave, inst) {
            Some(other) => indexed = other,
            None => return implements(env.target, inst.op),
        }
        inst = &indexed;
    }
    step_across(wave, inst, code) || run_slow(&mut Lanes::new(wave, inst, code, env))
}

#[inline(never)]
fn run_slow(lanes: &mut Lanes<'_>) -> bool {
    let op = lanes.inst.op;
    if hot(op, Probe) { hot(op, Slow(lanes)) } else { rare(op, Slow(lanes)) }
}

/// Whether `step` has semantics for `op` on `target`.
pub fn implements(_target: Target, op: Op) -> bool {
    use Op::*;
    let across = matches!(
        op,
        VReadfirstlaneB32
            | VReadlaneB32
            | VWritelaneB32
            | VAccvgprReadB32
            | VAccvgprWriteB32
            | VAccvgprMovB32
            | VPipeflush
            | VClrexcp
    );
    across || hot(op, Probe) || rare(op, Probe)
}
