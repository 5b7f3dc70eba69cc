//! `WAIT_REG_MEM` and `WAIT_REG_MEM64`: wait for a comparison with memory or a register.

use core::fmt;

use super::memory::addr;
use super::{CachePolicy, aligned, strict};
use crate::bits::layout;
use crate::emit::fixed;
use crate::reg::Reg;
use crate::{Error, GpuAddr, Header, Opcode};

layout! {
    wait_reg_mem {
        FUNCTION = 1 [2:0]; MEM_SPACE = 1 [5:4]; OPERATION = 1 [7:6]; CACHE_POLICY = 1 [26:25];
        MEM_POLL_ADDR_LO = 2 [31:2]; REG_POLL_ADDR = 2 [17:0]; REG_WRITE_ADDR1 = 2 [17:0];
        MEM_POLL_ADDR_HI = 3 [31:0]; REG_WRITE_ADDR2 = 3 [17:0];
        REFERENCE = 4 [31:0]; MASK = 5 [31:0];
        POLL_INTERVAL = 6 [15:0]; OPTIMIZE_ACE_OFFLOAD_MODE = 6 [31:31];
    }
    wait_reg_mem64 {
        FUNCTION = 1 [2:0]; MEM_SPACE = 1 [5:4]; OPERATION = 1 [7:6]; CACHE_POLICY = 1 [26:25];
        MEM_POLL_ADDR_LO = 2 [31:3]; MEM_POLL_ADDR_HI = 3 [31:0];
        REFERENCE = 4 [31:0]; REFERENCE_HI = 5 [31:0]; MASK = 6 [31:0]; MASK_HI = 7 [31:0];
        POLL_INTERVAL = 8 [15:0]; OPTIMIZE_ACE_OFFLOAD_MODE = 8 [31:31];
    }
}

/// When a wait ends: `(word & mask) function reference`, all unsigned. SDMA's polls use the same
/// codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Compare(pub u8);

impl Compare {
    /// At once.
    pub const ALWAYS: Self = Self(0);
    /// Below the reference.
    pub const LESS: Self = Self(1);
    /// At most the reference.
    pub const LESS_EQUAL: Self = Self(2);
    /// The reference.
    pub const EQUAL: Self = Self(3);
    /// Anything else than the reference.
    pub const NOT_EQUAL: Self = Self(4);
    /// At least the reference.
    pub const GREATER_EQUAL: Self = Self(5);
    /// Above the reference.
    pub const GREATER: Self = Self(6);

    /// Whether `value` satisfies it; `None` for the undefined code 7.
    pub const fn holds(self, value: u64, reference: u64) -> Option<bool> {
        Some(match self {
            Self::ALWAYS => true,
            Self::LESS => value < reference,
            Self::LESS_EQUAL => value <= reference,
            Self::EQUAL => value == reference,
            Self::NOT_EQUAL => value != reference,
            Self::GREATER_EQUAL => value >= reference,
            Self::GREATER => value > reference,
            _ => return None,
        })
    }

    /// As text: `<`, `==`...
    pub const fn symbol(self) -> &'static str {
        match self {
            Self::ALWAYS => "always",
            Self::LESS => "<",
            Self::LESS_EQUAL => "<=",
            Self::EQUAL => "==",
            Self::NOT_EQUAL => "!=",
            Self::GREATER_EQUAL => ">=",
            Self::GREATER => ">",
            _ => "?",
        }
    }
}

/// What a [`WaitRegMem`] looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitOn {
    /// A dword in memory.
    Memory(GpuAddr),
    /// A dword in memory; the queue may be preempted meanwhile.
    MemoryPreemptible(GpuAddr),
    /// A register.
    Register(Reg),
    /// Writes the reference to the first register, then waits for the second: how the host data
    /// path is flushed (request register, done register).
    WriteThenRegister {
        /// The register written.
        write: Reg,
        /// The register waited for.
        wait: Reg,
    },
}

/// Cycles between two looks that other drivers ask for.
const USUAL_INTERVAL: u16 = 4;
const OPERATION_WAIT: u32 = 0;
const OPERATION_WRITE_WAIT: u32 = 1;
const OPERATION_WAIT_PREEMPTIBLE: u32 = 3;

/// PM4 `WAIT_REG_MEM`: waits for a 32-bit comparison.
#[doc(alias = "PACKET3_WAIT_REG_MEM")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct WaitRegMem {
    on: WaitOn,
    function: Compare,
    reference: u32,
    mask: u32,
    policy: CachePolicy,
    interval: u16,
    offload: bool,
}

impl WaitRegMem {
    /// Length of the packet.
    pub const DWORDS: usize = 7;

