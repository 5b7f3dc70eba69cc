//! System management events: a descriptor that yields lines of text.

use crate::GpuId;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

constants! {
    /// Longest line in bytes.
    pub const SMI_EVENT_MSG_SIZE: usize = 96, "KFD_SMI_EVENT_MSG_SIZE";
}

open_enum! {
    /// Number at the start of a line.
    pub struct SmiEvent(u32);
    /// Not used.
    NONE = 0, "KFD_SMI_EVENT_NONE";
    /// A VM fault.
    VMFAULT = 1, "KFD_SMI_EVENT_VMFAULT";
    /// The GPU runs slower to cool down.
    THERMAL_THROTTLE = 2, "KFD_SMI_EVENT_THERMAL_THROTTLE";
    /// A reset begins.
    GPU_PRE_RESET = 3, "KFD_SMI_EVENT_GPU_PRE_RESET";
    /// A reset ended.
    GPU_POST_RESET = 4, "KFD_SMI_EVENT_GPU_POST_RESET";
    /// SVM pages begin to move.
    MIGRATE_START = 5, "KFD_SMI_EVENT_MIGRATE_START";
    /// SVM pages moved.
    MIGRATE_END = 6, "KFD_SMI_EVENT_MIGRATE_END";
    /// A recoverable page fault.
    PAGE_FAULT_START = 7, "KFD_SMI_EVENT_PAGE_FAULT_START";
    /// Its recovery.
    PAGE_FAULT_END = 8, "KFD_SMI_EVENT_PAGE_FAULT_END";
    /// Queues were stopped.
    QUEUE_EVICTION = 9, "KFD_SMI_EVENT_QUEUE_EVICTION";
    /// Queues run again.
    QUEUE_RESTORE = 10, "KFD_SMI_EVENT_QUEUE_RESTORE";
    /// SVM pages were unmapped from the GPU.
    UNMAP_FROM_GPU = 11, "KFD_SMI_EVENT_UNMAP_FROM_GPU";
    /// Not an event: asks for the events of all processes, for the superuser.
    ALL_PROCESS = 64, "KFD_SMI_EVENT_ALL_PROCESS";
}

impl SmiEvent {
    /// The event's bit in the mask that enables it, or `None` for numbers that have none.
    #[must_use]
    pub const fn mask(self) -> Option<u64> {
        match self.0 {
            1..=64 => Some(1 << (self.0 - 1)),
            _ => None,
        }
    }
}

open_enum! {
    /// Why SVM pages move.
    pub struct MigrateTrigger(u32);
    /// A prefetch.
    PREFETCH = 0, "KFD_MIGRATE_TRIGGER_PREFETCH";
    /// A fault on the GPU.
    PAGEFAULT_GPU = 1, "KFD_MIGRATE_TRIGGER_PAGEFAULT_GPU";
    /// A fault on the CPU.
    PAGEFAULT_CPU = 2, "KFD_MIGRATE_TRIGGER_PAGEFAULT_CPU";
    /// VRAM was needed.
    TTM_EVICTION = 3, "KFD_MIGRATE_TRIGGER_TTM_EVICTION";
}

open_enum! {
    /// Why queues were stopped.
    pub struct QueueEvictionTrigger(u32);
    /// SVM pages move.
    SVM = 0, "KFD_QUEUE_EVICTION_TRIGGER_SVM";
    /// Userptr pages move.
    USERPTR = 1, "KFD_QUEUE_EVICTION_TRIGGER_USERPTR";
    /// VRAM was needed.
    TTM = 2, "KFD_QUEUE_EVICTION_TRIGGER_TTM";
    /// The GPU is suspended.
    SUSPEND = 3, "KFD_QUEUE_EVICTION_TRIGGER_SUSPEND";
    /// The process is checkpointed.
    CRIU_CHECKPOINT = 4, "KFD_QUEUE_EVICTION_CRIU_CHECKPOINT";
    /// The process is restored.
    CRIU_RESTORE = 5, "KFD_QUEUE_EVICTION_CRIU_RESTORE";
}

open_enum! {
    /// Why SVM pages were unmapped from the GPU.
    pub struct SvmUnmapTrigger(u32);
    /// The CPU moved the pages.
    MMU_NOTIFY = 0, "KFD_SVM_UNMAP_TRIGGER_MMU_NOTIFY";
    /// They migrate.
    MMU_NOTIFY_MIGRATE = 1, "KFD_SVM_UNMAP_TRIGGER_MMU_NOTIFY_MIGRATE";
    /// The CPU unmapped them.
    UNMAP_FROM_CPU = 2, "KFD_SVM_UNMAP_TRIGGER_UNMAP_FROM_CPU";
}

/// Argument of SMI_EVENTS. KFD 1.3 and later.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct SmiEventsArgs {
    /// To KFD.
    pub gpuid: GpuId,
    /// From KFD.
    pub anon_fd: u32,
}
abi_layout!(SmiEventsArgs = "kfd_ioctl_smi_events_args", size = 8, { gpuid @ 0, anon_fd @ 4 });
