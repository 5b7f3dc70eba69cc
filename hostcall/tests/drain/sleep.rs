//! How it sleeps and wakes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use hostcall::layout::Transport;
use hostcall::{Bell, Count, Counters, DrainConfig, PoolId, Woken};

use crate::common::{self, ADDER, Call, Memory, Wave, adder, expected, pool, sums};
use crate::{BOTH, Bench, POOL, TestDrain, call, eventually};

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
