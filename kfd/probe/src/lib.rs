//! The parts of `kfd-probe` that its tests and the integration tests share.
#![forbid(unsafe_code)]

pub mod programs;
pub mod runner;