    /// Waits until the dword compares as `function` says with `reference`.
    ///
    /// # Errors
    /// [`Error::Misaligned`] unless an address is 4-byte aligned; [`Error::RegisterOutOfRange`] for
    /// a register of more than 18 bits.
    pub fn new(on: WaitOn, function: Compare, reference: u32) -> Result<Self, Error> {
        let register =
            |reg| super::range_check(Opcode::WAIT_REG_MEM, crate::reg::Space::ANY, reg, 1);
        match on {
            WaitOn::Memory(addr) | WaitOn::MemoryPreemptible(addr) => {
                aligned(Opcode::WAIT_REG_MEM, addr, 4)?;
            }
            WaitOn::Register(reg) => drop(register(reg)?),
            WaitOn::WriteThenRegister { write, wait } => {
                register(write)?;
                register(wait)?;
            }
        }
        Ok(Self {
            on,
            function: Compare(function.0 & 7),
            reference,
            mask: u32::MAX,
            policy: CachePolicy::LRU,
            interval: USUAL_INTERVAL,
            offload: false,
        })
    }

    /// Compares only the bits in `mask`.
    pub const fn mask(mut self, mask: u32) -> Self {
        self.mask = mask;
        self
    }

    /// Reads memory with `policy`.
    pub const fn policy(mut self, policy: CachePolicy) -> Self {
        self.policy = CachePolicy(policy.0 & 3);
        self
    }

    /// Time between two looks, in units of 16 clocks.
    pub const fn poll_interval(mut self, interval: u16) -> Self {
        self.interval = interval;
        self
    }

    /// Lets the firmware's scheduler do the polling (`OPTIMIZE_ACE_OFFLOAD_MODE`).
    pub const fn offload(mut self) -> Self {
        self.offload = true;
        self
    }

    /// What it looks at.
    pub const fn on(self) -> WaitOn {
        self.on
    }

    /// Comparison, reference and mask.
    pub const fn condition(self) -> (Compare, u32, u32) {
        (self.function, self.reference, self.mask)
    }

    /// The packet.
    pub const fn encode(self) -> [u32; Self::DWORDS] {
        use wait_reg_mem as w;
        let (memory, operation, low, high) = match self.on {
            WaitOn::Memory(addr) => (1, OPERATION_WAIT, addr.lo(), addr.hi()),
            WaitOn::MemoryPreemptible(addr) => {
                (1, OPERATION_WAIT_PREEMPTIBLE, addr.lo(), addr.hi())
            }
            WaitOn::Register(reg) => (0, OPERATION_WAIT, reg.0, 0),
            WaitOn::WriteThenRegister { write, wait } => (0, OPERATION_WRITE_WAIT, write.0, wait.0),
        };
        let control = w::FUNCTION.put(self.function.0 as u32)
            | w::MEM_SPACE.put(memory)
            | w::OPERATION.put(operation)
            | w::CACHE_POLICY.put(self.policy.0 as u32);
        let header = Header::new(Opcode::WAIT_REG_MEM, Self::DWORDS).word();
        let poll = poll(self.interval, self.offload);
        [header, control, low, high, self.reference, self.mask, poll]
    }

    /// Reads the packet at the start of `words`.
    ///
    /// # Errors
    /// What is wrong with it. The MES bits, which the kernel's own queues use, count as reserved.
    pub fn decode(words: &[u32]) -> Result<Self, Error> {
        use wait_reg_mem as w;
        let op = Opcode::WAIT_REG_MEM;
        let [control, low, high, reference, mask, poll] = strict(words, op, w::FIELDS)?;
        let function = function(op, control)?;
        let operation = w::OPERATION.get(control);
        let memory = w::MEM_SPACE.get(control);
        let on = match (memory, operation) {
            (1, OPERATION_WAIT) => WaitOn::Memory(addr(low, high)),
            (1, OPERATION_WAIT_PREEMPTIBLE) => WaitOn::MemoryPreemptible(addr(low, high)),
            (0, OPERATION_WAIT) => {
                super::only(op, 3, high, 0)?;
                WaitOn::Register(Reg(low))
            }
            (0, OPERATION_WRITE_WAIT) => {
                WaitOn::WriteThenRegister { write: Reg(low), wait: Reg(high) }
            }
            _ => {
                let bits = (w::OPERATION.mask() | w::MEM_SPACE.mask()) & control;
                return Err(Error::Reserved { opcode: op, dword: 1, word: control, bits });
            }
        };
        let [low, high, ..] = poll.to_le_bytes();
        Ok(Self {
            mask,
            policy: CachePolicy(w::CACHE_POLICY.byte(control)),
            interval: u16::from_le_bytes([low, high]),
            offload: w::OPTIMIZE_ACE_OFFLOAD_MODE.is_set(poll),
            ..Self::new(on, function, reference)?
        })
    }
}

const fn poll(interval: u16, offload: bool) -> u32 {
    interval as u32 | wait_reg_mem::OPTIMIZE_ACE_OFFLOAD_MODE.flag(offload)
}

/// The comparison in a control word; code 7 means nothing.
fn function(opcode: Opcode, control: u32) -> Result<Compare, Error> {
    let bits = wait_reg_mem::FUNCTION;
    match bits.byte(control) {
        7 => Err(Error::Reserved { opcode, dword: 1, word: control, bits: bits.mask() }),
        code => Ok(Compare(code)),
    }
}

