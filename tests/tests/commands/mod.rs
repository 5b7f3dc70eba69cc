//! Command buffers: what they compute, in flight and changed, and what is refused.

mod flight;
mod kinds;
mod refused;
mod replay;

use std::time::Duration;

use hip::{
    CommandBuffer, CommandKind, CommandRecorder, CommandRequest, Grid, KernelId, Memory,
    StreamRequest,
};
use kfd::MemoryRequest;

use crate::streams::{Adder, kinds};

pub const LONG: Duration = Duration::from_secs(60);

/// Elements of a vector: few, so that many kernels run.
pub const N: u32 = 64;

pub fn grid() -> Grid {
    Grid::items([N, 1, 1], [32, 1, 1])
}

/// A vector of floats.
pub fn vector(adder: &Adder, value: impl Fn(u32) -> f32) -> Memory {
    let memory = adder.device.allocate(&MemoryRequest::gtt(u64::from(N) * 4)).unwrap();
    let bytes: Vec<u8> = (0..N).flat_map(|i| value(i).to_le_bytes()).collect();
    memory.write(0, &bytes).unwrap();
    memory
}

pub fn values(memory: &Memory) -> Vec<f32> {
    let mut bytes = vec![0; 4 * N as usize];
    memory.read(0, &mut bytes).unwrap();
    bytes.as_chunks().0.iter().map(|value| f32::from_le_bytes(*value)).collect()
}

/// Each kind of stream with each kind of command buffer that it takes.
pub fn pairs(adder: &Adder) -> Vec<(StreamRequest, CommandRequest)> {
    let packets = CommandRequest::new().kind(CommandKind::Packets);
    let mut pairs = Vec::new();
    for (index, stream) in kinds(&adder.device).into_iter().enumerate() {
        pairs.push((stream, CommandRequest::new()));
        // The last is PM4.
        if index < 2 {
            pairs.push((stream, packets));
        }
    }
    pairs
}

/// `count` times `sum = sum + one`.
pub fn counter(
    adder: &Adder,
    request: CommandRequest,
    count: usize,
    sum: &Memory,
    one: &Memory,
) -> (CommandBuffer, Vec<KernelId>) {
    let mut recorder = CommandRecorder::new(&adder.device, request).unwrap();
    let mut add = || recorder.kernel(&adder.vadd, &grid(), (sum, one, sum, N)).unwrap();
    let ids = (0..count).map(|_| add()).collect();
    (recorder.finish().unwrap(), ids)
}
