//! SDMA rings: where packets may lie, and what stops an engine.

use std::time::{Duration, Instant};

use kfd::abi::{CreateQueueArgs, DestroyQueueArgs, EventData, EventType, QueueType, WaitResult};
use kfd::sys::Errno;
use pm4::GpuAddr;
use pm4::packet::Compare;
use pm4::sdma::{
    CondExe, ConstFill, CopyBroadcast, CopyLinear, CopySubWindow, Fence, FillData, GcrReq,
    HdpFlush, Indirect, PollMem, Side, Trap, Version, WriteUntiled,
};

use super::Client;
use super::ring::{RING, Ring, Words, words};
use crate::{Preset, Profile, Target};

fn ring(target: Target) -> Ring {
    Ring::on(Client::stepped(Preset::of(target), Profile::V6_12), QueueType::SDMA)
}

const V6: Version = Version::V6;

fn fence(ring: &Ring, at: usize, value: u32) -> Fence {
    Fence::new(V6, GpuAddr::new(ring.address(at)), value).unwrap()
}

#[test]
fn bug_11_a_nop_that_runs_past_the_write_pointer_ends_there() {
    let mut ring = ring(Target::Gfx1100);
    ring.run(&words().raw(&[0x3fff_0000]));
    assert!(ring.is_drained(), "{}", ring.said());
    let packet = fence(&ring, 0, 7);
    ring.run(&words().sdma(&packet));
    assert_eq!(ring.u32(0), 7);
}

#[test]
fn bug_14_a_packet_across_the_rings_end_stops_the_engine_and_padding_does_not() {
    let mut ring = ring(Target::Gfx1100);
    let packet = fence(&ring, 0, 7);
    let before_end = RING / 4 - 2;
    ring.run(&words().raw(&vec![0; before_end]));
    assert!(ring.is_drained());
    let mut other = self::ring(Target::Gfx1100);
    other.run(&words().raw(&vec![0; before_end]));
    other.run(&words().raw(&[0, 0]).sdma(&fence(&other, 0, 9)));
    assert_eq!((other.u32(0), other.is_drained()), (9, true));
    ring.run(&words().sdma(&packet));
    assert!(ring.said().contains("FENCE of 4 dwords crosses the ring's end"), "{}", ring.said());
    assert_eq!(ring.u32(0), 0);
}

#[test]
fn buffers_writes_conditions_and_windows_are_carried_out() {
    let mut ring = ring(Target::Gfx1100);
    let at = |offset: usize| GpuAddr::new(ring.address(offset));
    let side = |base, pitch| Side { base, origin: [1, 2, 0], pitch, slice: pitch * 4 };
    for i in 0..256 {
        ring.set(0x4000 + 8 * i, i as u64);
    }
    let window =
        CopySubWindow::new(V6, 2, side(at(0x4000), 16), side(at(0x5000), 8), [3, 2, 1]).unwrap();
    let body = words()
        .sdma(&WriteUntiled::new(at(0x1000), &[1, 2, 3]).unwrap())
        .sdma(&CondExe::new(at(0x2000), 1, 4).unwrap())
        .sdma(&fence(&ring, 0x1010, 5))
        .sdma(&HdpFlush)
        .sdma(&GcrReq::new(V6, GcrReq::BEFORE_COPY).unwrap())
        .sdma(&window)
        .sdma(&CopyBroadcast::new(V6, at(0x4008), [at(0x6000), at(0x6101)], 3).unwrap())
        .sdma(&fence(&ring, 0x1018, 6));
    let base = ring.buffer(0x8000, &body);
    let count = u32::try_from(body.0.len()).unwrap();
    let call = Indirect::new(GpuAddr::new(base), count).unwrap();
    ring.run(&words().raw(&[0, 0]).sdma(&call));
    assert_eq!(ring.said(), "");
    let got = [0x1000, 0x1004, 0x1008, 0x1010, 0x1018].map(|at| ring.u32(at));
    assert_eq!(got, [1, 2, 3, 0, 6]);
    for (y, x) in [(0, 0), (0, 2), (1, 0), (1, 2)] {
        let (from, to) = ((y + 2) * 16 + x + 1, (y + 2) * 8 + x + 1);
        assert_eq!(ring.u32(0x5000 + 4 * to), ring.u32(0x4000 + 4 * from));
    }
    assert_eq!(ring.u32(0x5000 + 4 * (2 * 8)), 0);
    assert_eq!((ring.u32(0x6000), ring.u32(0x6100)), (1, 0x100));
}

