//! The drain's thread: how it sleeps, wakes and ends.

#![cfg(not(loom))]

mod common;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use common::{ADDER, Adder, Call, Memory, Wave, adder, expected, pool, sums};
use hostcall::layout::Transport;
use hostcall::service::{DeviceHeap, HeapLimits, HeapSource};
use hostcall::{
    Bell, Count, Counters, Detach, Drain, DrainConfig, Error, HostBell, PoolId, Registry, Replies,
    Request, Service, ServiceId, Table, Woken,
};

const BOTH: [Transport; 2] = [Transport::Stack, Transport::Phase];
const POOL: PoolId = PoolId(1);
/// Longer than anything here takes on a busy machine.
const LONG: Duration = Duration::from_secs(20);

type TestDrain = Drain<Arc<Memory>>;

struct Bench {
    drain: TestDrain,
    bell: Arc<HostBell>,
    counters: Arc<Counters>,
}

impl Bench {
    fn with(table: Table, config: DrainConfig) -> Self {
        let (bell, counters) = (Arc::new(HostBell::new()), Arc::new(Counters::default()));
        let drain = Drain::start(table, bell.clone(), Arc::clone(&counters), config).unwrap();
        Self { drain, bell, counters }
    }

    fn new(table: Table) -> Self {
        Self::with(table, DrainConfig { patience: LONG, ..DrainConfig::DEFAULT })
    }

    fn attach(&self, transport: Transport, packets: u32) -> Wave {
        let (pool, memory) = pool(transport, packets);
        self.drain.attach(pool).unwrap();
        Wave::new(transport, &memory)
    }
}

fn call() -> Call {
    Call::new(ADDER, 1, [7; 8])
}

/// Waits for something that must happen.
fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < LONG, "never: {what}");
        thread::yield_now();
    }
}

#[test]
fn every_call_of_many_waves_is_answered_exactly_once() {
    const WAVES: u64 = 6;
    const CALLS: u64 = 300;
    for transport in BOTH {
        let (table, served) = adder();
        let bench = Bench::new(table);
        let wave = bench.attach(transport, 6);
        let _guard = bench.drain.launch(POOL).unwrap();
        thread::scope(|scope| {
            for number in 0..WAVES {
                let (wave, bell) = (wave.clone(), Arc::clone(&bench.bell));
                scope.spawn(move || {
                    for n in 0..CALLS {
                        let lanes = u64::MAX >> (n % 60);
                        let call = Call::new(ADDER, lanes, [number << 32 | n; 8]);
                        let sent = wave.send(&call);
                        if n % 3 != 0 {
                            bell.ring(); // and every third doorbell is lost
                        }
                        let mut answer = None;
                        eventually("the answer", || {
                            answer = wave.receive(&sent);
                            answer.is_some()
                        });
                        assert_eq!(sums(&answer.unwrap()), expected(&call));
                    }
                });
            }
        });
        assert_eq!(served.load(Ordering::Relaxed), WAVES * CALLS);
        assert_eq!(bench.counters.get(Count::Answered), WAVES * CALLS);
        let all: Vec<_> = bench.counters.iter().map(|(count, _)| count).collect();
        assert_eq!(all, [Count::Answered, Count::Passes]);
    }
}

