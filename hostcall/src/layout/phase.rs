//! The phase transport's structs.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::layout;

/// What `hidden_hostcall_buffer` points at.
///
/// A packet waits for the host while its two phase words differ: the device flips its own to send,
/// the host flips its own to answer.
///
/// # Source
/// `buffer_t` in device-libs ockl/src/hostcall_impl.cl (2026); docs/ABI.md §Hostcall phase
/// transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct PhaseDescriptor {
    /// Address of the device's phase words, 32 bits a packet.
    pub device_phase: u64,
    /// Address of the host's phase words, 32 bits a packet.
    pub host_phase: u64,
    /// Address of the bitmap of packets that waves have, in device memory: the host never reads it.
    pub occupied: u64,
    /// Address of the headers.
    pub headers: u64,
    /// Address of the payloads.
    pub payloads: u64,
    /// Address of the `amd_signal_t` that the device adds 1 to, at most once in 10 µs.
    pub doorbell: u64,
    /// Packets.
    pub num_packets: u32,
    /// Padding of the C struct.
    pub pad: u32,
}
layout!(PhaseDescriptor, size = 56, {
    device_phase @ 0, host_phase @ 8, occupied @ 16, headers @ 24, payloads @ 32, doorbell @ 40,
    num_packets @ 48,
});

/// A packet's header.
///
/// # Source
/// `header_t` in device-libs ockl/src/hostcall_impl.cl (2026); docs/ABI.md §Hostcall phase
/// transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct PhaseHeader {
    /// The wave's EXEC: bit n set, slot n is a request.
    pub activemask: u64,
    /// The service called.
    pub service: u32,
    /// Padding of the C struct.
    pub pad: u32,
}
layout!(PhaseHeader, size = 16, { activemask @ 0, service @ 8 });
