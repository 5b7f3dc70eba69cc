//! PM4 queues, by packets of crate `pm4`.

use std::sync::atomic::Ordering::{Acquire, Release};

use kfd::abi::{EventType, QueueType, WaitResult};
use pm4::packet::gfx9::{self, ReleaseCache};
use pm4::packet::{Compare, EventWrite, IndirectBuffer, PredExec, WaitOn, WaitRegMem, gfx11};
use pm4::{GpuAddr, ReleaseMem, WriteData};

use super::Client;
use super::ring::{RING, Ring, words};
use crate::{Preset, Profile, Target};

fn ring(preset: Preset) -> Ring {
    Ring::on(Client::stepped(preset, Profile::V6_12), QueueType::COMPUTE)
}

fn store(at: u64, value: u32) -> WriteData {
    WriteData::new(GpuAddr::new(at), value).unwrap().confirm()
}

/// A release on either generation.
fn release(ring: &Ring) -> ReleaseMem {
    let target = ring.client.model.gpus[0].target.unwrap();
    if target.is_gfx9() {
        ReleaseMem::gfx9(ReleaseCache::empty())
    } else {
        ReleaseMem::gfx11(gfx11::ReleaseCache::empty())
    }
}

fn at_least(at: u64, value: u32) -> WaitRegMem {
    let on = WaitOn::Memory(GpuAddr::new(at));
    WaitRegMem::new(on, Compare::GREATER_EQUAL, value).unwrap()
}

#[test]
fn packets_are_carried_out_in_order_and_the_read_pointer_follows() {
    for preset in [Preset::of(Target::Gfx1100), Preset::of(Target::Gfx90a)] {
        let mut ring = ring(preset);
        let at = ring.address(0);
        let fence = release(&ring).write_64(GpuAddr::new(at + 8), 7 << 32 | 5).unwrap();
        ring.run(&words().pm4(&store(at, 0xdead_beef)).pm4(&fence).raw(&[0xffff_1000]));
        assert_eq!((ring.u32(0), ring.u64(8)), (0xdead_beef, 7 << 32 | 5));
        assert!(ring.is_drained(), "{}", ring.said());
        assert_eq!(ring.said(), "");
    }
}

#[test]
fn a_wait_holds_its_queue_and_no_other() {
    let mut first = ring(Preset::of(Target::Gfx1100));
    let mut second = first.sibling(|args| args.queue_type = QueueType::COMPUTE);
    let at = first.address(0);
    first.run(&words().pm4(&at_least(at, 5)).pm4(&store(at + 8, 1)));
    assert_eq!((first.u32(8), first.read()), (0, 0));
    second.run(&words().pm4(&store(at + 16, 2)));
    assert_eq!(first.u32(16), 2);
    first.set(0, 5);
    first.settle();
    assert_eq!(first.u32(8), 1);
    assert!(first.is_drained());
}

#[test]
fn a_release_writes_the_mailbox_then_interrupts() {
    for preset in [Preset::of(Target::Gfx1100), Preset::of(Target::Gfx942)] {
        let mut ring = ring(preset);
        let event = ring.client.event(EventType::SIGNAL);
        let slot = ring.events.address() + u64::from(event.event_slot_index) * 8;
        let id = event.event_trigger_data;
        let packet = release(&ring).write_64(GpuAddr::new(slot), id.into()).unwrap();
        ring.run(&words().pm4(&packet.interrupt(id)));
        assert_eq!(ring.poll(event.event_id), WaitResult::COMPLETE);
    }
}

#[test]
fn the_ring_wraps_at_every_offset() {
    let mut ring = ring(Preset::of(Target::Gfx90a));
    let at = ring.address(0);
    // Packets of 5 dwords in a ring of 1024: over five turns each offset is a start.
    for value in 0..1100 {
        ring.submit(&words().pm4(&store(at, value)));
        ring.client.model.step();
        assert_eq!(ring.u32(0), value, "{}", ring.said());
        assert!(ring.is_drained());
    }
    assert!(ring.next > 5 * RING as u64 / 4);
}

#[test]
fn indirect_buffers_nest_and_chain() {
    let mut ring = ring(Preset::of(Target::Gfx90a));
    let at = ring.address(0);
    let call = |base: u64, dwords: u32| IndirectBuffer::new(GpuAddr::new(base), dwords).unwrap();
    let inner = ring.buffer(0x200, &words().pm4(&store(at, 1)));
    let last = ring.buffer(0x300, &words().pm4(&store(at + 4, 2)));
    let outer = words().pm4(&call(inner, 5)).pm4(&call(last, 5).chain()).pm4(&store(at + 8, 3));
    let outer = ring.buffer(0x400, &outer);
    ring.run(&words().pm4(&call(outer, 13)).pm4(&store(at + 12, 4)));
    assert_eq!([0, 4, 8, 12].map(|at| ring.u32(at)), [1, 2, 0, 4]);
    assert!(ring.is_drained());
    // A chain to itself has no end.
    let own = ring.address(0x500);
    ring.buffer(0x500, &words().pm4(&call(own, 4).chain()));
    ring.run(&words().pm4(&call(own, 4)));
    assert!(ring.said().contains("indirect buffers"), "{}", ring.said());
}

#[test]
fn pred_exec_in_a_ring_is_ignored_and_in_a_buffer_selects() {
    let mut ring = ring(Preset::of(Target::Gfx942));
    let at = ring.address(0);
    ring.run(&words().pm4(&PredExec::new(2, 5)).pm4(&store(at, 1)));
    assert_eq!(ring.u32(0), 1);
    let body = words().pm4(&PredExec::new(2, 5)).pm4(&store(at, 2)).pm4(&store(at + 4, 3));
    let buffer = ring.buffer(0x200, &body);
    ring.run(&words().pm4(&IndirectBuffer::new(GpuAddr::new(buffer), 12).unwrap()));
    assert_eq!((ring.u32(0), ring.u32(4)), (1, 3));
}

#[test]
fn a_flush_without_dispatches_passes() {
    let mut ring = ring(Preset::of(Target::Gfx1100));
    let at = ring.address(0);
    ring.run(&words().pm4(&EventWrite::CS_PARTIAL_FLUSH).pm4(&store(at, 9)));
    assert_eq!(ring.u32(0), 9);
}

#[test]
fn the_other_generations_acquire_stops_the_queue() {
    let mut ring = ring(Preset::of(Target::Gfx1100));
    ring.run(&words().pm4(&gfx9::AcquireMem::new(gfx9::AcquireCache::ALL)));
    assert!(ring.said().contains("ACQUIRE_MEM"), "{}", ring.said());
    assert_eq!(ring.read(), 0);
    ring.run(&words().pm4(&store(ring.address(0), 1)));
    assert_eq!(ring.memory.u32(0).load(Acquire), 0);
    ring.memory.u32(0).store(0, Release);
}
