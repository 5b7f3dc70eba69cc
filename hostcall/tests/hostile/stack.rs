//! What a device can do to the stacks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hostcall::layout::Transport;
use hostcall::{Count, Counters, Pool, Words};

use crate::adversary::{Act, restore};
use crate::common::{self, ADDER, Call, Memory, adder, area, expected, spec, sums};
use crate::{Bench, call, turn};

#[test]
fn a_payload_that_changes_after_it_was_read_changes_nothing() {
    let mut bench = Bench::new(Transport::Stack, 4);
    let call = Call::new(ADDER, 1, [5; 8]);
    let sent = bench.wave.send(&call);
    let slot = bench.wave.slot(sent.packet, 0);
    // Loads of one packet: top, link, control, service, mask, then the slot's words. After word 7
    // there is none left to change anything with, so change words 0 to 6 before word 7 is loaded.
    let idle = Act { elsewhere: None, here: None };
    let mut script = vec![idle; 12];
    for (word, act) in script[6..12].iter_mut().enumerate() {
        act.elsewhere = Some((slot / 8 + word, 1 << 40));
    }
    *bench.hostile.script.lock().unwrap() = script.into();
    bench.pass();
    let answer = bench.wave.receive(&sent).unwrap();
    assert_eq!(sums(&answer), expected(&call));
}

#[test]
fn a_packet_pushed_twice_is_answered_once() {
    let mut bench = Bench::new(Transport::Stack, 4);
    let sent = bench.wave.send(&call());
    bench.wave.push(32, sent.tagged); // its link now names itself
    bench.pass();
    assert_eq!((bench.get(Count::Answered), bench.get(Count::Cycles)), (1, 1));
    assert_eq!(bench.served.load(Ordering::Relaxed), 1);
    // Pushed again after its answer: nobody waits on it.
    bench.wave.push(32, sent.tagged);
    bench.pass();
    assert_eq!((bench.get(Count::Answered), bench.get(Count::NotReady)), (1, 1));
    bench.wave.receive(&sent).unwrap();
    bench.check_next();
}

#[test]
fn what_a_cycle_cuts_off_is_answered_with_errors_later() {
    let mut bench = Bench::new(Transport::Stack, 8);
    let lost = [bench.wave.send(&call()), bench.wave.send(&call())];
    let top = bench.wave.send(&call());
    bench.memory.store64(bench.wave.header(top.packet), top.tagged, Ordering::Relaxed);
    assert_eq!(bench.pass_at(0).answered, 1);
    assert!(bench.wave.receive(&top).is_some());
    for (time, answered) in [(1, 0), (24, 0), (25, 0), (26, 0), (49, 0), (50, 2), (100, 0)] {
        assert_eq!(bench.pass_at(time).answered, answered, "at {time} ms");
    }
    assert_eq!(bench.get(Count::Rescued), 2);
    assert_eq!(bench.served.load(Ordering::Relaxed), 1, "the lost ones were not executed");
    for sent in lost {
        assert_eq!(bench.wave.receive(&sent), Some(vec![(0, [u64::MAX, 0])]));
    }
    bench.check_next();
}

#[test]
fn a_packet_that_is_being_filled_is_not_taken_for_lost() {
    let mut bench = Bench::new(Transport::Stack, 8);
    bench.memory.store64(32, 8 + 7, Ordering::Relaxed); // packet 7 is not READY
    bench.memory.store64(bench.wave.header(7), 8 + 7, Ordering::Relaxed); // and closes a cycle
    bench.pass_at(0);
    assert_eq!(bench.get(Count::Cycles), 1);
    restore(bench.pool.area(), &bench.memory);
    bench.memory.store64(24, 6, Ordering::Relaxed);
    // READY at the first look, pushed before the second: it was on its way.
    let (packet, tagged) = bench.wave.open();
    bench.wave.fill(packet, &call());
    bench.pass_at(30);
    bench.wave.submit(packet, tagged);
    bench.pass_at(31);
    bench.pass_at(90);
    assert_eq!((bench.get(Count::Rescued), bench.served.load(Ordering::Relaxed)), (0, 1));
}

