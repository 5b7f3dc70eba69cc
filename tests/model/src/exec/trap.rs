//! Exceptions of a wave and the entry to the second-level trap handler.
//!
//! The kernel's first-level handler is not executed: the model enters the second level as that
//! code leaves it. docs/ABI.md §Trap handler entry.

use super::context::{Context, Trouble};
use super::control::{Flow, Stop};
use super::hwreg::status_word;
use super::status;
use super::wave::Wave;
use crate::isa::ir::sgpr;

const TTMP1: u8 = sgpr::TTMP0 + 1;
const TTMP2: u8 = sgpr::TTMP0 + 2;
const TTMP12: u8 = sgpr::TTMP0 + 12;
const TTMP14: u8 = sgpr::TTMP0 + 14;

/// STATUS bits that the first level does not hand on: SPI_PRIO and ECC_ERR.
const NOT_HANDED_ON: u32 = 3 << 1 | 1 << 17;

/// `s_trap`: nothing when nobody handles it, and nothing in a handler.
#[cold]
pub(super) fn instruction<const N: usize>(
    w: &mut Wave<N>,
    cx: &Context<'_>,
    id: u32,
    pc: u64,
) -> Flow {
    if id == 0 || !enter(w, cx, id, pc) {
        return Flow::Next;
    }
    Flow::Jump(w.pc)
}

/// An exception at `w.pc`. `None`: a handler was entered, `w.pc` is its address.
#[cold]
#[inline(never)]
pub(super) fn raise<const N: usize>(
    w: &mut Wave<N>,
    cx: &Context<'_>,
    trouble: Trouble,
) -> Option<Stop> {
    w.trapsts |= match trouble {
        Trouble::Fault(fault) => return Some(Stop::Fault(fault)),
        Trouble::Wait => return Some(Stop::Sleep),
        Trouble::Violation(_) => status::MEM_VIOL,
        Trouble::Illegal => status::ILLEGAL_INST,
    };
    if !enter(w, cx, 0, w.pc) {
        w.status |= status::HALT;
        return Some(Stop::Halted(Some(trouble)));
    }
    None
}

/// An arithmetic exception whose trap is enabled, seen before the instruction at `pc`. True: a handler
/// was entered, `w.pc` is its address.
#[cold]
pub(super) fn arithmetic<const N: usize>(w: &mut Wave<N>, cx: &Context<'_>, pc: u64) -> bool {
    enter(w, cx, 0, pc)
}

/// Enters the second-level handler, if one is installed and the wave is not in it already.
fn enter<const N: usize>(w: &mut Wave<N>, cx: &Context<'_>, id: u32, pc: u64) -> bool {
    let Some(trap) = cx.env.trap else { return false };
    if w.status & status::PRIV != 0 || w.status & status::TRAP_EN == 0 {
        return false;
    }
    // The first level reads STATUS inside the handler, so PRIV is set in what it hands over.
    w.status |= status::PRIV;
    w.set_s32(sgpr::TTMP0, pc as u32);
    w.set_s32(TTMP1, (pc >> 32) as u32 & 0xffff | id << 16);
    w.set_s64(TTMP2, trap.tba);
    w.set_s32(TTMP12, status_word(w) & !NOT_HANDED_ON);
    w.set_s64(TTMP14, trap.tma);
    w.pc = trap.tba;
    true
}

/// `s_rfe_b64`: leaves the handler; a HALT set there takes effect.
#[cold]
pub(super) fn return_from<const N: usize>(w: &mut Wave<N>, target: u64) -> Flow {
    if w.status & status::PRIV == 0 {
        return Flow::Trouble(Trouble::Illegal);
    }
    let target = target & 0xffff_ffff_ffff;
    if w.status & status::TRAP_EN != 0 {
        w.status &= !status::PRIV;
    }
    if w.status & status::HALT != 0 {
        return Flow::HaltAt(target);
    }
    Flow::Jump(target)
}
