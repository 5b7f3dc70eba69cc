//! Exceptions, the runtime's side of debugging, and what snapshots hold. KFD 1.13 and later.

use crate::{GpuId, QueueId};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

constants! {
    /// Bit of a queue id after SUSPEND_QUEUES or RESUME_QUEUES: the hardware failed.
    pub const DBG_QUEUE_ERROR_BIT: u32 = 30, "KFD_DBG_QUEUE_ERROR_BIT";
    /// Bit of a queue id after it: unknown, new, or being destroyed.
    pub const DBG_QUEUE_INVALID_BIT: u32 = 31, "KFD_DBG_QUEUE_INVALID_BIT";
    /// Mask of [`DBG_QUEUE_ERROR_BIT`].
    pub const DBG_QUEUE_ERROR_MASK: u32 = 1 << 30, "KFD_DBG_QUEUE_ERROR_MASK";
    /// Mask of [`DBG_QUEUE_INVALID_BIT`].
    pub const DBG_QUEUE_INVALID_MASK: u32 = 1 << 31, "KFD_DBG_QUEUE_INVALID_MASK";
}

open_enum! {
    /// Code of an exception: of a queue below 32, of a device below 48, of a process above.
    pub struct ExceptionCode(u32);
    /// No exception.
    NONE = 0, "EC_NONE";
    /// A wave ran `s_trap 2`.
    QUEUE_WAVE_ABORT = 1, "EC_QUEUE_WAVE_ABORT";
    /// A wave ran another trap.
    QUEUE_WAVE_TRAP = 2, "EC_QUEUE_WAVE_TRAP";
    /// An arithmetic exception that the wave had enabled.
    QUEUE_WAVE_MATH_ERROR = 3, "EC_QUEUE_WAVE_MATH_ERROR";
    /// An instruction that the target does not have.
    QUEUE_WAVE_ILLEGAL_INSTRUCTION = 4, "EC_QUEUE_WAVE_ILLEGAL_INSTRUCTION";
    /// A memory violation in a wave, such as a misaligned atomic.
    QUEUE_WAVE_MEMORY_VIOLATION = 5, "EC_QUEUE_WAVE_MEMORY_VIOLATION";
    /// An access outside every aperture.
    QUEUE_WAVE_APERTURE_VIOLATION = 6, "EC_QUEUE_WAVE_APERTURE_VIOLATION";
    /// A dispatch packet with a bad dimension, grid or work-group size.
    QUEUE_PACKET_DISPATCH_DIM_INVALID = 16, "EC_QUEUE_PACKET_DISPATCH_DIM_INVALID";
    /// One that asks for more LDS than there is.
    QUEUE_PACKET_DISPATCH_GROUP_SEGMENT_SIZE_INVALID = 17,
        "EC_QUEUE_PACKET_DISPATCH_GROUP_SEGMENT_SIZE_INVALID";
    /// One whose kernel object is no address of one.
    QUEUE_PACKET_DISPATCH_CODE_INVALID = 18, "EC_QUEUE_PACKET_DISPATCH_CODE_INVALID";
    /// A packet with reserved bits set.
    QUEUE_PACKET_RESERVED = 19, "EC_QUEUE_PACKET_RESERVED";
    /// A packet of a type that is none.
    QUEUE_PACKET_UNSUPPORTED = 20, "EC_QUEUE_PACKET_UNSUPPORTED";
    /// A dispatch packet with a work-group that is too large.
    QUEUE_PACKET_DISPATCH_WORK_GROUP_SIZE_INVALID = 21,
        "EC_QUEUE_PACKET_DISPATCH_WORK_GROUP_SIZE_INVALID";
    /// One whose kernel needs more registers than there are.
    QUEUE_PACKET_DISPATCH_REGISTER_INVALID = 22, "EC_QUEUE_PACKET_DISPATCH_REGISTER_INVALID";
    /// A vendor packet of a format that is none.
    QUEUE_PACKET_VENDOR_UNSUPPORTED = 23, "EC_QUEUE_PACKET_VENDOR_UNSUPPORTED";
    /// The queue could not be preempted.
    QUEUE_PREEMPTION_ERROR = 30, "EC_QUEUE_PREEMPTION_ERROR";
    /// The queue was created.
    QUEUE_NEW = 31, "EC_QUEUE_NEW";
    /// A queue was destroyed.
    DEVICE_QUEUE_DELETE = 32, "EC_DEVICE_QUEUE_DELETE";
    /// A VM fault.
    DEVICE_MEMORY_VIOLATION = 33, "EC_DEVICE_MEMORY_VIOLATION";
    /// A RAS error.
    DEVICE_RAS_ERROR = 34, "EC_DEVICE_RAS_ERROR";
    /// The device stopped.
    DEVICE_FATAL_HALT = 35, "EC_DEVICE_FATAL_HALT";
    /// A device appeared.
    DEVICE_NEW = 36, "EC_DEVICE_NEW";
    /// The process enabled or disabled its runtime.
    PROCESS_RUNTIME = 48, "EC_PROCESS_RUNTIME";
    /// A device went away.
    PROCESS_DEVICE_REMOVE = 49, "EC_PROCESS_DEVICE_REMOVE";
    /// One past the last.
    MAX = 50, "EC_MAX";
}

