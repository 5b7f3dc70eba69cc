//! Bits of the wave's state registers. docs/ABI.md §Wave state registers.

/// STATUS: scalar condition code.
pub const SCC: u32 = 1 << 0;
/// STATUS: in a trap handler.
pub const PRIV: u32 = 1 << 5;
/// STATUS: a trap handler is installed.
pub const TRAP_EN: u32 = 1 << 6;
/// STATUS: EXEC is zero.
pub const EXECZ: u32 = 1 << 9;
/// STATUS: VCC is zero.
pub const VCCZ: u32 = 1 << 10;
/// STATUS: part of a workgroup of more than one wave.
pub const IN_TG: u32 = 1 << 11;
/// STATUS: halted.
pub const HALT: u32 = 1 << 13;
/// STATUS: the wave exists.
pub const VALID: u32 = 1 << 16;

/// TRAPSTS: memory violation.
pub const MEM_VIOL: u32 = 1 << 8;
/// TRAPSTS: illegal instruction.
pub const ILLEGAL_INST: u32 = 1 << 11;
