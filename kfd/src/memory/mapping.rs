//! Owned address ranges and CPU mappings, and every access of the CPU to memory a GPU shares.
//!
//! Nothing here hands out a reference to bytes: a device may write them at any time. Words are
//! atomics; runs of bytes are copied with relaxed atomic loads and stores, which tear between
//! words but are never undefined.
#![allow(unsafe_code)] // mmap at fixed addresses, and atomics over mapped memory

use std::fmt;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aql::SharedWords;

use super::va::{VaAllocator, VaRange};
use crate::error::{Error, Result};
use crate::sys::{Advice, Backing, Errno, Kernel, MapRequest, Protection};

/// Address space is reserved in steps of this size: it costs nothing but numbers.
const ARENA_BYTES: u64 = 1 << 32;
/// How often a reservation outside the GPUs' aperture is retried elsewhere.
const ARENA_TRIES: usize = 4;

/// The addresses that CPU and GPUs share: reserved from the CPU's side, handed out in leases.
pub(crate) struct AddressSpace {
    kernel: Arc<dyn Kernel>,
    /// First and last address every GPU can map.
    aperture: (u64, u64),
    va: Mutex<VaAllocator>,
    /// The process whose addresses these are: a forked child's are its own.
    owner: u32,
}

impl AddressSpace {
    /// An empty space. `aperture` is the range that all GPUs have in common, limits inclusive.
    pub fn new(kernel: Arc<dyn Kernel>, aperture: (u64, u64)) -> Self {
        Self { kernel, aperture, va: Mutex::default(), owner: std::process::id() }
    }

    fn va(&self) -> MutexGuard<'_, VaAllocator> {
        self.va.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a range of at least `bytes`.
    pub fn lease(self: &Arc<Self>, bytes: u64) -> Result<Lease> {
        let too_large = || Error::OutOfAddressSpace { bytes };
        let taken = self.va().take(bytes);
        let range = match taken {
            Some(range) => range,
            None => {
                self.grow(VaAllocator::arena_for(bytes).ok_or_else(too_large)?, bytes)?;
                self.va().take(bytes).ok_or_else(too_large)?
            }
        };
        Ok(Lease { space: Arc::clone(self), range, reusable: Arc::new(AtomicBool::new(true)) })
    }

    /// Reserves an arena of `ARENA_BYTES`, or just `least` where a limit forbids so much.
    fn grow(&self, least: u64, bytes: u64) -> Result<()> {
        let mut rejected: Vec<(NonNull<u8>, usize)> = Vec::new();
        let mut outcome = Err(Error::OutOfAddressSpace { bytes });
        let mut size = ARENA_BYTES.max(least);
        for _ in 0..ARENA_TRIES {
            let Ok(length) = usize::try_from(size) else { break };
            let request = MapRequest {
                at: None,
                bytes: length,
                protection: Protection::empty(),
                backing: Backing::Reserve,
            };
            // SAFETY: no fixed address, so nothing of ours is replaced.
            match unsafe { self.kernel.mmap(&request) } {
                Ok(at) => {
                    let start = at.as_ptr().addr() as u64;
                    let inside = start >= self.aperture.0
                        && start.checked_add(size - 1).is_some_and(|end| end <= self.aperture.1);
                    if inside && self.va().add_arena(start, size) {
                        outcome = Ok(());
                        break;
                    }
                    rejected.push((at, length));
                }
                Err(Errno::NOMEM) if size > least => size = least,
                Err(errno) => {
                    let what = format!("a reservation of {size} bytes");
                    outcome = Err(Error::System { call: "mmap", what, errno });
                    break;
                }
            }
        }
        for (at, length) in rejected {
            // SAFETY: reserved above and given to nobody.
            let _ = unsafe { self.kernel.munmap(at, length) };
        }
        outcome
    }
}

impl Drop for AddressSpace {
    fn drop(&mut self) {
        if self.owner != std::process::id() {
            return; // by now this process may have something else there
        }
        let unused = self.va().unused_arenas();
        for (start, bytes) in unused {
            let length = usize::try_from(bytes).unwrap_or(0);
            if let Some(at) = pointer(start) {
                // SAFETY: no lease of this arena is out, so nothing is mapped in it or will be.
                let _ = unsafe { self.kernel.munmap(at, length) };
            }
        }
    }
}

