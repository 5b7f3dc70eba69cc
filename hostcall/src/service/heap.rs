//! Memory for the device heap (service 3).
//!
//! The heap itself is the device library's: it takes slabs from here and cuts them up, in a block
//! of memory whose inside is no stable ABI and which the host never reads. Here only slabs and
//! large blocks are handed out and taken back, from a table that the host alone writes.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Service;
use crate::counters::{Count, Counters};
use crate::pool::{Replies, Request};

/// A slab: the device library finds its start by masking an address, so it is aligned to its size.
///
/// # Source
/// device-libs ockl/src/dm.cl; docs/ABI.md §Device heap.
pub const SLAB_BYTES: u64 = 2 << 20;
/// Everything that is no slab: the device library tells the two apart by the low 12 bits.
const BLOCK_ALIGN: u64 = 4096;

/// Where the heap's memory comes from.
pub trait HeapSource: Send {
    /// Memory of the device; dropping it frees it.
    type Block: Send;

    /// At least `bytes` at a multiple of `align` (a power of two), with its device address. `None`
    /// when there is none. Must not wait for a queue: a wave of one is waiting.
    fn allocate(&mut self, bytes: u64, align: u64) -> Option<(u64, Self::Block)>;
}

/// Ceilings of what is handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeapLimits {
    /// Bytes handed out at once. Small allocations come out of slabs, so below [`SLAB_BYTES`] all
    /// of them fail; 0 makes every allocation fail.
    pub bytes: u64,
    /// Blocks handed out at once.
    pub blocks: u64,
}

impl HeapLimits {
    /// 1 GiB in 65,536 blocks.
    pub const DEFAULT: Self = Self { bytes: 1 << 30, blocks: 1 << 16 };
}

/// What the host sees and sets of a heap.
#[derive(Debug)]
pub struct HeapControl {
    max_bytes: AtomicU64,
    max_blocks: AtomicU64,
    live_bytes: AtomicU64,
    live_blocks: AtomicU64,
}

impl HeapControl {
    /// The limits.
    pub fn limits(&self) -> HeapLimits {
        HeapLimits {
            bytes: self.max_bytes.load(Ordering::Relaxed),
            blocks: self.max_blocks.load(Ordering::Relaxed),
        }
    }

    /// Sets limits; what is handed out stays. Through
    /// [`Drain::set_heap_limits`](crate::Drain::set_heap_limits), when nothing is in flight.
    pub(crate) fn set_limits(&self, limits: HeapLimits) {
        self.max_bytes.store(limits.bytes, Ordering::Relaxed);
        self.max_blocks.store(limits.blocks, Ordering::Relaxed);
    }

    /// Bytes handed out.
    pub fn live_bytes(&self) -> u64 {
        self.live_bytes.load(Ordering::Relaxed)
    }

    /// Blocks handed out.
    pub fn live_blocks(&self) -> u64 {
        self.live_blocks.load(Ordering::Relaxed)
    }
}

/// Serves the device heap out of a source. Dropping it frees what kernels did not.
#[derive(Debug)]
pub struct DeviceHeap<S: HeapSource> {
    source: S,
    /// Device address to bytes asked for and memory: all that was handed out, written by nobody
    /// else.
    live: HashMap<u64, (u64, S::Block)>,
    control: Arc<HeapControl>,
}

impl<S: HeapSource> DeviceHeap<S> {
    /// An empty heap.
    pub fn new(source: S, limits: HeapLimits) -> Self {
        let control = Arc::new(HeapControl {
            max_bytes: AtomicU64::new(limits.bytes),
            max_blocks: AtomicU64::new(limits.blocks),
            live_bytes: AtomicU64::new(0),
            live_blocks: AtomicU64::new(0),
        });
        Self { source, live: HashMap::new(), control }
    }

    /// The host's handle.
    pub fn control(&self) -> Arc<HeapControl> {
        Arc::clone(&self.control)
    }

    /// `None` answers null.
    fn allocate(&mut self, bytes: u64) -> Option<u64> {
        let control = &self.control;
        let limits = control.limits();
        let total = control.live_bytes().checked_add(bytes).filter(|&sum| sum <= limits.bytes)?;
        if control.live_blocks() >= limits.blocks {
            return None;
        }
        let align = if bytes == SLAB_BYTES { SLAB_BYTES } else { BLOCK_ALIGN };
        let (address, block) = self.source.allocate(bytes, align)?;
        let usable = address != 0 && address.is_multiple_of(align);
        if !usable || self.live.contains_key(&address) {
            return None; // the source broke its promise: its block goes back
        }
        self.live.insert(address, (bytes, block));
        control.live_bytes.store(total, Ordering::Relaxed);
        control.live_blocks.fetch_add(1, Ordering::Relaxed);
        Some(address)
    }

    /// Whether the address was the heap's.
    fn free(&mut self, address: u64) -> bool {
        let Some((bytes, _block)) = self.live.remove(&address) else { return false };
        self.control.live_bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.control.live_blocks.fetch_sub(1, Ordering::Relaxed);
        true
    }
}

impl<S: HeapSource> Service for DeviceHeap<S> {
    fn serve(&mut self, request: &Request<'_>, replies: &mut Replies<'_>, counters: &Counters) {
        for (lane, &[address, bytes, ..]) in request.lanes() {
            let answer = match (address, bytes) {
                (0, 0) => {
                    counters.note(Count::EmptyHeapRequest);
                    0
                }
                (0, bytes) => self.allocate(bytes).unwrap_or_else(|| {
                    counters.note(Count::HeapExhausted);
                    0
                }),
                (address, _) => {
                    if !self.free(address) {
                        counters.note(Count::UnknownHeapAddress);
                    }
                    0
                }
            };
            replies.set(lane, [answer, 0]);
        }
    }
}

impl<S: HeapSource> Drop for DeviceHeap<S> {
    fn drop(&mut self) {
        self.live.clear();
        self.control.live_bytes.store(0, Ordering::Relaxed);
        self.control.live_blocks.store(0, Ordering::Relaxed);
    }
}
