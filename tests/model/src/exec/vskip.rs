//! VSKIP of gfx9 (s_setvskip): while it is on, no vector instruction is issued.
//!
//! "Vega" and "CDNA3" instruction set documents: VOP, buffer, image, DS and FLAT instructions are
//! skipped. Such a wave runs here, one instruction at a time, so that others pay nothing.

use super::context::{Context, Trouble};
use super::control::{Flow, Stop};
use super::run::no_code;
use super::valu::fp::mode;
use super::wave::Wave;
use super::{control, salu, smem, trap};
use crate::isa::ir::flag;

/// Whether the wave skips vector instructions.
#[inline(always)]
pub(super) fn is_on<const N: usize>(w: &Wave<N>, cx: &Context<'_>) -> bool {
    w.mode & mode::VSKIP != 0 && cx.env.target.is_gfx9()
}

/// Turns it on or off.
pub(super) fn set<const N: usize>(w: &mut Wave<N>, on: bool) {
    w.mode = if on { w.mode | mode::VSKIP } else { w.mode & !mode::VSKIP };
}

/// Runs a wave until it stops, or until it issues vector instructions again: `None`.
#[cold]
#[inline(never)]
pub(super) fn run<const N: usize>(w: &mut Wave<N>, cx: &mut Context<'_>, end: u64) -> Option<Stop> {
    while is_on(w, cx) {
        if w.clock >= end {
            return Some(Stop::Quantum);
        }
        let index = match cx.cache.enter(w.pc, None, &mut cx.view) {
            Ok(index) => index,
            Err(none) => match no_code(w, cx, none) {
                None => continue,
                stop => return stop,
            },
        };
        w.clock += 1;
        cx.slot = index;
        match one(w, cx, index) {
            Ok(None) => {}
            Ok(Some(stop)) => return Some(stop),
            Err(trouble) => {
                if let Some(stop) = trap::raise(w, cx, trouble) {
                    return Some(stop);
                }
            }
        }
    }
    None
}

/// Executes or skips the instruction `index` at the program counter.
fn one<const N: usize>(
    w: &mut Wave<N>,
    cx: &mut Context<'_>,
    index: usize,
) -> Result<Option<Stop>, Trouble> {
    let Some(&inst) = cx.cache.code.insts.get(index) else { return Err(Trouble::Illegal) };
    let i = &inst;
    let next = w.pc.wrapping_add(4 * u64::from(i.words));
    if !i.op.name().starts_with("s_") {
        w.pc = next;
        return Ok(None);
    }
    if salu::step(w, i, &cx.cache.code) {
        if i.flags & flag::WRITES_EXEC != 0 {
            w.rebuild_mask();
        }
        w.pc = next;
        return Ok(None);
    }
    match control::step(w, i, cx, index) {
        Some(Flow::Next) => w.pc = next,
        Some(Flow::Branch) => w.pc = next.wrapping_add(i64::from(i.imm) as u64),
        Some(Flow::Jump(target)) => w.pc = target,
        Some(Flow::Stop(stop)) => {
            if !matches!(stop, Stop::Halted(_)) {
                w.pc = next;
            }
            return Ok(Some(stop));
        }
        Some(Flow::HaltAt(target)) => {
            w.pc = target;
            return Ok(Some(Stop::Halted(None)));
        }
        Some(Flow::Trouble(trouble)) => return Err(trouble),
        None => {
            smem::step(w, i, cx)
                .or_else(|| smem::rare::step(w, i, cx))
                .unwrap_or(Err(Trouble::Illegal))?;
            w.pc = next;
        }
    }
    Ok(None)
}
