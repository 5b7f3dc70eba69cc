//! The instruction set: opcode tables per target, the decoder into [`ir::Inst`], the printer.

pub mod ir;

/// Placeholder until the generated enum lands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Op {
    /// No operation.
    SNop,
}
