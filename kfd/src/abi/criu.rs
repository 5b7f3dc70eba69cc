//! Checkpoint and restore. KFD 1.7 and later.

use crate::GpuId;
use crate::abi::AllocFlags;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

open_enum! {
    /// Operation of CRIU_OP.
    pub struct CriuOp(u32);
    /// Counts what there is to save, and evicts every queue of the process.
    PROCESS_INFO = 0, "KFD_CRIU_OP_PROCESS_INFO";
    /// Saves.
    CHECKPOINT = 1, "KFD_CRIU_OP_CHECKPOINT";
    /// Restores the queues that PROCESS_INFO evicted.
    UNPAUSE = 2, "KFD_CRIU_OP_UNPAUSE";
    /// Rebuilds a process.
    RESTORE = 3, "KFD_CRIU_OP_RESTORE";
    /// Starts a rebuilt process.
    RESUME = 4, "KFD_CRIU_OP_RESUME";
}

/// Argument of CRIU_OP.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct CriuArgs {
    /// Both ways, address of an array of [`CriuDeviceBucket`].
    pub devices: u64,
    /// Both ways, address of an array of [`CriuBoBucket`].
    pub bos: u64,
    /// Both ways, address of the kernel's own data.
    pub priv_data: u64,
    /// Both ways, bytes of it.
    pub priv_data_size: u64,
    /// Both ways, entries in `devices`.
    pub num_devices: u32,
    /// Both ways, entries in `bos`.
    pub num_bos: u32,
    /// Both ways, objects in the kernel's own data.
    pub num_objects: u32,
    /// Both ways, the process.
    pub pid: u32,
    /// To KFD.
    pub op: CriuOp,
    /// C pads here without naming it.
    pub padding: u32,
}
abi_layout!(
    CriuArgs = "kfd_ioctl_criu_args", size = 56,
    {
        devices @ 0, bos @ 8, priv_data @ 16, priv_data_size @ 24, num_devices @ 32, num_bos @ 36,
        num_objects @ 40, pid @ 44, op @ 48,
    },
    rust_only { padding @ 52 },
);

/// A GPU in a checkpoint.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct CriuDeviceBucket {
    /// Id that the process knows it by.
    pub user_gpu_id: GpuId,
    /// Its id here.
    pub actual_gpu_id: GpuId,
    /// Its render node.
    pub drm_fd: u32,
    /// Zero.
    pub pad: u32,
}
abi_layout!(CriuDeviceBucket = "kfd_criu_device_bucket", size = 16, {
    user_gpu_id @ 0, actual_gpu_id @ 4, drm_fd @ 8, pad @ 12,
});

/// An allocation in a checkpoint.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct CriuBoBucket {
    /// Its GPU address.
    pub addr: u64,
    /// Bytes.
    pub size: u64,
    /// Its mmap offset.
    pub offset: u64,
    /// Its mmap offset after the restore.
    pub restored_offset: u64,
    /// Its GPU, by `user_gpu_id`.
    pub gpu_id: GpuId,
    /// Its flags.
    pub alloc_flags: AllocFlags,
    /// A dma-buf of it.
    pub dmabuf_fd: u32,
    /// Zero.
    pub pad: u32,
}
abi_layout!(CriuBoBucket = "kfd_criu_bo_bucket", size = 48, {
    addr @ 0, size @ 8, offset @ 16, restored_offset @ 24, gpu_id @ 32, alloc_flags @ 36,
    dmabuf_fd @ 40, pad @ 44,
});
