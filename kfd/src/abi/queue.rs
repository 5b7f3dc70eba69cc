//! Queues and what belongs to one: CU mask, saved waves, global wave sync.

use crate::{GpuId, QueueId};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

constants! {
    /// Largest low byte of `queue_percentage`. Bits 15:8 select the XCC of a PM4 queue.
    pub const MAX_QUEUE_PERCENTAGE: u32 = 100, "KFD_MAX_QUEUE_PERCENTAGE";
    /// Largest `queue_priority`.
    pub const MAX_QUEUE_PRIORITY: u32 = 15, "KFD_MAX_QUEUE_PRIORITY";
    /// Smallest ring in bytes; kernels that know it raise smaller sizes to it.
    pub const MIN_QUEUE_RING_SIZE: u32 = 1024, "KFD_MIN_QUEUE_RING_SIZE";
}

open_enum! {
    /// What a queue's packets are.
    pub struct QueueType(u32);
    /// PM4 compute.
    COMPUTE = 0, "KFD_IOC_QUEUE_TYPE_COMPUTE";
    /// SDMA on an engine for PCIe.
    SDMA = 1, "KFD_IOC_QUEUE_TYPE_SDMA";
    /// AQL compute.
    COMPUTE_AQL = 2, "KFD_IOC_QUEUE_TYPE_COMPUTE_AQL";
    /// SDMA on an engine for xGMI.
    SDMA_XGMI = 3, "KFD_IOC_QUEUE_TYPE_SDMA_XGMI";
    /// SDMA on the engine that `sdma_engine_id` names. KFD 1.17 and later.
    SDMA_BY_ENG_ID = 4, "KFD_IOC_QUEUE_TYPE_SDMA_BY_ENG_ID";
}

/// Argument of CREATE_QUEUE.
///
/// Always sent in this 96-byte form. Kernels before 1.17 know 88 bytes: the ioctl's number alone
/// selects it, they read what they know and hand the rest back untouched. So `sdma_engine_id` must be
/// gated on the version, never on an errno.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct CreateQueueArgs {
    /// To KFD.
    pub ring_base_address: u64,
    /// To KFD, address of the 64-bit write pointer.
    pub write_pointer_address: u64,
    /// To KFD, address of the 64-bit read pointer.
    pub read_pointer_address: u64,
    /// From KFD: mmap offset of the doorbell page, plus the doorbell's byte offset in it.
    pub doorbell_offset: u64,
    /// To KFD, bytes, a power of two.
    pub ring_size: u32,
    /// To KFD.
    pub gpu_id: GpuId,
    /// To KFD.
    pub queue_type: QueueType,
    /// To KFD; 0 creates the queue inactive.
    pub queue_percentage: u32,
    /// To KFD.
    pub queue_priority: u32,
    /// From KFD.
    pub queue_id: QueueId,
    /// To KFD.
    pub eop_buffer_address: u64,
    /// To KFD, bytes.
    pub eop_buffer_size: u64,
    /// To KFD.
    pub ctx_save_restore_address: u64,
    /// To KFD, bytes for one XCC, without the debugger's part.
    pub ctx_save_restore_size: u32,
    /// To KFD, bytes for one XCC.
    pub ctl_stack_size: u32,
    /// To KFD, with [`QueueType::SDMA_BY_ENG_ID`].
    pub sdma_engine_id: u32,
    /// Zero.
    pub pad: u32,
}
abi_layout!(CreateQueueArgs = "kfd_ioctl_create_queue_args", size = 96, {
    ring_base_address @ 0, write_pointer_address @ 8, read_pointer_address @ 16,
    doorbell_offset @ 24, ring_size @ 32, gpu_id @ 36, queue_type @ 40, queue_percentage @ 44,
    queue_priority @ 48, queue_id @ 52, eop_buffer_address @ 56, eop_buffer_size @ 64,
    ctx_save_restore_address @ 72, ctx_save_restore_size @ 80, ctl_stack_size @ 84,
    sdma_engine_id @ 88, pad @ 92,
});

