//! Streams: launches, order, refusals, waits.

mod events;
mod host;
mod launch;
mod lost;
mod programs;
mod stress;

use hip::{Device, Function, Memory, Module, Runtime, Stream, StreamRequest};
use kfd::MemoryRequest;

/// Code of a program in the fixtures.
pub fn code(target: &str, program: &str) -> Vec<u8> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/code-objects");
    std::fs::read(format!("{folder}/{program}.{target}.v5.co")).unwrap()
}

/// Streams of every kind that the device has: a queue of its own, a shared one, a PM4 queue.
pub fn kinds(device: &Device) -> Vec<StreamRequest> {
    let mut kinds = vec![StreamRequest::aql(), StreamRequest::aql().share()];
    if device.gpu().node().num_xcc() == 1 {
        kinds.push(StreamRequest::pm4());
    }
    kinds
}

/// A stream with `vadd`, and three vectors.
pub struct Adder {
    pub runtime: Runtime,
    pub device: Device,
    pub vadd: Function,
    pub vectors: [Memory; 3],
}

pub const N: u32 = 1000;

impl Adder {
    pub fn new(device: &kfd_tests::Device) -> Self {
        Self::on(Runtime::new(device.kfd.clone()).unwrap(), 0)
    }

    pub fn on(runtime: Runtime, index: usize) -> Self {
        let device = runtime.devices()[index].clone();
        let target = device.gpu().gfx_version().to_string();
        let module = Module::load(&device, &code(&target, "vadd")).unwrap();
        let vadd = module.function("vadd").unwrap();
        let vector = |_| device.allocate(&MemoryRequest::gtt(u64::from(N) * 4)).unwrap();
        let vectors = [0, 1, 2].map(vector);
        Self { vectors, vadd, device, runtime }
    }

    pub fn stream(&self, request: StreamRequest) -> Stream {
        Stream::new(&self.device, request).unwrap()
    }

    pub fn set(&self, vector: usize, value: impl Fn(u32) -> f32) {
        let bytes: Vec<u8> = (0..N).flat_map(|i| value(i).to_le_bytes()).collect();
        self.vectors[vector].write(0, &bytes).unwrap();
    }

    pub fn get(&self, vector: usize) -> Vec<f32> {
        let mut bytes = vec![0; 4 * N as usize];
        self.vectors[vector].read(0, &mut bytes).unwrap();
        bytes.as_chunks().0.iter().map(|value| f32::from_le_bytes(*value)).collect()
    }

    /// Submits `to = a + b`.
    pub fn add(&self, stream: &mut Stream, to: usize, a: usize, b: usize) {
        let [a, b, to] = [a, b, to].map(|vector| &self.vectors[vector]);
        let grid = hip::Grid::items([N, 1, 1], [64, 1, 1]);
        stream.launch(&self.vadd, &grid, (a, b, to, N)).unwrap();
    }
}
