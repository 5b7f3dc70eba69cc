//! What to allocate.

use crate::abi::AllocFlags;
use crate::core::{Core, GpuCore};
use crate::error::{Error, Result};

/// What backs an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MemoryKind {
    /// The GPU's own memory. On an APU the kernel serves it from system memory.
    Vram,
    /// System memory that the kernel allocates.
    Gtt,
    /// System memory of this process, known to the GPU.
    Userptr,
    /// This process's doorbell page, for the GPU to ring.
    Doorbell,
    /// The page of registers that flush the host data path.
    MmioRemap,
}

/// What to allocate: required facts in the constructors, the rest chained.
///
/// Memory is zeroed, readable by the GPU, and writable unless [`MemoryRequest::read_only`].
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct MemoryRequest {
    pub(crate) kind: MemoryKind,
    pub(crate) bytes: u64,
    pub(crate) cpu_visible: bool,
    pub(crate) label: &'static str,
    writable: bool,
    executable: bool,
    coherent: bool,
    uncached: bool,
    ext_coherent: bool,
    contiguous: bool,
}

impl MemoryRequest {
    const fn new(kind: MemoryKind, bytes: u64, cpu_visible: bool) -> Self {
        Self {
            kind,
            bytes,
            cpu_visible,
            label: "buffer",
            writable: true,
            executable: false,
            coherent: false,
            uncached: false,
            ext_coherent: false,
            contiguous: false,
        }
    }

    /// GPU memory that the CPU cannot reach.
    pub const fn vram(bytes: u64) -> Self {
        Self::new(MemoryKind::Vram, bytes, false)
    }

    /// GPU memory that the CPU can reach: needs a resizable BAR.
    pub const fn vram_cpu_visible(bytes: u64) -> Self {
        Self::new(MemoryKind::Vram, bytes, true)
    }

    /// System memory of the kernel, reachable by both.
    pub const fn gtt(bytes: u64) -> Self {
        Self::new(MemoryKind::Gtt, bytes, true)
    }

    /// System memory of the process, reachable by both. Not inherited by a forked child.
    pub const fn userptr(bytes: u64) -> Self {
        Self::new(MemoryKind::Userptr, bytes, true)
    }

    /// The process's doorbells as the GPU sees them.
    pub const fn doorbells() -> Self {
        Self::new(MemoryKind::Doorbell, crate::abi::DOORBELL_PAGE_BYTES, false)
    }

    /// The page of registers that flush the host data path, reachable by both.
    pub const fn mmio_remap() -> Self {
        Self::new(MemoryKind::MmioRemap, super::va::PAGE, true)
    }

    /// The GPU may execute it.
    pub const fn executable(mut self) -> Self {
        self.executable = true;
        self
    }

    /// The GPU may not write it.
    pub const fn read_only(mut self) -> Self {
        self.writable = false;
        self
    }

    /// Stores of CPU and GPU are visible to each other while a kernel runs. What that costs differs
    /// by generation: docs/ABI.md §Memory.
    pub const fn coherent(mut self) -> Self {
        self.coherent = true;
        self
    }

    /// The GPU caches nothing of it. Together with [`MemoryRequest::coherent`] this is what
    /// synchronisation variables need on every generation.
    pub const fn uncached(mut self) -> Self {
        self.uncached = true;
        self
    }

    /// Coherent between GPUs for device-scope atomics.
    pub const fn ext_coherent(mut self) -> Self {
        self.ext_coherent = true;
        self
    }

    /// Physically contiguous VRAM. Needs KFD 1.16.
    pub const fn contiguous(mut self) -> Self {
        self.contiguous = true;
        self
    }

    /// What reports call it.
    pub const fn label(mut self, label: &'static str) -> Self {
        self.label = label;
        self
    }

    pub(crate) fn flags(&self) -> AllocFlags {
        let mut flags = match self.kind {
            MemoryKind::Vram => AllocFlags::VRAM,
            MemoryKind::Gtt => AllocFlags::GTT,
            MemoryKind::Userptr => AllocFlags::USERPTR,
            MemoryKind::Doorbell => AllocFlags::DOORBELL,
            MemoryKind::MmioRemap => AllocFlags::MMIO_REMAP,
        };
        flags.set(AllocFlags::WRITABLE, self.writable);
        flags.set(AllocFlags::EXECUTABLE, self.executable);
        flags.set(AllocFlags::COHERENT, self.coherent);
        flags.set(AllocFlags::UNCACHED, self.uncached);
        flags.set(AllocFlags::EXT_COHERENT, self.ext_coherent);
        flags.set(AllocFlags::CONTIGUOUS, self.contiguous);
        flags.set(AllocFlags::PUBLIC, self.kind == MemoryKind::Vram && self.cpu_visible);
        flags
    }

    /// Refuses what cannot work, before the kernel does with a number only.
    pub(crate) fn check(&self, core: &Core, gpu: &GpuCore) -> Result<()> {
        if self.bytes == 0 {
            return Err(Error::InvalidArgument { call: "allocate", what: "the size", value: 0 });
        }
        if self.contiguous {
            core.require("contiguous VRAM", 16)?;
        }
        let node = &gpu.node;
        let hidden = node.vram_bytes() > 0 && node.visible_vram_bytes() == 0;
        if self.kind == MemoryKind::Vram && self.cpu_visible && hidden {
            return Err(Error::Unsupported {
                gpu: gpu.id(),
                missing: "its memory is not visible to the CPU (enable the resizable BAR, or copy \
                    through system memory)",
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_say_what_was_asked_for() {
        let ring = MemoryRequest::gtt(0x1000).executable().coherent().uncached();
        let wanted = AllocFlags::GTT
            | AllocFlags::WRITABLE
            | AllocFlags::EXECUTABLE
            | AllocFlags::COHERENT
            | AllocFlags::UNCACHED;
        assert_eq!(ring.flags(), wanted);
        let code = MemoryRequest::vram_cpu_visible(0x1000).read_only();
        assert_eq!(code.flags(), AllocFlags::VRAM | AllocFlags::PUBLIC);
        assert_eq!(MemoryRequest::vram(1).flags(), AllocFlags::VRAM | AllocFlags::WRITABLE);
    }
}
