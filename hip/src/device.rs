//! [`Runtime`] and [`Device`]: the GPUs of this process, and what all streams share.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use hsaco::DeviceTarget;
use kfd::{Gpu, GpuId, KernelLabel, Kfd, MemoryRequest};

use crate::copy::Blit;
use crate::error::{Error, Result};
use crate::event::{Clock, Slots};
use crate::host::HostThread;
use crate::memory::Memory;
use crate::stream::{Invalidation, Rings, StreamShared};
use crate::sync::lock;

/// What every device of a runtime shares.
#[derive(Debug)]
pub(crate) struct Shared {
    pub kfd: Kfd,
    /// Counts the moments at which the host looked at, or changed, what devices see: after each, the
    /// first packet of a stream acquires at system scope.
    epoch: AtomicU64,
    /// Counts loads of code.
    code: AtomicU64,
    /// Counts kernels.
    kernels: AtomicU64,
    pub slots: Slots,
    /// Numbers of kernels' names, for reports: kept for ever, so each name has one.
    labels: Mutex<BTreeMap<Arc<str>, KernelLabel>>,
    pub host: HostThread,
    /// In a forked child the device's memory is not there.
    owner: u32,
}

impl Shared {
    /// The number of times that the host has looked.
    #[inline]
    pub fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// Whether this is a child that was forked from the process that the runtime belongs to.
    pub fn is_inherited(&self) -> bool {
        self.owner != std::process::id()
    }

    /// A number for a kernel, from 1.
    pub fn next_id(&self) -> u64 {
        self.kernels.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The number of a kernel's name.
    pub fn label(&self, name: &Arc<str>) -> KernelLabel {
        let mut labels = lock(&self.labels);
        match labels.get(name) {
            Some(label) => *label,
            None => {
                let label = self.kfd.register_kernel(name);
                labels.insert(Arc::clone(name), label);
                label
            }
        }
    }

    /// The number of times that code was loaded. Read after [`Self::epoch`] has changed.
    pub fn code(&self) -> u64 {
        self.code.load(Ordering::Acquire)
    }

    /// Code was loaded: instruction caches have to be invalidated before it is launched.
    pub fn code_changed(&self) {
        self.code.fetch_add(1, Ordering::Release);
        self.epoch.fetch_add(1, Ordering::Release);
    }

    /// The host has looked at memory, or changed it, in a way that streams have to know of.
    pub fn host_looked(&self) {
        self.epoch.fetch_add(1, Ordering::Relaxed);
    }
}

/// One GPU.
#[derive(Debug)]
pub(crate) struct DeviceCore {
    pub shared: Arc<Shared>,
    /// Place among the runtime's devices.
    pub index: u32,
    pub gpu: Gpu,
    pub target: DeviceTarget,
    /// For PM4 streams; `None` for a GPU whose packets this version does not know.
    pub pm4: Option<pm4::Target>,
    /// LDS of a group at most, bytes.
    pub max_lds_bytes: u32,
    pub clock: Clock,
    pub rings: Rings,
    /// The blit kernels, once a stream has needed them, while one still does.
    pub blit: Mutex<Weak<Blit>>,
    pub invalidation: Invalidation,
    #[cfg(feature = "services")]
    pub services: crate::services::Slot,
    /// Live streams, for whoever has to know that nothing runs any more.
    streams: Mutex<Vec<Weak<StreamShared>>>,
}

impl DeviceCore {
    pub fn add_stream(&self, stream: &Arc<StreamShared>) {
        let mut streams = lock(&self.streams);
        streams.retain(|stream| stream.strong_count() > 0);
        streams.push(Arc::downgrade(stream));
    }

    /// Streams that exist.
    pub fn streams(&self) -> Vec<Arc<StreamShared>> {
        lock(&self.streams).iter().filter_map(Weak::upgrade).collect()
    }
}

/// The GPUs of this process. Cheap to clone; clones are the same. `Send` and `Sync`.
///
/// It starts no thread, unless a stream is given a host function to call.
#[derive(Clone, Debug)]
pub struct Runtime {
    shared: Arc<Shared>,
    devices: Arc<[Device]>,
}

impl Runtime {
    /// Opens the compute device of this machine.
    ///
    /// # Errors
    /// As [`Kfd::open`]; [`Error::UnknownDevice`] is no reason: a GPU that code objects cannot name is
    /// left out.
    pub fn open() -> Result<Self> {
        Self::new(Kfd::open()?)
    }

