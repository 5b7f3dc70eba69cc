//! Copies and fills of streams, every byte against a replay on the CPU.

mod engines;
mod faults;
mod host;
mod peers;
mod refusals;
mod replay;

use hip::{CopyEngine, CopyRequest, Device, Memory, Runtime, Stream, StreamRequest};
use kfd::MemoryRequest;

/// Numbers that look random, the same in each run.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Below `end`; 0 for an empty range.
    pub fn below(&mut self, end: u64) -> u64 {
        (self.next() >> 8) % end.max(1)
    }

    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next().to_le_bytes()[3]).collect()
    }
}

pub fn at(offset: u64) -> usize {
    usize::try_from(offset).unwrap()
}

/// The first byte that differs, and how many do.
pub fn difference(found: &[u8], wanted: &[u8]) -> Option<(usize, usize)> {
    assert_eq!(found.len(), wanted.len());
    let differ = |(a, b): (&u8, &u8)| a != b;
    let first = found.iter().zip(wanted).position(differ)?;
    Some((first, found.iter().zip(wanted).filter(|pair| differ(*pair)).count()))
}

/// A runtime on a test's device, and its first GPU.
pub fn open(device: &kfd_tests::Device) -> (Runtime, Device) {
    let runtime = Runtime::new(device.kfd.clone()).unwrap();
    let first = runtime.devices()[0].clone();
    (runtime, first)
}

pub fn request(engine: CopyEngine) -> CopyRequest {
    CopyRequest::new().engine(engine)
}

pub fn stream(device: &Device, copies: CopyRequest) -> Stream {
    Stream::new(device, StreamRequest::aql().copies(copies)).unwrap()
}

/// Host memory that the GPU reaches, with `bytes` in it.
pub fn pinned(device: &Device, bytes: &[u8]) -> Memory {
    let memory = device.allocate(&MemoryRequest::gtt(bytes.len() as u64)).unwrap();
    memory.write(0, bytes).unwrap();
    memory
}

/// The GPU's own memory.
pub fn vram(device: &Device, bytes: u64) -> Memory {
    device.allocate(&MemoryRequest::vram(bytes)).unwrap()
}

pub fn read(memory: &Memory) -> Vec<u8> {
    let mut bytes = vec![0; at(memory.bytes())];
    memory.read(0, &mut bytes).unwrap();
    bytes
}
