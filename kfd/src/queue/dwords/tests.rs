//! A ring against a reference consumer: every offset, every size, and devices that lie.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use pm4::sdma::Version;
use pm4::{Nop, Packets};
use proptest::prelude::*;

use super::*;

/// Memory of a ring, and what a device would do with it.
struct Bench {
    words: Vec<AtomicU32>,
    read: AtomicU64,
    write: AtomicU64,
}

impl Bench {
    fn new(dwords: usize) -> Self {
        let words = (0..dwords).map(|_| AtomicU32::new(!0)).collect();
        Self { words, read: AtomicU64::new(!0), write: AtomicU64::new(!0) }
    }

    fn ring(&self, unit: Unit) -> DwordRing<'_> {
        DwordRing::new(&self.words, &self.read, &self.write, unit)
    }

    /// The dwords from one position to another, both in dwords.
    fn take(&self, from: u64, to: u64) -> Vec<u32> {
        let mask = self.words.len() as u64 - 1;
        let at = |n: u64| &self.words[usize::try_from(n & mask).unwrap()];
        (from..to).map(|n| at(n).swap(!0, Ordering::Relaxed)).collect()
    }
}

/// A packet of `dwords` dwords that carries its number.
fn pm4_packet(ib: &mut IbBuilder<RingSink<'_>>, dwords: usize, number: u32) {
    let payload = vec![number; dwords - 1];
    ib.push(&Nop::new(&payload).unwrap());
}

fn sdma_packet(out: &mut sdma::Builder<RingSink<'_>>, dwords: usize, number: u32) {
    let payload = vec![number; dwords - 1];
    out.push(&sdma::Nop::new(&payload).unwrap());
}

#[test]
fn a_new_ring_is_empty_whatever_its_memory_held() {
    let bench = Bench::new(16);
    let ring = bench.ring(Unit::Dwords);
    assert_eq!(ring.refresh(), Ok(0));
    assert_eq!(ring.pending(), 0..0);
    assert_eq!(bench.write.load(Ordering::Relaxed), 0);
}

/// Every submission size from every offset of a PM4 ring: packets come out whole, across the end.
#[test]
fn pm4_packets_of_every_size_are_whole_at_every_offset() {
    const SIZE: usize = 32;
    for offset in 0..SIZE {
        for dwords in 2..SIZE {
            let bench = Bench::new(SIZE);
            let ring = bench.ring(Unit::Dwords);
            let mut at = Cursor { write: offset as u64, read: offset as u64 };
            ring.read.store(offset as u64, Ordering::Relaxed);
            let end = ring.push_pm4(&mut at, dwords, |ib| pm4_packet(ib, dwords, 7)).unwrap();
            assert_eq!(end, (offset + dwords) as u64);
            assert_eq!(bench.write.load(Ordering::Relaxed), 0, "not before it is published");
            ring.publish(&at);
            assert_eq!(bench.write.load(Ordering::Relaxed), end);
            let words = bench.take(offset as u64, end);
            let packets: Vec<_> = Packets::new(&words).collect::<Result<_, _>>().unwrap();
            assert_eq!(packets.len(), 1);
            assert!(words[1..].iter().all(|word| *word == 7));
            assert!(bench.words.iter().all(|word| word.load(Ordering::Relaxed) == !0));
        }
    }
}

/// The same of an SDMA ring: no packet crosses the end, and zeros fill what is left.
#[test]
fn sdma_packets_of_every_size_stay_together_at_every_offset() {
    const SIZE: usize = 32;
    for offset in 0..SIZE {
        for dwords in 2..=SIZE / 2 {
            let bench = Bench::new(SIZE);
            let ring = bench.ring(Unit::Bytes);
            let start = offset as u64 * 4;
            let mut at = Cursor { write: start, read: start };
            ring.read.store(start, Ordering::Relaxed);
            let version = Version::V6;
            let fill = |out: &mut sdma::Builder<RingSink<'_>>| sdma_packet(out, dwords, 7);
            let end = ring.push_sdma(&mut at, version, dwords, fill).unwrap();
            ring.publish(&at);
            let crosses = offset + dwords > SIZE;
            let padding = if crosses { SIZE - offset } else { 0 };
            assert_eq!(end, ((offset + padding + dwords) * 4) as u64);
            let words = bench.take(offset as u64, end / 4);
            assert!(words[..padding].iter().all(|word| *word == 0));
            assert!(words[padding + 1..].iter().all(|word| *word == 7));
            assert!(bench.words.iter().all(|word| word.load(Ordering::Relaxed) == !0));
        }
    }
}

#[test]
fn a_submission_that_never_fits_is_refused_as_such_and_not_as_full() {
    let bench = Bench::new(32);
    let mut at = Cursor::default();
    let pm4 = bench.ring(Unit::Dwords).push_pm4(&mut at, 32, |_| unreachable!());
    let too_small = pm4::Error::BufferTooSmall { needed: 32, capacity: 31 };
    assert!(matches!(pm4, Err(Refusal::Pm4(error)) if error == too_small));
    let ring = bench.ring(Unit::Bytes);
    let sdma = ring.push_sdma(&mut at, Version::V6, 17, |_| unreachable!());
    let too_small = sdma::Error::BufferTooSmall { needed: 17, capacity: 16 };
    assert!(matches!(sdma, Err(Refusal::Sdma(error)) if error == too_small));
    assert!(ring.push_sdma(&mut at, Version::V6, usize::MAX, |_| unreachable!()).is_err());
}

