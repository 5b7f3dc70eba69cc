//! [`Ring`]: the hardware queue behind one stream, or behind several.

use std::any::Any;
use std::sync::{Arc, Mutex, Weak};

use kfd::{Queue, QueueRequest};

use super::StreamRequest;
use crate::device::DeviceCore;
use crate::error::Result;
use crate::sync::lock;

/// A hardware queue.
#[derive(Debug)]
pub(crate) struct Ring {
    pub queue: Queue,
    /// Several streams use it: nothing that the host has to satisfy may be in it.
    pub is_shared: bool,
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
        Ok(Arc::new(Self { queue, is_shared, remains: Mutex::default() }))
    }

    /// Address of the queue's `amd_queue_t`, for kernels that look at it.
    #[inline]
    pub fn descriptor(&self) -> u64 {
        self.queue.descriptor().get()
    }

    /// Keeps `remains` until the queue is gone.
    pub fn keep(&self, remains: Box<dyn Any + Send>) {
        lock(&self.remains).push(remains);
    }
}

/// Rings of a device.
#[derive(Debug, Default)]
pub(crate) struct Rings {
    shared: Mutex<Vec<Weak<Ring>>>,
}

impl Rings {
    /// A ring for a stream: its own, while there are hardware queues.
    pub fn take(&self, device: &DeviceCore, request: &StreamRequest) -> Result<Arc<Ring>> {
        let _ = &self.shared;
        Ring::new(device, request, false)
    }
}
