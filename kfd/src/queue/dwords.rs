//! A ring of dwords with one producer, as PM4 and SDMA queues have: where packets go, how far the
//! device is, and in which order it learns what.
//!
//! # Who owns what
//! - *write* ([`Cursor`]): the producer's alone. Nothing before [`DwordRing::publish`] is seen.
//! - *published*, *read*: private to the driver, atomic because reports look at them from other
//!   threads. *read* only grows.
//! - The words in the queue's page are the device's. The read word is loaded in one place,
//!   [`DwordRing::refresh`], and checked; the write word is stored and never loaded.
//!
//! # Order
//! Packets (relaxed stores), *published*, store fence, write word (Release), doorbell (by the
//! caller). The fence is for kernel arguments in write-combined memory; x86 keeps the rest in order.
//! The write word comes before the doorbell since firmware reads it again when it maps the queue.
//!
//! Numbers: docs/ABI.md §PM4 and SDMA queues.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use pm4::sdma::{self, Placement, Version};
use pm4::{IbBuilder, RingSink};

/// What positions in a ring count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// PM4. The device reports its position in the ring, or one that does not wrap.
    Dwords,
    /// SDMA. Positions do not wrap.
    Bytes,
}

impl Unit {
    /// Positions a dword has.
    pub const fn per_dword(self) -> u64 {
        match self {
            Self::Dwords => 1,
            Self::Bytes => 4,
        }
    }
}

/// Why packets were not taken.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// No room, or the device lied.
    Ring(aql::Error),
    /// The packets cannot be.
    Pm4(pm4::Error),
    /// The packets cannot be.
    Sdma(sdma::Error),
}

/// The producer's place in a ring.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cursor {
    /// Position of the next packet.
    pub write: u64,
    /// Position the device is known to have reached.
    read: u64,
}

/// A ring of dwords.
#[derive(Debug)]
pub(crate) struct DwordRing<'m> {
    words: &'m [AtomicU32],
    read_word: &'m AtomicU64,
    write_word: &'m AtomicU64,
    unit: Unit,
    published: AtomicU64,
    read: AtomicU64,
}

impl<'m> DwordRing<'m> {
    /// An empty ring of `words`, a power of two of them. The device must not know the queue yet.
    pub fn new(
        words: &'m [AtomicU32],
        read_word: &'m AtomicU64,
        write_word: &'m AtomicU64,
        unit: Unit,
    ) -> Self {
        read_word.store(0, Ordering::Relaxed);
        write_word.store(0, Ordering::Relaxed);
        let (published, read) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { words, read_word, write_word, unit, published, read }
    }

    /// Dwords of the ring.
    pub fn dwords(&self) -> u64 {
        self.words.len() as u64
    }

    /// What positions count.
    pub fn unit(&self) -> Unit {
        self.unit
    }

    /// Most dwords that can be pending: one stays free, or full would look like empty.
    #[inline]
    fn capacity(&self) -> u64 {
        (self.words.len() as u64).saturating_sub(1)
    }

    /// Most dwords of one submission. Of an SDMA ring half of it: the padding in front of a longer
    /// one could leave too little room for it, however far the device gets.
    pub fn max_submission(&self) -> usize {
        match self.unit {
            Unit::Dwords => self.words.len().saturating_sub(1),
            Unit::Bytes => self.words.len() / 2,
        }
    }

    /// Learns how far the device has got, and returns it. Any thread may call it.
    pub fn refresh(&self) -> Result<u64, aql::Error> {
        // Private; loaded before the device's word, which never goes back.
        let first = self.read.load(Ordering::Acquire);
        let found = self.read_word.load(Ordering::Acquire);
        // Private; loaded after it, so it covers all that the device can have seen.
        let last = self.published.load(Ordering::Acquire);
        let read = match self.unit {
            Unit::Bytes => found,
            Unit::Dwords => {
                let mask = self.dwords().wrapping_sub(1);
                first.wrapping_add(found.wrapping_sub(first) & mask)
            }
        };
        let possible = match self.unit {
            Unit::Bytes => found.is_multiple_of(4),
            // In the ring, or as 32 or 64 bits that do not wrap there.
            Unit::Dwords => {
                found < self.dwords() || found == read || found == read & u64::from(u32::MAX)
            }
        };
        if !possible || read.wrapping_sub(first) > last.wrapping_sub(first) {
            return Err(aql::Error::ReadIndexOutOfRange { read: found, first, last });
        }
        Ok(self.read.fetch_max(read, Ordering::AcqRel).max(read))
    }

    /// What the device was told of and is not known to have consumed, as of the last
    /// [`Self::refresh`].
    pub fn pending(&self) -> Range<u64> {
        let read = self.read.load(Ordering::Acquire);
        read..self.published.load(Ordering::Acquire)
    }

    /// The first `limit` dwords of `pending`, each loaded once.
    pub fn dwords_of(&self, pending: Range<u64>, limit: usize) -> Vec<u32> {
        let per_dword = self.unit.per_dword();
        let count = (pending.end.saturating_sub(pending.start) / per_dword).min(self.dwords());
        let count = usize::try_from(count).unwrap_or(usize::MAX).min(limit);
        let mask = self.dwords().wrapping_sub(1);
        let start = usize::try_from((pending.start / per_dword) & mask).unwrap_or(0);
        let words = self.words.iter().cycle().skip(start).take(count);
        words.map(|word| word.load(Ordering::Relaxed)).collect()
    }

