//! Reserve, write, publish: the whole hot path of a compute queue.
//!
//! # Who may call what
//! [`Ring`] may be shared: any number of threads may submit, look at it and refresh it at the same
//! time. A thread that holds it exclusively (`&mut`) submits without locked instructions. No call
//! waits, locks, allocates or enters the kernel. The ring never rings the doorbell: it hands the
//! value to the caller.
//!
//! # Slots
//! A packet's index counts from 0 and never wraps; its slot is the index modulo the ring's size.
//! For the private counters `read <= published <= reserved <= read + size` always holds:
//! - `reserved`: indices handed out. A compare-and-swap, so that a full ring hands out nothing.
//! - `published`: packets told to the device. The private twin of `write_dispatch_id`.
//! - `read`: packets known to be consumed. The device's own word is looked at only by
//!   [`Ring::refresh`], and only when the ring seems full. A value outside `read ..= published` is
//!   a broken device: no slot is handed out on its word.
//!
//! # Order within a packet
//! 1. The header becomes INVALID, then (release fence) the body is written: a device that looks
//!    early finds a free slot or a whole packet, never an old header on a new body.
//! 2. The first dword is stored in one piece, with Release.
//!
//! # Order between packets
//! `write_dispatch_id` may only grow over packets that are valid, though producers finish in any
//! order and none may wait for another. So each slot has a private mark, and each reservation
//! gets exactly two visits at the mark of its first slot: its producer leaves the number of packets
//! there (*done*), and whoever published everything before it leaves *head*. Both are atomic swaps.
//! The first visitor goes away. The second finds the other's mark, and is the one who publishes:
//! it clears the mark, advances `published` and then `write_dispatch_id`, and visits the next
//! reservation's mark. So there is one publisher at a time, and it stops at the first reservation
//! that is not done; its producer will go on.
//! - The swaps are acquire-release: the publisher sees the packets of the producer whose *done* it
//!   found, and its stores to `write_dispatch_id` (Release) follow those of the publisher before.
//! - A mark is cleared before `published` passes it, and its slot is reserved again only after
//!   `read` has passed it, so every reservation finds its mark clear or *head*.
//! - The publisher gets the doorbell value, the last index that it published. Two publishers may
//!   ring in the wrong order; the device keeps the larger value.
//!
//! # Memory
//! The slots must be ordinary host memory (write-back cached, as GTT is): x86 keeps those stores in
//! order. Kernel arguments may be write-combined: each submission drains such stores before its
//! packets are published, by its locked swap or by [`store_fence`].

use alloc::boxed::Box;
use core::ops::Range;

use crate::shared::{Indices, Slots};
use crate::sync::{AtomicU32, AtomicU64, Ordering, fence};
use crate::{BarrierAnd, Error, Header, Packet, PacketType, store_fence};

/// A word on cache lines of its own: what producers write does not slow down who reads the rest.
#[derive(Debug)]
#[repr(align(128))]
struct Line<T>(T);

/// No visitor yet.
const EMPTY: u32 = 0;
/// Everything before this slot is published.
const HEAD: u32 = u32::MAX;

/// A ring of AQL packets.
#[derive(Debug)]
pub struct Ring<'m> {
    slots: Slots<'m>,
    indices: Indices<'m>,
    marks: Box<[AtomicU32]>,
    reserved: Line<AtomicU64>,
    published: Line<AtomicU64>,
    read: Line<AtomicU64>,
}

/// Packets that were submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "ring the doorbell if there is a value for it"]
pub struct Submitted {
    /// Index of the last of them.
    pub index: u64,
    /// What to store (64 bits, Release) in the doorbell, or `None` if another producer will: one
    /// with an earlier reservation has yet to finish.
    pub doorbell: Option<u64>,
}

impl<'m> Ring<'m> {
    /// Makes an empty ring of `slots`, and both indices zero. The device must not know the queue
    /// yet.
    #[cfg(loom)]
    pub fn from_parts(slots: Slots<'m>, indices: Indices<'m>) -> Self {
        Self::with(slots, indices)
    }

