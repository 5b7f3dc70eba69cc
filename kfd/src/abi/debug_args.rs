//! Argument of DBG_TRAP: one operation each. KFD 1.13 and later.

use crate::GpuId;
use crate::QueueId;
use crate::abi::ExceptionCode;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

open_enum! {
    /// Operation of DBG_TRAP.
    pub struct DbgTrapOp(u32);
    /// Starts debugging.
    ENABLE = 0, "KFD_IOC_DBG_TRAP_ENABLE";
    /// Ends it.
    DISABLE = 1, "KFD_IOC_DBG_TRAP_DISABLE";
    /// Raises exceptions in the process.
    SEND_RUNTIME_EVENT = 2, "KFD_IOC_DBG_TRAP_SEND_RUNTIME_EVENT";
    /// Chooses the exceptions that the debugger gets.
    SET_EXCEPTIONS_ENABLED = 3, "KFD_IOC_DBG_TRAP_SET_EXCEPTIONS_ENABLED";
    /// Chooses the hardware exceptions that trap.
    SET_WAVE_LAUNCH_OVERRIDE = 4, "KFD_IOC_DBG_TRAP_SET_WAVE_LAUNCH_OVERRIDE";
    /// Chooses how waves start.
    SET_WAVE_LAUNCH_MODE = 5, "KFD_IOC_DBG_TRAP_SET_WAVE_LAUNCH_MODE";
    /// Saves the waves of queues.
    SUSPEND_QUEUES = 6, "KFD_IOC_DBG_TRAP_SUSPEND_QUEUES";
    /// Restores them.
    RESUME_QUEUES = 7, "KFD_IOC_DBG_TRAP_RESUME_QUEUES";
    /// Sets an address watch.
    SET_NODE_ADDRESS_WATCH = 8, "KFD_IOC_DBG_TRAP_SET_NODE_ADDRESS_WATCH";
    /// Clears it.
    CLEAR_NODE_ADDRESS_WATCH = 9, "KFD_IOC_DBG_TRAP_CLEAR_NODE_ADDRESS_WATCH";
    /// Sets flags.
    SET_FLAGS = 10, "KFD_IOC_DBG_TRAP_SET_FLAGS";
    /// Takes a pending exception.
    QUERY_DEBUG_EVENT = 11, "KFD_IOC_DBG_TRAP_QUERY_DEBUG_EVENT";
    /// Asks for details of one.
    QUERY_EXCEPTION_INFO = 12, "KFD_IOC_DBG_TRAP_QUERY_EXCEPTION_INFO";
    /// Lists queues.
    GET_QUEUE_SNAPSHOT = 13, "KFD_IOC_DBG_TRAP_GET_QUEUE_SNAPSHOT";
    /// Lists GPUs.
    GET_DEVICE_SNAPSHOT = 14, "KFD_IOC_DBG_TRAP_GET_DEVICE_SNAPSHOT";
}

open_enum! {
    /// How an override combines with what a kernel asks for.
    pub struct DbgTrapOverrideMode(u32);
    /// Added.
    OR = 0, "KFD_DBG_TRAP_OVERRIDE_OR";
    /// In its place.
    REPLACE = 1, "KFD_DBG_TRAP_OVERRIDE_REPLACE";
}

open_flags! {
    /// Hardware exceptions that trap.
    pub struct DbgTrapMask(u32);
    /// Invalid operation.
    FP_INVALID = 1, "KFD_DBG_TRAP_MASK_FP_INVALID";
    /// Denormal source.
    FP_INPUT_DENORMAL = 2, "KFD_DBG_TRAP_MASK_FP_INPUT_DENORMAL";
    /// Division by zero.
    FP_DIVIDE_BY_ZERO = 4, "KFD_DBG_TRAP_MASK_FP_DIVIDE_BY_ZERO";
    /// Overflow.
    FP_OVERFLOW = 8, "KFD_DBG_TRAP_MASK_FP_OVERFLOW";
    /// Underflow.
    FP_UNDERFLOW = 16, "KFD_DBG_TRAP_MASK_FP_UNDERFLOW";
    /// Inexact result.
    FP_INEXACT = 32, "KFD_DBG_TRAP_MASK_FP_INEXACT";
    /// Integer division by zero.
    INT_DIVIDE_BY_ZERO = 64, "KFD_DBG_TRAP_MASK_INT_DIVIDE_BY_ZERO";
    /// Address watch.
    DBG_ADDRESS_WATCH = 128, "KFD_DBG_TRAP_MASK_DBG_ADDRESS_WATCH";
    /// Memory violation.
    DBG_MEMORY_VIOLATION = 256, "KFD_DBG_TRAP_MASK_DBG_MEMORY_VIOLATION";
    /// Start of a wave.
    TRAP_ON_WAVE_START = 1 << 30, "KFD_DBG_TRAP_MASK_TRAP_ON_WAVE_START";
    /// End of a wave.
    TRAP_ON_WAVE_END = 1 << 31, "KFD_DBG_TRAP_MASK_TRAP_ON_WAVE_END";
}

