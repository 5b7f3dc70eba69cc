//! Why a call failed.

use crate::pool::PoolId;
use crate::service::ServiceId;

/// Shorthand for results of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a call failed. What a device does wrong is no error: it is counted
/// ([`Counters`](crate::Counters)).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A pool cannot have so few or so many packets.
    #[error("a pool of {packets} packets: {least} to {most} are possible")]
    PacketCount {
        /// Packets asked for.
        packets: u32,
        /// Fewest.
        least: u32,
        /// Most.
        most: u32,
    },
    /// The memory given for a pool is too small.
    #[error("a pool needs {needed} bytes of memory, not {found}")]
    PoolMemory {
        /// Bytes needed.
        needed: usize,
        /// Bytes given.
        found: usize,
    },
    /// A wave has 32 or 64 lanes.
    #[error("a wave of {lanes} lanes: 32 or 64 are possible")]
    WaveLanes {
        /// Lanes asked for.
        lanes: u32,
    },
    /// A service number that cannot be registered.
    #[error("service {service} is reserved")]
    ReservedService {
        /// The number.
        service: ServiceId,
    },
    /// A service number is registered twice.
    #[error("service {service} is registered already")]
    DuplicateService {
        /// The number.
        service: ServiceId,
    },
    /// A host function's id is registered twice.
    #[error("host function {function:#x} is registered already")]
    DuplicateFunction {
        /// The id.
        function: u64,
    },
    /// A pool's number is in use.
    #[error("pool {pool} is attached already")]
    DuplicatePool {
        /// The pool.
        pool: PoolId,
    },
    /// No pool has this number.
    #[error("pool {pool} is not attached")]
    UnknownPool {
        /// The pool.
        pool: PoolId,
    },
    /// Launches that may still use it are in flight.
    #[error(
        "{launches} launches that use {what} are in flight: wait for them, or destroy the queue first"
    )]
    InFlight {
        /// What they use.
        what: &'static str,
        /// Launches.
        launches: u64,
    },
    /// The drain has been stopped.
    #[error("the drain has been stopped")]
    Stopped,
    /// The drain did not take a command in time: a service of it is stuck.
    #[error(
        "the drain did not react within {milliseconds} ms: a service or host function does not return"
    )]
    Stuck {
        /// How long was waited.
        milliseconds: u128,
    },
    /// The drain belongs to the process that this one was forked from.
    #[error("the drain belongs to the process that this one was forked from: make a new one")]
    Inherited,
    /// The system gave no thread.
    #[error("no thread for {what}")]
    Thread {
        /// What it was for.
        what: &'static str,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A kernel of a graph needs a service that a graph cannot have.
    #[error(
        "{service} needs memory of each launch, which a recorded graph does not have: launch the kernel by itself"
    )]
    NotInGraph {
        /// The service.
        service: &'static str,
    },
    /// The link between GPU and host has no 64-bit atomics, which the stack transport needs.
    #[error(
        "GPU {gpu} reaches host memory without 64-bit atomics (PCIe AtomicOps), which hostcall needs: use buffered printf, or a slot that allows them"
    )]
    NoHostAtomics {
        /// KFD's id of the GPU.
        gpu: u32,
    },
    /// The driver refused.
    #[cfg(not(loom))]
    #[error("{what} could not be made")]
    Driver {
        /// What was being made.
        what: &'static str,
        /// Why.
        #[source]
        source: kfd::Error,
    },
}