    /// Uses a device that is open already: one process opens KFD once.
    ///
    /// # Errors
    /// [`Error::Driver`] when KFD does not tell the XNACK mode.
    pub fn new(kfd: Kfd) -> Result<Self> {
        let xnack = kfd.xnack_enabled()?;
        let gpus = kfd.gpus();
        let shared = Arc::new(Shared {
            slots: Slots::new(),
            labels: Mutex::default(),
            host: HostThread::new(),
            owner: std::process::id(),
            epoch: AtomicU64::new(1),
            code: AtomicU64::new(0),
            kernels: AtomicU64::new(0),
            kfd,
        });
        let mut index = 0;
        let device = |gpu: Gpu| {
            let version = gpu.gfx_version().target_version();
            let target = DeviceTarget::new(version, gpu.has_sram_ecc(), xnack).ok()?;
            let lds = gpu.node().properties.lds_size_in_kb.filter(|kib| *kib > 0).unwrap_or(64);
            index += 1;
            Some(Device {
                core: Arc::new(DeviceCore {
                    shared: Arc::clone(&shared),
                    index: index - 1,
                    target,
                    pm4: pm4::Target::from_version(version),
                    max_lds_bytes: lds.saturating_mul(1024),
                    clock: Clock::default(),
                    rings: Rings::new(gpu.node().properties.num_cp_queues),
                    invalidation: Invalidation::default(),
                    #[cfg(feature = "services")]
                    services: crate::services::Slot::default(),
                    blit: Mutex::default(),
                    streams: Mutex::default(),
                    gpu,
                }),
            })
        };
        let devices: Vec<Device> = gpus.into_iter().filter_map(device).collect();
        Ok(Self { shared, devices: devices.into() })
    }

    /// The GPUs, in KFD's order.
    pub fn devices(&self) -> &[Device] {
        &self.devices
    }

    /// The driver below.
    pub fn kfd(&self) -> &Kfd {
        &self.shared.kfd
    }

    /// What an event needs of it.
    pub(crate) fn parts(&self) -> (Arc<Shared>, Arc<[Device]>) {
        (Arc::clone(&self.shared), Arc::clone(&self.devices))
    }

    /// Whether the thread that calls host functions has been started.
    pub fn has_thread(&self) -> bool {
        self.shared.host.is_started()
    }
}

/// One GPU of a [`Runtime`]. Cheap to clone; clones are the same GPU. `Send` and `Sync`.
#[derive(Clone, Debug)]
pub struct Device {
    pub(crate) core: Arc<DeviceCore>,
}

impl Device {
    /// KFD's id.
    pub fn id(&self) -> GpuId {
        self.core.gpu.id()
    }

    /// The driver's GPU.
    pub fn gpu(&self) -> &Gpu {
        &self.core.gpu
    }

    /// What code for it is compiled for.
    pub fn target(&self) -> DeviceTarget {
        self.core.target
    }

    /// LDS that a group can have, bytes.
    pub fn max_lds_bytes(&self) -> u32 {
        self.core.max_lds_bytes
    }

    /// Allocates memory and maps it on this GPU.
    ///
    /// # Errors
    /// As [`Gpu::allocate`].
    pub fn allocate(&self, request: &MemoryRequest) -> Result<Memory> {
        Memory::new(&self.core, request)
    }

    /// Streams that get a hardware queue each, at most; later ones share a few. By default so many as
    /// the GPU runs at once.
    pub fn limit_own_queues(&self, streams: usize) {
        self.core.rings.limit(streams);
    }

    /// Waits until everything that was submitted to its streams so far is done.
    ///
    /// # Errors
    /// As [`Stream::synchronize`](crate::Stream::synchronize), for the first stream that fails; the
    /// others have been waited for, too.
    pub fn synchronize(&self) -> Result<()> {
        let mut result = Ok(());
        for stream in self.core.streams() {
            let waited = stream.wait_idle(std::time::Duration::MAX);
            result = result.and(waited);
        }
        result
    }

    /// Makes stores of the CPU to VRAM visible to the GPU, as
    /// [`Gpu::flush_hdp`]. Memory that is not VRAM never needs it.
    ///
    /// # Errors
    /// As [`Gpu::flush_hdp`].
    pub fn flush_host_writes(&self) -> Result<()> {
        self.core.gpu.flush_hdp()?;
        self.core.shared.host_looked();
        Ok(())
    }
}

impl PartialEq for Device {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.core, &other.core)
    }
}

impl Eq for Device {}

/// Refuses an object of another device.
pub(crate) fn same_device(
    expected: &Arc<DeviceCore>,
    found: &Arc<DeviceCore>,
    what: &'static str,
) -> Result<()> {
    if Arc::ptr_eq(expected, found) {
        return Ok(());
    }
    Err(Error::OtherDevice { what, found: found.gpu.id(), expected: expected.gpu.id() })
}

const _: fn() = || {
    fn shared<T: Send + Sync>() {}
    shared::<Runtime>();
    shared::<Device>();
};
