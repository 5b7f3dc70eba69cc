#![allow(clippy::indexing_slicing)] // helpers of tests

extern crate std;

use alloc::vec::Vec;
use std::thread;

use pm4::GpuAddr;
use proptest::prelude::*;

use super::*;
use crate::shared::tests::memory;
use crate::{AmdQueueV2, Decoded, QueueWords, SharedWords};

/// A ring of `size` packets, and what the device sees of it.
fn ring(size: usize) -> (Ring<'static>, Device) {
    let (slots, queue) = (memory(size * 64), QueueWords::new(memory(4096)).unwrap());
    queue.init(&AmdQueueV2::new()).unwrap();
    (Ring::new(slots, &queue).unwrap(), Device { slots, queue, next: 0 })
}

/// A packet processor that only counts: it checks each packet it consumes.
struct Device {
    slots: SharedWords<'static>,
    queue: QueueWords<'static>,
    next: u64,
}

impl Device {
    fn word(&self, index: u64, dword: usize) -> usize {
        let packets = self.slots.bytes() / 64;
        (usize::try_from(index).unwrap() & (packets - 1)) * 64 + dword * 4
    }

    fn published(&self) -> u64 {
        self.queue.write_dispatch_id().load(Ordering::Acquire)
    }

    /// Consumes the next packet if there is one; returns its label.
    fn step(&mut self) -> Option<u64> {
        let published = self.published();
        assert!(published - self.next <= u64::try_from(self.slots.bytes() / 64).unwrap());
        if self.next == published {
            return None;
        }
        let header = self.slots.u32(self.word(self.next, 0)).unwrap();
        let mut packet = Packet([0; 16]);
        packet.0[0] = header.load(Ordering::Acquire);
        packet.0[1] = self.slots.u32(self.word(self.next, 1)).unwrap().load(Ordering::Relaxed);
        for dword in (2..16).step_by(2) {
            let word = self.slots.u64(self.word(self.next, dword)).unwrap();
            let word = GpuAddr::new(word.load(Ordering::Relaxed));
            (packet.0[dword], packet.0[dword + 1]) = (word.lo(), word.hi());
        }
        let label = read(&packet);
        header.store(u32::from(Header::INVALID.0), Ordering::Relaxed);
        self.next += 1;
        self.queue.read_dispatch_id().store(self.next, Ordering::Release);
        Some(label)
    }
}

/// A packet that carries `label` in every field that can.
fn labelled(label: u64) -> Packet {
    BarrierAnd::new([GpuAddr::new(label << 3); 5]).completion(GpuAddr::new(label << 3)).encode()
}

/// The label; fails if the packet's words belong to different packets.
fn read(packet: &Packet) -> u64 {
    let Decoded::BarrierAnd(barrier) = packet.decode() else { panic!("{}", packet.decode()) };
    let [first, ..] = barrier.signals();
    assert_eq!(barrier.signals(), [first; 5]);
    assert_eq!(barrier.completion_signal(), first);
    first.get() >> 3
}

#[test]
fn a_new_ring_is_empty_and_every_slot_is_invalid() {
    let (ring, device) = ring(4);
    assert_eq!((ring.pending(), ring.reserved(), ring.doorbell_value()), (0..0, 0, None));
    for index in 0..4 {
        let header = device.slots.u32(device.word(index, 0)).unwrap();
        assert_eq!(header.load(Ordering::Relaxed), 1);
    }
}

#[test]
fn the_doorbell_value_is_the_index_of_the_last_packet() {
    let (mut ring, device) = ring(8);
    assert_eq!(ring.submit(&labelled(0)).unwrap(), Submitted { index: 0, doorbell: Some(0) });
    let exclusive = ring.submit_exclusive(&labelled(1)).unwrap();
    assert_eq!(exclusive, Submitted { index: 1, doorbell: Some(1) });
    let mut batch = ring.reserve(3).unwrap();
    for label in 2..5 {
        assert_eq!(batch.push(&labelled(label)), Ok(label));
    }
    assert_eq!(batch.push(&labelled(9)), Err(Error::ReservationFull { packets: 3 }));
    assert_eq!(device.published(), 2);
    assert_eq!(batch.commit(), Submitted { index: 4, doorbell: Some(4) });
    assert_eq!((device.published(), ring.doorbell_value()), (5, Some(4)));
}

#[test]
fn a_full_ring_refuses_until_the_device_has_consumed() {
    for exclusive in [false, true] {
        let (mut ring, mut device) = ring(4);
        let mut submit = |label| {
            if exclusive {
                ring.submit_exclusive(&labelled(label))
            } else {
                ring.submit(&labelled(label))
            }
        };
        for label in 0..4 {
            let _ = submit(label).unwrap();
        }
        let full = Error::Full { needed: 1, free: 0, size: 4 };
        assert_eq!(submit(4), Err(full));
        assert_eq!(device.step(), Some(0));
        assert_eq!(submit(4).unwrap().index, 4);
        assert_eq!(submit(5), Err(full));
        let rest: Vec<_> = core::iter::from_fn(|| device.step()).collect();
        assert_eq!(rest, [1, 2, 3, 4]);
    }
}

