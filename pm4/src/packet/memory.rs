//! `WRITE_DATA`, and what packets that touch memory share.

use core::fmt;

use super::{only, split};
use crate::bits::layout;
use crate::emit::{Encode, Pm4Packet, fixed};
use crate::{Error, GpuAddr, Header, Opcode};

/// How the L2 treats an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct CachePolicy(pub u8);

impl CachePolicy {
    /// Kept like any other line.
    pub const LRU: Self = Self(0);
    /// First to go.
    pub const STREAM: Self = Self(1);
    /// Not allocated.
    pub const BYPASS: Self = Self(2);
}

layout! {
    write_data {
        DST_SEL = 1 [11:8]; ADDR_INCR = 1 [16:16]; WR_CONFIRM = 1 [20:20];
        CACHE_POLICY = 1 [26:25]; DST_MEM_ADDR_LO = 2 [31:2]; DST_MEM_ADDR_HI = 3 [31:0];
    }
}

pub(crate) fn addr(lo: u32, hi: u32) -> GpuAddr {
    GpuAddr::new(u64::from(hi) << 32 | u64::from(lo))
}

/// Where `WRITE_DATA` stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct DataDst(pub u8);

impl DataDst {
    /// A register.
    pub const REGISTER: Self = Self(0);
    /// Memory, through the L2.
    pub const TC_L2: Self = Self(2);
    /// Global data share.
    pub const GDS: Self = Self(3);
    /// Memory, past the L2.
    pub const MEMORY: Self = Self(5);
}

const DST_SHIFT: u32 = write_data::DST_SEL.low();
const ONE_ADDRESS: u32 = write_data::ADDR_INCR.mask();
const WR_CONFIRM: u32 = write_data::WR_CONFIRM.mask();
const POLICY_SHIFT: u32 = write_data::CACHE_POLICY.low();

/// PM4 `WRITE_DATA` of one dword: stores it to memory through the L2.
#[doc(alias = "PACKET3_WRITE_DATA")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct WriteData {
    dst: GpuAddr,
    value: u32,
    confirm: bool,
}

impl WriteData {
    /// Length of the packet.
    pub const DWORDS: usize = 5;

    /// Stores `value` at `dst`.
    ///
    /// # Errors
    /// [`Error::Misaligned`] unless `dst` is 4-byte aligned.
    pub const fn new(dst: GpuAddr, value: u32) -> Result<Self, Error> {
        if !dst.is_aligned(4) {
            return Err(Error::Misaligned { opcode: Opcode::WRITE_DATA, addr: dst, align: 4 });
        }
        Ok(Self { dst, value, confirm: false })
    }

    /// Waits until memory has acknowledged the store.
    pub const fn confirm(mut self) -> Self {
        self.confirm = true;
        self
    }

    /// The packet.
    pub const fn encode(self) -> [u32; Self::DWORDS] {
        let control = (DataDst::TC_L2.0 as u32) << DST_SHIFT | (self.confirm as u32) << 20;
        let header = Header::new(Opcode::WRITE_DATA, Self::DWORDS).word();
        [header, control, self.dst.lo(), self.dst.hi(), self.value]
    }
}

/// PM4 `WRITE_DATA` of any length and destination, as decoded from a buffer.
#[doc(alias = "PACKET3_WRITE_DATA")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[must_use]
pub struct WriteBlock<'a> {
    /// Kind of destination.
    pub kind: DataDst,
    /// Where the first dword goes: bytes in memory, dwords for a register.
    pub dst: GpuAddr,
    /// What is stored.
    pub data: &'a [u32],
    /// Every dword goes to the same address.
    pub one_address: bool,
    /// Waits for the acknowledgement.
    pub confirm: bool,
    /// How the L2 treats the stores.
    pub policy: CachePolicy,
}

impl<'a> WriteBlock<'a> {
    /// Most dwords of data in one packet.
    pub const MAX_DATA: usize = Header::MAX_DWORDS - 4;

    /// Stores `data` at `dst`, through the L2.
    ///
    /// # Errors
    /// [`Error::Misaligned`] unless `dst` is 4-byte aligned; [`Error::TooLong`] without data or
    /// with more than [`Self::MAX_DATA`] dwords.
    pub const fn new(dst: GpuAddr, data: &'a [u32]) -> Result<Self, Error> {
        let opcode = Opcode::WRITE_DATA;
        if !dst.is_aligned(4) {
            return Err(Error::Misaligned { opcode, addr: dst, align: 4 });
        }
        if data.is_empty() || data.len() > Self::MAX_DATA {
            return Err(Error::TooLong { opcode, found: data.len(), max: Self::MAX_DATA });
        }
        let (kind, policy) = (DataDst::TC_L2, CachePolicy::LRU);
        Ok(Self { kind, dst, data, one_address: false, confirm: false, policy })
    }

    /// Waits until memory has acknowledged the stores.
    pub const fn confirm(mut self) -> Self {
        self.confirm = true;
        self
    }

