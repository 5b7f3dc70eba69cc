//! Memory: allocation, mapping, dma-buf, and what `mmap` of `/dev/kfd` means.

use crate::{GpuId, MemHandle};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

open_flags! {
    /// Type and attributes of an allocation. Exactly one type; the GPU can always read.
    pub struct AllocFlags(u32);
    /// Type: the GPU's own memory.
    VRAM = 1, "KFD_IOC_ALLOC_MEM_FLAGS_VRAM";
    /// Type: system memory that the kernel allocates.
    GTT = 1 << 1, "KFD_IOC_ALLOC_MEM_FLAGS_GTT";
    /// Type: pages of this process.
    USERPTR = 1 << 2, "KFD_IOC_ALLOC_MEM_FLAGS_USERPTR";
    /// Type: this process's doorbell page.
    DOORBELL = 1 << 3, "KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL";
    /// Type: the page of HDP flush registers.
    MMIO_REMAP = 1 << 4, "KFD_IOC_ALLOC_MEM_FLAGS_MMIO_REMAP";
    /// The GPU may write.
    WRITABLE = 1 << 31, "KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE";
    /// The GPU may execute.
    EXECUTABLE = 1 << 30, "KFD_IOC_ALLOC_MEM_FLAGS_EXECUTABLE";
    /// The CPU may access VRAM.
    PUBLIC = 1 << 29, "KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC";
    /// Accepted, without effect.
    NO_SUBSTITUTE = 1 << 28, "KFD_IOC_ALLOC_MEM_FLAGS_NO_SUBSTITUTE";
    /// Map twice, back to back: only for gfx7 and gfx8.
    AQL_QUEUE_MEM = 1 << 27, "KFD_IOC_ALLOC_MEM_FLAGS_AQL_QUEUE_MEM";
    /// Coherent with the CPU at any time.
    COHERENT = 1 << 26, "KFD_IOC_ALLOC_MEM_FLAGS_COHERENT";
    /// No caching on the GPU.
    UNCACHED = 1 << 25, "KFD_IOC_ALLOC_MEM_FLAGS_UNCACHED";
    /// Coherent between devices for device-scope atomics.
    EXT_COHERENT = 1 << 24, "KFD_IOC_ALLOC_MEM_FLAGS_EXT_COHERENT";
    /// Physically contiguous VRAM. KFD 1.16 and later.
    CONTIGUOUS = 1 << 23, "KFD_IOC_ALLOC_MEM_FLAGS_CONTIGUOUS";
}

open_enum! {
    /// Byte offset of a register in the MMIO remap page.
    pub struct MmioRemap(u32);
    /// Any write flushes CPU writes to VRAM out of the host data path.
    HDP_MEM_FLUSH_CNTL = 0, "KFD_MMIO_REMAP_HDP_MEM_FLUSH_CNTL";
    /// Flushes register writes.
    HDP_REG_FLUSH_CNTL = 4, "KFD_MMIO_REMAP_HDP_REG_FLUSH_CNTL";
}

/// What an `mmap` offset of `/dev/kfd` names, in its bits 63:62.
///
/// # Source
/// drivers/gpu/drm/amd/amdkfd/kfd_priv.h, `KFD_MMAP_TYPE_*`, Linux 6.12.117; docs/ABI.md §mmap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MmapType(pub u64);

impl MmapType {
    /// The page of HDP flush registers.
    #[doc(alias = "KFD_MMAP_TYPE_MMIO")]
    pub const MMIO: Self = Self(0);
    /// The trap handler page of a gfx8 APU.
    #[doc(alias = "KFD_MMAP_TYPE_RESERVED_MEM")]
    pub const RESERVED_MEM: Self = Self(1 << 62);
    /// The event page.
    #[doc(alias = "KFD_MMAP_TYPE_EVENTS")]
    pub const EVENTS: Self = Self(2 << 62);
    /// The doorbell page.
    #[doc(alias = "KFD_MMAP_TYPE_DOORBELL")]
    pub const DOORBELL: Self = Self(3 << 62);
    /// Bits of an offset that hold the type.
    #[doc(alias = "KFD_MMAP_TYPE_MASK")]
    pub const MASK: u64 = 3 << 62;
    /// Lowest bit of the GPU id in an offset.
    pub const GPU_ID_SHIFT: u32 = 46;
    /// Bits of an offset that hold the GPU id: 16, although the id is a 32-bit field elsewhere.
    #[doc(alias = "KFD_MMAP_GPU_ID_MASK")]
    pub const GPU_ID_MASK: u64 = 0xffff << Self::GPU_ID_SHIFT;

    /// The type in an offset.
    #[must_use]
    pub const fn of(offset: u64) -> Self {
        Self(offset & Self::MASK)
    }

    /// The GPU in an offset.
    #[must_use]
    #[allow(clippy::cast_possible_truncation)] // 16 bits after the mask
    pub const fn gpu_of(offset: u64) -> GpuId {
        GpuId(((offset & Self::GPU_ID_MASK) >> Self::GPU_ID_SHIFT) as u32)
    }

    /// The offset that maps this type for a GPU.
    #[must_use]
    pub const fn offset(self, gpu: GpuId) -> u64 {
        self.0 | (((gpu.0 as u64) << Self::GPU_ID_SHIFT) & Self::GPU_ID_MASK)
    }
}