impl fmt::Debug for AddressSpace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AddressSpace").field("aperture", &self.aperture).finish_non_exhaustive()
    }
}

/// The host pointer of an address that `mmap` returned before.
fn pointer(address: u64) -> Option<NonNull<u8>> {
    let address = usize::try_from(address).ok()?;
    NonNull::new(std::ptr::with_exposed_provenance_mut::<u8>(address))
}

/// The exclusive right to a range of addresses. Without a [`Mapping`] in it the CPU cannot touch it.
#[derive(Debug)]
pub(crate) struct Lease {
    space: Arc<AddressSpace>,
    range: VaRange,
    /// Whether the range goes back to the allocator in the end: not when a device may still use it,
    /// nor when the kernel may have left a hole that somebody else's mapping can fall into.
    reusable: Arc<AtomicBool>,
}

impl Lease {
    /// First address.
    pub fn start(&self) -> u64 {
        self.range.start
    }

    /// Whole pages.
    pub fn bytes(&self) -> u64 {
        self.range.bytes
    }

    /// Never uses these addresses again: a device may still hold on to them.
    pub fn abandon(self) {
        self.reusable.store(false, Ordering::Relaxed);
    }

    /// Maps `backing` over the whole range, readable and writable.
    ///
    /// # Errors
    /// [`Error::System`]. The addresses are then not used again.
    pub fn map(&self, backing: Backing) -> Result<Mapping> {
        let kernel = Arc::clone(&self.space.kernel);
        let failed = |errno| {
            let what = format!("{} bytes at {:#x}", self.bytes(), self.start());
            Error::System { call: "mmap", what, errno }
        };
        let at = pointer(self.start()).ok_or_else(|| failed(Errno::INVAL))?;
        let bytes = usize::try_from(self.bytes()).map_err(|_| failed(Errno::OVERFLOW))?;
        let protection = Protection::READ | Protection::WRITE;
        let request = MapRequest { at: Some(at), bytes, protection, backing };
        // SAFETY: the lease owns the range: it was reserved by `grow` and taken once.
        let mapped = unsafe { kernel.mmap(&request) }.map_err(|errno| {
            self.reusable.store(false, Ordering::Relaxed);
            failed(errno)
        })?;
        let end = End::Reserve(Arc::clone(&self.reusable));
        let mapping = Mapping { kernel, at: mapped, bytes, end, owner: std::process::id() };
        // SAFETY: as above.
        let advised = unsafe { mapping.kernel.advise(mapped, bytes, Advice::DontFork) };
        advised.map_err(|errno| {
            let what = format!("{bytes} bytes at {:#x}", self.start());
            Error::System { call: "madvise", what, errno }
        })?;
        Ok(mapping)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if self.reusable.load(Ordering::Relaxed) {
            self.space.va().give_back(self.range);
        }
    }
}

/// What becomes of a mapping's addresses.
#[derive(Debug)]
enum End {
    /// A lease owns them: they stay reserved, or the lease learns that they did not.
    Reserve(Arc<AtomicBool>),
    /// The kernel chose them: they are unmapped.
    Unmap,
}

/// Memory mapped into the CPU's address space, shared with a device.
#[derive(Debug)]
pub(crate) struct Mapping {
    kernel: Arc<dyn Kernel>,
    at: NonNull<u8>,
    bytes: usize,
    end: End,
    /// The process it is mapped in: a forked child does not have it.
    owner: u32,
}