    /// Makes an empty ring in `memory`: every slot INVALID, both indices of `queue` zero. The
    /// device must not know the queue yet.
    ///
    /// # Errors
    /// [`Error::RingSize`] unless `memory` is a power of two of packets; [`Error::Misaligned`]
    /// unless it is 64-byte aligned.
    #[cfg(not(loom))]
    pub fn new(
        memory: crate::SharedWords<'m>,
        queue: &crate::QueueWords<'m>,
    ) -> Result<Self, Error> {
        let (read, write) = (queue.read_dispatch_id(), queue.write_dispatch_id());
        Ok(Self::with(Slots::new(memory)?, Indices { read, write }))
    }

    fn with(slots: Slots<'m>, indices: Indices<'m>) -> Self {
        let marks: Box<[AtomicU32]> = (0..slots.count()).map(|_| AtomicU32::new(EMPTY)).collect();
        if let Some(first) = marks.first() {
            first.store(HEAD, Ordering::Relaxed);
        }
        indices.read.store(0, Ordering::Relaxed);
        indices.write.store(0, Ordering::Relaxed);
        let line = || Line(AtomicU64::new(0));
        let ring =
            Self { slots, indices, marks, reserved: line(), published: line(), read: line() };
        for index in 0..ring.size() {
            let free = u32::from(Header::INVALID.0);
            ring.slots.slot(index).header().store(free, Ordering::Release);
        }
        ring
    }

    /// Slots of the ring.
    #[inline]
    pub const fn size(&self) -> u64 {
        self.marks.len() as u64
    }

    /// Submits one packet, from any thread.
    ///
    /// # Errors
    /// [`Error::Full`]: nothing was done, try again later. [`Error::ReadIndexOutOfRange`]: the
    /// queue is lost. [`Error::InvalidPacket`].
    #[inline]
    pub fn submit(&self, packet: &Packet) -> Result<Submitted, Error> {
        self.submit_noting(packet, |_| {})
    }

    /// As [`Self::submit`]. `note` is called with the packet's index before the device can see the
    /// packet; if it panics, the queue stops there.
    ///
    /// # Errors
    /// As [`Self::submit`].
    #[inline]
    pub fn submit_noting(
        &self,
        packet: &Packet,
        note: impl FnOnce(u64),
    ) -> Result<Submitted, Error> {
        check(packet)?;
        let index = self.reserve_slots(1)?;
        note(index);
        self.write(index, packet);
        Ok(Submitted { index, doorbell: self.finish(index, 1, true) })
    }

    /// Submits one packet, for an exclusive holder: without locked instructions.
    ///
    /// # Errors
    /// As [`Self::submit`].
    #[inline]
    pub fn submit_exclusive(&mut self, packet: &Packet) -> Result<Submitted, Error> {
        check(packet)?;
        let index = self.reserve_slots_exclusive(1)?;
        self.write(index, packet);
        Ok(Submitted { index, doorbell: self.finish(index, 1, false) })
    }

    /// Reserves `packets` consecutive slots, from any thread.
    ///
    /// # Errors
    /// [`Error::Full`], [`Error::ReadIndexOutOfRange`]; [`Error::BatchSize`] for zero packets or
    /// more than the ring has slots.
    #[inline]
    pub fn reserve(&self, packets: u32) -> Result<Reservation<'_, 'm>, Error> {
        self.check_batch(packets)?;
        let first = self.reserve_slots(u64::from(packets))?;
        Ok(Reservation { ring: self, first, packets, written: 0, shared: true })
    }

    /// Reserves `packets` consecutive slots, for an exclusive holder.
    ///
    /// # Errors
    /// As [`Self::reserve`].
    #[inline]
    pub fn reserve_exclusive(&mut self, packets: u32) -> Result<Reservation<'_, 'm>, Error> {
        self.check_batch(packets)?;
        let first = self.reserve_slots_exclusive(u64::from(packets))?;
        Ok(Reservation { ring: self, first, packets, written: 0, shared: false })
    }

