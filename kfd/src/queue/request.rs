//! What queue to make.

use crate::error::{Error, Result};

/// What AQL queue to make: the ring's size is required, the rest chained.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct QueueRequest {
    pub(crate) packets: u32,
    pub(crate) priority: u32,
    pub(crate) private_bytes: u32,
    pub(crate) profiling: bool,
}

impl QueueRequest {
    /// Fewest packets: a page of ring.
    pub const MIN_PACKETS: u32 = 64;
    /// Most packets: the 32-bit size of CREATE_QUEUE.
    pub const MAX_PACKETS: u32 = 1 << 25;

    /// A queue with room for `packets` packets, a power of two.
    pub const fn aql(packets: u32) -> Self {
        Self { packets, priority: 7, private_bytes: 0, profiling: false }
    }

    /// Priority from 0 to 15; 7 is normal.
    pub const fn priority(mut self, priority: u32) -> Self {
        self.priority = priority;
        self
    }

    /// Private memory for kernels that need up to `bytes` a work-item. Kernels that need more are
    /// refused until [`Queue::grow_scratch`](crate::Queue::grow_scratch).
    pub const fn scratch(mut self, bytes: u32) -> Self {
        self.private_bytes = bytes;
        self
    }

    /// Packets stamp their completion signals with start and end.
    pub const fn profiling(mut self) -> Self {
        self.profiling = true;
        self
    }

    pub(crate) fn check(&self) -> Result<()> {
        let refused = |what, value: u32| {
            Err(Error::InvalidArgument { call: "create_queue", what, value: u64::from(value) })
        };
        if !self.packets.is_power_of_two() {
            return refused("the number of packets, which must be a power of two,", self.packets);
        }
        if !(Self::MIN_PACKETS..=Self::MAX_PACKETS).contains(&self.packets) {
            return refused("the number of packets, from 64 to 2^25,", self.packets);
        }
        if self.priority > crate::abi::MAX_QUEUE_PRIORITY {
            return refused("the priority, from 0 to 15,", self.priority);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_priorities_that_kfd_refuses_are_refused_by_name() {
        assert!(QueueRequest::aql(64).check().is_ok());
        for packets in [0, 32, 65, 1 << 26] {
            let error = QueueRequest::aql(packets).check().unwrap_err();
            assert!(error.to_string().contains("number of packets"), "{error}");
        }
        let error = QueueRequest::aql(64).priority(16).check().unwrap_err();
        assert!(error.to_string().contains("priority"), "{error}");
    }
}
