//! How it gives pools back, and ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use hostcall::layout::Transport;
use hostcall::service::{DeviceHeap, HeapLimits, HeapSource};
use hostcall::{
    Count, Counters, Detach, DrainConfig, Error, HostBell, PoolId, Registry, Replies, Request,
    Service, ServiceId, Table,
};

use crate::common::{ADDER, Adder, Call, Wave, adder, pool};
use crate::{BOTH, Bench, LONG, POOL, TestDrain, call};

/// Blocks in the service until it is told to go on.
struct Gate {
    entered: Sender<()>,
    go_on: Receiver<()>,
}

impl Service for Gate {
    fn serve(&mut self, _: &Request<'_>, replies: &mut Replies<'_>, _: &Counters) {
        self.entered.send(()).unwrap();
        let _ = self.go_on.recv();
        replies.set(0, [1, 1]);
    }
}

const GATE: ServiceId = ServiceId(9);

fn gate() -> (Table, Receiver<()>, Sender<()>) {
    let (entered, was_entered) = channel();
    let (open, go_on) = channel();
    let gate = Gate { entered, go_on };
    let registry = Registry::new().with(GATE, gate).unwrap();
    (registry.with(ADDER, Adder::default()).unwrap().build(), was_entered, open)
}

#[test]
fn stopping_answers_what_waits_with_errors_and_joins_the_thread() {
    for transport in BOTH {
        let (table, entered, open) = gate();
        let bench = Bench::new(table);
        let wave = bench.attach(transport, 8);
        let guard = bench.drain.launch(POOL).unwrap();
        let first = wave.send(&Call::new(GATE, 1, [0; 8]));
        entered.recv_timeout(LONG).unwrap();
        // The drain is busy with the first; these wait.
        let waiting: Vec<_> = (0..5).map(|_| wave.send(&call())).collect();
        let counters = Arc::clone(&bench.counters);
        let stopper = thread::spawn(move || bench.drain.stop());
        // Stopped only once it has been asked to: then no service is called any more.
        thread::sleep(Duration::from_millis(30));
        open.send(()).unwrap();
        let pools = stopper.join().unwrap().unwrap();
        assert_eq!(pools.len(), 1, "the caller gets the memory back");
        assert_eq!(wave.receive(&first), Some(vec![(0, [1, 1])]));
        for sent in waiting {
            assert_eq!(wave.receive(&sent), Some(vec![(0, [u64::MAX, 0])]));
        }
        assert_eq!(counters.get(Count::RefusedAtStop), 5);
        drop(guard); // outlives the drain
    }
}

#[test]
fn a_service_that_does_not_return_holds_up_neither_stop_nor_detach_for_ever() {
    let (table, entered, open) = gate();
    let patience = Duration::from_millis(50);
    let bench = Bench::with(table, DrainConfig { patience, ..DrainConfig::DEFAULT });
    let wave = bench.attach(Transport::Stack, 4);
    let _guard = bench.drain.launch(POOL).unwrap();
    wave.send(&Call::new(GATE, 1, [0; 8]));
    entered.recv_timeout(LONG).unwrap();
    let start = Instant::now();
    let stuck = bench.drain.detach(POOL, Detach::QueueGone).unwrap_err();
    assert!(matches!(stuck, Error::Stuck { milliseconds: 50 }), "{stuck}");
    let stuck = bench.drain.stop().unwrap_err();
    assert!(matches!(stuck, Error::Stuck { .. }), "{stuck}");
    assert!(start.elapsed() < LONG);
    open.send(()).unwrap();
}

#[test]
fn a_drain_without_pools_or_launches_stops_at_once() {
    let (table, _) = adder();
    let bench = Bench::new(table);
    assert!(bench.drain.stop().unwrap().is_empty());
}

#[test]
fn starts_and_stops_race_with_launches_and_calls() {
    for round in 0..40_u64 {
        let (table, _) = adder();
        let bench = Bench::new(table);
        let wave = bench.attach(Transport::Stack, 4);
        let guard = bench.drain.launch(POOL).unwrap();
        let caller = thread::spawn(move || wave.call(&call(), thread::yield_now));
        if round % 2 == 0 {
            // The wave is answered either way.
            caller.join().unwrap();
            drop(guard);
            bench.drain.stop().unwrap();
        } else {
            caller.join().unwrap();
            bench.drain.stop().unwrap();
            drop(guard);
        }
    }
}

#[test]
fn a_pool_in_use_is_not_given_back_unless_its_queue_is_gone() {
    let (table, _) = adder();
    let bench = Bench::new(table);
    let wave = bench.attach(Transport::Stack, 4);
    let guard = bench.drain.launch(POOL).unwrap();
    let refused = bench.drain.detach(POOL, Detach::Idle).unwrap_err();
    assert!(matches!(refused, Error::InFlight { launches: 1, .. }), "{refused}");
    wave.call(&call(), thread::yield_now);
    drop(guard);
    let pool = bench.drain.detach(POOL, Detach::Idle).unwrap();
    assert_eq!(pool.id(), POOL);
    assert!(matches!(bench.drain.launch(POOL), Err(Error::UnknownPool { pool: POOL })));
    assert!(matches!(bench.drain.detach(POOL, Detach::Idle), Err(Error::UnknownPool { .. })));

    // The same number again; then its queue dies under a launch.
    bench.attach(Transport::Stack, 4);
    let dead = bench.drain.launch(POOL).unwrap();
    bench.drain.detach(POOL, Detach::QueueGone).unwrap();
    assert_eq!(bench.drain.in_flight(), 0);
    let wave = bench.attach(Transport::Stack, 4);
    let alive = bench.drain.launch(POOL).unwrap();
    drop(dead); // belongs to the pool that is gone
    assert_eq!(bench.drain.in_flight(), 1);
    wave.call(&call(), thread::yield_now);
    drop(alive);
    assert_eq!(bench.drain.in_flight(), 0);
}

