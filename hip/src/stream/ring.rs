//! [`Ring`]: the hardware queue behind one stream, or behind several.

use std::any::Any;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};
use std::time::Duration;

use aql::Packet;
use kfd::{KernelLabel, Queue, QueueRequest};

use super::StreamRequest;
use crate::device::DeviceCore;
use crate::error::{Error, Result};
use crate::sync::lock;

/// A hardware queue.
#[derive(Debug)]
pub(crate) struct Ring {
    pub queue: Queue,
    /// What its waves call the host through. Dropped after the queue.
    #[cfg(feature = "services")]
    pub pools: crate::services::QueuePools,
    /// Several streams use it: nothing that the host has to satisfy may be in it.
    pub is_shared: bool,
    /// Held for writing while a shared queue gets more scratch: nobody may submit meanwhile.
    growing: RwLock<()>,
    /// What the queue may still use of streams that are gone. Dropped after the queue.
    remains: Mutex<Vec<Box<dyn Any + Send>>>,
}

impl Ring {
    fn new(device: &DeviceCore, request: &StreamRequest, is_shared: bool) -> Result<Arc<Self>> {
        let queue = QueueRequest::aql(request.packets)
            .priority(request.priority)
            .scratch(request.scratch_bytes)
            .profiling();
        let queue = device.gpu.create_queue(&queue)?;
        let (growing, remains) = (RwLock::new(()), Mutex::default());
        Ok(Arc::new(Self {
            queue,
            #[cfg(feature = "services")]
            pools: crate::services::QueuePools::default(),
            is_shared,
            growing,
            remains,
        }))
    }

    /// Address of the queue's `amd_queue_t`, for kernels that look at it.
    #[inline]
    pub fn descriptor(&self) -> u64 {
        self.queue.descriptor().get()
    }

    /// Submits a packet to a ring that others may submit to, if there is room. For a packet that needs
    /// more scratch than there is, the queue gets it first.
    pub fn submit(&self, packet: &Packet, label: KernelLabel) -> Result<()> {
        let submitted = {
            let _guard = self.growing.read().unwrap_or_else(PoisonError::into_inner);
            self.queue.submit(packet, label)
        };
        match submitted {
            Err(kfd::Error::ScratchTooSmall { needed, .. }) => {
                self.grow(needed, Duration::MAX)?;
                let _guard = self.growing.read().unwrap_or_else(PoisonError::into_inner);
                self.queue.submit(packet, label)?;
                Ok(())
            }
            result => Ok(result.map(drop)?),
        }
    }

    /// Gives kernels up to `bytes` of private memory a work-item. Waits until the queue is idle.
    pub fn grow(&self, bytes: u32, timeout: Duration) -> Result<()> {
        let _guard = self.growing.write().unwrap_or_else(PoisonError::into_inner);
        Ok(self.queue.grow_scratch(bytes, timeout)?)
    }

    /// Keeps `remains` until the queue is gone.
    pub fn keep(&self, remains: Box<dyn Any + Send>) {
        lock(&self.remains).push(remains);
    }
}

/// Rings of a device.
#[derive(Debug)]
pub(crate) struct Rings {
    /// Rings of one stream each, at most.
    own_limit: AtomicUsize,
    own: Mutex<Vec<Weak<Ring>>>,
    shared: Mutex<Vec<Weak<Ring>>>,
}

/// Rings that several streams use, at most.
const SHARED: usize = 4;
/// Hardware queues where the topology does not tell their number: those of every gfx9 and gfx11.
const QUEUES: u32 = 24;

impl Rings {
    /// For a GPU with `queues` hardware queues: more are possible, but take turns.
    pub fn new(queues: Option<u32>) -> Self {
        let queues = queues.filter(|queues| *queues > 0).unwrap_or(QUEUES);
        let own = usize::try_from(queues).unwrap_or(usize::MAX).saturating_sub(SHARED);
        Self { own_limit: AtomicUsize::new(own), own: Mutex::default(), shared: Mutex::default() }
    }

    /// Streams that get a hardware queue each.
    pub fn limit(&self, streams: usize) {
        self.own_limit.store(streams, Ordering::Relaxed);
    }

    /// A ring for a stream: its own, while there are hardware queues.
    pub fn take(&self, device: &DeviceCore, request: &StreamRequest) -> Result<Arc<Ring>> {
        if !request.shared {
            let mut own = lock(&self.own);
            own.retain(|ring| ring.strong_count() > 0);
            if own.len() < self.own_limit.load(Ordering::Relaxed) {
                match Ring::new(device, request, false) {
                    Err(Error::Driver(kfd::Error::QueueLimit { .. })) => {}
                    Err(error) => return Err(error),
                    Ok(ring) => {
                        own.push(Arc::downgrade(&ring));
                        return Ok(ring);
                    }
                }
            }
        }
        let mut shared = lock(&self.shared);
        shared.retain(|ring| ring.strong_count() > 0);
        let mut limit = None;
        if shared.len() < SHARED {
            match Ring::new(device, request, true) {
                Err(error @ Error::Driver(kfd::Error::QueueLimit { .. })) => limit = Some(error),
                Err(error) => return Err(error),
                Ok(ring) => {
                    shared.push(Arc::downgrade(&ring));
                    return Ok(ring);
                }
            }
        }
        let least = shared.iter().filter_map(Weak::upgrade).min_by_key(Arc::strong_count);
        least.ok_or_else(|| {
            let what = "the number of streams, with no hardware queue left,";
            limit.unwrap_or(Error::InvalidArgument { call: "Stream::new", what, value: 0 })
        })
    }
}