impl fmt::Display for WaitRegMem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WAIT_REG_MEM ")?;
        match self.on {
            WaitOn::Memory(addr) => write!(f, "memory={addr}"),
            WaitOn::MemoryPreemptible(addr) => write!(f, "memory={addr} preemptible"),
            WaitOn::Register(reg) => write!(f, "register={reg}"),
            WaitOn::WriteThenRegister { write, wait } => {
                write!(f, "write={write} register={wait}")
            }
        }?;
        let Self { function, reference, mask, interval, .. } = self;
        write!(f, " until {} {reference:#x} mask={mask:#x} interval={interval}", function.symbol())
    }
}

/// PM4 `WAIT_REG_MEM64`: waits for a 64-bit comparison with memory. gfx10 and newer only.
#[doc(alias = "PACKET3_WAIT_REG_MEM64")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct WaitRegMem64 {
    addr: GpuAddr,
    preemptible: bool,
    function: Compare,
    reference: u64,
    mask: u64,
    policy: CachePolicy,
    interval: u16,
    offload: bool,
}

impl WaitRegMem64 {
    /// Length of the packet.
    pub const DWORDS: usize = 9;

    /// Waits until the 64-bit word at `addr` compares as `function` says with `reference`.
    ///
    /// # Errors
    /// [`Error::Misaligned`] unless `addr` is 8-byte aligned.
    pub fn new(addr: GpuAddr, function: Compare, reference: u64) -> Result<Self, Error> {
        aligned(Opcode::WAIT_REG_MEM64, addr, 8)?;
        Ok(Self {
            addr,
            preemptible: false,
            function: Compare(function.0 & 7),
            reference,
            mask: u64::MAX,
            policy: CachePolicy::LRU,
            interval: USUAL_INTERVAL,
            offload: false,
        })
    }

    /// Compares only the bits in `mask`.
    pub const fn mask(mut self, mask: u64) -> Self {
        self.mask = mask;
        self
    }

    /// Lets the queue be preempted meanwhile.
    pub const fn preemptible(mut self) -> Self {
        self.preemptible = true;
        self
    }

    /// Time between two looks, in units of 16 clocks.
    pub const fn poll_interval(mut self, interval: u16) -> Self {
        self.interval = interval;
        self
    }

    /// Where the word is.
    pub const fn addr(self) -> GpuAddr {
        self.addr
    }

    /// Comparison, reference and mask.
    pub const fn condition(self) -> (Compare, u64, u64) {
        (self.function, self.reference, self.mask)
    }

    /// The packet.
    pub const fn encode(self) -> [u32; Self::DWORDS] {
        use wait_reg_mem64 as w;
        let operation = if self.preemptible { OPERATION_WAIT_PREEMPTIBLE } else { OPERATION_WAIT };
        let control = w::FUNCTION.put(self.function.0 as u32)
            | w::MEM_SPACE.put(1)
            | w::OPERATION.put(operation)
            | w::CACHE_POLICY.put(self.policy.0 as u32);
        let (reference, mask) = (GpuAddr::new(self.reference), GpuAddr::new(self.mask));
        [
            Header::new(Opcode::WAIT_REG_MEM64, Self::DWORDS).word(),
            control,
            self.addr.lo(),
            self.addr.hi(),
            reference.lo(),
            reference.hi(),
            mask.lo(),
            mask.hi(),
            poll(self.interval, self.offload),
        ]
    }

    /// Reads the packet at the start of `words`.
    ///
    /// # Errors
    /// What is wrong with it. Waits for registers count as such: no compute driver uses them.
    pub fn decode(words: &[u32]) -> Result<Self, Error> {
        use wait_reg_mem64 as w;
        let op = Opcode::WAIT_REG_MEM64;
        let [control, lo, hi, ref_lo, ref_hi, mask_lo, mask_hi, poll] =
            strict(words, op, w::FIELDS)?;
        let function = function(op, control)?;
        let preemptible = match (w::MEM_SPACE.get(control), w::OPERATION.get(control)) {
            (1, OPERATION_WAIT) => false,
            (1, OPERATION_WAIT_PREEMPTIBLE) => true,
            _ => {
                let bits = w::OPERATION.mask() | w::MEM_SPACE.mask();
                return Err(Error::Reserved { opcode: op, dword: 1, word: control, bits });
            }
        };
        let [low, high, ..] = poll.to_le_bytes();
        Ok(Self {
            preemptible,
            mask: addr(mask_lo, mask_hi).get(),
            policy: CachePolicy(w::CACHE_POLICY.byte(control)),
            interval: u16::from_le_bytes([low, high]),
            offload: w::OPTIMIZE_ACE_OFFLOAD_MODE.is_set(poll),
            ..Self::new(addr(lo, hi), function, addr(ref_lo, ref_hi).get())?
        })
    }
}

impl fmt::Display for WaitRegMem64 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { addr, function, reference, mask, interval, .. } = self;
        write!(f, "WAIT_REG_MEM64 memory={addr}")?;
        if self.preemptible {
            f.write_str(" preemptible")?;
        }
        write!(f, " until {} {reference:#x} mask={mask:#x} interval={interval}", function.symbol())
    }
}

fixed!(Pm4Packet: WaitRegMem, WaitRegMem64);
