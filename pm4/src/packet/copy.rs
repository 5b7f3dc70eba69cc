//! `COPY_DATA`: copies one word between memory, registers, clocks and counters.

use core::fmt;

use super::memory::addr;
use super::{CachePolicy, aligned, strict};
use crate::bits::layout;
use crate::emit::fixed;
use crate::reg::{Reg, Space};
use crate::{Error, GpuAddr, Header, Opcode};

layout! {
    copy_data {
        SRC_SEL = 1 [3:0]; DST_SEL = 1 [11:8]; SRC_CACHE_POLICY = 1 [14:13]; COUNT_SEL = 1 [16:16];
        WR_CONFIRM = 1 [20:20]; DST_CACHE_POLICY = 1 [26:25]; PQ_EXE_STATUS = 1 [29:29];
        SRC_32B_ADDR_LO = 2 [31:2]; IMM_DATA = 2 [31:0]; SRC_MEMTC_ADDR_HI = 3 [31:0];
        DST_32B_ADDR_LO = 4 [31:2]; DST_REG_OFFSET = 4 [17:0]; DST_ADDR_HI = 5 [31:0];
    }
}

/// What a [`CopyData`] reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CopySource {
    /// A register.
    Register(Reg),
    /// Memory, past the L2 on gfx9; the L2's old code on gfx11.
    Memory(GpuAddr),
    /// Memory, through the L2.
    TcL2(GpuAddr),
    /// A performance counter's register.
    PerfCounter(Reg),
    /// The value itself.
    Immediate(u64),
    /// What the last [`AtomicMem`](super::AtomicMem) of this queue returned.
    AtomicReturn,
    /// The GPU's clock.
    GpuClock,
}

/// Where a [`CopyData`] writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CopyTarget {
    /// A register.
    Register(Reg),
    /// Memory, through the L2.
    TcL2(GpuAddr),
    /// A performance counter's register.
    PerfCounter(Reg),
    /// Memory, past the L2 on gfx9; the L2's old code on gfx11.
    Memory(GpuAddr),
    /// A register, written again when the queue is restored.
    PersistentRegister(Reg),
}

/// Codes of the source and destination fields. docs/ABI.md §PM4 COPY_DATA.
mod select {
    pub(super) const REGISTER: u32 = 0;
    pub(super) const SRC_MEMORY: u32 = 1;
    pub(super) const TC_L2: u32 = 2;
    pub(super) const PERF_COUNTER: u32 = 4;
    pub(super) const IMMEDIATE: u32 = 5;
    pub(super) const DST_MEMORY: u32 = 5;
    pub(super) const ATOMIC_RETURN: u32 = 6;
    pub(super) const PERSISTENT: u32 = 6;
    pub(super) const GPU_CLOCK: u32 = 9;
}

/// PM4 `COPY_DATA`: copies 32 or 64 bits.
#[doc(alias = "PACKET3_COPY_DATA")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct CopyData {
    from: CopySource,
    to: CopyTarget,
    wide: bool,
    confirm: bool,
    from_policy: CachePolicy,
    to_policy: CachePolicy,
    phase_update: bool,
}

impl CopyData {
    /// Length of the packet.
    pub const DWORDS: usize = 6;

    /// Copies 32 bits.
    ///
    /// # Errors
    /// [`Error::Misaligned`] unless addresses are 4-byte aligned; [`Error::RegisterOutOfRange`] for
    /// a register of more than 18 bits; [`Error::TooLong`] for an immediate of more than 32 bits.
    pub fn new_32(from: CopySource, to: CopyTarget) -> Result<Self, Error> {
        if let CopySource::Immediate(value) = from
            && value > u64::from(u32::MAX)
        {
            return Err(Error::TooLong { opcode: Opcode::COPY_DATA, found: 2, max: 1 });
        }
        Self::new(from, to, false)
    }

    /// Copies 64 bits.
    ///
    /// # Errors
    /// [`Error::Misaligned`] unless addresses are 8-byte aligned; [`Error::RegisterOutOfRange`] for
    /// a register of more than 18 bits.
    pub fn new_64(from: CopySource, to: CopyTarget) -> Result<Self, Error> {
        Self::new(from, to, true)
    }

    fn new(from: CopySource, to: CopyTarget, wide: bool) -> Result<Self, Error> {
        let register = |reg| super::range_check(Opcode::COPY_DATA, Space::ANY, reg, 1).map(drop);
        let memory = |addr| aligned(Opcode::COPY_DATA, addr, if wide { 8 } else { 4 });
        match from {
            CopySource::Register(reg) | CopySource::PerfCounter(reg) => register(reg)?,
            CopySource::Memory(addr) | CopySource::TcL2(addr) => memory(addr)?,
            CopySource::Immediate(_) | CopySource::AtomicReturn | CopySource::GpuClock => {}
        }
        match to {
            CopyTarget::Register(reg)
            | CopyTarget::PerfCounter(reg)
            | CopyTarget::PersistentRegister(reg) => register(reg)?,
            CopyTarget::TcL2(addr) | CopyTarget::Memory(addr) => memory(addr)?,
        }
        let (from_policy, to_policy) = (CachePolicy::LRU, CachePolicy::LRU);
        Ok(Self { from, to, wide, confirm: false, from_policy, to_policy, phase_update: false })
    }

