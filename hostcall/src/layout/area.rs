//! Where the regions of one pool lie in its memory.

use core::mem::offset_of;

use super::{
    PAYLOAD_BYTES, PhaseDescriptor, PhaseHeader, SLOT_BYTES, StackDescriptor, StackHeader,
    Transport,
};
use crate::error::{Error, Result};

/// Fewest packets of a pool: the stack transport's first state names packet 1.
pub const MIN_PACKETS: u32 = 2;
/// Most packets of a pool: a hundred times the waves of the largest GPU there is, and 4 GiB.
pub const MAX_PACKETS: u32 = 1 << 20;

/// Regions start at a cache line of their own.
const LINE: usize = 64;
/// Payloads start at a page.
const PAGE: usize = 4096;

/// Offsets of one pool's regions, in bytes from the descriptor. Computed from the host's own
/// numbers, once: nothing that the device can write goes into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Area {
    transport: Transport,
    packets: u32,
    device_phase: usize,
    host_phase: usize,
    headers: usize,
    payloads: usize,
    bytes: usize,
}

impl Area {
    /// The regions of a pool of `packets`.
    ///
    /// The device never tests whether a packet is free on the stack transport: there must be as
    /// many as waves of the queue can exist at once, those included that are switched out.
    ///
    /// # Errors
    /// [`Error::PacketCount`] outside [`MIN_PACKETS`] to [`MAX_PACKETS`].
    pub const fn new(transport: Transport, packets: u32) -> Result<Self> {
        if packets < MIN_PACKETS || packets > MAX_PACKETS {
            return Err(Error::PacketCount { packets, least: MIN_PACKETS, most: MAX_PACKETS });
        }
        let count = packets as usize;
        // The largest sum is below 2^33, and addresses have 64 bits (kfd supports nothing else).
        let (phases, header_bytes) = match transport {
            Transport::Stack => (0, size_of::<StackHeader>()),
            Transport::Phase => ((4 * count).next_multiple_of(LINE), size_of::<PhaseHeader>()),
        };
        let device_phase = LINE;
        let host_phase = device_phase + phases;
        let headers = host_phase + phases;
        let payloads = (headers + header_bytes * count).next_multiple_of(PAGE);
        let bytes = payloads + PAYLOAD_BYTES * count;
        Ok(Self { transport, packets, device_phase, host_phase, headers, payloads, bytes })
    }

    /// The transport.
    pub const fn transport(&self) -> Transport {
        self.transport
    }

    /// Packets.
    pub const fn packets(&self) -> u32 {
        self.packets
    }

    /// Memory needed, at a multiple of 64.
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Mask of a tagged index: one less than the power of two that is not below the packets.
    pub const fn index_mask(&self) -> u64 {
        (self.packets as u64).next_power_of_two() - 1
    }

    /// Bytes of the bitmap of packets in use, which the phase transport keeps in device memory.
    pub const fn occupied_bytes(&self) -> usize {
        4 * (self.packets as usize).div_ceil(32)
    }

    /// Offset of the headers.
    pub const fn headers(&self) -> usize {
        self.headers
    }

    /// Offset of the payloads.
    pub const fn payloads(&self) -> usize {
        self.payloads
    }

    /// Offset of the device's phase words (phase transport).
    pub const fn device_phases(&self) -> usize {
        self.device_phase
    }

    /// Offset of the host's phase words (phase transport).
    pub const fn host_phases(&self) -> usize {
        self.host_phase
    }

    const fn header(&self, packet: u32) -> usize {
        let bytes = match self.transport {
            Transport::Stack => size_of::<StackHeader>(),
            Transport::Phase => size_of::<PhaseHeader>(),
        };
        self.headers + bytes * packet as usize
    }

    /// Offset of a packet's mask of lanes.
    pub const fn activemask(&self, packet: u32) -> usize {
        let field = match self.transport {
            Transport::Stack => offset_of!(StackHeader, activemask),
            Transport::Phase => offset_of!(PhaseHeader, activemask),
        };
        self.header(packet) + field
    }

    /// Offset of a packet's service.
    pub const fn service(&self, packet: u32) -> usize {
        let field = match self.transport {
            Transport::Stack => offset_of!(StackHeader, service),
            Transport::Phase => offset_of!(PhaseHeader, service),
        };
        self.header(packet) + field
    }

    /// Offset of a packet's link (stack transport).
    pub const fn next(&self, packet: u32) -> usize {
        self.header(packet) + offset_of!(StackHeader, next)
    }

    /// Offset of a packet's control word (stack transport).
    pub const fn control(&self, packet: u32) -> usize {
        self.header(packet) + offset_of!(StackHeader, control)
    }