    /// Length of the packet in dwords.
    pub const fn dwords(self) -> usize {
        4 + self.data.len()
    }

    const fn front(self) -> [u32; 4] {
        let control = (self.kind.0 as u32 & 0xF) << DST_SHIFT
            | if self.one_address { ONE_ADDRESS } else { 0 }
            | if self.confirm { WR_CONFIRM } else { 0 }
            | (self.policy.0 as u32 & 3) << POLICY_SHIFT;
        let header = Header::new(Opcode::WRITE_DATA, self.dwords()).word();
        [header, control, self.dst.lo(), self.dst.hi()]
    }

    /// Writes the packet to the start of `out` and returns its length in dwords.
    ///
    /// # Errors
    /// [`Error::Truncated`] if `out` is too short, [`Error::TooLong`] without data or with more
    /// than [`Self::MAX_DATA`] dwords.
    pub fn encode_into(self, out: &mut [u32]) -> Result<usize, Error> {
        let (needed, found) = (self.dwords(), out.len());
        if self.data.is_empty() || self.data.len() > Self::MAX_DATA {
            return Err(Error::TooLong {
                opcode: Opcode::WRITE_DATA,
                found: self.data.len(),
                max: Self::MAX_DATA,
            });
        }
        let out = out.get_mut(..needed).ok_or(Error::Truncated { needed, found })?;
        let front = self.front();
        out.iter_mut().zip(front.iter().chain(self.data)).for_each(|(to, from)| *to = *from);
        Ok(needed)
    }

    /// Reads the packet at the start of `words`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn decode(words: &'a [u32]) -> Result<Self, Error> {
        let (header, body) = split(words)?;
        let (opcode, found) = (header.opcode(), header.dwords());
        if opcode != Opcode::WRITE_DATA {
            return Err(Error::WrongOpcode { expected: Opcode::WRITE_DATA, found: opcode });
        }
        let [control, lo, hi, data @ ..] = body else {
            return Err(Error::Length { opcode, expected: 5, found });
        };
        if data.is_empty() {
            return Err(Error::Length { opcode, expected: 5, found });
        }
        let defined = 0xF << DST_SHIFT | ONE_ADDRESS | WR_CONFIRM | 3 << POLICY_SHIFT;
        only(opcode, 1, *control, defined)?;
        let [_, kind, _, policy] = control.to_le_bytes();
        let kind = DataDst(kind & 0xF);
        let dst = addr(*lo, *hi);
        if kind != DataDst::REGISTER && !dst.is_aligned(4) {
            return Err(Error::Misaligned { opcode, addr: dst, align: 4 });
        }
        Ok(Self {
            kind,
            dst,
            data,
            one_address: control & ONE_ADDRESS != 0,
            confirm: control & WR_CONFIRM != 0,
            policy: CachePolicy((policy >> 1) & 3),
        })
    }
}

impl fmt::Display for WriteBlock<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let to = match self.kind {
            DataDst::REGISTER => "register",
            DataDst::TC_L2 => "l2",
            DataDst::GDS => "gds",
            DataDst::MEMORY => "memory",
            _ => "unknown",
        };
        write!(f, "WRITE_DATA to={to} dst={} dwords={}", self.dst, self.data.len())?;
        if let Some(first) = self.data.first() {
            write!(f, " first={first:#x}")?;
        }
        if self.one_address {
            f.write_str(" one-address")?;
        }
        if self.confirm { f.write_str(" confirm") } else { Ok(()) }
    }
}

fixed!(Pm4Packet: WriteData);

impl Encode for WriteBlock<'_> {
    fn dwords(&self) -> usize {
        (*self).dwords()
    }

    fn emit(&self, mut put: impl FnMut(&[u32])) {
        put(&self.front());
        put(self.data);
    }
}

impl Pm4Packet for WriteBlock<'_> {}

#[cfg(test)]
mod tests {
    use super::*;

    const FENCE: GpuAddr = GpuAddr::new(0x7f00_0060_0000);

    #[test]
    fn write_data_matches_the_worked_example() {
        // docs/ABI.md §PM4, worked example E8.
        let words = WriteData::new(FENCE, 0xdead_beef).unwrap().confirm().encode();
        assert_eq!(words, [0xc003_3700, 0x0010_0200, 0x0060_0000, 0x0000_7f00, 0xdead_beef]);
        let block = WriteBlock::decode(&words).unwrap();
        assert_eq!((block.kind, block.dst, block.confirm), (DataDst::TC_L2, FENCE, true));
        assert_eq!(block.data, [0xdead_beef]);
    }

    #[test]
    fn write_data_without_data_is_refused() {
        let words = [0xc002_3700, 0x0010_0200, 0x0060_0000, 0x0000_7f00];
        let error = WriteBlock::decode(&words).unwrap_err();
        assert_eq!(error, Error::Length { opcode: Opcode::WRITE_DATA, expected: 5, found: 4 });
    }
}