/// Bytes of a process's doorbell page on gfx9 and later: 1024 doorbells of 8 bytes.
///
/// # Source
/// drivers/gpu/drm/amd/amdkfd/kfd_doorbell.c, `kfd_doorbell_process_slice`, Linux 6.12.117.
pub const DOORBELL_PAGE_BYTES: u64 = 0x2000;

/// Argument of ALLOC_MEMORY_OF_GPU.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct AllocMemoryOfGpuArgs {
    /// To KFD; checked only when the memory is mapped.
    pub va_addr: u64,
    /// To KFD, bytes, rounded up to whole pages.
    pub size: u64,
    /// From KFD.
    pub handle: MemHandle,
    /// To KFD for userptr: the CPU address; from KFD otherwise: the offset to mmap.
    pub mmap_offset: u64,
    /// To KFD.
    pub gpu_id: GpuId,
    /// To KFD.
    pub flags: AllocFlags,
}
abi_layout!(AllocMemoryOfGpuArgs = "kfd_ioctl_alloc_memory_of_gpu_args", size = 40, {
    va_addr @ 0, size @ 8, handle @ 16, mmap_offset @ 24, gpu_id @ 32, flags @ 36,
});

/// Argument of FREE_MEMORY_OF_GPU.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct FreeMemoryOfGpuArgs {
    /// To KFD.
    pub handle: MemHandle,
}
abi_layout!(FreeMemoryOfGpuArgs = "kfd_ioctl_free_memory_of_gpu_args", size = 8, { handle @ 0 });

/// Argument of MAP_MEMORY_TO_GPU.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct MapMemoryToGpuArgs {
    /// To KFD.
    pub handle: MemHandle,
    /// To KFD, address of an array of [`GpuId`].
    pub device_ids_array_ptr: u64,
    /// To KFD, entries in the array.
    pub n_devices: u32,
    /// To KFD, entries to skip: 0 first; from KFD, entries done, also when the call fails.
    pub n_success: u32,
}
abi_layout!(MapMemoryToGpuArgs = "kfd_ioctl_map_memory_to_gpu_args", size = 24, {
    handle @ 0, device_ids_array_ptr @ 8, n_devices @ 16, n_success @ 20,
});

/// Argument of UNMAP_MEMORY_FROM_GPU.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct UnmapMemoryFromGpuArgs {
    /// To KFD.
    pub handle: MemHandle,
    /// To KFD, address of an array of [`GpuId`].
    pub device_ids_array_ptr: u64,
    /// To KFD, entries in the array.
    pub n_devices: u32,
    /// To KFD, entries to skip: 0 first; from KFD, entries done, also when the call fails.
    pub n_success: u32,
}
abi_layout!(UnmapMemoryFromGpuArgs = "kfd_ioctl_unmap_memory_from_gpu_args", size = 24, {
    handle @ 0, device_ids_array_ptr @ 8, n_devices @ 16, n_success @ 20,
});

/// Argument of AVAILABLE_MEMORY.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct GetAvailableMemoryArgs {
    /// From KFD, bytes.
    pub available: u64,
    /// To KFD.
    pub gpu_id: GpuId,
    /// Zero.
    pub pad: u32,
}
abi_layout!(GetAvailableMemoryArgs = "kfd_ioctl_get_available_memory_args", size = 16, {
    available @ 0, gpu_id @ 8, pad @ 12,
});

/// Argument of GET_DMABUF_INFO.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct GetDmabufInfoArgs {
    /// From KFD, bytes.
    pub size: u64,
    /// To KFD, address of a buffer.
    pub metadata_ptr: u64,
    /// To KFD, bytes in the buffer; from KFD, bytes of metadata.
    pub metadata_size: u32,
    /// From KFD.
    pub gpu_id: GpuId,
    /// From KFD.
    pub flags: AllocFlags,
    /// To KFD.
    pub dmabuf_fd: u32,
}
abi_layout!(GetDmabufInfoArgs = "kfd_ioctl_get_dmabuf_info_args", size = 32, {
    size @ 0, metadata_ptr @ 8, metadata_size @ 16, gpu_id @ 20, flags @ 24, dmabuf_fd @ 28,
});

/// Argument of IMPORT_DMABUF.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct ImportDmabufArgs {
    /// To KFD.
    pub va_addr: u64,
    /// From KFD.
    pub handle: MemHandle,
    /// To KFD.
    pub gpu_id: GpuId,
    /// To KFD.
    pub dmabuf_fd: u32,
}
abi_layout!(ImportDmabufArgs = "kfd_ioctl_import_dmabuf_args", size = 24, {
    va_addr @ 0, handle @ 8, gpu_id @ 16, dmabuf_fd @ 20,
});

/// Argument of EXPORT_DMABUF. KFD 1.12 and later.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct ExportDmabufArgs {
    /// To KFD.
    pub handle: MemHandle,
    /// To KFD, `O_CLOEXEC` and the access mode.
    pub flags: u32,
    /// From KFD.
    pub dmabuf_fd: u32,
}
abi_layout!(ExportDmabufArgs = "kfd_ioctl_export_dmabuf_args", size = 16, {
    handle @ 0, flags @ 8, dmabuf_fd @ 12,
});
