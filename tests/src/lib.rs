//! The harness of the integration tests in `tests/tests`.
//!
//! - [`each_device`] runs a test on a gfx90a and a gfx1100 of the software GPU, each time with a fresh kernel,
//!   or, with `KFD_TEST_DEVICE=hardware`, once on the machine's own GPUs, in a process of its own.
//! - [`each_target`] runs it on further targets, where they differ; [`every_target`] on all.
//! - [`each_model`] is for tests that order faults or need a certain kernel: on hardware they are
//!   skipped, and say so (`skipped: …` on the error stream, one line for each test).
//! - [`process`] forks; [`program`] loads code objects.
//!
//! After each test on the software GPU the harness checks that no memory and no queue was left
//! behind in its kernel.
#![deny(unsafe_code)]

pub mod alloc;
mod device;
pub mod process;
pub mod program;

pub use device::{
    Device, each_device, each_kernel, each_model, each_model_of, each_target, every_target,
    on_hardware, skip,
};

/// The programs in the README compile.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
