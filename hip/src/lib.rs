//! HIP in Rust: streams, modules and launches on `kfd`, without a line of C.
//!
//! ```text
//! Runtime ── devices() ──> Device ── allocate() ──> Memory       freed behind the work that uses it
//!    │                       │
//!    │                       ├── Module::load() ──> Module ── function() ──> Function
//!    │                       │                      code in GPU memory       all that can be decided
//!    │                       │                                               before a launch is
//!    │                       └── Stream::new() ──> Stream ── launch(), copy(), fill(), record(), wait(),
//!    │                                               │       host_call(): operations, in order
//!    └── Event::new() ──> Event <── record() ────────┤
//!                           │                        ├─ an AQL queue of its own, or one that several
//!                           └─ waits on any device,  │  share, or a PM4 queue; an SDMA queue for copies
//!                              queries, time         ├─ a ring of kernel arguments
//!                                                    └─ a word in which the device counts
//! ```
//!
//! Work that comes again and again is recorded once: [`CommandRecorder`] to [`CommandBuffer`], which
//! [`Stream::submit`] takes any number of times.
//!
//! `hip/examples/stream_vector_add.rs` is a complete program:
//!
//! ```no_run
//! use hip::{Grid, Module, Runtime, Stream, StreamRequest};
//!
//! # fn main() -> hip::Result<()> {
//! let runtime = Runtime::open()?;
//! let device = &runtime.devices()[0];
//! let module = Module::load(device, &std::fs::read("vadd.co").unwrap())?;
//! let vadd = module.function("vadd")?;
//! let vector = || device.allocate(&kfd::MemoryRequest::gtt(4 << 16));
//! let (a, b, sum) = (vector()?, vector()?, vector()?);
//! let mut stream = Stream::new(device, StreamRequest::aql())?;
//! stream.launch(&vadd, &Grid::items([1 << 16, 1, 1], [256, 1, 1]), (&a, &b, &sum, 1_u32 << 16))?;
//! stream.synchronize()?;
//! # Ok(())
//! # }
//! ```
//!
//! # How an operation lives
//! 1. *Checked*: sizes, arguments, device. What is refused leaves nothing behind.
//! 2. *Placed*: kernel arguments go into the stream's ring of them; a full ring waits for the device.
//! 3. *Submitted*: one or two packets, of which the last counts the stream's word. Plain stores, no
//!    lock, no allocation, no system call.
//! 4. *Passed*: the device's count says so. It is loaded once, and believed only between what is known
//!    to be done and what was submitted.
//! 5. *Retired*: arguments, signals, code and memory that only it used are given back, in bulk, by
//!    whoever next needs room or waits.
//!
//! # Contract
//! - A [`Stream`] has one owner; streams share no lock. Everything else is `Send` and `Sync`.
//! - One thread exists, once [`Stream::host_call`] was used, and not before.
//! - Every wait ends: done, time over, or the device, the queue or the stream lost, with the cause.
//! - A drop frees nothing that the device may still use.
//! - Services that kernels ask of the host (printf, malloc) are given with the cargo feature
//!   `services`. Without it nothing of them is compiled in: their slots hold 0, and
//!   [`Module::lacking`] names them. With it, a kernel without services is launched by the same code,
//!   and no thread or memory exists for them before the first module that needs one is loaded.
#![deny(unsafe_code)]

#[cfg(not(loom))]
mod command;
#[cfg(not(loom))]
mod copy;
#[cfg(not(loom))]
mod device;
#[cfg(not(loom))]
mod error;
#[cfg(not(loom))]
mod event;
#[cfg(not(loom))]
mod host;
#[cfg(not(loom))]
mod launch;
#[cfg(not(loom))]
mod memory;
#[cfg(not(loom))]
mod module;
#[cfg(not(loom))]
mod protocol;
#[cfg(loom)]
#[doc(hidden)]
pub mod protocol;
#[cfg(all(feature = "services", not(loom)))]
mod services;
#[cfg(not(loom))]
mod stream;
mod sync;

#[cfg(not(loom))]
pub use command::{
    CommandBuffer, CommandError, CommandKind, CommandRecorder, CommandRequest, KernelId, Reason,
    Submission, TimeId,
};
#[cfg(not(loom))]
pub use copy::{CopyEngine, CopyError, CopyRequest, Extent, Layout, Pattern, Place, Side};
#[cfg(not(loom))]
pub use device::{Device, Runtime};
#[cfg(not(loom))]
pub use error::{Axis, Error, LaunchProblem, Result};
#[cfg(not(loom))]
pub use event::Event;
#[cfg(not(loom))]
pub use launch::{
    Argument, Arguments, ByValue, DYNAMIC_STACK_BYTES, Function, Grid, MAX_NATURAL, Packed, Shape,
    Slot,
};
#[cfg(not(loom))]
pub use memory::Memory;
#[cfg(not(loom))]
pub use module::Module;
#[cfg(all(feature = "services", not(loom)))]
pub use services::{BufferedStats, Services, ServicesConfig};
#[cfg(not(loom))]
pub use stream::{Stream, StreamRequest, StreamWaiter};
#[cfg(not(loom))]
#[doc(hidden)]
pub use sync::locks_taken;
