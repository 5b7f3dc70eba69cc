//! AMD GPU compute over `/dev/kfd`.
#![deny(unsafe_code)]

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
compile_error!("kfd supports x86-64 Linux only: KFD's ABI differs elsewhere and was not checked");

pub mod abi;
pub mod access;
mod context;
mod core;
mod device;
mod dmabuf;
mod error;
mod event;
mod gpu;
mod ids;
mod ioctl;
mod memory;
pub mod process;
mod queue;
pub mod report;
mod signal;
mod smi;
mod svm;
pub mod sys;
pub mod topology;
pub mod trap;
mod wait;

pub use crate::core::{Apertures, Leak};
pub use device::{Feature, Kfd};
pub use dmabuf::{DmaBuf, DmaBufInfo};
pub use error::{Error, Object, QueueSizes, Result};
pub use gpu::{Clocks, Gpu, TileConfig};
pub use ids::{EventId, GpuId, KfdVersion, MemHandle, NodeId, QueueId};
pub use ioctl::IoctlError;
pub use memory::{AllocationInfo, Buffer, MemoryKind, MemoryRequest, Neighbours};
pub use queue::{KernelLabel, Queue, QueueRequest, WaveState};
pub use signal::Signal;
pub use smi::{SmiEvent, SmiEvents};
pub use svm::{SvmAccess, SvmPlace, SvmRange, SvmSetting};
pub use wait::Until;
