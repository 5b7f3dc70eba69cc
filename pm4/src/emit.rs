//! How packets get into a buffer: what can be written, and where to.

use core::sync::atomic::{AtomicU32, Ordering};

/// Dwords that can be appended to a buffer.
pub trait Encode {
    /// How many there are.
    fn dwords(&self) -> usize;

    /// Hands them to `put`, in order and in as many pieces as is convenient.
    fn emit(&self, put: impl FnMut(&[u32]));
}

/// A packet of a PM4 queue.
pub trait Pm4Packet: Encode {}

/// A packet of an SDMA queue.
pub trait SdmaPacket: Encode {}

/// Where dwords go. Plain memory and memory that the device reads are both sinks.
pub trait Sink {
    /// Dwords there is room for.
    fn capacity(&self) -> usize;

    /// Stores `words` from dword `at` on. What lies past [`Self::capacity`] is dropped; builders
    /// never ask for that.
    fn store(&mut self, at: usize, words: &[u32]);
}

impl Sink for &mut [u32] {
    fn capacity(&self) -> usize {
        self.len()
    }

    fn store(&mut self, at: usize, words: &[u32]) {
        let to = self.get_mut(at..).unwrap_or_default();
        to.iter_mut().zip(words).for_each(|(to, from)| *to = *from);
    }
}

/// Relaxed stores: whoever publishes the buffer orders them before its own release store.
impl Sink for &[AtomicU32] {
    fn capacity(&self) -> usize {
        self.len()
    }

    fn store(&mut self, at: usize, words: &[u32]) {
        let to = self.get(at..).unwrap_or_default();
        to.iter().zip(words).for_each(|(to, from)| to.store(*from, Ordering::Relaxed));
    }
}

/// The free part of a ring: dwords from a write pointer on, wrapping at the ring's end.
///
/// PM4 packets may cross the end; SDMA packets must not, see [`crate::sdma::place`].
#[derive(Clone, Copy, Debug)]
pub struct RingSink<'a> {
    ring: &'a [AtomicU32],
    position: u64,
    room: usize,
}

impl<'a> RingSink<'a> {
    /// The `room` dwords of `ring` from `position` on, a write pointer in dwords that never wraps.
    /// `None` unless the ring's length is a power of two and at least `room`.
    pub const fn new(ring: &'a [AtomicU32], position: u64, room: usize) -> Option<Self> {
        if !ring.len().is_power_of_two() || room > ring.len() {
            return None;
        }
        Some(Self { ring, position, room })
    }
}

/// Relaxed stores, as for a slice of atomics.
impl Sink for RingSink<'_> {
    fn capacity(&self) -> usize {
        self.room
    }

    fn store(&mut self, at: usize, words: &[u32]) {
        let mask = self.ring.len() as u64 - 1;
        let start = self.position.wrapping_add(at as u64) & mask;
        let start = usize::try_from(start).unwrap_or(usize::MAX);
        let (before, after) = self.ring.split_at_checked(start).unwrap_or_default();
        let kept = self.room.saturating_sub(at).min(words.len());
        if let (Some(to), Some(from)) = (after.get(..kept), words.get(..kept)) {
            // Not across the end, as nearly always.
            // Eight at a time: a launch has tens of them.
            let ((to, to_rest), (from, from_rest)) = (to.as_chunks::<8>(), from.as_chunks::<8>());
            for (to, from) in to.iter().zip(from) {
                to.iter().zip(from).for_each(|(to, from)| to.store(*from, Ordering::Relaxed));
            }
            let rest = to_rest.iter().zip(from_rest);
            rest.for_each(|(to, from)| to.store(*from, Ordering::Relaxed));
            return;
        }
        let to = after.iter().chain(before);
        to.zip(words.iter().take(kept)).for_each(|(to, from)| to.store(*from, Ordering::Relaxed));
    }
}

/// Appends packets to a [`Sink`] and counts what does not fit.
#[derive(Debug)]
pub(crate) struct Writer<S> {
    sink: S,
    dwords: usize,
}

