//! What can go wrong.

use pm4::GpuAddr;

/// Why the ring or a view of shared memory refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The device has not consumed enough packets to make room. Try again later.
    #[error("ring is full: {needed} slots needed, {free} of {size} free")]
    Full {
        /// Slots asked for.
        needed: u64,
        /// Slots free when last looked.
        free: u64,
        /// Slots of the ring.
        size: u64,
    },
    /// The device's read index left the range that the published packets allow. The queue is lost.
    #[error("device read index {read} is outside {first} to {last}")]
    ReadIndexOutOfRange {
        /// What the device wrote.
        read: u64,
        /// Packets known to be consumed.
        first: u64,
        /// Packets published.
        last: u64,
    },
    /// A batch that no ring of this size can ever take, or an empty one.
    #[error("a batch of {packets} packets does not fit a ring of {size}")]
    BatchSize {
        /// Packets asked for.
        packets: u64,
        /// Slots of the ring.
        size: u64,
    },
    /// More packets were pushed than the reservation has slots.
    #[error("the reservation has only {packets} slots")]
    ReservationFull {
        /// Slots reserved.
        packets: u32,
    },
    /// A packet of type INVALID would stall the queue at its slot.
    #[error("a packet of type INVALID cannot be submitted")]
    InvalidPacket,
    /// Ring memory must be a power of two of 64-byte packets.
    #[error("{bytes} bytes are not a power of two of 64-byte packets")]
    RingSize {
        /// Bytes given.
        bytes: usize,
    },
    /// Shared memory ends before what was asked for.
    #[error("{bytes} bytes at offset {offset} leave a region of {region} bytes")]
    OutOfBounds {
        /// Offset asked for, bytes.
        offset: usize,
        /// Length asked for, bytes.
        bytes: usize,
        /// Length of the region, bytes.
        region: usize,
    },
    /// An address in shared memory is not aligned as its type needs.
    #[error("address {address:#x} is not a multiple of {align}")]
    Misaligned {
        /// Host address.
        address: usize,
        /// Alignment needed, bytes.
        align: usize,
    },
    /// A signal's kind is none of those AMD defines.
    #[error("signal kind {kind} is unknown")]
    SignalKind {
        /// The kind found.
        kind: i64,
    },
}

/// Why 64 bytes are not a packet that a command processor accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The type is none of the six.
    #[error("packet type {0} is unknown")]
    UnknownType(u8),
    /// A vendor packet's format is none that is supported.
    #[error("vendor packet format {0} is unknown")]
    UnknownFormat(u8),
    /// A reserved bit is set.
    #[error("reserved bits {bits:#010x} of dword {dword} are set")]
    Reserved {
        /// Index of the dword in the packet.
        dword: u8,
        /// The bits that are set.
        bits: u32,
    },
    /// A fence scope is 3.
    #[error("header {0:#06x} has a fence scope without meaning")]
    FenceScope(u16),
    /// The number of dimensions is not 1, 2 or 3.
    #[error("{0} dimensions")]
    Dimensions(u16),
    /// A grid or workgroup size is zero, or not 1 in a dimension beyond those used.
    #[error("grid {}x{}x{} of workgroups {}x{}x{} in {dimensions} dimensions", grid[0], grid[1],
        grid[2], workgroup[0], workgroup[1], workgroup[2])]
    GridSize {
        /// Dimensions used.
        dimensions: u16,
        /// Work-items.
        grid: [u32; 3],
        /// Work-items per workgroup.
        workgroup: [u16; 3],
    },
    /// A workgroup has more than 1024 work-items.
    #[error("workgroup of {items} work-items, at most 1024")]
    WorkgroupSize {
        /// Work-items.
        items: u64,
    },
    /// The kernel descriptor's address is null or not 64-byte aligned.
    #[error("kernel descriptor address {0} is null or not 64-byte aligned")]
    KernelObject(GpuAddr),
    /// A signal's address is not 8-byte aligned.
    #[error("signal address {0} is not 8-byte aligned")]
    Signal(GpuAddr),
    /// A barrier-value condition is none of the four.
    #[error("condition {0} is unknown")]
    Condition(u32),
    /// The PM4 words of a PM4-IB packet are not an `INDIRECT_BUFFER`.
    #[error("bad PM4 packet inside")]
    Pm4(#[source] pm4::Error),
    /// The word after the PM4 words of a PM4-IB packet is not 10.
    #[error("remaining-dwords field is {0}, not 10")]
    RemainingDwords(u32),
}
