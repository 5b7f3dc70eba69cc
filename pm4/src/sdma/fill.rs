//! `CONSTANT_FILL` and `WRITE_UNTILED`: put given data into memory.

use core::fmt;

use super::{Error, Op, Version, aligned, head, in_range, narrow, policy, strict};
use crate::GpuAddr;
use crate::bits::layout;
use crate::emit::{Encode, SdmaPacket, fixed};
use crate::packet::memory::addr;

layout! {
    constant_fill {
        FILLSIZE = 0 [31:30]; DST_ADDR_31_0 = 1 [31:0]; DST_ADDR_63_32 = 2 [31:0];
        SRC_DATA_31_0 = 3 [31:0]; COUNT = 4 [29:0];
    }
    constant_fill_v6 { CACHE_POLICY = 0 [26:24]; }
    write_untiled {
        DST_ADDR_31_0 = 1 [31:0]; DST_ADDR_63_32 = 2 [31:0]; COUNT = 3 [19:0];
    }
    write_untiled_v6 { CACHE_POLICY = 3 [28:26]; }
}

/// What a [`ConstFill`] repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FillData {
    /// A byte.
    Byte(u8),
    /// A dword, at 4-byte aligned addresses.
    Dword(u32),
}

const FILL_BYTES: u32 = 0;
const FILL_DWORDS: u32 = 2;

/// SDMA `CONSTANT_FILL`: fills memory with a byte or dword.
#[doc(alias = "SDMA_PKT_CONSTANT_FILL")]
#[doc(alias = "CONST_FILL")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct ConstFill {
    version: Version,
    dst: GpuAddr,
    data: FillData,
    bytes: u32,
    policy: u8,
}

impl ConstFill {
    /// Length of the packet.
    pub const DWORDS: usize = 5;

    /// Fills `bytes` bytes at `dst` with `data`.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] unless `bytes` is 1 to [`Version::max_fill_bytes`];
    /// [`Error::Misaligned`] for a dword at an address or of a length that is no multiple of 4.
    pub const fn new(
        version: Version,
        dst: GpuAddr,
        data: FillData,
        bytes: u64,
    ) -> Result<Self, Error> {
        let op = Op::CONSTANT_FILL;
        if let Err(error) = in_range(op, "byte count", bytes, 1, version.max_fill_bytes()) {
            return Err(error);
        }
        if let FillData::Dword(_) = data
            && !GpuAddr::new(dst.get() | bytes).is_aligned(4)
        {
            return Err(Error::Misaligned { packet: op, addr: dst, align: 4 });
        }
        let bytes = narrow(bytes, crate::Bits::new(31, 0));
        Ok(Self { version, dst, data, bytes, policy: 0 })
    }

    /// How the L2 treats the writes, AMD's codes 0 to 7.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for a greater code, or any but 0 before the sixth generation.
    pub fn policy(mut self, code: u8) -> Result<Self, Error> {
        self.policy = policy(Op::CONSTANT_FILL, self.version, code)?;
        Ok(self)
    }

    /// Where it writes.
    pub const fn dst(self) -> GpuAddr {
        self.dst
    }

    /// What it repeats.
    pub const fn data(self) -> FillData {
        self.data
    }

    /// How many bytes.
    pub const fn bytes(self) -> u32 {
        self.bytes
    }

    /// The packet. A byte goes out in all four bytes of the data.
    pub const fn encode(self) -> [u32; Self::DWORDS] {
        let (size, data) = match self.data {
            FillData::Byte(byte) => (FILL_BYTES, u32::from_le_bytes([byte; 4])),
            FillData::Dword(data) => (FILL_DWORDS, data),
        };
        let header = head(Op::CONSTANT_FILL)
            | constant_fill::FILLSIZE.put(size)
            | constant_fill_v6::CACHE_POLICY.put(self.policy as u32);
        [header, self.dst.lo(), self.dst.hi(), data, constant_fill::COUNT.put(self.bytes - 1)]
    }