#[test]
fn what_an_engine_does_not_know_stops_the_queue_by_name() {
    for (packets, said) in [
        (vec![0xff], "opcode 255/0"),
        (vec![0x0000_0001, 0xfff, 1, 0, 0, 0, 0], "reserved"),
        (vec![0x0000_0005, 0, 0], "of which 3 are there"),
        (vec![0x0000_0002, 0x1000, 0, 8, 1], "of which 5 are there"),
        (vec![0x4000_0000], "reserved"),
        (vec![0x0000_0008, 0x1000, 0, 0, 0, 0], "reserved"),
        (vec![0x0000_0004, 0x1000, 0, 8, 0, 0], "no multiple of 8"),
    ] {
        let mut ring = ring(Target::Gfx1100);
        ring.run(&words().raw(&packets));
        assert!(ring.said().contains(said), "{} for {packets:x?}", ring.said());
        assert_eq!(ring.read(), 0);
        // Others of the engine go on.
        let mut other = ring.sibling(|args| args.queue_type = QueueType::SDMA);
        other.run(&words().sdma(&fence(&ring, 8, 3)));
        assert_eq!(ring.u32(8), 3);
    }
}

#[test]
fn gfx900_wants_sixty_four_dwords_at_a_time() {
    let mut ring = ring(Target::Gfx900);
    ring.run(&words().raw(&[0; 64]));
    assert!(ring.is_drained());
    ring.run(&words().raw(&[0; 63]));
    assert!(ring.said().contains("needs 64"), "{}", ring.said());
}

#[test]
fn a_fault_of_an_engine_is_the_processs() {
    let mut ring = ring(Target::Gfx90a);
    let event = ring.client.event(EventType::MEMORY).event_id;
    let (from, to) = (GpuAddr::new(ring.address(0)), GpuAddr::new(0x6000_2000));
    ring.run(&words().sdma(&CopyLinear::new(Version::V4_4_0, from, to, 64).unwrap()));
    let mut events = [EventData { event_id: event, ..Default::default() }];
    assert_eq!(ring.client.wait(&mut events, false, 0), Ok(WaitResult::COMPLETE));
    let data = events[0].memory_exception_data();
    assert_eq!((data.va, data.failure.not_present, data.failure.read_only), (0x6000_2000, 1, 1));
    assert!(ring.said().contains("SDMA engine 0 faults"), "{}", ring.said());
}

#[test]
fn large_copies_take_turns_with_other_queues() {
    let mut ring = ring(Target::Gfx1100);
    let mut other = ring.sibling(|args| args.queue_type = QueueType::SDMA);
    let bytes = 4 << 20;
    let large = ring.client.page(super::client::GTT, 2 * bytes);
    large.u64(bytes - 8).store(77, std::sync::atomic::Ordering::Release);
    let (from, to) = (large.address(), large.address() + bytes as u64);
    let copy = CopyLinear::new(V6, GpuAddr::new(from), GpuAddr::new(to), bytes as u64).unwrap();
    let (last, first) = (fence(&ring, 0, 1), fence(&ring, 8, 1));
    ring.submit(&words().sdma(&copy).sdma(&last));
    other.submit(&words().sdma(&first));
    ring.client.model.step();
    assert_eq!((ring.u32(0), ring.u32(8)), (0, 1));
    ring.settle();
    assert_eq!(ring.u32(0), 1);
    assert_eq!(large.u64(2 * bytes - 8).load(std::sync::atomic::Ordering::Acquire), 77);
    // As slow as a plan wants it.
    ring.client.model.faults().slow_engines(Duration::ZERO, 64);
    let fill = ConstFill::new(V6, GpuAddr::new(from), FillData::Dword(3), 4096).unwrap();
    let after = fence(&ring, 0, 2);
    ring.submit(&words().sdma(&fill).sdma(&after));
    for _ in 0..32 {
        ring.client.model.step();
    }
    assert_eq!(ring.u32(0), 1);
    ring.settle();
    assert_eq!(ring.u32(0), 2);
}

#[test]
fn interrupts_come_twice_or_without_a_cause_when_ordered() {
    let mut ring = ring(Target::Gfx1100);
    let event = ring.client.event(EventType::SIGNAL);
    ring.client.model.faults().raise_spurious_interrupts(1);
    ring.settle();
    assert_eq!(ring.poll(event.event_id), WaitResult::COMPLETE);
    assert_eq!(ring.poll(event.event_id), WaitResult::TIMEOUT);
    let slot = ring.events.address() + u64::from(event.event_slot_index) * 8;
    let id = event.event_trigger_data;
    let packets = |id| {
        let fence = Fence::new(V6, GpuAddr::new(slot), id).unwrap();
        words().sdma(&fence).sdma(&Trap::new(id).unwrap())
    };
    for _ in 0..50 {
        ring.client.model.faults().repeat_interrupts(1);
        let start = Instant::now();
        ring.run(&packets(id));
        assert_eq!(ring.poll(event.event_id), WaitResult::COMPLETE);
        // The second finds what was written without an interrupt of its own.
        ring.run(&Words(packets(id).0[..4].to_vec()));
        let early = ring.poll(event.event_id);
        if start.elapsed() < Duration::from_millis(20) {
            assert_eq!(early, WaitResult::TIMEOUT);
            std::thread::sleep(Duration::from_millis(21));
            ring.settle();
            assert_eq!(ring.poll(event.event_id), WaitResult::COMPLETE);
            return;
        }
        // This machine was busy: the second interrupt may have come already.
        std::thread::sleep(Duration::from_millis(21));
        ring.settle();
        let _ = ring.poll(event.event_id);
    }
    panic!("never fast enough");
}

