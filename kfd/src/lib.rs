//! AMD GPU compute over `/dev/kfd`.
#![deny(unsafe_code)]
#![allow(dead_code)] // until dma-buf, SVM and snapshots land

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
compile_error!("kfd supports x86-64 Linux only: KFD's ABI differs elsewhere and was not checked");

pub mod abi;
pub mod access;
mod context;
mod core;
mod device;
mod error;
mod event;
mod gpu;
mod ids;
mod ioctl;
mod memory;
mod queue;
pub mod report;
mod signal;
pub mod sys;
pub mod topology;
pub mod trap;
mod wait;

pub use crate::core::{Apertures, Leak};
pub use device::{Feature, Kfd};
pub use error::{Error, Object, QueueSizes, Result};
pub use gpu::{Clocks, Gpu, TileConfig};
pub use ids::{EventId, GpuId, KfdVersion, MemHandle, NodeId, QueueId};
pub use ioctl::IoctlError;
pub use memory::{AllocationInfo, Buffer, MemoryKind, MemoryRequest, Neighbours};
pub use queue::{KernelLabel, Queue, QueueRequest, WaveState};
pub use signal::Signal;
pub use wait::Until;
