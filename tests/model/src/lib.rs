//! A software KFD and GPU that executes real gfx9 and gfx11 machine code.
//!
//! The model implements [`kfd::sys::Kernel`]: the driver runs on it unchanged. It is strict: what
//! the kernel or the hardware rejects, it rejects the same way.
#![deny(unsafe_code)]

mod builder;
mod diagnostics;
mod event;
pub mod exec;
mod fault;
mod gpu;
pub mod isa;
mod kernel;
pub mod memory;
mod preset;
mod profile;
mod queue;
mod smi;
pub mod sysfs;
mod target;

pub use builder::{Builder, Offsets};
pub use diagnostics::Diagnostic;
pub use exec::Watchdog;
pub use exec::observe::{Report, UnknownWatch, Watch, WatchError};
pub use fault::{Call, FaultPlan};
use gpu::GpuInfo;
pub use kernel::{Live, Model};

pub use kernel::{Descriptors, FileKind, Node, Plan, text_descriptor};
pub use preset::Preset;
pub use profile::Profile;
pub use target::Target;
