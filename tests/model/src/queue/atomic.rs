//! Atomics of command processors and SDMA engines: one numbering for both (docs/ABI.md §PM4
//! ATOMIC_MEM).

use pm4::packet::AtomicOp;

use crate::exec::Atomic;
use crate::memory::{AccessError, AddressSpace};

/// The operation without its width.
fn operation(op: AtomicOp) -> Option<Atomic> {
    const WIDE: u8 = 32;
    const NO_RETURN: u8 = 64;
    Some(match AtomicOp(op.0 & !WIDE & !NO_RETURN) {
        AtomicOp::SWAP_32 => Atomic::Swap,
        AtomicOp::CMPSWAP_32 => Atomic::Cmpswap,
        AtomicOp::ADD_32 => Atomic::Add,
        AtomicOp::SUB_32 => Atomic::Sub,
        AtomicOp::SMIN_32 => Atomic::Smin,
        AtomicOp::UMIN_32 => Atomic::Umin,
        AtomicOp::SMAX_32 => Atomic::Smax,
        AtomicOp::UMAX_32 => Atomic::Umax,
        AtomicOp::AND_32 => Atomic::And,
        AtomicOp::OR_32 => Atomic::Or,
        AtomicOp::XOR_32 => Atomic::Xor,
        AtomicOp::INC_32 => Atomic::Inc,
        AtomicOp::DEC_32 => Atomic::Dec,
        _ => return None,
    })
}

/// What an atomic came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tried {
    /// It is done; the old value.
    Done(u64),
    /// It is to be tried again until its comparison holds.
    Again,
    /// No such operation, or none that can be repeated.
    Unknown,
}

/// Carries out an atomic. With `repeat` it is a compare-and-swap that has to succeed.
pub(super) fn perform(
    space: &AddressSpace,
    op: AtomicOp,
    address: u64,
    (operand, comparand): (u64, u64),
    repeat: bool,
) -> Result<Tried, AccessError> {
    let Some(operation) = operation(op) else { return Ok(Tried::Unknown) };
    if repeat && operation != Atomic::Cmpswap {
        return Ok(Tried::Unknown);
    }
    let low = |value: u64| u32::try_from(value & 0xffff_ffff).unwrap_or(0);
    let (old, comparand) = if op.is_64() {
        let apply = |old| Some(operation.apply64(old, operand, comparand));
        (space.update_u64(address, apply)?, comparand)
    } else {
        let apply = |old| Some(operation.apply32(old, low(operand), low(comparand)));
        (space.update_u32(address, apply)?.into(), low(comparand).into())
    };
    Ok(if repeat && old != comparand { Tried::Again } else { Tried::Done(old) })
}
