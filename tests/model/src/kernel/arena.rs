//! Memory that the model hands out: one memfd, cut into regions.
//!
//! The driver maps a region at an address of its choice; the model has a mapping of its own.
//! Pages go back when neither uses them any more.
#![allow(unsafe_code)] // shared words are accessed through raw pointers into the model's own mapping

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use kfd::GpuId;
use kfd::abi::MmapType;
use memmap2::{MmapOptions, MmapRaw};
use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, ftruncate, memfd_create};

use crate::builder::Offsets;
use crate::gpu::PAGE;

/// First offset that is given out as an offset for `mmap`; DRM counts from here too.
pub(super) const FIRST_PLAIN_OFFSET: u64 = 1 << 32;

/// Free space, by offset, and the end of what was ever used.
#[derive(Debug, Default)]
struct Space {
    free: BTreeMap<u64, u64>,
    end: u64,
}

/// The memfd.
#[derive(Debug)]
pub(crate) struct Arena {
    file: File,
    space: Mutex<Space>,
    plain: bool,
}

impl Arena {
    /// An empty arena.
    ///
    /// # Errors
    /// The errno of `memfd_create`.
    pub(crate) fn new() -> io::Result<Arc<Self>> {
        Self::with(None)
    }

    /// An empty arena for real descriptors, with KFD's own or its own offsets: none is small.
    ///
    /// # Errors
    /// The errno of `memfd_create`.
    pub(crate) fn for_descriptors(offsets: Offsets) -> io::Result<Arc<Self>> {
        Self::with(Some(offsets))
    }

    fn with(offsets: Option<Offsets>) -> io::Result<Arc<Self>> {
        let file = File::from(memfd_create("kfd-model", MemfdFlags::CLOEXEC)?);
        let plain = offsets == Some(Offsets::Plain);
        let end = if offsets.is_some() { FIRST_PLAIN_OFFSET } else { 0 };
        let space = Space { free: BTreeMap::new(), end };
        Ok(Arc::new(Self { file, space: Mutex::new(space), plain }))
    }

    /// Whether offsets for `mmap` are offsets into the file.
    pub(crate) fn is_plain(&self) -> bool {
        self.plain
    }

    /// The file that everything lies in.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// A zeroed region of `bytes` bytes, rounded up to pages.
    ///
    /// # Errors
    /// The errno of `ftruncate` or `mmap`; `EINVAL` for zero bytes.
    pub(crate) fn region(self: &Arc<Self>, bytes: u64) -> io::Result<Arc<Region>> {
        self.aligned_region(bytes, PAGE)
    }

    /// A region for doorbells. With plain offsets it lies at a multiple of 4 GiB: runtimes before
    /// ROCm 6 take the offset within the page from the low 32 bits of what CREATE_QUEUE returns
    /// (docs/ABI.md §Model, plain offsets).
    ///
    /// # Errors
    /// As [`region`](Self::region).
    pub(crate) fn doorbell_region(self: &Arc<Self>, bytes: u64) -> io::Result<Arc<Region>> {
        self.aligned_region(bytes, if self.plain { FIRST_PLAIN_OFFSET } else { PAGE })
    }

    /// As [`region`](Self::region), at a multiple of `align`, which is a multiple of the page size.
    ///
    /// # Errors
    /// As [`region`](Self::region).
    pub(crate) fn aligned_region(
        self: &Arc<Self>,
        bytes: u64,
        align: u64,
    ) -> io::Result<Arc<Region>> {
        let bytes = bytes.checked_next_multiple_of(PAGE).filter(|bytes| *bytes > 0);
        let bytes = bytes.ok_or(io::ErrorKind::InvalidInput)?;
        let len = usize::try_from(bytes).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let offset = if align == PAGE { self.take(bytes)? } else { self.append(bytes, align)? };
        let extent = Extent { offset, bytes, arena: Arc::clone(self) };
        let map = MmapOptions::new().offset(extent.offset).len(len).map_raw(&self.file)?;
        Ok(Arc::new(Region { map, extent }))
    }

    /// Cuts `bytes` from the first hole that is large enough, or from the end.
    fn take(&self, bytes: u64) -> io::Result<u64> {
        let mut space = self.space.lock().unwrap_or_else(PoisonError::into_inner);
        let hole = space.free.iter().find(|(_, len)| **len >= bytes).map(|(at, len)| (*at, *len));
        if let Some((at, len)) = hole {
            space.free.remove(&at);
            if len > bytes {
                space.free.insert(at + bytes, len - bytes);
            }
            return Ok(at);
        }
        self.extend(&mut space, bytes, PAGE)
    }

    /// Cuts `bytes` from the end, at a multiple of `align`. What is skipped is not handed out.
    fn append(&self, bytes: u64, align: u64) -> io::Result<u64> {
        let mut space = self.space.lock().unwrap_or_else(PoisonError::into_inner);
        self.extend(&mut space, bytes, align)
    }

