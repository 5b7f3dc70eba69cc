//! A software KFD and GPU that executes real gfx9 and gfx11 machine code.
//!
//! The model implements [`kfd::sys::Kernel`]: the driver runs on it unchanged. It is strict: what
//! the kernel or the hardware rejects, it rejects the same way.
#![deny(unsafe_code)]

pub mod exec;
pub mod isa;
pub mod memory;
mod target;

pub use target::Target;
