//! Every interleaving of a few producers and a device, within loom's model of memory.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p aql --test loom --release`
//!
//! Packet bodies are loom cells: a device that reads a body while a producer writes it, or without
//! the ordering that makes the writes visible, fails the test.
#![cfg(loom)]
#![allow(missing_docs)]

use aql::{BarrierAnd, Decoded, Error, Header, Indices, Packet, Ring, Slots};
use loom::model::Builder;
use loom::sync::Arc;
use loom::sync::atomic::Ordering;
use loom::thread;
use pm4::GpuAddr;

/// Explores every interleaving with at most `preemptions` involuntary thread switches.
fn explore(preemptions: usize, test: impl Fn() + Send + Sync + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(test);
}

fn labelled(label: u64) -> Packet {
    BarrierAnd::new([GpuAddr::new(label << 3); 5]).encode()
}

fn label(packet: &Packet) -> u64 {
    let Decoded::BarrierAnd(barrier) = packet.decode() else { panic!("{}", packet.decode()) };
    let [first, ..] = barrier.signals();
    assert_eq!(barrier.signals(), [first; 5]);
    first.get() >> 3
}

/// What the device does: it consumes packets below the write index, in order.
struct Device {
    slots: Slots<'static>,
    indices: Indices<'static>,
    next: u64,
    written: u64,
}

impl Device {
    /// Consumes all that is published now; returns the labels.
    fn run(&mut self) -> Vec<u64> {
        let written = self.indices.write.load(Ordering::Acquire);
        assert!(written >= self.written, "the write index went from {} to {written}", self.written);
        self.written = written;
        let mut labels = Vec::new();
        while self.next < written {
            let header = self.slots.slot(self.next).header();
            // Published, so valid: a device that finds INVALID here would stop for ever.
            let first = header.load(Ordering::Acquire);
            assert_ne!(first, u32::from(Header::INVALID.0), "slot {} is not valid", self.next);
            labels.push(label(&self.slots.slot(self.next).read()));
            header.store(u32::from(Header::INVALID.0), Ordering::Relaxed);
            self.next += 1;
            self.indices.read.store(self.next, Ordering::Release);
        }
        labels
    }
}

fn ring(size: usize) -> (Arc<Ring<'static>>, Device) {
    let (slots, indices) = (Slots::new(size), Indices::new());
    let ring = Arc::new(Ring::from_parts(slots.clone(), indices.clone()));
    (ring, Device { slots, indices, next: 0, written: 0 })
}

#[test]
fn two_producers_publish_in_order_and_leave_nothing_behind() {
    explore(4, || {
        let (ring, mut device) = ring(4);
        let other = ring.clone();
        let first = thread::spawn(move || other.submit(&labelled(1)).unwrap());
        let other = ring.clone();
        let second = thread::spawn(move || other.submit(&labelled(2)).unwrap());
        let mut labels = device.run();
        let (first, second) = (first.join().unwrap(), second.join().unwrap());
        // Somebody was told to ring for everything.
        assert_eq!(first.doorbell.max(second.doorbell), Some(1));
        assert_eq!(ring.doorbell_value(), Some(1));
        for submitted in [first, second] {
            assert!(submitted.doorbell.is_none_or(|value| value >= submitted.index));
        }
        labels.extend(device.run());
        let expected = if first.index == 0 { [1, 2] } else { [2, 1] };
        assert_eq!(labels, expected);
    });
}

#[test]
fn a_batch_and_a_packet_publish_in_order() {
    explore(3, || {
        let (ring, mut device) = ring(4);
        let other = ring.clone();
        let batch = thread::spawn(move || {
            let mut batch = other.reserve(2).unwrap();
            batch.push(&labelled(1)).unwrap();
            batch.push(&labelled(2)).unwrap();
            batch.commit()
        });
        let single = ring.submit(&labelled(3)).unwrap();
        let batch = batch.join().unwrap();
        assert_eq!(batch.doorbell.max(single.doorbell), Some(2));
        let expected = if single.index == 0 { [3, 1, 2] } else { [1, 2, 3] };
        assert_eq!(device.run(), expected);
    });
}

#[test]
fn three_producers_hand_the_head_on() {
    explore(3, || {
        let (ring, mut device) = ring(4);
        let threads: Vec<_> = (1..3)
            .map(|label| {
                let ring = ring.clone();
                thread::spawn(move || ring.submit(&labelled(label)).unwrap())
            })
            .collect();
        let mut all = vec![ring.submit(&labelled(3)).unwrap()];
        all.extend(threads.into_iter().map(|thread| thread.join().unwrap()));
        assert_eq!(all.iter().filter_map(|submitted| submitted.doorbell).max(), Some(2));
        let mut labels = device.run();
        labels.sort_unstable();
        assert_eq!(labels, [1, 2, 3]);
    });
}

