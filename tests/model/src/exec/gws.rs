//! Global wave sync: 64 counters per GPU that waves of all workgroups meet at.
//!
//! A queue reaches them once its process owns them (ALLOC_QUEUE_GWS); without, an access is a
//! memory violation of the wave. The operations follow the "CDNA3" and "RDNA3" instruction set
//! documents, DS_GWS_*. docs/ABI.md §Global wave sync.

use std::sync::{Mutex, PoisonError};

use super::context::{Context, Trouble};
use super::wave::Wave;
use crate::isa::ir::{Inst, SrcKind, sgpr};

/// Resources of a GPU.
pub const RESOURCES: usize = 64;

/// A barrier or a semaphore; which, the last operation said.
#[derive(Clone, Copy, Debug, Default)]
struct Resource {
    counter: u32,
    /// Changes with every barrier that is complete.
    flag: bool,
    /// Waves that wait at the semaphore.
    waiting: u32,
}

/// The resources that a queue owns.
#[derive(Debug)]
pub struct Gws {
    resources: Mutex<[Resource; RESOURCES]>,
}

impl Default for Gws {
    fn default() -> Self {
        Self { resources: Mutex::new([Resource::default(); RESOURCES]) }
    }
}

/// What a wave waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Waiting {
    /// Nothing.
    #[default]
    No,
    /// That the flag of a barrier is no longer this.
    Barrier(bool),
    /// That a semaphore is above zero.
    Semaphore,
}

/// By how much a release raises the counter.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Release {
    /// By one.
    One,
    /// By the operand.
    Many,
    /// It becomes the number of waves that wait.
    Waiting,
}

/// Changes the instruction's resource, number M0\[21:16\] + offset modulo 64.
fn with<const N: usize, T>(
    w: &Wave<N>,
    i: &Inst,
    cx: &Context<'_>,
    change: impl FnOnce(&mut Resource) -> T,
) -> Result<T, Trouble> {
    let number = (w.s32(sgpr::M0) >> 16).wrapping_add(i.imm as u32) as usize % RESOURCES;
    let Some(gws) = cx.gws else { return Err(Trouble::Violation(number as u64)) };
    let mut resources = gws.resources.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(change(&mut resources[number]))
}

/// The operand: of the first active lane.
fn operand<const N: usize>(w: &Wave<N>, i: &Inst) -> u32 {
    let lane = match w.exec() {
        0 => 0,
        exec => exec.trailing_zeros() as usize & (N - 1),
    };
    match i.src[0].kind() {
        SrcKind::V(row) => w.v[usize::from(row) & 511][lane],
        _ => 0,
    }
}

/// ds_gws_init.
pub(super) fn init<const N: usize>(w: &Wave<N>, i: &Inst, cx: &Context<'_>) -> Result<(), Trouble> {
    let counter = operand(w, i);
    with(w, i, cx, |resource| *resource = Resource { counter, ..Resource::default() })
}

/// ds_gws_barrier: the counter says how many waves are missing beside this one; the last one opens
/// the barrier and sets the counter for the next.
pub(super) fn barrier<const N: usize>(
    w: &mut Wave<N>,
    i: &Inst,
    cx: &Context<'_>,
) -> Result<(), Trouble> {
    let (value, waiting) = (operand(w, i), w.gws);
    let state = with(w, i, cx, |resource| match waiting {
        Waiting::Barrier(flag) if flag != resource.flag => Waiting::No,
        Waiting::Barrier(_) => waiting,
        _ if resource.counter == 0 => {
            resource.flag = !resource.flag;
            resource.counter = value;
            Waiting::No
        }
        _ => {
            resource.counter -= 1;
            Waiting::Barrier(resource.flag)
        }
    })?;
    settle(w, state)
}

/// ds_gws_sema_v, ds_gws_sema_br, ds_gws_sema_release_all.
pub(super) fn release<const N: usize>(
    w: &Wave<N>,
    i: &Inst,
    cx: &Context<'_>,
    by: Release,
) -> Result<(), Trouble> {
    let value = operand(w, i);
    with(w, i, cx, |resource| {
        resource.counter = match by {
            Release::One => resource.counter.saturating_add(1),
            Release::Many => resource.counter.saturating_add(value),
            Release::Waiting => resource.waiting,
        };
    })
}

/// ds_gws_sema_p: waits for the counter to be above zero, and takes one.
pub(super) fn acquire<const N: usize>(
    w: &mut Wave<N>,
    i: &Inst,
    cx: &Context<'_>,
) -> Result<(), Trouble> {
    let queued = w.gws == Waiting::Semaphore;
    let state = with(w, i, cx, |resource| {
        if let Some(rest) = resource.counter.checked_sub(1) {
            resource.counter = rest;
            resource.waiting = resource.waiting.saturating_sub(u32::from(queued));
            return Waiting::No;
        }
        resource.waiting += u32::from(!queued);
        Waiting::Semaphore
    })?;
    settle(w, state)
}

/// A wave that must wait sleeps and executes the instruction again.
fn settle<const N: usize>(w: &mut Wave<N>, state: Waiting) -> Result<(), Trouble> {
    w.gws = state;
    if state == Waiting::No { Ok(()) } else { Err(Trouble::Wait) }
}
