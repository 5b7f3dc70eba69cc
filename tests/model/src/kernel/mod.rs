//! The model as a [`Kernel`](kfd::sys::Kernel): files, ioctls, mappings.

mod arena;
mod debug;
mod drm;
mod files;
mod host;
mod imp;
mod ioctl;
mod mapping;
mod paths;
mod process;
mod svm;
#[cfg(test)]
mod tests;
pub(crate) mod user;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kfd::GpuId;
use kfd::abi::{HsaHwExceptionData, ResetCause, ResetType};
use kfd::sys::Errno;

pub(crate) use arena::{Arena, Region};
pub(crate) use debug::Debug;
use files::Files;
pub use host::{Descriptors, FileKind, Node, Plan, text_descriptor};
use mapping::Mappings;
use process::{FIRST_MMAP_OFFSET, Process, ProcessDevice};

use crate::builder::{Builder, Config};
use crate::diagnostics::{Diagnostic, Diagnostics};
use crate::event::Events;
use crate::exec::observe::Report;
use crate::fault::FaultPlan;
use crate::gpu::GpuInfo;
use crate::profile::Profile;
use crate::queue::Runner;
use crate::smi;
use crate::sysfs::{Topology, Tree, render};

/// Device numbers that KFD and DRM have here. KFD's major number is dynamic on real kernels.
const KFD_MAJOR: u32 = 242;
const DRM_MAJOR: u32 = 226;

/// What changes under one lock, as `kfd_process::mutex` has it.
#[derive(Debug, Default)]
struct State {
    files: Files,
    processes: BTreeMap<u32, Process>,
    mappings: Mappings,
}

/// What this process holds in the model's kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Live {
    /// Buffer objects. The event page stays until the process ends.
    pub buffers: usize,
    /// Mappings of buffers on GPUs.
    pub mappings: usize,
    /// Queues.
    pub queues: usize,
    /// Ranges of shared virtual memory.
    pub svm_ranges: usize,
}

/// A software KFD with GPUs.
///
/// It serves any number of threads. Its state is tied to the operating-system process, as KFD's is
/// to an address space: a forked child starts anew when it opens `/dev/kfd`.
pub struct Model {
    config: Config,
    gpus: Vec<Arc<GpuInfo>>,
    tree: Tree,
    /// The memory file where descriptors are real: render nodes need it before KFD was opened.
    arena: Option<Arc<Arena>>,
    state: Mutex<State>,
    counters: [AtomicU64; 256],
    diagnostics: Arc<Diagnostics>,
}

impl Model {
    /// A model to be configured.
    pub fn builder() -> Builder {
        Builder::default()
    }

    pub(crate) fn new(mut config: Config, topology: &Topology) -> Arc<Self> {
        config.topology_nodes = u32::try_from(topology.nodes.len()).unwrap_or(u32::MAX);
        let banks = topology.nodes.iter().flat_map(|node| &node.mem_banks);
        let system = banks.filter(|bank| bank.get("heap_type") == Some(0));
        config.system_bytes = system.filter_map(|bank| bank.get("size_in_bytes")).sum();
        let nodes = topology.nodes.iter().enumerate();
        let mut gpus: Vec<_> = nodes.filter_map(|(i, node)| GpuInfo::new(i, node)).collect();
        if !config.profile.publishes_save_sizes() {
            gpus = gpus.into_iter().map(GpuInfo::with_older_save_area).collect();
        }
        for (index, gpu) in gpus.iter_mut().enumerate() {
            gpu.hidden = config.hidden.contains(&index);
            gpu.unified &= config.profile.unifies_apu_memory();
        }
        let arena = config.descriptors.map(|offsets| Arena::for_descriptors(offsets).ok());
        let tree = render(topology, &gpus, KFD_MAJOR);
        Arc::new(Self {
            config,
            gpus: gpus.into_iter().map(Arc::new).collect(),
            tree,
            arena: arena.flatten(),
            state: Mutex::default(),
            counters: std::array::from_fn(|_| AtomicU64::new(0)),
            diagnostics: Arc::new(Diagnostics::default()),
        })
    }

    /// The kernel it imitates.
    pub fn profile(&self) -> Profile {
        self.config.profile
    }

    /// What goes wrong on order; may be changed at any time.
    pub fn faults(&self) -> &FaultPlan {
        &self.config.faults
    }

    /// How often ioctl `number` was called, unknown numbers included.
    pub fn ioctl_count(&self, number: u8) -> u64 {
        self.counters.get(usize::from(number)).map_or(0, |count| count.load(Ordering::Relaxed))
    }

