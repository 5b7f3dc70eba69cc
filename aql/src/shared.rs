//! Memory that a device, or another process, writes: reachable only through atomics.
//!
//! A word shared with a device must be read exactly as often as the source says, or a value that
//! was checked is not the value that is used. Atomics give that; plain references would allow the
//! compiler to read again. No `&T` to shared memory is ever made here except to an atomic.
//!
//! # Contract
//! Whoever calls [`SharedWords::new`] promises that the memory outlives `'m` and that during `'m`
//! every access to it by Rust code in this process is atomic, and that two accesses to the same
//! word that may run at the same time have the same size. (What the device does is outside Rust's
//! model; the hardware does its 4- and 8-byte accesses in one piece.)
#![allow(unsafe_code)] // the one place that turns mapped addresses into atomics

use core::marker::PhantomData;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicI64, AtomicU8, AtomicU32, AtomicU64, Ordering};

use crate::Error;

/// A region of shared memory.
#[derive(Clone, Copy, Debug)]
pub struct SharedWords<'m> {
    base: NonNull<u8>,
    bytes: usize,
    lives: PhantomData<&'m [AtomicU64]>,
}

// SAFETY: every access goes through an atomic, so threads may share the region.
unsafe impl Send for SharedWords<'_> {}
// SAFETY: as above.
unsafe impl Sync for SharedWords<'_> {}

impl<'m> SharedWords<'m> {
    /// A view of `bytes` bytes at `base`.
    ///
    /// # Errors
    /// [`Error::Misaligned`] unless `base` is 8-byte aligned.
    ///
    /// # Safety
    /// - The memory is readable and writable for all of `'m`. An owner that keeps the view beside
    ///   its mapping may choose `'static` if it lets no copy outlive the mapping.
    /// - During `'m` Rust code touches it only atomically, and accesses of one word that may run at
    ///   the same time have the same size.
    pub unsafe fn new(base: NonNull<u8>, bytes: usize) -> Result<Self, Error> {
        let this = Self { base, bytes, lives: PhantomData };
        if !base.addr().get().is_multiple_of(8) {
            return Err(Error::Misaligned { address: base.addr().get(), align: 8 });
        }
        Ok(this)
    }

    /// Length of the region.
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Address of the region's first byte, for telling the device where it is.
    pub fn address(&self) -> usize {
        self.base.addr().get()
    }

    /// The part of `bytes` bytes at `offset`, which must be a multiple of 8.
    ///
    /// # Errors
    /// [`Error::OutOfBounds`], [`Error::Misaligned`].
    pub fn slice(&self, offset: usize, bytes: usize) -> Result<Self, Error> {
        let base = self.locate(offset, bytes, 8)?;
        Ok(Self { base, bytes, lives: PhantomData })
    }

    /// The 32-bit word at byte `offset`.
    ///
    /// # Errors
    /// [`Error::OutOfBounds`], [`Error::Misaligned`].
    #[inline]
    pub fn u32(&self, offset: usize) -> Result<&'m AtomicU32, Error> {
        let word = self.locate(offset, 4, 4)?.cast::<u32>();
        // SAFETY:
        // - `locate` checked bounds and alignment; the region lives for `'m` (`new`).
        // - All concurrent accesses are atomic and of this size (`new`).
        Ok(unsafe { AtomicU32::from_ptr(word.as_ptr()) })
    }

    /// The 64-bit word at byte `offset`.
    ///
    /// # Errors
    /// [`Error::OutOfBounds`], [`Error::Misaligned`].
    #[inline]
    pub fn u64(&self, offset: usize) -> Result<&'m AtomicU64, Error> {
        let word = self.locate(offset, 8, 8)?.cast::<u64>();
        // SAFETY:
        // - `locate` checked bounds and alignment; the region lives for `'m` (`new`).
        // - All concurrent accesses are atomic and of this size (`new`).
        Ok(unsafe { AtomicU64::from_ptr(word.as_ptr()) })
    }

    /// The signed 64-bit word at byte `offset`.
    ///
    /// # Errors
    /// [`Error::OutOfBounds`], [`Error::Misaligned`].
    #[inline]
    pub fn i64(&self, offset: usize) -> Result<&'m AtomicI64, Error> {
        let word = self.locate(offset, 8, 8)?.cast::<i64>();
        // SAFETY:
        // - `locate` checked bounds and alignment; the region lives for `'m` (`new`).
        // - All concurrent accesses are atomic and of this size (`new`).
        Ok(unsafe { AtomicI64::from_ptr(word.as_ptr()) })
    }

    /// Copies `source` to byte `offset`, a multiple of 8, by relaxed 8-byte stores and single bytes
    /// for the tail. Publish with a release store elsewhere.
    ///
    /// # Errors
    /// [`Error::OutOfBounds`], [`Error::Misaligned`].
    #[inline]
    pub fn write(&self, offset: usize, source: &[u8]) -> Result<(), Error> {
        let base = self.locate(offset, source.len(), 8)?;
        let (words, tail) = source.as_chunks::<8>();
        let mut to = base.cast::<u64>();
        for word in words {
            // SAFETY:
            // - `to` is inside the part that `locate` checked, 8-byte aligned, alive for `'m`.
            // - All concurrent accesses are atomic and of this size (`new`).
            let atomic = unsafe { AtomicU64::from_ptr(to.as_ptr()) };
            atomic.store(u64::from_le_bytes(*word), Ordering::Relaxed);
            // SAFETY: `words` counts the whole words in `source`: at most one past the part's end.
            to = unsafe { to.add(1) };
        }
        let mut to = to.cast::<u8>();
        for byte in tail {
            // SAFETY: as above, for the bytes after the last whole word.
            let atomic = unsafe { AtomicU8::from_ptr(to.as_ptr()) };
            atomic.store(*byte, Ordering::Relaxed);
            // SAFETY: at most one past the end of the part that `locate` checked.
            to = unsafe { to.add(1) };
        }
        Ok(())
    }

    /// Address of `bytes` bytes at `offset`, once they are inside and aligned.
    #[inline]
    fn locate(&self, offset: usize, bytes: usize, align: usize) -> Result<NonNull<u8>, Error> {
        let inside = offset.checked_add(bytes).is_some_and(|end| end <= self.bytes);
        if !inside {
            return Err(Error::OutOfBounds { offset, bytes, region: self.bytes });
        }
        // SAFETY: `offset` is at most `self.bytes`, so the sum stays in or one past the region.
        let address = unsafe { self.base.add(offset) };
        if !address.addr().get().is_multiple_of(align) {
            return Err(Error::Misaligned { address: address.addr().get(), align });
        }
        Ok(address)
    }
}

