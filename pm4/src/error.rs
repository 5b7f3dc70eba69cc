//! Why dwords are not the packet they claim to be.

use crate::{GpuAddr, Opcode};

/// What is wrong with a packet, or with the buffer for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The buffer ends before the packet does.
    #[error("packet needs {needed} dwords, the buffer has {found}")]
    Truncated {
        /// Dwords the header announces, itself included.
        needed: usize,
        /// Dwords left in the buffer.
        found: usize,
    },
    /// The first dword is not a type-3 header.
    #[error("{word:#010x} is not a type-3 packet header")]
    NotType3 {
        /// The dword.
        word: u32,
    },
    /// The header announces a length that this packet never has.
    #[error("{opcode} has {found} dwords, expected {expected}")]
    Length {
        /// The packet.
        opcode: Opcode,
        /// The only length it may have, or the least one where it varies.
        expected: usize,
        /// The length announced.
        found: usize,
    },
    /// A reserved bit is set, or a field holds a value without meaning.
    #[error("{opcode} dword {dword} is {word:#010x}: bits {bits:#010x} are reserved")]
    Reserved {
        /// The packet.
        opcode: Opcode,
        /// Index of the dword, 0 being the header.
        dword: usize,
        /// The dword.
        word: u32,
        /// The offending bits.
        bits: u32,
    },
    /// A header of one packet was given to the decoder of another.
    #[error("expected {expected}, found {found}")]
    WrongOpcode {
        /// The packet asked for.
        expected: Opcode,
        /// The packet found.
        found: Opcode,
    },
    /// An address is not aligned as the packet needs.
    #[error("{opcode} address {addr} is not a multiple of {align} bytes")]
    Misaligned {
        /// The packet.
        opcode: Opcode,
        /// The address.
        addr: GpuAddr,
        /// The alignment it needs, bytes.
        align: u64,
    },
    /// A count does not fit its field.
    #[error("{opcode} cannot hold {found} dwords, at most {max}")]
    TooLong {
        /// The packet.
        opcode: Opcode,
        /// The count asked for, dwords.
        found: usize,
        /// The most the field holds, dwords.
        max: usize,
    },
    /// A register outside the range that a packet reaches.
    #[error("{opcode} reaches registers {first:#06x} to {last:#06x}, not {reg:#06x}")]
    RegisterOutOfRange {
        /// The packet.
        opcode: Opcode,
        /// The first register asked for that it does not reach, a dword address.
        reg: u32,
        /// First register it reaches.
        first: u32,
        /// Last register it reaches.
        last: u32,
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
