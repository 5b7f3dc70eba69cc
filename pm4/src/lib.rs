//! PM4 and SDMA packets of AMD GPUs: typed builders, and the decoders that undo them.
//!
//! - [`GpuAddr`]: an address as the GPU sees it.
//! - [`Header`], [`Opcode`]: the first dword of every packet.
//! - [`packet`]: one type per packet. `new` takes what a packet needs, chained methods what it may
//!   have, `encode` gives the dwords.
//! - [`Packets`]: walks a dword buffer packet by packet; unknown packets are kept raw.
//! - [`IbBuilder`]: packets into memory that the caller gives, without allocation.
//! - [`reg`]: the compute registers of each target as bit ranges.
//! - [`dispatch`]: the registers and user SGPRs of a launch on a PM4 queue.
//! - [`sdma`]: the same for SDMA queues.
//!
//! Numbers: docs/ABI.md §PM4, §Compute registers, §SDMA.
#![no_std]
#![forbid(unsafe_code)]

mod addr;
mod bits;
mod decode;
pub mod dispatch;
mod emit;
mod error;
mod header;
#[cfg(test)]
mod headers;
mod ib;
pub mod packet;
pub mod reg;
pub mod sdma;
mod target;

pub use addr::GpuAddr;
pub use bits::Bits;
pub use decode::{Packet, Packets};
pub use emit::{Encode, Pm4Packet, RingSink, SdmaPacket, Sink};
pub use error::Error;
pub use header::{Header, Opcode};
pub use ib::IbBuilder;
pub use packet::{IndirectBuffer, Nop, ReleaseMem, WriteBlock, WriteData};
pub use target::Target;
