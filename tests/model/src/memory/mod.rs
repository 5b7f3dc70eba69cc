//! GPU memory: the page table of a process on a GPU, and every access through it.
//!
//! A range maps GPU addresses to host memory that may lie elsewhere. Faults are values. No
//! reference to GPU memory is ever formed: other threads and the driver write it at any time, as
//! they would on hardware.

mod lanes;
mod view;

pub(crate) use lanes::Lanes;
pub use view::View;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};

use crate::exec::MemoryFault;

/// What a mapping allows besides loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Access {
    /// Stores and atomics.
    pub write: bool,
    /// Instruction fetch.
    pub execute: bool,
}

/// Why an access was not performed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessError {
    /// The page table does not allow it.
    Fault(MemoryFault),
    /// An atomic access at an address that is no multiple of its size.
    Misaligned {
        /// The address, in bytes.
        address: u64,
    },
}

impl From<MemoryFault> for AccessError {
    fn from(fault: MemoryFault) -> Self {
        Self::Fault(fault)
    }
}

/// Why a range could not be mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MapError {
    /// No bytes, or the end lies beyond the address space.
    #[error("range of {bytes:#x} bytes at {start:#x} is empty or wraps")]
    Range {
        /// First address.
        start: u64,
        /// Length.
        bytes: u64,
    },
    /// Part of the range is mapped already.
    #[error("range of {bytes:#x} bytes at {start:#x} overlaps one at {other:#x}")]
    Overlap {
        /// First address.
        start: u64,
        /// Length.
        bytes: u64,
        /// First address of the range in the way.
        other: u64,
    },
}

/// A mapped range. `host` belongs to `start`.
#[derive(Clone, Copy, Debug)]
struct Range {
    start: u64,
    end: u64,
    host: *mut u8,
    access: Access,
}

/// The ranges, sorted by start, without overlap.
#[derive(Debug, Default)]
struct Table {
    ranges: Vec<Range>,
}

// SAFETY: the pointers are only dereferenced by `View` under the contract of `AddressSpace::map`,
// which makes the memory valid for access from any thread until it is unmapped.
#[allow(unsafe_code)]
unsafe impl Send for Table {}
// SAFETY: as above; `Table` itself is immutable while shared.
#[allow(unsafe_code)]
unsafe impl Sync for Table {}

impl Table {
    /// The range that holds `address`.
    fn find(&self, address: u64) -> Option<&Range> {
        let after = self.ranges.partition_point(|range| range.start <= address);
        let range = self.ranges.get(after.checked_sub(1)?)?;
        (address < range.end).then_some(range)
    }

    /// Takes out what lies in `start..end`, splitting ranges at the borders. True when anything did.
    fn remove(&mut self, start: u64, end: u64) -> bool {
        let first = self.ranges.partition_point(|range| range.end <= start);
        let last = self.ranges.partition_point(|range| range.start < end);
        if first >= last {
            return false;
        }
        let mut keep = Vec::new();
        if let Some(range) = self.ranges.get(first).filter(|range| range.start < start) {
            keep.push(Range { end: start, ..*range });
        }
        if let Some(range) = self.ranges.get(last - 1).filter(|range| range.end > end) {
            let skip = usize::try_from(end - range.start).unwrap_or(usize::MAX);
            keep.push(Range { start: end, host: range.host.wrapping_add(skip), ..*range });
        }
        self.ranges.splice(first..last, keep);
        true
    }
}

/// The GPU page table of one process on one GPU.
#[derive(Default)]
pub struct AddressSpace {
    table: RwLock<Table>,
    generation: AtomicU64,
}

impl AddressSpace {
    /// An empty page table.
    pub fn new() -> Self {
        Self::default()
    }

    /// Maps `bytes` bytes at GPU address `start` to host memory. Waits for running wave slices.
    ///
    /// # Errors
    /// [`MapError`] when the range is empty, wraps, or overlaps a mapped one; nothing is mapped then.
    ///
    /// # Safety
    /// - `host` is valid for reads of `bytes` bytes, and for writes if `access.write`, from any
    ///   thread, until [`AddressSpace::unmap`] of the range returned or `self` is dropped.
    /// - No Rust reference to that memory is live while waves may run, except to atomics.
    #[allow(unsafe_code)]
    pub unsafe fn map(
        &self,
        start: u64,
        bytes: u64,
        host: *mut u8,
        access: Access,
    ) -> Result<(), MapError> {
        let end = start
            .checked_add(bytes)
            .filter(|_| bytes != 0)
            .ok_or(MapError::Range { start, bytes })?;
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        let at = table.ranges.partition_point(|range| range.end <= start);
        if let Some(other) = table.ranges.get(at).filter(|range| range.start < end) {
            return Err(MapError::Overlap { start, bytes, other: other.start });
        }
        table.ranges.insert(at, Range { start, end, host, access });
        self.generation.fetch_add(1, Ordering::Release);
        Ok(())
    }

