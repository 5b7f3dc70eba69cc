//! Queues of any kind, for waits.

use std::ops::Range;
use std::sync::Arc;

use super::live::{Live, QueueCore, WaitsFor};
use crate::context::Context;
use crate::error::Result;
use crate::report::PacketInFlight;

/// A queue of any kind: [`Queue`](crate::Queue), [`Pm4Queue`](crate::Pm4Queue) or
/// [`SdmaQueue`](crate::SdmaQueue), for [`Kfd::wait_any`](crate::Kfd::wait_any). Not implemented by
/// others.
pub trait AnyQueue: Sealed {}

/// What only this crate gives.
pub trait Sealed {
    /// The queue while it lives.
    fn view(&self) -> View<'_>;
}

/// A queue as this crate sees it.
#[derive(Clone, Copy, Debug)]
pub struct View<'a>(pub(crate) &'a dyn Live);

/// A view of a queue with one producer for other threads: they see whether it is lost, and a wait can
/// name it. It keeps the queue's memory, not the queue.
#[derive(Clone, Debug)]
pub struct QueueWatch(Watched);

/// A queue that somebody else submits to.
#[derive(Clone, Debug)]
struct Watched(Arc<dyn Live>);

impl QueueWatch {
    pub(crate) fn new(live: Arc<dyn Live>) -> Self {
        Self(Watched(live))
    }

    /// Fails when the queue or its GPU is known to be lost.
    ///
    /// # Errors
    /// [`Error::DeviceLost`](crate::Error::DeviceLost), [`Error::QueueLost`](crate::Error::QueueLost).
    pub fn check(&self) -> Result<()> {
        self.0.core().check()
    }
}

impl Live for Watched {
    fn core(&self) -> &QueueCore {
        self.0.core()
    }

    fn look_closely(&self) -> (Range<u64>, Option<u64>) {
        self.0.look_closely()
    }

    /// Only the producer may.
    fn ring_again(&self) {}

    fn packets(&self, context: &Context, pending: Range<u64>, limit: usize) -> Vec<PacketInFlight> {
        self.0.packets(context, pending, limit)
    }

    fn dwords(&self, pending: Range<u64>, limit: usize) -> Vec<u32> {
        self.0.dwords(pending, limit)
    }

    fn waits_for(&self, pending: Range<u64>) -> Vec<WaitsFor> {
        self.0.waits_for(pending)
    }
}

impl Sealed for QueueWatch {
    fn view(&self) -> View<'_> {
        View(&self.0)
    }
}

impl AnyQueue for QueueWatch {}
