//! [`KernargRing`]: a stream's memory for kernel arguments, taken in order and given back in order.

use std::sync::Arc;

use kfd::{Buffer, MemoryRequest};
use pm4::GpuAddr;

use crate::device::DeviceCore;
use crate::error::{Error, Result};

/// Positions count bytes and never wrap: `tail <= head <= tail + bytes`.
#[derive(Debug)]
pub(crate) struct KernargRing {
    buffer: Arc<Buffer>,
    bytes: u64,
    head: u64,
    tail: u64,
}

/// A place that is the caller's once [`KernargRing::take`] was called for its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Offset in the buffer.
    pub offset: u64,
    /// Position of its end.
    pub end: u64,
}

impl KernargRing {
    /// Fewest bytes.
    pub const MIN_BYTES: u64 = 4096;
    /// Most bytes.
    pub const MAX_BYTES: u64 = 1 << 30;

    /// # Errors
    /// [`Error::InvalidArgument`] unless `bytes` is a power of two in range.
    pub fn new(device: &DeviceCore, bytes: u64) -> Result<Self> {
        if !bytes.is_power_of_two() || !(Self::MIN_BYTES..=Self::MAX_BYTES).contains(&bytes) {
            let what = "the bytes for kernel arguments (a power of two from 4 KiB to 1 GiB)";
            return Err(Error::InvalidArgument { call: "Stream::new", what, value: bytes });
        }
        let request = MemoryRequest::gtt(bytes).coherent().uncached().label("kernel arguments");
        let buffer = Arc::new(device.gpu.allocate(&request)?);
        Ok(Self { buffer, bytes, head: 0, tail: 0 })
    }

    /// Size, bytes.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Position up to which it is taken.
    #[inline]
    pub const fn head(&self) -> u64 {
        self.head
    }

    /// The next place of `bytes` bytes at a multiple of `align`, a power of two; `None` while the
    /// device may still read it.
    #[inline]
    pub fn place(&self, bytes: u32, align: u32) -> Option<Place> {
        place(self.head, self.tail, self.bytes, u64::from(bytes), u64::from(align))
    }

    /// Takes all up to a place's end.
    #[inline]
    pub fn take(&mut self, end: u64) {
        self.head = end;
    }

    /// The device has passed all up to `end`.
    pub fn give_back(&mut self, end: u64) {
        self.tail = end;
    }

    /// Its memory, for whoever keeps it while the device may use it.
    pub fn buffer(&self) -> Arc<Buffer> {
        Arc::clone(&self.buffer)
    }

    /// Address of an offset.
    #[inline]
    pub fn addr(&self, offset: u64) -> GpuAddr {
        GpuAddr::new(self.buffer.addr().get() + offset)
    }

    /// Writes arguments.
    #[inline]
    pub fn write(&self, offset: u64, arguments: &[u8]) -> Result<()> {
        Ok(self.buffer.write(offset, arguments)?)
    }
}

#[inline]
fn place(head: u64, tail: u64, ring: u64, bytes: u64, align: u64) -> Option<Place> {
    let mut start = (head + (align - 1)) & !(align - 1);
    let mut offset = start & (ring - 1);
    if offset + bytes > ring {
        // A place never wraps: it starts with the next round.
        start += ring - offset;
        offset = 0;
    }
    let end = start + bytes;
    if end - tail > ring {
        return None;
    }
    Some(Place { offset, end })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_aligned_never_wrap_and_never_overlap_what_is_in_use() {
        // Every start, size and alignment in a small ring: the owner of each byte is checked.
        for align in [1, 2, 4, 8] {
            for sizes in [[1, 2, 3], [5, 1, 7], [8, 8, 8], [3, 8, 1]] {
                let (mut head, mut tail) = (0, 0);
                let mut live: std::collections::VecDeque<(u64, u64, u64)> = Default::default();
                for bytes in sizes.into_iter().cycle().take(200) {
                    let found = loop {
                        match place(head, tail, 16, bytes, align) {
                            Some(found) => break found,
                            None => tail = live.pop_front().expect("an empty ring has room").2,
                        }
                    };
                    assert!(found.offset.is_multiple_of(align) && found.offset + bytes <= 16);
                    assert!(found.end - bytes >= head && found.end > tail);
                    for (offset, bytes_live, _) in &live {
                        let apart =
                            found.offset + bytes <= *offset || offset + bytes_live <= found.offset;
                        assert!(apart, "{found:?} overlaps {offset}+{bytes_live}");
                    }
                    head = found.end;
                    live.push_back((found.offset, bytes, found.end));
                }
            }
        }
    }

    #[test]
    fn what_is_larger_than_the_ring_has_no_place() {
        assert_eq!(place(0, 0, 16, 17, 1), None);
        assert_eq!(place(0, 0, 16, 16, 1), Some(Place { offset: 0, end: 16 }));
        // The rest of a round is lost: only half a ring always fits.
        assert_eq!(place(1, 1, 16, 16, 1), None);
    }
}
