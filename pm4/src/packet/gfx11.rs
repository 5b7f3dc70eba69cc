//! What gfx11 (and gfx10 before it) does its own way.
//!
//! # Source
//! Linux drivers/gpu/drm/amd/amdgpu/nvd.h; docs/ABI.md §PM4.

use core::fmt;

use bitflags::bitflags;

use super::{body, only};
use crate::emit::fixed;
use crate::{Error, Header, Opcode};

bitflags! {
    /// `GCR_CNTL`: the caches that [`AcquireMem`] invalidates or writes back.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct Gcr: u32 {
        /// Instruction cache, all of it (field GLI_INV, value 1).
        const GLI_INV_ALL = 1;
        /// Instruction cache, the range only (field GLI_INV, value 2).
        const GLI_INV_RANGE = 1 << 1;
        /// Low bit of the L1's range mode.
        const GL1_RANGE_0 = 1 << 2;
        /// High bit of the L1's range mode.
        const GL1_RANGE_1 = 1 << 3;
        /// Writes the metadata cache back.
        const GLM_WB = 1 << 4;
        /// Invalidates the metadata cache.
        const GLM_INV = 1 << 5;
        /// Writes the scalar cache back.
        const GLK_WB = 1 << 6;
        /// Invalidates the scalar cache.
        const GLK_INV = 1 << 7;
        /// Invalidates the vector L0.
        const GLV_INV = 1 << 8;
        /// Invalidates the L1.
        const GL1_INV = 1 << 9;
        /// L2 unshared.
        const GL2_US = 1 << 10;
        /// Low bit of the L2's range mode.
        const GL2_RANGE_0 = 1 << 11;
        /// High bit of the L2's range mode.
        const GL2_RANGE_1 = 1 << 12;
        /// Discards dirty L2 lines.
        const GL2_DISCARD = 1 << 13;
        /// Invalidates the L2.
        const GL2_INV = 1 << 14;
        /// Writes the L2 back.
        const GL2_WB = 1 << 15;
        /// Runs the steps from the shader outwards (field SEQ, value 1).
        const SEQ_FORWARD = 1 << 16;
        /// Runs the steps from memory inwards (field SEQ, value 2).
        const SEQ_REVERSE = 2 << 16;
        /// The range is in physical addresses.
        const RANGE_IS_PA = 1 << 18;
    }
}

impl Gcr {
    /// Every cache: written back where it holds data, then invalidated.
    pub const ALL: Self = Self::GLI_INV_ALL
        .union(Self::GLM_WB)
        .union(Self::GLM_INV)
        .union(Self::GLK_WB)
        .union(Self::GLK_INV)
        .union(Self::GLV_INV)
        .union(Self::GL1_INV)
        .union(Self::GL2_INV)
        .union(Self::GL2_WB);
}

bitflags! {
    /// Cache actions of [`ReleaseMem`](super::ReleaseMem), in place in its dword 1.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct ReleaseCache: u32 {
        /// Writes the metadata cache back.
        const GLM_WB = 1 << 12;
        /// Invalidates the metadata cache.
        const GLM_INV = 1 << 13;
        /// Invalidates the vector L0.
        const GLV_INV = 1 << 14;
        /// Invalidates the L1.
        const GL1_INV = 1 << 15;
        /// L2 unshared.
        const GL2_US = 1 << 16;
        /// Low bit of the L2's range mode.
        const GL2_RANGE_0 = 1 << 17;
        /// High bit of the L2's range mode.
        const GL2_RANGE_1 = 1 << 18;
        /// Discards dirty L2 lines.
        const GL2_DISCARD = 1 << 19;
        /// Invalidates the L2.
        const GL2_INV = 1 << 20;
        /// Writes the L2 back.
        const GL2_WB = 1 << 21;
        /// Runs the steps from the shader outwards (field SEQ, value 1).
        const SEQ_FORWARD = 1 << 22;
        /// Runs the steps from memory inwards (field SEQ, value 2).
        const SEQ_REVERSE = 2 << 22;
    }
}

/// PM4 `ACQUIRE_MEM` of gfx11: invalidates caches before later work.
#[doc(alias = "PACKET3_ACQUIRE_MEM")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct AcquireMem {
    pub(super) cache: Gcr,
    pub(super) range: super::range::Range,
}

impl AcquireMem {
    /// Length of the packet.
    pub const DWORDS: usize = 8;

    /// Acts on `cache`, over all addresses.
    pub const fn new(cache: Gcr) -> Self {
        Self { cache, range: super::range::Range::ALL }
    }

    super::range::range_methods!();

    /// The caches acted on.
    pub const fn cache(self) -> Gcr {
        self.cache
    }

    /// The packet.
    pub const fn encode(self) -> [u32; Self::DWORDS] {
        let header = Header::new(Opcode::ACQUIRE_MEM, Self::DWORDS).word();
        let [size, size_hi, base, base_hi, poll] = self.range.words();
        [header, 0, size, size_hi, base, base_hi, poll, self.cache.bits()]
    }

    /// Reads the packet at the start of `words`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn decode(words: &[u32]) -> Result<Self, Error> {
        let [engine, size, size_hi, base, base_hi, poll, gcr] =
            body::<7>(words, Opcode::ACQUIRE_MEM)?;
        // Bit 31 selects the engine; it has no meaning on a compute queue.
        only(Opcode::ACQUIRE_MEM, 1, engine, 1 << 31)?;
        only(Opcode::ACQUIRE_MEM, 7, gcr, Gcr::all().bits())?;
        let range = super::range::Range::decode([size, size_hi, base, base_hi, poll])?;
        Ok(Self { cache: Gcr::from_bits_truncate(gcr), range })
    }
}

impl fmt::Display for AcquireMem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ACQUIRE_MEM gcr=")?;
        bitflags::parser::to_writer(&self.cache, &mut *f)?;
        write!(f, "{}", self.range)
    }
}

fixed!(Pm4Packet: AcquireMem);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acquire_mem_reads_the_worked_example() {
        // docs/ABI.md §PM4, worked example E7.
        let words = [0xc006_5800, 0, 0xffff_ffff, 0x01ff_ffff, 0, 0, 0xa, 0xc3f1];
        let packet = AcquireMem::decode(&words).unwrap();
        assert_eq!(packet, AcquireMem::new(Gcr::ALL));
        assert!(packet.covers_everything());
        assert_eq!(packet.encode(), [0xc006_5800, 0, 0xffff_ffff, 0xff, 0, 0, 0xa, 0xc3f1]);
    }

    #[test]
    fn acquire_mem_of_gfx9_is_refused_by_its_length() {
        let words = super::super::gfx9::AcquireMem::new(super::super::gfx9::AcquireCache::ALL);
        assert_eq!(
            AcquireMem::decode(&words.encode()),
            Err(Error::Length { opcode: Opcode::ACQUIRE_MEM, expected: 8, found: 7 })
        );
    }
}
