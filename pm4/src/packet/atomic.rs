//! `ATOMIC_MEM`, and the operations that SDMA's atomics share with it.

use core::fmt;

use super::memory::addr;
use super::{CachePolicy, aligned, strict};
use crate::bits::layout;
use crate::emit::fixed;
use crate::{Error, GpuAddr, Header, Opcode};

layout! {
    atomic_mem {
        ATOMIC = 1 [6:0]; COMMAND = 1 [11:8]; CACHE_POLICY = 1 [26:25];
        ADDR_LO = 2 [31:0]; ADDR_HI = 3 [31:0]; SRC_DATA_LO = 4 [31:0]; SRC_DATA_HI = 5 [31:0];
        CMP_DATA_LO = 6 [31:0]; CMP_DATA_HI = 7 [31:0]; LOOP_INTERVAL = 8 [12:0];
    }
}

/// Operation of an atomic: AMD's `TC_OP` codes. docs/ABI.md §PM4 ATOMIC_MEM.
///
/// The codes here return the old value; [`Self::without_return`] gives the one that does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct AtomicOp(pub u8);

const NO_RETURN: u8 = 1 << 6;
const WIDE: u8 = 1 << 5;

macro_rules! atomics {
    ($($(#[$doc:meta])* $name:ident = $value:literal;)*) => {
        impl AtomicOp {
            $($(#[$doc])* pub const $name: Self = Self($value);)*

            /// AMD's name, without `TC_OP_ATOMIC_`, or `None` for an unknown operation.
            pub const fn name(self) -> Option<&'static str> {
                match Self(self.0 & !NO_RETURN) {
                    $(Self::$name => Some(stringify!($name)),)*
                    _ => None,
                }
            }
        }
    };
}

atomics! {
    /// Exchanges 32 bits.
    SWAP_32 = 7;
    /// Exchanges 32 bits if they equal the comparand.
    CMPSWAP_32 = 8;
    /// Adds 32 bits.
    ADD_32 = 15;
    /// Subtracts 32 bits.
    SUB_32 = 16;
    /// Least of two signed 32-bit words.
    SMIN_32 = 17;
    /// Least of two unsigned 32-bit words.
    UMIN_32 = 18;
    /// Greatest of two signed 32-bit words.
    SMAX_32 = 19;
    /// Greatest of two unsigned 32-bit words.
    UMAX_32 = 20;
    /// And of 32 bits.
    AND_32 = 21;
    /// Or of 32 bits.
    OR_32 = 22;
    /// Exclusive or of 32 bits.
    XOR_32 = 23;
    /// Counts 32 bits up, to 0 after the operand.
    INC_32 = 24;
    /// Counts 32 bits down, to the operand after 0.
    DEC_32 = 25;
    /// Exchanges 64 bits.
    SWAP_64 = 39;
    /// Exchanges 64 bits if they equal the comparand.
    CMPSWAP_64 = 40;
    /// Adds 64 bits.
    ADD_64 = 47;
    /// Subtracts 64 bits.
    SUB_64 = 48;
    /// Least of two signed 64-bit words.
    SMIN_64 = 49;
    /// Least of two unsigned 64-bit words.
    UMIN_64 = 50;
    /// Greatest of two signed 64-bit words.
    SMAX_64 = 51;
    /// Greatest of two unsigned 64-bit words.
    UMAX_64 = 52;
    /// And of 64 bits.
    AND_64 = 53;
    /// Or of 64 bits.
    OR_64 = 54;
    /// Exclusive or of 64 bits.
    XOR_64 = 55;
    /// Counts 64 bits up, to 0 after the operand.
    INC_64 = 56;
    /// Counts 64 bits down, to the operand after 0.
    DEC_64 = 57;
}

impl AtomicOp {
    /// The same operation, whose old value nobody gets.
    pub const fn without_return(self) -> Self {
        Self(self.0 | NO_RETURN)
    }

    /// Whether the old value can be had.
    pub const fn returns(self) -> bool {
        self.0 & NO_RETURN == 0
    }

    /// Whether it works on 64 bits.
    pub const fn is_64(self) -> bool {
        self.0 & WIDE != 0
    }

    /// Alignment of the word it works on, bytes.
    pub const fn align(self) -> u64 {
        if self.is_64() { 8 } else { 4 }
    }
}

impl fmt::Display for AtomicOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "{:#04x}", self.0),
        }?;
        if self.returns() { Ok(()) } else { f.write_str(" no-return") }
    }
}

/// How an [`AtomicMem`] runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct AtomicCommand(pub u8);

impl AtomicCommand {
    /// Once.
    pub const SINGLE_PASS: Self = Self(0);
    /// Again and again until the comparison of a compare-and-swap succeeds.
    pub const LOOP_UNTIL_COMPARE_SATISFIED: Self = Self(1);
    /// Once, waiting until memory has acknowledged it. gfx10 and newer.
    pub const WAIT_FOR_WRITE_CONFIRMATION: Self = Self(2);
    /// Once, without waiting for anything. gfx10 and newer.
    pub const SEND_AND_CONTINUE: Self = Self(3);
}