    /// Waits until the write is acknowledged.
    pub const fn confirm(mut self) -> Self {
        self.confirm = true;
        self
    }

    /// How the L2 treats the read and the write.
    pub const fn policies(mut self, from: CachePolicy, to: CachePolicy) -> Self {
        self.from_policy = CachePolicy(from.0 & 3);
        self.to_policy = CachePolicy(to.0 & 3);
        self
    }

    /// What is read.
    pub const fn from(self) -> CopySource {
        self.from
    }

    /// Where it goes.
    pub const fn to(self) -> CopyTarget {
        self.to
    }

    /// Whether 64 bits are copied.
    pub const fn is_64(self) -> bool {
        self.wide
    }

    /// The packet.
    pub const fn encode(self) -> [u32; Self::DWORDS] {
        use copy_data as c;
        let (from, word) = match self.from {
            CopySource::Register(reg) => (select::REGISTER, reg.0 as u64),
            CopySource::Memory(addr) => (select::SRC_MEMORY, addr.get()),
            CopySource::TcL2(addr) => (select::TC_L2, addr.get()),
            CopySource::PerfCounter(reg) => (select::PERF_COUNTER, reg.0 as u64),
            CopySource::Immediate(value) => (select::IMMEDIATE, value),
            CopySource::AtomicReturn => (select::ATOMIC_RETURN, 0),
            CopySource::GpuClock => (select::GPU_CLOCK, 0),
        };
        let (to, target) = match self.to {
            CopyTarget::Register(reg) => (select::REGISTER, reg.0 as u64),
            CopyTarget::TcL2(addr) => (select::TC_L2, addr.get()),
            CopyTarget::PerfCounter(reg) => (select::PERF_COUNTER, reg.0 as u64),
            CopyTarget::Memory(addr) => (select::DST_MEMORY, addr.get()),
            CopyTarget::PersistentRegister(reg) => (select::PERSISTENT, reg.0 as u64),
        };
        let control = c::SRC_SEL.put(from)
            | c::DST_SEL.put(to)
            | c::SRC_CACHE_POLICY.put(self.from_policy.0 as u32)
            | c::COUNT_SEL.flag(self.wide)
            | c::WR_CONFIRM.flag(self.confirm)
            | c::DST_CACHE_POLICY.put(self.to_policy.0 as u32)
            | c::PQ_EXE_STATUS.flag(self.phase_update);
        let (word, target) = (GpuAddr::new(word), GpuAddr::new(target));
        let header = Header::new(Opcode::COPY_DATA, Self::DWORDS).word();
        [header, control, word.lo(), word.hi(), target.lo(), target.hi()]
    }

    /// Reads the packet at the start of `words`.
    ///
    /// # Errors
    /// What is wrong with it. GDS, which gfx942 and gfx11 compute queues lack, counts as reserved.
    pub fn decode(words: &[u32]) -> Result<Self, Error> {
        use copy_data as c;
        let op = Opcode::COPY_DATA;
        let [control, lo, hi, to_lo, to_hi] = strict(words, op, c::FIELDS)?;
        let unknown = |bits: crate::bits::Bits| {
            let bits = bits.get(control) << bits.low();
            Error::Reserved { opcode: op, dword: 1, word: control, bits }
        };
        let empty = |word: u64| match word {
            0 => Ok(()),
            _ if lo != 0 => super::only(op, 2, lo, 0),
            _ => super::only(op, 3, hi, 0),
        };
        let word = addr(lo, hi);
        let register = |dword, lo, hi| {
            super::only(op, dword + 1, hi, 0)?;
            super::only(op, dword, lo, c::DST_REG_OFFSET.mask())?;
            Ok(Reg(lo))
        };
        let from = match c::SRC_SEL.get(control) {
            select::REGISTER => CopySource::Register(register(2, lo, hi)?),
            select::SRC_MEMORY => CopySource::Memory(word),
            select::TC_L2 => CopySource::TcL2(word),
            select::PERF_COUNTER => CopySource::PerfCounter(register(2, lo, hi)?),
            select::IMMEDIATE => CopySource::Immediate(word.get()),
            select::ATOMIC_RETURN => empty(word.get()).map(|()| CopySource::AtomicReturn)?,
            select::GPU_CLOCK => empty(word.get()).map(|()| CopySource::GpuClock)?,
            _ => return Err(unknown(c::SRC_SEL)),
        };
        let to = match c::DST_SEL.get(control) {
            select::REGISTER => CopyTarget::Register(register(4, to_lo, to_hi)?),
            select::TC_L2 => CopyTarget::TcL2(addr(to_lo, to_hi)),
            select::PERF_COUNTER => CopyTarget::PerfCounter(register(4, to_lo, to_hi)?),
            select::DST_MEMORY => CopyTarget::Memory(addr(to_lo, to_hi)),
            select::PERSISTENT => CopyTarget::PersistentRegister(register(4, to_lo, to_hi)?),
            _ => return Err(unknown(c::DST_SEL)),
        };
        let wide = c::COUNT_SEL.is_set(control);
        if !wide && matches!(from, CopySource::Immediate(_)) {
            super::only(op, 3, hi, 0)?;
        }
        Ok(Self {
            confirm: c::WR_CONFIRM.is_set(control),
            phase_update: c::PQ_EXE_STATUS.is_set(control),
            from_policy: CachePolicy(c::SRC_CACHE_POLICY.byte(control)),
            to_policy: CachePolicy(c::DST_CACHE_POLICY.byte(control)),
            ..Self::new(from, to, wide)?
        })
    }
}

