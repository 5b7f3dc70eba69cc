//! Kernel execution: from a launch to its outcome.
//!
//! The packet processors build a [`Launch`] and hand it to an [`Engine`]; the engine runs the
//! workgroups on its workers and tells the [`Listener`] what happened. Nothing here knows of KFD.
#![allow(clippy::indexing_slicing)] // register files are arrays with masked indices
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_possible_wrap)] // lane arithmetic reinterprets bits

mod engine;
mod launch;
#[allow(dead_code)] // called once the engine runs waves
pub mod valu;
mod wave;

pub use engine::{Engine, Job, LaunchError};
pub use launch::{
    Apertures, Cause, Diagnosis, Launch, Listener, MemoryFault, Outcome, ScratchSetup, TrapSetup,
};
pub use wave::{Code, Wave, hidden};

/// What instruction semantics may ask about the launch a wave belongs to.
#[derive(Clone, Copy, Debug)]
pub struct Env {
    /// Target of the GPU.
    pub target: crate::Target,
}
