//! Kernel execution: from a launch to its outcome.
//!
//! The packet processors build a [`Launch`] and hand it to an [`Engine`]; the engine runs the
//! workgroups on its workers and tells the [`Listener`] what happened. Nothing here knows of KFD.
#![allow(clippy::indexing_slicing)] // register files are arrays with masked indices
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_possible_wrap)] // lane arithmetic reinterprets bits

mod launch;

pub use launch::{Apertures, Launch, Listener, MemoryFault, Outcome, ScratchSetup, TrapSetup};