#[test]
fn packets_that_overrun_their_room_are_not_submitted() {
    let bench = Bench::new(32);
    let ring = bench.ring(Unit::Dwords);
    let mut at = Cursor::default();
    let error = ring.push_pm4(&mut at, 4, |ib| pm4_packet(ib, 5, 1)).unwrap_err();
    let needs = pm4::Error::BufferTooSmall { needed: 5, capacity: 4 };
    assert!(matches!(error, Refusal::Pm4(error) if error == needs));
    assert_eq!(at.write, 0);
    assert!(bench.words.iter().all(|word| word.load(Ordering::Relaxed) == !0));
}

#[test]
fn a_full_ring_is_never_written_past_its_consumer() {
    for unit in [Unit::Dwords, Unit::Bytes] {
        let bench = Bench::new(16);
        let ring = bench.ring(unit);
        let mut at = Cursor::default();
        let mut push = |ring: &DwordRing<'_>| match unit {
            Unit::Dwords => ring.push_pm4(&mut at, 4, |ib| pm4_packet(ib, 4, 1)),
            Unit::Bytes => ring.push_sdma(&mut at, Version::V6, 4, |out| sdma_packet(out, 4, 1)),
        };
        for _ in 0..3 {
            push(&ring).unwrap();
        }
        let before: Vec<u32> = bench.words.iter().map(|w| w.load(Ordering::Relaxed)).collect();
        let Err(Refusal::Ring(full)) = push(&ring) else { panic!("{unit:?}") };
        assert_eq!(full, aql::Error::Full { needed: 4, free: 3, size: 16 });
        let after: Vec<u32> = bench.words.iter().map(|w| w.load(Ordering::Relaxed)).collect();
        assert_eq!(before, after);
        ring.publish(&at);
        bench.read.store(4 * unit.per_dword(), Ordering::Relaxed);
        let mut push = |ring: &DwordRing<'_>| match unit {
            Unit::Dwords => ring.push_pm4(&mut at, 4, |ib| pm4_packet(ib, 4, 1)),
            Unit::Bytes => ring.push_sdma(&mut at, Version::V6, 4, |out| sdma_packet(out, 4, 1)),
        };
        push(&ring).unwrap();
    }
}

#[test]
fn short_submissions_are_padded_where_the_engine_needs_it() {
    let bench = Bench::new(256);
    let ring = bench.ring(Unit::Bytes);
    let mut at = Cursor::default();
    let end = ring.push_sdma(&mut at, Version::V4_0, 3, |out| sdma_packet(out, 3, 1)).unwrap();
    assert_eq!(end, 64 * 4);
}

/// The device says what no device can have reached.
#[test]
fn a_read_position_outside_what_was_published_is_a_lie_and_told() {
    let cases = [
        // In the ring, but past what was published.
        (Unit::Dwords, 9),
        // Not in the ring, and not the position that does not wrap either.
        (Unit::Dwords, 16 + 9),
        (Unit::Dwords, 1 << 40 | 4),
        (Unit::Bytes, 36),
        (Unit::Bytes, 2),
        (Unit::Bytes, u64::MAX),
    ];
    for (unit, lie) in cases {
        let bench = Bench::new(16);
        let ring = bench.ring(unit);
        let last = 8 * unit.per_dword();
        ring.publish(&Cursor { write: last, read: 0 });
        bench.read.store(lie, Ordering::Relaxed);
        let told = aql::Error::ReadIndexOutOfRange { read: lie, first: 0, last };
        assert_eq!(ring.refresh(), Err(told), "{unit:?} {lie:#x}");
        // The last good one stands.
        assert_eq!(ring.pending(), 0..last);
    }
}

/// An SDMA engine's read pointer cannot go back; a PM4 one that seems to has wrapped, which is
/// possible only up to what was published.
#[test]
fn a_read_position_that_goes_back_is_a_lie() {
    let bench = Bench::new(16);
    let ring = bench.ring(Unit::Bytes);
    ring.publish(&Cursor { write: 40, read: 0 });
    bench.read.store(40, Ordering::Relaxed);
    assert_eq!(ring.refresh(), Ok(40));
    bench.read.store(36, Ordering::Relaxed);
    assert!(ring.refresh().is_err());
    let ring = bench.ring(Unit::Dwords);
    ring.publish(&Cursor { write: 10, read: 0 });
    bench.read.store(10, Ordering::Relaxed);
    assert_eq!(ring.refresh(), Ok(10));
    bench.read.store(9, Ordering::Relaxed);
    assert!(ring.refresh().is_err());
}

