//! Why a call failed.

use std::fmt;
use std::sync::Arc;

use pm4::GpuAddr;

use crate::access::AccessProblem;
use crate::ids::{EventId, GpuId, KfdVersion, MemHandle, QueueId};
use crate::queue::QueueKind;
use crate::sys::Errno;

/// Shorthand for results of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What a failed call was about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Object {
    /// The process as a whole.
    Process,
    /// A GPU.
    Gpu(GpuId),
    /// Memory.
    Memory {
        /// KFD's handle; 0 before there is one.
        handle: MemHandle,
        /// Address.
        addr: GpuAddr,
        /// Size.
        bytes: u64,
    },
    /// An event.
    Event(EventId),
    /// A queue.
    Queue(QueueId),
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process => f.write_str("the process"),
            Self::Gpu(id) => write!(f, "GPU {id}"),
            Self::Memory { handle, addr, bytes } => {
                write!(f, "memory {:#x}, {bytes} bytes at {addr}", handle.0)
            }
            Self::Event(id) => write!(f, "event {id}"),
            Self::Queue(id) => write!(f, "queue {id}"),
        }
    }
}

/// Sizes handed to CREATE_QUEUE, for comparison with what the kernel expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueSizes {
    /// Ring, bytes.
    pub ring_bytes: u64,
    /// End-of-pipe buffer, bytes.
    pub eop_bytes: u64,
    /// `ctx_save_restore_size`, bytes.
    pub save_bytes: u32,
    /// `ctl_stack_size`, bytes.
    pub ctl_stack_bytes: u32,
    /// Mapping of the save area, bytes, debugger memory included.
    pub save_area_bytes: u64,
    /// Whether the kernel published the save and stack sizes; otherwise they were computed.
    pub published: bool,
}

impl fmt::Display for QueueSizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let origin = if self.published { "published by the kernel" } else { "computed" };
        write!(
            f,
            "ring {:#x}, eop {:#x}, save {:#x}, control stack {:#x} ({origin}), save area {:#x} bytes",
            self.ring_bytes,
            self.eop_bytes,
            self.save_bytes,
            self.ctl_stack_bytes,
            self.save_area_bytes
        )
    }
}

