//! Queues: doorbells, the runner that moves them, and one packet processor per format.

mod aql;
mod atomic;
mod descriptor;
mod dispatch;
mod error;
mod listener;
mod packet;
mod pm4;
mod runner;
mod sdma;
mod signal;
mod turn;
mod work;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

pub(crate) use runner::Runner;

use crate::exec::{Apertures, Gws, Job, TrapSetup};
use crate::gpu::GpuInfo;
use crate::kernel::Region;
use crate::memory::AddressSpace;
use crate::smi;

/// Content of a doorbell that was not rung since the model last looked: no ring index is it.
pub(crate) const DOORBELL_SILENT: u64 = u64::MAX;

/// Bases and limits of LDS and scratch on gfx9 to gfx12 (docs/ABI.md §Memory).
pub(crate) const APERTURES: Apertures = Apertures {
    lds_base: 0x0001_0000_0000_0000,
    lds_limit: 0x0001_0000_ffff_ffff,
    scratch_base: 0x0002_0000_0000_0000,
    scratch_limit: 0x0002_0000_ffff_ffff,
};

/// What packet processors know of a GPU and a process's part of it.
#[derive(Debug)]
pub(crate) struct Device {
    pub(crate) info: Arc<GpuInfo>,
    pub(crate) space: Arc<AddressSpace>,
    trap: Mutex<Option<TrapSetup>>,
    /// The process's queues on this GPU are evicted for good.
    evicted: AtomicBool,
    /// A debugger has the GPU set up for this process.
    debugged: AtomicBool,
    /// Held by the queue that an SDMA engine executes now: one per engine.
    engines: Vec<Mutex<()>>,
    pub(crate) smi: smi::Clients,
}

impl Device {
    pub(crate) fn new(info: Arc<GpuInfo>) -> Self {
        let engines = info.sdma_engines + info.xgmi_engines;
        Self {
            engines: (0..engines).map(|_| Mutex::default()).collect(),
            info,
            space: Arc::new(AddressSpace::new()),
            trap: Mutex::new(None),
            evicted: AtomicBool::new(false),
            debugged: AtomicBool::new(false),
            smi: smi::Clients::default(),
        }
    }

    /// Installs a second-level trap handler, or removes it.
    pub(crate) fn set_trap_handler(&self, trap: Option<TrapSetup>) {
        *self.trap.lock().unwrap_or_else(PoisonError::into_inner) = trap;
    }

    fn trap_handler(&self) -> Option<TrapSetup> {
        *self.trap.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A debugger sets up the GPU, or leaves it.
    pub(crate) fn set_debugged(&self, debugged: bool) {
        self.debugged.store(debugged, Ordering::Release);
    }

    /// STATUS.TRAP_EN of new waves: where it is off, a debugger turns it on.
    fn traps_enabled(&self) -> bool {
        self.info.traps_enabled() || self.debugged.load(Ordering::Acquire)
    }

    /// The GPU's clock counter, in ticks of the chip's reference clock.
    pub(crate) fn clock(&self) -> u64 {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::MonotonicRaw);
        let nanoseconds = i128::from(now.tv_sec) * 1_000_000_000 + i128::from(now.tv_nsec);
        let ticks = nanoseconds * i128::from(self.info.counter_khz) / 1_000_000;
        u64::try_from(ticks).unwrap_or(0)
    }

    /// Tells SMI clients that the process's queues were evicted.
    pub(crate) fn tell_eviction(&self, trigger: u32) {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let nanoseconds = i128::from(now.tv_sec) * 1_000_000_000 + i128::from(now.tv_nsec);
        let (pid, node) = (std::process::id(), self.info.id);
        let payload = format!("{nanoseconds} -{pid} {node:x} {trigger}");
        self.smi.raise(smi::event::QUEUE_EVICTION, &payload);
    }

    /// Tells SMI clients that pages of an SVM range were taken off the GPU.
    pub(crate) fn tell_svm_unmap(&self, first_page: u64, pages: u64) {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let nanoseconds = i128::from(now.tv_sec) * 1_000_000_000 + i128::from(now.tv_nsec);
        let (pid, node, trigger) = (std::process::id(), self.info.id, smi::UNMAPPED_BY_PROCESS);
        let payload = format!("{nanoseconds} -{pid} @{first_page:x}({pages:x}) {node:x} {trigger}");
        self.smi.raise(smi::event::UNMAP_FROM_GPU, &payload);
    }

