//! The instruction set: opcode tables per target, the decoder into [`ir::Inst`], the printer.

mod decode;
mod effects;
#[rustfmt::skip] // generated
mod generated;
pub mod ir;
mod op;
mod print;
mod reach;
mod scan;
mod sig;

pub use decode::{DecodeError, Decoded, Pools, decode};
pub use effects::{Counter, Effects, Memory, Span};
pub use generated::op::Op;
pub use print::print;
pub use reach::{Inexact, Instruction, inexact};
pub use scan::{Coverage, scan};
pub use sig::Format;
