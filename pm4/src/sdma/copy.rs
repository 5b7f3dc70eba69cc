//! `COPY_LINEAR`: copies bytes.

use core::fmt;

use super::{Error, Op, Version, head, in_range, narrow, policy, strict};
use crate::GpuAddr;
use crate::bits::layout;
use crate::emit::fixed;
use crate::packet::memory::addr;

layout! {
    copy_linear {
        COUNT = 1 [29:0]; SRC_ADDR_31_0 = 3 [31:0]; SRC_ADDR_63_32 = 4 [31:0];
        DST_ADDR_31_0 = 5 [31:0]; DST_ADDR_63_32 = 6 [31:0];
    }
    copy_linear_v6 { DST_CACHE_POLICY = 2 [20:18]; SRC_CACHE_POLICY = 2 [28:26]; }
}

/// SDMA `COPY_LINEAR`: copies bytes from one address to another. Ranges that overlap are copied in
/// no particular order.
#[doc(alias = "SDMA_PKT_COPY_LINEAR")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct CopyLinear {
    version: Version,
    src: GpuAddr,
    dst: GpuAddr,
    bytes: u32,
    src_policy: u8,
    dst_policy: u8,
}

impl CopyLinear {
    /// Length of the packet.
    pub const DWORDS: usize = 7;

    /// Copies `bytes` bytes from `src` to `dst`.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] unless `bytes` is 1 to [`Version::max_copy_bytes`].
    pub const fn new(
        version: Version,
        src: GpuAddr,
        dst: GpuAddr,
        bytes: u64,
    ) -> Result<Self, Error> {
        match in_range(Op::COPY_LINEAR, "byte count", bytes, 1, version.max_copy_bytes()) {
            Ok(()) => {
                let bytes = narrow(bytes, crate::Bits::new(31, 0));
                Ok(Self { version, src, dst, bytes, src_policy: 0, dst_policy: 0 })
            }
            Err(error) => Err(error),
        }
    }

    /// How the L2 treats the reads and the writes, AMD's codes 0 to 7.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for a greater code, or any but 0 before the sixth generation.
    pub fn policies(mut self, src: u8, dst: u8) -> Result<Self, Error> {
        self.src_policy = policy(Op::COPY_LINEAR, self.version, src)?;
        self.dst_policy = policy(Op::COPY_LINEAR, self.version, dst)?;
        Ok(self)
    }

    /// Where it reads.
    pub const fn src(self) -> GpuAddr {
        self.src
    }

    /// Where it writes.
    pub const fn dst(self) -> GpuAddr {
        self.dst
    }

    /// How many bytes.
    pub const fn bytes(self) -> u32 {
        self.bytes
    }

    /// The packet.
    pub const fn encode(self) -> [u32; Self::DWORDS] {
        let policies = copy_linear_v6::DST_CACHE_POLICY.put(self.dst_policy as u32)
            | copy_linear_v6::SRC_CACHE_POLICY.put(self.src_policy as u32);
        [
            head(Op::COPY_LINEAR),
            copy_linear::COUNT.put(self.bytes - 1),
            policies,
            self.src.lo(),
            self.src.hi(),
            self.dst.lo(),
            self.dst.hi(),
        ]
    }

    /// Reads the packet at the start of `words`.
    ///
    /// # Errors
    /// What is wrong with it. Broadcast, encryption, byte swaps and backward copies count as
    /// reserved.
    pub fn decode(words: &[u32], version: Version) -> Result<Self, Error> {
        let [_, count, policies, src, src_hi, dst, dst_hi] =
            strict(words, Op::COPY_LINEAR, version, copy_linear::FIELDS, copy_linear_v6::FIELDS)?;
        let bytes = u64::from(count) + 1;
        Self::new(version, addr(src, src_hi), addr(dst, dst_hi), bytes)?.policies(
            copy_linear_v6::SRC_CACHE_POLICY.byte(policies),
            copy_linear_v6::DST_CACHE_POLICY.byte(policies),
        )
    }
}

impl fmt::Display for CopyLinear {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { src, dst, bytes, .. } = self;
        write!(f, "COPY_LINEAR src={src} dst={dst} bytes={bytes:#x}")?;
        if self.src_policy != 0 || self.dst_policy != 0 {
            write!(f, " policy={}/{}", self.src_policy, self.dst_policy)?;
        }
        Ok(())
    }
}

fixed!(SdmaPacket: CopyLinear);
