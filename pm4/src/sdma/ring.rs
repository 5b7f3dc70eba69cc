//! How packets lie in a ring, and a builder for rings and indirect buffers.
//!
//! Pointers of an SDMA ring are in bytes, never wrap, and are masked by the ring's size. A packet
//! must not cross the ring's end: zero dwords, each a NOP, fill what is left. docs/ABI.md §SDMA
//! rings.

use super::{Error, Indirect, Nop, Version};
use crate::emit::{SdmaPacket, Sink, Writer};

/// Where packets go in a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Zero dwords to store first, from the old write pointer to the ring's end.
    pub padding: usize,
    /// Write pointer of the first packet, bytes.
    pub start: u64,
    /// The new write pointer, bytes: what the doorbell gets.
    pub end: u64,
}

/// Finds room for `dwords` dwords that must stay together. `None` while the ring is too full.
///
/// `ring_bytes` is a power of two; `write` and `read` are the pointers, bytes, `read` at most
/// `write`. One dword stays free: equal pointers mean an empty ring.
///
/// # Errors
/// [`Error::BufferTooSmall`] if they never fit.
pub fn place(
    ring_bytes: u64,
    write: u64,
    read: u64,
    dwords: usize,
) -> Result<Option<Placement>, Error> {
    let bytes = (dwords as u64).saturating_mul(4);
    if bytes >= ring_bytes {
        let capacity = usize::try_from((ring_bytes / 4).saturating_sub(1)).unwrap_or(usize::MAX);
        return Err(Error::BufferTooSmall { needed: dwords, capacity });
    }
    let left = ring_bytes - (write & (ring_bytes - 1));
    let padding = if bytes > left { left } else { 0 };
    let start = write.wrapping_add(padding);
    let end = start.wrapping_add(bytes);
    if end.wrapping_sub(read) >= ring_bytes {
        return Ok(None);
    }
    let padding = usize::try_from(padding / 4).unwrap_or(usize::MAX);
    Ok(Some(Placement { padding, start, end }))
}

/// NOP dwords that an [`Indirect`] needs in front of it, so that it ends on a multiple of 8 dwords.
/// `position` is the write pointer in dwords.
pub const fn indirect_padding(position: u64) -> usize {
    // The packet has six dwords: it has to start two dwords past a multiple of eight.
    (2_u64.wrapping_sub(position) & 7) as usize
}

/// Appends packets to a ring or an indirect buffer. Like [`IbBuilder`](crate::IbBuilder), it never
/// allocates, and counts what does not fit.
#[derive(Debug)]
pub struct Builder<S> {
    out: Writer<S>,
    position: u64,
}

impl<S: Sink> Builder<S> {
    /// Starts at the first dword of `sink`, which is an indirect buffer or the start of a ring.
    pub const fn new(sink: S) -> Self {
        Self::at(sink, 0)
    }

    /// Starts at the first dword of `sink`, which is the part of a ring from `position` on, the
    /// write pointer in dwords.
    pub const fn at(sink: S, position: u64) -> Self {
        Self { out: Writer::new(sink), position }
    }

    /// Dwords appended so far, those without room included.
    pub const fn dwords(&self) -> usize {
        self.out.dwords()
    }

    /// Appends `packet`.
    pub fn push(&mut self, packet: &impl SdmaPacket) -> &mut Self {
        self.out.push(packet);
        self
    }

    /// Appends `packet` with the padding it needs.
    pub fn indirect(&mut self, packet: Indirect) -> &mut Self {
        let position = self.position.wrapping_add(self.dwords() as u64);
        self.nop(indirect_padding(position));
        self.push(&packet)
    }

    /// Skips `dwords` dwords, in as few packets as can be.
    pub fn nop(&mut self, mut dwords: usize) -> &mut Self {
        while let Some(length) = Some(dwords.min(Nop::MAX_DWORDS)).filter(|n| *n > 0) {
            self.out.fill(Nop::header(length).unwrap_or_default(), length);
            dwords -= length;
        }
        self
    }

    /// Pads to [`Version::min_submission_dwords`] and ends. Returns the length in dwords.
    ///
    /// # Errors
    /// [`Error::BufferTooSmall`] with the exact need.
    pub fn finish(mut self, version: Version) -> Result<usize, Error> {
        self.nop(version.min_submission_dwords().saturating_sub(self.dwords()));
        let (needed, capacity) = (self.dwords(), self.out.capacity());
        if needed > capacity {
            return Err(Error::BufferTooSmall { needed, capacity });
        }
        Ok(needed)
    }
}
