//! Control flow, messages, barriers, waits and hardware registers.

use super::context::{Context, Trouble};
use super::salu::dst;
use super::status;
use super::valu::fp::mode;
use super::wave::Wave;
use super::{clock, hwreg, trap, vskip};
use crate::isa::Op;
use crate::isa::ir::{Inst, sgpr};

/// Why a wave left the interpreter. The program counter is where it goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Used up its turn.
    Quantum,
    /// Waits at a barrier.
    Barrier,
    /// Sleeps.
    Sleep,
    /// Sent an interrupt: [`Context::interrupts`] has it.
    Interrupt,
    /// Ended.
    End,
    /// Halted: by itself, or by an exception that no handler takes.
    Halted(Option<Trouble>),
    /// Touched memory it must not.
    Fault(super::MemoryFault),
}

/// What follows an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    /// The next instruction.
    Next,
    /// The instruction's own target: the next address plus its immediate.
    Branch,
    /// Another address.
    Jump(u64),
    /// The wave leaves the interpreter; it goes on with the next instruction.
    Stop(Stop),
    /// The wave halts; it stands at an address.
    HaltAt(u64),
    /// The instruction did not finish.
    Trouble(Trouble),
}

/// Declares `step`, `implements` and `is_idle` from one list of operations.
macro_rules! control_semantics {
    (
        $w:ident, $i:ident, $cx:ident, $index:ident, $next:ident;
        $($($op:ident)|+ => $body:expr,)+
        ;
        idle { $($idle:ident)+ }
    ) => {
        /// Executes a control instruction; `next` computes the address after it. `None`: not one;
        /// nothing changed.
        #[inline(always)]
        pub(super) fn step<const N: usize>(
            $w: &mut Wave<N>,
            $i: &Inst,
            $cx: &mut Context<'_>,
            $index: usize,
        ) -> Option<Flow> {
            let $next = |cx: &Context<'_>| cx.cache.address($index).wrapping_add(4 * u64::from($i.words));
            Some(match $i.op {
                $($(Op::$op)|+ => $body,)+
                $(Op::$idle)|+ => Flow::Next,
                _ => return None,
            })
        }

        /// Whether [`step`] has semantics for `op`.
        pub(super) const fn implements(op: Op) -> bool {
            matches!(op, $($(Op::$op)|+)|+) || is_idle(op)
        }

        /// Whether an instruction has no effect here: everything completes in order and at once.
        pub(super) const fn is_idle(op: Op) -> bool {
            matches!(op, $(Op::$idle)|+)
        }
    };
}