    /// Reads the packet at the start of `words`.
    ///
    /// # Errors
    /// What is wrong with it. Fills of 16-bit words count as reserved.
    pub fn decode(words: &[u32], version: Version) -> Result<Self, Error> {
        use constant_fill as c;
        let op = Op::CONSTANT_FILL;
        let [header, lo, hi, data, count] =
            strict(words, op, version, c::FIELDS, constant_fill_v6::FIELDS)?;
        let (data, slack) = match c::FILLSIZE.get(header) {
            // The engine reads the low byte.
            FILL_BYTES => (FillData::Byte(data.to_le_bytes()[0]), 1),
            // ROCr gives the count less four, Linux less one: the low two bits do not count.
            FILL_DWORDS => (FillData::Dword(data), 4),
            _ => {
                let bits = c::FILLSIZE.mask() & header;
                return Err(Error::Reserved { packet: op, dword: 0, word: header, bits });
            }
        };
        let bytes = (u64::from(count) + 1).next_multiple_of(slack);
        Self::new(version, addr(lo, hi), data, bytes)?
            .policy(constant_fill_v6::CACHE_POLICY.byte(header))
    }
}

impl fmt::Display for ConstFill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CONSTANT_FILL dst={} bytes={:#x}", self.dst, self.bytes)?;
        match self.data {
            FillData::Byte(data) => write!(f, " byte={data:#04x}"),
            FillData::Dword(data) => write!(f, " dword={data:#010x}"),
        }?;
        if self.policy != 0 { write!(f, " policy={}", self.policy) } else { Ok(()) }
    }
}

/// SDMA `WRITE_UNTILED`: stores dwords that the packet carries.
#[doc(alias = "SDMA_PKT_WRITE_UNTILED")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct WriteUntiled<'a> {
    dst: GpuAddr,
    data: &'a [u32],
    policy: u8,
}

impl<'a> WriteUntiled<'a> {
    /// Most dwords one packet stores.
    pub const MAX_DATA: usize = 1 << 20;

    /// Stores `data` at `dst`.
    ///
    /// # Errors
    /// [`Error::Misaligned`] unless `dst` is 4-byte aligned; [`Error::OutOfRange`] without data or
    /// with more than [`Self::MAX_DATA`] dwords.
    pub const fn new(dst: GpuAddr, data: &'a [u32]) -> Result<Self, Error> {
        let op = Op::WRITE_UNTILED;
        if let Err(error) = aligned(op, dst, 4) {
            return Err(error);
        }
        match in_range(op, "dword count", data.len() as u64, 1, Self::MAX_DATA as u64) {
            Ok(()) => Ok(Self { dst, data, policy: 0 }),
            Err(error) => Err(error),
        }
    }

    /// Where it writes.
    pub const fn dst(self) -> GpuAddr {
        self.dst
    }

    /// What it stores.
    pub const fn data(self) -> &'a [u32] {
        self.data
    }

    /// Reads the packet at the start of `words`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn decode(words: &'a [u32], version: Version) -> Result<Self, Error> {
        let op = Op::WRITE_UNTILED;
        let v6 = write_untiled_v6::FIELDS;
        let [_, lo, hi, count] = strict(words, op, version, write_untiled::FIELDS, v6)?;
        let needed = 5 + write_untiled::COUNT.get(count) as usize;
        let data = words.get(4..needed).ok_or(Error::Truncated { needed, found: words.len() })?;
        let packet = Self::new(addr(lo, hi), data)?;
        Ok(Self { policy: write_untiled_v6::CACHE_POLICY.byte(count), ..packet })
    }
}

impl Encode for WriteUntiled<'_> {
    fn dwords(&self) -> usize {
        4 + self.data.len()
    }

    fn emit(&self, mut put: impl FnMut(&[u32])) {
        let count = narrow(self.data.len() as u64 - 1, write_untiled::COUNT);
        let count = count | write_untiled_v6::CACHE_POLICY.put(u32::from(self.policy));
        put(&[head(Op::WRITE_UNTILED), self.dst.lo(), self.dst.hi(), count]);
        put(self.data);
    }
}

impl SdmaPacket for WriteUntiled<'_> {}

impl fmt::Display for WriteUntiled<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WRITE_UNTILED dst={} dwords={}", self.dst, self.data.len())?;
        self.data.first().map_or(Ok(()), |first| write!(f, " first={first:#x}"))
    }
}

fixed!(SdmaPacket: ConstFill);
