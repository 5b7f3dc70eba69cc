//! The stack transport's structs.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::layout;

/// What `hidden_hostcall_buffer` points at.
///
/// Stacks hold tagged indices: the packet is `value & index_mask`, the bits above are a tag that
/// the device advances each time it returns a packet. 0 is an empty stack.
///
/// # Source
/// `buffer_t` in device-libs ockl/src/hostcall_impl.cl; docs/ABI.md §Hostcall stack transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct StackDescriptor {
    /// Address of the headers.
    pub headers: u64,
    /// Address of the payloads.
    pub payloads: u64,
    /// Address of the `amd_signal_t` that the device adds 1 to.
    pub doorbell: u64,
    /// Packets that no wave has. The host writes it once.
    pub free_stack: u64,
    /// Packets that wait for the host. Pushed by the device, emptied by the host.
    pub ready_stack: u64,
    /// Mask of the index in a tagged index.
    pub index_mask: u64,
}
layout!(StackDescriptor, size = 48, {
    headers @ 0, payloads @ 8, doorbell @ 16, free_stack @ 24, ready_stack @ 32, index_mask @ 40,
});

/// A packet's header.
///
/// # Source
/// `header_t` in device-libs ockl/src/hostcall_impl.cl; docs/ABI.md §Hostcall stack transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct StackHeader {
    /// Tagged index of the packet below in whichever stack holds this one.
    pub next: u64,
    /// The wave's EXEC: bit n set, slot n is a request.
    pub activemask: u64,
    /// The service called.
    pub service: u32,
    /// Bit 0: the wave waits. The host clears it to answer.
    pub control: u32,
}
layout!(StackHeader, size = 24, { next @ 0, activemask @ 8, service @ 16, control @ 20 });

/// Bit of [`StackHeader::control`] that the wave waits on.
pub const CONTROL_READY: u32 = 1;
