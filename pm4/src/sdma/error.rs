//! What packets are called, and why dwords are not the packet they claim to be.

use core::fmt;

use super::Version;
use crate::GpuAddr;

/// Operation of an SDMA packet: both bytes of its header.
///
/// # Source
/// `SDMA_OP_*` and `SDMA_SUBOP_*` in Linux vega10_sdma_pkt_open.h and sdma_v6_0_0_pkt_open.h;
/// docs/ABI.md §SDMA.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Op {
    /// Operation.
    pub op: u8,
    /// Kind of the operation.
    pub sub_op: u8,
}

macro_rules! ops {
    ($($(#[$doc:meta])* $name:ident = $op:literal / $sub_op:literal;)*) => {
        impl Op {
            $($(#[$doc])* pub const $name: Self = Self { op: $op, sub_op: $sub_op };)*

            /// AMD's name, or `None` for an operation this crate does not know.
            pub const fn name(self) -> Option<&'static str> {
                match self {
                    $(Self::$name => Some(stringify!($name)),)*
                    _ => None,
                }
            }
        }
    };
}

ops! {
    /// Skipped.
    NOP = 0 / 0;
    /// Copies bytes.
    COPY_LINEAR = 1 / 0;
    /// Copies a part of a plane or volume.
    COPY_LINEAR_SUBWIN = 1 / 4;
    /// Stores dwords.
    WRITE_UNTILED = 2 / 0;
    /// Runs another buffer.
    INDIRECT = 4 / 0;
    /// Stores a dword after earlier work.
    FENCE = 5 / 0;
    /// Interrupts.
    TRAP = 6 / 0;
    /// Waits for a comparison.
    POLL_REGMEM = 8 / 0;
    /// Skips dwords unless a word in memory has a value.
    COND_EXE = 9 / 0;
    /// Atomic operation on memory.
    ATOMIC = 10 / 0;
    /// Fills memory.
    CONSTANT_FILL = 11 / 0;
    /// Stores the engine's own clock.
    TIMESTAMP_GET = 13 / 1;
    /// Stores the GPU's clock.
    TIMESTAMP_GET_GLOBAL = 13 / 2;
    /// Writes caches back or invalidates them; the sixth generation's.
    GCR_REQ = 17 / 1;
}

impl Op {
    /// The operation in a packet's first dword.
    pub const fn of(word: u32) -> Self {
        let [op, sub_op, ..] = word.to_le_bytes();
        Self { op, sub_op }
    }
}

impl fmt::Debug for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "opcode {}/{}", self.op, self.sub_op),
        }
    }
}

/// What is wrong with an SDMA packet, or with the buffer for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The buffer ends before the packet does.
    #[error("packet needs {needed} dwords, the buffer has {found}")]
    Truncated {
        /// Dwords the packet has.
        needed: usize,
        /// Dwords left in the buffer.
        found: usize,
    },
    /// An operation without a type here; where the next packet starts is not known.
    #[error("unknown packet {op} ({word:#010x})")]
    Unknown {
        /// The operation.
        op: Op,
        /// Its first dword.
        word: u32,
    },
    /// A packet was given to the decoder of another.
    #[error("expected {expected}, found {found}")]
    WrongPacket {
        /// The packet asked for.
        expected: Op,
        /// The packet found.
        found: Op,
    },
    /// The engine has no such packet.
    #[error("{version} has no {packet}")]
    NotOnVersion {
        /// The packet.
        packet: Op,
        /// The engine.
        version: Version,
    },
    /// A bit is set that is reserved, or that no compute driver may set.
    #[error("{packet} dword {dword} is {word:#010x}: bits {bits:#010x} are reserved")]
    Reserved {
        /// The packet.
        packet: Op,
        /// Index of the dword, 0 being the header.
        dword: usize,
        /// The dword.
        word: u32,
        /// The offending bits.
        bits: u32,
    },
    /// An address is not aligned as the packet needs.
    #[error("{packet} address {addr} is not a multiple of {align} bytes")]
    Misaligned {
        /// The packet.
        packet: Op,
        /// The address.
        addr: GpuAddr,
        /// The alignment it needs, bytes.
        align: u64,
    },
    /// A number does not fit its field.
    #[error("{packet} {field} is {value}, not in {min} to {max}")]
    OutOfRange {
        /// The packet.
        packet: Op,
        /// What the number is.
        field: &'static str,
        /// The number.
        value: u64,
        /// The least it may be.
        min: u64,
        /// The most it may be.
        max: u64,
    },
    /// The packets of a builder do not fit their buffer.
    #[error("the packets need {needed} dwords, the buffer has {capacity}")]
    BufferTooSmall {
        /// Dwords needed.
        needed: usize,
        /// Dwords there are.
        capacity: usize,
    },
}