#[test]
fn a_batch_needs_room_for_all_of_it() {
    let (mut ring, mut device) = ring(4);
    let _ = ring.submit(&labelled(0)).unwrap();
    let full = Error::Full { needed: 4, free: 3, size: 4 };
    assert_eq!(ring.reserve(4).unwrap_err(), full);
    assert_eq!(ring.reserve_exclusive(4).unwrap_err(), full);
    assert_eq!(device.step(), Some(0));
    let mut batch = ring.reserve(4).unwrap();
    for label in 1..5 {
        batch.push(&labelled(label)).unwrap();
    }
    assert_eq!(batch.commit().doorbell, Some(4));
    assert_eq!(core::iter::from_fn(|| device.step()).collect::<Vec<_>>(), [1, 2, 3, 4]);
    assert_eq!(ring.reserve(0).unwrap_err(), Error::BatchSize { packets: 0, size: 4 });
    assert_eq!(ring.reserve(5).unwrap_err(), Error::BatchSize { packets: 5, size: 4 });
}

#[test]
fn a_later_packet_is_published_by_the_earlier_producer() {
    let (ring, device) = ring(8);
    let mut early = ring.reserve(2).unwrap();
    let late = ring.submit(&labelled(2)).unwrap();
    assert_eq!(late, Submitted { index: 2, doorbell: None });
    assert_eq!((device.published(), ring.pending()), (0, 0..0));
    early.push(&labelled(0)).unwrap();
    early.push(&labelled(1)).unwrap();
    assert_eq!(early.commit(), Submitted { index: 1, doorbell: Some(2) });
    assert_eq!((device.published(), ring.pending()), (3, 0..3));
}

#[test]
fn an_abandoned_reservation_becomes_packets_that_do_nothing() {
    let (ring, device) = ring(8);
    let mut early = ring.reserve(3).unwrap();
    let late = ring.submit(&labelled(3)).unwrap();
    assert_eq!(late.doorbell, None);
    early.push(&labelled(0)).unwrap();
    drop(early);
    assert_eq!((device.published(), ring.doorbell_value()), (4, Some(3)));
    assert_eq!(ring.packet(0), Some(labelled(0)));
    for index in 1..3 {
        assert_eq!(ring.packet(index), Some(BarrierAnd::noop().encode()));
    }
    assert_eq!(ring.packet(3), Some(labelled(3)));
}

#[test]
fn only_pending_packets_can_be_inspected() {
    let (ring, mut device) = ring(4);
    assert_eq!(ring.packet(0), None);
    let _ = ring.submit(&labelled(0)).unwrap();
    assert_eq!(ring.packet(0), Some(labelled(0)));
    assert_eq!(ring.packet(1), None);
    device.step();
    ring.refresh().unwrap();
    assert_eq!((ring.packet(0), ring.pending()), (None, 1..1));
}

#[test]
fn an_invalid_packet_is_refused_and_takes_no_slot() {
    let (mut ring, _) = ring(4);
    assert_eq!(ring.submit(&Packet::INVALID), Err(Error::InvalidPacket));
    assert_eq!(ring.submit_exclusive(&Packet::INVALID), Err(Error::InvalidPacket));
    assert_eq!(ring.reserved(), 0);
}

#[test]
fn a_read_index_beyond_what_was_published_is_refused() {
    let (ring, device) = ring(4);
    let lie = |value| device.queue.read_dispatch_id().store(value, Ordering::Release);
    let _ = ring.submit(&labelled(0)).unwrap();
    let held = ring.reserve(1).unwrap();
    lie(2); // reserved, but not published
    assert_eq!(ring.refresh(), Err(Error::ReadIndexOutOfRange { read: 2, first: 0, last: 1 }));
    drop(held);
    for value in [3, 1 << 32, u64::MAX] {
        lie(value);
        let error = Error::ReadIndexOutOfRange { read: value, first: 0, last: 2 };
        assert_eq!(ring.refresh(), Err(error));
        assert_eq!(ring.pending(), 0..2);
    }
    lie(2);
    assert_eq!(ring.refresh(), Ok(2));
    lie(1); // backwards
    assert_eq!(ring.refresh(), Err(Error::ReadIndexOutOfRange { read: 1, first: 2, last: 2 }));
}

#[test]
fn a_full_ring_hands_out_no_slot_on_a_lying_read_index() {
    let (ring, device) = ring(2);
    for label in 0..2 {
        let _ = ring.submit(&labelled(label)).unwrap();
    }
    device.queue.read_dispatch_id().store(77, Ordering::Release);
    let error = Error::ReadIndexOutOfRange { read: 77, first: 0, last: 2 };
    assert_eq!(ring.submit(&labelled(2)), Err(error));
    assert_eq!(ring.reserved(), 2);
    assert_eq!(ring.packet(0), Some(labelled(0)));
}

