//! Pinned memory that pageable memory is copied through, chunk by chunk.
//!
//! Chunks are used in turn. One is free again once the stream has passed the operation that used it
//! last; whoever needs one that is not free waits for that operation, so a copy of any size takes no
//! more memory than the chunks have, and the device copies one while the host fills or empties another.

use std::sync::Arc;

use kfd::{Buffer, MemoryRequest};
use pm4::GpuAddr;

use super::region::Extent;
use super::request::CopyRequest;
use crate::device::DeviceCore;
use crate::error::Result;

/// Which chunk is next, and what the device still does with each. Pure.
#[derive(Debug)]
pub(crate) struct Chunks {
    /// Of each chunk, the operation that used it last; 0 for none.
    used: Box<[u64]>,
    next: usize,
}

impl Chunks {
    pub fn new(count: u32) -> Self {
        let count = usize::try_from(count).unwrap_or(1).max(1);
        Self { used: vec![0; count].into_boxed_slice(), next: 0 }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.used.len()
    }

    /// The next chunk, and the operation that has to be done before it is used again.
    pub fn next(&self) -> (usize, u64) {
        (self.next, self.used.get(self.next).copied().unwrap_or(0))
    }

    /// The next chunk is used by operation `number`, and the one after it is the next.
    pub fn take(&mut self, number: u64) {
        if let Some(used) = self.used.get_mut(self.next) {
            *used = number;
        }
        self.next = (self.next + 1) % self.used.len().max(1);
    }
}

/// A stream's chunks.
#[derive(Debug)]
pub(crate) struct Staging {
    pub buffer: Arc<Buffer>,
    pub chunks: Chunks,
    pub chunk_bytes: u64,
}

impl Staging {
    pub fn new(device: &DeviceCore, request: &CopyRequest) -> Result<Self> {
        let CopyRequest { chunks, chunk_bytes, .. } = *request;
        let bytes = chunk_bytes.saturating_mul(u64::from(chunks));
        // Not cached by the GPU: a chunk is written and read by turns from both sides.
        let request = MemoryRequest::gtt(bytes).coherent().uncached().label("staging");
        let buffer = Arc::new(device.gpu.allocate(&request)?);
        Ok(Self { buffer, chunks: Chunks::new(chunks), chunk_bytes })
    }

    /// Where a chunk starts in the buffer.
    pub fn offset(&self, chunk: usize) -> u64 {
        self.chunk_bytes.saturating_mul(chunk as u64)
    }

    /// Where a chunk starts.
    pub fn addr(&self, chunk: usize) -> GpuAddr {
        GpuAddr::new(self.buffer.addr().get().saturating_add(self.offset(chunk)))
    }
}

/// A part of a region that fits a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// First byte in its row.
    pub x: u64,
    pub row: u64,
    pub plane: u64,
    pub extent: Extent,
}

/// Cuts a region into blocks of at most `most` bytes, as few as can be without splitting what fits:
/// whole planes, whole rows of a plane, or parts of a row.
pub(crate) fn blocks(extent: Extent, most: u64) -> impl Iterator<Item = Block> {
    let most = most.max(1);
    let Extent { width, rows, planes } = extent;
    let row_bytes = width.max(1);
    let plane_bytes = row_bytes.saturating_mul(rows.max(1));
    let width_each = width.min(most).max(1);
    let rows_each = (most / row_bytes).clamp(1, rows.max(1));
    let planes_each =
        if plane_bytes > most { 1 } else { (most / plane_bytes).clamp(1, planes.max(1)) };
    let chunks = |count: u64, each: u64| {
        (0..count.div_ceil(each)).map(move |n| (n * each, each.min(count - n * each)))
    };
    let empty = extent.is_empty();
    let planes = chunks(if empty { 0 } else { planes }, planes_each);
    planes.flat_map(move |(plane, planes)| {
        chunks(rows, rows_each).flat_map(move |(row, rows)| {
            chunks(width, width_each).map(move |(x, width)| Block {
                x,
                row,
                plane,
                extent: Extent { width, rows, planes },
            })
        })
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn blocks_hold_each_byte_once_and_fit(
            (width, rows, planes) in (0u64..40, 0u64..8, 0u64..5),
            most in 1u64..100,
        ) {
            let extent = Extent { width, rows, planes };
            let mut seen = HashSet::new();
            for block in blocks(extent, most) {
                prop_assert!(block.extent.bytes().unwrap() <= most);
                for plane in 0..block.extent.planes {
                    for row in 0..block.extent.rows {
                        for x in 0..block.extent.width {
                            let at = (block.x + x, block.row + row, block.plane + plane);
                            prop_assert!(seen.insert(at), "{at:?} twice");
                            prop_assert!(at.0 < width && at.1 < rows && at.2 < planes);
                        }
                    }
                }
            }
            prop_assert_eq!(seen.len() as u64, extent.bytes().unwrap());
        }

        /// The host fills chunks and submits; the device reads them late, in order. No chunk is
        /// filled anew before it was read, and never more are in use than there are.
        #[test]
        fn no_chunk_is_filled_before_the_device_has_read_it(
            count in 1u32..6,
            late in prop::collection::vec(0u64..4, 1..60),
        ) {
            let mut chunks = Chunks::new(count);
            let mut memory = vec![None; chunks.count()];
            let (mut passed, mut submitted, mut read) = (0, 0_u64, Vec::new());
            let mut in_flight = std::collections::VecDeque::new();
            let mut device = |until: u64, memory: &[Option<u64>], in_flight: &mut std::collections::VecDeque<(u64, usize)>| {
                while passed < until && let Some((number, chunk)) = in_flight.pop_front() {
                    read.push(memory[chunk]);
                    passed = number;
                }
                passed
            };
            for (value, behind) in (0..).zip(&late) {
                let (chunk, needed) = chunks.next();
                device(submitted.saturating_sub(*behind).max(needed), &memory, &mut in_flight);
                prop_assert!(in_flight.iter().all(|(_, used)| *used != chunk));
                prop_assert!(in_flight.len() < chunks.count());
                memory[chunk] = Some(value);
                submitted += 1;
                in_flight.push_back((submitted, chunk));
                chunks.take(submitted);
            }
            device(submitted, &memory, &mut in_flight);
            let all: Vec<Option<u64>> = (0..late.len() as u64).map(Some).collect();
            prop_assert_eq!(read, all);
        }
    }
}
