//! What an instruction can reach besides its wave.

use std::sync::atomic::AtomicU64;

use super::code::CodeCache;
use super::gws::Gws;
use super::launch::{Apertures, MemoryFault, TrapSetup};
use super::lds::Lds;
use crate::Target;
use crate::memory::{AccessError, View};

/// What stays the same for all waves of a launch.
#[derive(Clone, Copy, Debug)]
pub struct Env {
    /// Target of the GPU.
    pub target: Target,
    /// First scalar register of FLAT_SCRATCH (canonical number).
    pub flat_scratch: u8,
    /// Scratch bytes a lane may touch.
    pub private_bytes: u32,
    /// Flat apertures.
    pub apertures: Apertures,
    /// Second-level trap handler.
    pub trap: Option<TrapSetup>,
    /// Doorbell id of the queue.
    pub doorbell_id: u32,
}

/// Why an instruction did not finish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The page table does not allow the access: the process is done on this GPU.
    Fault(MemoryFault),
    /// Misaligned atomic or scratch overflow at an address: an exception of the wave.
    Violation(u64),
    /// No such instruction, no semantics, or a register beyond the allocation.
    Illegal,
    /// None: the wave waits, and executes the instruction again when it had a rest.
    Wait,
}

impl From<MemoryFault> for Trouble {
    fn from(fault: MemoryFault) -> Self {
        Self::Fault(fault)
    }
}

impl From<AccessError> for Trouble {
    fn from(error: AccessError) -> Self {
        match error {
            AccessError::Fault(fault) => Self::Fault(fault),
            AccessError::Misaligned { address } => Self::Violation(address),
        }
    }
}

/// What a running wave uses: memory, its workgroup's LDS, decoded code.
#[derive(Debug)]
pub struct Context<'a> {
    /// The launch.
    pub env: &'a Env,
    /// GPU memory; locked for the slice.
    pub view: View<'a>,
    /// LDS of the workgroup that runs.
    pub lds: Lds,
    /// Decoded code of this worker.
    pub cache: &'a mut CodeCache,
    /// Index of the instruction being executed: a key for the memory view's range cache.
    pub slot: usize,
    /// Interrupts sent: M0\[23:0\], and whether the wave was privileged. Delivered after the slice.
    pub interrupts: Vec<(u32, bool)>,
    /// Global wave sync resources, where the queue owns them.
    pub gws: Option<&'a Gws>,
    /// Instruction-cache invalidations of the engine so far.
    pub acquires: &'a AtomicU64,
}
