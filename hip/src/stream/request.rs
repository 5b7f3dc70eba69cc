//! [`StreamRequest`]: what stream to make.

use std::time::Duration;

use crate::copy::CopyRequest;

/// What stream to make. Everything has a default.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct StreamRequest {
    pub(crate) packets: u32,
    pub(crate) kernarg_bytes: u64,
    pub(crate) priority: u32,
    pub(crate) scratch_bytes: u32,
    pub(crate) patience: Duration,
    pub(crate) farewell: Duration,
    pub(crate) copies: CopyRequest,
    pub(crate) events: usize,
    pub(crate) shared: bool,
    pub(crate) pm4: bool,
}

impl StreamRequest {
    /// A stream on an AQL queue: 4096 packets, 1 MiB for kernel arguments, normal priority.
    pub const fn aql() -> Self {
        Self {
            packets: 4096,
            kernarg_bytes: 1 << 20,
            priority: 7,
            scratch_bytes: 0,
            patience: Duration::MAX,
            farewell: Duration::from_secs(10),
            copies: CopyRequest::new(),
            events: 0,
            shared: false,
            pm4: false,
        }
    }

    /// A stream on a PM4 queue of its own, otherwise as [`StreamRequest::aql`].
    pub const fn pm4() -> Self {
        let mut request = Self::aql();
        request.pm4 = true;
        request
    }

    /// Shares a hardware queue with other streams from the start, as AQL streams do when there are too
    /// many of them.
    pub const fn share(mut self) -> Self {
        self.shared = true;
        self
    }

    /// Whether it asks for a shared queue.
    pub const fn is_shared(&self) -> bool {
        self.shared
    }

    /// Packets that the ring holds, a power of two; so many operations can be in flight.
    pub const fn packets(mut self, packets: u32) -> Self {
        self.packets = packets;
        self
    }

    /// Bytes for kernel arguments of operations in flight, a power of two. A kernel may take half of
    /// it.
    pub const fn kernarg_bytes(mut self, bytes: u64) -> Self {
        self.kernarg_bytes = bytes;
        self
    }

    /// Priority from 0 to 15; 7 is normal.
    pub const fn priority(mut self, priority: u32) -> Self {
        self.priority = priority;
        self
    }

    /// Private memory for kernels that need up to `bytes` a work-item, so that the first launch of one
    /// need not wait until the stream is idle to get it.
    pub const fn scratch(mut self, bytes: u32) -> Self {
        self.scratch_bytes = bytes;
        self
    }

    /// Events in flight that the stream prepares for when it is made; more are prepared for when they
    /// are recorded.
    pub const fn events(mut self, events: usize) -> Self {
        self.events = events;
        self
    }

    /// How long a call waits at most for room, where the device does not keep up. Without limit by
    /// default: it ends when there is room or the device is lost.
    pub const fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// How copies and fills are done.
    pub const fn copies(mut self, copies: CopyRequest) -> Self {
        self.copies = copies;
        self
    }

    /// How long a drop waits at most for what is in flight; 10 s by default.
    pub const fn farewell(mut self, farewell: Duration) -> Self {
        self.farewell = farewell;
        self
    }
}

impl Default for StreamRequest {
    fn default() -> Self {
        Self::aql()
    }
}
