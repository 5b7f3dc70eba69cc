//! Memory that GPUs can reach: allocation, mapping, CPU access, and freeing in a safe order.
//!
//! An allocation that the CPU can see has one address for CPU and GPU. It is freed by unmapping it
//! from every GPU, then from the CPU (the addresses stay reserved), then giving the memory back to
//! KFD, and only then the addresses. Where the kernel says that a queue still uses the memory,
//! nothing is freed and [`Kfd::leaks`](crate::Kfd::leaks) says so.

mod mapping;
mod registry;
mod request;
pub(crate) mod va;

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use pm4::GpuAddr;

pub(crate) use mapping::{AddressSpace, Lease, Mapping};
pub(crate) use registry::Registry;
pub use registry::{AllocationInfo, Neighbours};
pub use request::{MemoryKind, MemoryRequest};

use crate::abi;
use crate::core::{Core, lock};
use crate::error::{Error, Object, Result};
use crate::ids::{GpuId, MemHandle};
use crate::sys::Backing;

/// Memory known to KFD. Freed when the last owner lets go.
pub(crate) struct Allocation {
    core: Arc<Core>,
    handle: MemHandle,
    info: AllocationInfo,
    /// GPUs it is mapped on.
    mapped: Mutex<Vec<GpuId>>,
    /// `None` once freed.
    parts: Option<Parts>,
    /// KFD keeps it until the process ends.
    immortal: AtomicBool,
}

/// What must go in order.
struct Parts {
    mapping: Option<Mapping>,
    lease: Lease,
}

impl Allocation {
    /// Allocates on the GPU at `index` and maps it there.
    pub fn new(core: &Arc<Core>, index: usize, request: &MemoryRequest) -> Result<Arc<Self>> {
        let gpu = core.gpu(index)?;
        gpu.check()?;
        request.check(core, gpu)?;
        let lease = core.space.lease(request.bytes)?;
        let info = AllocationInfo {
            addr: GpuAddr::new(lease.start()),
            bytes: request.bytes,
            kind: request.kind,
            gpu: gpu.id(),
            label: request.label,
        };
        // Userptr memory has to exist before KFD can be told of it.
        let userptr = match request.kind {
            MemoryKind::Userptr => Some(lease.map(Backing::Anonymous)?),
            _ => None,
        };
        let flags = request.flags();
        let (handle, offset) = core.alloc_memory(gpu.id(), &lease, userptr.as_ref(), flags)?;
        core.registry.insert(info);
        // From here on dropping it frees what there is.
        let mut allocation = Self {
            core: Arc::clone(core),
            handle,
            info,
            mapped: Mutex::default(),
            parts: Some(Parts { mapping: userptr, lease }),
            immortal: AtomicBool::new(false),
        };
        let file = match request.kind {
            MemoryKind::Vram if request.cpu_visible => Some(gpu.render),
            MemoryKind::Gtt => Some(gpu.render),
            MemoryKind::MmioRemap => Some(core.file),
            MemoryKind::Vram | MemoryKind::Userptr | MemoryKind::Doorbell => None,
        };
        if let (Some(file), Some(parts)) = (file, &mut allocation.parts) {
            parts.mapping = Some(parts.lease.map(Backing::File { file, offset })?);
        }
        allocation.map(&[gpu.id()])?;
        Ok(Arc::new(allocation))
    }

    /// Takes over memory that KFD knows already, for the addresses of `lease`, mapped nowhere yet.
    pub fn adopt(
        core: &Arc<Core>,
        handle: MemHandle,
        lease: Lease,
        bytes: u64,
        kind: MemoryKind,
        gpu: GpuId,
    ) -> Self {
        let addr = GpuAddr::new(lease.start());
        let info = AllocationInfo { addr, bytes, kind, gpu, label: "imported buffer" };
        core.registry.insert(info);
        Self {
            core: Arc::clone(core),
            handle,
            info,
            mapped: Mutex::default(),
            parts: Some(Parts { mapping: None, lease }),
            immortal: AtomicBool::new(false),
        }
    }

