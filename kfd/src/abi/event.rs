//! Events: creation, waiting, and what a fired event tells.

use crate::{EventId, GpuId};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

constants! {
    /// Slots of 8 bytes in the event page; slot 0 is never used.
    pub const SIGNAL_EVENT_LIMIT: u32 = 4096, "KFD_SIGNAL_EVENT_LIMIT";
}

/// Bytes of the event page: [`SIGNAL_EVENT_LIMIT`] slots.
pub const EVENT_PAGE_BYTES: u64 = 8 * SIGNAL_EVENT_LIMIT as u64;

/// Content of an event slot that has not fired.
///
/// # Source
/// drivers/gpu/drm/amd/amdkfd/kfd_events.c, `UNSIGNALED_EVENT_SLOT`, Linux 6.12.117.
pub const UNSIGNALED_EVENT_SLOT: u64 = u64::MAX;

/// First id of events that own no slot (every type but signal and debug).
///
/// # Source
/// drivers/gpu/drm/amd/amdkfd/kfd_events.h, `KFD_FIRST_NONSIGNAL_EVENT_ID`, Linux 6.12.117.
pub const FIRST_NONSIGNAL_EVENT_ID: u32 = 0x4000_0000;

/// `timeout` of WAIT_EVENTS that never passes.
///
/// # Source
/// drivers/gpu/drm/amd/amdkfd/kfd_events.h, `KFD_EVENT_TIMEOUT_INFINITE`, Linux 6.12.117.
pub const TIMEOUT_INFINITE: u32 = 0xffff_ffff;

open_enum! {
    /// What an event reports. KFD accepts any value; those without meaning never fire.
    pub struct EventType(u32);
    /// A word that the GPU wrote into the event page, and an interrupt.
    SIGNAL = 0, "KFD_IOC_EVENT_SIGNAL";
    /// Never fires.
    NODECHANGE = 1, "KFD_IOC_EVENT_NODECHANGE";
    /// Never fires.
    DEVICESTATECHANGE = 2, "KFD_IOC_EVENT_DEVICESTATECHANGE";
    /// GPU reset, RAS poison.
    HW_EXCEPTION = 3, "KFD_IOC_EVENT_HW_EXCEPTION";
    /// Never fires.
    SYSTEM_EVENT = 4, "KFD_IOC_EVENT_SYSTEM_EVENT";
    /// As a signal, but the CPU cannot set it.
    DEBUG_EVENT = 5, "KFD_IOC_EVENT_DEBUG_EVENT";
    /// Never fires.
    PROFILE_EVENT = 6, "KFD_IOC_EVENT_PROFILE_EVENT";
    /// Never fires.
    QUEUE_EVENT = 7, "KFD_IOC_EVENT_QUEUE_EVENT";
    /// A GPU access that has no translation or no permission.
    MEMORY = 8, "KFD_IOC_EVENT_MEMORY";
}

open_enum! {
    /// How WAIT_EVENTS ended.
    pub struct WaitResult(u32);
    /// The events that were asked for fired.
    COMPLETE = 0, "KFD_IOC_WAIT_RESULT_COMPLETE";
    /// Time ran out. The ioctl itself succeeds.
    TIMEOUT = 1, "KFD_IOC_WAIT_RESULT_TIMEOUT";
    /// An event was destroyed.
    FAIL = 2, "KFD_IOC_WAIT_RESULT_FAIL";
}

open_enum! {
    /// Extent of a reset.
    pub struct ResetType(u32);
    /// The whole GPU.
    WHOLE_GPU = 0, "KFD_HW_EXCEPTION_WHOLE_GPU_RESET";
    /// One engine.
    PER_ENGINE = 1, "KFD_HW_EXCEPTION_PER_ENGINE_RESET";
}

open_enum! {
    /// Cause of a reset.
    pub struct ResetCause(u32);
    /// A hang.
    GPU_HANG = 0, "KFD_HW_EXCEPTION_GPU_HANG";
    /// A memory error that could not be corrected.
    ECC = 1, "KFD_HW_EXCEPTION_ECC";
}

open_enum! {
    /// Whether a memory exception has a cause other than the access itself.
    pub struct MemoryErrorType(u32);
    /// No.
    NO_RAS = 0, "KFD_MEM_ERR_NO_RAS";
    /// SRAM ECC error.
    SRAM_ECC = 1, "KFD_MEM_ERR_SRAM_ECC";
    /// Poisoned memory was read.
    POISON_CONSUMED = 2, "KFD_MEM_ERR_POISON_CONSUMED";
    /// A hang without specific cause.
    GPU_HANG = 3, "KFD_MEM_ERR_GPU_HANG";
}

/// Argument of CREATE_EVENT.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct CreateEventArgs {
    /// To KFD, in the process's first call: handle of the memory for the event page, or 0; from KFD:
    /// mmap offset of the page for signal and debug events, else 0.
    pub event_page_offset: u64,
    /// From KFD: what an interrupt must carry to name the event.
    pub event_trigger_data: u32,
    /// To KFD.
    pub event_type: EventType,
    /// To KFD: not 0 when a satisfied wait resets the event.
    pub auto_reset: u32,
    /// To KFD.
    pub node_id: u32,
    /// From KFD.
    pub event_id: EventId,
    /// From KFD.
    pub event_slot_index: u32,
}
abi_layout!(CreateEventArgs = "kfd_ioctl_create_event_args", size = 32, {
    event_page_offset @ 0, event_trigger_data @ 8, event_type @ 12, auto_reset @ 16, node_id @ 20,
    event_id @ 24, event_slot_index @ 28,
});

