//! Many streams of every kind in a random order, against the same on the CPU.
//!
//! Each vector belongs to a stream; only its owner adds to it. It changes hands by an event that the
//! old owner records and the new one waits for, so that the order of all operations on a vector is the
//! order in which they were submitted, whatever runs at the same time.

use std::sync::Arc;
use std::time::Duration;

use hip::{Event, Grid, Memory, Runtime};
use kfd::MemoryRequest;
use kfd_model::{FaultPlan, Model, Preset};
use kfd_tests::{each_device, on_hardware, skip};

use super::{Adder, kinds};

const LONG: Duration = Duration::from_secs(60);
/// Elements of a vector: few, so that many operations run.
const N: u32 = 64;

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

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn run(runtime: &Runtime, streams: usize, operations: usize, seed: u64) {
    let mut random = Random(seed);
    let adders: Vec<Adder> =
        (0..runtime.devices().len()).map(|index| Adder::on(runtime.clone(), index)).collect();
    let mut vectors: Vec<(Memory, Vec<f32>, usize)> = Vec::new();
    for index in 0..2 * streams {
        let adder = &adders[index % adders.len()];
        let mut memory = adder.device.allocate(&MemoryRequest::gtt(u64::from(N) * 4)).unwrap();
        let values: Vec<f32> = (0..N).map(|i| (i as usize + index) as f32).collect();
        memory.write(0, &bytes(&values)).unwrap();
        for other in adders.iter().filter(|other| other.device != adder.device) {
            memory.map_on(&other.device).unwrap();
        }
        vectors.push((memory, values, index % streams));
    }
    let mut streams: Vec<_> = (0..streams)
        .map(|index| {
            let adder = &adders[index % adders.len()];
            let kinds = kinds(&adder.device);
            let kind = kinds[random.below(kinds.len())].packets(64).kernarg_bytes(16 << 10);
            (adder.stream(kind), adder)
        })
        .collect();
    let events: Vec<Event> = (0..4).map(|_| Event::new(runtime)).collect();
    let grid = Grid::items([N, 1, 1], [32, 1, 1]);
    for operation in 0..operations {
        let (to, from) = (random.below(vectors.len()), random.below(vectors.len()));
        let owner = vectors[to].2;
        match random.below(16) {
            0..9 => {
                // Add another vector of the same stream, modulo so that sums stay exact.
                if vectors[from].2 != owner || vectors[to].1[0] > 1e6 {
                    continue;
                }
                let (stream, adder) = &mut streams[owner];
                let (a, b) = (&vectors[to].0, &vectors[from].0);
                stream.launch(&adder.vadd, &grid, (a, b, a, N)).unwrap();
                let added = vectors[from].1.clone();
                vectors[to].1.iter_mut().zip(added).for_each(|(to, from)| *to += from);
            }
            9..14 => {
                let new = random.below(streams.len());
                let event = &events[random.below(events.len())];
                streams[owner].0.record(event).unwrap();
                streams[new].0.wait(event).unwrap();
                vectors[to].2 = new;
            }
            14 => {
                let stream = &mut streams[owner].0;
                match random.below(4) {
                    0 => stream.synchronize_within(LONG).unwrap(),
                    1 => stream.host_call(|| {}).unwrap(),
                    _ => drop(stream.query().unwrap()),
                }
            }
            _ => {
                // The host sets it anew, once its owner is done with it.
                streams[owner].0.synchronize_within(LONG).unwrap();
                let values = vec![operation as f32; N as usize];
                vectors[to].0.write(0, &bytes(&values)).unwrap();
                vectors[to].1 = values;
            }
        }
    }
    for (stream, _) in &mut streams {
        stream.synchronize_within(LONG).unwrap();
    }
    for (index, (memory, values, _)) in vectors.iter().enumerate() {
        let mut found = vec![0; 4 * N as usize];
        memory.read(0, &mut found).unwrap();
        assert_eq!(found, bytes(values), "seed {seed}: vector {index}");
    }
}

#[test]
fn streams_of_every_kind_in_random_order_compute_what_the_cpu_does() {
    each_device(|device| {
        let runtime = Runtime::new(device.kfd.clone()).unwrap();
        for seed in 1..4 {
            run(&runtime, 8, 1500, seed);
        }
    });
}

#[test]
fn two_gpus_under_late_and_lost_interrupts_compute_what_the_cpu_does() {
    if on_hardware() {
        return skip("it orders faults that only the software GPU has");
    }
    let plan = Arc::new(FaultPlan::new());
    let model = Model::builder()
        .gpu(Preset::gfx90a())
        .gpu(Preset::gfx1100())
        .fault_plan(Arc::clone(&plan))
        .build();
    let runtime = Runtime::new(kfd::Kfd::open_on(model).unwrap()).unwrap();
    plan.delay_interrupts(Duration::from_millis(3));
    run(&runtime, 8, 1000, 7);
    plan.lose_interrupts(20);
    run(&runtime, 8, 1000, 8);
}