open_enum! {
    /// How waves start.
    pub struct DbgTrapWaveLaunchMode(u32);
    /// Running.
    NORMAL = 0, "KFD_DBG_TRAP_WAVE_LAUNCH_MODE_NORMAL";
    /// Halted.
    HALT = 1, "KFD_DBG_TRAP_WAVE_LAUNCH_MODE_HALT";
    /// Trapping after each instruction.
    DEBUG = 3, "KFD_DBG_TRAP_WAVE_LAUNCH_MODE_DEBUG";
}

open_enum! {
    /// Accesses that an address watch catches.
    pub struct DbgTrapAddressWatchMode(u32);
    /// Loads.
    READ = 0, "KFD_DBG_TRAP_ADDRESS_WATCH_MODE_READ";
    /// Stores and atomics.
    NONREAD = 1, "KFD_DBG_TRAP_ADDRESS_WATCH_MODE_NONREAD";
    /// Atomics.
    ATOMIC = 2, "KFD_DBG_TRAP_ADDRESS_WATCH_MODE_ATOMIC";
    /// All.
    ALL = 3, "KFD_DBG_TRAP_ADDRESS_WATCH_MODE_ALL";
}

open_flags! {
    /// Flags of SET_FLAGS.
    pub struct DbgTrapFlags(u32);
    /// One memory operation in flight.
    SINGLE_MEM_OP = 1, "KFD_DBG_TRAP_FLAG_SINGLE_MEM_OP";
    /// One arithmetic operation in flight.
    SINGLE_ALU_OP = 2, "KFD_DBG_TRAP_FLAG_SINGLE_ALU_OP";
}

