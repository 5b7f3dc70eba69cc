//! Packets that tell about work that has finished: fences, traps, timestamps.

use core::fmt;

use super::{Error, Op, Version, aligned, head, in_range, strict};
use crate::GpuAddr;
use crate::bits::layout;
use crate::emit::fixed;
use crate::packet::memory::addr;

layout! {
    fence { ADDR_31_0 = 1 [31:0]; ADDR_63_32 = 2 [31:0]; DATA = 3 [31:0]; }
    fence_v6 {
        MTYPE = 0 [18:16]; GCC = 0 [19:19]; SYS = 0 [20:20]; SNP = 0 [22:22]; GPA = 0 [23:23];
        L2_POLICY = 0 [25:24]; LLC_POLICY = 0 [26:26];
    }
    trap { INT_CONTEXT = 1 [27:0]; }
    timestamp { WRITE_ADDR_31_3 = 1 [31:3]; WRITE_ADDR_63_32 = 2 [31:0]; }
}

/// SDMA `FENCE`: stores a dword once earlier packets have finished.
#[doc(alias = "SDMA_PKT_FENCE")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Fence {
    version: Version,
    addr: GpuAddr,
    data: u32,
    /// The sixth generation's bits of the header, in place.
    attributes: u32,
}

/// `MTYPE_UC`: not cached.
const MTYPE_UC: u32 = 3;

impl Fence {
    /// Length of the packet.
    pub const DWORDS: usize = 4;

    /// Stores `data` at `addr`; on version 6 past the caches.
    ///
    /// # Errors
    /// [`Error::Misaligned`] unless `addr` is 4-byte aligned.
    pub const fn new(version: Version, addr: GpuAddr, data: u32) -> Result<Self, Error> {
        let attributes = if version.is_v6() { fence_v6::MTYPE.put(MTYPE_UC) } else { 0 };
        match aligned(Op::FENCE, addr, 4) {
            Ok(()) => Ok(Self { version, addr, data, attributes }),
            Err(error) => Err(error),
        }
    }

    /// The address is in system memory, and the store is snooped. No effect before version 6.
    pub const fn snooped_system(mut self) -> Self {
        if self.version.is_v6() {
            self.attributes |= fence_v6::SYS.mask() | fence_v6::SNP.mask();
        }
        self
    }

    /// Where it stores.
    pub const fn addr(self) -> GpuAddr {
        self.addr
    }

    /// What it stores.
    pub const fn data(self) -> u32 {
        self.data
    }

    /// The packet.
    pub const fn encode(self) -> [u32; Self::DWORDS] {
        [head(Op::FENCE) | self.attributes, self.addr.lo(), self.addr.hi(), self.data]
    }

    /// Reads the packet at the start of `words`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn decode(words: &[u32], version: Version) -> Result<Self, Error> {
        let [header, lo, hi, data] =
            strict(words, Op::FENCE, version, fence::FIELDS, fence_v6::FIELDS)?;
        let packet = Self::new(version, addr(lo, hi), data)?;
        Ok(Self { attributes: header & !0xFFFF, ..packet })
    }
}

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FENCE dst={} data={:#x}", self.addr, self.data)?;
        if self.attributes == 0 {
            return Ok(());
        }
        write!(f, " mtype={}", fence_v6::MTYPE.get(self.attributes))?;
        for (bits, text) in [(fence_v6::SYS, " system"), (fence_v6::SNP, " snooped")] {
            f.write_str(if bits.is_set(self.attributes) { text } else { "" })?;
        }
        Ok(())
    }
}

/// SDMA `TRAP`: interrupts.
#[doc(alias = "SDMA_PKT_TRAP")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Trap {
    context: u32,
}

impl Trap {
    /// Length of the packet.
    pub const DWORDS: usize = 2;

    /// Interrupts with `context`, which KFD takes for an event id.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for more than 28 bits.
    pub const fn new(context: u32) -> Result<Self, Error> {
        let max = trap::INT_CONTEXT.max() as u64;
        match in_range(Op::TRAP, "context id", context as u64, 0, max) {
            Ok(()) => Ok(Self { context }),
            Err(error) => Err(error),
        }
    }

    /// The context id.
    pub const fn context(self) -> u32 {
        self.context
    }

    /// The packet.
    pub const fn encode(self) -> [u32; Self::DWORDS] {
        [head(Op::TRAP), self.context]
    }

    /// Reads the packet at the start of `words`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn decode(words: &[u32], version: Version) -> Result<Self, Error> {
        let [_, context] = strict(words, Op::TRAP, version, trap::FIELDS, &[])?;
        Self::new(context)
    }
}

impl fmt::Display for Trap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TRAP context={}", self.context)
    }
}

/// SDMA `TIMESTAMP_GET` or `TIMESTAMP_GET_GLOBAL`: stores a 64-bit clock.
#[doc(alias = "SDMA_PKT_TIMESTAMP_GET_GLOBAL")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Timestamp {
    addr: GpuAddr,
    global: bool,
}

impl Timestamp {
    /// Length of the packet.
    pub const DWORDS: usize = 3;
    /// Alignment that other drivers insist on, bytes; the packet has room for multiples of 8.
    pub const ALIGN: u64 = 32;

    /// Stores the GPU's clock, the one of `RELEASE_MEM` and of KFD's clock counters, at `addr`.
    ///
    /// # Errors
    /// [`Error::Misaligned`] unless `addr` is a multiple of [`Self::ALIGN`].
    pub const fn global(addr: GpuAddr) -> Result<Self, Error> {
        match aligned(Op::TIMESTAMP_GET_GLOBAL, addr, Self::ALIGN) {
            Ok(()) => Ok(Self { addr, global: true }),
            Err(error) => Err(error),
        }
    }

    /// Stores the engine's own clock at `addr`.
    ///
    /// # Errors
    /// [`Error::Misaligned`] unless `addr` is a multiple of [`Self::ALIGN`].
    pub const fn local(addr: GpuAddr) -> Result<Self, Error> {
        match aligned(Op::TIMESTAMP_GET, addr, Self::ALIGN) {
            Ok(()) => Ok(Self { addr, global: false }),
            Err(error) => Err(error),
        }
    }

    /// Where it stores.
    pub const fn addr(self) -> GpuAddr {
        self.addr
    }

    /// Whether it is the GPU's clock and not the engine's.
    pub const fn is_global(self) -> bool {
        self.global
    }

    const fn op(self) -> Op {
        if self.global { Op::TIMESTAMP_GET_GLOBAL } else { Op::TIMESTAMP_GET }
    }

    /// The packet.
    pub const fn encode(self) -> [u32; Self::DWORDS] {
        [head(self.op()), self.addr.lo(), self.addr.hi()]
    }

    /// Reads the packet at the start of `words`; multiples of 8 will do for its address.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn decode(words: &[u32], version: Version) -> Result<Self, Error> {
        let global = words.first().is_none_or(|word| Op::of(*word) != Op::TIMESTAMP_GET);
        let op = Self { addr: GpuAddr::NULL, global }.op();
        let [_, lo, hi] = strict(words, op, version, timestamp::FIELDS, &[])?;
        Ok(Self { addr: addr(lo, hi), global })
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} dst={}", self.op(), self.addr)
    }
}

fixed!(SdmaPacket: Fence, Trap, Timestamp);