/// Why a driver call failed.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The device cannot be used; says why and what to do.
    #[error(transparent)]
    Access(#[from] AccessProblem),
    /// No GPU is usable; one problem for each that is there.
    #[error("no usable GPU: {}", list(.0))]
    NoUsableGpu(Vec<AccessProblem>),
    /// The running KFD has an interface this driver does not know.
    #[error("KFD {found} has an unknown major version: this driver supports {supported}.x")]
    UnknownMajor {
        /// What the kernel answered.
        found: KfdVersion,
        /// The major version this driver knows.
        supported: u32,
    },
    /// The running KFD is older than a feature needs.
    #[error("KFD {found} is older than {needed}, which {feature} needs")]
    KfdTooOld {
        /// The feature.
        feature: &'static str,
        /// First version that has it.
        needed: KfdVersion,
        /// The running version.
        found: KfdVersion,
    },
    /// A GPU lacks what a call needs.
    #[error("GPU {gpu} cannot do it: {missing}")]
    Unsupported {
        /// The GPU.
        gpu: GpuId,
        /// What is missing.
        missing: &'static str,
    },
    /// The topology lacks a fact about a GPU, or has 0 for it.
    #[error("the topology does not say of GPU {gpu}: {property}")]
    MissingProperty {
        /// The GPU.
        gpu: GpuId,
        /// The property.
        property: &'static str,
    },
    /// The kernel refused an ioctl.
    #[error("KFD ioctl {name} failed for {on}{}", hint(.name, *.errno))]
    Ioctl {
        /// The ioctl, without prefix.
        name: &'static str,
        /// What it was about.
        on: Object,
        /// Why.
        #[source]
        errno: Errno,
    },
    /// There are as many queues as can be, in this process or in all. Use those there are.
    #[error(
        "KFD ioctl CREATE_QUEUE failed for GPU {gpu}: no hardware queue is left for {kind}, this process has {in_use} of {}",
        limit.map_or_else(|| "an unknown number".to_owned(), |limit| limit.to_string())
    )]
    QueueLimit {
        /// The GPU.
        gpu: GpuId,
        /// What was asked for.
        kind: QueueKind,
        /// Queues of that sort this process has on the GPU, through this `Kfd`: all compute queues,
        /// or the SDMA queues of the same choice of engine.
        in_use: u32,
        /// How many there can be: compute queues of a process; SDMA queues of all processes.
        limit: Option<u32>,
        /// Why.
        #[source]
        errno: Errno,
    },
    /// The kernel refused a queue.
    #[error("KFD ioctl CREATE_QUEUE failed for GPU {gpu}: {kind}, {sizes}{}", hint("CREATE_QUEUE", *.errno))]
    CreateQueue {
        /// The GPU.
        gpu: GpuId,
        /// What was asked for.
        kind: QueueKind,
        /// What was asked for.
        sizes: QueueSizes,
        /// Why.
        #[source]
        errno: Errno,
    },
    /// The kernel refused a call other than an ioctl.
    #[error("{call} failed for {what}")]
    System {
        /// The call.
        call: &'static str,
        /// What it was about.
        what: String,
        /// Why.
        #[source]
        errno: Errno,
    },
    /// The kernel's answer makes no sense.
    #[error("{call} answered nonsense: {what} is {value:#x}")]
    Nonsense {
        /// The call.
        call: &'static str,
        /// The field.
        what: &'static str,
        /// Its value.
        value: u64,
    },
    /// No address range is left that both CPU and GPU can use.
    #[error("no address range of {bytes} bytes is left for CPU and GPU")]
    OutOfAddressSpace {
        /// Size asked for.
        bytes: u64,
    },
    /// An argument cannot be right.
    #[error("{call}: {what} cannot be {value:#x}")]
    InvalidArgument {
        /// The method.
        call: &'static str,
        /// The argument and its rule.
        what: &'static str,
        /// Its value.
        value: u64,
    },
    /// An access outside a buffer.
    #[error("{bytes} bytes at offset {offset:#x} are outside a buffer of {length:#x} bytes")]
    OutOfBounds {
        /// Offset, bytes.
        offset: u64,
        /// Size of the access, bytes.
        bytes: u64,
        /// Size of the buffer, bytes.
        length: u64,
    },
    /// A word access at an address that is not a multiple of its size.
    #[error("offset {offset:#x} is not a multiple of {align}")]
    Misaligned {
        /// Offset, bytes.
        offset: u64,
        /// Needed alignment, bytes.
        align: u64,
    },
    /// The CPU has no mapping of this memory.
    #[error(
        "the memory at {addr} has no CPU access: allocate it as CPU-visible, or copy on the GPU"
    )]
    NoCpuAccess {
        /// Address.
        addr: GpuAddr,
    },
    /// A kernel needs more private memory than the queue has.
    #[error(
        "queue {queue} has {available} bytes of private memory a work-item, the kernel needs {needed}: reserve it first"
    )]
    ScratchTooSmall {
        /// The queue.
        queue: QueueId,
        /// Bytes per work-item the packet asks for.
        needed: u32,
        /// Bytes per work-item the queue has.
        available: u32,
    },
    /// The ring of a queue refused a packet, or broke its rules. A slot is a packet of an AQL queue
    /// and a dword of any other; the positions of an SDMA queue are in bytes.
    #[error("ring of queue {queue}")]
    Ring {
        /// The queue.
        queue: QueueId,
        /// Why.
        #[source]
        cause: aql::Error,
    },
    /// PM4 packets do not fit the room they were given, or are none.
    #[error("packets for queue {queue}")]
    Pm4 {
        /// The queue.
        queue: QueueId,
        /// Why.
        #[source]
        cause: pm4::Error,
    },
    /// SDMA packets do not fit the room they were given, or are none.
    #[error("packets for queue {queue}")]
    Sdma {
        /// The queue.
        queue: QueueId,
        /// Why.
        #[source]
        cause: pm4::sdma::Error,
    },
    /// The device was opened before this process was forked. Its handles can only be dropped here.
    #[error("the device belongs to the process that this one was forked from: open it anew")]
    Inherited,
    /// The wait ended at its bound.
    #[error("time ran out: {0}")]
    Timeout(Arc<crate::report::HangReport>),
    /// The GPU faulted: nothing of this process runs on it any more.
    #[error("{0}")]
    DeviceLost(Arc<crate::report::FaultReport>),
    /// The queue stopped for good; other queues go on.
    #[error("{0}")]
    QueueLost(Arc<crate::report::QueueFault>),
}

impl Error {
    /// Whether it is a full ring: nothing was done, and it may be tried again later.
    pub const fn is_full(&self) -> bool {
        matches!(self, Self::Ring { cause: aql::Error::Full { .. }, .. })
    }
}

fn list(problems: &[AccessProblem]) -> String {
    if problems.is_empty() {
        return "the topology lists none".to_owned();
    }
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// What usually causes this answer, and what to do. Source: docs/ABI.md §ioctl, §Queues, §Memory.
fn hint(name: &str, errno: Errno) -> &'static str {
    match (name, errno) {
        ("ACQUIRE_VM", Errno::BUSY) => {
            " (another descriptor of this process already holds the GPU: share one Kfd)"
        }
        ("ACQUIRE_VM", Errno::INVAL) => {
            " (the render node belongs to another process's compute context)"
        }
        ("CREATE_EVENT", Errno::INVAL) => {
            " (another Kfd of this process may own the event page: share one Kfd)"
        }
        ("CREATE_EVENT", Errno::NOSPC) => " (all event slots are in use)",
        ("ALLOC_MEMORY_OF_GPU", Errno::NOMEM) => " (out of GPU memory)",
        ("MAP_MEMORY_TO_GPU", Errno::INVAL) => {
            " (address in use, or the GPUs cannot reach each other's memory)"
        }
        ("UNMAP_MEMORY_FROM_GPU" | "FREE_MEMORY_OF_GPU", Errno::BUSY) => " (a queue still uses it)",
        ("CREATE_QUEUE", Errno::INVAL) => {
            " (invalid queue parameters: the kernel expects other sizes)"
        }
        ("SET_XNACK_MODE", Errno::BUSY) => " (set it before the first queue)",
        (_, Errno::BADF) => {
            " (only the process that opened the device can use it: a forked child opens its own)"
        }
        (_, Errno::IO) => " (the GPU is being reset)",
        _ => "",
    }
}
