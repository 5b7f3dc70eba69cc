//! Packets that order: fences, traps, polls, atomics, timestamps.

use std::sync::atomic::{Ordering, fence};

use pm4::sdma::{Atomic, Fence, PollMem, Timestamp, Trap};

use super::super::atomic::{self, Tried};
use super::super::turn::Reason;
use super::super::{Queue, Runner, State};
use super::{Done, NEXT};
use crate::memory::AccessError;

/// Bits of an event id in the interrupt of a trap.
const EVENT_BITS: u32 = 28;

/// TRAP: an interrupt with an event id.
pub(super) fn trap(runner: &Runner, packet: Trap) -> Done {
    runner.interrupt(packet.context(), EVENT_BITS);
    NEXT
}

/// Caches and the host data path: memory is coherent here.
pub(super) fn flush() -> Done {
    fence(Ordering::SeqCst);
    NEXT
}

impl Queue {
    pub(super) fn sdma_fence(&self, runner: &Runner, packet: Fence) -> Result<Done, AccessError> {
        fence(Ordering::SeqCst);
        self.setup.device.space.store_u32(packet.addr().get(), packet.data())?;
        runner.engine().wake();
        Ok(NEXT)
    }

    pub(super) fn timestamp(&self, packet: Timestamp) -> Result<Done, AccessError> {
        let device = &self.setup.device;
        device.space.store_u64(packet.addr().get(), device.clock())?;
        Ok(NEXT)
    }

    /// POLL_REGMEM: each look is a try.
    pub(super) fn poll(&self, state: &mut State, packet: PollMem) -> Result<Done, AccessError> {
        let (compare, reference, mask) = packet.condition();
        let value = self.setup.device.space.load_u32(packet.addr().get())? & mask;
        let (_, retries) = packet.retries();
        Ok(match compare.holds(value.into(), reference.into()) {
            Some(true) => NEXT,
            Some(false) if retries == PollMem::FOREVER => Done::Wait,
            Some(false) if state.copier.tries >= retries.into() => {
                Done::Stop(Reason::invalid(format!("{packet}: given up after {retries} retries")))
            }
            Some(false) => {
                state.copier.tries += 1;
                Done::Wait
            }
            None => Done::Stop(Reason::invalid(format!("comparison {}", compare.0))),
        })
    }

    pub(super) fn sdma_atomic(&self, runner: &Runner, packet: Atomic) -> Result<Done, AccessError> {
        let (space, repeat) = (&self.setup.device.space, packet.repeats().is_some());
        let address = packet.addr().get();
        Ok(match atomic::perform(space, packet.op(), address, packet.data(), repeat)? {
            Tried::Done(_) => {
                runner.engine().wake();
                NEXT
            }
            Tried::Again => Done::Wait,
            Tried::Unknown => Done::Stop(Reason::unsupported(format!("{packet} is unknown here"))),
        })
    }
}