    fn extend(&self, space: &mut Space, bytes: u64, align: u64) -> io::Result<u64> {
        let at = space.end.checked_next_multiple_of(align).ok_or(io::ErrorKind::OutOfMemory)?;
        let end = at.checked_add(bytes).ok_or(io::ErrorKind::OutOfMemory)?;
        ftruncate(&self.file, end)?;
        space.end = end;
        Ok(at)
    }

    /// Gives pages back: their content is gone, the space is free.
    fn give(&self, offset: u64, bytes: u64) {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        if fallocate(&self.file, flags, offset, bytes).is_err() {
            return; // Old content would be seen by the next owner: rather lose the space.
        }
        let mut space = self.space.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut at, mut len) = (offset, bytes);
        if let Some((&before, &size)) = space.free.range(..at).next_back()
            && before + size == at
        {
            space.free.remove(&before);
            (at, len) = (before, len + size);
        }
        if let Some(size) = space.free.remove(&(at + len)) {
            len += size;
        }
        space.free.insert(at, len);
    }
}

/// A part of the arena, given back on drop.
#[derive(Debug)]
struct Extent {
    arena: Arc<Arena>,
    offset: u64,
    bytes: u64,
}

impl Drop for Extent {
    fn drop(&mut self) {
        self.arena.give(self.offset, self.bytes);
    }
}

/// Zeroed memory, mapped by the model, mappable by the driver.
#[derive(Debug)]
pub(crate) struct Region {
    // Declared first, so unmapped before the pages are given back.
    map: MmapRaw,
    extent: Extent,
}

impl Region {
    /// Length in bytes, a multiple of the page size.
    pub(crate) fn bytes(&self) -> u64 {
        self.extent.bytes
    }

    /// The file and the offset in it, for a mapping of the driver's.
    pub(crate) fn backing(&self) -> (&File, u64) {
        (&self.extent.arena.file, self.extent.offset)
    }

    /// The offset for `mmap` of `/dev/kfd` that shows the region.
    pub(crate) fn mmap_offset(&self, kind: MmapType, gpu: GpuId) -> u64 {
        if self.extent.arena.plain { self.extent.offset } else { kind.offset(gpu) }
    }

    /// Start of the model's mapping, valid for [`bytes`](Self::bytes) while `self` lives.
    pub(crate) fn base(&self) -> *mut u8 {
        self.map.as_mut_ptr()
    }

    /// The 64-bit word at `index`, if it is inside.
    pub(crate) fn word(&self, index: usize) -> Option<&AtomicU64> {
        if index.checked_mul(8)?.checked_add(8)? > self.map.len() {
            return None;
        }
        // SAFETY: `index` words of 8 bytes lie inside the mapping, by the check above.
        let word = unsafe { self.map.as_mut_ptr().cast::<u64>().add(index) };
        // SAFETY:
        // - `word` is inside the mapping, which lives as long as `self`, and 8-byte aligned since
        //   a mapping starts at a page.
        // - The driver's and the device's accesses to such words are atomic too.
        Some(unsafe { AtomicU64::from_ptr(word) })
    }

    /// Fills all words with `value`.
    pub(crate) fn fill(&self, value: u64) {
        for index in 0..self.map.len() / 8 {
            if let Some(word) = self.word(index) {
                word.store(value, Ordering::Release);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn freed_pages_are_reused_and_read_zero() {
        let arena = Arena::new().unwrap();
        let first = arena.region(8192).unwrap();
        first.fill(7);
        let keep = arena.region(4096).unwrap();
        keep.word(0).unwrap().store(9, Ordering::Release);
        drop(first);
        let again = arena.region(4096).unwrap();
        assert_eq!(again.backing().1, 0);
        assert_eq!(again.word(511).unwrap().load(Ordering::Acquire), 0);
        assert_eq!(keep.word(0).unwrap().load(Ordering::Acquire), 9);
    }

    #[test]
    fn neighbouring_holes_become_one() {
        let arena = Arena::new().unwrap();
        let regions: Vec<_> = (0..3).map(|_| arena.region(4096).unwrap()).collect();
        drop(regions);
        assert_eq!(arena.region(12288).unwrap().backing().1, 0);
        assert_eq!(arena.space.lock().unwrap().end, 12288);
    }

    #[test]
    fn a_doorbell_region_lies_at_a_multiple_of_4_gib_where_offsets_are_plain() {
        let arena = Arena::for_descriptors(Offsets::Plain).unwrap();
        let small = arena.region(1).unwrap();
        let aligned = arena.doorbell_region(8192).unwrap();
        assert_eq!((small.backing().1, aligned.backing().1), (1 << 32, 2 << 32));
        aligned.fill(1);
        drop(aligned);
        assert_eq!(arena.region(1).unwrap().backing().1, 2 << 32);
    }

    #[test]
    fn a_word_past_the_end_does_not_exist() {
        let region = Arena::new().unwrap().region(1).unwrap();
        assert!(region.word(511).is_some());
        assert!(region.word(512).is_none());
        assert!(region.word(usize::MAX).is_none());
    }
}
