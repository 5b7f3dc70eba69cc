//! `amd_signal_t` and `amd_queue_t` in GPU memory (docs/ABI.md §AQL signal).

use super::{Queue, Runner};
use crate::memory::{AccessError, AddressSpace};

const VALUE: u64 = 8;
const MAILBOX: u64 = 16;
const EVENT_ID: u64 = 24;
const START: u64 = 32;
const END: u64 = 40;

/// The value of a signal.
pub(super) fn value(space: &AddressSpace, signal: u64) -> Result<i64, AccessError> {
    space.load_u64(signal.wrapping_add(VALUE)).map(u64::cast_signed)
}

/// Writes both timestamps.
pub(super) fn stamp(
    space: &AddressSpace,
    signal: u64,
    start: u64,
    end: u64,
) -> Result<(), AccessError> {
    space.store_u64(signal.wrapping_add(START), start)?;
    space.store_u64(signal.wrapping_add(END), end)
}

impl Runner {
    /// Changes a signal's value, then tells the host: mailbox, then interrupt.
    pub(super) fn change_signal(
        &self,
        queue: &Queue,
        signal: u64,
        change: impl Fn(i64) -> i64,
    ) -> Result<(), AccessError> {
        let space = &queue.setup.device.space;
        space.update_u64(signal.wrapping_add(VALUE), |old| {
            Some(change(old.cast_signed()).cast_unsigned())
        })?;
        let mailbox = space.load_u64(signal.wrapping_add(MAILBOX))?;
        if mailbox != 0 {
            let event = space.load_u32(signal.wrapping_add(EVENT_ID))?;
            space.store_u64(mailbox, event.into())?;
            // gfx9 firmware that knows its context id drops interrupts without one.
            if event != 0 || queue.setup.device.info.has_mes() {
                self.interrupt(event, 32);
            }
        }
        self.engine().wake();
        Ok(())
    }
}

/// Offsets in `amd_queue_t`.
pub(super) mod field {
    pub(in crate::queue) const READ_INDEX_BASE_OFFSET: u64 = 136;
    pub(in crate::queue) const TMPRING_SIZE: u64 = 140;
    pub(in crate::queue) const SCRATCH_RESOURCE: u64 = 144;
    pub(in crate::queue) const SCRATCH_BASE: u64 = 160;
    pub(in crate::queue) const SCRATCH_LANE_BYTES: u64 = 176;
    pub(in crate::queue) const PROPERTIES: u64 = 180;
    pub(in crate::queue) const INACTIVE_SIGNAL: u64 = 192;
    /// Offset of the read index itself, from which the others are found.
    pub(in crate::queue) const READ_INDEX: u64 = 128;
}

/// `AMD_QUEUE_PROPERTIES_ENABLE_PROFILING`.
pub(super) const ENABLE_PROFILING: u32 = 1 << 3;

impl Queue {
    /// Address of the queue's `amd_queue_t`: the word after the read index says how far back it is.
    pub(super) fn descriptor(&self) -> Result<u64, AccessError> {
        let read_index = self.setup.read_pointer;
        let at = read_index + field::READ_INDEX_BASE_OFFSET - field::READ_INDEX;
        let offset = self.setup.device.space.load_u32(at)?;
        Ok(read_index.wrapping_sub(offset.into()))
    }
}