    pub fn core(&self) -> &Arc<Core> {
        &self.core
    }

    pub fn handle(&self) -> MemHandle {
        self.handle
    }

    pub fn info(&self) -> AllocationInfo {
        self.info
    }

    pub fn addr(&self) -> GpuAddr {
        self.info.addr
    }

    pub fn object(&self) -> Object {
        Object::Memory { handle: self.handle, addr: self.info.addr, bytes: self.info.bytes }
    }

    /// The CPU's view.
    #[inline]
    pub fn mapping(&self) -> Result<&Mapping> {
        let mapping = self.parts.as_ref().and_then(|parts| parts.mapping.as_ref());
        // Not `ok_or`: the error would be made and dropped on every access.
        let Some(mapping) = mapping else {
            return Err(Error::NoCpuAccess { addr: self.info.addr });
        };
        Ok(mapping)
    }

    /// Maps it on GPUs whose VM is acquired. Those that have it already are skipped.
    pub fn map(&self, gpus: &[GpuId]) -> Result<()> {
        let mut mapped = lock(&self.mapped);
        let new: Vec<GpuId> = gpus.iter().copied().filter(|gpu| !mapped.contains(gpu)).collect();
        if new.is_empty() {
            return Ok(());
        }
        let (done, result) = self.core.map_memory(self.handle, &new, self.object());
        mapped.extend(new.iter().take(done));
        result
    }

    /// Unmaps it from GPUs; those that do not have it are skipped.
    pub fn unmap(&self, gpus: &[GpuId]) -> Result<()> {
        let mut mapped = lock(&self.mapped);
        let old: Vec<GpuId> = gpus.iter().copied().filter(|gpu| mapped.contains(gpu)).collect();
        if old.is_empty() {
            return Ok(());
        }
        let (done, result) = self.core.unmap_memory(self.handle, &old, self.object());
        let gone: Vec<GpuId> = old.into_iter().take(done).collect();
        mapped.retain(|gpu| !gone.contains(gpu));
        result
    }

    /// GPUs it is mapped on.
    pub fn mapped_on(&self) -> Vec<GpuId> {
        lock(&self.mapped).clone()
    }

    /// KFD will not give it back: dropping it then does nothing.
    pub fn keep_for_ever(&self) {
        self.immortal.store(true, Ordering::Relaxed);
    }

    /// Frees it, or records a leak: then nothing of it is used again, by anyone.
    fn release(&mut self) -> Result<()> {
        let Some(Parts { mapping, lease }) = self.parts.take() else { return Ok(()) };
        if self.immortal.load(Ordering::Relaxed) {
            lease.abandon();
            std::mem::forget(mapping);
            return Ok(());
        }
        let everywhere = self.mapped_on();
        let mut result = self.unmap(&everywhere);
        let mut mapping = mapping;
        if result.is_ok() {
            // Unmapping userptr memory that KFD still knows would stop every queue of the process
            // until KFD has looked at it; other memory has to go from the CPU first.
            if self.info.kind != MemoryKind::Userptr {
                mapping = None;
            }
            let mut args = abi::FreeMemoryOfGpuArgs { handle: self.handle };
            result = self.core.call(&mut args, self.object()).map(drop);
        }
        match result {
            Ok(()) => {
                self.core.registry.remove(self.info.addr);
                Ok(())
            }
            Err(error) => {
                self.core.leak(self.info.to_string(), self.info.bytes, error.clone());
                lease.abandon();
                std::mem::forget(mapping);
                Err(error)
            }
        }
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        // A failure is in the list of leaks.
        let _ = self.release();
    }
}

impl fmt::Debug for Allocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Allocation").field("info", &self.info).finish_non_exhaustive()
    }
}

/// Memory of a GPU. Send and Sync: the device writes it at any time anyway.
///
/// Dropping it takes it away from the GPU at once: a kernel that still uses it then faults, and
/// the GPU is lost for this process. Wait for the work that uses it first. Host memory is never
/// at risk: the GPU's mapping goes before the pages do.
#[derive(Debug)]
pub struct Buffer(pub(crate) Arc<Allocation>);

