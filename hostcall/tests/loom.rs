//! Every interleaving of a wave, the drain and its callers, within loom's model of memory.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p hostcall --test loom --release`
//!
//! Time does not pass in the model: a drain that sleeps when it should not, sleeps for ever, and
//! loom reports the deadlock. What a host writes without ordering is not seen by the wave.
#![cfg(loom)]
#![allow(missing_docs)]

use std::sync::Arc;

use core::sync::atomic::Ordering;
use core::time::Duration;

use hostcall::layout::{Area, Transport};
use hostcall::{
    Bell, Count, Counters, Detach, Drain, DrainConfig, HostBell, Pool, PoolId, PoolSpec, Registry,
    Replies, Request, Service, ServiceId, Table, Words,
};
use loom::model::Builder;
use loom::sync::atomic::{AtomicU64, Ordering as LoomOrdering};
use loom::thread;

const POOL: PoolId = PoolId(1);
const ECHO: ServiceId = ServiceId(9);

fn explore(preemptions: usize, test: impl Fn() + Send + Sync + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(preemptions);
    // A run with a few passes over a pool has more steps than loom's default of 1000.
    builder.max_branches = 10_000;
    builder.check(test);
}

/// The words that a pool of two packets uses, each an atomic of the model: few enough to explore.
struct Memory {
    area: Area,
    /// Word of each offset that has one; the payload has lane 0 only.
    words: Vec<(usize, AtomicU64)>,
}

impl Memory {
    fn new(transport: Transport) -> Arc<Self> {
        let area = Area::new(transport, 2).unwrap();
        let mut offsets: Vec<usize> = (0..7).map(|word| 8 * word).collect();
        for packet in 0..2 {
            offsets.extend([area.activemask(packet), area.service(packet) & !7]);
            match transport {
                Transport::Stack => offsets.push(area.next(packet)),
                _ => offsets.extend([area.device_phase(packet) & !7, area.host_phase(packet) & !7]),
            }
            offsets.extend((0..8).map(|word| area.slot(packet, 0) + 8 * word));
        }
        offsets.sort_unstable();
        offsets.dedup();
        let words = offsets.into_iter().map(|offset| (offset, AtomicU64::new(0))).collect();
        Arc::new(Self { area, words })
    }

    fn word(&self, offset: usize) -> &AtomicU64 {
        let at = self.words.binary_search_by_key(&offset, |(offset, _)| *offset);
        &self.words[at.unwrap_or_else(|_| panic!("no word at {offset}"))].1
    }

    fn pool(self: &Arc<Self>) -> Pool<Arc<Self>> {
        let spec = PoolSpec {
            id: POOL,
            area: self.area,
            base: 0,
            doorbell: 0,
            occupied: 0,
            wave_lanes: 64,
        };
        Pool::new(Arc::clone(self), &spec).unwrap()
    }
}

impl Words for Memory {
    fn bytes(&self) -> usize {
        self.area.bytes()
    }

    fn load32(&self, offset: usize, order: Ordering) -> u32 {
        (self.word(offset & !7).load(order) >> (8 * (offset & 4))) as u32
    }

    fn load64(&self, offset: usize, order: Ordering) -> u64 {
        self.word(offset).load(order)
    }

    fn store32(&self, offset: usize, value: u32, order: Ordering) {
        // Loom has no accesses of two sizes: the other half does not change meanwhile, but for the
        // phases, which the tests keep apart by using packet 0 only.
        let shift = 8 * (offset & 4);
        let word = self.word(offset & !7);
        let other = word.load(Ordering::Relaxed) & !(0xffff_ffff << shift);
        word.store(other | u64::from(value) << shift, order);
    }

    fn store64(&self, offset: usize, value: u64, order: Ordering) {
        self.word(offset).store(value, order);
    }

    fn swap64(&self, offset: usize, value: u64, order: Ordering) -> u64 {
        self.word(offset).swap(value, order)
    }
}

/// Answers with the word it got and one more; the count of calls must come out right.
struct Echo(Arc<AtomicU64>);

impl Service for Echo {
    fn serve(&mut self, request: &Request<'_>, replies: &mut Replies<'_>, _: &Counters) {
        self.0.fetch_add(1, LoomOrdering::Relaxed);
        for (lane, words) in request.lanes() {
            // Words that were not published with the packet would be 0 here.
            assert_eq!(words[1], 2 * words[0], "a torn packet");
            replies.set(lane, [words[0] + 1, 0]);
        }
    }
}

fn table() -> (Table, Arc<AtomicU64>) {
    let calls = Arc::new(AtomicU64::new(0));
    (Registry::new().with(ECHO, Echo(Arc::clone(&calls))).unwrap().build(), calls)
}

/// What a wave does with packet 0.
struct Wave {
    memory: Arc<Memory>,
    bell: Arc<HostBell>,
}

impl Wave {
    fn send(&self, value: u64) {
        let (memory, area) = (&*self.memory, &self.memory.area);
        memory.store64(area.slot(0, 0), value, Ordering::Relaxed);
        memory.store64(area.slot(0, 0) + 8, 2 * value, Ordering::Relaxed);
        memory.store64(area.activemask(0), 1, Ordering::Relaxed);
        match area.transport() {
            Transport::Stack => {
                // Service and control share a word.
                memory.store64(area.service(0), 1 << 32 | u64::from(ECHO.0), Ordering::Relaxed);
                memory.store64(area.next(0), 0, Ordering::Relaxed);
                let stack = memory.word(area.ready_stack());
                stack
                    .compare_exchange(0, 2, Ordering::Release, Ordering::Relaxed)
                    .expect("no other wave pushes");
            }
            _ => {
                memory.store64(area.service(0), ECHO.0.into(), Ordering::Relaxed);
                memory.word(area.device_phase(0)).fetch_xor(1, Ordering::Release);
            }
        }
        self.bell.ring();
    }