    /// As [`AddressSpace::map`], in place of whatever is mapped there: no access finds the range
    /// unmapped meanwhile.
    ///
    /// # Errors
    /// [`MapError::Range`] when the range is empty or wraps; nothing changes then.
    ///
    /// # Safety
    /// As for [`AddressSpace::map`].
    #[allow(unsafe_code)]
    pub unsafe fn remap(
        &self,
        start: u64,
        bytes: u64,
        host: *mut u8,
        access: Access,
    ) -> Result<(), MapError> {
        let end = start
            .checked_add(bytes)
            .filter(|_| bytes != 0)
            .ok_or(MapError::Range { start, bytes })?;
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        table.remove(start, end);
        let at = table.ranges.partition_point(|range| range.end <= start);
        table.ranges.insert(at, Range { start, end, host, access });
        self.generation.fetch_add(1, Ordering::Release);
        Ok(())
    }

    /// Removes every mapping inside `bytes` bytes at `start`, splitting ranges at the borders. On
    /// return no wave accesses the memory any more: running slices are waited for. Must not be
    /// called by a thread that holds a [`View`].
    ///
    /// True when anything was mapped there.
    pub fn unmap(&self, start: u64, bytes: u64) -> bool {
        let end = start.saturating_add(bytes);
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        let removed = table.remove(start, end);
        if removed {
            self.generation.fetch_add(1, Ordering::Release);
        }
        removed
    }

    /// Changes whenever the page table changes.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// A view for a run of accesses. The page table cannot change while it lives.
    pub fn view(&self) -> View<'_> {
        View::new(self.table.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether `bytes` bytes at `address` are mapped and allow `access`.
    pub fn allows(&self, address: u64, bytes: u64, access: Access) -> bool {
        let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
        let Some(end) = address.checked_add(bytes) else { return false };
        let mut at = address;
        while at < end {
            match table.find(at) {
                Some(range)
                    if (!access.write || range.access.write)
                        && (!access.execute || range.access.execute) =>
                {
                    at = range.end;
                }
                _ => return false,
            }
        }
        true
    }

    /// Copies from GPU memory.
    ///
    /// # Errors
    /// The fault of the first byte that cannot be read.
    pub fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), MemoryFault> {
        self.view().read(address, bytes)
    }

    /// Copies to GPU memory.
    ///
    /// # Errors
    /// The fault of the first byte that cannot be written; bytes before it are written.
    pub fn write(&self, address: u64, bytes: &[u8]) -> Result<(), MemoryFault> {
        self.view().write(address, bytes)
    }

    /// Copies within GPU memory, from low addresses to high.
    ///
    /// # Errors
    /// The fault of the first byte that cannot be read or written; bytes before it are written.
    pub fn copy(&self, from: u64, to: u64, bytes: u64) -> Result<(), MemoryFault> {
        self.view().copy(from, to, bytes)
    }

    /// Fills GPU memory with a repeated dword, the last of which may be cut off.
    ///
    /// # Errors
    /// The fault of the first dword that cannot be written; those before it are written.
    pub fn fill(&self, address: u64, bytes: u64, value: u32) -> Result<(), MemoryFault> {
        let mut view = self.view();
        let chunk: Vec<u8> = value.to_le_bytes().into_iter().cycle().take(4096).collect();
        let mut done = 0;
        while done < bytes {
            let part = chunk.len().min(usize::try_from(bytes - done).unwrap_or(chunk.len()));
            view.write(address.wrapping_add(done), chunk.get(..part).unwrap_or(&chunk))?;
            done += part as u64;
        }
        Ok(())
    }

    /// Atomic load with acquire order.
    ///
    /// # Errors
    /// A fault, or a misaligned address.
    pub fn load_u32(&self, address: u64) -> Result<u32, AccessError> {
        self.view().load_u32(address)
    }

    /// Atomic load with acquire order.
    ///
    /// # Errors
    /// A fault, or a misaligned address.
    pub fn load_u64(&self, address: u64) -> Result<u64, AccessError> {
        self.view().load_u64(address)
    }

    /// Atomic store with release order.
    ///
    /// # Errors
    /// A fault, or a misaligned address.
    pub fn store_u32(&self, address: u64, value: u32) -> Result<(), AccessError> {
        self.view().update_u32(address, |_| Some(value)).map(drop)
    }

    /// Atomic store with release order.
    ///
    /// # Errors
    /// A fault, or a misaligned address.
    pub fn store_u64(&self, address: u64, value: u64) -> Result<(), AccessError> {
        self.view().update_u64(address, |_| Some(value)).map(drop)
    }

    /// Atomic read-modify-write; `change` may run more than once and writes nothing with `None`.
    /// Returns the old value.
    ///
    /// # Errors
    /// A fault, or a misaligned address.
    pub fn update_u32(
        &self,
        address: u64,
        change: impl FnMut(u32) -> Option<u32>,
    ) -> Result<u32, AccessError> {
        self.view().update_u32(address, change)
    }

    /// Atomic read-modify-write; `change` may run more than once and writes nothing with `None`.
    /// Returns the old value.
    ///
    /// # Errors
    /// A fault, or a misaligned address.
    pub fn update_u64(
        &self,
        address: u64,
        change: impl FnMut(u64) -> Option<u64>,
    ) -> Result<u64, AccessError> {
        self.view().update_u64(address, change)
    }
}

impl fmt::Debug for AddressSpace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AddressSpace")
            .field("generation", &self.generation())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
