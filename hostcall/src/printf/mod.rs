//! printf of device code: blocking messages and buffered records, both from private copies.
//!
//! Nothing here touches device memory. What a device wrote comes in as words or bytes that the caller
//! copied before, and every length in them is checked against the copy. Three parts:
//!
//! - [`Blocking`] puts the fragments of hostcall service 2 together, prints finished messages and says
//!   what to answer.
//! - [`FormatTable`] holds a module's format strings, from `amdhsa.printf` of its code object.
//! - [`Records`] goes through a drained FIFO; [`drain`] prints it.
//!
//! # Source
//! docs/ABI.md §printf messages
//! docs/ABI.md §printf FIFO
//! docs/ABI.md §printf metadata

mod blocking;
mod fifo;
mod messages;
mod opencl;
mod table;

#[cfg(test)]
mod tests;

pub use blocking::{Blocking, BlockingStats};
pub use fifo::{
    DrainLimits, Drained, FIFO_HEADER_BYTES, Record, RecordError, Records, Used, drain,
    fifo_header, used,
};
pub use messages::{Descriptor, MessageLimits, Messages, Refused, Sender};
pub use table::{EntryError, FormatTable, Lookup, RecordKind};

pub use crate::sink::Stream;

/// What an error is answered with: as a result of printf it is -1, as a descriptor it has reserved bits,
/// so that the rest of the message is refused as well.
///
/// docs/ABI.md §printf messages
pub const ERROR_REPLY: u64 = u64::MAX;

/// Scratch space above this size is given back after a message.
const KEPT_BYTES: usize = 64 << 10;

/// Empties `scratch` and gives memory back that only a rare message needs.
fn reset(scratch: &mut Vec<u8>) {
    scratch.clear();
    scratch.shrink_to(KEPT_BYTES);
}