// SAFETY: the mapping belongs to the process, not to a thread, and every access goes through
// atomics.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `backing` where the kernel likes.
    pub fn anywhere(
        kernel: &Arc<dyn Kernel>,
        bytes: usize,
        backing: Backing,
    ) -> Result<Self, Errno> {
        let protection = Protection::READ | Protection::WRITE;
        let request = MapRequest { at: None, bytes, protection, backing };
        // SAFETY: no fixed address.
        let at = unsafe { kernel.mmap(&request) }?;
        let owner = std::process::id();
        Ok(Self { kernel: Arc::clone(kernel), at, bytes, end: End::Unmap, owner })
    }

    /// First byte.
    pub fn start(&self) -> NonNull<u8> {
        self.at
    }

    /// Length in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The address of `bytes` bytes at `offset`.
    #[inline]
    fn at(&self, offset: u64, bytes: usize) -> Result<NonNull<u8>> {
        match (usize::try_from(offset), self.bytes.checked_sub(bytes)) {
            (Ok(start), Some(last)) if start <= last => {
                // SAFETY: `start + bytes <= self.bytes`, so the result is inside the mapping or its
                // end.
                Ok(unsafe { self.at.add(start) })
            }
            _ => Err(self.out_of_bounds(offset, bytes)),
        }
    }

    #[cold]
    fn out_of_bounds(&self, offset: u64, bytes: usize) -> Error {
        Error::OutOfBounds { offset, bytes: bytes as u64, length: self.bytes as u64 }
    }

    #[inline]
    fn word(&self, offset: u64, bytes: usize) -> Result<NonNull<u8>> {
        self.word_at(offset, bytes as u64, bytes)
    }

    #[inline]
    fn word_at(&self, offset: u64, align: u64, bytes: usize) -> Result<NonNull<u8>> {
        if !offset.is_multiple_of(align) {
            return Err(Error::Misaligned { offset, align });
        }
        self.at(offset, bytes)
    }

    /// A 32-bit word.
    #[inline]
    pub fn u32(&self, offset: u64) -> Result<&AtomicU32> {
        let word = self.word(offset, 4)?;
        // SAFETY:
        // - The word is inside a mapping that lives as long as `self`; a page is 4-byte aligned and
        //   so is `offset`.
        // - Every access of this process to mapped memory is atomic.
        Ok(unsafe { AtomicU32::from_ptr(word.as_ptr().cast()) })
    }

    /// A 64-bit word.
    #[inline]
    pub fn u64(&self, offset: u64) -> Result<&AtomicU64> {
        let word = self.word(offset, 8)?;
        // SAFETY: as in `u32`, for 8 bytes.
        Ok(unsafe { AtomicU64::from_ptr(word.as_ptr().cast()) })
    }

    /// A signed 64-bit word.
    #[inline]
    pub fn i64(&self, offset: u64) -> Result<&AtomicI64> {
        let word = self.word(offset, 8)?;
        // SAFETY: as in `u32`, for 8 bytes.
        Ok(unsafe { AtomicI64::from_ptr(word.as_ptr().cast()) })
    }

    /// All of it as 32-bit words.
    pub fn dwords(&self) -> Result<&[AtomicU32]> {
        let words = self.word(0, self.bytes)?.cast::<AtomicU32>();
        // SAFETY:
        // - `bytes / 4` words from the start of a mapping that lives as long as `self`; its start is
        //   page-aligned.
        // - `AtomicU32` has the layout of `u32`, may be written through a shared reference, and
        //   every access of this process to mapped memory is atomic.
        let words = unsafe { NonNull::slice_from_raw_parts(words, self.bytes / 4).as_ref() };
        Ok(words)
    }

    /// A part of it, for the layouts of crate `aql`.
    pub fn shared(&self, offset: u64, bytes: usize) -> Result<SharedWords<'_>> {
        let start = self.word_at(offset, 8, bytes)?;
        // SAFETY: `bytes` bytes at `start` are inside a mapping that lives as long as `self`, and
        // every access of this process to mapped memory is atomic.
        let shared = unsafe { SharedWords::new(start, bytes) };
        shared.map_err(|_| Error::Misaligned { offset, align: 8 })
    }

    /// Copies bytes out. Words of 8 bytes do not tear; larger values may.
    pub fn read(&self, offset: u64, to: &mut [u8]) -> Result<()> {
        let from = self.at(offset, to.len())?;
        let (head, words) = split(from, to.len());
        let (to_head, rest) = to.split_at_mut(head);
        let (to_words, to_tail) = rest.split_at_mut(words);
        // SAFETY: `head <= to.len()`, which `at` checked; all access is atomic.
        unsafe { load_bytes(from, to_head) };
        for (n, chunk) in to_words.chunks_exact_mut(8).enumerate() {
            // SAFETY: `head + 8 * n + 8 <= to.len()`, which `at` checked.
            let word = unsafe { from.add(head + 8 * n) };
            // SAFETY: inside the mapping, 8-byte aligned by `split`, accessed atomically by all.
            let word = unsafe { AtomicU64::from_ptr(word.as_ptr().cast()) };
            chunk.copy_from_slice(&word.load(Ordering::Relaxed).to_ne_bytes());
        }
        // SAFETY: `head + words <= to.len()`, which `at` checked.
        let from_tail = unsafe { from.add(head + words) };
        // SAFETY: the rest of the range that `at` checked; all access is atomic.
        unsafe { load_bytes(from_tail, to_tail) };
        std::sync::atomic::fence(Ordering::Acquire);
        Ok(())
    }

    /// Copies bytes in. Words of 8 bytes do not tear; larger values may.
    #[inline]
    pub fn write(&self, offset: u64, from: &[u8]) -> Result<()> {
        let to = self.at(offset, from.len())?;
        std::sync::atomic::fence(Ordering::Release);
        let (chunks, tail) = from.as_chunks::<8>();
        if !tail.is_empty() || !to.addr().get().is_multiple_of(8) {
            // SAFETY: `at` checked that `from.len()` bytes at `to` are inside the mapping.
            unsafe { store_unaligned(to, from) };
            return Ok(());
        }
        // SAFETY: as above, and `to` is 8-byte aligned.
        unsafe { store_words(to, chunks) };
        Ok(())
    }
}