#[test]
fn a_packet_answered_and_filled_again_is_not_taken_for_lost() {
    let mut bench = Bench::new(Transport::Stack, 8);
    bench.memory.store64(32, 8 + 7, Ordering::Relaxed);
    bench.memory.store64(bench.wave.header(7), 8 + 7, Ordering::Relaxed);
    bench.pass_at(0);
    assert_eq!(bench.get(Count::Cycles), 1);
    bench.memory.store64(24, 6, Ordering::Relaxed);
    let (packet, tagged) = bench.wave.open();
    bench.wave.fill(packet, &call());
    bench.pass_at(30); // READY: a suspect
    bench.wave.submit(packet, tagged);
    assert_eq!(bench.pass_at(31).answered, 1);
    let sent = common::Sent { packet, tagged, lanes: 1 };
    bench.wave.receive(&sent).unwrap();
    let (again, _) = bench.wave.open();
    assert_eq!(again, packet);
    bench.wave.fill(again, &call()); // READY again, and on its way
    assert_eq!(bench.pass_at(90).answered, 0);
    assert!(!bench.wave.is_answered(&sent));
    assert_eq!(bench.get(Count::Rescued), 0);
}

#[test]
fn a_chain_into_free_packets_answers_none_of_them() {
    let mut bench = Bench::new(Transport::Stack, 8);
    let sent = bench.wave.send(&call());
    // Below the packet lies the free stack: six packets that nobody waits on.
    bench.memory.store64(bench.wave.header(sent.packet), 6, Ordering::Relaxed);
    let pass = bench.pass();
    assert_eq!((pass.answered, bench.get(Count::NotReady)), (1, 7));
    bench.wave.receive(&sent).unwrap();
    bench.check_next();
}

#[test]
fn the_longest_chain_takes_as_many_steps_as_there_are_packets() {
    let mut bench = Bench::new(Transport::Stack, 64);
    for packet in 0..64_u64 {
        let header = bench.wave.header(u32::try_from(packet).unwrap());
        bench.memory.store64(header, (packet + 1) % 64 + 64, Ordering::Relaxed);
    }
    bench.memory.store64(32, 64, Ordering::Relaxed);
    bench.pass();
    assert_eq!((bench.get(Count::NotReady), bench.get(Count::Cycles)), (64, 1));
}

/// A stack that is never empty: packet 1 is always on it, always READY.
#[derive(Debug)]
struct Flood(Arc<Memory>, AtomicU64);

impl Words for Flood {
    fn bytes(&self) -> usize {
        self.0.bytes()
    }
    fn load32(&self, offset: usize, order: Ordering) -> u32 {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.load32(offset, order) | 1
    }
    fn load64(&self, offset: usize, order: Ordering) -> u64 {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.load64(offset, order)
    }
    fn store32(&self, offset: usize, value: u32, order: Ordering) {
        self.0.store32(offset, value, order);
    }
    fn store64(&self, offset: usize, value: u64, order: Ordering) {
        self.0.store64(offset, value, order);
    }
    fn swap64(&self, offset: usize, value: u64, order: Ordering) -> u64 {
        self.0.swap64(offset, value, order);
        1
    }
}

#[test]
fn endless_pushing_costs_a_pass_no_more_than_its_budget() {
    let area = area(Transport::Stack, 4);
    let flood = Arc::new(Flood(Memory::new(&area), AtomicU64::new(0)));
    let mut pool = Pool::new(Arc::clone(&flood), &spec(1, area)).unwrap();
    let (mut table, _) = adder();
    let counters = Counters::default();
    for _ in 0..10 {
        flood.1.store(0, Ordering::Relaxed);
        let pass = pool.pass(&mut table, &counters, &turn(50, 0));
        assert!(pass.more && pass.answered <= 50);
        assert!(flood.1.load(Ordering::Relaxed) <= 50 * (5 + 512));
    }
}

#[test]
fn a_control_word_cleared_early_is_not_served_and_keeps_no_bit_of_the_device() {
    let mut bench = Bench::new(Transport::Stack, 4);
    let early = bench.wave.send(&call());
    let control = bench.wave.header(early.packet) + 20;
    bench.memory.store32(control, 0xffff_fffe, Ordering::Relaxed);
    assert_eq!(bench.pass().answered, 0);
    bench.wave.receive(&early).unwrap();
    let loud = bench.wave.send(&call());
    let control = bench.wave.header(loud.packet) + 20;
    bench.memory.store32(control, u32::MAX, Ordering::Relaxed);
    assert_eq!(bench.pass().answered, 1);
    assert_eq!(bench.memory.load32(control, Ordering::Relaxed), 0);
}

#[test]
fn aba_tags_come_back_through_every_wrap() {
    let mut bench = Bench::new(Transport::Stack, 2);
    // The next tag wraps to 0, which is the empty stack, and has to be skipped.
    bench.memory.store64(24, 0_u64.wrapping_sub(2), Ordering::Relaxed);
    bench.memory.store64(bench.wave.header(0), 0, Ordering::Relaxed);
    for _ in 0..3 {
        bench.check_next();
        let free = bench.memory.load64(24, Ordering::Relaxed);
        assert_ne!(free, 0);
        assert_eq!(free & 1, 0, "packet 0");
    }
}
