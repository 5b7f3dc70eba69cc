//! Device-to-host services: printf, the device heap, host functions, sanitizer reports.
//!
//! A wave that wants something of the host puts a packet where the host finds it, rings a doorbell
//! and waits. Everything the host reads there was written by code it does not trust:
//!
//! ```text
//! kernel ──> packet ──> Pool ──> Table ──> Service     one copy of each packet, checked, answered
//!                        │                     └─────> Output ──> Writer ──> Sink   text, bounded
//!              Drain ────┘  the thread: sleeps, wakes, ends
//! ```
//!
//! - [`layout`]: the two transports' shared memory. [`pool`]: finding packets and answering each
//!   once, with numbers that the device cannot reach. [`Words`]: the one way to shared memory.
//! - [`service`]: what can be asked, and the table of what a host offers.
//! - [`Drain`]: the thread. [`sink`]: where device text goes.
//! - [`needs`]: what a kernel needs, decided once when its module is loaded. [`device`]: all of it
//!   on memory and events of `kfd`.
//!
//! # Contract
//! - Nothing exists before a host makes it: no thread, no memory, no event. Kernels without
//!   services never meet this crate ([`needs::ModuleNeeds::of`] is `None` for their modules).
//! - Whatever a device writes, no call panics, hangs, grows without bound or touches memory outside
//!   a pool; a packet that is well formed is answered exactly once. What is not is counted
//!   ([`Counters`]).
//! - While no launch is in flight that could use a service, the thread sleeps without a timer.
//!
//! Numbers: docs/ABI.md §Hostcall; threats and their tests: docs/hostcall.md.
#![deny(unsafe_code)]

mod counters;
#[cfg(not(loom))]
pub mod device;
mod drain;
mod error;
pub mod format;
pub mod layout;
#[cfg(not(loom))]
pub mod needs;
pub mod pool;
pub mod printf;
pub mod service;
pub mod sink;
mod sync;
mod words;

pub use counters::{Count, Counters};
pub use drain::{Bell, Detach, Drain, DrainConfig, HostBell, InFlight, MAX_POLL, Woken, Worker};
pub use error::{Error, Result};
pub use layout::Transport;
pub use pool::{Pool, PoolId, PoolSpec, Replies, Request, Source};
pub use service::{Registry, Service, ServiceId, Table};
pub use words::Words;
