//! What kernels can ask of the host: [`Service`], and the [`Table`] of those that a host offers.
//!
//! A host registers what it wants to offer and builds the table once; nothing is added later. A
//! number that nothing was registered for is answered with an error and counted. A panic of a
//! service is answered the same way.

mod function;
mod heap;
mod printf;
mod rpc;
mod sanitizer;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

pub use function::{Functions, HostFunction};
pub use heap::{DeviceHeap, HeapControl, HeapLimits, HeapSource, SLAB_BYTES};
pub use printf::{DESCRIPTOR_BEGIN, DESCRIPTOR_END, Fragments, Printf, Text, TextStats};
pub use rpc::Rpc;
pub use sanitizer::{Sanitizer, SanitizerReport};

use crate::counters::{Count, Counters};
use crate::error::{Error, Result};
use crate::layout::REPLY_WORDS;
use crate::pool::{PoolId, Replies, Request};

/// The number of a service.
///
/// # Source
/// device-libs ockl/src/services.cl; docs/ABI.md §Hostcall services.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServiceId(pub u32);

impl ServiceId {
    /// Never used by a kernel.
    pub const RESERVED: Self = Self(0);
    /// Calls of host functions.
    pub const FUNCTION: Self = Self(1);
    /// Blocking printf.
    pub const PRINTF: Self = Self(2);
    /// Memory for the device heap.
    pub const DEVICE_MEMORY: Self = Self(3);
    /// Reports of the address sanitizer.
    pub const SANITIZER: Self = Self(4);
}

impl fmt::Display for ServiceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Serves packets of one number, on the drain's thread.
///
/// While it runs, waves are waiting: it must not wait for anything that a queue has to do first,
/// nor for a reader of output. What it is given is whatever the device wrote.
pub trait Service: Send {
    /// Answers a packet. Lanes that it does not answer get the refusal.
    fn serve(&mut self, request: &Request<'_>, replies: &mut Replies<'_>, counters: &Counters);

    /// The waves of a pool are gone (its queue was reset or destroyed): drops what they had begun.
    fn forget(&mut self, pool: PoolId) {
        let _ = pool;
    }
}

/// Collects services.
#[derive(Default)]
pub struct Registry {
    services: Vec<(ServiceId, Box<dyn Service>)>,
}

impl Registry {
    /// No service.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a service.
    ///
    /// # Errors
    /// [`Error::ReservedService`] for number 0, [`Error::DuplicateService`].
    pub fn with(mut self, id: ServiceId, service: impl Service + 'static) -> Result<Self> {
        if id == ServiceId::RESERVED {
            return Err(Error::ReservedService { service: id });
        }
        match self.services.binary_search_by_key(&id, |&(id, _)| id) {
            Ok(_) => Err(Error::DuplicateService { service: id }),
            Err(at) => {
                self.services.insert(at, (id, Box::new(service)));
                Ok(self)
            }
        }
    }

    /// The table: from here on nothing is added.
    pub fn build(self) -> Table {
        Table { services: self.services.into_boxed_slice() }
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.services.iter().map(|(id, _)| id)).finish()
    }
}

/// The services that a host offers.
pub struct Table {
    /// Ascending by number.
    services: Box<[(ServiceId, Box<dyn Service>)]>,
}

impl Table {
    /// Answers a packet: by the service of its number, or with the refusal.
    pub fn serve(&mut self, request: &Request<'_>, replies: &mut Replies<'_>, counters: &Counters) {
        self.refuse(request, replies);
        let id = request.service();
        let found = self.services.binary_search_by_key(&id, |&(id, _)| id);
        let Some((_, service)) = found.ok().and_then(|at| self.services.get_mut(at)) else {
            counters.note(Count::UnknownService);
            return;
        };
        let served = catch_unwind(AssertUnwindSafe(|| service.serve(request, replies, counters)));
        if let Err(panic) = served {
            counters.note(Count::ServicePanics);
            discard(panic);
            // What it had answered before may be half of something.
            self.refuse(request, replies);
        }
    }

    /// Answers a packet with an error.
    pub fn refuse(&self, request: &Request<'_>, replies: &mut Replies<'_>) {
        for (lane, words) in request.lanes() {
            replies.set(lane, refusal(request.service(), words));
        }
    }

    /// Tells every service that a pool's waves are gone.
    pub fn forget(&mut self, pool: PoolId, counters: &Counters) {
        for (_, service) in &mut self.services {
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| service.forget(pool))) {
                counters.note(Count::ServicePanics);
                discard(panic);
            }
        }
    }

    /// The numbers that are served, ascending.
    pub fn ids(&self) -> impl Iterator<Item = ServiceId> {
        self.services.iter().map(|&(id, _)| id)
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.ids()).finish()
    }
}

/// Drops what a panic carried. Its destructor may panic too: what that carries is leaked.
pub(crate) fn discard(panic: Box<dyn std::any::Any + Send>) {
    if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
        std::mem::forget(again);
    }
}

/// All ones: the error of services that return numbers.
const ERROR: u64 = u64::MAX;

/// What a kernel takes as an error, by service: no address for memory, -1 for everything else. A
/// fragment of a message that goes on gets a descriptor of message 0, which there never is, so that
/// the wave comes to its end and gets -1 there.
fn refusal(service: ServiceId, words: &[u64]) -> [u64; REPLY_WORDS] {
    let goes_on = words.first().is_some_and(|descriptor| descriptor & DESCRIPTOR_END == 0);
    match service {
        ServiceId::DEVICE_MEMORY => [0, 0],
        ServiceId::PRINTF if goes_on => [0, 0],
        _ => [ERROR, 0],
    }
}