    /// Offset of the ready stack (stack transport).
    pub const fn ready_stack(&self) -> usize {
        offset_of!(StackDescriptor, ready_stack)
    }

    /// Offset of the free stack (stack transport).
    pub const fn free_stack(&self) -> usize {
        offset_of!(StackDescriptor, free_stack)
    }

    /// Offset of a packet's device phase (phase transport).
    pub const fn device_phase(&self, packet: u32) -> usize {
        self.device_phase + 4 * packet as usize
    }

    /// Offset of a packet's host phase (phase transport).
    pub const fn host_phase(&self, packet: u32) -> usize {
        self.host_phase + 4 * packet as usize
    }

    /// Offset of a lane's slot in a packet's payload.
    pub const fn slot(&self, packet: u32, lane: usize) -> usize {
        self.payloads + PAYLOAD_BYTES * packet as usize + SLOT_BYTES * lane
    }

    /// The descriptor of the stack transport for memory at device address `base`, all packets free.
    pub const fn stack_descriptor(&self, base: u64, doorbell: u64) -> StackDescriptor {
        StackDescriptor {
            headers: base + self.headers as u64,
            payloads: base + self.payloads as u64,
            doorbell,
            free_stack: self.packets as u64 - 1,
            ready_stack: 0,
            index_mask: self.index_mask(),
        }
    }

    /// First link of a packet in the free stack: every packet is above the one before it. The
    /// bottom one, packet 0, carries the first tag, so that its tagged index is not 0.
    pub const fn first_next(&self, packet: u32) -> u64 {
        match packet {
            0 => 0,
            1 => self.index_mask() + 1,
            _ => packet as u64 - 1,
        }
    }

    /// The descriptor of the phase transport for memory at device address `base`.
    pub const fn phase_descriptor(
        &self,
        base: u64,
        occupied: u64,
        doorbell: u64,
    ) -> PhaseDescriptor {
        PhaseDescriptor {
            device_phase: base + self.device_phase as u64,
            host_phase: base + self.host_phase as u64,
            occupied,
            headers: base + self.headers as u64,
            payloads: base + self.payloads as u64,
            doorbell,
            num_packets: self.packets,
            pad: 0,
        }
    }
}

const _: () = {
    assert!(size_of::<StackDescriptor>() <= LINE);
    assert!(size_of::<PhaseDescriptor>() <= LINE);
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_are_in_order_aligned_and_inside() {
        for transport in [Transport::Stack, Transport::Phase] {
            for packets in [2, 3, 63, 64, 65, 3072, 3520, 9728, MAX_PACKETS] {
                let area = Area::new(transport, packets).unwrap();
                let last = packets - 1;
                assert!(area.device_phases() >= 56);
                if transport == Transport::Phase {
                    assert!(area.device_phase(last) + 4 <= area.host_phases());
                    assert!(area.host_phase(last) + 4 <= area.headers());
                }
                assert!(area.service(last) + 4 <= area.payloads());
                assert_eq!(area.headers() % 64, 0);
                assert_eq!(area.payloads() % 4096, 0);
                assert_eq!(area.slot(last, LAST_LANE) + SLOT_BYTES, area.bytes());
            }
        }
    }

    const LAST_LANE: usize = super::super::LANES - 1;

    #[test]
    fn sizes_are_those_of_the_reference_plus_alignment() {
        // 24 + 4096 bytes a packet: 304 CUs of 32 waves are 40.1 MB.
        let area = Area::new(Transport::Stack, 9728).unwrap();
        assert!((4120 * 9728..4120 * 9728 + 4096 + 64).contains(&area.bytes()));
        assert_eq!(area.index_mask(), 16383);
    }

    #[test]
    fn the_free_stack_starts_with_every_packet_once() {
        for packets in [2, 3, 5, 64, 1000] {
            let area = Area::new(Transport::Stack, packets).unwrap();
            let descriptor = area.stack_descriptor(0, 0);
            let mut seen = Vec::new();
            let mut at = descriptor.free_stack;
            while at != 0 {
                let packet = u32::try_from(at & descriptor.index_mask).unwrap();
                seen.push(packet);
                at = area.first_next(packet);
            }
            assert_eq!(seen, (0..packets).rev().collect::<Vec<_>>());
        }
    }

    #[test]
    fn absurd_counts_are_refused() {
        for packets in [0, 1, MAX_PACKETS + 1, u32::MAX] {
            let refused = Area::new(Transport::Stack, packets).unwrap_err();
            assert!(matches!(refused, Error::PacketCount { packets: p, .. } if p == packets));
        }
    }
}
