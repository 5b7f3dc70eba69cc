//! The vector ALU: VOP1, VOP2, VOP3, VOPC, VOP3P, VOPD.

use super::{Code, Env, Wave};
use crate::Target;
use crate::isa::Op;
use crate::isa::ir::Inst;

/// Executes a vector ALU instruction. False: not one, or it has no semantics; nothing changed.
///
/// For a VOPD pair the executor calls [`step_pair`] instead.
#[inline(always)]
pub(super) fn step<const N: usize>(
    _wave: &mut Wave<N>,
    _inst: &Inst,
    _code: &Code,
    _env: &Env,
) -> bool {
    false
}

/// Executes both halves of a VOPD pair: all sources are read before either destination is written.
pub(super) fn step_pair<const N: usize>(
    _wave: &mut Wave<N>,
    _x: &Inst,
    _y: &Inst,
    _code: &Code,
    _env: &Env,
) -> bool {
    false
}

/// Whether [`step`] has semantics for `op` on `target`.
pub fn implements(_target: Target, _op: Op) -> bool {
    false
}
