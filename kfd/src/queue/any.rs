//! Queues of any kind, for waits.

use super::live::Live;

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