    fn is_evicted(&self) -> bool {
        self.evicted.load(Ordering::Acquire)
    }
}

/// Packet format of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// 64-byte packets of the HSA queueing language.
    Aql,
    /// PM4 dwords.
    Pm4,
    /// SDMA dwords.
    Sdma,
}

/// What CREATE_QUEUE fixes for a queue's life.
#[derive(Debug)]
pub(crate) struct Setup {
    pub(crate) id: u32,
    pub(crate) device: Arc<Device>,
    pub(crate) format: Format,
    pub(crate) doorbells: Arc<Region>,
    pub(crate) doorbell: u32,
    pub(crate) read_pointer: u64,
    pub(crate) write_pointer: u64,
    /// Address of the save area; user addresses and GPU addresses are the same here.
    pub(crate) save_area: u64,
    /// Address of the buffer for end-of-pipe events, 0 for none.
    pub(crate) eop: u64,
    /// The XCC that runs a PM4 queue.
    pub(crate) xcc: u32,
    /// The engine of an SDMA queue, all engines counted.
    pub(crate) engine: u32,
}

/// What UPDATE_QUEUE may change.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tunables {
    pub(crate) ring: u64,
    pub(crate) ring_bytes: u64,
    pub(crate) percentage: u32,
    /// 0 to 15: queues of higher priority are looked at first.
    pub(crate) priority: u32,
}

/// A packet that was started and not yet retired.
#[derive(Debug)]
struct Flight {
    index: u64,
    done: bool,
    /// Completion signal, 0 for none.
    signal: u64,
    start: u64,
    /// Timestamps go into the signal.
    profiled: bool,
    job: Option<Job>,
}

/// Why a queue does not go on with its next packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
enum Halt {
    /// It does.
    #[default]
    No,
    /// It asked for scratch through the inactive signal and waits for 0 there.
    Scratch { signal: u64 },
    /// For good: an error, or the end of what the model can do.
    Dead,
}

/// What changes while a queue lives.
#[derive(Debug)]
struct State {
    tunables: Tunables,
    /// Hardware has it: it may fetch.
    mapped: bool,
    /// Taken off hardware by the kernel after a bad packet.
    suspended: bool,
    /// Suspended by the debugger.
    held: bool,
    destroyed: bool,
    halt: Halt,
    /// What is below may be fetched: packets, dwords of PM4, bytes of SDMA.
    fetch_limit: u64,
    /// The next packet, dword or byte.
    next: u64,
    flights: VecDeque<Flight>,
    /// What PM4 packets have started.
    work: work::Work,
    /// Where the queue's PM4 is executed: one for each XCC that does.
    processors: Vec<pm4::Processor>,
    /// The PM4-IB packet that is being carried out: when it started.
    buffer: Option<u64>,
    /// How far the SDMA engine is.
    copier: sdma::Copier,
    /// The read pointer that the driver was told last.
    told: Option<u64>,
    /// A slowed engine starts nothing before.
    not_before: Option<Instant>,
    /// Global wave sync, where the queue owns it.
    gws: Option<Arc<Gws>>,
}

/// A user queue.
#[derive(Debug)]
pub(crate) struct Queue {
    setup: Setup,
    state: Mutex<State>,
    own: Weak<Self>,
}

/// How far a look at a queue led.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Progress {
    /// Nothing to do until the doorbell rings.
    Idle,
    /// Nothing to do until a kernel ends, which is told, or the doorbell rings.
    Running,
    /// Something must be looked at again: a signal, a header.
    Waiting,
    /// Packets moved.
    Moved,
}

impl Queue {
    pub(crate) fn new(setup: Setup, tunables: Tunables) -> Arc<Self> {
        let queue = Arc::new_cyclic(|own| Self {
            own: Weak::clone(own),
            setup,
            state: Mutex::new(State {
                tunables,
                mapped: false,
                suspended: false,
                held: false,
                destroyed: false,
                halt: Halt::No,
                fetch_limit: 0,
                next: 0,
                flights: VecDeque::new(),
                work: work::Work::default(),
                processors: Vec::new(),
                buffer: None,
                copier: sdma::Copier::default(),
                told: None,
                not_before: None,
                gws: None,
            }),
        });
        // Whatever the slot's last owner left there is not a ring of this queue's.
        if let Some(word) = queue.doorbell_word() {
            word.store(DOORBELL_SILENT, Ordering::Release);
        }
        queue
    }