/// A member of the union in [`DbgTrapArgs`].
macro_rules! dbg_member {
    (
        $(#[$meta:meta])*
        $name:ident = $c_name:literal, size = $size:literal,
        { $($(#[$field_meta:meta])* $field:ident: $type:ty, @ $offset:literal;)+ }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
        #[repr(C)]
        pub struct $name { $($(#[$field_meta])* pub $field: $type,)+ }
        abi_layout!($name = $c_name, size = $size, { $($field @ $offset),+ });
    };
}

dbg_member! {
    /// Of ENABLE.
    DbgTrapEnableArgs = "kfd_ioctl_dbg_trap_enable_args", size = 24, {
        /// To KFD, exceptions that the debugger wants.
        exception_mask: u64, @ 0;
        /// To KFD, address of a [`RuntimeInfo`](crate::abi::RuntimeInfo).
        rinfo_ptr: u64, @ 8;
        /// To KFD, its bytes; from KFD, bytes that the kernel knows.
        rinfo_size: u32, @ 16;
        /// To KFD, gets a byte for each exception.
        dbg_fd: u32, @ 20;
    }
}
dbg_member! {
    /// Of SEND_RUNTIME_EVENT.
    DbgTrapSendRuntimeEventArgs = "kfd_ioctl_dbg_trap_send_runtime_event_args", size = 16, {
        /// To KFD, exceptions to raise.
        exception_mask: u64, @ 0;
        /// To KFD.
        gpu_id: GpuId, @ 8;
        /// To KFD.
        queue_id: QueueId, @ 12;
    }
}
dbg_member! {
    /// Of SET_EXCEPTIONS_ENABLED.
    DbgTrapSetExceptionsEnabledArgs = "kfd_ioctl_dbg_trap_set_exceptions_enabled_args", size = 8, {
        /// To KFD, exceptions that the debugger wants.
        exception_mask: u64, @ 0;
    }
}
dbg_member! {
    /// Of SET_WAVE_LAUNCH_OVERRIDE.
    DbgTrapSetWaveLaunchOverrideArgs =
        "kfd_ioctl_dbg_trap_set_wave_launch_override_args", size = 16, {
        /// To KFD.
        override_mode: DbgTrapOverrideMode, @ 0;
        /// To KFD, exceptions to enable; from KFD, those enabled before.
        enable_mask: DbgTrapMask, @ 4;
        /// To KFD, exceptions to check; from KFD, those supported.
        support_request_mask: DbgTrapMask, @ 8;
        /// Zero.
        pad: u32, @ 12;
    }
}
dbg_member! {
    /// Of SET_WAVE_LAUNCH_MODE.
    DbgTrapSetWaveLaunchModeArgs = "kfd_ioctl_dbg_trap_set_wave_launch_mode_args", size = 8, {
        /// To KFD.
        launch_mode: DbgTrapWaveLaunchMode, @ 0;
        /// Zero.
        pad: u32, @ 4;
    }
}
dbg_member! {
    /// Of SUSPEND_QUEUES. The ioctl returns how many were suspended.
    DbgTrapSuspendQueuesArgs = "kfd_ioctl_dbg_trap_suspend_queues_args", size = 24, {
        /// To KFD, exceptions to clear.
        exception_mask: u64, @ 0;
        /// To KFD, address of an array of [`QueueId`]; KFD sets bits in those that failed.
        queue_array_ptr: u64, @ 8;
        /// To KFD, entries in it.
        num_queues: u32, @ 16;
        /// To KFD, units of 1024 GPU clocks.
        grace_period: u32, @ 20;
    }
}
dbg_member! {
    /// Of RESUME_QUEUES. The ioctl returns how many were resumed.
    DbgTrapResumeQueuesArgs = "kfd_ioctl_dbg_trap_resume_queues_args", size = 16, {
        /// To KFD, address of an array of [`QueueId`]; KFD sets bits in those that failed.
        queue_array_ptr: u64, @ 0;
        /// To KFD, entries in it.
        num_queues: u32, @ 8;
        /// Zero.
        pad: u32, @ 12;
    }
}
dbg_member! {
    /// Of SET_NODE_ADDRESS_WATCH.
    DbgTrapSetNodeAddressWatchArgs = "kfd_ioctl_dbg_trap_set_node_address_watch_args", size = 24, {
        /// To KFD.
        address: u64, @ 0;
        /// To KFD.
        mode: DbgTrapAddressWatchMode, @ 8;
        /// To KFD.
        mask: u32, @ 12;
        /// To KFD.
        gpu_id: GpuId, @ 16;
        /// From KFD.
        id: u32, @ 20;
    }
}
dbg_member! {
    /// Of CLEAR_NODE_ADDRESS_WATCH.
    DbgTrapClearNodeAddressWatchArgs =
        "kfd_ioctl_dbg_trap_clear_node_address_watch_args", size = 8, {
        /// To KFD.
        gpu_id: GpuId, @ 0;
        /// To KFD.
        id: u32, @ 4;
    }
}
dbg_member! {
    /// Of SET_FLAGS.
    DbgTrapSetFlagsArgs = "kfd_ioctl_dbg_trap_set_flags_args", size = 8, {
        /// To KFD, flags to set; from KFD, those set before.
        flags: DbgTrapFlags, @ 0;
        /// Zero.
        pad: u32, @ 4;
    }
}
dbg_member! {
    /// Of QUERY_DEBUG_EVENT.
    DbgTrapQueryDebugEventArgs = "kfd_ioctl_dbg_trap_query_debug_event_args", size = 16, {
        /// To KFD, exceptions to clear; from KFD, those raised.
        exception_mask: u64, @ 0;
        /// From KFD.
        gpu_id: GpuId, @ 8;
        /// From KFD.
        queue_id: QueueId, @ 12;
    }
}
dbg_member! {
    /// Of QUERY_EXCEPTION_INFO.
    DbgTrapQueryExceptionInfoArgs = "kfd_ioctl_dbg_trap_query_exception_info_args", size = 24, {
        /// To KFD, address of a buffer.
        info_ptr: u64, @ 0;
        /// To KFD, its bytes; from KFD, bytes needed.
        info_size: u32, @ 8;
        /// To KFD, a GPU id or a queue id.
        source_id: u32, @ 12;
        /// To KFD.
        exception_code: ExceptionCode, @ 16;
        /// To KFD, not 0 to clear it.
        clear_exception: u32, @ 20;
    }
}
dbg_member! {
    /// Of GET_QUEUE_SNAPSHOT.
    DbgTrapQueueSnapshotArgs = "kfd_ioctl_dbg_trap_queue_snapshot_args", size = 24, {
        /// To KFD, exceptions to clear.
        exception_mask: u64, @ 0;
        /// To KFD, address of an array of [`QueueSnapshotEntry`](crate::abi::QueueSnapshotEntry).
        snapshot_buf_ptr: u64, @ 8;
        /// To KFD, entries in it; from KFD, queues there are.
        num_queues: u32, @ 16;
        /// To KFD, bytes between entries; from KFD, bytes filled in each.
        entry_size: u32, @ 20;
    }
}
dbg_member! {
    /// Of GET_DEVICE_SNAPSHOT.
    DbgTrapDeviceSnapshotArgs = "kfd_ioctl_dbg_trap_device_snapshot_args", size = 24, {
        /// To KFD, exceptions to clear.
        exception_mask: u64, @ 0;
        /// To KFD, address of an array of [`DbgDeviceInfoEntry`](crate::abi::DbgDeviceInfoEntry).
        snapshot_buf_ptr: u64, @ 8;
        /// To KFD, entries in it; from KFD, GPUs there are.
        num_devices: u32, @ 16;
        /// To KFD, bytes between entries; from KFD, bytes filled in each.
        entry_size: u32, @ 20;
    }
}

/// Argument of DBG_TRAP.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct DbgTrapArgs {
    /// To KFD, the process to debug.
    pub pid: u32,
    /// To KFD.
    pub op: DbgTrapOp,
    /// A union: see the accessors.
    pub payload: [u8; 24],
}
abi_layout!(
    DbgTrapArgs = "kfd_ioctl_dbg_trap_args", size = 32,
    { pid @ 0, op @ 4 },
    rust_only { payload @ 8 },
    members {
        "enable": DbgTrapEnableArgs, @ 8;
        "send_runtime_event": DbgTrapSendRuntimeEventArgs, @ 8;
        "set_exceptions_enabled": DbgTrapSetExceptionsEnabledArgs, @ 8;
        "launch_override": DbgTrapSetWaveLaunchOverrideArgs, @ 8;
        "launch_mode": DbgTrapSetWaveLaunchModeArgs, @ 8;
        "suspend_queues": DbgTrapSuspendQueuesArgs, @ 8;
        "resume_queues": DbgTrapResumeQueuesArgs, @ 8;
        "set_node_address_watch": DbgTrapSetNodeAddressWatchArgs, @ 8;
        "clear_node_address_watch": DbgTrapClearNodeAddressWatchArgs, @ 8;
        "set_flags": DbgTrapSetFlagsArgs, @ 8;
        "query_debug_event": DbgTrapQueryDebugEventArgs, @ 8;
        "query_exception_info": DbgTrapQueryExceptionInfoArgs, @ 8;
        "queue_snapshot": DbgTrapQueueSnapshotArgs, @ 8;
        "device_snapshot": DbgTrapDeviceSnapshotArgs, @ 8;
    },
);
union_members!(DbgTrapArgs.payload {
    /// Of ENABLE.
    enable / set_enable: DbgTrapEnableArgs;
    /// Of SEND_RUNTIME_EVENT.
    send_runtime_event / set_send_runtime_event: DbgTrapSendRuntimeEventArgs;
    /// Of SET_EXCEPTIONS_ENABLED.
    set_exceptions_enabled / set_set_exceptions_enabled: DbgTrapSetExceptionsEnabledArgs;
    /// Of SET_WAVE_LAUNCH_OVERRIDE.
    launch_override / set_launch_override: DbgTrapSetWaveLaunchOverrideArgs;
    /// Of SET_WAVE_LAUNCH_MODE.
    launch_mode / set_launch_mode: DbgTrapSetWaveLaunchModeArgs;
    /// Of SUSPEND_QUEUES.
    suspend_queues / set_suspend_queues: DbgTrapSuspendQueuesArgs;
    /// Of RESUME_QUEUES.
    resume_queues / set_resume_queues: DbgTrapResumeQueuesArgs;
    /// Of SET_NODE_ADDRESS_WATCH.
    set_node_address_watch / set_set_node_address_watch: DbgTrapSetNodeAddressWatchArgs;
    /// Of CLEAR_NODE_ADDRESS_WATCH.
    clear_node_address_watch / set_clear_node_address_watch: DbgTrapClearNodeAddressWatchArgs;
    /// Of SET_FLAGS.
    set_flags / set_set_flags: DbgTrapSetFlagsArgs;
    /// Of QUERY_DEBUG_EVENT.
    query_debug_event / set_query_debug_event: DbgTrapQueryDebugEventArgs;
    /// Of QUERY_EXCEPTION_INFO.
    query_exception_info / set_query_exception_info: DbgTrapQueryExceptionInfoArgs;
    /// Of GET_QUEUE_SNAPSHOT.
    queue_snapshot / set_queue_snapshot: DbgTrapQueueSnapshotArgs;
    /// Of GET_DEVICE_SNAPSHOT.
    device_snapshot / set_device_snapshot: DbgTrapDeviceSnapshotArgs;
});
