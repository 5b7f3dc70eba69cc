//! Why a call failed.

use std::sync::Arc;

use hsaco::ArgumentError;
use kfd::GpuId;
use pm4::GpuAddr;

use crate::command::CommandError;

/// Shorthand for results of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An axis of a grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Axis {
    X,
    Y,
    Z,
}

impl std::fmt::Display for Axis {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::X => "x",
            Self::Y => "y",
            Self::Z => "z",
        })
    }
}

/// Why a call failed.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The driver refused, or the device or a queue is lost.
    #[error(transparent)]
    Driver(#[from] kfd::Error),
    /// A file with code objects, or the code object chosen from it, is malformed.
    #[error("code object")]
    Object(#[from] hsaco::Error),
    /// A file has no code for the device.
    #[error(transparent)]
    NoImage(#[from] Arc<hsaco::NoFit>),
    /// The GPU is none that code objects can name.
    #[error(transparent)]
    UnknownDevice(#[from] hsaco::target::UnknownDevice),
    /// A module has no such kernel.
    #[error("the module has no kernel {name:?}")]
    NoFunction {
        /// The name asked for.
        name: String,
    },
    /// A module has no such variable.
    #[error("the module has no variable {name:?}")]
    NoVariable {
        /// The name asked for.
        name: String,
    },
    /// A launch was refused before anything was submitted.
    #[error("kernel {kernel} cannot be launched")]
    Launch {
        /// The kernel.
        kernel: Arc<str>,
        /// Why.
        #[source]
        problem: LaunchProblem,
    },
    /// A copy or fill was refused before anything was submitted.
    #[error(transparent)]
    Copy(#[from] crate::copy::CopyError),
    /// A stream, an event or a function of one device was used with another's.
    #[error("{what} belongs to GPU {found}, the stream to GPU {expected}")]
    OtherDevice {
        /// What.
        what: &'static str,
        /// Its GPU.
        found: GpuId,
        /// The stream's GPU.
        expected: GpuId,
    },
    /// A command buffer cannot be recorded, changed or submitted as asked.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// A packet cannot be made.
    #[error("a packet of a {what}")]
    Packet {
        /// What it is for.
        what: &'static str,
        /// Why.
        #[source]
        cause: pm4::Error,
    },
    /// An argument is out of range.
    #[error("{call}: {what} cannot be {value}")]
    InvalidArgument {
        /// The call.
        call: &'static str,
        /// What is wrong.
        what: &'static str,
        /// Its value.
        value: u64,
    },
    /// The device cannot do it.
    #[error("GPU {gpu}: {what}")]
    Unsupported {
        /// The GPU.
        gpu: GpuId,
        /// What, and what to do instead.
        what: &'static str,
    },
    /// The device counted more completed operations than were submitted, or took some back: the
    /// stream is lost.
    #[error("the device counts {completed} operations as done, between {first} and {last} can be")]
    Progress {
        /// What the device's word says.
        completed: u64,
        /// Known to be done.
        first: u64,
        /// Submitted.
        last: u64,
    },
    /// The stream was lost before; the cause is that of the first call that noticed.
    #[error("the stream is lost")]
    StreamLost(#[source] Arc<Error>),
    /// The time that the caller gave is over.
    #[error("{completed} of {submitted} operations were done after {waited_ms} ms")]
    Timeout {
        /// Milliseconds waited.
        waited_ms: u64,
        /// Operations that the device has passed.
        completed: u64,
        /// Operations submitted.
        submitted: u64,
        /// Where the queue stood, if it could be asked.
        #[source]
        hang: Option<Arc<kfd::Error>>,
    },
    /// An event that was never recorded has no time.
    #[error("the event was never recorded")]
    NotRecorded,
    /// The work that an event stands for is not done yet.
    #[error("the event's work is not done yet")]
    NotReady,
    /// An event was made without timing.
    #[error("the event was made without timing")]
    NoTiming,
    /// A host function that the stream called has panicked. Said once; the stream goes on.
    #[error("a host function of the stream has panicked")]
    HostFunction,
    /// A host function may not wait for the device: the device may be waiting for it.
    #[error("a host function may not wait for the device")]
    InHostFunction,
    /// The thread that calls host functions cannot be started.
    #[error("the thread for host functions cannot be started")]
    Thread(#[source] Arc<std::io::Error>),
    /// The services that kernels ask of the host cannot be given.
    #[cfg(feature = "services")]
    #[error("services of the host")]
    Services(#[source] Arc<hostcall::Error>),
    /// Memory that a call names is not there.
    #[error("{bytes} bytes at {addr} are in no allocation of this process")]
    NoMemory {
        /// First byte.
        addr: GpuAddr,
        /// Length.
        bytes: u64,
    },
}

/// Why a launch was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchProblem {
    /// A grid or a group has no work-items along an axis.
    #[error("the {what} is empty along {axis}")]
    Empty {
        /// "grid" or "group".
        what: &'static str,
        /// The axis.
        axis: Axis,
    },
    /// A grid has more work-items along an axis than 32 bits count.
    #[error("{blocks} groups of {items} work-items along {axis}: at most 2^32 - 1 work-items")]
    Grid {
        /// The axis.
        axis: Axis,
        /// Groups.
        blocks: u32,
        /// Work-items of a group along the axis.
        items: u32,
    },
    /// A group has more work-items than the kernel was compiled for, or than hardware takes.
    #[error("a group of {items} work-items, at most {max}")]
    Group {
        /// Work-items.
        items: u64,
        /// Most.
        max: u32,
    },
    /// The kernel was compiled for one group size.
    #[error("a group of {group:?}, the kernel takes {required:?} only")]
    RequiredGroup {
        /// Given.
        group: [u32; 3],
        /// Required.
        required: [u32; 3],
    },
    /// A group takes more LDS than there is.
    #[error("{bytes} bytes of LDS for a group, {fixed} of them static: at most {max}")]
    Lds {
        /// Static and dynamic.
        bytes: u64,
        /// Static.
        fixed: u32,
        /// Most.
        max: u32,
    },
    /// The arguments are not those that the kernel takes.
    #[error(transparent)]
    Arguments(#[from] ArgumentError),
    /// The kernel arguments do not fit the stream's ring of them.
    #[error("{bytes} bytes of kernel arguments, the stream's ring has {ring}")]
    Kernarg {
        /// Bytes of the segment.
        bytes: u32,
        /// Bytes of the ring.
        ring: u64,
    },
    /// The kernel's launch state cannot be made for a PM4 queue.
    #[error("on a PM4 queue")]
    Pm4(#[from] pm4::dispatch::Error),
}

#[cfg(feature = "services")]
impl From<hostcall::Error> for Error {
    fn from(error: hostcall::Error) -> Self {
        match error {
            hostcall::Error::Driver { source, .. } => Self::Driver(source),
            error => Self::Services(Arc::new(error)),
        }
    }
}

impl From<hsaco::NoFit> for Error {
    fn from(no_fit: hsaco::NoFit) -> Self {
        Self::NoImage(Arc::new(no_fit))
    }
}