/// Real hardware wraps its PM4 read pointer at the ring's size; one that does not is understood.
#[test]
fn a_pm4_read_position_is_rebuilt_from_its_place_in_the_ring() {
    for wraps in [true, false] {
        let bench = Bench::new(16);
        let ring = bench.ring(Unit::Dwords);
        let mut write = 0;
        for step in [15, 3, 8, 15, 1, 14] {
            write += step;
            ring.publish(&Cursor { write, read: 0 });
            let told = if wraps { write % 16 } else { write };
            bench.read.store(told, Ordering::Relaxed);
            assert_eq!(ring.refresh(), Ok(write));
        }
    }
}

#[test]
fn a_ring_that_drains_is_empty_again_and_takes_its_capacity() {
    // Position 16 of a ring of 16 is position 0 of it: drained, not full.
    let bench = Bench::new(16);
    let ring = bench.ring(Unit::Dwords);
    let mut at = Cursor::default();
    for _ in 0..64 {
        ring.push_pm4(&mut at, 15, |ib| pm4_packet(ib, 15, 3)).unwrap();
        ring.publish(&at);
        bench.read.store(at.write % 16, Ordering::Relaxed);
    }
    assert_eq!(at.write, 64 * 15);
}

proptest! {
    /// Random sizes, random consumption: the consumer sees every packet once, whole and in order.
    #[test]
    fn what_goes_in_comes_out(
        bytes in any::<bool>(),
        start in 0_u64..1 << 40,
        steps in prop::collection::vec((2_usize..32, 0_usize..80), 1..200),
    ) {
        const SIZE: u64 = 64;
        let unit = if bytes { Unit::Bytes } else { Unit::Dwords };
        let per_dword = unit.per_dword();
        let bench = Bench::new(64);
        let ring = bench.ring(unit);
        let start = start * per_dword;
        let told = |position: u64| if bytes { position } else { position % SIZE };
        ring.read.store(start, Ordering::Relaxed);
        ring.published.store(start, Ordering::Relaxed);
        bench.read.store(told(start), Ordering::Relaxed);
        let mut at = Cursor { write: start, read: start };
        let mut consumed = start / per_dword;
        let (mut sent, mut seen) = (0, 0);
        let mut rest: Vec<u32> = Vec::new();
        for (dwords, eat) in steps {
            let result = if bytes {
                ring.push_sdma(&mut at, Version::V6, dwords, |out| sdma_packet(out, dwords, sent))
            } else {
                ring.push_pm4(&mut at, dwords, |ib| pm4_packet(ib, dwords, sent))
            };
            match result {
                Ok(end) => {
                    prop_assert_eq!(end, at.write);
                    sent += 1;
                    ring.publish(&at);
                }
                Err(Refusal::Ring(aql::Error::Full { .. })) => {}
                Err(other) => return Err(TestCaseError::fail(format!("{other:?}"))),
            }
            let published = bench.write.load(Ordering::Relaxed) / per_dword;
            prop_assert!(published.saturating_sub(consumed) < SIZE);
            // A consumer takes whole packets.
            let available = bench.take(consumed, published);
            rest.extend(&available);
            let mut eaten = 0;
            while let Some(&header) = rest.get(eaten) {
                if eaten >= eat { break; }
                let length = match unit {
                    Unit::Bytes => 1 + (header as usize >> 16),
                    Unit::Dwords => 2 + (header as usize >> 16 & 0x3fff),
                };
                let packet = rest.get(eaten..eaten + length);
                prop_assert!(packet.is_some(), "a packet is torn");
                let body = &packet.unwrap()[1..];
                if !body.is_empty() {
                    prop_assert!(body.iter().all(|word| *word == seen));
                    seen += 1;
                }
                eaten += length;
            }
            // Put back what was not eaten.
            let left = rest.split_off(eaten);
            let from = consumed + eaten as u64;
            for (n, word) in (from..).zip(&left) {
                bench.words[usize::try_from(n % SIZE).unwrap()].store(*word, Ordering::Relaxed);
            }
            rest.clear();
            consumed = from;
            bench.read.store(told(consumed * per_dword), Ordering::Relaxed);
        }
        prop_assert!(seen <= sent);
    }

    /// Whatever the device writes, the position that is believed stays inside what was published.
    #[test]
    fn no_read_word_moves_the_position_out_of_its_range(
        bytes in any::<bool>(),
        published in 0_u64..1 << 50,
        behind in 0_u64..64,
        word in any::<u64>(),
    ) {
        let unit = if bytes { Unit::Bytes } else { Unit::Dwords };
        let bench = Bench::new(64);
        let ring = bench.ring(unit);
        let (last, first) = (published * 4, (published * 4).saturating_sub(behind * unit.per_dword()));
        ring.read.store(first, Ordering::Relaxed);
        ring.published.store(last, Ordering::Relaxed);
        for word in [word, word % 128, last.wrapping_add(word % 9), last - word.min(last) % 9] {
            bench.read.store(word, Ordering::Relaxed);
            if let Ok(read) = ring.refresh() {
                prop_assert!((first..=last).contains(&read));
            }
            prop_assert!(ring.dwords_of(ring.pending(), 1000).len() <= 64);
        }
    }
}
