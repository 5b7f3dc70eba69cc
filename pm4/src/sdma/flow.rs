//! Packets that change which packets run: NOPs, indirect buffers, conditions.

use core::fmt;

use super::{Error, Op, Version, aligned, head, in_range, policy, strict};
use crate::GpuAddr;
use crate::bits::layout;
use crate::emit::{Encode, SdmaPacket, fixed};
use crate::packet::memory::addr;

layout! {
    nop { COUNT = 0 [29:16]; }
    indirect {
        IB_BASE_31_0 = 1 [31:5]; IB_BASE_63_32 = 2 [31:0]; IB_SIZE = 3 [19:0];
        CSA_ADDR_31_0 = 4 [31:0]; CSA_ADDR_63_32 = 5 [31:0];
    }
    cond_exe {
        ADDR_31_0 = 1 [31:0]; ADDR_63_32 = 2 [31:0]; REFERENCE = 3 [31:0]; EXEC_COUNT = 4 [13:0];
    }
    cond_exe_v6 { CACHE_POLICY = 0 [26:24]; }
}

/// SDMA `NOP`: skips itself and the dwords it counts. A zero dword is a NOP of one dword.
#[doc(alias = "SDMA_PKT_NOP")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Nop<'a> {
    payload: &'a [u32],
}

impl<'a> Nop<'a> {
    /// Most dwords one NOP has, itself included.
    pub const MAX_DWORDS: usize = nop::COUNT.max() as usize + 1;

    /// Header of a NOP of `dwords` dwords in all; `None` for 0 or more than [`Self::MAX_DWORDS`].
    #[allow(clippy::cast_possible_truncation)] // checked to have 14 bits
    pub const fn header(dwords: usize) -> Option<u32> {
        match dwords {
            1..=Self::MAX_DWORDS => Some(nop::COUNT.put(dwords as u32 - 1)),
            _ => None,
        }
    }

    /// A NOP that carries `payload`.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if `payload` does not fit a packet.
    pub const fn new(payload: &'a [u32]) -> Result<Self, Error> {
        let max = Self::MAX_DWORDS as u64 - 1;
        match in_range(Op::NOP, "dword count", payload.len() as u64, 0, max) {
            Ok(()) => Ok(Self { payload }),
            Err(error) => Err(error),
        }
    }

    /// The dwords it skips.
    pub const fn payload(self) -> &'a [u32] {
        self.payload
    }

    /// Reads the packet at the start of `words`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn decode(words: &'a [u32], version: Version) -> Result<Self, Error> {
        let [header] = strict(words, Op::NOP, version, nop::FIELDS, &[])?;
        let needed = 1 + nop::COUNT.get(header) as usize;
        let payload = words.get(1..needed);
        Ok(Self { payload: payload.ok_or(Error::Truncated { needed, found: words.len() })? })
    }
}

impl Encode for Nop<'_> {
    fn dwords(&self) -> usize {
        1 + self.payload.len()
    }

    fn emit(&self, mut put: impl FnMut(&[u32])) {
        put(&[Self::header(self.dwords()).unwrap_or_default()]);
        put(self.payload);
    }
}

impl SdmaPacket for Nop<'_> {}

impl fmt::Display for Nop<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NOP skips {} dwords", self.payload.len())
    }
}

/// SDMA `INDIRECT`: runs another buffer. In a ring it must end on a multiple of 8 dwords:
/// [`super::indirect_padding`].
#[doc(alias = "SDMA_PKT_INDIRECT")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Indirect {
    base: GpuAddr,
    dwords: u32,
    save_area: GpuAddr,
}

impl Indirect {
    /// Length of the packet.
    pub const DWORDS: usize = 6;
    /// Most dwords a buffer can have.
    pub const MAX_BUFFER_DWORDS: u32 = indirect::IB_SIZE.max();

    /// Runs `dwords` dwords at `base`.
    ///
    /// # Errors
    /// [`Error::Misaligned`] unless `base` is a multiple of 32; [`Error::OutOfRange`] for an empty
    /// buffer or one over [`Self::MAX_BUFFER_DWORDS`].
    pub const fn new(base: GpuAddr, dwords: u32) -> Result<Self, Error> {
        if let Err(error) = aligned(Op::INDIRECT, base, 32) {
            return Err(error);
        }
        let max = Self::MAX_BUFFER_DWORDS as u64;
        match in_range(Op::INDIRECT, "dword count", dwords as u64, 1, max) {
            Ok(()) => Ok(Self { base, dwords, save_area: GpuAddr::NULL }),
            Err(error) => Err(error),
        }
    }

