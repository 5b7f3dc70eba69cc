//! Queues: making one, submitting to it, and taking it down.
//!
//! ```text
//! Queue ─────┐ AqlLive: crate aql's Ring, labels ─────┐
//! Pm4Queue ──┤                                        ├─ QueueCore: doorbell, page, memory, fault
//! SdmaQueue ─┘ DwordLive: DwordRing, one producer ────┘
//! ```
//!
//! Everything a queue needs is allocated before CREATE_QUEUE and owned by the queue until
//! DESTROY_QUEUE has succeeded. Where it has not, nothing of it is freed, and
//! [`Kfd::leaks`](crate::Kfd::leaks) says so. Source: docs/ABI.md §Queues.

mod any;
mod aql;
mod control;
mod create;
mod cwsr;
mod doorbell;
mod dword_queue;
mod dwords;
mod exceptions;
mod live;
mod pm4;
mod record;
mod request;
mod scratch;
mod sdma;

use std::sync::atomic::Ordering;

pub use self::aql::{KernelLabel, Queue};
pub use self::pm4::Pm4Queue;
pub use any::{AnyQueue, QueueWatch};
pub use control::WaveState;
pub(crate) use exceptions::{Runtime, TrapHandler};
pub(crate) use live::{Live, WaitsFor};
pub use request::{Pm4QueueRequest, QueueKind, QueueRequest, SdmaEngine, SdmaQueueRequest};
pub use sdma::SdmaQueue;

/// Ordering of the words that devices write to tell of errors.
const REPORT: Ordering = Ordering::Acquire;
