//! [`Slots`]: the signals that events and engine switches stand on, shared by all streams.
//!
//! A slot is an `amd_signal_t`: 1 while pending, 0 once done, whichever engine of whichever GPU does
//! it. Slots are made in blocks and never given back; a stream takes some at a time.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};

use kfd::{Gpu, Signal};
use pm4::GpuAddr;

use crate::error::{Error, Result};
use crate::protocol::{Holders, SlotId};
use crate::sync::lock;

/// Slots of the first block; each next one has twice as many.
const FIRST: u32 = 64;
/// Blocks: enough for [`SlotId::MAX`].
const BLOCKS: usize = 19;

/// A slot.
#[derive(Debug)]
pub(crate) struct Slot {
    pub signal: Signal,
    pub holders: Holders,
    /// Set while what it waits for may depend on a host function.
    pub host_bound: AtomicBool,
    /// Index of the GPU whose clock stamps it.
    pub gpu: AtomicU32,
}

/// All slots of a runtime.
#[derive(Debug)]
pub(crate) struct Slots {
    blocks: [OnceLock<Box<[Slot]>>; BLOCKS],
    free: Mutex<Vec<SlotId>>,
}

impl Slots {
    pub fn new() -> Self {
        Self { blocks: [const { OnceLock::new() }; BLOCKS], free: Mutex::default() }
    }

    /// A slot.
    #[inline]
    pub fn get(&self, id: SlotId) -> Option<&Slot> {
        // Block n starts at FIRST * (2^n - 1).
        let scaled = id.0 / FIRST + 1;
        let block = scaled.ilog2();
        let start = FIRST * ((1 << block) - 1);
        self.blocks.get(block as usize)?.get()?.get((id.0 - start) as usize)
    }

    /// Moves up to `count` free slots to `to`, and makes more where there are none. `to` has room.
    pub fn take(&self, gpu: &Gpu, to: &mut Vec<SlotId>, count: usize) -> Result<()> {
        let mut free = lock(&self.free);
        if free.is_empty() {
            self.grow(gpu, &mut free)?;
        }
        let from = free.len().saturating_sub(count);
        to.extend(free.drain(from..));
        Ok(())
    }

    fn grow(&self, gpu: &Gpu, free: &mut Vec<SlotId>) -> Result<()> {
        let mut start = 0;
        for (block, place) in self.blocks.iter().enumerate() {
            let count = FIRST << block;
            if place.get().is_some() {
                start += count;
                continue;
            }
            let slot = |_| -> Result<Slot> {
                Ok(Slot {
                    signal: gpu.create_silent_signal(0)?,
                    holders: Holders::new(),
                    host_bound: AtomicBool::new(false),
                    gpu: AtomicU32::new(0),
                })
            };
            let slots: Box<[Slot]> = (0..count).map(slot).collect::<Result<_>>()?;
            // Nobody else grows: the free list is locked.
            let _ = place.set(slots);
            free.extend((start..start + count).rev().map(SlotId));
            return Ok(());
        }
        let value = u64::from(SlotId::MAX);
        Err(Error::InvalidArgument { call: "events", what: "the number of events at once", value })
    }

    /// Gives back a slot that is nobody's.
    #[cold]
    pub fn give_back(&self, id: SlotId) {
        lock(&self.free).push(id);
    }

    /// One holder less; gives the slot back if it was the last.
    pub fn release(&self, id: SlotId) {
        if self.get(id).is_some_and(|slot| slot.holders.release()) {
            self.give_back(id);
        }
    }
}

impl Slot {
    /// Its address.
    #[inline]
    pub fn addr(&self) -> GpuAddr {
        self.signal.addr()
    }

    /// Prepares it for a new use: pending, held as said.
    #[inline]
    pub fn start(&self, is_current: bool, holders: i64) {
        self.signal.set(1);
        self.holders.start(is_current, holders);
    }

    /// Whether the device has set it. Any other value than 1 is the device's; only 0 is in order, and
    /// no wait hangs on a wrong one.
    #[inline]
    pub fn is_done(&self) -> bool {
        self.signal.value() != 1
    }

    #[inline]
    pub fn is_host_bound(&self) -> bool {
        self.host_bound.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_has_a_block_of_its_own_size() {
        let place = |id: u32| {
            let block = (id / FIRST + 1).ilog2();
            (block, id - FIRST * ((1 << block) - 1))
        };
        let mut expected = (0, 0);
        for id in 0..100_000 {
            assert_eq!(place(id), expected, "{id}");
            expected.1 += 1;
            if expected.1 == FIRST << expected.0 {
                expected = (expected.0 + 1, 0);
            }
        }
        let (block, _) = place(SlotId::MAX);
        assert!((block as usize) < BLOCKS, "{block}");
    }
}