    /// Where a preempted buffer's state goes (`CSA_ADDR`); null for none.
    pub const fn save_area(mut self, addr: GpuAddr) -> Self {
        self.save_area = addr;
        self
    }

    /// Where the buffer is.
    pub const fn base(self) -> GpuAddr {
        self.base
    }

    /// Length of the buffer in dwords.
    pub const fn buffer_dwords(self) -> u32 {
        self.dwords
    }

    /// The packet.
    pub const fn encode(self) -> [u32; Self::DWORDS] {
        let (base, area) = (self.base, self.save_area);
        [head(Op::INDIRECT), base.lo(), base.hi(), self.dwords, area.lo(), area.hi()]
    }

    /// Reads the packet at the start of `words`.
    ///
    /// # Errors
    /// What is wrong with it. VMID and privilege belong to the kernel and count as reserved.
    pub fn decode(words: &[u32], version: Version) -> Result<Self, Error> {
        let [_, lo, hi, dwords, area, area_hi] =
            strict(words, Op::INDIRECT, version, indirect::FIELDS, &[])?;
        Ok(Self::new(addr(lo, hi), dwords)?.save_area(addr(area, area_hi)))
    }
}

impl fmt::Display for Indirect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "INDIRECT base={} dwords={}", self.base, self.dwords)?;
        if self.save_area == GpuAddr::NULL {
            return Ok(());
        }
        write!(f, " save_area={}", self.save_area)
    }
}

/// SDMA `COND_EXE`: skips dwords unless a dword in memory equals a reference.
#[doc(alias = "SDMA_PKT_COND_EXE")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct CondExe {
    addr: GpuAddr,
    reference: u32,
    count: u32,
    policy: u8,
}

impl CondExe {
    /// Length of the packet.
    pub const DWORDS: usize = 5;

    /// Runs the next `count` dwords only if the dword at `addr` is `reference`.
    ///
    /// # Errors
    /// [`Error::Misaligned`] unless `addr` is 4-byte aligned; [`Error::OutOfRange`] for a count of
    /// more than 14 bits.
    pub const fn new(addr: GpuAddr, reference: u32, count: u32) -> Result<Self, Error> {
        if let Err(error) = aligned(Op::COND_EXE, addr, 4) {
            return Err(error);
        }
        let max = cond_exe::EXEC_COUNT.max() as u64;
        match in_range(Op::COND_EXE, "dword count", count as u64, 0, max) {
            Ok(()) => Ok(Self { addr, reference, count, policy: 0 }),
            Err(error) => Err(error),
        }
    }

    /// Where the dword is, and what it must be.
    pub const fn condition(self) -> (GpuAddr, u32) {
        (self.addr, self.reference)
    }

    /// Dwords that run only then.
    pub const fn skips(self) -> u32 {
        self.count
    }

    /// The packet.
    pub const fn encode(self) -> [u32; Self::DWORDS] {
        let header = head(Op::COND_EXE) | cond_exe_v6::CACHE_POLICY.put(self.policy as u32);
        [header, self.addr.lo(), self.addr.hi(), self.reference, self.count]
    }

    /// Reads the packet at the start of `words`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn decode(words: &[u32], version: Version) -> Result<Self, Error> {
        let [header, lo, hi, reference, count] =
            strict(words, Op::COND_EXE, version, cond_exe::FIELDS, cond_exe_v6::FIELDS)?;
        let packet = Self::new(addr(lo, hi), reference, count)?;
        let code = cond_exe_v6::CACHE_POLICY.byte(header);
        Ok(Self { policy: policy(Op::COND_EXE, version, code)?, ..packet })
    }
}

impl fmt::Display for CondExe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { addr, reference, count, .. } = self;
        write!(f, "COND_EXE memory={addr} reference={reference:#x} dwords={count}")
    }
}

fixed!(SdmaPacket: Indirect, CondExe);