#[test]
fn a_changed_write_index_in_shared_memory_is_only_overwritten() {
    let (ring, device) = ring(4);
    device.queue.write_dispatch_id().store(u64::MAX, Ordering::Release);
    let _ = ring.submit(&labelled(0)).unwrap();
    assert_eq!((device.published(), ring.pending()), (1, 0..1));
}

#[test]
fn a_ring_of_one_packet_carries_one_at_a_time() {
    let (ring, mut device) = ring(1);
    for label in 0..5 {
        assert_eq!(ring.submit(&labelled(label)).unwrap().doorbell, Some(label));
        assert!(matches!(ring.submit(&labelled(9)), Err(Error::Full { .. })));
        assert_eq!(device.step(), Some(label));
    }
}

/// Known from the field: a producer publishes past another's unfinished slot. Eight producers on a ring of 64, a device
/// that fetches whatever is published.
#[test]
fn eight_producers_never_show_the_device_a_torn_or_missing_packet() {
    const PRODUCERS: u64 = 8;
    let each: u64 = if cfg!(debug_assertions) { 5_000 } else { 50_000 };
    let (ring, mut device) = ring(64);
    let mut seen: Vec<u64> = alloc::vec![0; 8];
    thread::scope(|scope| {
        for producer in 0..PRODUCERS {
            let ring = &ring;
            scope.spawn(move || {
                let mut sent = 0;
                while sent < each {
                    let batch = 1 + sent % 3;
                    let batch = batch.min(each - sent);
                    let Ok(mut reservation) = ring.reserve(u32::try_from(batch).unwrap()) else {
                        thread::yield_now();
                        continue;
                    };
                    for _ in 0..batch {
                        reservation.push(&labelled(producer << 32 | sent)).unwrap();
                        sent += 1;
                    }
                    let _ = reservation.commit();
                }
            });
        }
        while device.next < PRODUCERS * each {
            match device.step() {
                Some(label) => {
                    let count = &mut seen[usize::try_from(label >> 32).unwrap()];
                    assert_eq!(
                        label & 0xFFFF_FFFF,
                        *count,
                        "a producer's packets keep their order"
                    );
                    *count += 1;
                }
                None => thread::yield_now(),
            }
        }
    });
    assert_eq!(seen, [each; 8]);
    assert_eq!((device.step(), ring.refresh()), (None, Ok(PRODUCERS * each)));
}

#[derive(Clone, Debug)]
enum Step {
    Submit,
    SubmitExclusive,
    Batch { packets: u32, pushed: u32 },
    Consume(u8),
    Refresh,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        Just(Step::Submit),
        Just(Step::SubmitExclusive),
        (1u32..10, 0u32..10)
            .prop_map(|(packets, pushed)| Step::Batch { packets, pushed: pushed.min(packets) }),
        (0u8..6).prop_map(Step::Consume),
        Just(Step::Refresh),
    ]
}

proptest! {
    /// Against the simplest model there is: a queue of labels with a bound.
    #[test]
    fn the_ring_behaves_as_a_bounded_queue(
        order in 0u32..4, steps in prop::collection::vec(step(), 1..80),
    ) {
        let (mut ring, mut device) = ring(1 << order);
        let mut queue = std::collections::VecDeque::new();
        let mut index = 0;
        for step in steps {
            let room = ring.size() - u64::try_from(queue.len()).unwrap();
            match step {
                Step::Submit | Step::SubmitExclusive => {
                    let packet = labelled(index + 1);
                    let result = match step {
                        Step::Submit => ring.submit(&packet),
                        _ => ring.submit_exclusive(&packet),
                    };
                    prop_assert_eq!(result.is_ok(), room >= 1);
                    if let Ok(submitted) = result {
                        prop_assert_eq!(submitted, Submitted { index, doorbell: Some(index) });
                        queue.push_back(index + 1);
                        index += 1;
                    }
                }
                Step::Batch { packets, pushed } => match ring.reserve(packets) {
                    Ok(mut batch) => {
                        prop_assert!(room >= u64::from(packets));
                        for _ in 0..pushed {
                            prop_assert_eq!(batch.push(&labelled(index + 1)), Ok(index));
                            queue.push_back(index + 1);
                            index += 1;
                        }
                        queue.extend((pushed..packets).map(|_| 0));
                        index += u64::from(packets - pushed);
                        prop_assert_eq!(batch.commit().doorbell, Some(index - 1));
                    }
                    Err(_) => prop_assert!(room < u64::from(packets)),
                },
                Step::Consume(count) => {
                    for _ in 0..count {
                        prop_assert_eq!(device.step(), queue.pop_front());
                    }
                }
                Step::Refresh => prop_assert_eq!(ring.refresh(), Ok(device.next)),
            }
        }
    }
}
