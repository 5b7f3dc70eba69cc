//! The address range of `ACQUIRE_MEM`.

use core::fmt;

use super::memory::addr;
use super::only;
use crate::bits::layout;
use crate::{Error, GpuAddr, Opcode};

/// Addresses that `ACQUIRE_MEM` acts on, in its units of 256 bytes, and its poll interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    base: u64,
    blocks: u64,
    poll: u16,
}

layout! {
    /// The fields of both generations; `GCR_CNTL` is gfx10's and newer.
    acquire_mem {
        COHER_SIZE = 2 [31:0]; COHER_SIZE_HI = 3 [7:0]; COHER_BASE_LO = 4 [31:0];
        COHER_BASE_HI = 5 [23:0]; POLL_INTERVAL = 6 [15:0]; GCR_CNTL = 7 [18:0];
    }
}

const BLOCK_SHIFT: u32 = 8;
const SIZE_BITS: u64 = (1 << 40) - 1;
const BASE_HI_MASK: u32 = acquire_mem::COHER_BASE_HI.mask();

impl Range {
    pub(super) const ALL: Self = Self { base: 0, blocks: SIZE_BITS, poll: 10 };

    pub(super) const fn is_all(self) -> bool {
        self.base == 0 && self.blocks == SIZE_BITS
    }

    /// Every block that `bytes` bytes from `start` touch.
    pub(super) const fn of(self, start: GpuAddr, bytes: u64) -> Self {
        let base = start.get() >> BLOCK_SHIFT;
        let last = start.get().saturating_add(bytes.saturating_sub(1)) >> BLOCK_SHIFT;
        let blocks = last - base + 1;
        Self { base, blocks: if blocks > SIZE_BITS { SIZE_BITS } else { blocks }, ..self }
    }

    pub(super) const fn poll(self, poll: u16) -> Self {
        Self { poll, ..self }
    }

    pub(super) const fn words(self) -> [u32; 5] {
        let (size, base) = (GpuAddr::new(self.blocks), GpuAddr::new(self.base));
        [size.lo(), size.hi(), base.lo(), base.hi(), self.poll as u32]
    }

    pub(super) fn decode([size, size_hi, base, base_hi, poll]: [u32; 5]) -> Result<Self, Error> {
        let op = Opcode::ACQUIRE_MEM;
        only(op, 5, base_hi, BASE_HI_MASK)?;
        let poll = u16::try_from(poll).map_err(|_| Error::Reserved {
            opcode: op,
            dword: 6,
            word: poll,
            bits: poll & !0xFFFF,
        })?;
        // The field has 8 bits (24 on gfx900); drivers fill more to say "everything". With
        // blocks of 256 bytes, 8 bits reach over all 48 address bits.
        let blocks = addr(size, size_hi).get() & SIZE_BITS;
        Ok(Self { base: addr(base, base_hi).get(), blocks, poll })
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_all() {
            f.write_str(" range=all")
        } else {
            write!(f, " range={:#x}+{:#x}", self.base << BLOCK_SHIFT, self.blocks << BLOCK_SHIFT)
        }
    }
}

/// The builder methods that both generations' `AcquireMem` share.
macro_rules! range_methods {
    () => {
        /// Acts only on the 256-byte blocks that `bytes` bytes from `start` touch.
        pub const fn range(mut self, start: $crate::GpuAddr, bytes: u64) -> Self {
            self.range = self.range.of(start, bytes);
            self
        }

        /// Cycles between two looks at the caches, in units of 16 clocks.
        pub const fn poll_interval(mut self, interval: u16) -> Self {
            self.range = self.range.poll(interval);
            self
        }

        /// Whether it acts on all addresses.
        pub const fn covers_everything(self) -> bool {
            self.range.is_all()
        }
    };
}
pub(super) use range_methods;
