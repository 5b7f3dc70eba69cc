//! What a packet processor asks for, and what it learns.

use std::sync::Arc;

use super::gws::Gws;
use super::observe::FindingKind;
use crate::Target;
use crate::memory::AddressSpace;

/// Bases of the LDS and scratch windows in the flat address space, as KFD reports them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Apertures {
    /// First address of the LDS window.
    pub lds_base: u64,
    /// Last address of the LDS window.
    pub lds_limit: u64,
    /// First address of the scratch window.
    pub scratch_base: u64,
    /// Last address of the scratch window.
    pub scratch_limit: u64,
}

/// Scratch as COMPUTE_TMPRING_SIZE and the queue describe it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ScratchSetup {
    /// GPU address of the buffer; 0 when the queue has none.
    pub base: u64,
    /// Bytes of one wave's slot.
    pub wave_bytes: u64,
    /// Slots of an XCC: waves that may be resident there with scratch at once.
    pub waves: u32,
    /// Bytes from one XCC's share of the buffer to the next one's.
    pub xcc_bytes: u64,
    /// The buffer descriptor for user SGPRs (gfx900 to gfx90a).
    pub resource: [u32; 4],
}

/// A second-level trap handler, as SET_TRAP_HANDLER installed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrapSetup {
    /// Code address.
    pub tba: u64,
    /// Data address, given to the handler in ttmp14:15.
    pub tma: u64,
}

/// Which part of a grid a launch runs, and where. The default: all of it, from XCC 0 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Part {
    /// Workgroup ids below these do not run.
    pub start: [u32; 3],
    /// Only the workgroups that fall to this one of [`Launch::xccs`].
    pub only: Option<u32>,
    /// Number of the first XCC, as waves read it.
    pub first_xcc: u32,
}

/// One dispatch, complete: descriptor, packet and queue state already combined.
#[derive(Clone, Debug)]
pub struct Launch {
    /// Target of the GPU.
    pub target: Target,
    /// Memory of the process on this GPU.
    pub memory: Arc<AddressSpace>,
    /// First instruction (the preload entry when preloading).
    pub entry: u64,
    /// COMPUTE_PGM_RSRC1.
    pub rsrc1: u32,
    /// COMPUTE_PGM_RSRC2.
    pub rsrc2: u32,
    /// COMPUTE_PGM_RSRC3.
    pub rsrc3: u32,
    /// Wave size: 32 or 64.
    pub wave_size: u32,
    /// User SGPRs, in order, at most 16.
    pub user_sgprs: Vec<u32>,
    /// Grid in work-items.
    pub grid: [u32; 3],
    /// Workgroup in work-items.
    pub group: [u32; 3],
    /// LDS bytes of a group, static and dynamic.
    pub lds_bytes: u32,
    /// Scratch bytes of a work-item.
    pub private_bytes: u32,
    /// XCCs that share the workgroups: number `n` runs on XCC `n` modulo this, at least 1.
    pub xccs: u32,
    /// What of the grid runs.
    pub part: Part,
    /// Scratch of the queue.
    pub scratch: ScratchSetup,
    /// Flat apertures.
    pub apertures: Apertures,
    /// Second-level trap handler, if one is installed.
    pub trap: Option<TrapSetup>,
    /// STATUS.TRAP_EN. Without it waves run with PRIV=1 and enter no handler, as on gfx1100 to
    /// gfx1103 under kernel 6.12 while no debugger is attached.
    pub trap_enabled: bool,
    /// Index of the dispatch packet in its queue, for ttmp and messages.
    pub dispatch_index: u64,
    /// Global wave sync resources, if the queue owns them.
    pub gws: Option<Arc<Gws>>,
    /// Doorbell id of the queue (10 bits), which s_sendmsg GET_DOORBELL and trap handlers report.
    pub doorbell_id: u32,
}

/// An access that the GPU page table does not allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryFault {
    /// Address, in bytes, not rounded.
    pub address: u64,
    /// The access was a store or an atomic.
    pub write: bool,
    /// The access was an instruction fetch.
    pub fetch: bool,
    /// Nothing is mapped there. Otherwise permissions forbid the access.
    pub not_present: bool,
}

/// How a launch ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Every wave ended.
    Completed,
    /// It was cancelled (its queue was destroyed or evicted). Also follows a memory fault.
    Cancelled,
}

/// What the engine tells the packet processor, from worker threads.
pub trait Listener: Send + Sync {
    /// All waves ended or were cancelled. Memory effects are visible to the caller.
    fn finished(&self, outcome: Outcome);

    /// A wave touched memory it must not. Called once per launch; the launch then stops where it
    /// is and waits to be cancelled, as hardware does.
    fn memory_fault(&self, fault: MemoryFault);

    /// `s_sendmsg MSG_INTERRUPT`: `data` is `M0[23:0]`; `privileged` is STATUS.PRIV of the wave.
    fn interrupt(&self, data: u32, privileged: bool);

    /// What the model knows and hardware would not tell: an opcode without semantics, a halted
    /// wave, an exceeded budget. For the model's own user, never for the driver.
    fn diagnosis(&self, diagnosis: &Diagnosis) {
        let _ = diagnosis;
    }
}

/// Why the model reports a wave on its own channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The words decode to nothing, or to an operation without semantics. On hardware, or in a
    /// model with an installed trap handler, an illegal-instruction exception.
    Illegal,
    /// A misaligned atomic, a scratch overflow or an aperture violation: a memory-violation
    /// exception of the wave.
    MemoryViolation {
        /// Address the wave used, in bytes.
        address: u64,
    },
    /// The wave halted itself (s_sethalt, or an exception without a handler).
    Halted,
    /// The launch is over a limit of the watchdog, and its waves still get somewhere.
    Budget,
    /// Every wave that is left waits: at a barrier that others do not reach, halted, at a global wave
    /// sync resource, or asleep between looks at memory that nobody changes.
    Deadlock,
    /// Waves execute and come to the same state again without having changed memory.
    Livelock,
    /// Watching found something wrong: [`crate::exec::observe`].
    Finding(FindingKind),
    /// The executor itself failed; the launch was cancelled.
    Internal,
}

/// A report about one wave, for the model's user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnosis {
    /// Why.
    pub cause: Cause,
    /// Target of the code.
    pub target: Target,
    /// Address of the instruction.
    pub pc: u64,
    /// Entry of the kernel.
    pub entry: u64,
    /// Raw words at `pc`, as far as they could be read.
    pub words: Vec<u32>,
    /// Workgroup of the wave.
    pub group: [u32; 3],
    /// Number of the wave in its workgroup.
    pub wave: u32,
    /// EXEC of the wave.
    pub exec: u64,
    /// One line for people.
    pub text: String,
}
