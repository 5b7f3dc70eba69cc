//! The instruction set: opcode tables per target, the decoder into [`ir::Inst`], the printer.

#[rustfmt::skip] // generated
mod generated;
pub mod ir;
mod op;

pub use generated::op::Op;
