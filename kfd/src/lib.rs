//! AMD GPU compute over `/dev/kfd`.
#![deny(unsafe_code)]

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
compile_error!("kfd supports x86-64 Linux only: KFD's ABI differs elsewhere and was not checked");

mod ids;
pub mod sys;

pub use ids::{EventId, GpuId, KfdVersion, MemHandle, NodeId, QueueId};
