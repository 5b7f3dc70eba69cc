//! Accesses through the page table, for one run of a worker or one call of a packet processor.
#![allow(unsafe_code)] // loads and stores of GPU memory go through raw host addresses, in this file only
#![allow(clippy::multiple_unsafe_ops_per_block)] // pairs of one pointer's reads and writes share their proof
#![allow(clippy::indexing_slicing)] // slots are reduced modulo the array's length
#![allow(clippy::cast_possible_truncation)] // u64 to usize: the crate is for 64-bit hosts

use std::sync::RwLockReadGuard;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::{AccessError, Range, Table};
use crate::exec::MemoryFault;

/// A range a slot used last.
#[derive(Clone, Copy, Debug)]
struct Cached {
    start: u64,
    bytes: u64,
    host: *mut u8,
    write: bool,
}

const EMPTY: Cached = Cached { start: 0, bytes: 0, host: std::ptr::null_mut(), write: false };

/// Ranges remembered, one per slot. An instruction tends to touch the same range every time, so
/// callers use its index.
const SLOTS: usize = 32;

/// A locked page table with the ranges used last. Not `Send`: it belongs to a running slice.
#[derive(Debug)]
pub struct View<'a> {
    table: RwLockReadGuard<'a, Table>,
    cached: [Cached; SLOTS],
}

impl<'a> View<'a> {
    pub(super) fn new(table: RwLockReadGuard<'a, Table>) -> Self {
        Self { table, cached: [EMPTY; SLOTS] }
    }

    /// The host address of `bytes` bytes, if one range holds them and allows the access.
    ///
    /// The pointer is valid for `bytes` bytes while `self` lives, by the contract of
    /// `AddressSpace::map`: the table is locked, so the range cannot be unmapped.
    #[inline(always)]
    pub(super) fn locate(
        &mut self,
        slot: usize,
        address: u64,
        bytes: u64,
        write: bool,
    ) -> Option<*mut u8> {
        let cached = &self.cached[slot % SLOTS];
        let offset = address.wrapping_sub(cached.start);
        if offset < cached.bytes && cached.bytes - offset >= bytes && (!write || cached.write) {
            return Some(cached.host.wrapping_add(offset as usize));
        }
        self.search(slot, address, bytes, write)
    }

    #[cold]
    #[inline(never)]
    fn search(&mut self, slot: usize, address: u64, bytes: u64, write: bool) -> Option<*mut u8> {
        let &Range { start, end, host, access } = self.table.find(address)?;
        if end - address < bytes || write && !access.write {
            return None;
        }
        self.cached[slot % SLOTS] = Cached { start, bytes: end - start, host, write: access.write };
        Some(host.wrapping_add((address - start) as usize))
    }

    /// What is wrong with the first byte of a refused access.
    #[cold]
    fn fault(&self, address: u64, bytes: u64, write: bool) -> MemoryFault {
        let mut at = address;
        for byte in 0..bytes {
            at = address.wrapping_add(byte);
            if self.table.find(at).is_none_or(|range| write && !range.access.write) {
                break;
            }
        }
        MemoryFault { address: at, write, fetch: false, not_present: self.table.find(at).is_none() }
    }

    /// Copies from GPU memory.
    ///
    /// # Errors
    /// The fault of the first byte that cannot be read.
    pub fn read(&mut self, address: u64, bytes: &mut [u8]) -> Result<(), MemoryFault> {
        let mut done = 0;
        while let Some(rest) = bytes.get_mut(done..).filter(|rest| !rest.is_empty()) {
            let at = address.wrapping_add(done as u64);
            let Some(range) = self.table.find(at) else { return Err(self.fault(at, 1, false)) };
            let part = rest.len().min(usize::try_from(range.end - at).unwrap_or(usize::MAX));
            let host = range.host.wrapping_add((at - range.start) as usize);
            // SAFETY:
            // - `find` returned the mapped range around `at`; `part` does not pass its end, so
            //   `host` is valid for `part` bytes (contract of `map`); `rest` holds `part` bytes.
            // - `rest` is borrowed exclusively, so it is not GPU memory.
            unsafe { std::ptr::copy_nonoverlapping(host, rest.as_mut_ptr(), part) };
            done += part;
        }
        Ok(())
    }

