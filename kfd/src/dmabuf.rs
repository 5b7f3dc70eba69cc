//! Sharing memory with other processes and devices through dma-buf descriptors.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use crate::abi::{self, AllocFlags};
use crate::core::Core;
use crate::device::Kfd;
use crate::error::{Error, Object, Result};
use crate::gpu::Gpu;
use crate::ids::GpuId;
use crate::memory::{Allocation, Buffer, MemoryKind};
use crate::sys::FileId;

/// Memory as a file. Closing it frees nothing as long as somebody has the memory.
#[derive(Debug)]
pub struct DmaBuf {
    core: Arc<Core>,
    file: FileId,
}

/// What KFD knows of a dma-buf.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DmaBufInfo {
    /// Bytes.
    pub bytes: u64,
    /// What backs it.
    pub kind: MemoryKind,
    /// Whether the CPU may map VRAM.
    pub cpu_visible: bool,
    /// The GPU it belongs to.
    pub gpu: GpuId,
    /// What the exporter attached to it.
    pub metadata: Vec<u8>,
}

impl DmaBuf {
    /// Takes the descriptor out, for another process.
    ///
    /// # Errors
    /// [`Error::System`] where the kernel behind the seam has none to give.
    pub fn into_fd(self) -> Result<OwnedFd> {
        let what = || "a dma-buf".to_owned();
        let fd = self.core.kernel.export_fd(self.file);
        fd.map_err(|errno| Error::System { call: "export_fd", what: what(), errno })
    }

    /// What KFD knows of it.
    ///
    /// # Errors
    /// [`Error::Ioctl`] of GET_DMABUF_INFO: `EINVAL` when it is not amdgpu's.
    pub fn info(&self) -> Result<DmaBufInfo> {
        // KFD gives no metadata but counts it when there is no room.
        let mut metadata = vec![0; 256];
        let args = self.core.dmabuf_info(self.number(), &mut metadata)?;
        metadata.truncate(usize::try_from(args.metadata_size).unwrap_or(usize::MAX));
        let vram = args.flags.contains(AllocFlags::VRAM);
        Ok(DmaBufInfo {
            bytes: args.size,
            kind: if vram { MemoryKind::Vram } else { MemoryKind::Gtt },
            cpu_visible: !vram || args.flags.contains(AllocFlags::PUBLIC),
            gpu: args.gpu_id,
            metadata,
        })
    }

    fn number(&self) -> u32 {
        u32::try_from(self.file.0).unwrap_or(u32::MAX)
    }
}

impl Drop for DmaBuf {
    fn drop(&mut self) {
        self.core.kernel.close(self.file);
    }
}

impl Kfd {
    /// Takes over a dma-buf descriptor that came from elsewhere.
    ///
    /// # Errors
    /// [`Error::System`] where the kernel behind the seam cannot use it.
    pub fn adopt_dmabuf(&self, fd: OwnedFd) -> Result<DmaBuf> {
        let core = Arc::clone(&self.context.core);
        let what = || "a dma-buf".to_owned();
        let file = core.kernel.import_fd(fd).map_err(|errno| Error::System {
            call: "import_fd",
            what: what(),
            errno,
        })?;
        Ok(DmaBuf { core, file })
    }
}

impl Buffer {
    /// Makes a dma-buf of it. Needs KFD 1.12. The memory lives until buffer, dma-buf and every
    /// import are gone.
    ///
    /// # Errors
    /// [`Error::KfdTooOld`]; [`Error::Ioctl`] of EXPORT_DMABUF: `EPERM` for userptr memory.
    pub fn export_dmabuf(&self) -> Result<DmaBuf> {
        let core = self.0.core();
        core.require("dma-buf export", 12)?;
        // O_RDWR | O_CLOEXEC, as `open` has them on x86-64.
        let flags = 0o2 | 0o2_000_000;
        let mut args = abi::ExportDmabufArgs { handle: self.handle(), flags, ..Default::default() };
        core.call(&mut args, self.0.object())?;
        let file = i32::try_from(args.dmabuf_fd).map_err(|_| Error::Nonsense {
            call: "EXPORT_DMABUF",
            what: "the descriptor",
            value: u64::from(args.dmabuf_fd),
        })?;
        Ok(DmaBuf { core: Arc::clone(core), file: FileId(file) })
    }
}

impl Gpu {
    /// Maps the memory behind a dma-buf on this GPU. The CPU has no access to it through the
    /// buffer.
    ///
    /// # Errors
    /// [`Error::Ioctl`] of GET_DMABUF_INFO, IMPORT_DMABUF or MAP_MEMORY_TO_GPU.
    pub fn import_dmabuf(&self, dmabuf: &DmaBuf) -> Result<Buffer> {
        self.acquire()?;
        let info = dmabuf.info()?;
        let core = &self.context.core;
        let mut args = abi::ImportDmabufArgs {
            gpu_id: self.id(),
            dmabuf_fd: dmabuf.number(),
            ..Default::default()
        };
        let lease = core.space.lease(info.bytes)?;
        args.va_addr = lease.start();
        core.call(&mut args, Object::Gpu(self.id()))?;
        let allocation =
            Allocation::adopt(core, args.handle, lease, info.bytes, info.kind, self.id());
        allocation.map(&[self.id()])?;
        Ok(Buffer(Arc::new(allocation)))
    }
}
