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
