//! HIP in Rust: streams, modules and launches on `kfd`.
#![deny(unsafe_code)]

mod command;
mod device;
mod error;
mod event;
mod host;
mod launch;
mod memory;
mod module;
mod stream;
mod sync;

pub use command::{
    CommandBuffer, CommandError, CommandKind, CommandRecorder, CommandRequest, KernelId, Reason,
    Submission, TimeId,
};
pub use device::{Device, Runtime};
pub use error::{Axis, Error, LaunchProblem, Result};
pub use event::Event;
pub use launch::{
    Argument, Arguments, ByValue, DYNAMIC_STACK_BYTES, Function, Grid, Packed, Slot,
};
pub use memory::Memory;
pub use module::Module;
pub use stream::{Stream, StreamRequest, StreamWaiter};
#[doc(hidden)]
pub use sync::locks_taken;
