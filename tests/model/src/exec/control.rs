//! Control flow, messages, barriers, waits and hardware registers.

use super::context::{Context, Trouble};
use super::salu::dst;
use super::status;
use super::wave::Wave;
use super::{clock, hwreg, trap};
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

/// Declares `step` and `implements` from one list of operations.
macro_rules! control_semantics {
    ($w:ident, $i:ident, $cx:ident, $index:ident, $next:ident; $($($op:ident)|+ => $body:expr,)+) => {
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
                _ => return None,
            })
        }

        /// Whether [`step`] has semantics for `op`.
        pub(super) const fn implements(op: Op) -> bool {
            matches!(op, $($(Op::$op)|+)|+)
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
    SRfeB64 => trap::return_from(w, w.s_src64(i.src[0], &cx.cache.code)),
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
        Flow::Next
    },
    SRoundMode => { w.mode = w.mode & !15 | i.imm as u32 & 15; Flow::Next },
    SDenormMode => { w.mode = w.mode & !0xf0 | (i.imm as u32 & 15) << 4; Flow::Next },
    SMemtime => { let now = w.clock; w.set_s64(dst(i), now); Flow::Next },
    SMemrealtime => { w.set_s64(dst(i), clock::ticks()); Flow::Next },
    // Those of `is_idle`.
    SNop | SWaitcnt | SWaitcntDepctr | SWaitcntVscnt | SWaitcntVmcnt | SWaitcntExpcnt | SWaitcntLgkmcnt
        | SDelayAlu | SClause | SSetprio | SSetInstPrefetchDistance | STtracedata | STtracedataImm
        | SIncperflevel | SDecperflevel | SWakeup | SWaitEvent | SWaitIdle | SSingleuseVdst | SVersion
        | SDcacheDiscard | SDcacheDiscardX2 => Flow::Next,
}

/// Whether an instruction has no effect here: everything completes in order and at once.
pub(super) const fn is_idle(op: Op) -> bool {
    use Op::*;
    matches!(
        op,
        SNop | SWaitcnt
            | SWaitcntDepctr
            | SWaitcntVscnt
            | SWaitcntVmcnt
            | SWaitcntExpcnt
            | SWaitcntLgkmcnt
            | SDelayAlu
            | SClause
            | SSetprio
            | SSetInstPrefetchDistance
            | STtracedata
            | STtracedataImm
            | SIncperflevel
            | SDecperflevel
            | SWakeup
            | SWaitEvent
            | SWaitIdle
            | SSingleuseVdst
            | SVersion
            | SDcacheDiscard
            | SDcacheDiscardX2
    )
}

#[inline(always)]
fn when(taken: bool) -> Flow {
    if taken { Flow::Branch } else { Flow::Next }
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