/// Argument of DESTROY_EVENT.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct DestroyEventArgs {
    /// To KFD.
    pub event_id: EventId,
    /// Zero.
    pub pad: u32,
}
abi_layout!(DestroyEventArgs = "kfd_ioctl_destroy_event_args", size = 8, {
    event_id @ 0, pad @ 4,
});

/// Argument of SET_EVENT.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct SetEventArgs {
    /// To KFD.
    pub event_id: EventId,
    /// Zero.
    pub pad: u32,
}
abi_layout!(SetEventArgs = "kfd_ioctl_set_event_args", size = 8, { event_id @ 0, pad @ 4 });

/// Argument of RESET_EVENT.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct ResetEventArgs {
    /// To KFD.
    pub event_id: EventId,
    /// Zero.
    pub pad: u32,
}
abi_layout!(ResetEventArgs = "kfd_ioctl_reset_event_args", size = 8, { event_id @ 0, pad @ 4 });

/// Why an access failed; each is 0 or 1.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct MemoryExceptionFailure {
    /// No page there, or not for user code.
    pub not_present: u32,
    /// A write to a read-only page.
    pub read_only: u32,
    /// Execution of a page that is not executable; never set on gfx9 and later.
    pub no_execute: u32,
    /// The address is not exact.
    pub imprecise: u32,
}
abi_layout!(MemoryExceptionFailure = "kfd_memory_exception_failure", size = 16, {
    not_present as "NotPresent" @ 0, read_only as "ReadOnly" @ 4, no_execute as "NoExecute" @ 8,
    imprecise @ 12,
});

/// What a memory exception event tells.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct HsaMemoryExceptionData {
    /// The cause.
    pub failure: MemoryExceptionFailure,
    /// Address of the page.
    pub va: u64,
    /// The GPU.
    pub gpu_id: GpuId,
    /// Whether it was a memory error.
    pub error_type: MemoryErrorType,
}
abi_layout!(HsaMemoryExceptionData = "kfd_hsa_memory_exception_data", size = 32, {
    failure @ 0, va @ 16, gpu_id @ 24, error_type as "ErrorType" @ 28,
});

/// What a hardware exception event tells.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct HsaHwExceptionData {
    /// Extent of the reset.
    pub reset_type: ResetType,
    /// Its cause.
    pub reset_cause: ResetCause,
    /// Not 0 when the content of VRAM is lost.
    pub memory_lost: u32,
    /// The GPU.
    pub gpu_id: GpuId,
}
abi_layout!(HsaHwExceptionData = "kfd_hsa_hw_exception_data", size = 16, {
    reset_type @ 0, reset_cause @ 4, memory_lost @ 8, gpu_id @ 12,
});

/// Age of a signal event. KFD 1.14 and later.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct HsaSignalEventData {
    /// To KFD: the age last seen, or 0 not to compare; from KFD: the age now.
    pub last_event_age: u64,
}
abi_layout!(HsaSignalEventData = "kfd_hsa_signal_event_data", size = 8, { last_event_age @ 0 });

/// One event in WAIT_EVENTS.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct EventData {
    /// A union: see the accessors. Written by KFD only if the event fired.
    pub payload: [u8; 32],
    /// Not used.
    pub kfd_event_data_ext: u64,
    /// To KFD.
    pub event_id: EventId,
    /// Zero.
    pub pad: u32,
}
abi_layout!(
    EventData = "kfd_event_data", size = 48,
    { kfd_event_data_ext @ 32, event_id @ 40, pad @ 44 },
    rust_only { payload @ 0 },
    members {
        "memory_exception_data": HsaMemoryExceptionData, @ 0;
        "hw_exception_data": HsaHwExceptionData, @ 0;
        "signal_event_data": HsaSignalEventData, @ 0;
    },
);
union_members!(EventData.payload {
    /// The payload of a memory exception event.
    memory_exception_data / set_memory_exception_data: HsaMemoryExceptionData;
    /// The payload of a hardware exception event.
    hw_exception_data / set_hw_exception_data: HsaHwExceptionData;
    /// The payload of a signal event.
    signal_event_data / set_signal_event_data: HsaSignalEventData;
});

/// Argument of WAIT_EVENTS.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct WaitEventsArgs {
    /// To KFD, address of an array of [`EventData`].
    pub events_ptr: u64,
    /// To KFD, entries in the array.
    pub num_events: u32,
    /// To KFD, not 0 to wait for all of them.
    pub wait_for_all: u32,
    /// To KFD, ms: 0 polls, [`TIMEOUT_INFINITE`] waits for ever; from KFD after `EINTR`: what is left.
    pub timeout: u32,
    /// From KFD.
    pub wait_result: WaitResult,
}
abi_layout!(WaitEventsArgs = "kfd_ioctl_wait_events_args", size = 24, {
    events_ptr @ 0, num_events @ 8, wait_for_all @ 12, timeout @ 16, wait_result @ 20,
});
