//! [`Gpu`]: one GPU of a [`Kfd`](crate::Kfd).

use std::sync::Arc;

use crate::abi;
use crate::context::Context;
use crate::core::{Apertures, GpuCore};
use crate::error::{Error, Object, Result};
use crate::ids::GpuId;
use crate::memory::{Allocation, Buffer, MemoryRequest};
use crate::signal::Signal;
use crate::topology::{Capability, GfxVersion, Node};

/// One GPU. Cheap to clone; clones are the same GPU. `Send` and `Sync`.
#[derive(Clone, Debug)]
pub struct Gpu {
    pub(crate) context: Arc<Context>,
    pub(crate) index: usize,
}

/// Clocks read at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Clocks {
    /// Ticks of the GPU's counter, the one that signals are stamped with.
    pub gpu_ticks: u64,
    /// `CLOCK_MONOTONIC_RAW`, nanoseconds.
    pub cpu_ns: u64,
    /// `CLOCK_BOOTTIME`, in ticks of `system_hz`.
    pub system_ticks: u64,
    /// Ticks of the system counter in a second.
    pub system_hz: u64,
}

/// Tiling of a GPU's memory, of use to graphics only.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TileConfig {
    /// Tile modes.
    pub tiles: Vec<u32>,
    /// Macro tile modes.
    pub macro_tiles: Vec<u32>,
    /// GB_ADDR_CONFIG.
    pub gb_addr_config: u32,
    /// Banks.
    pub banks: u32,
    /// Ranks.
    pub ranks: u32,
}

impl Gpu {
    pub(crate) fn new(context: &Arc<Context>, index: usize) -> Self {
        Self { context: Arc::clone(context), index }
    }

    pub(crate) fn core(&self) -> &GpuCore {
        // `Kfd::gpus` made the index from the length of a list that never changes.
        #[allow(clippy::indexing_slicing)]
        &self.context.core.gpus[self.index]
    }

    fn object(&self) -> Object {
        Object::Gpu(self.id())
    }

    /// KFD's id.
    pub fn id(&self) -> GpuId {
        self.core().id()
    }

    /// The topology node.
    pub fn node(&self) -> &Node {
        &self.core().node
    }

    /// Instruction set.
    pub fn gfx_version(&self) -> GfxVersion {
        // `render_path` refused nodes without one.
        self.node().gfx_version().unwrap_or(GfxVersion::UNKNOWN)
    }

    /// Whether on-chip memory is error-correcting (`sramecc+` in target names).
    pub fn has_sram_ecc(&self) -> bool {
        self.node().capability().contains(Capability::SRAM_EDC)
    }

    /// Address windows of this process.
    pub fn apertures(&self) -> Apertures {
        self.core().apertures
    }

    /// Acquires the process's address space on the GPU. Every call that needs it does so by itself.
    ///
    /// # Errors
    /// [`Error::Ioctl`] of ACQUIRE_VM: `EBUSY` when another `Kfd` of this process has the GPU.
    pub fn acquire(&self) -> Result<()> {
        self.context.acquire(self.index)
    }

    /// Allocates memory and maps it on this GPU.
    ///
    /// # Errors
    /// [`Error::Ioctl`]: `ENOMEM` when there is not enough; [`Error::Unsupported`] for CPU-visible
    /// VRAM that the CPU cannot see; [`Error::OutOfAddressSpace`]; [`Error::DeviceLost`].
    pub fn allocate(&self, request: &MemoryRequest) -> Result<Buffer> {
        self.acquire()?;
        Allocation::new(&self.context.core, self.index, request).map(Buffer)
    }

    /// Makes the CPU's earlier stores to VRAM visible to the GPU: they pass through a buffer of the
    /// host data path. Needed before a doorbell whose packets read VRAM that the CPU has just
    /// written; never for system memory. Where the CPU reaches the GPU over xGMI there is no such
    /// buffer, and this does nothing. After the first call it is one store and one load over the
    /// bus: no system call, no lock.
    ///
    /// # Errors
    /// [`Error::Ioctl`] of ALLOC_MEMORY_OF_GPU where the GPU has no such register page.
    ///
    /// # Source
    /// `amdgpu_device_flush_hdp` in Linux; docs/ABI.md §PM4 and SDMA queues.
    #[doc(alias = "HDP")]
    pub fn flush_hdp(&self) -> Result<()> {
        self.context.flush_hdp(self.index)
    }

