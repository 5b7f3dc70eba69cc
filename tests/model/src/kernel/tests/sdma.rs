//! SDMA queues, by packets of crate `pm4`.

use std::sync::atomic::Ordering::{Acquire, Release};

use kfd::abi::{EventType, QueueType, WaitResult};
use pm4::GpuAddr;
use pm4::packet::{AtomicOp, Compare};
use pm4::sdma::{
    Atomic, ConstFill, CopyLinear, Fence, FillData, PollMem, Timestamp, Trap, Version,
};

use super::Client;
use super::ring::{Ring, words};
use crate::{Preset, Profile, Target};

fn ring(preset: Preset) -> Ring {
    Ring::on(Client::stepped(preset, Profile::V6_12), QueueType::SDMA)
}

fn version(ring: &Ring) -> Version {
    let version = u32::try_from(ring.client.model.gpus[0].gfx_version).unwrap();
    Version::of(pm4::Target::from_version(version).unwrap())
}

#[test]
fn a_copy_fence_and_trap_reach_memory_and_event() {
    for preset in [
        Preset::of(Target::Gfx1100),
        Preset::of(Target::Gfx90a),
        Preset::of(Target::Gfx942),
        Preset::of(Target::Gfx908),
    ] {
        let mut ring = ring(preset);
        let version = version(&ring);
        let event = ring.client.event(EventType::SIGNAL);
        let slot = ring.events.address() + u64::from(event.event_slot_index) * 8;
        let id = event.event_trigger_data;
        for i in 0..1024 {
            ring.set(8 * i, i as u64 * 0x0101_0101);
        }
        let (from, to) = (GpuAddr::new(ring.address(0)), GpuAddr::new(ring.address(0x4001)));
        let copy = CopyLinear::new(version, from, to, 8191).unwrap();
        let fence = Fence::new(version, GpuAddr::new(slot), id).unwrap();
        ring.run(&words().sdma(&copy).sdma(&fence).sdma(&Trap::new(id).unwrap()));
        let mut bytes = [0_u8; 8191];
        for (i, byte) in bytes.iter_mut().enumerate() {
            let at = 0x4001 + i;
            *byte = ring.u32(at & !3).to_le_bytes()[at & 3];
        }
        for (i, word) in bytes.chunks_exact(8).enumerate() {
            assert_eq!(u64::from_le_bytes(word.try_into().unwrap()), i as u64 * 0x0101_0101);
        }
        assert_eq!(ring.poll(event.event_id), WaitResult::COMPLETE);
        assert!(ring.is_drained());
        assert_eq!(ring.said(), "");
    }
}

#[test]
fn a_poll_holds_its_queue_and_no_other() {
    let mut first = ring(Preset::of(Target::Gfx1100));
    let mut second = first.sibling(|args| args.queue_type = QueueType::SDMA);
    let version = version(&first);
    let at = GpuAddr::new(first.address(0));
    let fence = |at: usize, value| Fence::new(version, GpuAddr::new(first.address(at)), value);
    let (after, other) = (fence(8, 1).unwrap(), fence(16, 2).unwrap());
    let poll = PollMem::new(at, Compare::EQUAL, 5).unwrap();
    first.run(&words().sdma(&poll).sdma(&after));
    second.run(&words().sdma(&other));
    assert_eq!((first.u32(8), first.u32(16)), (0, 2));
    first.set(0, 5);
    first.settle();
    assert_eq!(first.u32(8), 1);
    assert!(first.is_drained());
}

#[test]
fn fills_atomics_and_timestamps_reach_memory() {
    let mut ring = ring(Preset::of(Target::Gfx90a));
    let version = version(&ring);
    let at = |offset: usize| GpuAddr::new(ring.address(offset));
    let dwords = ConstFill::new(version, at(0), FillData::Dword(0xabcd_ef01), 4096).unwrap();
    let bytes = ConstFill::new(version, at(0x1001), FillData::Byte(7), 5).unwrap();
    let add = Atomic::new(AtomicOp::ADD_64, at(0x1010), u64::MAX).unwrap();
    let stamp = Timestamp::global(at(0x1020)).unwrap();
    ring.memory.u64(0x1010).store(1, Release);
    let packets = words().sdma(&dwords).sdma(&bytes).sdma(&add).sdma(&stamp);
    let before = ring.client.model.gpus[0].counter_khz;
    ring.run(&packets);
    assert_eq!(
        (ring.u32(0), ring.u32(4092), ring.u32(4096)),
        (0xabcd_ef01, 0xabcd_ef01, 0x0707_0700)
    );
    assert_eq!(ring.u32(0x1004), 0x0707);
    assert_eq!(ring.memory.u64(0x1010).load(Acquire), 0);
    assert!(ring.u64(0x1020) > before);
}
