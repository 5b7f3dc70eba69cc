//! Polls and atomics.

use core::fmt;

use super::{Error, Op, Version, aligned, head, in_range, policy, strict};
use crate::GpuAddr;
use crate::bits::layout;
use crate::emit::fixed;
use crate::packet::memory::addr;
use crate::packet::{AtomicOp, Compare};

layout! {
    poll_regmem {
        FUNC = 0 [30:28]; MEM_POLL = 0 [31:31]; ADDR_31_0 = 1 [31:0]; ADDR_63_32 = 2 [31:0];
        VALUE = 3 [31:0]; MASK = 4 [31:0]; INTERVAL = 5 [15:0]; RETRY_COUNT = 5 [27:16];
    }
    poll_regmem_v6 { CACHE_POLICY = 0 [22:20]; }
    atomic {
        LOOP = 0 [16:16]; ATOMIC_OP = 0 [31:25]; ADDR_31_0 = 1 [31:0]; ADDR_63_32 = 2 [31:0];
        SRC_DATA_31_0 = 3 [31:0]; SRC_DATA_63_32 = 4 [31:0]; CMP_DATA_31_0 = 5 [31:0];
        CMP_DATA_63_32 = 6 [31:0]; LOOP_INTERVAL = 7 [12:0];
    }
    atomic_v6 { CACHE_POLICY = 0 [22:20]; }
}

/// SDMA `POLL_REGMEM` of memory: waits until `(dword & mask) function value`, unsigned.
///
/// On versions 4.0 and 4.2 it may end early: issue it [`Version::poll_repeats`] times.
#[doc(alias = "SDMA_PKT_POLL_REGMEM")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct PollMem {
    addr: GpuAddr,
    function: Compare,
    value: u32,
    mask: u32,
    interval: u16,
    retries: u16,
    policy: u8,
}

impl PollMem {
    /// Length of the packet.
    pub const DWORDS: usize = 6;
    /// Tries without end.
    pub const FOREVER: u16 = 0xFFF;

    /// Waits for the dword at `addr`, without end.
    ///
    /// # Errors
    /// [`Error::Misaligned`] unless `addr` is 4-byte aligned; [`Error::OutOfRange`] for the
    /// undefined comparison 7.
    pub const fn new(addr: GpuAddr, function: Compare, value: u32) -> Result<Self, Error> {
        let op = Op::POLL_REGMEM;
        if let Err(error) = aligned(op, addr, 4) {
            return Err(error);
        }
        match in_range(op, "function", function.0 as u64, 0, 6) {
            Ok(()) => Ok(Self {
                addr,
                function,
                value,
                mask: u32::MAX,
                interval: 4,
                retries: Self::FOREVER,
                policy: 0,
            }),
            Err(error) => Err(error),
        }
    }

    /// Compares only the bits in `mask`.
    pub const fn mask(mut self, mask: u32) -> Self {
        self.mask = mask;
        self
    }

    /// Time between two looks, in the engine's unit, and how many looks; the low 12 bits count,
    /// [`Self::FOREVER`] has no end.
    pub const fn pace(mut self, interval: u16, retries: u16) -> Self {
        self.interval = interval;
        self.retries = retries & Self::FOREVER;
        self
    }

    /// Where the dword is.
    pub const fn addr(self) -> GpuAddr {
        self.addr
    }

    /// Comparison, value and mask.
    pub const fn condition(self) -> (Compare, u32, u32) {
        (self.function, self.value, self.mask)
    }

    /// Interval and number of looks.
    pub const fn retries(self) -> (u16, u16) {
        (self.interval, self.retries)
    }

    /// The packet.
    pub const fn encode(self) -> [u32; Self::DWORDS] {
        use poll_regmem as p;
        let header = head(Op::POLL_REGMEM)
            | p::MEM_POLL.mask()
            | p::FUNC.put(self.function.0 as u32)
            | poll_regmem_v6::CACHE_POLICY.put(self.policy as u32);
        let pace = p::INTERVAL.put(self.interval as u32) | p::RETRY_COUNT.put(self.retries as u32);
        [header, self.addr.lo(), self.addr.hi(), self.value, self.mask, pace]
    }

    /// Reads the packet at the start of `words`.
    ///
    /// # Errors
    /// What is wrong with it. Polls of registers, which only kernel queues reach, count as
    /// reserved.
    pub fn decode(words: &[u32], version: Version) -> Result<Self, Error> {
        use poll_regmem as p;
        let op = Op::POLL_REGMEM;
        let [header, lo, hi, value, mask, pace] =
            strict(words, op, version, p::FIELDS, poll_regmem_v6::FIELDS)?;
        if !p::MEM_POLL.is_set(header) {
            let bits = p::MEM_POLL.mask();
            return Err(Error::Reserved { packet: op, dword: 0, word: header, bits });
        }
        let [low, high, ..] = pace.to_le_bytes();
        let [retries, more, ..] = p::RETRY_COUNT.get(pace).to_le_bytes();
        let packet = Self::new(addr(lo, hi), Compare(p::FUNC.byte(header)), value)?
            .mask(mask)
            .pace(u16::from_le_bytes([low, high]), u16::from_le_bytes([retries, more]));
        Ok(Self { policy: poll_regmem_v6::CACHE_POLICY.byte(header), ..packet })
    }
}