/// Waits until this thread's write-combined stores are on their way to memory.
///
/// Needed before a doorbell when kernel arguments lie in VRAM, whose host mapping is
/// write-combined: such stores may otherwise arrive after the doorbell's. [`Ring`](crate::Ring)
/// issues it, or a locked instruction that does the same, in every submission.
///
/// # Source
/// Intel SDM volume 3, "Strengthening or Weakening the Memory-Ordering Model"; docs/ABI.md §AQL.
#[inline]
pub fn store_fence() {
    #[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
    // SAFETY: every x86-64 processor has SSE.
    unsafe {
        core::arch::x86_64::_mm_sfence();
    }
}

/// The two index words that host and device share, host's atomics.
#[cfg(not(loom))]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Indices<'m> {
    pub(crate) read: &'m AtomicU64,
    pub(crate) write: &'m AtomicU64,
}

/// The packet slots of a ring. Indices are masked, so every index has a slot.
#[cfg(not(loom))]
#[derive(Debug)]
pub(crate) struct Slots<'m> {
    base: NonNull<u32>,
    mask: usize,
    lives: PhantomData<&'m [AtomicU64]>,
}

#[cfg(not(loom))]
const SLOT_DWORDS: usize = 16;

// SAFETY: every access goes through an atomic, so threads may share the slots.
#[cfg(not(loom))]
unsafe impl Send for Slots<'_> {}
// SAFETY: as above.
#[cfg(not(loom))]
unsafe impl Sync for Slots<'_> {}

#[cfg(not(loom))]
impl<'m> Slots<'m> {
    pub(crate) fn new(memory: SharedWords<'m>) -> Result<Self, Error> {
        let count = memory.bytes() / 64;
        if !memory.bytes().is_multiple_of(64) || !count.is_power_of_two() {
            return Err(Error::RingSize { bytes: memory.bytes() });
        }
        let base = memory.locate(0, memory.bytes(), 64)?.cast();
        Ok(Self { base, mask: count - 1, lives: PhantomData })
    }

    pub(crate) const fn count(&self) -> usize {
        self.mask + 1
    }

    /// The slot of `index`.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // masked
    pub(crate) fn slot(&self, index: u64) -> Slot<'m> {
        let slot = index as usize & self.mask;
        // SAFETY: `slot <= mask`, and `new` found `mask + 1` slots of 16 dwords in the region.
        let base = unsafe { self.base.add(slot * SLOT_DWORDS) };
        Slot { base, lives: PhantomData }
    }
}

/// One packet's 64 bytes: inside the region, 64-byte aligned (checked by [`Slots::new`]).
#[cfg(not(loom))]
pub(crate) struct Slot<'m> {
    base: NonNull<u32>,
    lives: PhantomData<&'m [AtomicU64]>,
}

