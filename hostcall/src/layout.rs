//! The memory that kernels and the host share: both transports, as plain structs.
//!
//! A kernel's `hidden_hostcall_buffer` is the address of a descriptor. Everything after it is found
//! through addresses that the host wrote, so the order of the regions in an [`Area`] is ours.
//! Numbers: docs/ABI.md §Hostcall.

mod area;
mod phase;
mod stack;

pub use area::{Area, MAX_PACKETS, MIN_PACKETS};
pub use phase::{PhaseDescriptor, PhaseHeader};
pub use stack::{CONTROL_READY, StackDescriptor, StackHeader};

/// How packets travel. The device library that was linked into a kernel decides; nothing in the
/// kernel says which it was (`needs::Evidence`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Transport {
    /// Tagged stacks of free and of ready packets: every ROCm release up to 2026.
    Stack,
    /// A phase word of either side for each packet, and a bitmap of those in use.
    Phase,
}

/// Slots of a packet's payload: one for each lane of the widest wave.
pub const LANES: usize = 64;
/// 64-bit words of a slot.
pub const SLOT_WORDS: usize = 8;
/// Words of a slot in which the host answers, from the first.
pub const REPLY_WORDS: usize = 2;
/// Bytes of a slot.
pub const SLOT_BYTES: usize = SLOT_WORDS * 8;
/// Bytes of a payload. The same in both transports and for both wave sizes.
pub const PAYLOAD_BYTES: usize = LANES * SLOT_BYTES;

const _: () = assert!(PAYLOAD_BYTES == 4096);

/// Proves at compile time that a struct is laid out as the device library expects.
macro_rules! layout {
    ($name:ident, size = $size:literal, { $($field:ident @ $offset:literal),* $(,)? }) => {
        const _: () = {
            assert!(core::mem::size_of::<$name>() == $size);
            $(assert!(core::mem::offset_of!($name, $field) == $offset);)*
        };
    };
}
use layout;
