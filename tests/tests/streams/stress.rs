//! Many streams of every kind on two GPUs that misbehave, against the same on the CPU.
//!
//! Each piece of memory belongs to a stream, and only its owner uses it. It changes hands by an event
//! that the old owner records and the new one waits for, so that the order of all operations on it is
//! the order in which they were submitted, whatever runs at the same time. The CPU does each operation
//! on a copy when it is submitted; host functions compare with it on the way, and at the end every byte
//! is compared.
//!
//! `KFD_STRESS_OPERATIONS` is the number of operations of each stream; `KFD_STRESS_SEED` the first seed.

mod memory;
mod operations;

use std::sync::Arc;
use std::time::{Duration, Instant};

use hip::{CopyEngine, CopyRequest, Event, Runtime, Stream};
use kfd_model::{FaultPlan, Model, Preset, Target};
use kfd_tests::{each_device, on_hardware, skip};

use super::{Adder, kinds};
use memory::Piece;
use operations::Recorded;

const LONG: Duration = Duration::from_secs(120);
const STREAMS: usize = 8;

/// A small generator of which nothing is asked but variety: xorshift.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % bound as u64).unwrap()
    }
}

/// Says how to repeat a run that fails.
struct Run {
    name: String,
    seed: u64,
    operation: usize,
}

impl Drop for Run {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}: seed {}, operation {}", self.name, self.seed, self.operation);
        }
    }
}

struct Stress<'a> {
    run: Run,
    random: Random,
    adders: &'a [Adder],
    /// With the index of the stream's device.
    streams: Vec<(Stream, usize)>,
    pieces: Vec<Piece>,
    /// Command buffers of each device.
    commands: Vec<Vec<Recorded>>,
    events: Vec<Event>,
    /// What host functions found.
    wrong: operations::Wrong,
}

fn stream(adder: &Adder, index: usize) -> Stream {
    let engines = [CopyEngine::Sdma, CopyEngine::Shader, CopyEngine::Auto];
    let copies = CopyRequest::new().engine(engines[index % 3]).small(300);
    let copies = copies.sdma_ring_bytes(4096).staging(3, 500);
    let kinds = kinds(&adder.device);
    let kind = kinds[index / 2 % kinds.len()].packets(64).kernarg_bytes(16 << 10);
    adder.stream(kind.copies(copies).patience(LONG))
}

impl<'a> Stress<'a> {
    fn new(name: &str, adders: &'a [Adder], seed: u64) -> Self {
        let runtime = &adders[0].runtime;
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let streams = (0..STREAMS).map(|index| {
            let device = index % adders.len();
            (stream(&adders[device], index), device)
        });
        let streams: Vec<_> = streams.collect();
        let mut pieces: Vec<_> = (0..3 * STREAMS)
            .map(|index| Piece::new(adders, index % adders.len(), index, index % STREAMS))
            .collect();
        let commands = (0..adders.len())
            .map(|device| {
                let of = |n| Recorded::new(adders, device, n, &mut pieces, &mut random);
                (0..2).map(of).collect()
            })
            .collect();
        Self {
            run: Run { name: name.to_owned(), seed, operation: 0 },
            random,
            adders,
            streams,
            pieces,
            commands,
            events: (0..6).map(|_| Event::new(runtime)).collect(),
            wrong: operations::Wrong::default(),
        }
    }

    fn check(mut self) {
        for (stream, _) in &mut self.streams {
            stream.synchronize_within(LONG).unwrap();
        }
        let wrong = self.wrong.lock().unwrap();
        assert!(wrong.is_empty(), "seen by host functions: {wrong:?}");
        for (index, piece) in self.pieces.iter().enumerate() {
            let (stream, _) = &mut self.streams[piece.owner];
            let mut found = vec![0; piece.shadow.len()];
            stream.copy_to_host(&mut found, &*piece.memory).unwrap();
            let place = found.iter().zip(&piece.shadow).position(|(found, wanted)| found != wanted);
            assert_eq!(place, None, "piece {index} differs from there on");
        }
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| value.parse().unwrap())
}

/// Runs the streams with `turn` called now and then, to change what goes wrong.
fn run(name: &str, runtime: &Runtime, seed: u64, usual: usize, turn: impl Fn(usize)) {
    let of = |index| Adder::on(runtime.clone(), index);
    let adders: Vec<Adder> = (0..runtime.devices().len().min(2)).map(of).collect();
    let asked = number("KFD_STRESS_OPERATIONS").map(|count| usize::try_from(count).unwrap());
    let operations = STREAMS * asked.unwrap_or(usual);
    let seed = seed + number("KFD_STRESS_SEED").unwrap_or(0);
    let mut stress = Stress::new(name, &adders, seed);
    let start = Instant::now();
    for operation in 0..operations {
        stress.run.operation = operation;
        if operation % 256 == 0 {
            turn(operation / 256);
        }
        stress.step();
    }
    stress.check();
    if asked.is_some() {
        eprintln!("{name}: seed {seed}, {operations} operations in {:?}", start.elapsed());
    }
}

#[test]
fn streams_of_every_kind_in_random_order_compute_what_the_cpu_does() {
    each_device(|device| {
        let runtime = Runtime::new(device.kfd.clone()).unwrap();
        run(device.name(), &runtime, 1, 150, |_| ());
    });
}

/// What goes wrong in a turn: interrupts that are late, lost, repeated, or for nothing; slow engines.
fn misbehave(plan: &FaultPlan, turn: usize) {
    plan.clear();
    match turn % 6 {
        0 => drop(plan.delay_interrupts(Duration::from_millis(2))),
        1 => drop(plan.lose_interrupts(4)),
        2 => drop(plan.repeat_interrupts(100)),
        3 => drop(plan.raise_spurious_interrupts(200)),
        4 => drop(plan.slow_engines(Duration::from_micros(20), 128)),
        _ => {
            plan.delay_interrupts(Duration::from_micros(300)).repeat_interrupts(50);
            plan.lose_interrupts(2).slow_engines(Duration::from_micros(5), 1024);
        }
    }
}

#[test]
fn two_gpus_that_misbehave_compute_what_the_cpu_does() {
    if on_hardware() {
        return skip("it orders faults that only the software GPU has");
    }
    for (seed, target) in (1..).zip([Target::Gfx90a, Target::Gfx1100]) {
        let plan = Arc::new(FaultPlan::new());
        let preset = || Preset::of(target);
        let builder = Model::builder().gpu(preset()).gpu(preset()).fault_plan(Arc::clone(&plan));
        // A hive, so that each reaches the other's memory.
        let mut topology = builder.topology();
        for node in topology.nodes.iter_mut().filter(|node| node.gpu_id != 0) {
            node.properties.set("hive_id", 0x1234);
        }
        let model = builder.build_topology(&topology);
        let runtime = Runtime::new(kfd::Kfd::open_on(model).unwrap()).unwrap();
        run(target.name(), &runtime, seed, 200, |turn| misbehave(&plan, turn));
    }
}

#[test]
fn two_gpus_of_different_generations_compute_what_the_cpu_does() {
    if on_hardware() {
        return skip("it orders faults that only the software GPU has");
    }
    let plan = Arc::new(FaultPlan::new());
    let builder = Model::builder().gpu(Preset::gfx90a()).gpu(Preset::gfx1100());
    let model = builder.fault_plan(Arc::clone(&plan)).build();
    let runtime = Runtime::new(kfd::Kfd::open_on(model).unwrap()).unwrap();
    run("gfx90a and gfx1100", &runtime, 3, 150, |turn| misbehave(&plan, turn));
}
