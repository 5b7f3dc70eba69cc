//! Version, clocks, apertures, the trap handler and other per-process settings.

use crate::GpuId;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

constants! {
    /// Major version of the interface mirrored here.
    pub const MAJOR_VERSION: u32 = 1, "KFD_IOCTL_MAJOR_VERSION";
    /// Minor version of the interface mirrored here.
    pub const MINOR_VERSION: u32 = 17, "KFD_IOCTL_MINOR_VERSION";
    /// GPUs that GET_PROCESS_APERTURES can report.
    pub const SUPPORTED_GPUS: usize = 7, "NUM_OF_SUPPORTED_GPUS";
    /// A descriptor that is none.
    pub const INVALID_FD: u32 = 0xffff_ffff, "KFD_INVALID_FD";
    /// Limit of a removed debug interface.
    pub const DBG_MAX_NUM_POINTS: u32 = 100, "MAX_ALLOWED_NUM_POINTS";
    /// Limit of a removed debug interface, bytes.
    pub const DBG_MAX_AW_BUFF_SIZE: u32 = 4096, "MAX_ALLOWED_AW_BUFF_SIZE";
    /// Limit of a removed debug interface, bytes.
    pub const DBG_MAX_WAC_BUFF_SIZE: u32 = 128, "MAX_ALLOWED_WAC_BUFF_SIZE";
}

open_enum! {
    /// Cache policy of SET_MEMORY_POLICY; without effect on gfx9 and later.
    pub struct CachePolicy(u32);
    /// Coherent with the host.
    COHERENT = 0, "KFD_IOC_CACHE_POLICY_COHERENT";
    /// Not coherent with the host.
    NONCOHERENT = 1, "KFD_IOC_CACHE_POLICY_NONCOHERENT";
}

/// Argument of GET_VERSION.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct GetVersionArgs {
    /// From KFD.
    pub major_version: u32,
    /// From KFD.
    pub minor_version: u32,
}
abi_layout!(GetVersionArgs = "kfd_ioctl_get_version_args", size = 8, {
    major_version @ 0, minor_version @ 4,
});

/// Argument of SET_MEMORY_POLICY.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct SetMemoryPolicyArgs {
    /// To KFD.
    pub alternate_aperture_base: u64,
    /// To KFD, bytes.
    pub alternate_aperture_size: u64,
    /// To KFD.
    pub gpu_id: GpuId,
    /// To KFD.
    pub default_policy: CachePolicy,
    /// To KFD.
    pub alternate_policy: CachePolicy,
    /// Zero.
    pub pad: u32,
}
abi_layout!(SetMemoryPolicyArgs = "kfd_ioctl_set_memory_policy_args", size = 32, {
    alternate_aperture_base @ 0, alternate_aperture_size @ 8, gpu_id @ 16, default_policy @ 20,
    alternate_policy @ 24, pad @ 28,
});

/// Argument of GET_CLOCK_COUNTERS.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct GetClockCountersArgs {
    /// From KFD, GPU ticks; 0 for an unknown GPU.
    pub gpu_clock_counter: u64,
    /// From KFD, `CLOCK_MONOTONIC_RAW` in ns.
    pub cpu_clock_counter: u64,
    /// From KFD, `CLOCK_BOOTTIME` in ns.
    pub system_clock_counter: u64,
    /// From KFD, ticks of the system counter per second.
    pub system_clock_freq: u64,
    /// To KFD.
    pub gpu_id: GpuId,
    /// Zero.
    pub pad: u32,
}
abi_layout!(GetClockCountersArgs = "kfd_ioctl_get_clock_counters_args", size = 40, {
    gpu_clock_counter @ 0, cpu_clock_counter @ 8, system_clock_counter @ 16, system_clock_freq @ 24,
    gpu_id @ 32, pad @ 36,
});

/// Address ranges of one GPU, limits inclusive.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct ProcessDeviceApertures {
    /// First address of the LDS window of flat addressing.
    pub lds_base: u64,
    /// Its last address.
    pub lds_limit: u64,
    /// First address of the scratch window of flat addressing.
    pub scratch_base: u64,
    /// Its last address.
    pub scratch_limit: u64,
    /// First address that memory can be mapped at.
    pub gpuvm_base: u64,
    /// The last one.
    pub gpuvm_limit: u64,
    /// The GPU.
    pub gpu_id: GpuId,
    /// Zero.
    pub pad: u32,
}
abi_layout!(ProcessDeviceApertures = "kfd_process_device_apertures", size = 56, {
    lds_base @ 0, lds_limit @ 8, scratch_base @ 16, scratch_limit @ 24, gpuvm_base @ 32,
    gpuvm_limit @ 40, gpu_id @ 48, pad @ 52,
});

/// Argument of GET_PROCESS_APERTURES, which the header calls deprecated.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct GetProcessAperturesArgs {
    /// From KFD.
    pub process_apertures: [ProcessDeviceApertures; SUPPORTED_GPUS],
    /// From KFD, how many of them are filled.
    pub num_of_nodes: u32,
    /// Zero.
    pub pad: u32,
}
abi_layout!(GetProcessAperturesArgs = "kfd_ioctl_get_process_apertures_args", size = 400, {
    process_apertures @ 0, num_of_nodes @ 392, pad @ 396,
});

