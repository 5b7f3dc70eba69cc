//! Kernel execution: from a launch to its outcome.
//!
//! The packet processors build a [`Launch`] and hand it to an [`Engine`]; the engine runs the
//! workgroups on its workers and tells the [`Listener`] what happened. Nothing here knows of KFD.
#![allow(clippy::needless_range_loop)] // lane loops index several arrays at once
#![allow(clippy::indexing_slicing)] // register files are arrays with masked indices
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_possible_wrap)] // lane arithmetic reinterprets bits

mod atomic;
mod clock;
mod code;
mod context;
mod control;
mod dispatch;
mod ds;
mod engine;
mod examine;
mod excepts;
mod fidelity;
mod flat;
mod group;
mod gws;
mod hwreg;
mod init;
mod job;
mod launch;
mod lds;
mod mubuf;
pub mod observe;
mod run;
mod salu;
mod scratch;
mod smem;
mod status;
#[cfg(test)]
mod tests;
mod trap;
pub mod valu;
mod vskip;
mod watchdog;
mod wave;
mod worker;

pub(crate) use atomic::Atomic;
pub use clock::ticks;
pub use context::Env;
pub use engine::{Engine, Job, LaunchError};
pub use fidelity::{Fidelity, fidelity, is_compute};
pub use gws::Gws;
pub use launch::{
    Apertures, Cause, Diagnosis, Launch, Listener, MemoryFault, Outcome, Part, ScratchSetup,
    TrapSetup,
};
pub use watchdog::Watchdog;
pub use wave::{Code, Wave, hidden};

use crate::Target;
use crate::isa::Op;

/// Whether the executor has semantics for `op` on `target`.
///
/// The lists come from the same macros as the code that executes the operations.
pub fn implements(target: Target, op: Op) -> bool {
    salu::implements(op)
        || salu::float::implements(op)
        || control::implements(op)
        || flat::implements(op)
        || smem::implements(op)
        || smem::rare::implements(op)
        || ds::implements(op)
        || mubuf::implements(op)
        || valu::implements(target, op)
}
