//! `COPY_BROADCAST_LINEAR`: copies bytes to two places.

use core::fmt;

use super::{Error, Op, Version, head, in_range, narrow, strict};
use crate::GpuAddr;
use crate::bits::layout;
use crate::emit::fixed;
use crate::packet::memory::addr;

layout! {
    /// Source: `SDMA_PKT_COPY_BROADCAST_LINEAR` in vega10_sdma_pkt_open.h and
    /// sdma_v6_0_0_pkt_open.h; docs/ABI.md §SDMA packets.
    copy_broadcast {
        BROADCAST = 0 [27:27]; COUNT = 1 [29:0]; SRC_ADDR_31_0 = 3 [31:0];
        SRC_ADDR_63_32 = 4 [31:0]; DST1_ADDR_31_0 = 5 [31:0]; DST1_ADDR_63_32 = 6 [31:0];
        DST2_ADDR_31_0 = 7 [31:0]; DST2_ADDR_63_32 = 8 [31:0];
    }
}

/// SDMA `COPY_LINEAR` with the broadcast bit: copies bytes to two places, read once.
#[doc(alias = "SDMA_PKT_COPY_BROADCAST_LINEAR")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct CopyBroadcast {
    src: GpuAddr,
    dst: [GpuAddr; 2],
    bytes: u32,
}

impl CopyBroadcast {
    /// Length of the packet.
    pub const DWORDS: usize = 9;

    /// Copies `bytes` bytes from `src` to both of `dst`, which are at any addresses.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] unless `bytes` is 1 to [`Version::max_copy_bytes`].
    pub const fn new(
        version: Version,
        src: GpuAddr,
        dst: [GpuAddr; 2],
        bytes: u64,
    ) -> Result<Self, Error> {
        match in_range(Op::COPY_LINEAR, "byte count", bytes, 1, version.max_copy_bytes()) {
            Ok(()) => Ok(Self { src, dst, bytes: narrow(bytes, crate::Bits::new(31, 0)) }),
            Err(error) => Err(error),
        }
    }

    /// Where the bytes are.
    pub const fn src(self) -> GpuAddr {
        self.src
    }

    /// Where they go.
    pub const fn dst(self) -> [GpuAddr; 2] {
        self.dst
    }

    /// How many.
    pub const fn bytes(self) -> u32 {
        self.bytes
    }

    /// The packet.
    pub const fn encode(self) -> [u32; Self::DWORDS] {
        let [first, second] = self.dst;
        [
            head(Op::COPY_LINEAR) | copy_broadcast::BROADCAST.mask(),
            copy_broadcast::COUNT.put(self.bytes - 1),
            0,
            self.src.lo(),
            self.src.hi(),
            first.lo(),
            first.hi(),
            second.lo(),
            second.hi(),
        ]
    }

    /// Whether the `COPY_LINEAR` with this header is one.
    pub(super) const fn is_at(header: u32) -> bool {
        copy_broadcast::BROADCAST.is_set(header)
    }

    /// Reads the packet at the start of `words`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn decode(words: &[u32], version: Version) -> Result<Self, Error> {
        let [_, count, _, src, src_hi, dst1, dst1_hi, dst2, dst2_hi] =
            strict(words, Op::COPY_LINEAR, version, copy_broadcast::FIELDS, &[])?;
        let dst = [addr(dst1, dst1_hi), addr(dst2, dst2_hi)];
        Self::new(version, addr(src, src_hi), dst, u64::from(count) + 1)
    }
}

impl fmt::Display for CopyBroadcast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { src, dst: [first, second], bytes } = self;
        write!(f, "COPY_BROADCAST_LINEAR src={src} dst={first},{second} bytes={bytes:#x}")
    }
}

fixed!(SdmaPacket: CopyBroadcast);