#[cfg(not(loom))]
impl<'m> Slot<'m> {
    /// The first dword.
    #[inline]
    pub(crate) fn header(&self) -> &'m AtomicU32 {
        // SAFETY:
        // - The slot lives for `'m` and is aligned (`Slots::slot`).
        // - The first dword of a slot is only ever accessed as 32 bits.
        unsafe { AtomicU32::from_ptr(self.base.as_ptr()) }
    }

    /// The second dword, between the header and the 64-bit words.
    #[inline]
    fn second(&self) -> &'m AtomicU32 {
        // SAFETY: a slot has 16 dwords.
        let word = unsafe { self.base.add(1) };
        // SAFETY: as for `header`.
        unsafe { AtomicU32::from_ptr(word.as_ptr()) }
    }

    /// Dwords 2 to 15 as 64-bit words.
    #[inline]
    fn rest(&self) -> &'m [AtomicU64; 7] {
        // SAFETY: a slot has 16 dwords.
        let words = unsafe { self.base.add(2) }.cast::<[AtomicU64; 7]>();
        // SAFETY:
        // - 56 bytes at offset 8 of an aligned slot, alive for `'m` (`Slots::slot`).
        // - `AtomicU64` has the layout of `u64` and may be written through a shared reference.
        unsafe { words.as_ref() }
    }

    /// Writes all of a packet but its first dword.
    #[inline]
    pub(crate) fn write_body(&self, packet: &crate::Packet) {
        let [_, second, rest @ ..] = &packet.0;
        self.second().store(*second, Ordering::Relaxed);
        let (pairs, _) = rest.as_chunks::<2>();
        for (word, [lo, hi]) in self.rest().iter().zip(pairs) {
            word.store(u64::from(*hi) << 32 | u64::from(*lo), Ordering::Relaxed);
        }
    }

    /// What the slot holds, each word loaded once.
    pub(crate) fn read(&self) -> crate::Packet {
        let mut packet = crate::Packet([0; 16]);
        let [header, second, rest @ ..] = &mut packet.0;
        *header = self.header().load(Ordering::Acquire);
        *second = self.second().load(Ordering::Relaxed);
        let (pairs, _) = rest.as_chunks_mut::<2>();
        for (word, pair) in self.rest().iter().zip(pairs) {
            let word = pm4::GpuAddr::new(word.load(Ordering::Relaxed));
            *pair = [word.lo(), word.hi()];
        }
        packet
    }
}

#[cfg(loom)]
pub use for_loom::{Indices, Slots};

/// The same two types on loom's atomics. Bodies are cells in which loom finds every torn packet.
#[cfg(loom)]
#[allow(missing_docs)]
mod for_loom {
    extern crate std;

    use core::marker::PhantomData;
    use std::sync::Arc;
    use std::vec::Vec;

    use loom::cell::UnsafeCell;
    use loom::sync::atomic::{AtomicU32, AtomicU64};

    use crate::Packet;

    #[derive(Clone, Debug)]
    pub struct Indices<'m> {
        pub read: Arc<AtomicU64>,
        pub write: Arc<AtomicU64>,
        lives: PhantomData<&'m ()>,
    }

    #[derive(Debug)]
    pub struct Slot {
        header: AtomicU32,
        body: UnsafeCell<Packet>,
    }

    // SAFETY: loom checks that `body` is never accessed by two threads at once.
    unsafe impl Sync for Slot {}
    // SAFETY: as above.
    unsafe impl Send for Slot {}

    #[derive(Clone, Debug)]
    pub struct Slots<'m> {
        slots: Arc<Vec<Slot>>,
        lives: PhantomData<&'m ()>,
    }

    impl Indices<'static> {
        #[allow(clippy::new_without_default)]
        pub fn new() -> Self {
            let word = || Arc::new(AtomicU64::new(0));
            Self { read: word(), write: word(), lives: PhantomData }
        }
    }

    impl Slots<'static> {
        /// `count` slots, a power of two.
        pub fn new(count: usize) -> Self {
            let slot =
                || Slot { header: AtomicU32::new(0), body: UnsafeCell::new(Packet([0; 16])) };
            let slots = (0..count).map(|_| slot()).collect();
            Self { slots: Arc::new(slots), lives: PhantomData }
        }
    }

    impl Slots<'_> {
        pub fn count(&self) -> usize {
            self.slots.len()
        }

        pub fn slot(&self, index: u64) -> &Slot {
            let slot = usize::try_from(index).unwrap() & (self.slots.len() - 1);
            self.slots.get(slot).unwrap()
        }
    }

    impl Slot {
        pub fn header(&self) -> &AtomicU32 {
            &self.header
        }

        pub fn write_body(&self, packet: &Packet) {
            self.body.with_mut(|body| {
                // SAFETY: loom has checked that nobody else accesses the cell.
                unsafe { *body = *packet }
            });
        }

        pub fn read(&self) -> Packet {
            self.body.with(|body| {
                // SAFETY: loom has checked that nobody else writes the cell.
                unsafe { *body }
            })
        }
    }
}

#[cfg(all(test, not(loom)))]
pub(crate) mod tests;