/// Stores words one by one.
///
/// # Safety
/// `8 * from.len()` bytes at `to` must be mapped, and accessed atomically only; `to` must be 8-byte
/// aligned.
#[inline]
unsafe fn store_words(to: NonNull<u8>, from: &[[u8; 8]]) {
    /// Words stored in one round: kernel arguments are tens of words.
    const ROUND: usize = 8;
    let mut to = to.cast::<AtomicU64>();
    let (rounds, rest) = from.as_chunks::<ROUND>();
    for round in rounds {
        // SAFETY: the caller vouches for the mapping and its alignment; `AtomicU64` has the layout of
        // `u64`, may be written through a shared reference, and all access is atomic.
        let words = unsafe { to.cast::<[AtomicU64; ROUND]>().as_ref() };
        for (word, chunk) in words.iter().zip(round) {
            word.store(u64::from_ne_bytes(*chunk), Ordering::Relaxed);
        }
        // SAFETY: at most one past the end of what the caller vouches for.
        to = unsafe { to.add(ROUND) };
    }
    for chunk in rest {
        // SAFETY: as above, for one word.
        let word = unsafe { to.as_ref() };
        word.store(u64::from_ne_bytes(*chunk), Ordering::Relaxed);
        // SAFETY: as above.
        to = unsafe { to.add(1) };
    }
}

/// Stores bytes: words where `to` is aligned, single bytes before and after.
///
/// # Safety
/// `from.len()` bytes at `to` must be mapped, and accessed atomically only.
unsafe fn store_unaligned(to: NonNull<u8>, from: &[u8]) {
    let (head, words) = split(to, from.len());
    let (from_head, rest) = from.split_at(head);
    let (from_words, from_tail) = rest.split_at(words);
    // SAFETY: `head <= from.len()`.
    unsafe { store_bytes(to, from_head) };
    // SAFETY: `head <= from.len()`.
    let to_words = unsafe { to.add(head) };
    // SAFETY: `head + words <= from.len()`, and `split` made `to_words` 8-byte aligned.
    unsafe { store_words(to_words, from_words.as_chunks().0) };
    // SAFETY: `head + words <= from.len()`.
    let to_tail = unsafe { to_words.add(words) };
    // SAFETY: the rest of the range.
    unsafe { store_bytes(to_tail, from_tail) };
}

/// How many bytes come before the first aligned word, and how many are in aligned words.
fn split(at: NonNull<u8>, bytes: usize) -> (usize, usize) {
    let head = at.align_offset(8).min(bytes);
    (head, (bytes - head) / 8 * 8)
}

/// Loads bytes one by one.
///
/// # Safety
/// `to.len()` bytes at `from` must be mapped, and accessed atomically only.
unsafe fn load_bytes(from: NonNull<u8>, to: &mut [u8]) {
    for (n, byte) in to.iter_mut().enumerate() {
        // SAFETY: the caller vouches for `to.len()` bytes.
        let at = unsafe { from.add(n) };
        // SAFETY: mapped, and accessed atomically by all.
        *byte = unsafe { AtomicU8::from_ptr(at.as_ptr()) }.load(Ordering::Relaxed);
    }
}