    /// Learns how far the device has got, and returns it. Holds the only load of the device's read
    /// index; any thread may call it.
    ///
    /// # Errors
    /// [`Error::ReadIndexOutOfRange`] if the device claims packets that it was not given, or takes
    /// back what it had consumed. The queue is lost then.
    pub fn refresh(&self) -> Result<u64, Error> {
        // Private; loaded before the device's word, which never goes back.
        let first = self.read.0.load(Ordering::Acquire);
        let read = self.indices.read.load(Ordering::Acquire);
        // Private; loaded after it, so it covers all that the device can have seen.
        let last = self.published.0.load(Ordering::Acquire);
        if read.wrapping_sub(first) > last.wrapping_sub(first) {
            return Err(Error::ReadIndexOutOfRange { read, first, last });
        }
        Ok(self.read.0.fetch_max(read, Ordering::AcqRel).max(read))
    }

    /// Packets that were told to the device and are not known to be consumed. As of the last
    /// [`Self::refresh`].
    pub fn pending(&self) -> Range<u64> {
        let read = self.read.0.load(Ordering::Acquire);
        read..self.published.0.load(Ordering::Acquire)
    }

    /// Slots handed out so far; those past [`Self::pending`]'s end are still being written.
    pub fn reserved(&self) -> u64 {
        self.reserved.0.load(Ordering::Acquire)
    }

    /// The doorbell value that covers every published packet, or `None` before the first. Ringing
    /// it again is harmless; a waiter does so before it sleeps, in case the producer that should
    /// have has died.
    pub fn doorbell_value(&self) -> Option<u64> {
        self.published.0.load(Ordering::Acquire).checked_sub(1)
    }

    /// The packet of a pending index, for reports; `None` for any other index. The device may have
    /// made its header INVALID already.
    #[cfg(not(loom))]
    pub fn packet(&self, index: u64) -> Option<Packet> {
        if !self.pending().contains(&index) {
            return None;
        }
        let packet = self.slots.slot(index).read();
        fence(Ordering::Acquire);
        // Still pending after it was read: no producer had the slot in the meantime.
        self.pending().contains(&index).then_some(packet)
    }

    /// What is in the slot of an index now, pending or not. For inspection: without
    /// synchronisation, so dwords may be of two packets.
    #[cfg(not(loom))]
    pub fn slot(&self, index: u64) -> Packet {
        self.slots.slot(index).read()
    }

    #[inline]
    const fn check_batch(&self, packets: u32) -> Result<(), Error> {
        let (packets, size) = (packets as u64, self.size());
        if packets == 0 || packets > size {
            return Err(Error::BatchSize { packets, size });
        }
        Ok(())
    }

    #[inline]
    fn reserve_slots(&self, packets: u64) -> Result<u64, Error> {
        let reserved = &self.reserved.0;
        let mut first = reserved.load(Ordering::Relaxed);
        loop {
            self.check_room(first, packets)?;
            // A failure is another producer's success, so the producers as a whole advance.
            match reserved.compare_exchange_weak(
                first,
                first + packets,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Ok(first),
                Err(now) => first = now,
            }
        }
    }

    #[inline]
    fn reserve_slots_exclusive(&self, packets: u64) -> Result<u64, Error> {
        let first = self.reserved.0.load(Ordering::Relaxed);
        self.check_room(first, packets)?;
        self.reserved.0.store(first + packets, Ordering::Relaxed);
        Ok(first)
    }

    /// Whether `packets` slots from `first` are free. The Acquire load makes the slots ours.
    #[inline]
    fn check_room(&self, first: u64, packets: u64) -> Result<(), Error> {
        let read = self.read.0.load(Ordering::Acquire);
        // `read` passes a `first` that has gone stale; the compare-and-swap will refuse that one.
        if (first + packets).saturating_sub(read) <= self.size() {
            return Ok(());
        }
        self.refresh_for_room(first, packets)
    }

    #[cold]
    fn refresh_for_room(&self, first: u64, packets: u64) -> Result<(), Error> {
        let read = self.refresh()?;
        let used = first.saturating_sub(read);
        let free = self.size() - used;
        if packets <= free {
            return Ok(());
        }
        Err(Error::Full { needed: packets, free, size: self.size() })
    }

