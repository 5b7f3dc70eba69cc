//! [`Recorded`]: what was recorded, and where its parts are in the memory of an instance. Immutable.

use std::sync::Arc;

use aql::{FenceScope, Packet};
use kfd::{Buffer, KernelLabel};
use pm4::GpuAddr;

use super::ib::Segment;
use super::{CommandKind, CommandRequest, Reason};
use crate::device::DeviceCore;
use crate::launch::{Cold, Size};

/// Bytes of a time in an instance's memory: an `amd_signal_t`, whose end is what both kinds write.
pub(crate) const STAMP_BYTES: u32 = 64;
/// Offset in it of the time, in ticks. docs/ABI.md §AQL signal.
pub(crate) const STAMP_TICKS: u32 = 40;
/// Bytes of an AQL packet.
const PACKET_BYTES: u32 = 64;
/// The barrier in an AQL packet's first dword. docs/ABI.md §AQL header.
const BARRIER_BIT: u32 = 1 << 8;

/// Something recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A launch.
    Kernel(u32),
    /// What comes next waits for everything before.
    Barrier,
    /// The time when everything before is done.
    Stamp(u32),
}

const _: () = assert!(size_of::<Step>() == 8);

/// The arguments of a kernel that are in packets, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Preload {
    /// Where in an instance's memory, bytes.
    pub at: u32,
    /// The first of them, from the start of the kernel's arguments, bytes.
    pub first: u32,
    pub bytes: u32,
}

/// A recorded launch.
#[derive(Debug)]
pub(crate) struct Kernel {
    pub cold: Arc<Cold>,
    pub size: Size,
    /// LDS of a group, bytes.
    pub lds_bytes: u32,
    /// Offset of its arguments among all arguments, bytes.
    pub kernarg: u32,
    /// Which of the dispatch packets is its, if it looks at one.
    pub packet: Option<u32>,
    /// Its preloaded arguments in an indirect buffer.
    pub preload: Option<Preload>,
}

const _: () = assert!(size_of::<Kernel>() <= 64);

impl Kernel {
    /// Its dispatch packet, which waits for what was submitted before if `barrier` says so.
    pub fn packet(&self, arguments: GpuAddr, barrier: bool) -> Packet {
        let kernarg = arguments.get() + u64::from(self.kernarg);
        let kernarg = if self.has_arguments() { GpuAddr::new(kernarg) } else { GpuAddr::NULL };
        let none = GpuAddr::NULL;
        let scope = FenceScope::AGENT;
        let mut packet = self.cold.packet(&self.size, self.lds_bytes, kernarg, scope, none);
        if !barrier {
            let [first, ..] = &mut packet.0;
            *first &= !BARRIER_BIT;
        }
        packet
    }

    pub fn has_arguments(&self) -> bool {
        self.cold.layout.ring_bytes() > 0
    }
}

/// Where things are in an instance's memory, bytes from its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Places {
    pub arguments: u32,
    pub packets: u32,
    pub stamps: u32,
    pub bytes: u32,
}

impl Places {
    /// Indirect buffers, arguments, dispatch packets, times. `None` when that is too much.
    pub fn new(
        buffers: u32,
        align: u32,
        arguments: u32,
        packets: u32,
        stamps: u32,
    ) -> Option<Self> {
        let aligned = buffers.checked_next_multiple_of(align)?;
        let packets_at = aligned.checked_add(arguments)?.checked_next_multiple_of(PACKET_BYTES)?;
        let stamps_at = packets_at.checked_add(packets.checked_mul(PACKET_BYTES)?)?;
        let bytes = stamps_at.checked_add(stamps.checked_mul(STAMP_BYTES)?)?;
        Some(Self { arguments: aligned, packets: packets_at, stamps: stamps_at, bytes })
    }

    /// Offset of a dispatch packet.
    pub const fn packet(&self, number: u32) -> u32 {
        self.packets + number * PACKET_BYTES
    }

    /// Offset of a time's signal.
    pub const fn stamp(&self, number: u32) -> u32 {
        self.stamps + number * STAMP_BYTES
    }
}

/// What was recorded.
#[derive(Debug)]
pub(crate) struct Recorded {
    pub device: Arc<DeviceCore>,
    pub request: CommandRequest,
    pub kind: CommandKind,
    pub reason: Reason,
    /// Tells it from other command buffers.
    pub tag: u32,
    pub steps: Box<[Step]>,
    pub kernels: Box<[Kernel]>,
    pub stamps: u32,
    /// Offsets among the arguments of words that hold the address of the queue.
    pub queue_words: Box<[u32]>,
    /// Some of the arguments are in packets, too.
    pub has_preload: bool,
    /// Something looks at the queue's descriptor.
    pub uses_queue: bool,
    /// Scratch of a work-item at most, bytes.
    pub private_bytes: u32,
    pub places: Places,
    /// Of an indirect buffer, in order; the first is entered.
    pub segments: Box<[Segment]>,
    pub label: KernelLabel,
    /// Memory that copies and fills name.
    pub _memory: Box<[Arc<Buffer>]>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_aligned_and_apart() {
        let places = Places::new(100, 256, 72, 2, 3).unwrap();
        let expected = Places { arguments: 256, packets: 384, stamps: 512, bytes: 704 };
        assert_eq!(places, expected);
        assert_eq!((places.packet(1), places.stamp(2)), (448, 640));
        assert_eq!(Places::new(0, 64, 0, 0, 0), Some(Places::default()));
    }

    #[test]
    fn what_32_bits_cannot_count_has_no_places() {
        assert!(Places::new(u32::MAX, 64, 0, 0, 0).is_none());
        assert!(Places::new(0, 64, u32::MAX, 0, 0).is_none());
        assert!(Places::new(0, 64, 0, u32::MAX, 0).is_none());
        assert!(Places::new(0, 64, 0, 0, u32::MAX).is_none());
    }
}