control_semantics! { w, i, cx, index, next;
    SBranch => Flow::Branch,
    SCbranchScc0 => when(!w.scc),
    SCbranchScc1 => when(w.scc),
    SCbranchVccz => when(w.vcc() == 0),
    SCbranchVccnz => when(w.vcc() != 0),
    SCbranchExecz => when(w.exec() == 0),
    SCbranchExecnz => when(w.exec() != 0),
    // No debugger sets the conditional debug bits here.
    SCbranchCdbgsys | SCbranchCdbguser | SCbranchCdbgsysAndUser | SCbranchCdbgsysOrUser => Flow::Next,
    SGetpcB64 => { w.set_s64(dst(i), next(cx)); Flow::Next },
    SSetpcB64 => Flow::Jump(w.s_src64(i.src[0], &cx.cache.code)),
    SSwappcB64 => {
        let target = w.s_src64(i.src[0], &cx.cache.code);
        w.set_s64(dst(i), next(cx));
        Flow::Jump(target)
    },
    SCallB64 => { w.set_s64(dst(i), next(cx)); Flow::Branch },
    SRfeB64 | SRfeRestoreB64 => trap::return_from(w, w.s_src64(i.src[0], &cx.cache.code)),
    SEndpgm | SEndpgmSaved | SEndpgmOrderedPsDone => Flow::Stop(Stop::End),
    SBarrier => Flow::Stop(Stop::Barrier),
    SSleep => Flow::Stop(Stop::Sleep),
    STrap => trap::instruction(w, cx, i.imm as u32 & 0xff, cx.cache.address(index)),
    SSethalt => halt(w, i.imm),
    SSendmsg => message(w, i, cx),
    SSendmsghalt => match message(w, i, cx) {
        Flow::Next => halt(w, 1),
        flow => { w.status |= status::HALT; flow }
    },
    SSendmsgRtnB32 | SSendmsgRtnB64 => message_with_answer(w, i, cx),
    SIcacheInv => {
        cx.acquires.fetch_add(1, std::sync::atomic::Ordering::AcqRel);
        cx.cache.invalidate();
        Flow::Next
    },
    SGetregB32 => {
        let value = hwreg::read(w, cx, i.imm as u32);
        w.set_s32(dst(i), value);
        Flow::Next
    },
    SSetregB32 | SSetregImm32B32 => {
        let value = w.s_src32(i.src[0], &cx.cache.code);
        hwreg::write(w, cx, i.imm as u32, value);
        // A wave that skips vector instructions runs elsewhere.
        if vskip::is_on(w, cx) { Flow::Jump(next(cx)) } else { Flow::Next }
    },
    SSetvskip => {
        let sources = [0, 1].map(|k| w.s_src32(i.src[k], &cx.cache.code));
        vskip::set(w, sources[0] >> (sources[1] & 31) & 1 != 0);
        Flow::Jump(next(cx))
    },
    SSetGprIdxOn => {
        let index = w.s_src32(i.src[0], &cx.cache.code);
        w.mode |= mode::GPR_IDX_EN;
        set_m0(w, 0xf0ff, index & 0xff | (i.imm as u32 & 15) << 12);
        Flow::Next
    },
    SSetGprIdxOff => { w.mode &= !mode::GPR_IDX_EN; Flow::Next },
    SSetGprIdxIdx => {
        let index = w.s_src32(i.src[0], &cx.cache.code);
        set_m0(w, 0xff, index & 0xff);
        Flow::Next
    },
    SSetGprIdxMode => { set_m0(w, 0xf000, (i.imm as u32 & 15) << 12); Flow::Next },
    SCbranchGFork => {
        let [mask, target] = [0, 1].map(|k| w.s_src64(i.src[k], &cx.cache.code));
        fork(w, mask, target, next(cx))
    },
    SCbranchIFork => {
        let mask = w.s_src64(i.src[0], &cx.cache.code);
        let next = next(cx);
        fork(w, mask, next.wrapping_add(i64::from(i.imm) as u64), next)
    },
    SCbranchJoin => {
        let depth = w.s_src32(i.src[0], &cx.cache.code);
        join(w, depth)
    },
    SSubvectorLoopBegin => subvector_begin(w, i),
    SSubvectorLoopEnd => subvector_end(w, i),
    SSetkill => if i.imm & 1 != 0 { Flow::Stop(Stop::End) } else { Flow::Next },
    // Marks the end of code for tools; executed, it is an illegal instruction.
    SCodeEnd => Flow::Trouble(Trouble::Illegal),
    SRoundMode => { w.mode = w.mode & !15 | i.imm as u32 & 15; Flow::Next },
    SDenormMode => { w.mode = w.mode & !0xf0 | (i.imm as u32 & 15) << 4; Flow::Next },
    SMemtime => { let now = w.clock; w.set_s64(dst(i), now); Flow::Next },
    SMemrealtime => { w.set_s64(dst(i), clock::ticks()); Flow::Next },
    ;
    idle {
        SNop SWaitcnt SWaitcntDepctr SWaitcntVscnt SWaitcntVmcnt SWaitcntExpcnt SWaitcntLgkmcnt
        SDelayAlu SClause SSetprio SSetInstPrefetchDistance STtracedata STtracedataImm
        SIncperflevel SDecperflevel SWakeup SWaitEvent SWaitIdle SSingleuseVdst SVersion
        SDcacheDiscard SDcacheDiscardX2
    }
}

#[inline(always)]
fn when(taken: bool) -> Flow {
    if taken { Flow::Branch } else { Flow::Next }
}

#[cold]
fn set_m0<const N: usize>(w: &mut Wave<N>, field: u32, value: u32) {
    w.set_s32(sgpr::M0, w.s32(sgpr::M0) & !field | value);
}

/// First of the four scalar registers that keep a pending path: EXEC, then its address.
fn pending(depth: u32) -> u8 {
    4 * (depth & 7) as u8
}

fn set_depth<const N: usize>(w: &mut Wave<N>, depth: u32) {
    w.mode = w.mode & !(7 << mode::CSP_SHIFT) | (depth & 7) << mode::CSP_SHIFT;
}

/// s_cbranch_g_fork, s_cbranch_i_fork: lanes of `mask` go to `target`, the others on. Where both
/// have lanes the smaller half goes first and the other is put on the stack.
#[cold]
fn fork<const N: usize>(w: &mut Wave<N>, mask: u64, target: u64, next: u64) -> Flow {
    let exec = w.exec();
    let (pass, fail) = (mask & exec, !mask & exec);
    if pass == exec {
        return Flow::Jump(target);
    }
    if fail == exec {
        return Flow::Jump(next);
    }
    let fail_first = fail.count_ones() < pass.count_ones();
    let ((now, at), (later, later_at)) =
        if fail_first { ((fail, next), (pass, target)) } else { ((pass, target), (fail, next)) };
    let depth = w.mode >> mode::CSP_SHIFT;
    w.set_s64(pending(depth), later);
    w.set_s64(pending(depth) + 2, later_at);
    set_depth(w, depth + 1);
    w.set_exec(now);
    Flow::Jump(at)
}