#[test]
fn a_full_ring_never_overwrites_what_the_device_has_not_consumed() {
    explore(4, || {
        let (ring, mut device) = ring(2);
        let producer = thread::spawn({
            let ring = ring.clone();
            move || {
                // The third and fourth reuse the slots of the first and second.
                (1..5).take_while(|label| ring.submit(&labelled(*label)).is_ok()).count()
            }
        });
        let mut labels = device.run();
        labels.extend(device.run());
        let sent = producer.join().unwrap();
        labels.extend(device.run());
        assert!(sent >= 2, "a ring of two takes two");
        assert_eq!(labels, (1..=u64::try_from(sent).unwrap()).collect::<Vec<_>>());
    });
}

#[test]
fn two_producers_wrap_around_under_back_pressure() {
    explore(3, || {
        let (ring, mut device) = ring(2);
        let _ = ring.submit(&labelled(1)).unwrap();
        let threads: Vec<_> = (2..4)
            .map(|label| {
                let ring = ring.clone();
                thread::spawn(move || match ring.submit(&labelled(label)) {
                    Ok(submitted) => Some((submitted.index, label)),
                    Err(Error::Full { .. }) => None,
                    Err(error) => panic!("{error}"),
                })
            })
            .collect();
        let mut labels = device.run();
        let mut sent: Vec<_> =
            threads.into_iter().filter_map(|thread| thread.join().unwrap()).collect();
        labels.extend(device.run());
        assert!(!sent.is_empty(), "one slot was free from the start");
        sent.sort_unstable();
        let expected: Vec<_> =
            [1].into_iter().chain(sent.iter().map(|(_, label)| *label)).collect();
        assert_eq!(labels, expected);
    });
}

#[test]
fn an_abandoned_reservation_does_not_hold_up_the_next() {
    explore(4, || {
        let (ring, mut device) = ring(2);
        let other = ring.clone();
        let abandoned = thread::spawn(move || {
            let reservation = other.reserve(1).unwrap();
            reservation.first()
        });
        let submitted = ring.submit(&labelled(7)).unwrap();
        let abandoned = abandoned.join().unwrap();
        assert_eq!(ring.doorbell_value(), Some(1));
        let expected = if abandoned < submitted.index { [0, 7] } else { [7, 0] };
        assert_eq!(device.run(), expected);
    });
}

#[test]
fn concurrent_refreshes_agree_with_an_honest_device() {
    explore(4, || {
        let (ring, mut device) = ring(2);
        let other = ring.clone();
        let producer = thread::spawn(move || {
            let _ = other.submit(&labelled(1)).unwrap();
            other.refresh().unwrap()
        });
        let consumer = thread::spawn(move || {
            device.run();
            device.next
        });
        let here = ring.refresh().unwrap();
        let there = producer.join().unwrap();
        let consumed = consumer.join().unwrap();
        assert!(here <= consumed && there <= consumed);
        assert_eq!(ring.refresh(), Ok(consumed));
    });
}

#[test]
fn a_slot_freed_by_one_producers_refresh_is_free_for_the_other() {
    explore(3, || {
        let (ring, mut device) = ring(2);
        for label in 1..3 {
            let _ = ring.submit(&labelled(label)).unwrap();
        }
        let threads: Vec<_> = (3..5)
            .map(|label| {
                let ring = ring.clone();
                thread::spawn(move || ring.submit(&labelled(label)).is_ok())
            })
            .collect();
        let mut labels = device.run();
        let sent = threads.into_iter().map(|thread| thread.join().unwrap());
        let sent = sent.filter(|sent| *sent).count();
        labels.extend(device.run());
        assert_eq!(labels.len(), 2 + sent);
    });
}

#[test]
fn a_slot_reused_while_its_publisher_is_still_at_work_loses_nothing() {
    explore(4, || {
        let (ring, mut device) = ring(1);
        let other = ring.clone();
        let producer = thread::spawn(move || other.submit(&labelled(1)).is_ok());
        let consumer = thread::spawn(move || {
            let labels = device.run();
            (device, labels)
        });
        let here = ring.submit(&labelled(2)).is_ok();
        let there = producer.join().unwrap();
        let (mut device, mut labels) = consumer.join().unwrap();
        labels.extend(device.run());
        assert_eq!(labels.len(), usize::from(here) + usize::from(there));
    });
}

#[test]
fn a_device_that_looks_early_sees_no_packet_or_a_whole_one() {
    explore(4, || {
        let (ring, device) = ring(2);
        let producer = thread::spawn(move || ring.submit(&labelled(5)).unwrap());
        let first = device.slots.slot(0).header().load(Ordering::Acquire);
        if first != u32::from(Header::INVALID.0) {
            assert_eq!(label(&device.slots.slot(0).read()), 5);
        }
        let _ = producer.join().unwrap();
    });
}

#[test]
fn a_packet_that_is_pending_can_be_read_by_another_thread() {
    explore(4, || {
        let (ring, device) = ring(2);
        let other = ring.clone();
        let producer = thread::spawn(move || other.submit(&labelled(5)).unwrap());
        if ring.pending().contains(&0) {
            assert_eq!(label(&device.slots.slot(0).read()), 5);
        }
        let _ = producer.join().unwrap();
    });
}