/// Argument of GET_PROCESS_APERTURES_NEW.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct GetProcessAperturesNewArgs {
    /// To KFD, address of an array of [`ProcessDeviceApertures`].
    pub kfd_process_device_apertures_ptr: u64,
    /// To KFD, entries in the array, 0 to ask how many there are; from KFD, entries filled.
    pub num_of_nodes: u32,
    /// Zero.
    pub pad: u32,
}
abi_layout!(GetProcessAperturesNewArgs = "kfd_ioctl_get_process_apertures_new_args", size = 16, {
    kfd_process_device_apertures_ptr @ 0, num_of_nodes @ 8, pad @ 12,
});

/// Argument of SET_SCRATCH_BACKING_VA; without effect where firmware schedules queues.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct SetScratchBackingVaArgs {
    /// To KFD.
    pub va_addr: u64,
    /// To KFD.
    pub gpu_id: GpuId,
    /// Zero.
    pub pad: u32,
}
abi_layout!(SetScratchBackingVaArgs = "kfd_ioctl_set_scratch_backing_va_args", size = 16, {
    va_addr @ 0, gpu_id @ 8, pad @ 12,
});

/// Argument of GET_TILE_CONFIG.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct GetTileConfigArgs {
    /// To KFD, address of an array of u32.
    pub tile_config_ptr: u64,
    /// To KFD, address of an array of u32.
    pub macro_tile_config_ptr: u64,
    /// To KFD, entries in the array; from KFD, entries filled.
    pub num_tile_configs: u32,
    /// To KFD, entries in the array; from KFD, entries filled.
    pub num_macro_tile_configs: u32,
    /// To KFD.
    pub gpu_id: GpuId,
    /// From KFD.
    pub gb_addr_config: u32,
    /// From KFD.
    pub num_banks: u32,
    /// From KFD.
    pub num_ranks: u32,
}
abi_layout!(GetTileConfigArgs = "kfd_ioctl_get_tile_config_args", size = 40, {
    tile_config_ptr @ 0, macro_tile_config_ptr @ 8, num_tile_configs @ 16,
    num_macro_tile_configs @ 20, gpu_id @ 24, gb_addr_config @ 28, num_banks @ 32, num_ranks @ 36,
});

/// Argument of SET_TRAP_HANDLER.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct SetTrapHandlerArgs {
    /// To KFD, address of the code, 256-byte aligned.
    pub tba_addr: u64,
    /// To KFD, address that the handler gets in a register.
    pub tma_addr: u64,
    /// To KFD.
    pub gpu_id: GpuId,
    /// Zero.
    pub pad: u32,
}
abi_layout!(SetTrapHandlerArgs = "kfd_ioctl_set_trap_handler_args", size = 24, {
    tba_addr @ 0, tma_addr @ 8, gpu_id @ 16, pad @ 20,
});

/// Argument of ACQUIRE_VM.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct AcquireVmArgs {
    /// To KFD, descriptor of the GPU's render node.
    pub drm_fd: u32,
    /// To KFD.
    pub gpu_id: GpuId,
}
abi_layout!(AcquireVmArgs = "kfd_ioctl_acquire_vm_args", size = 8, { drm_fd @ 0, gpu_id @ 4 });

/// Argument of SET_XNACK_MODE.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct SetXnackModeArgs {
    /// To KFD: negative asks, 0 disables, positive enables; from KFD: the mode now.
    pub xnack_enabled: i32,
}
abi_layout!(SetXnackModeArgs = "kfd_ioctl_set_xnack_mode_args", size = 4, { xnack_enabled @ 0 });

/// Argument of the removed DBG_REGISTER.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct DbgRegisterArgs {
    /// To KFD.
    pub gpu_id: GpuId,
    /// Zero.
    pub pad: u32,
}
abi_layout!(DbgRegisterArgs = "kfd_ioctl_dbg_register_args", size = 8, { gpu_id @ 0, pad @ 4 });

/// Argument of the removed DBG_UNREGISTER.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct DbgUnregisterArgs {
    /// To KFD.
    pub gpu_id: GpuId,
    /// Zero.
    pub pad: u32,
}
abi_layout!(DbgUnregisterArgs = "kfd_ioctl_dbg_unregister_args", size = 8, { gpu_id @ 0, pad @ 4 });

/// Argument of the removed DBG_ADDRESS_WATCH.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct DbgAddressWatchArgs {
    /// To KFD.
    pub content_ptr: u64,
    /// To KFD.
    pub gpu_id: GpuId,
    /// To KFD.
    pub buf_size_in_bytes: u32,
}
abi_layout!(DbgAddressWatchArgs = "kfd_ioctl_dbg_address_watch_args", size = 16, {
    content_ptr @ 0, gpu_id @ 8, buf_size_in_bytes @ 12,
});

/// Argument of the removed DBG_WAVE_CONTROL.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct DbgWaveControlArgs {
    /// To KFD.
    pub content_ptr: u64,
    /// To KFD.
    pub gpu_id: GpuId,
    /// To KFD.
    pub buf_size_in_bytes: u32,
}
abi_layout!(DbgWaveControlArgs = "kfd_ioctl_dbg_wave_control_args", size = 16, {
    content_ptr @ 0, gpu_id @ 8, buf_size_in_bytes @ 12,
});