/// Stores bytes one by one.
///
/// # Safety
/// `from.len()` bytes at `to` must be mapped, and accessed atomically only.
unsafe fn store_bytes(to: NonNull<u8>, from: &[u8]) {
    for (n, byte) in from.iter().enumerate() {
        // SAFETY: the caller vouches for `from.len()` bytes.
        let at = unsafe { to.add(n) };
        // SAFETY: mapped, and accessed atomically by all.
        unsafe { AtomicU8::from_ptr(at.as_ptr()) }.store(*byte, Ordering::Relaxed);
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if self.owner != std::process::id() {
            return; // by now this process may have something else there
        }
        match &self.end {
            End::Unmap => {
                // SAFETY: `self` owned the range and nothing can reach it any more.
                let _ = unsafe { self.kernel.munmap(self.at, self.bytes) };
            }
            End::Reserve(reusable) => {
                let request = MapRequest {
                    at: Some(self.at),
                    bytes: self.bytes,
                    protection: Protection::empty(),
                    backing: Backing::Reserve,
                };
                // SAFETY: the lease still owns the range; this replaces our own mapping, which
                // nothing can reach any more.
                if unsafe { self.kernel.mmap(&request) }.is_err() {
                    reusable.store(false, Ordering::Relaxed);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::Linux;

    fn space() -> Arc<AddressSpace> {
        let kernel: Arc<dyn Kernel> = Arc::new(Linux::new());
        Arc::new(AddressSpace::new(kernel, (0x1_0000, 0x7fff_ffff_ffff)))
    }

    #[test]
    fn copies_at_every_alignment_come_back() {
        let lease = space().lease(0x1000).unwrap();
        let mapping = lease.map(Backing::Anonymous).unwrap();
        let data: Vec<u8> = (1..60).collect();
        for offset in 0..17 {
            for length in 0..data.len() {
                mapping.write(offset, &data[..length]).unwrap();
                let mut back = vec![0; length];
                mapping.read(offset, &mut back).unwrap();
                assert_eq!(back, data[..length]);
            }
        }
    }

    #[test]
    fn accesses_outside_and_across_words_are_refused_with_their_numbers() {
        let lease = space().lease(0x1000).unwrap();
        let mapping = lease.map(Backing::Anonymous).unwrap();
        let error = mapping.write(0xfff, &[1, 2]).unwrap_err();
        assert!(matches!(error, Error::OutOfBounds { offset: 0xfff, bytes: 2, length: 0x1000 }));
        assert!(mapping.read(u64::MAX, &mut [0; 2]).is_err());
        assert!(matches!(mapping.u64(4), Err(Error::Misaligned { offset: 4, align: 8 })));
        assert!(matches!(mapping.u32(0x1000), Err(Error::OutOfBounds { .. })));
    }

    #[test]
    fn an_unmapped_lease_can_be_mapped_again_and_is_zeroed() {
        let lease = space().lease(0x1000).unwrap();
        let mapping = lease.map(Backing::Anonymous).unwrap();
        mapping.write(0, &[7]).unwrap();
        drop(mapping);
        let mapping = lease.map(Backing::Anonymous).unwrap();
        let mut byte = [1];
        mapping.read(0, &mut byte).unwrap();
        assert_eq!(byte, [0]);
    }

    #[test]
    fn an_aperture_that_no_reservation_meets_is_an_error() {
        let kernel: Arc<dyn Kernel> = Arc::new(Linux::new());
        let space = Arc::new(AddressSpace::new(kernel, (0x1000, 0x2000)));
        assert!(matches!(space.lease(0x1000), Err(Error::OutOfAddressSpace { bytes: 0x1000 })));
    }

    #[test]
    fn an_abandoned_range_is_not_handed_out_again() {
        let space = space();
        let first = space.lease(0x1000).unwrap();
        let start = first.start();
        first.abandon();
        assert_ne!(space.lease(0x1000).unwrap().start(), start);
    }
}
