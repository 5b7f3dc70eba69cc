//! The things of a queue that outlive any borrow: its doorbell and its ring.
#![allow(unsafe_code)] // a word of the doorbell page, and views that live as long as their owner

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use aql::{QueueWords, Ring, SharedWords};

use super::dwords::{DwordRing, Unit};
use crate::error::{Error, Result};
use crate::memory::{Allocation, Mapping};

/// A queue's doorbell: 64 bits, in a page that belongs to all queues of the process on a GPU.
#[derive(Debug)]
pub(crate) struct Doorbell {
    word: NonNull<u64>,
    /// Keeps `word` mapped.
    _page: Arc<Mapping>,
}

// SAFETY: the word is mapped for as long as `_page` lives, and every access is atomic.
unsafe impl Send for Doorbell {}
// SAFETY: as above.
unsafe impl Sync for Doorbell {}

impl Doorbell {
    /// The doorbell at `offset` bytes of the page.
    pub fn new(page: Arc<Mapping>, offset: u64) -> Result<Self> {
        let word = NonNull::from(page.u64(offset)?).cast::<u64>();
        Ok(Self { word, _page: page })
    }

    /// Rings: `last` is the index of the last packet that may be fetched, or the new write pointer of
    /// a ring of dwords.
    #[inline]
    pub fn ring(&self, last: u64) {
        // SAFETY:
        // - `Mapping::u64` checked bounds and alignment; `_page` keeps the mapping.
        // - Every access to this word, by us, the device or a model of it, is atomic.
        let word = unsafe { AtomicU64::from_ptr(self.word.as_ptr()) };
        word.store(last, Ordering::Release);
    }
}

/// A queue's ring and descriptor, with the memory that holds them.
#[derive(Debug)]
pub(crate) struct QueueMemory {
    // Dropped before the memory that they point into.
    ring: Ring<'static>,
    words: QueueWords<'static>,
    _ring_memory: Arc<Allocation>,
    _page: Arc<Allocation>,
}

impl QueueMemory {
    /// Makes an empty ring in `ring_memory`, and the descriptor at the start of `page`, which
    /// `describe` fills.
    pub fn new(
        ring_memory: Arc<Allocation>,
        page: Arc<Allocation>,
        describe: impl FnOnce(&QueueWords<'_>) -> Result<(), aql::Error>,
    ) -> Result<Self> {
        let addr = page.addr();
        let failed = |_: aql::Error| Error::NoCpuAccess { addr };
        // SAFETY: the view goes into `self.ring`, which no method gives out for longer than `self`
        // is borrowed; `self._ring_memory` keeps the mapping until after `self.ring` is dropped.
        let slots = unsafe { forever(&ring_memory) }?;
        // SAFETY: as above, for `self.words` and `self._page`.
        let head = unsafe { forever(&page) }?;
        let words = QueueWords::new(head).map_err(failed)?;
        describe(&words).map_err(failed)?;
        let ring = Ring::new(slots, &words).map_err(failed)?;
        Ok(Self { ring, words, _ring_memory: ring_memory, _page: page })
    }

    /// The ring.
    #[inline]
    pub fn ring(&self) -> &Ring<'_> {
        &self.ring
    }

    /// The descriptor.
    pub fn words(&self) -> QueueWords<'_> {
        self.words
    }
}

/// A ring of dwords, with the memory that holds it.
#[derive(Debug)]
pub(crate) struct DwordMemory {
    // Dropped before the memory that it points into.
    ring: DwordRing<'static>,
    _ring_memory: Arc<Allocation>,
    page: Arc<Allocation>,
}

impl DwordMemory {
    /// Makes an empty ring in `ring_memory`, with its pointers at `write_pointer` and
    /// `read_pointer` bytes in `page`.
    pub fn new(
        ring_memory: Arc<Allocation>,
        page: Arc<Allocation>,
        (write_pointer, read_pointer): (u64, u64),
        unit: Unit,
    ) -> Result<Self> {
        let words = NonNull::from(ring_memory.mapping()?.dwords()?);
        // SAFETY: the view goes into `self.ring`, which no method gives out for longer than `self`
        // is borrowed; `self._ring_memory` keeps the mapping until after `self.ring` is dropped.
        let words = unsafe { words.as_ref() };
        let write = NonNull::from(page.mapping()?.u64(write_pointer)?);
        // SAFETY: as above, for `self.page`.
        let write = unsafe { write.as_ref() };
        let read = NonNull::from(page.mapping()?.u64(read_pointer)?);
        // SAFETY: as above, for `self.page`.
        let read = unsafe { read.as_ref() };
        let ring = DwordRing::new(words, read, write, unit);
        Ok(Self { ring, _ring_memory: ring_memory, page })
    }

    /// The ring.
    #[inline]
    pub fn ring(&self) -> &DwordRing<'_> {
        &self.ring
    }

    /// The descriptor in its page.
    pub fn words(&self) -> Result<QueueWords<'_>> {
        let misaligned = |_| Error::Misaligned { offset: 0, align: 64 };
        let head = self.page.mapping()?.shared(0, size_of::<aql::AmdQueueV2>())?;
        QueueWords::new(head).map_err(misaligned)
    }
}

/// A view of an allocation for an owner that keeps the allocation.
///
/// # Safety
/// No copy of the view may be used after the allocation is dropped.
unsafe fn forever(memory: &Allocation) -> Result<SharedWords<'static>> {
    let mapping = memory.mapping()?;
    let misaligned = |_| Error::Misaligned { offset: 0, align: 8 };
    // SAFETY: the mapping lives as long as the allocation, which the caller keeps; every access of
    // this process to mapped memory is atomic.
    unsafe { SharedWords::new(mapping.start(), mapping.bytes()) }.map_err(misaligned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::{Backing, Kernel, Linux};

    #[test]
    fn a_doorbell_outside_its_page_is_refused_and_one_inside_holds_the_last_index() {
        let kernel: Arc<dyn Kernel> = Arc::new(Linux::new());
        let page = Arc::new(Mapping::anywhere(&kernel, 0x2000, Backing::Anonymous).unwrap());
        assert!(Doorbell::new(Arc::clone(&page), 0x2000).is_err());
        assert!(Doorbell::new(Arc::clone(&page), 4).is_err());
        let doorbell = Doorbell::new(Arc::clone(&page), 0x1ff8).unwrap();
        doorbell.ring(77);
        assert_eq!(page.u64(0x1ff8).unwrap().load(Ordering::Relaxed), 77);
    }
}
