//! What gfx900, gfx906, gfx908, gfx90a and gfx942 do their own way.
//!
//! # Source
//! Linux drivers/gpu/drm/amd/amdgpu/soc15d.h; docs/ABI.md §PM4.

use core::fmt;

use bitflags::bitflags;

use super::{body, only};
use crate::emit::fixed;
use crate::{Error, Header, Opcode};

bitflags! {
    /// `CP_COHER_CNTL`: the caches that [`AcquireMem`] invalidates or writes back.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct AcquireCache: u32 {
        /// Only non-coherent L2 lines.
        const TC_NC = 1 << 3;
        /// Only write-combined L2 lines.
        const TC_WC = 1 << 4;
        /// L2 metadata.
        const TC_INV_METADATA = 1 << 5;
        /// Volatile lines of the vector L1.
        const TCL1_VOL = 1 << 15;
        /// Writes the L2 back.
        const TC_WB = 1 << 18;
        /// Vector L1.
        const TCL1 = 1 << 22;
        /// L2.
        const TC = 1 << 23;
        /// Scalar cache.
        const SH_KCACHE = 1 << 27;
        /// Volatile lines of the scalar cache.
        const SH_KCACHE_VOL = 1 << 28;
        /// Instruction cache.
        const SH_ICACHE = 1 << 29;
        /// Writes the scalar cache back.
        const SH_KCACHE_WB = 1 << 30;
    }
}

bitflags! {
    /// Cache actions of [`ReleaseMem`](super::ReleaseMem), in place in its dword 1.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct ReleaseCache: u32 {
        /// Invalidates volatile lines of the vector L1.
        const TCL1_VOL = 1 << 12;
        /// Invalidates volatile lines of the L2.
        const TC_VOL = 1 << 13;
        /// Writes the L2 back.
        const TC_WB = 1 << 15;
        /// Invalidates the vector L1.
        const TCL1 = 1 << 16;
        /// Invalidates the L2.
        const TC = 1 << 17;
        /// Only non-coherent L2 lines.
        const TC_NC = 1 << 19;
        /// Only write-combined L2 lines.
        const TC_WC = 1 << 20;
        /// L2 metadata.
        const TC_MD = 1 << 21;
    }
}

impl AcquireCache {
    /// Every cache: L2 written back, then all of them invalidated.
    pub const ALL: Self =
        Self::SH_ICACHE.union(Self::SH_KCACHE).union(Self::TC).union(Self::TCL1).union(Self::TC_WB);
}

/// PM4 `ACQUIRE_MEM` of gfx9: invalidates caches before later work.
#[doc(alias = "PACKET3_ACQUIRE_MEM")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct AcquireMem {
    pub(super) cache: AcquireCache,
    pub(super) range: super::range::Range,
}

impl AcquireMem {
    /// Length of the packet.
    pub const DWORDS: usize = 7;

    /// Acts on `cache`, over all addresses.
    pub const fn new(cache: AcquireCache) -> Self {
        Self { cache, range: super::range::Range::ALL }
    }

    super::range::range_methods!();

    /// The caches acted on.
    pub const fn cache(self) -> AcquireCache {
        self.cache
    }

    /// The packet.
    pub const fn encode(self) -> [u32; Self::DWORDS] {
        let header = Header::new(Opcode::ACQUIRE_MEM, Self::DWORDS).compute().word();
        let [size, size_hi, base, base_hi, poll] = self.range.words();
        [header, self.cache.bits(), size, size_hi, base, base_hi, poll]
    }

    /// Reads the packet at the start of `words`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn decode(words: &[u32]) -> Result<Self, Error> {
        let [cache, range @ ..] = body::<6>(words, Opcode::ACQUIRE_MEM)?;
        // Bit 31 selects the engine; it has no meaning on a compute queue.
        only(Opcode::ACQUIRE_MEM, 1, cache, AcquireCache::all().bits() | 1 << 31)?;
        let cache = AcquireCache::from_bits_truncate(cache);
        Ok(Self { cache, range: super::range::Range::decode(range)? })
    }
}

impl fmt::Display for AcquireMem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ACQUIRE_MEM cache=")?;
        bitflags::parser::to_writer(&self.cache, &mut *f)?;
        write!(f, "{}", self.range)
    }
}

fixed!(Pm4Packet: AcquireMem);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::GpuAddr;

    #[test]
    fn acquire_mem_reads_the_worked_example() {
        // docs/ABI.md §PM4, worked example E6.
        let words = [0xc005_5802, 0x28c4_0000, 0xffff_ffff, 0x00ff_ffff, 0, 0, 0xa];
        let packet = AcquireMem::decode(&words).unwrap();
        assert_eq!(packet.cache(), AcquireCache::ALL);
        assert!(packet.covers_everything());
        // The size field has 8 bits in dword 3: that is what goes out.
        let all = AcquireMem::new(AcquireCache::ALL).encode();
        assert_eq!(all, [0xc005_5802, 0x28c4_0000, 0xffff_ffff, 0xff, 0, 0, 0xa]);
        assert_eq!(AcquireMem::decode(&all).unwrap(), packet);
    }

    #[test]
    fn acquire_mem_covers_every_block_that_a_range_touches() {
        let packet = AcquireMem::new(AcquireCache::SH_ICACHE).range(GpuAddr::new(0x1_0000_01ff), 2);
        // From block 0x100000_1 through block 0x100000_2: two blocks of 256 bytes.
        assert_eq!(packet.encode()[2..6], [2, 0, 0x0100_0001, 0]);
        assert!(!packet.covers_everything());
    }

    #[test]
    fn acquire_mem_refuses_an_undefined_cache_bit() {
        let mut words = AcquireMem::new(AcquireCache::ALL).encode();
        words[1] |= 1;
        assert!(matches!(
            AcquireMem::decode(&words),
            Err(Error::Reserved { dword: 1, bits: 1, .. })
        ));
    }
}
