//! The loop that watches: one instruction at a time.

use std::sync::Arc;

use crate::exec::code::VOPD_Y;
use crate::exec::context::{Context, Trouble};
use crate::exec::control::{Flow, Stop};
use crate::exec::run::{called, no_code};
use crate::exec::wave::{Code, Wave};
use crate::exec::{control, flat, salu, smem, trap, valu, vskip};
use crate::isa::ir::flag;

/// What is asked around each instruction.
pub(super) trait Hooks<const N: usize> {
    /// What is kept from before an instruction until after it.
    type Seen;

    /// Before the instruction at the program counter.
    fn before(
        &mut self,
        number: usize,
        w: &mut Wave<N>,
        cx: &mut Context<'_>,
        code: &Code,
        index: usize,
    ) -> Self::Seen;

    /// After it; the program counter still stands at it. True: it raised an arithmetic exception whose
    /// trap is enabled.
    #[allow(clippy::too_many_arguments)] // what an instruction was
    fn after(
        &mut self,
        number: usize,
        w: &mut Wave<N>,
        cx: &mut Context<'_>,
        code: &Code,
        index: usize,
        flow: &Flow,
        seen: Self::Seen,
    ) -> bool;

    /// A trap handler is entered, before which everything is waited for.
    fn enters_handler(&mut self, number: usize, w: &mut Wave<N>);
}

/// Runs a wave from its program counter until it stops or has executed `budget` instructions.
///
/// The same as [`crate::exec::run::run`], but that the watcher is asked around each instruction and
/// that the budget is kept to the instruction.
#[inline(never)]
pub(super) fn run<const N: usize>(
    watcher: &mut impl Hooks<N>,
    number: usize,
    w: &mut Wave<N>,
    cx: &mut Context<'_>,
    budget: u64,
) -> Stop {
    let end = w.clock.saturating_add(budget);
    loop {
        // While vector instructions are skipped there is little to see.
        if vskip::is_on(w, cx)
            && let Some(stop) = vskip::run(w, cx, end)
        {
            return stop;
        }
        if w.clock >= end {
            return Stop::Quantum;
        }
        let index = match cx.cache.enter(w.pc, None, &mut cx.view) {
            Ok(index) => index,
            Err(none) => match no_code(w, cx, none) {
                Some(stop) => return stop,
                None => {
                    watcher.enters_handler(number, w);
                    continue;
                }
            },
        };
        let code = Arc::clone(&cx.cache.code);
        let seen = watcher.before(number, w, cx, &code, index);
        let flow = execute(w, cx, &code, index);
        let raised = watcher.after(number, w, cx, &code, index, &flow, seen);
        // The next look-up may decode more.
        let next = code.insts.get(index).map_or(0, |inst| 4 * u64::from(inst.words)) + w.pc;
        let imm = code.insts.get(index).map_or(0, |inst| i64::from(inst.imm));
        drop(code);
        match flow {
            Flow::Trouble(trouble) => {
                if let Some(stop) = trap::raise(w, cx, trouble) {
                    return stop;
                }
                watcher.enters_handler(number, w);
                continue;
            }
            Flow::Next => w.pc = next,
            Flow::Branch => w.pc = next.wrapping_add_signed(imm),
            Flow::Jump(target) => w.pc = target,
            Flow::Stop(stop) => {
                w.clock += 1;
                if !matches!(stop, Stop::Halted(_)) {
                    w.pc = next;
                }
                return stop;
            }
            Flow::HaltAt(target) => {
                w.clock += 1;
                w.pc = target;
                return Stop::Halted(None);
            }
        }
        w.clock += 1;
        let pc = w.pc;
        if raised && trap::arithmetic(w, cx, pc) {
            watcher.enters_handler(number, w);
        }
    }
}

/// Executes one instruction, or a dual-issue pair.
#[inline(never)]
fn execute<const N: usize>(
    w: &mut Wave<N>,
    cx: &mut Context<'_>,
    code: &Code,
    index: usize,
) -> Flow {
    let Some(i) = code.insts.get(index) else { return Flow::Trouble(Trouble::Illegal) };
    if i.vgprs > w.vgprs {
        return Flow::Trouble(Trouble::Illegal);
    }
    cx.slot = index;
    let first = usize::from(i.dst) & 511;
    let before = if i.flags & flag::VOPD_X != 0 { Some(w.v[first]) } else { None };
    if salu::step(w, i, code) || valu::step::<N, false>(w, i, code, cx.env) {
        if let Some(before) = before {
            // Y reads what was there before X wrote.
            let after = std::mem::replace(&mut w.v[first], before);
            let y = code.insts.get(index + 1).filter(|y| y.flags & VOPD_Y != 0);
            let done =
                y.is_some_and(|y| y.vgprs <= w.vgprs && valu::step::<N, false>(w, y, code, cx.env));
            w.v[first] = after;
            if !done {
                return Flow::Trouble(Trouble::Illegal);
            }
        }
        if i.flags & flag::WRITES_EXEC != 0 {
            w.rebuild_mask();
        }
        return Flow::Next;
    }
    if let Some(flow) = control::step(w, i, cx, index) {
        return flow;
    }
    let result =
        flat::step(w, i, cx).or_else(|| smem::step(w, i, cx)).unwrap_or_else(|| called(w, i, cx));
    result.map_or_else(Flow::Trouble, |()| Flow::Next)
}