impl fmt::Display for CopyData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "COPY_DATA bits={}", if self.wide { 64 } else { 32 })?;
        match self.from {
            CopySource::Register(reg) => write!(f, " from=register:{reg}"),
            CopySource::Memory(addr) => write!(f, " from=memory:{addr}"),
            CopySource::TcL2(addr) => write!(f, " from=l2:{addr}"),
            CopySource::PerfCounter(reg) => write!(f, " from=counter:{reg}"),
            CopySource::Immediate(value) => write!(f, " from={value:#x}"),
            CopySource::AtomicReturn => f.write_str(" from=atomic-return"),
            CopySource::GpuClock => f.write_str(" from=clock"),
        }?;
        match self.to {
            CopyTarget::Register(reg) => write!(f, " to=register:{reg}"),
            CopyTarget::TcL2(addr) => write!(f, " to=l2:{addr}"),
            CopyTarget::PerfCounter(reg) => write!(f, " to=counter:{reg}"),
            CopyTarget::Memory(addr) => write!(f, " to=memory:{addr}"),
            CopyTarget::PersistentRegister(reg) => write!(f, " to=persistent:{reg}"),
        }?;
        if self.confirm { f.write_str(" confirm") } else { Ok(()) }
    }
}

fixed!(Pm4Packet: CopyData);

#[cfg(test)]
mod tests {
    use super::*;

    const FENCE: GpuAddr = GpuAddr::new(0x7f00_0060_0000);

    #[test]
    fn copies_of_the_clock_match_the_worked_examples() {
        // docs/ABI.md §PM4 worked examples, E8.
        let gfx9 = CopyData::new_64(CopySource::GpuClock, CopyTarget::Memory(FENCE)).unwrap();
        let gfx9 = gfx9.policies(CachePolicy::STREAM, CachePolicy::STREAM);
        let words = [0xc004_4000, 0x0201_2509, 0, 0, 0x0060_0000, 0x7f00];
        assert_eq!(gfx9.encode(), words);
        assert_eq!(CopyData::decode(&words), Ok(gfx9));
        let gfx11 = CopyData::new_64(CopySource::GpuClock, CopyTarget::TcL2(FENCE)).unwrap();
        assert_eq!(gfx11.encode(), [0xc004_4000, 0x0001_0209, 0, 0, 0x0060_0000, 0x7f00]);
    }

    #[test]
    fn copy_data_refuses_what_does_not_fit_its_fields() {
        let to = CopyTarget::TcL2(FENCE);
        assert!(CopyData::new_32(CopySource::Immediate(1 << 32), to).is_err());
        assert!(CopyData::new_64(CopySource::Immediate(1 << 32), to).is_ok());
        assert!(CopyData::new_64(CopySource::TcL2(GpuAddr::new(4)), to).is_err());
        assert!(CopyData::new_32(CopySource::Register(Reg(1 << 18)), to).is_err());
        // A clock has no address, and GDS no compute queue.
        let mut words = CopyData::new_64(CopySource::GpuClock, to).unwrap().encode();
        words[3] = 1;
        assert!(matches!(CopyData::decode(&words), Err(Error::Reserved { dword: 3, .. })));
        let gds = [0xc004_4000, 0x0001_0203, 0, 0, 0x0060_0000, 0x7f00];
        assert!(matches!(CopyData::decode(&gds), Err(Error::Reserved { dword: 1, bits: 3, .. })));
    }
}
