//! Services that kernels ask of the host: printf, the device heap, host functions, reports.
//!
//! ```text
//! Module::load ──> needs? ──> Slot ──> DeviceServices   made by the first module that needs one:
//!                                      │                 a drain, a writer of text, a heap block
//! launch ──> QueuePools ── pool of the hardware queue, made by its first launch that needs one
//!        └─> Flight ───── printf buffer, "in flight"; lands when the device has passed the launch
//! ```
//!
//! # Threads
//! The drain's thread wakes up by itself only while a [`Flight`] has not landed. It lands flights too,
//! so that the text of a launch nobody waits for is printed, and the thread then sleeps. It holds
//! nothing that would end the services when it lets go.

mod config;
mod device;
mod flight;
mod queue;

pub use config::{Services, ServicesConfig};
pub(crate) use device::{KernelServices, ModuleServices, Slot};
pub use flight::BufferedStats;
pub(crate) use flight::{Flight, Landing};
pub(crate) use queue::QueuePools;
