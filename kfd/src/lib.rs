//! AMD GPU compute over `/dev/kfd`: topology, memory, queues, signals, waits, faults.
//!
//! ```text
//! Kfd ── gpus() ──> Gpu ── allocate() ──────> Buffer    memory, one address for CPU and GPU
//!  │                 ├──── create_queue() ──> Queue     an AQL ring and its doorbell
//!  │                 ├──── create_pm4_queue() > Pm4Queue    the same of PM4, for one producer
//!  │                 ├──── create_sdma_queue() > SdmaQueue  the same for copies
//!  │                 └──── create_signal() ─> Signal    what packets decrement and threads wait for
//!  └─ topology(), unusable(), leaks()         access::diagnose(), process::processes()
//! ```
//!
//! A program opens the device, allocates, makes a queue, submits packets of crate `aql`, and waits.
//! `kfd/examples/vector_add.rs` is a complete one.
//!
//! ```no_run
//! use std::time::Duration;
//! # fn main() -> kfd::Result<()> {
//! let kfd = kfd::Kfd::open()?;
//! let gpu = kfd.first_gpu()?;
//! let queue = gpu.create_queue(&kfd::QueueRequest::aql(64))?;
//! let done = gpu.create_signal(1)?;
//! let packet = aql::BarrierAnd::noop().completion(done.addr()).encode();
//! queue.submit(&packet, kfd::KernelLabel::NONE)?;
//! queue.wait(&done, kfd::Until::Below(1), Duration::from_secs(1))?;
//! # Ok(())
//! # }
//! ```
//!
//! # Contract
//! - No thread, no signal handler, no environment variable, no output, no global state. Everything
//!   that is asked of Linux goes through [`sys::Kernel`].
//! - Every handle is `Send` and `Sync`. Submitting is plain stores into mapped memory: no system
//!   call, no lock, no allocation. Any thread may submit to a [`Queue`]; a [`Pm4Queue`] and an
//!   [`SdmaQueue`] have one producer, who borrows them exclusively.
//! - Every wait ends: done, [`Error::Timeout`], [`Error::DeviceLost`] or [`Error::QueueLost`].
//! - A word that the device writes is loaded once, checked, and used from a private copy. Memory
//!   that it shares is reached through atomics only, never through references to bytes.
//! - What the device may still use is never freed: [`Kfd::leaks`] lists what could not be.
//! - One process, one [`Kfd`]: clone it. A forked child opens its own.
//!
//! Numbers that mirror the kernel's interface cite a section of docs/ABI.md.
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
pub mod snapshot;
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
pub use queue::{
    AnyQueue, KernelLabel, Pm4Queue, Pm4QueueRequest, Queue, QueueKind, QueueRequest, QueueWatch,
    SdmaEngine, SdmaQueue, SdmaQueueRequest, WaveState,
};
pub use signal::Signal;
pub use smi::{SmiEvent, SmiEvents};
pub use snapshot::Snapshot;
pub use svm::{SvmAccess, SvmPlace, SvmRange, SvmSetting};
pub use wait::Until;
