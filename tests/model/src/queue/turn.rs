//! What PM4 and SDMA queues have in common: how much they do at a time, how they stop, and what
//! they tell the driver.

use std::time::Instant;

use super::{Format, Queue, Runner, State};
use crate::memory::AccessError;

/// Packets of a turn, so that no queue starves another.
const PACKETS: u32 = 128;

/// Bytes that a turn moves, at most.
pub(super) const BYTES: u64 = 256 << 10;

/// What is left of a turn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    pub(super) packets: u32,
    pub(super) bytes: u64,
}

impl Budget {
    /// The whole turn of a queue; `None` while its engine is slowed down.
    pub(super) fn of(runner: &Runner, state: &State) -> Option<Self> {
        let (delay, bytes) = runner.faults().engine_pace();
        if delay.is_zero() {
            return Some(Self { packets: PACKETS, bytes: bytes.unwrap_or(BYTES) });
        }
        let early = state.not_before.is_some_and(|at| Instant::now() < at);
        (!early).then_some(Self { packets: 1, bytes: bytes.unwrap_or(BYTES) })
    }

    /// Takes a packet that is carried out.
    pub(super) fn packet(&mut self, bytes: u64) {
        self.packets = self.packets.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    pub(super) const fn is_spent(&self) -> bool {
        self.packets == 0 || self.bytes == 0
    }
}

/// Why a queue cannot go on.
#[derive(Clone, Debug)]
pub(super) struct Reason {
    /// KFD's code of the exception, on command processors.
    pub(super) code: u32,
    pub(super) text: String,
}

impl Reason {
    /// A packet that does not exist, or not on this chip.
    pub(super) fn unsupported(text: impl std::fmt::Display) -> Self {
        Self { code: 20, text: text.to_string() }
    }

    /// A packet with contents that it cannot have.
    pub(super) fn invalid(text: impl std::fmt::Display) -> Self {
        Self { code: 19, text: text.to_string() }
    }
}

/// How a turn ended.
#[derive(Clone, Debug)]
pub(super) enum Turn {
    /// Nothing is left.
    Done,
    /// There is more to do.
    More,
    /// Something must be looked at again.
    Wait,
    /// A launch has to end first.
    Blocked,
    /// The queue stops here.
    Stop(Reason),
}

impl Queue {
    /// Checks the write pointer: of a queue that works, the ring holds what is left to fetch. `unit`
    /// is the bytes that the pointers count.
    pub(super) fn check_pointers(&self, state: &State, unit: u64) -> Result<(), Reason> {
        let (read, write) = (state.next, state.fetch_limit);
        let room = state.tunables.ring_bytes / unit;
        if write < read {
            return Err(Reason::invalid(format!(
                "the write pointer in memory is {write}, behind the read pointer {read}"
            )));
        }
        if write - read >= room {
            return Err(Reason::invalid(format!(
                "the write pointer {write} is {} ahead of the read pointer: the ring has {room}",
                write - read
            )));
        }
        Ok(())
    }

    /// Tells the driver how far the ring was read.
    pub(super) fn tell(&self, runner: &Runner, state: &mut State) -> Result<(), AccessError> {
        let space = &self.setup.device.space;
        if state.told == Some(state.next) {
            return Ok(());
        }
        if self.setup.format == Format::Pm4 {
            // The register has 32 bits and counts round the ring.
            let room = (state.tunables.ring_bytes / 4).max(1);
            let told = runner.faults().told_read_index(state.next % room);
            let told = u32::try_from(told & 0xffff_ffff).unwrap_or(0);
            space.store_u32(self.setup.read_pointer, told)?;
        } else {
            let told = runner.faults().told_read_index(state.next);
            space.store_u64(self.setup.read_pointer, told)?;
        }
        state.told = Some(state.next);
        Ok(())
    }

    /// A slowed engine rests after what it did.
    pub(super) fn rest(runner: &Runner, state: &mut State) {
        let (delay, _) = runner.faults().engine_pace();
        state.not_before = (!delay.is_zero()).then(|| Instant::now() + delay);
    }
}