impl Buffer {
    /// Address, for GPU and CPU.
    pub fn addr(&self) -> GpuAddr {
        self.0.addr()
    }

    /// Bytes asked for.
    pub fn bytes(&self) -> u64 {
        self.0.info.bytes
    }

    /// What reports say of it.
    pub fn info(&self) -> AllocationInfo {
        self.0.info()
    }

    /// KFD's handle.
    pub fn handle(&self) -> MemHandle {
        self.0.handle()
    }

    /// Whether the CPU can read and write it.
    pub fn is_cpu_visible(&self) -> bool {
        self.0.mapping().is_ok()
    }

    /// GPUs it is mapped on.
    pub fn mapped_on(&self) -> Vec<GpuId> {
        self.0.mapped_on()
    }

    /// Maps it on more GPUs.
    ///
    /// # Errors
    /// [`Error::Ioctl`] of MAP_MEMORY_TO_GPU: `EINVAL` when a GPU cannot reach the memory. GPUs
    /// before the failing one keep it.
    pub fn map_on(&self, gpus: &[&crate::Gpu]) -> Result<()> {
        let mut ids = Vec::with_capacity(gpus.len());
        for gpu in gpus {
            gpu.acquire()?;
            ids.push(gpu.id());
        }
        self.0.map(&ids)
    }

    /// Takes it away from GPUs.
    ///
    /// # Errors
    /// [`Error::Ioctl`] of UNMAP_MEMORY_FROM_GPU: `EBUSY` while a queue needs it.
    pub fn unmap_from(&self, gpus: &[&crate::Gpu]) -> Result<()> {
        let ids: Vec<GpuId> = gpus.iter().map(|gpu| gpu.id()).collect();
        self.0.unmap(&ids)
    }

    /// Copies bytes out. Words of 8 bytes do not tear; longer values may if the device writes.
    ///
    /// # Errors
    /// [`Error::NoCpuAccess`]; [`Error::OutOfBounds`].
    pub fn read(&self, offset: u64, to: &mut [u8]) -> Result<()> {
        self.check(offset, to.len())?;
        self.0.mapping()?.read(offset, to)
    }

    /// Copies bytes in.
    ///
    /// # Errors
    /// As [`Buffer::read`].
    #[inline]
    pub fn write(&self, offset: u64, from: &[u8]) -> Result<()> {
        self.check(offset, from.len())?;
        self.0.mapping()?.write(offset, from)
    }

    /// A 32-bit word that the device may change at any time.
    ///
    /// # Errors
    /// As [`Buffer::read`], and [`Error::Misaligned`].
    pub fn u32(&self, offset: u64) -> Result<&AtomicU32> {
        self.check(offset, 4)?;
        self.0.mapping()?.u32(offset)
    }

    /// A 64-bit word that the device may change at any time.
    ///
    /// # Errors
    /// As [`Buffer::u32`].
    pub fn u64(&self, offset: u64) -> Result<&AtomicU64> {
        self.check(offset, 8)?;
        self.0.mapping()?.u64(offset)
    }

    /// Frees it now and says how that went.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] while something else of this process owns it too: then it is
    /// freed with that; [`Error::Ioctl`] when the kernel refused: then it is leaked.
    pub fn free(self) -> Result<()> {
        match Arc::try_unwrap(self.0) {
            Ok(mut allocation) => allocation.release(),
            Err(shared) => Err(Error::InvalidArgument {
                call: "free",
                what: "memory that something else owns too, by address,",
                value: shared.addr().get(),
            }),
        }
    }

    /// The page-rounded tail is mapped but not part of the buffer.
    #[inline]
    fn check(&self, offset: u64, bytes: usize) -> Result<()> {
        match self.bytes().checked_sub(bytes as u64) {
            Some(last) if offset <= last => Ok(()),
            _ => Err(self.out_of_bounds(offset, bytes)),
        }
    }

    #[cold]
    fn out_of_bounds(&self, offset: u64, bytes: usize) -> Error {
        Error::OutOfBounds { offset, bytes: bytes as u64, length: self.bytes() }
    }
}
