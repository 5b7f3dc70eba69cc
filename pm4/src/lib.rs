//! PM4 packets of AMD compute queues: typed builders, and the decoder that undoes them.
//!
//! - [`GpuAddr`]: an address as the GPU sees it.
//! - [`Header`], [`Opcode`]: the first dword of every packet.
//! - [`packet`]: one type per packet. `new` takes what a packet needs, chained methods what it may
//!   have, `encode` gives the dwords.
//! - [`Packets`]: walks a dword buffer packet by packet; unknown packets are kept raw.
//!
//! Numbers: docs/ABI.md §PM4.
#![no_std]
#![forbid(unsafe_code)]

mod addr;
mod decode;
mod error;
mod header;
pub mod packet;

pub use addr::GpuAddr;
pub use decode::{Packet, Packets};
pub use error::Error;
pub use header::{Header, Opcode};
pub use packet::{IndirectBuffer, Nop, ReleaseMem, WriteBlock, WriteData};