impl ExceptionCode {
    /// The code's bit in exception masks and in the word at `err_payload_addr`; `None` for numbers
    /// that have no bit.
    #[must_use]
    #[doc(alias = "KFD_EC_MASK")]
    pub const fn mask(self) -> Option<u64> {
        match self.0 {
            1..=64 => Some(1 << (self.0 - 1)),
            _ => None,
        }
    }

    /// The codes in a mask, lowest first, unknown ones included.
    pub fn in_mask(mask: u64) -> impl Iterator<Item = Self> {
        (1..=64).map(Self).filter(move |code| code.mask().is_some_and(|bit| mask & bit != 0))
    }
}

/// Exceptions of a queue: codes 1 to 6, those of a packet, 30 and 31.
#[doc(alias = "KFD_EC_MASK_QUEUE")]
pub const EXCEPTION_MASK_QUEUE: u64 = 0x3f | EXCEPTION_MASK_PACKET | 0x3 << 29;
/// Exceptions of a device: codes 32 to 36.
#[doc(alias = "KFD_EC_MASK_DEVICE")]
pub const EXCEPTION_MASK_DEVICE: u64 = 0x1f << 31;
/// Exceptions of a process: codes 48 and 49.
#[doc(alias = "KFD_EC_MASK_PROCESS")]
pub const EXCEPTION_MASK_PROCESS: u64 = 0x3 << 47;
/// Exceptions of a queue that a packet caused: codes 16 to 23.
#[doc(alias = "KFD_EC_MASK_PACKET")]
pub const EXCEPTION_MASK_PACKET: u64 = 0xff << 15;

open_flags! {
    /// `mode_mask` of RUNTIME_ENABLE.
    pub struct RuntimeEnableMode(u32);
    /// Enable; disable without it.
    ENABLE = 1, "KFD_RUNTIME_ENABLE_MODE_ENABLE_MASK";
    /// Fill the trap temporaries when waves start.
    TTMP_SAVE = 2, "KFD_RUNTIME_ENABLE_MODE_TTMP_SAVE_MASK";
}

open_enum! {
    /// State of a process's runtime.
    pub struct RuntimeState(u32);
    /// Not enabled.
    DISABLED = 0, "DEBUG_RUNTIME_STATE_DISABLED";
    /// Enabled.
    ENABLED = 1, "DEBUG_RUNTIME_STATE_ENABLED";
    /// Enabled, but another process debugs the hardware.
    ENABLED_BUSY = 2, "DEBUG_RUNTIME_STATE_ENABLED_BUSY";
    /// Enabling failed.
    ENABLED_ERROR = 3, "DEBUG_RUNTIME_STATE_ENABLED_ERROR";
}

/// What a debugger learns of a process's runtime.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct RuntimeInfo {
    /// What the process passed to RUNTIME_ENABLE.
    pub r_debug: u64,
    /// The state.
    pub runtime_state: RuntimeState,
    /// Not 0 when the trap temporaries are filled.
    pub ttmp_setup: u32,
}
abi_layout!(RuntimeInfo = "kfd_runtime_info", size = 16, {
    r_debug @ 0, runtime_state @ 8, ttmp_setup @ 12,
});

/// Argument of RUNTIME_ENABLE.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct RuntimeEnableArgs {
    /// To KFD, an address for the debugger, or 0.
    pub r_debug: u64,
    /// To KFD.
    pub mode_mask: RuntimeEnableMode,
    /// From KFD by the header; 6.12 does not write it.
    pub capabilities_mask: u32,
}
abi_layout!(RuntimeEnableArgs = "kfd_ioctl_runtime_enable_args", size = 16, {
    r_debug @ 0, mode_mask @ 8, capabilities_mask @ 12,
});