impl<S: Sink> Writer<S> {
    pub(crate) const fn new(sink: S) -> Self {
        Self { sink, dwords: 0 }
    }

    /// Dwords appended, those without room included.
    pub(crate) const fn dwords(&self) -> usize {
        self.dwords
    }

    pub(crate) fn capacity(&self) -> usize {
        self.sink.capacity()
    }

    pub(crate) fn push(&mut self, packet: &impl Encode) {
        let mut at = self.dwords;
        self.dwords = at.saturating_add(packet.dwords());
        if self.dwords <= self.sink.capacity() {
            let sink = &mut self.sink;
            packet.emit(|words| {
                sink.store(at, words);
                at += words.len();
            });
        }
    }

    /// Replaces dwords that were appended before.
    pub(crate) fn patch(&mut self, at: usize, words: &[u32]) {
        if at.saturating_add(words.len()) <= self.sink.capacity().min(self.dwords) {
            self.sink.store(at, words);
        }
    }

    /// `count` dwords: `first`, then zeros.
    pub(crate) fn fill(&mut self, first: u32, count: usize) {
        self.push(&Fill { first, count });
    }
}

struct Fill {
    first: u32,
    count: usize,
}

impl Encode for Fill {
    fn dwords(&self) -> usize {
        self.count
    }

    fn emit(&self, mut put: impl FnMut(&[u32])) {
        if self.count > 0 {
            put(&[self.first]);
            (1..self.count).for_each(|_| put(&[0]));
        }
    }
}

/// Implements [`Encode`] and the marker `$marker` for packets of a fixed length.
macro_rules! fixed {
    ($marker:ident: $($packet:ty),* $(,)?) => {
        $(
            impl $crate::emit::Encode for $packet {
                fn dwords(&self) -> usize {
                    Self::DWORDS
                }
                fn emit(&self, mut put: impl FnMut(&[u32])) {
                    put(&self.encode());
                }
            }
            impl $crate::emit::$marker for $packet {}
        )*
    };
}
pub(crate) use fixed;

#[cfg(test)]
mod tests {
    extern crate std;
    use std::vec::Vec;

    use super::*;
    use crate::packet::EventWrite;
    use crate::{IbBuilder, Packets};

    fn ring(dwords: usize) -> Vec<AtomicU32> {
        (0..dwords).map(|_| AtomicU32::new(!0)).collect()
    }

    #[test]
    fn a_ring_is_written_across_its_end_and_nowhere_else() {
        for position in 0..32 {
            let ring = ring(8);
            let mut sink = RingSink::new(&ring, position, 5).unwrap();
            let mut ib = IbBuilder::new(sink);
            ib.push(&EventWrite::CS_PARTIAL_FLUSH).push(&EventWrite::CS_PARTIAL_FLUSH);
            assert_eq!(ib.end(), Ok(4));
            let at = |n: u64| usize::try_from((position + n) % 8).unwrap();
            let word = |n| ring[at(n)].load(Ordering::Relaxed);
            let words: Vec<_> = (0..4).map(word).collect();
            assert!(Packets::new(&words).all(|packet| packet.is_ok()));
            assert!((4..8).all(|n| word(n) == !0));
            // Past the room nothing is stored, whoever asks.
            sink.store(4, &[1, 2]);
            assert_eq!((word(4), word(5)), (1, !0));
        }
    }

    #[test]
    fn a_ring_has_a_power_of_two_and_no_more_room_than_dwords() {
        assert!(RingSink::new(&ring(6), 0, 1).is_none());
        assert!(RingSink::new(&ring(8), 0, 9).is_none());
        assert!(RingSink::new(&[], 0, 0).is_none());
    }

    #[test]
    fn nothing_is_stored_past_a_slice() {
        let mut words = [0; 2];
        let mut sink = &mut words[..];
        sink.store(1, &[1, 2]);
        sink.store(5, &[3]);
        assert_eq!(words, [0, 1]);
        let shared = ring(2);
        let mut sink = &shared[..];
        sink.store(1, &[1, 2]);
        sink.store(5, &[3]);
        assert_eq!(shared[0].load(Ordering::Relaxed), !0);
    }
}
