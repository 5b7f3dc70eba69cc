//! What a kernel needs beyond its code and its caller's arguments, worked out once.

use crate::descriptor::{KernelDescriptor, KernelProperties};
use crate::kernarg::{ArgLayout, Hidden};

bitflags::bitflags! {
    /// Needs of a kernel, decided when the object is parsed and never changed: hidden arguments that
    /// it declares, and properties of its descriptor.
    ///
    /// A declared argument is a slot that must be written, with 0 where there is no such service;
    /// whether the kernel ever reads it cannot be told. An empty set is the ordinary kernel, for which
    /// a launcher needs nothing but grid and arguments.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct Needs: u16 {
        /// Declares hidden_printf_buffer: buffered printf.
        const PRINTF_BUFFER = 1 << 0;
        /// Declares hidden_hostcall_buffer: printf and malloc by host calls.
        const HOSTCALL_BUFFER = 1 << 1;
        /// Declares hidden_heap_v1: malloc on the device.
        const HEAP = 1 << 2;
        /// Declares hidden_multigrid_sync_arg: synchronisation of a grid.
        const MULTIGRID_SYNC = 1 << 3;
        /// Declares hidden_default_queue: enqueueing kernels from the device.
        const DEFAULT_QUEUE = 1 << 4;
        /// Declares hidden_completion_action: enqueueing kernels from the device.
        const COMPLETION_ACTION = 1 << 5;
        /// Reads the queue's `amd_queue_t`, by a hidden argument or in SGPRs.
        const QUEUE_PTR = 1 << 6;
        /// Reads the dispatch packet.
        const DISPATCH_PTR = 1 << 7;
        /// Reads the dispatch's number.
        const DISPATCH_ID = 1 << 8;
        /// Needs a stack of unknown size: its scratch size is only a floor.
        const DYNAMIC_STACK = 1 << 9;
        /// Declares a hidden argument that this crate does not know; it stays zero.
        const UNKNOWN_HIDDEN = 1 << 10;
    }
}

impl Needs {
    /// Services that the host gives while the kernel runs.
    pub const HOST_SERVICES: Self =
        Self::PRINTF_BUFFER.union(Self::HOSTCALL_BUFFER).union(Self::HEAP);

    pub(crate) fn of(
        arguments: &ArgLayout,
        descriptor: &KernelDescriptor,
        uses_dynamic_stack: bool,
        has_unknown_hidden: bool,
    ) -> Self {
        let declared = arguments.hidden().iter().map(|argument| match argument.kind {
            Hidden::PrintfBuffer => Self::PRINTF_BUFFER,
            Hidden::HostcallBuffer => Self::HOSTCALL_BUFFER,
            Hidden::HeapV1 => Self::HEAP,
            Hidden::MultigridSyncArg => Self::MULTIGRID_SYNC,
            Hidden::DefaultQueue => Self::DEFAULT_QUEUE,
            Hidden::CompletionAction => Self::COMPLETION_ACTION,
            Hidden::QueuePtr => Self::QUEUE_PTR,
            _ => Self::empty(),
        });
        let mut needs: Self = declared.collect();
        let properties = descriptor.properties;
        for (bit, need) in [
            (KernelProperties::QUEUE_PTR, Self::QUEUE_PTR),
            (KernelProperties::DISPATCH_PTR, Self::DISPATCH_PTR),
            (KernelProperties::DISPATCH_ID, Self::DISPATCH_ID),
        ] {
            needs.set(need, needs.contains(need) || properties.contains(bit));
        }
        needs.set(Self::DYNAMIC_STACK, uses_dynamic_stack);
        needs.set(Self::UNKNOWN_HIDDEN, has_unknown_hidden);
        needs
    }

    /// Names of the services and other needs, lower case, for reports.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        let all = [
            (Self::PRINTF_BUFFER, "printf buffer"),
            (Self::HOSTCALL_BUFFER, "hostcall"),
            (Self::HEAP, "heap"),
            (Self::MULTIGRID_SYNC, "multigrid sync"),
            (Self::DEFAULT_QUEUE, "default queue"),
            (Self::COMPLETION_ACTION, "completion action"),
            (Self::QUEUE_PTR, "queue pointer"),
            (Self::DISPATCH_PTR, "dispatch packet"),
            (Self::DISPATCH_ID, "dispatch id"),
            (Self::DYNAMIC_STACK, "dynamic stack"),
            (Self::UNKNOWN_HIDDEN, "unknown hidden argument"),
        ];
        all.into_iter().filter(move |(need, _)| self.contains(*need)).map(|(_, name)| name)
    }
}