/// One queue in a snapshot.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct QueueSnapshotEntry {
    /// Mask of exceptions.
    pub exception_status: u64,
    /// Address of the ring.
    pub ring_base_address: u64,
    /// Address of the write pointer.
    pub write_pointer_address: u64,
    /// Address of the read pointer.
    pub read_pointer_address: u64,
    /// Address of the save area.
    pub ctx_save_restore_address: u64,
    /// The queue.
    pub queue_id: QueueId,
    /// Its GPU.
    pub gpu_id: GpuId,
    /// Bytes.
    pub ring_size: u32,
    /// What its packets are.
    pub queue_type: crate::abi::QueueType,
    /// Bytes for one XCC.
    pub ctx_save_restore_area_size: u32,
    /// Zero.
    pub reserved: u32,
}
abi_layout!(QueueSnapshotEntry = "kfd_queue_snapshot_entry", size = 64, {
    exception_status @ 0, ring_base_address @ 8, write_pointer_address @ 16,
    read_pointer_address @ 24, ctx_save_restore_address @ 32, queue_id @ 40, gpu_id @ 44,
    ring_size @ 48, queue_type @ 52, ctx_save_restore_area_size @ 56, reserved @ 60,
});

/// One GPU in a snapshot.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct DbgDeviceInfoEntry {
    /// Mask of exceptions.
    pub exception_status: u64,
    /// As in [`ProcessDeviceApertures`](crate::abi::ProcessDeviceApertures).
    pub lds_base: u64,
    /// Inclusive.
    pub lds_limit: u64,
    /// As there.
    pub scratch_base: u64,
    /// Inclusive.
    pub scratch_limit: u64,
    /// As there.
    pub gpuvm_base: u64,
    /// Inclusive.
    pub gpuvm_limit: u64,
    /// The GPU.
    pub gpu_id: GpuId,
    /// PCI bus, device and function.
    pub location_id: u32,
    /// PCI vendor.
    pub vendor_id: u32,
    /// PCI device.
    pub device_id: u32,
    /// PCI revision.
    pub revision_id: u32,
    /// PCI subsystem vendor.
    pub subsystem_vendor_id: u32,
    /// PCI subsystem device.
    pub subsystem_device_id: u32,
    /// Compute firmware.
    pub fw_version: u32,
    /// major * 10000 + minor * 100 + stepping.
    pub gfx_target_version: u32,
    /// SIMDs.
    pub simd_count: u32,
    /// Waves of each SIMD.
    pub max_waves_per_simd: u32,
    /// Shader arrays.
    pub array_count: u32,
    /// Shader arrays of each shader engine.
    pub simd_arrays_per_engine: u32,
    /// XCCs.
    pub num_xcc: u32,
    /// As in the topology.
    pub capability: u32,
    /// As in the topology.
    pub debug_prop: u32,
}
abi_layout!(DbgDeviceInfoEntry = "kfd_dbg_device_info_entry", size = 120, {
    exception_status @ 0, lds_base @ 8, lds_limit @ 16, scratch_base @ 24, scratch_limit @ 32,
    gpuvm_base @ 40, gpuvm_limit @ 48, gpu_id @ 56, location_id @ 60, vendor_id @ 64,
    device_id @ 68, revision_id @ 72, subsystem_vendor_id @ 76, subsystem_device_id @ 80,
    fw_version @ 84, gfx_target_version @ 88, simd_count @ 92, max_waves_per_simd @ 96,
    array_count @ 100, simd_arrays_per_engine @ 104, num_xcc @ 108, capability @ 112,
    debug_prop @ 116,
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_yields_its_codes_in_order_and_unknown_bits_too() {
        let mask = ExceptionCode::QUEUE_WAVE_ABORT.mask().unwrap()
            | ExceptionCode::QUEUE_NEW.mask().unwrap()
            | 1 << 63;
        let codes: Vec<_> = ExceptionCode::in_mask(mask).collect();
        let expected =
            [ExceptionCode::QUEUE_WAVE_ABORT, ExceptionCode::QUEUE_NEW, ExceptionCode(64)];
        assert_eq!(codes, expected);
    }

    #[test]
    fn code_zero_and_codes_past_64_have_no_bit() {
        assert_eq!(ExceptionCode::NONE.mask(), None);
        assert_eq!(ExceptionCode(65).mask(), None);
    }
}