#[test]
fn a_pool_is_attached_once() {
    let (table, _) = adder();
    let bench = Bench::new(table);
    bench.attach(Transport::Stack, 4);
    let again = bench.drain.attach(pool(Transport::Phase, 4).0).unwrap_err();
    assert!(matches!(again, Error::DuplicatePool { pool: POOL }), "{again}");
}

#[test]
fn a_reset_queue_starts_with_all_packets_and_no_messages() {
    struct Forgetful(Arc<AtomicU64>);
    impl Service for Forgetful {
        fn serve(&mut self, _: &Request<'_>, _: &mut Replies<'_>, _: &Counters) {}
        fn forget(&mut self, pool: PoolId) {
            assert_eq!(pool, POOL);
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    let forgotten = Arc::<AtomicU64>::default();
    let service = Forgetful(Arc::clone(&forgotten));
    let registry = Registry::new().with(ServiceId(5), service).unwrap();
    let bench = Bench::new(registry.with(ADDER, Adder::default()).unwrap().build());
    let wave = bench.attach(Transport::Stack, 4);
    for _ in 0..4 {
        wave.open(); // waves that are killed with a packet each
    }
    let guard = bench.drain.launch(POOL).unwrap();
    bench.drain.reset(POOL).unwrap();
    assert_eq!(forgotten.load(Ordering::Relaxed), 1);
    for _ in 0..8 {
        wave.call(&call(), thread::yield_now);
    }
    drop(guard);
    bench.drain.detach(POOL, Detach::Idle).unwrap();
    assert_eq!(forgotten.load(Ordering::Relaxed), 2);
    assert!(matches!(bench.drain.reset(POOL), Err(Error::UnknownPool { .. })));
}

#[test]
fn heap_limits_change_only_while_nothing_is_in_flight() {
    struct Nothing;
    impl HeapSource for Nothing {
        type Block = ();
        fn allocate(&mut self, _: u64, _: u64) -> Option<(u64, ())> {
            None
        }
    }
    let heap = DeviceHeap::new(Nothing, HeapLimits::DEFAULT);
    let control = heap.control();
    let table = Registry::new().with(ServiceId::DEVICE_MEMORY, heap).unwrap().build();
    let bench = Bench::new(table);
    bench.attach(Transport::Stack, 4);
    let limits = HeapLimits { bytes: 1 << 20, blocks: 10 };
    let guard = bench.drain.launch(POOL).unwrap();
    let refused = bench.drain.set_heap_limits(&control, limits).unwrap_err();
    assert!(matches!(refused, Error::InFlight { launches: 1, .. }), "{refused}");
    assert_eq!(control.limits(), HeapLimits::DEFAULT);
    drop(guard);
    bench.drain.set_heap_limits(&control, limits).unwrap();
    assert_eq!(control.limits(), limits);
}

#[test]
fn a_panic_in_a_service_leaves_the_thread_at_work() {
    struct Bomb;
    impl Service for Bomb {
        fn serve(&mut self, _: &Request<'_>, _: &mut Replies<'_>, _: &Counters) {
            panic!("as the test asked");
        }
    }
    let registry = Registry::new().with(ServiceId(5), Bomb).unwrap();
    let bench = Bench::new(registry.with(ADDER, Adder::default()).unwrap().build());
    let wave = bench.attach(Transport::Stack, 4);
    let _guard = bench.drain.launch(POOL).unwrap();
    let answer = wave.call(&Call::new(ServiceId(5), 1, [1; 8]), thread::yield_now);
    assert_eq!(answer, [(0, [u64::MAX, 0])]);
    wave.call(&call(), thread::yield_now);
    assert_eq!(bench.counters.get(Count::ServicePanics), 1);
    assert_eq!(bench.drain.stop().unwrap().len(), 1);
}

#[test]
fn a_thread_of_the_host_can_be_the_worker() {
    let (table, _) = adder();
    let bell = Arc::new(HostBell::new());
    let (drain, worker) = TestDrain::parts(table, bell, Arc::default(), DrainConfig::DEFAULT);
    let host = thread::spawn(move || worker.run());
    let (pool, memory) = pool(Transport::Phase, 4);
    drain.attach(pool).unwrap();
    let guard = drain.launch(POOL).unwrap();
    Wave::new(Transport::Phase, &memory).call(&call(), thread::yield_now);
    drop(guard);
    assert_eq!(drain.stop().unwrap().len(), 1);
    host.join().unwrap();
}