    fn doorbell_word(&self) -> Option<&std::sync::atomic::AtomicU64> {
        self.setup.doorbells.word(usize::try_from(self.setup.doorbell).ok()?)
    }

    /// Takes the doorbell's value, if it was rung.
    fn take_doorbell(&self) -> Option<u64> {
        let word = self.doorbell_word()?;
        if word.load(Ordering::Relaxed) == DOORBELL_SILENT {
            return None;
        }
        let value = word.swap(DOORBELL_SILENT, Ordering::AcqRel);
        (value != DOORBELL_SILENT).then_some(value)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn gpu_id(&self) -> u32 {
        self.setup.device.info.id
    }

    pub(crate) fn device(&self) -> &Arc<Device> {
        &self.setup.device
    }

    /// Gives the queue the GPU's global wave sync resources, or takes them: launches from now on.
    pub(crate) fn set_gws(&self, owns: bool) {
        self.lock().gws = owns.then(|| Arc::new(Gws::default()));
    }

    pub(crate) fn ring_bytes(&self) -> u64 {
        self.lock().tunables.ring_bytes
    }

    pub(crate) fn ring(&self) -> u64 {
        self.lock().tunables.ring
    }

    /// Addresses of the read pointer and the write pointer.
    pub(crate) fn pointers(&self) -> (u64, u64) {
        (self.setup.read_pointer, self.setup.write_pointer)
    }

    /// Place among the queues: higher first.
    fn priority(&self) -> u32 {
        self.lock().tunables.priority
    }

    pub(crate) fn save_area(&self) -> u64 {
        self.setup.save_area
    }

    /// Whether the debugger has it suspended.
    pub(crate) fn is_held(&self) -> bool {
        self.lock().held
    }

    /// Suspends or resumes it for the debugger. Gives the launches to be taken off hardware.
    fn hold(&self, hold: bool) -> Vec<Job> {
        let mut state = self.lock();
        state.held = hold;
        state.leave_hardware()
    }

    /// `QUEUE_IS_ACTIVE`, without the process-wide eviction.
    pub(crate) fn is_active(&self) -> bool {
        let state = self.lock();
        state.wants_hardware()
    }

    /// Replaces what UPDATE_QUEUE replaces. Gives the launches to be taken off hardware.
    fn update(&self, tunables: Tunables) -> Vec<Job> {
        let mut state = self.lock();
        state.tunables = tunables;
        state.leave_hardware()
    }
}

impl State {
    fn wants_hardware(&self) -> bool {
        let t = &self.tunables;
        let stopped = self.suspended || self.held || self.destroyed;
        t.ring != 0 && t.ring_bytes != 0 && t.percentage > 0 && !stopped
    }

    /// The launches to be taken off hardware, if the queue no longer wants it.
    fn leave_hardware(&mut self) -> Vec<Job> {
        if self.wants_hardware() {
            return Vec::new();
        }
        self.mapped = false;
        self.jobs().cloned().collect()
    }

    /// The launches that have not ended.
    fn jobs(&self) -> impl Iterator<Item = &Job> {
        self.flights.iter().filter_map(|flight| flight.job.as_ref()).chain(self.work.jobs())
    }

    /// Forgets everything that was started; gives the launches that may still run.
    fn abandon(&mut self) -> Vec<Job> {
        let jobs = self.jobs().cloned().collect();
        self.flights.clear();
        self.work = work::Work::default();
        self.processors.clear();
        self.buffer = None;
        self.copier = sdma::Copier::default();
        jobs
    }

    fn packets(&self) -> u64 {
        self.tunables.ring_bytes / 64
    }

    /// Address of the slot of packet `index`.
    fn slot(&self, index: u64) -> u64 {
        self.tunables.ring + (index & self.packets().saturating_sub(1)) * 64
    }
}
