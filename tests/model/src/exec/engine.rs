//! The engine: workers that run launches.

use std::sync::Arc;

use super::{Launch, Listener};

/// Why a launch was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// Wave size other than 32 (gfx11) or 64.
    #[error("wave size {0} is not one of the target")]
    WaveSize(u32),
    /// Workgroup of zero or more than 1024 work-items.
    #[error("workgroup of {0} work-items")]
    Group(u64),
    /// LDS beyond 64 KiB.
    #[error("{0} bytes of LDS")]
    Lds(u32),
    /// More user SGPRs than 16.
    #[error("{0} user SGPRs")]
    UserSgprs(usize),
    /// The kernel needs scratch and the queue has too little for one wave.
    #[error("a wave needs {needed} bytes of scratch, its slot has {have}")]
    Scratch {
        /// Bytes of one wave.
        needed: u64,
        /// Bytes of a slot.
        have: u64,
    },
}

/// A running launch. Dropping it does not cancel the launch.
#[derive(Clone, Debug)]
pub struct Job {}

impl Job {
    /// Stops the launch; the listener gets [`super::Outcome::Cancelled`] once no worker touches its memory.
    pub fn cancel(&self) {}

    /// Whether the outcome was delivered.
    pub fn is_finished(&self) -> bool {
        false
    }
}

/// Runs launches on worker threads, or on the caller's with [`Engine::step`].
#[derive(Debug)]
pub struct Engine {}

impl Engine {
    /// An engine with `workers` threads. 0: nothing runs except inside [`Engine::step`].
    pub fn new(workers: usize) -> Self {
        let _ = workers;
        Self {}
    }

    /// Starts a launch. Its end, faults and interrupts are told to `listener` from a worker thread
    /// (or from inside [`Engine::step`]), never from inside this call.
    ///
    /// # Errors
    /// [`LaunchError`] for what a packet processor should have refused.
    pub fn launch(&self, launch: Launch, listener: Arc<dyn Listener>) -> Result<Job, LaunchError> {
        let _ = (launch, listener);
        Ok(Job {})
    }

    /// Runs about `budget` wave instructions on the caller's thread. True while there is more to run.
    pub fn step(&self, budget: u64) -> bool {
        let _ = budget;
        false
    }

    /// Starts a new generation of the instruction cache: code is compared with memory before its
    /// next use. Called for every acquire that invalidates instruction caches and at queue mapping.
    pub fn invalidate_code(&self) {}

    /// Wakes workers parked because every wave sleeps: call after a store a wave may poll for.
    pub fn wake(&self) {}
}