    /// What this process holds: a driver that has closed everything holds the event page at most.
    pub fn live(&self) -> Live {
        let state = self.lock();
        let Some(process) = state.processes.get(&std::process::id()) else {
            return Live::default();
        };
        Live {
            buffers: process.devices.iter().map(|device| device.buffers.len()).sum(),
            mappings: process.devices.iter().map(|device| device.mappings.len()).sum(),
            queues: process.queues.len(),
            svm_ranges: process.svm.len(),
        }
    }

    /// What the model has to say to its user: unknown opcodes and packets, stopped queues, faults.
    /// The driver cannot see it.
    pub fn diagnostics(&self) -> Vec<Diagnostic> {
        self.diagnostics.all()
    }

    /// How often the model refused what the kernel that it imitates would have done; each time the
    /// diagnostics say what.
    pub fn unmodelled(&self) -> u64 {
        self.diagnostics.unmodelled()
    }

    /// What watching showed so far: [`Builder::watch`]. `None` where nothing is watched.
    pub fn report(&self) -> Option<Report> {
        self.config.observer.as_ref().map(|observer| observer.report())
    }

    /// Lets the GPUs of a stepped model advance a little. True while there is more to do.
    pub fn step(&self) -> bool {
        let runner = self.lock().processes.get(&std::process::id()).map(|p| Arc::clone(&p.runner));
        runner.is_some_and(|runner| runner.step())
    }

    /// How often the doorbells of this process's queues were looked at.
    #[cfg(test)]
    pub(crate) fn looks(&self) -> u64 {
        let state = self.lock();
        state.processes.get(&std::process::id()).map_or(0, |process| process.runner.looks())
    }

    /// Resets the GPU with this index, as after a hang: its memory and all queues are lost, and
    /// every hardware exception event fires.
    pub fn reset_gpu(&self, index: usize) {
        let state = self.lock();
        let Some(process) = state.processes.get(&std::process::id()) else { return };
        let Some(device) = process.devices.iter().find(|device| device.gpu == index) else {
            return;
        };
        let device = &device.device;
        device.smi.raise(smi::event::GPU_PRE_RESET, "1 ordered");
        process.runner.evict(device);
        process.events.hardware_exception(HsaHwExceptionData {
            reset_type: ResetType::WHOLE_GPU,
            reset_cause: ResetCause::GPU_HANG,
            memory_lost: 1,
            gpu_id: GpuId(device.info.id),
        });
        device.smi.raise(smi::event::GPU_POST_RESET, "1 ordered");
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `kfd_create_process`: the process's state, made on first open.
    fn create_process<'a>(&self, state: &'a mut State) -> Result<&'a mut Process, Errno> {
        let pid = std::process::id();
        let entry = state.processes.entry(pid);
        match entry {
            std::collections::btree_map::Entry::Occupied(entry) => Ok(entry.into_mut()),
            std::collections::btree_map::Entry::Vacant(entry) => {
                let arena = match &self.arena {
                    Some(arena) => Arc::clone(arena),
                    None => Arena::new().map_err(|_| Errno::NOMEM)?,
                };
                let events = Arc::new(Events::new(self.config.profile.has_event_age()));
                let debug = Arc::new(Debug::default());
                let runner = Runner::new(
                    self.config.stepped,
                    self.config.profile.suspends_bad_queues(),
                    self.config.workers,
                    Arc::clone(&events),
                    Arc::clone(&debug),
                    Arc::clone(&self.diagnostics),
                    Arc::clone(&self.config.faults),
                    self.config.observer.clone(),
                    self.config.watchdog,
                );
                // What cannot be mapped at a plain offset gets one that no region has.
                let next_mmap_offset = if arena.is_plain() { 1 << 52 } else { FIRST_MMAP_OFFSET };
                let visible = self.gpus.iter().enumerate().filter(|(_, gpu)| !gpu.hidden);
                Ok(entry.insert(Process {
                    pid,
                    arena,
                    devices: visible.map(|(i, info)| ProcessDevice::new(i, info)).collect(),
                    queues: BTreeMap::new(),
                    next_queue: 0,
                    svm: svm::Ranges::default(),
                    debug,
                    events,
                    runner,
                    next_mmap_offset,
                }))
            }
        }
    }
}

impl Drop for Model {
    /// The process's exit: queues are torn down before their memory goes.
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        for (pid, process) in std::mem::take(&mut state.processes) {
            if pid != std::process::id() {
                // A forked child holds a copy whose threads exist in the parent only.
                std::mem::forget(process);
                continue;
            }
            for record in process.queues.values() {
                process.runner.remove(&record.queue);
            }
            process.runner.shut_down();
        }
    }
}

impl fmt::Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let targets: Vec<_> = self.gpus.iter().map(|gpu| gpu.target).collect();
        f.debug_struct("Model")
            .field("profile", &self.config.profile)
            .field("gpus", &targets)
            .finish_non_exhaustive()
    }
}