#[test]
fn a_call_whose_doorbell_is_lost_is_answered_by_the_timer() {
    for transport in BOTH {
        let (table, _) = adder();
        let bench = Bench::new(table);
        let wave = bench.attach(transport, 4);
        let _guard = bench.drain.launch(POOL).unwrap();
        for _ in 0..20 {
            // The machine may be busy; the timer itself is bounded by the type.
            wave.call(&call(), thread::yield_now);
            thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(bench.bell.count(), 0);
        assert_eq!(bench.counters.get(Count::Answered), 20);
    }
}

#[test]
fn the_timer_is_at_most_five_milliseconds_whatever_is_asked_for() {
    struct Watch(Mutex<Vec<Duration>>);
    impl Bell for Watch {
        fn count(&self) -> i64 {
            0
        }
        fn wait(&self, _: i64, limit: Duration) -> Woken {
            self.0.lock().unwrap().push(limit);
            Woken::TimedOut
        }
        fn ring(&self) {}
    }
    let watch = Arc::new(Watch(Mutex::default()));
    let config = DrainConfig { poll: Duration::from_secs(3600), ..DrainConfig::DEFAULT };
    let (table, _) = adder();
    let drain = TestDrain::start(table, watch.clone(), Arc::default(), config).unwrap();
    drain.attach(pool(Transport::Stack, 4).0).unwrap();
    let guard = drain.launch(POOL).unwrap();
    eventually("a sleep", || !watch.0.lock().unwrap().is_empty());
    drop(guard);
    assert!(watch.0.lock().unwrap().iter().all(|&limit| limit <= Duration::from_millis(5)));
}

#[test]
fn nothing_wakes_the_thread_while_no_launch_is_in_flight() {
    let (table, _) = adder();
    let bench = Bench::new(table);
    let _wave = bench.attach(Transport::Stack, 4);
    let passes = || bench.counters.get(Count::Passes);
    thread::sleep(Duration::from_millis(30));
    assert_eq!(passes(), 0, "no launch was ever made");
    let guards = [bench.drain.launch(POOL).unwrap(), bench.drain.launch(POOL).unwrap()];
    eventually("a pass", || passes() > 0);
    let [first, second] = guards;
    drop(first);
    let before = passes();
    eventually("more passes: one launch is left", || passes() > before);
    drop(second);
    assert_eq!(bench.drain.in_flight(), 0);
    // It may be in a pass or asleep in the bell; then it is at rest.
    thread::sleep(Duration::from_millis(50));
    let before = passes();
    for _ in 0..10 {
        bench.bell.ring(); // not even a ring
    }
    thread::sleep(Duration::from_millis(50));
    assert_eq!(passes(), before);
}

#[test]
fn a_doorbell_that_never_stops_ringing_does_not_burn_a_core() {
    struct Storm;
    impl Bell for Storm {
        fn count(&self) -> i64 {
            0
        }
        fn wait(&self, _: i64, _: Duration) -> Woken {
            Woken::Rung
        }
        fn ring(&self) {}
    }
    struct Dead;
    impl Bell for Dead {
        fn count(&self) -> i64 {
            0
        }
        fn wait(&self, _: i64, _: Duration) -> Woken {
            Woken::Dead
        }
        fn ring(&self) {}
    }
    for bell in [Arc::new(Storm) as Arc<dyn Bell>, Arc::new(Dead)] {
        let (table, _) = adder();
        let counters = Arc::<Counters>::default();
        let config = DrainConfig { linger: Duration::ZERO, ..DrainConfig::DEFAULT };
        let drain = TestDrain::start(table, bell, Arc::clone(&counters), config).unwrap();
        let (pool, memory) = pool(Transport::Stack, 4);
        drain.attach(pool).unwrap();
        let start = Instant::now();
        let guard = drain.launch(POOL).unwrap();
        thread::sleep(Duration::from_millis(100));
        let passes = counters.get(Count::Passes);
        let most = 64 + 2 * u64::try_from(start.elapsed().as_millis()).unwrap();
        assert!(passes <= most, "{passes} passes");
        // It still works.
        Wave::new(Transport::Stack, &memory).call(&call(), thread::yield_now);
        drop(guard);
        assert_eq!(drain.stop().unwrap().len(), 1);
    }
}

#[test]
fn a_pool_that_is_flooded_does_not_starve_another() {
    let (table, served) = adder();
    let bench = Bench::new(table);
    let (flooded, memory) = pool(Transport::Phase, 8);
    bench.drain.attach(flooded).unwrap();
    let (quiet, quiet_memory) = {
        let area = common::area(Transport::Stack, 4);
        let memory = Memory::new(&area);
        (hostcall::Pool::new(Arc::clone(&memory), &common::spec(2, area)).unwrap(), memory)
    };
    bench.drain.attach(quiet).unwrap();
    let _guards = [bench.drain.launch(POOL).unwrap(), bench.drain.launch(PoolId(2)).unwrap()];
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let wave = Wave::new(Transport::Phase, &memory);
            while !over.load(Ordering::Relaxed) {
                for packet in 0..8 {
                    wave.submit(packet, 0); // without ever waiting for an answer
                }
            }
        });
        let wave = Wave::new(Transport::Stack, &quiet_memory);
        for _ in 0..20 {
            let answer = wave.call(&call(), thread::yield_now);
            assert_eq!(sums(&answer), expected(&call()));
        }
        over.store(true, Ordering::Relaxed);
    });
    assert!(served.load(Ordering::Relaxed) >= 20);
}

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