    /// Whether there is room for a submission of `dwords` dwords; looks how far the device is if it
    /// must.
    pub fn room(
        &self,
        at: &mut Cursor,
        version: Option<Version>,
        dwords: usize,
    ) -> Result<(), Refusal> {
        let dwords = dwords.max(version.map_or(0, Version::min_submission_dwords));
        if dwords > self.max_submission() {
            return Err(self.too_long(dwords));
        }
        match self.unit {
            Unit::Dwords => {
                let needed = dwords as u64;
                if at.write.wrapping_sub(at.read).wrapping_add(needed) > self.capacity() {
                    self.make_room(at, needed)?;
                }
            }
            Unit::Bytes => {
                if self.place(at, dwords)?.is_none() {
                    self.place_again(at, dwords)?;
                }
            }
        }
        Ok(())
    }

    /// Writes PM4 packets of up to `dwords` dwords at `at` and advances it.
    #[inline]
    pub fn push_pm4(
        &self,
        at: &mut Cursor,
        dwords: usize,
        fill: impl FnOnce(&mut IbBuilder<RingSink<'_>>),
    ) -> Result<u64, Refusal> {
        let needed = dwords as u64;
        if dwords > self.max_submission() {
            return Err(self.too_long(dwords));
        }
        if at.write.wrapping_sub(at.read).wrapping_add(needed) > self.capacity() {
            self.make_room(at, needed)?;
        }
        let Some(sink) = RingSink::new(self.words, at.write, dwords) else {
            return Err(self.too_long(dwords));
        };
        let mut packets = IbBuilder::new(sink);
        fill(&mut packets);
        let written = packets.end().map_err(Refusal::Pm4)?;
        at.write = at.write.wrapping_add(written as u64);
        Ok(at.write)
    }

    /// Looks how far the device is, for `needed` dwords of room. Unit: dwords.
    #[cold]
    fn make_room(&self, at: &mut Cursor, needed: u64) -> Result<(), Refusal> {
        at.read = self.refresh().map_err(Refusal::Ring)?;
        let free = self.capacity().saturating_sub(at.write.wrapping_sub(at.read));
        if needed <= free {
            return Ok(());
        }
        Err(Refusal::Ring(aql::Error::Full { needed, free, size: self.dwords() }))
    }

    /// Writes SDMA packets of up to `dwords` dwords and advances `at`: at the ring's start, behind
    /// zeros, where they would cross its end.
    #[inline]
    pub fn push_sdma(
        &self,
        at: &mut Cursor,
        version: Version,
        dwords: usize,
        fill: impl FnOnce(&mut sdma::Builder<RingSink<'_>>),
    ) -> Result<u64, Refusal> {
        let dwords = dwords.max(version.min_submission_dwords());
        if dwords > self.max_submission() {
            return Err(self.too_long(dwords));
        }
        let placed = match self.place(at, dwords)? {
            Some(placed) => placed,
            None => self.place_again(at, dwords)?,
        };
        if placed.padding > 0 {
            self.pad(at.write);
        }
        let position = placed.start / 4;
        let Some(sink) = RingSink::new(self.words, position, dwords) else {
            return Err(self.too_long(dwords));
        };
        let mut packets = sdma::Builder::at(sink, position);
        fill(&mut packets);
        let written = packets.finish(version).map_err(Refusal::Sdma)?;
        at.write = placed.start.wrapping_add(written as u64 * 4);
        Ok(at.write)
    }

    #[inline]
    fn place(&self, at: &Cursor, dwords: usize) -> Result<Option<Placement>, Refusal> {
        sdma::place(self.dwords() * 4, at.write, at.read, dwords).map_err(Refusal::Sdma)
    }

    #[cold]
    fn place_again(&self, at: &mut Cursor, dwords: usize) -> Result<Placement, Refusal> {
        at.read = self.refresh().map_err(Refusal::Ring)?;
        if let Some(placed) = self.place(at, dwords)? {
            return Ok(placed);
        }
        let (needed, size) = (dwords as u64, self.dwords());
        let free = self.capacity().saturating_sub(at.write.wrapping_sub(at.read) / 4);
        Err(Refusal::Ring(aql::Error::Full { needed, free, size }))
    }

    /// Zeros, each a NOP, from a position to the ring's end.
    #[cold]
    fn pad(&self, from: u64) {
        let mask = self.dwords().wrapping_sub(1);
        let start = usize::try_from((from / 4) & mask).unwrap_or(usize::MAX);
        for word in self.words.get(start..).unwrap_or_default() {
            word.store(0, Ordering::Relaxed);
        }
    }

    #[cold]
    fn too_long(&self, needed: usize) -> Refusal {
        let capacity = self.max_submission();
        match self.unit {
            Unit::Dwords => Refusal::Pm4(pm4::Error::BufferTooSmall { needed, capacity }),
            Unit::Bytes => Refusal::Sdma(sdma::Error::BufferTooSmall { needed, capacity }),
        }
    }

    /// Makes everything before `at` the device's. Ring the doorbell with the same position next.
    #[inline]
    pub fn publish(&self, at: &Cursor) {
        self.published.store(at.write, Ordering::Release);
        aql::store_fence();
        self.write_word.store(at.write, Ordering::Release);
    }
}

#[cfg(test)]
mod tests;