    /// Copies to GPU memory.
    ///
    /// # Errors
    /// The fault of the first byte that cannot be written; bytes before it are written.
    pub fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), MemoryFault> {
        let mut done = 0;
        while let Some(rest) = bytes.get(done..).filter(|rest| !rest.is_empty()) {
            let at = address.wrapping_add(done as u64);
            let Some(range) = self.table.find(at).filter(|range| range.access.write) else {
                return Err(self.fault(at, 1, true));
            };
            let part = rest.len().min(usize::try_from(range.end - at).unwrap_or(usize::MAX));
            let host = range.host.wrapping_add((at - range.start) as usize);
            // SAFETY:
            // - `find` returned the mapped, writable range around `at`; `part` does not pass its
            //   end, so `host` is valid for writes of `part` bytes; `rest` holds `part` bytes.
            // - `map` forbids live references to GPU memory, so `rest` is elsewhere.
            unsafe { std::ptr::copy_nonoverlapping(rest.as_ptr(), host, part) };
            done += part;
        }
        Ok(())
    }

    /// Copies within GPU memory, run by run of consecutive host memory.
    ///
    /// # Errors
    /// The fault of the first byte that cannot be read or written; bytes before it are written.
    pub fn copy(&mut self, from: u64, to: u64, bytes: u64) -> Result<(), MemoryFault> {
        let mut done = 0;
        while done < bytes {
            let (source, target) = (from.wrapping_add(done), to.wrapping_add(done));
            let Some(&read) = self.table.find(source) else {
                return Err(self.fault(source, 1, false));
            };
            let Some(&write) = self.table.find(target).filter(|range| range.access.write) else {
                return Err(self.fault(target, 1, true));
            };
            let part = (bytes - done).min(read.end - source).min(write.end - target);
            let source = read.host.wrapping_add((source - read.start) as usize);
            let target = write.host.wrapping_add((target - write.start) as usize);
            // SAFETY:
            // - `find` returned the mapped ranges around both addresses, the second writable; `part`
            //   passes the end of neither, so both pointers are valid for `part` bytes.
            // - `map` forbids live references to GPU memory. The bytes may overlap, which `copy` allows.
            unsafe { std::ptr::copy(source, target, part as usize) };
            done += part;
        }
        Ok(())
    }

    /// Fetches instruction words until `words` is full or memory ends; returns how many.
    ///
    /// # Errors
    /// The fault of the first word: nothing is mapped there, or it may not be executed.
    pub(crate) fn fetch(&mut self, address: u64, words: &mut [u32]) -> Result<usize, MemoryFault> {
        let mut count = 0;
        for word in words.iter_mut() {
            let at = address.wrapping_add(4 * count as u64);
            let refused = [at, at.wrapping_add(3)]
                .into_iter()
                .find(|&byte| self.table.find(byte).is_none_or(|range| !range.access.execute));
            if let Some(address) = refused {
                if count == 0 {
                    let not_present = self.table.find(address).is_none();
                    return Err(MemoryFault { address, write: false, fetch: true, not_present });
                }
                break;
            }
            let mut bytes = [0; 4];
            self.read(at, &mut bytes)?;
            *word = u32::from_le_bytes(bytes);
            count += 1;
        }
        Ok(count)
    }

    pub(super) fn aligned(
        &mut self,
        slot: usize,
        address: u64,
        bytes: u64,
        write: bool,
    ) -> Result<*mut u8, AccessError> {
        if !address.is_multiple_of(bytes) {
            return Err(AccessError::Misaligned { address });
        }
        let host = self.locate(slot, address, bytes, write);
        let host = host.ok_or_else(|| self.fault(address, bytes, write))?;
        if !(host as usize as u64).is_multiple_of(bytes) {
            return Err(AccessError::Misaligned { address });
        }
        Ok(host)
    }

    /// Atomic load with acquire order.
    ///
    /// # Errors
    /// A fault, or a misaligned address.
    pub fn load_u32(&mut self, address: u64) -> Result<u32, AccessError> {
        let host = self.aligned(SLOTS - 1, address, 4, false)?.cast::<u32>();
        // SAFETY: `aligned` proved 4 valid bytes at a multiple of 4; no reference to them exists.
        let word = unsafe { AtomicU32::from_ptr(host) };
        Ok(word.load(Ordering::Acquire))
    }

    /// Atomic load with acquire order.
    ///
    /// # Errors
    /// A fault, or a misaligned address.
    pub fn load_u64(&mut self, address: u64) -> Result<u64, AccessError> {
        let host = self.aligned(SLOTS - 1, address, 8, false)?.cast::<u64>();
        // SAFETY: `aligned` proved 8 valid bytes at a multiple of 8; no reference to them exists.
        let word = unsafe { AtomicU64::from_ptr(host) };
        Ok(word.load(Ordering::Acquire))
    }

    /// Atomic read-modify-write; returns the old value.
    ///
    /// # Errors
    /// A fault, or a misaligned address.
    pub fn update_u32(
        &mut self,
        address: u64,
        change: impl FnMut(u32) -> Option<u32>,
    ) -> Result<u32, AccessError> {
        let host = self.aligned(SLOTS - 1, address, 4, true)?.cast::<u32>();
        // SAFETY: `aligned` proved 4 valid, writable bytes at a multiple of 4; no reference to
        // them exists.
        let word = unsafe { AtomicU32::from_ptr(host) };
        let (Ok(old) | Err(old)) = word.fetch_update(Ordering::AcqRel, Ordering::Acquire, change);
        Ok(old)
    }

    /// Atomic read-modify-write; returns the old value.
    ///
    /// # Errors
    /// A fault, or a misaligned address.
    pub fn update_u64(
        &mut self,
        address: u64,
        change: impl FnMut(u64) -> Option<u64>,
    ) -> Result<u64, AccessError> {
        let host = self.aligned(SLOTS - 1, address, 8, true)?.cast::<u64>();
        // SAFETY: `aligned` proved 8 valid, writable bytes at a multiple of 8; no reference to
        // them exists.
        let word = unsafe { AtomicU64::from_ptr(host) };
        let (Ok(old) | Err(old)) = word.fetch_update(Ordering::AcqRel, Ordering::Acquire, change);
        Ok(old)
    }
}
