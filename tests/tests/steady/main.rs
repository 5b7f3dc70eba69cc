//! What a stream does again and again costs no allocation, no system call and no lock.
//!
//! A program of its own, as its allocator counts. System calls are counted by the software GPU, which is
//! the kernel here.
#![allow(clippy::indexing_slicing)] // a test that indexes past the end should fail

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hip::{
    CommandKind, CommandRecorder, CommandRequest, Event, Grid, Module, Runtime, Stream,
    StreamRequest,
};
use kfd::{Kfd, MemoryRequest};
use kfd_model::{FaultPlan, Model, Preset, Target};
use kfd_tests::alloc::{Counting, calls};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const N: u32 = 256;
const LONG: Duration = Duration::from_secs(30);

/// What this thread has done so far: allocator calls, locks, ioctls of all threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cost {
    allocator: u64,
    locks: u64,
    ioctls: u64,
}

struct Meter {
    ioctls: Arc<AtomicU64>,
}

impl Meter {
    fn new(plan: &FaultPlan) -> Self {
        let ioctls = Arc::new(AtomicU64::new(0));
        // KFD has fewer than 256 ioctls.
        for number in 0..=255 {
            let count = Arc::clone(&ioctls);
            plan.garble(number, move |_| {
                count.fetch_add(1, Ordering::Relaxed);
            });
        }
        Self { ioctls }
    }

    fn read(&self) -> Cost {
        let ioctls = self.ioctls.load(Ordering::Relaxed);
        Cost { allocator: calls(), locks: hip::locks_taken(), ioctls }
    }

    /// What `work` costs.
    fn cost(&self, work: impl FnOnce()) -> Cost {
        let before = self.read();
        work();
        let after = self.read();
        Cost {
            allocator: after.allocator - before.allocator,
            locks: after.locks - before.locks,
            ioctls: after.ioctls - before.ioctls,
        }
    }
}

const NOTHING: Cost = Cost { allocator: 0, locks: 0, ioctls: 0 };

/// Waits for a stream without counting.
fn settle(stream: &mut Stream) {
    stream.synchronize_within(LONG).unwrap();
}

#[test]
fn launches_events_waits_and_idle_synchronisation_cost_nothing_but_instructions() {
    for target in [Target::Gfx1100, Target::Gfx90a] {
        let plan = Arc::new(FaultPlan::new());
        let model = Model::builder().gpu(Preset::of(target)).fault_plan(Arc::clone(&plan)).build();
        let runtime = Runtime::new(Kfd::open_on(model).unwrap()).unwrap();
        let device = &runtime.devices()[0];
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/code-objects");
        let file = std::fs::read(format!("{folder}/vadd.{target}.v5.co")).unwrap();
        let vadd = Module::load(device, &file).unwrap().function("vadd").unwrap();
        let vector = || device.allocate(&MemoryRequest::gtt(u64::from(N) * 4)).unwrap();
        let (a, b, c) = (vector(), vector(), vector());
        let grid = Grid::items([N, 1, 1], [64, 1, 1]);
        let meter = Meter::new(&plan);
        for request in [StreamRequest::aql(), StreamRequest::pm4()] {
            let request = request.packets(64).kernarg_bytes(16 << 10);
            let mut stream = Stream::new(device, request).unwrap();
            let mut other = Stream::new(device, request).unwrap();
            let event = Event::new(&runtime);
            let work = |stream: &mut Stream, other: &mut Stream| {
                for _ in 0..5 {
                    stream.launch(&vadd, &grid, (&a, &b, &c, N)).unwrap();
                    stream.record(&event).unwrap();
                    other.wait(&event).unwrap();
                    other.launch(&vadd, &grid, (&a, &b, &c, N)).unwrap();
                }
            };
            // The first rounds make what is kept.
            for _ in 0..20 {
                work(&mut stream, &mut other);
                settle(&mut other);
                settle(&mut stream);
            }
            for round in 0..50 {
                let cost = meter.cost(|| work(&mut stream, &mut other));
                assert_eq!(cost, NOTHING, "{target} {request:?} round {round}");
                settle(&mut other);
                settle(&mut stream);
                let idle = meter.cost(|| {
                    stream.synchronize().unwrap();
                    assert!(stream.query().unwrap() && event.query());
                    event.synchronize().unwrap();
                });
                assert_eq!(idle, NOTHING, "{target} {request:?} idle in round {round}");
            }
        }
        assert!(meter.ioctls.load(Ordering::Relaxed) > 0, "the meter counts");
        assert!(!runtime.has_thread());
    }
}

#[test]
fn submissions_of_command_buffers_cost_nothing_but_instructions() {
    for target in [Target::Gfx1100, Target::Gfx90a] {
        let plan = Arc::new(FaultPlan::new());
        let model = Model::builder().gpu(Preset::of(target)).fault_plan(Arc::clone(&plan)).build();
        let runtime = Runtime::new(Kfd::open_on(model).unwrap()).unwrap();
        let device = &runtime.devices()[0];
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/code-objects");
        let file = std::fs::read(format!("{folder}/vadd.{target}.v5.co")).unwrap();
        let vadd = Module::load(device, &file).unwrap().function("vadd").unwrap();
        let vector = || device.allocate(&MemoryRequest::gtt(u64::from(N) * 4)).unwrap();
        let (a, b) = (vector(), vector());
        let grid = Grid::items([N, 1, 1], [64, 1, 1]);
        let meter = Meter::new(&plan);
        let packets = CommandRequest::new().kind(CommandKind::Packets);
        for (request, commands) in [
            (StreamRequest::aql(), CommandRequest::new()),
            (StreamRequest::aql(), packets),
            (StreamRequest::pm4(), CommandRequest::new()),
        ] {
            let mut stream = Stream::new(device, request.packets(256)).unwrap();
            let mut recorder = CommandRecorder::new(device, commands).unwrap();
            let kernel = recorder.kernel(&vadd, &grid, (&a, &b, &b, N)).unwrap();
            recorder.kernel(&vadd, &grid, (&a, &b, &b, N)).unwrap();
            let mut command = recorder.finish().unwrap();
            let mut work = |stream: &mut Stream| {
                for n in 0..5 {
                    command.set_argument(kernel, 3, N - n).unwrap();
                    stream.submit(&mut command).unwrap();
                }
            };
            // With nothing done meanwhile, each submission makes an instance.
            plan.stop_fetching(true);
            work(&mut stream);
            plan.stop_fetching(false);
            settle(&mut stream);
            for round in 0..50 {
                let cost = meter.cost(|| work(&mut stream));
                assert_eq!(cost, NOTHING, "{target} {request:?} round {round}");
                settle(&mut stream);
            }
        }
    }
}

#[test]
fn a_lock_and_an_allocation_are_counted() {
    let plan = FaultPlan::new();
    let meter = Meter::new(&plan);
    let cost = meter.cost(|| drop(vec![1]));
    assert_eq!(cost.allocator, 2);
    let model = Model::builder().build();
    let runtime = Runtime::new(Kfd::open_on(model).unwrap()).unwrap();
    let cost =
        meter.cost(|| drop(Stream::new(&runtime.devices()[0], StreamRequest::aql()).unwrap()));
    assert!(cost.locks > 0 && cost.allocator > 2, "{cost:?}");
}
