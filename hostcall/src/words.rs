//! [`Words`]: the shared memory of a pool, one word at a time.
//!
//! Everything above this trait works on copies. It is a trait so that tests can put an adversary
//! behind it, which changes any word between any two loads.

use core::sync::atomic::Ordering;

use crate::layout::SLOT_WORDS;

/// Memory that a device writes at any time, reached one word at a time.
///
/// Offsets are in bytes from the start and multiples of the word. Callers stay inside
/// [`Words::bytes`]: a pool computes every offset from numbers the device cannot reach
/// ([`Area`](crate::layout::Area)). An implementation must not touch anything else whatever it is
/// asked for.
pub trait Words: Send {
    /// Length in bytes.
    fn bytes(&self) -> usize;

    /// Loads a 32-bit word, once.
    fn load32(&self, offset: usize, order: Ordering) -> u32;

    /// Loads a 64-bit word, once.
    fn load64(&self, offset: usize, order: Ordering) -> u64;

    /// Stores a 32-bit word.
    fn store32(&self, offset: usize, value: u32, order: Ordering);

    /// Stores a 64-bit word.
    fn store64(&self, offset: usize, value: u64, order: Ordering);

    /// Puts `value` in the place of a 64-bit word in one step, and returns what was there.
    fn swap64(&self, offset: usize, value: u64, order: Ordering) -> u64;

    /// Loads a slot, each word once.
    #[inline]
    fn load_slot(&self, offset: usize) -> [u64; SLOT_WORDS] {
        std::array::from_fn(|word| self.load64(offset + 8 * word, Ordering::Relaxed))
    }
}

impl<W: Words + Sync + ?Sized> Words for std::sync::Arc<W> {
    fn bytes(&self) -> usize {
        (**self).bytes()
    }

    fn load32(&self, offset: usize, order: Ordering) -> u32 {
        (**self).load32(offset, order)
    }

    fn load64(&self, offset: usize, order: Ordering) -> u64 {
        (**self).load64(offset, order)
    }

    fn store32(&self, offset: usize, value: u32, order: Ordering) {
        (**self).store32(offset, value, order);
    }

    fn store64(&self, offset: usize, value: u64, order: Ordering) {
        (**self).store64(offset, value, order);
    }

    fn swap64(&self, offset: usize, value: u64, order: Ordering) -> u64 {
        (**self).swap64(offset, value, order)
    }

    fn load_slot(&self, offset: usize) -> [u64; SLOT_WORDS] {
        (**self).load_slot(offset)
    }
}

/// A word outside the region reads 0 and is not stored; a pool never asks for one.
impl Words for aql::SharedWords<'_> {
    fn bytes(&self) -> usize {
        aql::SharedWords::bytes(self)
    }

    #[inline]
    fn load32(&self, offset: usize, order: Ordering) -> u32 {
        self.u32(offset).map_or(0, |word| word.load(order))
    }

    #[inline]
    fn load64(&self, offset: usize, order: Ordering) -> u64 {
        self.u64(offset).map_or(0, |word| word.load(order))
    }

    #[inline]
    fn store32(&self, offset: usize, value: u32, order: Ordering) {
        if let Ok(word) = self.u32(offset) {
            word.store(value, order);
        }
    }

    #[inline]
    fn store64(&self, offset: usize, value: u64, order: Ordering) {
        if let Ok(word) = self.u64(offset) {
            word.store(value, order);
        }
    }

    #[inline]
    fn swap64(&self, offset: usize, value: u64, order: Ordering) -> u64 {
        self.u64(offset).map_or(0, |word| word.swap(value, order))
    }
}