#[test]
fn a_poll_that_is_destroyed_or_gives_up_changes_nothing() {
    let mut first = ring(Target::Gfx1100);
    let at = GpuAddr::new(first.address(0));
    let poll = PollMem::new(at, Compare::EQUAL, 1).unwrap();
    let after = fence(&first, 8, 1);
    first.run(&words().sdma(&poll).sdma(&after));
    let queue_id = first.args.queue_id;
    first.client.call(0x03, &mut DestroyQueueArgs { queue_id, pad: 0 }).unwrap();
    let mut next = first.sibling(|args| args.queue_type = QueueType::SDMA);
    assert_eq!(next.args.doorbell_offset, first.args.doorbell_offset);
    first.set(0, 1);
    next.settle();
    assert_eq!(first.u32(8), 0);
    first.set(0, 0);
    next.run(&words().sdma(&poll.pace(4, 3)));
    assert!(next.said().contains("given up after 3 retries"), "{}", next.said());
}

#[test]
fn queues_of_higher_priority_are_executed_first() {
    let low = ring(Target::Gfx1100);
    let mut low = low.sibling(|args| (args.queue_type, args.queue_priority) = (QueueType::SDMA, 1));
    let mut high =
        low.sibling(|args| (args.queue_type, args.queue_priority) = (QueueType::SDMA, 15));
    low.client.model.faults().stop_fetching(true);
    let (first, last) = (fence(&low, 0, 1), fence(&low, 0, 2));
    low.submit(&words().sdma(&last));
    high.submit(&words().sdma(&first));
    low.client.model.faults().stop_fetching(false);
    low.settle();
    assert_eq!(low.u32(0), 2);
}

#[test]
fn engines_have_their_doorbells_types_and_limits() {
    let create = |ring: &Ring, change: fn(&mut CreateQueueArgs)| {
        let (mut args, _) = ring.client.queue_args(RING);
        change(&mut args);
        ring.client.call(0x02, &mut args).map(|_| args)
    };
    let slot = |args: &CreateQueueArgs| (args.doorbell_offset & 0x1fff) / 8;
    // Vega10: two engines of two queues; the second queue's doorbell is in the page's second half.
    let vega = ring(Target::Gfx900);
    assert_eq!(slot(&vega.args), 0xf0);
    let sdma = |args: &mut CreateQueueArgs| args.queue_type = QueueType::SDMA;
    let slots: Vec<u64> = (0..3).map(|_| slot(&create(&vega, sdma).unwrap())).collect();
    assert_eq!(slots, [0xf2, 0x2f0, 0x2f2]);
    assert_eq!(create(&vega, sdma).unwrap_err(), Errno::NOMEM);
    // MI200: engines 2 and up are for xGMI; a queue by number has its engine's type.
    let mi200 = ring(Target::Gfx90a);
    let by_number = |args: &mut CreateQueueArgs| {
        (args.queue_type, args.sdma_engine_id) = (QueueType::SDMA_BY_ENG_ID, 3);
    };
    let slots: Vec<u64> = (0..8).map(|_| slot(&create(&mi200, by_number).unwrap())).collect();
    assert_eq!(slots, [286, 798, 287, 799, 288, 800, 289, 801]);
    assert_eq!(create(&mi200, by_number).unwrap_err(), Errno::NOMEM);
    let state = mi200.client.model.lock();
    let queues = &state.processes[&std::process::id()].queues;
    assert!(queues.values().skip(1).all(|record| record.kind == QueueType::SDMA_XGMI));
    assert!(queues.values().skip(1).all(|record| record.sysfs_type == 4));
}

#[test]
fn bug_9_a_poll_of_an_older_engine_may_pass_early_and_its_repetition_does_not() {
    for (target, early) in [(Target::Gfx908, true), (Target::Gfx90a, false)] {
        let mut ring = ring(target);
        let version = Version::of(pm4::Target::from_name(target.name()).unwrap());
        let at = |offset: usize| GpuAddr::new(ring.address(offset));
        let poll = PollMem::new(at(0), Compare::EQUAL, 1).unwrap();
        let fence = |at| Fence::new(version, at, 1).unwrap();
        let (once, twice) = (fence(at(8)), fence(at(16)));
        ring.client.model.faults().pass_polls_early(8);
        let packets = words().sdma(&poll).sdma(&once).sdma(&poll).sdma(&poll).sdma(&twice);
        ring.run(&packets);
        assert_eq!((ring.u32(8), ring.u32(16)), (early.into(), 0), "{target}");
        ring.set(0, 1);
        ring.settle();
        assert_eq!((ring.u32(8), ring.u32(16)), (1, 1));
    }
}