    fn receive(&self) -> u64 {
        let (memory, area) = (&*self.memory, &self.memory.area);
        loop {
            let waits = match area.transport() {
                Transport::Stack => memory.load32(area.control(0), Ordering::Acquire) & 1 != 0,
                _ => {
                    memory.load32(area.device_phase(0), Ordering::Acquire)
                        != memory.load32(area.host_phase(0), Ordering::Acquire)
                }
            };
            if !waits {
                return memory.load64(area.slot(0, 0), Ordering::Relaxed);
            }
            thread::yield_now();
        }
    }
}

/// No spinning: loom explores every round of it.
const CONFIG: DrainConfig = DrainConfig {
    poll: Duration::ZERO,
    linger: Duration::ZERO,
    budget: 4,
    patience: Duration::from_secs(1),
};

struct Bench {
    drain: Drain<Arc<Memory>>,
    worker: thread::JoinHandle<()>,
    wave: Wave,
    calls: Arc<AtomicU64>,
    counters: Arc<Counters>,
}

fn bench(transport: Transport) -> Bench {
    let (table, calls) = table();
    let (bell, counters) = (Arc::new(HostBell::new()), Arc::new(Counters::default()));
    let (drain, worker) = Drain::parts(table, bell.clone(), Arc::clone(&counters), CONFIG);
    let memory = Memory::new(transport);
    drain.attach(memory.pool()).unwrap();
    let worker = thread::spawn(move || worker.run());
    Bench { drain, worker, wave: Wave { memory, bell }, calls, counters }
}

fn a_call_in_flight_is_answered(transport: Transport) {
    explore(2, move || {
        let Bench { drain, worker, wave, calls, .. } = bench(transport);
        let guard = drain.launch(POOL).unwrap();
        wave.send(20);
        assert_eq!(wave.receive(), 21);
        drop(guard);
        drain.stop().unwrap();
        worker.join().unwrap();
        assert_eq!(calls.load(LoomOrdering::Relaxed), 1);
    });
}

#[test]
fn a_call_in_flight_is_answered_stack() {
    a_call_in_flight_is_answered(Transport::Stack);
}

#[test]
fn a_call_in_flight_is_answered_phase() {
    a_call_in_flight_is_answered(Transport::Phase);
}

fn a_call_that_races_with_stop_is_answered_once(transport: Transport) {
    explore(2, move || {
        let Bench { drain, worker, wave, calls, counters } = bench(transport);
        let guard = drain.launch(POOL).unwrap();
        // Sent before the stop: answered by the service or refused, never both, never neither.
        wave.send(20);
        let stopper = thread::spawn(move || drain.stop().unwrap().len());
        let answer = wave.receive();
        assert_eq!(stopper.join().unwrap(), 1);
        worker.join().unwrap();
        drop(guard);
        let served = calls.load(LoomOrdering::Relaxed);
        let refused = counters.get(Count::RefusedAtStop);
        assert_eq!(served + refused, 1);
        assert_eq!(answer, if served == 1 { 21 } else { u64::MAX });
        assert_eq!(counters.get(Count::Answered), 1);
    });
}

#[test]
fn a_call_that_races_with_stop_is_answered_once_stack() {
    a_call_that_races_with_stop_is_answered_once(Transport::Stack);
}

#[test]
fn a_call_that_races_with_stop_is_answered_once_phase() {
    a_call_that_races_with_stop_is_answered_once(Transport::Phase);
}

#[test]
fn a_launch_wakes_a_drain_that_is_going_to_sleep() {
    explore(3, || {
        let Bench { drain, worker, wave, .. } = bench(Transport::Stack);
        let drain = Arc::new(drain);
        let other = Arc::clone(&drain);
        let launcher = thread::spawn(move || {
            let guard = other.launch(POOL).unwrap();
            drop(guard);
        });
        let guard = drain.launch(POOL).unwrap();
        wave.send(20);
        assert_eq!(wave.receive(), 21);
        drop(guard);
        launcher.join().unwrap();
        assert_eq!(drain.in_flight(), 0);
        Arc::into_inner(drain).unwrap().stop().unwrap();
        worker.join().unwrap();
    });
}

#[test]
fn a_pool_that_was_given_back_is_not_touched_any_more() {
    explore(3, || {
        let Bench { drain, worker, wave, counters, .. } = bench(Transport::Stack);
        let guard = drain.launch(POOL).unwrap();
        let pool = drain.detach(POOL, Detach::QueueGone).unwrap();
        let before = counters.get(Count::Answered);
        wave.send(20); // into memory that is nobody's
        drop(guard);
        drain.stop().unwrap();
        worker.join().unwrap();
        assert_eq!(counters.get(Count::Answered), before);
        assert_eq!(pool.words().load32(pool.area().control(0), Ordering::Acquire), 1);
    });
}

#[test]
fn stop_and_detach_race_without_a_caller_left_waiting() {
    explore(3, || {
        let Bench { drain, worker, .. } = bench(Transport::Phase);
        let drain = Arc::new(drain);
        let other = Arc::clone(&drain);
        let guard = drain.launch(POOL).unwrap();
        let detacher = thread::spawn(move || other.detach(POOL, Detach::QueueGone).is_ok());
        drop(guard);
        let detached = detacher.join().unwrap();
        let pools = Arc::into_inner(drain).unwrap().stop().unwrap();
        worker.join().unwrap();
        assert_eq!(pools.len(), usize::from(!detached));
    });
}
