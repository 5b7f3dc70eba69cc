//! The local data share of one workgroup.

use super::observe::undefined;

/// LDS bytes; every access is checked: out of range reads zero and drops writes.
///
/// One thread runs a workgroup at a time, so nothing here is atomic.
#[derive(Debug, Default)]
pub struct Lds {
    bytes: Vec<u8>,
}

/// Unit of LDS allocation, in bytes (128 dwords on gfx9 and gfx11).
const GRANULE: usize = 512;

impl Lds {
    /// Makes room for `bytes` bytes, rounded up to the allocation unit. Contents are undefined on
    /// hardware; here they are whatever a previous workgroup left, or a poison value in debug builds.
    pub fn reset(&mut self, bytes: u32) {
        let bytes = (bytes as usize).next_multiple_of(GRANULE);
        self.bytes.resize(bytes, 0);
        if cfg!(debug_assertions) {
            self.bytes.fill(undefined::LDS);
        }
    }

    /// Fills all of it.
    pub(super) fn fill(&mut self, byte: u8) {
        self.bytes.fill(byte);
    }

    /// Allocated bytes.
    pub fn len(&self) -> u32 {
        self.bytes.len() as u32
    }

    /// Reads `B` bytes.
    #[inline(always)]
    pub fn read<const B: usize>(&self, offset: u32) -> [u8; B] {
        let offset = offset as usize;
        match self.bytes.get(offset..offset.wrapping_add(B)) {
            Some(bytes) => bytes.try_into().unwrap_or([0; B]),
            None => [0; B],
        }
    }

    /// Writes `B` bytes.
    #[inline(always)]
    pub fn write<const B: usize>(&mut self, offset: u32, value: [u8; B]) {
        let offset = offset as usize;
        if let Some(bytes) = self.bytes.get_mut(offset..offset.wrapping_add(B)) {
            bytes.copy_from_slice(&value);
        }
    }

    /// Reads a dword.
    #[inline(always)]
    pub fn read_u32(&self, offset: u32) -> u32 {
        u32::from_le_bytes(self.read(offset))
    }

    /// Writes a dword.
    #[inline(always)]
    pub fn write_u32(&mut self, offset: u32, value: u32) {
        self.write(offset, value.to_le_bytes());
    }

    /// Reads a quadword.
    #[inline(always)]
    pub fn read_u64(&self, offset: u32) -> u64 {
        u64::from_le_bytes(self.read(offset))
    }

    /// Writes a quadword.
    #[inline(always)]
    pub fn write_u64(&mut self, offset: u32, value: u64) {
        self.write(offset, value.to_le_bytes());
    }
}
