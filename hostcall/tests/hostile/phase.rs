//! What a device can do to the phases.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use hostcall::layout::Transport;
use hostcall::pool::Turn;
use hostcall::{Count, Words};

use crate::common;
use crate::{Bench, call, turn};

#[test]
fn the_last_look_is_at_every_packet_wherever_a_stop_cut_the_scan_short() {
    let mut bench = Bench::new(Transport::Phase, 8);
    let first = bench.wave.send(&call()); // packet 0
    let second = bench.wave.send(&call());
    let served = Arc::clone(&bench.served);
    let stop = move || served.load(Ordering::Relaxed) >= 1;
    bench.pool.pass(&mut bench.table, &bench.counters, &Turn { stop: &stop, ..turn(100, 0) });
    assert!(bench.wave.receive(&first).is_some());
    let again = bench.wave.send(&call()); // packet 0, behind the scan
    assert_eq!(again.packet, first.packet);
    let last = Turn { refuse: true, ..turn(100, 0) };
    assert_eq!(bench.pool.pass(&mut bench.table, &bench.counters, &last).answered, 2);
    for sent in [again, second] {
        assert_eq!(bench.wave.receive(&sent), Some(vec![(0, [u64::MAX, 0])]));
    }
}

#[test]
fn a_phase_flipped_back_or_out_of_range_is_no_call_and_counted_once() {
    let mut bench = Bench::new(Transport::Phase, 4);
    let sent = bench.wave.send(&call());
    let phase = bench.pool.area().device_phase(sent.packet);
    bench.memory.store32(phase, 0, Ordering::Relaxed);
    assert_eq!(bench.pass().answered, 0, "taken back");
    for _ in 0..5 {
        bench.memory.store32(phase, 7, Ordering::Relaxed);
        assert_eq!(bench.pass().answered, 0);
    }
    assert_eq!(bench.get(Count::BadPhase), 1);
    bench.memory.store32(phase, 1, Ordering::Relaxed);
    assert_eq!(bench.pass().answered, 1);
    assert!(bench.wave.receive(&sent).is_some());
    bench.check_next();
}

#[test]
fn a_host_phase_that_the_device_overwrites_is_not_believed() {
    let mut bench = Bench::new(Transport::Phase, 4);
    let sent = bench.wave.send(&call());
    let host = bench.pool.area().host_phase(sent.packet);
    bench.memory.store32(host, 1, Ordering::Relaxed);
    assert_eq!(bench.pass().answered, 1, "by the host's own copy it waits");
    assert_eq!(bench.memory.load32(host, Ordering::Relaxed), 1);
    assert!(!bench.hostile.loads().contains(&host));
}

#[test]
fn a_packet_far_beyond_the_busy_ones_is_answered() {
    let mut bench = Bench::new(Transport::Phase, 2000);
    let far = 1999;
    bench.wave.fill(far, &call());
    bench.wave.submit(far, far.into());
    let sent = common::Sent { packet: far, tagged: far.into(), lanes: 1 };
    let mut passes = 0;
    while !bench.wave.is_answered(&sent) {
        bench.wave.call(&call(), || {
            bench.pool.pass(&mut bench.table, &bench.counters, &turn(100, 0));
            passes += 1;
        });
        assert!(passes < 40, "starved");
    }
}
