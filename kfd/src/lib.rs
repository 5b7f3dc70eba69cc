//! AMD GPU compute over `/dev/kfd`.
#![deny(unsafe_code)]

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
compile_error!("kfd supports x86-64 Linux only: KFD's ABI differs elsewhere and was not checked");

pub mod abi;
mod ids;
mod ioctl;
pub mod sys;
pub mod trap;

pub use ids::{EventId, GpuId, KfdVersion, MemHandle, NodeId, QueueId};
pub use ioctl::IoctlError;
