//! Caches and the host data path.

use core::fmt;

use super::{Error, Op, Version, head, strict};
use crate::GpuAddr;
use crate::bits::layout;
use crate::emit::fixed;
use crate::packet::gfx11::Gcr;
use crate::packet::memory::addr;

layout! {
    gcr_req {
        BASE_VA_31_7 = 1 [31:7]; BASE_VA_47_32 = 2 [15:0]; GCR_CONTROL_15_0 = 2 [31:16];
        GCR_CONTROL_18_16 = 3 [2:0]; LIMIT_VA_31_7 = 3 [31:7]; LIMIT_VA_47_32 = 4 [15:0];
    }
}

/// SDMA `GCR_REQ`: writes caches back or invalidates them. gfx10 and newer.
#[doc(alias = "SDMA_PKT_GCR_REQ")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct GcrReq {
    control: Gcr,
    base: GpuAddr,
    limit: GpuAddr,
}

impl GcrReq {
    /// Length of the packet.
    pub const DWORDS: usize = 5;
    /// Before a copy: L2 and scalar cache written back, then they and the vector caches invalidated.
    pub const BEFORE_COPY: Gcr = Gcr::GL2_WB
        .union(Gcr::GL2_INV)
        .union(Gcr::GL1_INV)
        .union(Gcr::GLV_INV)
        .union(Gcr::GLK_WB)
        .union(Gcr::GLK_INV);
    /// After a copy: L2 and scalar cache written back.
    pub const AFTER_COPY: Gcr = Gcr::GL2_WB.union(Gcr::GLK_WB);

    /// Acts as `control` says on all addresses.
    ///
    /// # Errors
    /// [`Error::NotOnVersion`] before version 6.
    pub const fn new(version: Version, control: Gcr) -> Result<Self, Error> {
        if !version.is_v6() {
            return Err(Error::NotOnVersion { packet: Op::GCR_REQ, version });
        }
        Ok(Self { control, base: GpuAddr::NULL, limit: GpuAddr::NULL })
    }

    /// The range from `base` to `limit`, for the range modes of `control`.
    ///
    /// # Errors
    /// [`Error::Misaligned`] unless both are multiples of 128 below 2^48.
    pub const fn range(mut self, base: GpuAddr, limit: GpuAddr) -> Result<Self, Error> {
        let all = GpuAddr::new(base.get() | limit.get());
        if all.hi() > gcr_req::BASE_VA_47_32.max() || !all.is_aligned(128) {
            return Err(Error::Misaligned { packet: Op::GCR_REQ, addr: all, align: 128 });
        }
        self.base = base;
        self.limit = limit;
        Ok(self)
    }

    /// What it does.
    pub const fn control(self) -> Gcr {
        self.control
    }

    /// The packet.
    pub const fn encode(self) -> [u32; Self::DWORDS] {
        use gcr_req as g;
        let control = self.control.bits();
        [
            head(Op::GCR_REQ),
            self.base.lo(),
            self.base.hi() | g::GCR_CONTROL_15_0.put(control),
            self.limit.lo() | g::GCR_CONTROL_18_16.put(control >> 16),
            self.limit.hi(),
        ]
    }

    /// Reads the packet at the start of `words`.
    ///
    /// # Errors
    /// What is wrong with it. The VMID belongs to the kernel and counts as reserved.
    pub fn decode(words: &[u32], version: Version) -> Result<Self, Error> {
        use gcr_req as g;
        let [_, base, base_hi, limit, limit_hi] =
            strict(words, Op::GCR_REQ, version, g::FIELDS, &[])?;
        let control = g::GCR_CONTROL_15_0.get(base_hi) | g::GCR_CONTROL_18_16.get(limit) << 16;
        Self::new(version, Gcr::from_bits_retain(control))?.range(
            addr(base, g::BASE_VA_47_32.get(base_hi)),
            addr(limit & g::LIMIT_VA_31_7.mask(), limit_hi),
        )
    }
}

impl fmt::Display for GcrReq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GCR_REQ gcr=")?;
        bitflags::parser::to_writer(&self.control, &mut *f)?;
        if self.base == GpuAddr::NULL && self.limit == GpuAddr::NULL {
            return Ok(());
        }
        write!(f, " range={}..{}", self.base, self.limit)
    }
}

/// SDMA's flush of the host data path: a `POLL_REGMEM` with an address that stands for it.
///
/// After CPU writes to the GPU's memory over PCIe. Not for memory behind xGMI, not on gfx101x; gfx9
/// needs engine firmware 0x1A5 or newer.
#[doc(alias = "SDMA_PKT_HDP_FLUSH")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct HdpFlush;

impl HdpFlush {
    /// Length of the packet.
    pub const DWORDS: usize = 6;

    /// The packet.
    pub const fn encode(self) -> [u32; Self::DWORDS] {
        [head(Op::POLL_REGMEM), 0, 0x8000_0000, 0, 0, 0]
    }

    /// Whether `words` begin with it.
    pub fn is_at(words: &[u32]) -> bool {
        words.starts_with(&Self.encode())
    }
}

impl fmt::Display for HdpFlush {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HDP_FLUSH")
    }
}

fixed!(SdmaPacket: GcrReq, HdpFlush);
