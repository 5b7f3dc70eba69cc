//! Memory, and what the CPU has in its place.

use std::sync::Arc;

use hip::{Memory, Place};
use kfd::MemoryRequest;

use super::super::Adder;

/// Bytes of a piece: few, so that many operations run.
pub const BYTES: usize = 1024;

pub struct Piece {
    pub memory: Arc<Memory>,
    pub shadow: Vec<u8>,
    pub owner: usize,
    /// It holds numbers that are not negative, for kernels; otherwise bytes of any kind.
    pub is_numbers: bool,
    /// The host can read and write it in place.
    pub is_host: bool,
    /// A command buffer names it.
    pub is_fixed: bool,
}

impl Piece {
    /// The kind follows from `index`: memory of the host and of each device.
    pub fn new(adders: &[Adder], device: usize, index: usize, owner: usize) -> Self {
        let bytes = BYTES as u64;
        let adder = &adders[device];
        let others = || adders.iter().filter(|other| other.device != adder.device);
        let of = |request: MemoryRequest| {
            let mut memory = adder.device.allocate(&request).unwrap();
            others().try_for_each(|other| memory.map_on(&other.device)).ok()?;
            Some(memory)
        };
        // VRAM that the other device does not reach is no use here.
        let (memory, is_host) = match index / 2 % 3 {
            0 => (of(MemoryRequest::vram(bytes)), false),
            1 => (of(MemoryRequest::userptr(bytes)), true),
            _ => (None, true),
        };
        let is_host = is_host || memory.is_none();
        let memory = memory.or_else(|| of(MemoryRequest::gtt(bytes))).unwrap();
        let is_numbers = index % 4 != 3;
        let memory = Arc::new(memory);
        Self { memory, shadow: vec![0; BYTES], owner, is_numbers, is_host, is_fixed: false }
    }

    pub fn at(&self, offset: usize) -> Place<'_> {
        self.memory.at(offset as u64)
    }

    /// As an argument.
    pub fn pointer(&self, offset: usize) -> u64 {
        self.memory.addr().get() + offset as u64
    }

    /// Bytes that any offset in it is a multiple of.
    pub fn unit(&self) -> usize {
        if self.is_numbers { 4 } else { 1 }
    }

    pub fn number(&self, offset: usize) -> f32 {
        f32::from_le_bytes(self.shadow[offset..offset + 4].try_into().unwrap())
    }

    pub fn store(&mut self, offset: usize, bytes: &[u8]) {
        self.shadow[offset..offset + bytes.len()].copy_from_slice(bytes);
    }
}
