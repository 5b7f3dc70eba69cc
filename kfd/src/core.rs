//! What every handle shares: the kernel, its files, the address space and the records.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::error::{Error, Object, Result};
use crate::ids::{GpuId, KfdVersion};
use crate::memory::{AddressSpace, Registry};
use crate::report::FaultReport;
use crate::sys::{FileId, Kernel};
use crate::topology::{Node, Topology};

/// Locks a mutex whose data is valid between any two statements, so that a panic elsewhere while it
/// was held does no harm.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Address ranges of a process on a GPU, limits inclusive. Source: docs/ABI.md §Memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Apertures {
    /// Window of flat addresses that reach LDS.
    pub lds: (u64, u64),
    /// Window of flat addresses that reach scratch.
    pub scratch: (u64, u64),
    /// Addresses that memory can be mapped at.
    pub gpuvm: (u64, u64),
}

/// Something that was deliberately not freed, since the device may still use it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Leak {
    /// What.
    pub what: String,
    /// Bytes it holds.
    pub bytes: u64,
    /// Why it could not be freed.
    pub why: Error,
}

/// A usable GPU.
#[derive(Debug)]
pub(crate) struct GpuCore {
    pub node: Node,
    pub render: FileId,
    pub apertures: Apertures,
    /// Whether the VM of the process on this GPU is acquired.
    vm: Mutex<bool>,
    /// Set with `lost`, and cheaper to ask.
    lost_flag: AtomicBool,
    lost: OnceLock<Arc<FaultReport>>,
}

impl GpuCore {
    pub fn new(node: Node, render: FileId, apertures: Apertures) -> Self {
        Self {
            node,
            render,
            apertures,
            vm: Mutex::new(false),
            lost_flag: AtomicBool::new(false),
            lost: OnceLock::new(),
        }
    }

    pub fn id(&self) -> GpuId {
        self.node.gpu_id
    }

    /// Whether the GPU is known to be lost.
    pub fn is_lost(&self) -> bool {
        self.lost_flag.load(Ordering::Acquire)
    }

    /// The first cause, when the GPU is known to be lost.
    pub fn check(&self) -> Result<()> {
        match self.lost.get() {
            Some(report) if self.is_lost() => Err(Error::DeviceLost(Arc::clone(report))),
            _ => Ok(()),
        }
    }

    /// Records a loss; only the first counts.
    pub fn lose(&self, report: impl FnOnce() -> FaultReport) {
        self.lost.get_or_init(|| Arc::new(report()));
        self.lost_flag.store(true, Ordering::Release);
    }

    /// Whether the VM is acquired.
    pub fn has_vm(&self) -> bool {
        *lock(&self.vm)
    }
}

/// Shared by all handles, memory included.
pub(crate) struct Core {
    pub kernel: Arc<dyn Kernel>,
    pub file: FileId,
    pub version: KfdVersion,
    pub topology: Topology,
    pub gpus: Vec<GpuCore>,
    pub space: Arc<AddressSpace>,
    pub registry: Registry,
    leaks: Mutex<Vec<Leak>>,
    /// The process that opened the device.
    owner: u32,
}

impl Core {
    pub fn new(
        kernel: Arc<dyn Kernel>,
        file: FileId,
        version: KfdVersion,
        topology: Topology,
        gpus: Vec<GpuCore>,
    ) -> Self {
        let base = gpus.iter().map(|gpu| gpu.apertures.gpuvm.0).max().unwrap_or(0);
        let limit = gpus.iter().map(|gpu| gpu.apertures.gpuvm.1).min().unwrap_or(u64::MAX);
        let space = Arc::new(AddressSpace::new(Arc::clone(&kernel), (base, limit)));
        Self {
            kernel,
            file,
            version,
            topology,
            gpus,
            space,
            registry: Registry::default(),
            leaks: Mutex::default(),
            owner: std::process::id(),
        }
    }

    /// Whether this process is a child that was forked after the device was opened: it has none of
    /// the device's memory, and nothing it could free is its own.
    pub fn is_inherited(&self) -> bool {
        self.owner != std::process::id()
    }

    /// The GPU at an index that a handle holds.
    pub fn gpu(&self, index: usize) -> Result<&GpuCore> {
        self.gpus.get(index).ok_or(Error::InvalidArgument {
            call: "gpu",
            what: "the index",
            value: index as u64,
        })
    }

    /// Index of a GPU by KFD's id.
    pub fn index_of(&self, id: GpuId) -> Option<usize> {
        self.gpus.iter().position(|gpu| gpu.id() == id)
    }

    /// Acquires the process's VM on a GPU, once. Whether this call did it.
    pub fn acquire_vm(&self, index: usize) -> Result<bool> {
        let gpu = self.gpu(index)?;
        let mut acquired = lock(&gpu.vm);
        if *acquired {
            return Ok(false);
        }
        let mut args = crate::abi::AcquireVmArgs {
            drm_fd: u32::try_from(gpu.render.0).unwrap_or(u32::MAX),
            gpu_id: gpu.id(),
        };
        self.call(&mut args, Object::Gpu(gpu.id()))?;
        *acquired = true;
        Ok(true)
    }

    /// KFD's ids of the GPUs with an acquired VM.
    pub fn acquired(&self) -> Vec<GpuId> {
        self.gpus.iter().filter(|gpu| gpu.has_vm()).map(GpuCore::id).collect()
    }

    /// Fails unless KFD is at least 1.`minor`.
    pub fn require(&self, feature: &'static str, minor: u32) -> Result<()> {
        if self.at_least(minor) {
            return Ok(());
        }
        let needed = KfdVersion { major: 1, minor };
        Err(Error::KfdTooOld { feature, needed, found: self.version })
    }

    /// Whether KFD is at least 1.`minor`.
    pub fn at_least(&self, minor: u32) -> bool {
        self.version >= KfdVersion { major: 1, minor }
    }

    /// Records something that could not be freed.
    pub fn leak(&self, what: String, bytes: u64, why: Error) {
        lock(&self.leaks).push(Leak { what, bytes, why });
    }

    /// What could not be freed so far.
    pub fn leaks(&self) -> Vec<Leak> {
        lock(&self.leaks).clone()
    }
}

impl fmt::Debug for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Core").field("version", &self.version).finish_non_exhaustive()
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        for gpu in &self.gpus {
            self.kernel.close(gpu.render);
        }
        self.kernel.close(self.file);
    }
}