/// s_cbranch_join: goes on where the stack is as deep as before the fork, else takes the path on
/// its top.
#[cold]
fn join<const N: usize>(w: &mut Wave<N>, depth: u32) -> Flow {
    let current = w.mode >> mode::CSP_SHIFT;
    if current == depth {
        return Flow::Next;
    }
    let top = current.wrapping_sub(1);
    set_depth(w, top);
    let (exec, target) = (w.s64(pending(top)), w.s64(pending(top) + 2));
    w.set_exec(exec);
    Flow::Jump(target)
}

/// s_subvector_loop_begin: a loop over the halves of EXEC. The register keeps the half that does
/// not run.
#[cold]
fn subvector_begin<const N: usize>(w: &mut Wave<N>, i: &Inst) -> Flow {
    let [low, high] = [sgpr::EXEC_LO, sgpr::EXEC_HI].map(|reg| w.s32(reg));
    if low | high == 0 {
        return Flow::Branch;
    }
    if low == 0 {
        w.set_s32(dst(i), low);
    } else {
        w.set_s32(dst(i), high);
        w.set_s32(sgpr::EXEC_HI, 0);
        w.rebuild_mask();
    }
    Flow::Next
}

/// s_subvector_loop_end: back for the high half, or puts EXEC together again.
#[cold]
fn subvector_end<const N: usize>(w: &mut Wave<N>, i: &Inst) -> Flow {
    let kept = w.s32(dst(i));
    if w.s32(sgpr::EXEC_HI) != 0 {
        w.set_s32(sgpr::EXEC_LO, kept);
        w.rebuild_mask();
        return Flow::Next;
    }
    if kept == 0 {
        return Flow::Next;
    }
    let low = w.s32(sgpr::EXEC_LO);
    w.set_s32(sgpr::EXEC_HI, kept);
    w.set_s32(dst(i), low);
    w.set_s32(sgpr::EXEC_LO, 0);
    w.rebuild_mask();
    Flow::Branch
}

/// HALT takes effect at once, in a privileged wave only when its handler returns; a fatal halt (bit
/// 2, gfx11) at once in any.
#[cold]
fn halt<const N: usize>(w: &mut Wave<N>, imm: i32) -> Flow {
    if imm & 1 == 0 {
        w.status &= !status::HALT;
        return Flow::Next;
    }
    w.status |= status::HALT;
    let waits = w.status & status::PRIV != 0 && imm & 4 == 0;
    if waits { Flow::Next } else { Flow::Stop(Stop::Halted(None)) }
}

/// `MSG_INTERRUPT`.
const INTERRUPT: u32 = 1;
/// `MSG_GET_DOORBELL` of gfx9: the answer goes to EXEC_LO.
const GET_DOORBELL_GFX9: u32 = 10;

#[cold]
fn message<const N: usize>(w: &mut Wave<N>, i: &Inst, cx: &mut Context<'_>) -> Flow {
    let id = i.imm as u32 & if cx.env.target.is_gfx9() { 15 } else { 255 };
    match id {
        INTERRUPT => {
            cx.interrupts.push((w.s32(sgpr::M0) & 0xff_ffff, w.status & status::PRIV != 0));
            Flow::Stop(Stop::Interrupt)
        }
        GET_DOORBELL_GFX9 if cx.env.target.is_gfx9() => {
            w.set_s32(sgpr::EXEC_LO, cx.env.doorbell_id & 0x3ff);
            w.rebuild_mask();
            Flow::Next
        }
        _ => Flow::Next,
    }
}

/// gfx11: identifiers from 128 up answer into a register.
#[cold]
fn message_with_answer<const N: usize>(w: &mut Wave<N>, i: &Inst, cx: &mut Context<'_>) -> Flow {
    let answer = match i.imm as u32 & 0xff {
        128 => u64::from(cx.env.doorbell_id & 0x3ff),
        131 => clock::ticks(),
        133 => cx.env.trap.map_or(0, |trap| trap.tma),
        134 => cx.env.trap.map_or(0, |trap| trap.tba),
        // GET_DDID, GET_SE_AID_ID and anything later.
        _ => 0,
    };
    if i.op == Op::SSendmsgRtnB64 {
        w.set_s64(dst(i), answer);
    } else {
        w.set_s32(dst(i), answer as u32);
    }
    Flow::Next
}