    /// Makes a signal that GPUs decrement and threads wait for, asleep if need be.
    ///
    /// # Errors
    /// [`Error::Ioctl`] of CREATE_EVENT or ALLOC_MEMORY_OF_GPU.
    pub fn create_signal(&self, value: i64) -> Result<Signal> {
        Signal::new(&self.context, self.index, value, true)
    }

    /// Makes a signal without event: its completion raises no interrupt, and a thread that waits
    /// for it long looks once a millisecond.
    ///
    /// # Errors
    /// As [`Gpu::create_signal`].
    pub fn create_silent_signal(&self, value: i64) -> Result<Signal> {
        Signal::new(&self.context, self.index, value, false)
    }

    /// Fails with the first cause when the GPU is known to be lost for this process.
    ///
    /// # Errors
    /// [`Error::DeviceLost`].
    pub fn check(&self) -> Result<()> {
        self.core().check()
    }

    /// Bytes of memory that can still be allocated, in steps of 2 MiB. Needs KFD 1.9.
    ///
    /// # Errors
    /// [`Error::KfdTooOld`]; [`Error::Ioctl`].
    pub fn available_memory(&self) -> Result<u64> {
        self.context.core.require("available memory", 9)?;
        let mut args = abi::GetAvailableMemoryArgs { gpu_id: self.id(), ..Default::default() };
        self.context.core.call(&mut args, self.object())?;
        Ok(args.available)
    }

    /// Reads the GPU's and the host's clocks together.
    ///
    /// # Errors
    /// [`Error::Ioctl`].
    pub fn clocks(&self) -> Result<Clocks> {
        let mut args = abi::GetClockCountersArgs { gpu_id: self.id(), ..Default::default() };
        self.context.core.call(&mut args, self.object())?;
        Ok(Clocks {
            gpu_ticks: args.gpu_clock_counter,
            cpu_ns: args.cpu_clock_counter,
            system_ticks: args.system_clock_counter,
            system_hz: args.system_clock_freq,
        })
    }

    /// Reads the tiling tables.
    ///
    /// # Errors
    /// [`Error::Ioctl`].
    pub fn tile_config(&self) -> Result<TileConfig> {
        // 32 and 16: KFD's own limits (docs/ABI.md §Limits).
        let (mut tiles, mut macro_tiles) = (vec![0; 32], vec![0; 16]);
        let args = self.context.core.tile_config(self.id(), &mut tiles, &mut macro_tiles)?;
        tiles.truncate(usize::try_from(args.num_tile_configs).unwrap_or(usize::MAX));
        macro_tiles.truncate(usize::try_from(args.num_macro_tile_configs).unwrap_or(usize::MAX));
        Ok(TileConfig {
            tiles,
            macro_tiles,
            gb_addr_config: args.gb_addr_config,
            banks: args.num_banks,
            ranks: args.num_ranks,
        })
    }

    /// Sets the cache policy of the default and of an alternate aperture. Without effect on gfx9
    /// and newer, but accepted.
    ///
    /// # Errors
    /// [`Error::Ioctl`].
    pub fn set_memory_policy(&self, coherent: bool) -> Result<()> {
        self.acquire()?;
        let policy =
            if coherent { abi::CachePolicy::COHERENT } else { abi::CachePolicy::NONCOHERENT };
        let mut args = abi::SetMemoryPolicyArgs {
            gpu_id: self.id(),
            default_policy: policy,
            alternate_policy: policy,
            ..Default::default()
        };
        self.context.core.call(&mut args, self.object()).map(drop)
    }

    /// Tells KFD where scratch is, for GPUs whose queues firmware does not schedule. Without effect
    /// elsewhere.
    ///
    /// # Errors
    /// [`Error::Ioctl`].
    pub fn set_scratch_backing(&self, backing: &Buffer) -> Result<()> {
        self.acquire()?;
        let mut args = abi::SetScratchBackingVaArgs {
            va_addr: backing.addr().get(),
            gpu_id: self.id(),
            ..Default::default()
        };
        self.context.core.call(&mut args, self.object()).map(drop)
    }
}

impl PartialEq for Gpu {
    fn eq(&self, other: &Self) -> bool {
        self.index == other.index && Arc::ptr_eq(&self.context, &other.context)
    }
}

impl Eq for Gpu {}

impl From<&Gpu> for GpuId {
    fn from(gpu: &Gpu) -> Self {
        gpu.id()
    }
}

const _: fn() = || {
    fn shared<T: Send + Sync>() {}
    shared::<Gpu>();
    shared::<Buffer>();
    shared::<Error>();
};