impl fmt::Display for PollMem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { addr, function, value, mask, interval, .. } = self;
        write!(f, "POLL_REGMEM memory={addr} until {} {value:#x}", function.symbol())?;
        write!(f, " mask={mask:#x} interval={interval}")?;
        match self.retries {
            Self::FOREVER => Ok(()),
            retries => write!(f, " retries={retries}"),
        }
    }
}

/// SDMA `ATOMIC`: an atomic operation on memory.
#[doc(alias = "SDMA_PKT_ATOMIC")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Atomic {
    op: AtomicOp,
    addr: GpuAddr,
    operand: u64,
    comparand: u64,
    interval: Option<u16>,
    policy: u8,
}

impl Atomic {
    /// Length of the packet.
    pub const DWORDS: usize = 8;

    /// Applies `op` with `operand` to the word at `addr`, once.
    ///
    /// # Errors
    /// [`Error::Misaligned`] unless `addr` is aligned as the operation's width.
    pub const fn new(op: AtomicOp, addr: GpuAddr, operand: u64) -> Result<Self, Error> {
        match aligned(Op::ATOMIC, addr, op.align()) {
            Ok(()) => {
                let op = AtomicOp(op.0 & 0x7F);
                Ok(Self { op, addr, operand, comparand: 0, interval: None, policy: 0 })
            }
            Err(error) => Err(error),
        }
    }

    /// What a compare-and-swap compares with.
    pub const fn comparand(mut self, comparand: u64) -> Self {
        self.comparand = comparand;
        self
    }

    /// Tries a compare-and-swap until it succeeds, `interval` (13 bits) apart.
    pub const fn repeat(mut self, interval: u16) -> Self {
        self.interval = Some(interval & 0x1FFF);
        self
    }

    /// The operation.
    pub const fn op(self) -> AtomicOp {
        self.op
    }

    /// Where the word is.
    pub const fn addr(self) -> GpuAddr {
        self.addr
    }

    /// Operand and comparand.
    pub const fn data(self) -> (u64, u64) {
        (self.operand, self.comparand)
    }

    /// The pause between tries, if it tries until it succeeds.
    pub const fn repeats(self) -> Option<u16> {
        self.interval
    }

    /// The packet.
    pub const fn encode(self) -> [u32; Self::DWORDS] {
        let (operand, comparand) = (GpuAddr::new(self.operand), GpuAddr::new(self.comparand));
        let (repeat, interval) = match self.interval {
            Some(interval) => (true, interval as u32),
            None => (false, 0),
        };
        let header = head(Op::ATOMIC)
            | atomic::LOOP.flag(repeat)
            | atomic::ATOMIC_OP.put(self.op.0 as u32)
            | atomic_v6::CACHE_POLICY.put(self.policy as u32);
        [
            header,
            self.addr.lo(),
            self.addr.hi(),
            operand.lo(),
            operand.hi(),
            comparand.lo(),
            comparand.hi(),
            interval,
        ]
    }

    /// Reads the packet at the start of `words`.
    ///
    /// # Errors
    /// What is wrong with it. An interval without the loop bit counts as reserved.
    pub fn decode(words: &[u32], version: Version) -> Result<Self, Error> {
        let [header, lo, hi, src, src_hi, cmp, cmp_hi, interval] =
            strict(words, Op::ATOMIC, version, atomic::FIELDS, atomic_v6::FIELDS)?;
        let op = AtomicOp(atomic::ATOMIC_OP.byte(header));
        let packet = Self::new(op, addr(lo, hi), addr(src, src_hi).get())?
            .comparand(addr(cmp, cmp_hi).get());
        let packet = Self {
            policy: policy(Op::ATOMIC, version, atomic_v6::CACHE_POLICY.byte(header))?,
            ..packet
        };
        let [low, high, ..] = interval.to_le_bytes();
        match (atomic::LOOP.is_set(header), interval) {
            (true, _) => Ok(packet.repeat(u16::from_le_bytes([low, high]))),
            (false, 0) => Ok(packet),
            (false, word) => {
                Err(Error::Reserved { packet: Op::ATOMIC, dword: 7, word, bits: word })
            }
        }
    }
}

impl fmt::Display for Atomic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { op, addr, operand, comparand, .. } = self;
        write!(f, "ATOMIC op={op} dst={addr} operand={operand:#x} comparand={comparand:#x}")?;
        self.interval.map_or(Ok(()), |interval| write!(f, " loop={interval}"))
    }
}

fixed!(SdmaPacket: PollMem, Atomic);