/// Argument of DESTROY_QUEUE.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct DestroyQueueArgs {
    /// To KFD.
    pub queue_id: QueueId,
    /// Zero.
    pub pad: u32,
}
abi_layout!(DestroyQueueArgs = "kfd_ioctl_destroy_queue_args", size = 8, {
    queue_id @ 0, pad @ 4,
});

/// Argument of UPDATE_QUEUE. All four values replace the queue's.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct UpdateQueueArgs {
    /// To KFD; 0 deactivates.
    pub ring_base_address: u64,
    /// To KFD.
    pub queue_id: QueueId,
    /// To KFD, bytes.
    pub ring_size: u32,
    /// To KFD; 0 deactivates.
    pub queue_percentage: u32,
    /// To KFD.
    pub queue_priority: u32,
}
abi_layout!(UpdateQueueArgs = "kfd_ioctl_update_queue_args", size = 24, {
    ring_base_address @ 0, queue_id @ 8, ring_size @ 12, queue_percentage @ 16, queue_priority @ 20,
});

/// Argument of SET_CU_MASK.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct SetCuMaskArgs {
    /// To KFD.
    pub queue_id: QueueId,
    /// To KFD, bits in the mask, a multiple of 32.
    pub num_cu_mask: u32,
    /// To KFD, address of the mask.
    pub cu_mask_ptr: u64,
}
abi_layout!(SetCuMaskArgs = "kfd_ioctl_set_cu_mask_args", size = 16, {
    queue_id @ 0, num_cu_mask @ 4, cu_mask_ptr @ 8,
});

/// Argument of GET_QUEUE_WAVE_STATE.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct GetQueueWaveStateArgs {
    /// To KFD.
    pub ctl_stack_address: u64,
    /// From KFD, bytes.
    pub ctl_stack_used_size: u32,
    /// From KFD, bytes.
    pub save_area_used_size: u32,
    /// To KFD.
    pub queue_id: QueueId,
    /// Zero.
    pub pad: u32,
}
abi_layout!(GetQueueWaveStateArgs = "kfd_ioctl_get_queue_wave_state_args", size = 24, {
    ctl_stack_address @ 0, ctl_stack_used_size @ 8, save_area_used_size @ 12, queue_id @ 16,
    pad @ 20,
});

/// Argument of ALLOC_QUEUE_GWS.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct AllocQueueGwsArgs {
    /// To KFD.
    pub queue_id: QueueId,
    /// To KFD; 0 releases, anything else claims all.
    pub num_gws: u32,
    /// From KFD.
    pub first_gws: u32,
    /// Zero.
    pub pad: u32,
}
abi_layout!(AllocQueueGwsArgs = "kfd_ioctl_alloc_queue_gws_args", size = 16, {
    queue_id @ 0, num_gws @ 4, first_gws @ 8, pad @ 12,
});

/// Header at the start of each XCC's save area.
///
/// The driver fills the debug and error fields; the kernel the rest when it saves waves.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct ContextSaveAreaHeader {
    /// Bytes from the header.
    pub control_stack_offset: u32,
    /// Bytes.
    pub control_stack_size: u32,
    /// Bytes from the header.
    pub wave_state_offset: u32,
    /// Bytes.
    pub wave_state_size: u32,
    /// Bytes from the header to the debugger's part.
    pub debug_offset: u32,
    /// Bytes.
    pub debug_size: u32,
    /// Address of the word that gets the queue's exception bits.
    pub err_payload_addr: u64,
    /// Event that the kernel sets with them, or 0.
    pub err_event_id: crate::EventId,
    /// Zero.
    pub reserved1: u32,
}
abi_layout!(ContextSaveAreaHeader = "kfd_context_save_area_header", size = 40, {
    control_stack_offset as "wave_state.control_stack_offset" @ 0,
    control_stack_size as "wave_state.control_stack_size" @ 4,
    wave_state_offset as "wave_state.wave_state_offset" @ 8,
    wave_state_size as "wave_state.wave_state_size" @ 12,
    debug_offset @ 16, debug_size @ 20, err_payload_addr @ 24, err_event_id @ 32, reserved1 @ 36,
});
