//! The interpreter loop.

use std::sync::Arc;

use super::code::{NoCode, VOPD_Y};
use super::context::{Context, Trouble};
use super::control::{Flow, Stop};
use super::wave::Wave;
use super::{control, ds, flat, mubuf, salu, smem, trap, valu, vskip};
use crate::isa::ir::{Inst, flag};

/// The X half of a dual-issue pair, while the Y half executes.
struct Pair<const N: usize> {
    dst: usize,
    before: [u32; N],
    after: [u32; N],
}

/// Runs a wave from its program counter until it stops or has executed about `budget` instructions.
///
/// `w.clock` grows by the instructions executed. With `FAST`, common vector instructions are code of
/// their own in the loop.
#[inline(always)]
pub(super) fn run<const N: usize, const FAST: bool>(
    w: &mut Wave<N>,
    cx: &mut Context<'_>,
    budget: u64,
) -> Stop {
    let end = w.clock.saturating_add(budget);
    let mut pair = Pair { dst: 0, before: [0; N], after: [0; N] };
    let mut from = None;
    'enter: loop {
        if vskip::is_on(w, cx)
            && let Some(stop) = vskip::run(w, cx, end)
        {
            return stop;
        }
        let mut index = match cx.cache.enter(w.pc, from.take(), &mut cx.view) {
            Ok(index) => index,
            Err(none) => match no_code(w, cx, none) {
                Some(stop) => return stop,
                None => continue 'enter,
            },
        };
        let mut start = cx.cache.before(index);
        // Held, so that instructions are read where they are while `cx` is passed on.
        let code = Arc::clone(&cx.cache.code);
        let trouble = loop {
            // A run ends in a branch, so the index stays inside; the check only satisfies the type.
            let Some(i) = code.insts.get(index) else { break Trouble::Illegal };
            if i.vgprs > w.vgprs {
                break Trouble::Illegal;
            }
            if i.flags & flag::VOPD_X != 0 {
                pair.before = w.v[usize::from(i.dst) & 511];
            }
            let result = if salu::step(w, i, &code) || valu::step::<N, FAST>(w, i, &code, cx.env) {
                if i.flags & (flag::WRITES_EXEC | flag::VOPD_X | VOPD_Y) != 0 {
                    if i.flags & flag::WRITES_EXEC != 0 {
                        w.rebuild_mask();
                    } else if i.flags & flag::VOPD_X != 0 {
                        // Only one register of the X half can matter to the Y half: its new value
                        // is taken away until Y has read.
                        pair.dst = usize::from(i.dst) & 511;
                        pair.after = std::mem::replace(&mut w.v[pair.dst], pair.before);
                    } else {
                        w.v[pair.dst] = pair.after;
                    }
                }
                Ok(())
            } else if let Some(flow) = {
                cx.slot = index;
                control::step(w, i, cx, index)
            } {
                match flow {
                    Flow::Next => Ok(()),
                    Flow::Branch => {
                        w.clock += cx.cache.before(index) + u64::from(i.words != 0) - start;
                        if let Some(found) = cx.cache.follow(index)
                            && w.clock < end
                        {
                            index = found;
                            start = cx.cache.before(found);
                            continue;
                        }
                        let next = cx.cache.address(index).wrapping_add(4 * u64::from(i.words));
                        w.pc = next.wrapping_add(i64::from(i.imm) as u64);
                        if w.clock >= end {
                            return Stop::Quantum;
                        }
                        from = Some(index);
                        continue 'enter;
                    }
                    Flow::Jump(target) => {
                        w.clock += cx.cache.before(index) + 1 - start;
                        w.pc = target;
                        if w.clock >= end {
                            return Stop::Quantum;
                        }
                        continue 'enter;
                    }
                    Flow::Stop(stop) => {
                        w.clock += cx.cache.before(index) + 1 - start;
                        w.pc = cx.cache.address(index);
                        if !matches!(stop, Stop::Halted(_)) {
                            w.pc = w.pc.wrapping_add(4 * u64::from(i.words));
                        }
                        return stop;
                    }
                    Flow::HaltAt(target) => {
                        w.clock += cx.cache.before(index) + 1 - start;
                        w.pc = target;
                        return Stop::Halted(None);
                    }
                    Flow::Trouble(trouble) => Err(trouble),
                }
            } else if let Some(result) = flat::step(w, i, cx) {
                result
            } else if let Some(result) = smem::step(w, i, cx) {
                result
            } else {
                called(w, i, cx)
            };
            if let Err(trouble) = result {
                break trouble;
            }
            index += 1;
        };
        w.clock += cx.cache.before(index) - start;
        w.pc = cx.cache.address(index);
        if let Some(stop) = trap::raise(w, cx, trouble) {
            return stop;
        }
    }
}

/// The instructions that are not worth code in the loop.
#[inline(never)]
pub(super) fn called<const N: usize>(
    w: &mut Wave<N>,
    i: &Inst,
    cx: &mut Context<'_>,
) -> Result<(), Trouble> {
    let result = ds::step(w, i, cx)
        .or_else(|| flat::step_called(w, i, cx))
        .or_else(|| mubuf::step(w, i, cx))
        .or_else(|| smem::rare::step(w, i, cx))
        .or_else(|| salu::float::step(w, i, &cx.cache.code).then_some(Ok(())));
    result.unwrap_or(Err(Trouble::Illegal))
}

/// There is no instruction at `w.pc`. `None`: a handler takes it.
#[cold]
#[inline(never)]
pub(super) fn no_code<const N: usize>(
    w: &mut Wave<N>,
    cx: &Context<'_>,
    none: NoCode,
) -> Option<Stop> {
    let trouble = match none {
        NoCode::Fault(fault) => Trouble::Fault(fault),
        NoCode::Illegal => Trouble::Illegal,
    };
    trap::raise(w, cx, trouble)
}
