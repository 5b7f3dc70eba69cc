//! AQL: the packets that a compute queue executes, its memory layouts, and the ring.
//!
//! - [`packet`]: one builder per packet type; [`Packet::decode`] undoes them and says what is wrong
//!   with a packet that is none. [`header`] has the 16 bits in front.
//! - [`AmdSignal`], [`AmdQueueV2`]: what host and device share beside packets, as plain structs to
//!   fill memory with, and [`SignalWords`], [`QueueWords`] to use that memory while a device writes
//!   to it.
//! - [`SharedWords`]: memory that another agent writes, reachable only through atomics.
//! - [`Ring`]: reserves slots, writes packets, publishes them in order, and never overwrites what
//!   the device has not consumed. No lock, no allocation, no system call, no waiting.
//!
//! Numbers: docs/ABI.md §AQL.
#![no_std]

extern crate alloc;

mod error;
pub mod header;
pub mod packet;
mod queue;
mod ring;
mod shared;
mod signal;
mod sync;

pub use error::{Error, Problem};
pub use header::{FenceScope, Header, PacketType};
pub use packet::{
    AgentDispatch, BarrierAnd, BarrierOr, BarrierValue, Condition, Decoded, KernelDispatch, Packet,
    Pm4Ib, VendorFormat,
};
pub use queue::{AmdQueueV2, QueueProperties, QueueState, QueueWords, ScratchLastUsed};
pub use ring::{Reservation, Ring, Submitted};
#[cfg(loom)]
pub use shared::{Indices, Slots};
pub use shared::{SharedWords, store_fence};
pub use signal::{AmdSignal, SignalKind, SignalWords};

/// Proves at compile time that a struct is laid out as AMD's headers say.
macro_rules! layout {
    ($name:ident, size = $size:literal, { $($field:ident @ $offset:literal),* $(,)? }) => {
        const _: () = {
            assert!(core::mem::size_of::<$name>() == $size);
            $(assert!(core::mem::offset_of!($name, $field) == $offset);)*
        };
    };
}
use layout;