/// PM4 `ATOMIC_MEM`: an atomic operation on memory by the command processor.
///
/// What it returns can be stored by a [`CopyData`](super::CopyData) from `AtomicReturn`.
#[doc(alias = "PACKET3_ATOMIC_MEM")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct AtomicMem {
    op: AtomicOp,
    command: AtomicCommand,
    policy: CachePolicy,
    addr: GpuAddr,
    operand: u64,
    comparand: u64,
    interval: u16,
}

impl AtomicMem {
    /// Length of the packet.
    pub const DWORDS: usize = 9;
    /// Longest pause between two tries, in the firmware's unit.
    pub const MAX_INTERVAL: u16 = 0x1FFF;

    /// Applies `op` with `operand` to the word at `addr`.
    ///
    /// # Errors
    /// [`Error::Misaligned`] unless `addr` is aligned as the operation's width.
    pub const fn new(op: AtomicOp, addr: GpuAddr, operand: u64) -> Result<Self, Error> {
        match aligned(Opcode::ATOMIC_MEM, addr, op.align()) {
            Ok(()) => Ok(Self {
                op: AtomicOp(op.0 & 0x7F),
                command: AtomicCommand::SINGLE_PASS,
                policy: CachePolicy::LRU,
                addr,
                operand,
                comparand: 0,
                interval: 0,
            }),
            Err(error) => Err(error),
        }
    }

    /// What a compare-and-swap compares with.
    pub const fn comparand(mut self, comparand: u64) -> Self {
        self.comparand = comparand;
        self
    }

    /// How it runs.
    pub const fn command(mut self, command: AtomicCommand) -> Self {
        self.command = AtomicCommand(command.0 & 0xF);
        self
    }

    /// How the L2 treats the word.
    pub const fn policy(mut self, policy: CachePolicy) -> Self {
        self.policy = CachePolicy(policy.0 & 3);
        self
    }

    /// Pause between two tries of a looping command; the low 13 bits count.
    pub const fn loop_interval(mut self, interval: u16) -> Self {
        self.interval = interval & Self::MAX_INTERVAL;
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

    /// How it runs.
    pub const fn mode(self) -> AtomicCommand {
        self.command
    }

    /// The packet.
    pub const fn encode(self) -> [u32; Self::DWORDS] {
        use atomic_mem as a;
        let control = a::ATOMIC.put(self.op.0 as u32)
            | a::COMMAND.put(self.command.0 as u32)
            | a::CACHE_POLICY.put(self.policy.0 as u32);
        let (operand, comparand) = (GpuAddr::new(self.operand), GpuAddr::new(self.comparand));
        [
            Header::new(Opcode::ATOMIC_MEM, Self::DWORDS).word(),
            control,
            self.addr.lo(),
            self.addr.hi(),
            operand.lo(),
            operand.hi(),
            comparand.lo(),
            comparand.hi(),
            self.interval as u32,
        ]
    }

    /// Reads the packet at the start of `words`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn decode(words: &[u32]) -> Result<Self, Error> {
        use atomic_mem as a;
        let [control, lo, hi, src_lo, src_hi, cmp_lo, cmp_hi, interval] =
            strict(words, Opcode::ATOMIC_MEM, a::FIELDS)?;
        let [low, high, ..] = interval.to_le_bytes();
        let op = AtomicOp(a::ATOMIC.byte(control));
        Ok(Self::new(op, addr(lo, hi), addr(src_lo, src_hi).get())?
            .comparand(addr(cmp_lo, cmp_hi).get())
            .command(AtomicCommand(a::COMMAND.byte(control)))
            .policy(CachePolicy(a::CACHE_POLICY.byte(control)))
            .loop_interval(u16::from_le_bytes([low, high])))
    }
}

impl fmt::Display for AtomicMem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { op, addr, operand, comparand, .. } = self;
        write!(f, "ATOMIC_MEM op={op} dst={addr} operand={operand:#x} comparand={comparand:#x}")?;
        match self.command {
            AtomicCommand::SINGLE_PASS => Ok(()),
            AtomicCommand::LOOP_UNTIL_COMPARE_SATISFIED => write!(f, " loop={}", self.interval),
            AtomicCommand(other) => write!(f, " command={other}"),
        }
    }
}

fixed!(Pm4Packet: AtomicMem);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operations_width_decides_the_alignment() {
        let addr = GpuAddr::new(0x1004);
        assert!(AtomicMem::new(AtomicOp::ADD_32, addr, 1).is_ok());
        for op in [AtomicOp::ADD_64, AtomicOp::ADD_64.without_return()] {
            let error = AtomicMem::new(op, addr, 1).unwrap_err();
            assert_eq!(error, Error::Misaligned { opcode: Opcode::ATOMIC_MEM, addr, align: 8 });
        }
    }

    #[test]
    fn atomic_mem_puts_every_field_in_place() {
        let packet = AtomicMem::new(AtomicOp::CMPSWAP_64, GpuAddr::new(0x7f00_0060_0000), 2)
            .unwrap()
            .comparand(0x1_0000_0003)
            .command(AtomicCommand::LOOP_UNTIL_COMPARE_SATISFIED)
            .policy(CachePolicy::STREAM)
            .loop_interval(5);
        let words = [0xc007_1e00, 0x0200_0128, 0x0060_0000, 0x7f00, 2, 0, 3, 1, 5];
        assert_eq!(packet.encode(), words);
        assert_eq!(AtomicMem::decode(&words), Ok(packet));
    }
}