    /// Makes a reserved slot hold `packet`.
    #[inline]
    fn write(&self, index: u64, packet: &Packet) {
        let slot = self.slots.slot(index);
        let header = slot.header();
        header.store(u32::from(Header::INVALID.0), Ordering::Relaxed);
        fence(Ordering::Release);
        slot.write_body(packet);
        let [first, ..] = packet.0;
        header.store(first, Ordering::Release);
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation, clippy::indexing_slicing)]
    fn mark(&self, index: u64) -> &AtomicU32 {
        // PANIC: never; the number of marks is a power of two, so the mask keeps below it.
        &self.marks[index as usize & (self.marks.len() - 1)]
    }

    /// Leaves `mark` at a reservation's first slot and returns what was there.
    #[inline]
    fn visit(&self, index: u64, mark: u32, shared: bool) -> u32 {
        let word = self.mark(index);
        if shared {
            word.swap(mark, Ordering::AcqRel)
        } else {
            let found = word.load(Ordering::Relaxed);
            word.store(mark, Ordering::Relaxed);
            found
        }
    }

    /// Says that `packets` packets from `first` are valid, and publishes all that is now in order.
    #[inline]
    fn finish(&self, first: u64, packets: u32, shared: bool) -> Option<u64> {
        if !shared {
            store_fence(); // otherwise the swap drains the stores
        }
        if self.visit(first, packets, shared) != HEAD {
            return None;
        }
        let (mut at, mut packets) = (first, packets);
        loop {
            self.mark(at).store(EMPTY, Ordering::Relaxed);
            at += u64::from(packets);
            self.published.0.store(at, Ordering::Release);
            self.indices.write.store(at, Ordering::Release);
            packets = self.visit(at, HEAD, shared);
            if packets == EMPTY {
                return Some(at - 1);
            }
        }
    }
}

#[inline]
fn check(packet: &Packet) -> Result<(), Error> {
    if packet.header().packet_type() == PacketType::INVALID {
        return Err(Error::InvalidPacket);
    }
    Ok(())
}

/// Slots that are the holder's to fill.
///
/// Dropped or committed early, the rest becomes packets that do nothing: a slot left free would
/// stop the queue. A drop cannot hand over the doorbell value, see [`Ring::doorbell_value`].
/// Forgotten (`mem::forget`), it stops the queue.
#[derive(Debug)]
#[must_use = "packets become visible at commit"]
pub struct Reservation<'r, 'm> {
    ring: &'r Ring<'m>,
    first: u64,
    packets: u32,
    written: u32,
    shared: bool,
}

impl Reservation<'_, '_> {
    /// Index of the first slot.
    pub const fn first(&self) -> u64 {
        self.first
    }

    /// Slots not yet filled.
    pub const fn remaining(&self) -> u32 {
        self.packets - self.written
    }

    /// Fills the next slot and returns its index.
    ///
    /// # Errors
    /// [`Error::ReservationFull`] when none is left; [`Error::InvalidPacket`].
    #[inline]
    pub fn push(&mut self, packet: &Packet) -> Result<u64, Error> {
        check(packet)?;
        if self.written == self.packets {
            return Err(Error::ReservationFull { packets: self.packets });
        }
        let index = self.first + u64::from(self.written);
        self.ring.write(index, packet);
        self.written += 1;
        Ok(index)
    }

    /// Makes all its packets valid for the device.
    #[inline]
    pub fn commit(self) -> Submitted {
        let this = core::mem::ManuallyDrop::new(self);
        let index = this.first + u64::from(this.packets) - 1;
        Submitted { index, doorbell: this.fill_and_finish() }
    }

    #[inline]
    fn fill_and_finish(&self) -> Option<u64> {
        for slot in self.written..self.packets {
            self.ring.write(self.first + u64::from(slot), &BarrierAnd::noop().encode());
        }
        self.ring.finish(self.first, self.packets, self.shared)
    }
}

impl Drop for Reservation<'_, '_> {
    fn drop(&mut self) {
        self.fill_and_finish();
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
