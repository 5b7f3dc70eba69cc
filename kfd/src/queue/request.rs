//! What queue to make.

use std::fmt;

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

/// What a queue is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum QueueKind {
    /// Packets of 64 bytes for kernels.
    #[default]
    Aql,
    /// PM4 packets, for kernels.
    Pm4,
    /// SDMA packets, for copies.
    Sdma(SdmaEngine),
}

impl QueueKind {
    /// Whether it runs kernels.
    pub const fn is_compute(self) -> bool {
        !matches!(self, Self::Sdma(_))
    }

    /// What its read and write index count: packets, dwords or bytes.
    pub const fn unit(self) -> &'static str {
        match self {
            Self::Aql => "packets",
            Self::Pm4 => "dwords",
            Self::Sdma(_) => "bytes",
        }
    }
}

impl fmt::Display for QueueKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Aql => f.write_str("AQL"),
            Self::Pm4 => f.write_str("PM4"),
            Self::Sdma(SdmaEngine::Any) => f.write_str("SDMA"),
            Self::Sdma(SdmaEngine::Xgmi) => f.write_str("SDMA over xGMI"),
            Self::Sdma(SdmaEngine::Index(engine)) => write!(f, "SDMA of engine {engine}"),
        }
    }
}

/// Which engine serves an SDMA queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum SdmaEngine {
    /// One of those for PCIe, chosen by the kernel.
    #[default]
    Any,
    /// One of those for xGMI, chosen by the kernel.
    Xgmi,
    /// The engine of this number: those for PCIe come first. Needs KFD 1.17.
    Index(u32),
}

/// Bytes of the smallest ring of dwords: one page.
const MIN_RING_BYTES: u32 = 4096;
/// Bytes of the largest: the 32-bit size of CREATE_QUEUE.
const MAX_RING_BYTES: u32 = 1 << 31;

fn check_dword_ring(call: &'static str, ring_bytes: u32, priority: u32) -> Result<()> {
    let refused =
        |what, value: u32| Err(Error::InvalidArgument { call, what, value: u64::from(value) });
    if !ring_bytes.is_power_of_two() || !(MIN_RING_BYTES..=MAX_RING_BYTES).contains(&ring_bytes) {
        return refused("the ring in bytes, a power of two from 4096 to 2^31,", ring_bytes);
    }
    if priority > crate::abi::MAX_QUEUE_PRIORITY {
        return refused("the priority, from 0 to 15,", priority);
    }
    Ok(())
}

/// What PM4 queue to make: the ring's size is required, the rest chained.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Pm4QueueRequest {
    pub(crate) ring_bytes: u32,
    pub(crate) priority: u32,
    pub(crate) private_bytes: u32,
    pub(crate) xcc: u32,
}

impl Pm4QueueRequest {
    /// A queue with a ring of `ring_bytes` bytes, a power of two from 4096 to 2^31.
    pub const fn new(ring_bytes: u32) -> Self {
        Self { ring_bytes, priority: 7, private_bytes: 0, xcc: 0 }
    }

    /// Priority from 0 to 15; 7 is normal.
    pub const fn priority(mut self, priority: u32) -> Self {
        self.priority = priority;
        self
    }

    /// Private memory for kernels that need up to `bytes` a work-item; more comes with
    /// [`Pm4Queue::grow_scratch`](crate::Pm4Queue::grow_scratch).
    pub const fn scratch(mut self, bytes: u32) -> Self {
        self.private_bytes = bytes;
        self
    }

    /// The XCC it runs on, on GPUs with several: a PM4 queue runs on one only.
    pub const fn xcc(mut self, xcc: u32) -> Self {
        self.xcc = xcc;
        self
    }

    pub(crate) fn check(&self) -> Result<()> {
        check_dword_ring("create_pm4_queue", self.ring_bytes, self.priority)
    }
}

/// What SDMA queue to make: the ring's size is required, the rest chained.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct SdmaQueueRequest {
    pub(crate) ring_bytes: u32,
    pub(crate) priority: u32,
    pub(crate) engine: SdmaEngine,
}

impl SdmaQueueRequest {
    /// A queue with a ring of `ring_bytes` bytes, a power of two from 4096 to 2^31, on an engine
    /// for PCIe.
    pub const fn new(ring_bytes: u32) -> Self {
        Self { ring_bytes, priority: 7, engine: SdmaEngine::Any }
    }

    /// Priority from 0 to 15; 7 is normal.
    pub const fn priority(mut self, priority: u32) -> Self {
        self.priority = priority;
        self
    }

    /// The engine.
    pub const fn engine(mut self, engine: SdmaEngine) -> Self {
        self.engine = engine;
        self
    }

    pub(crate) fn check(&self) -> Result<()> {
        check_dword_ring("create_sdma_queue", self.ring_bytes, self.priority)
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

    #[test]
    fn rings_of_dwords_are_powers_of_two_of_pages() {
        for bytes in [0, 1024, 2048, 4097, 6144, u32::MAX] {
            let error = Pm4QueueRequest::new(bytes).check().unwrap_err();
            assert!(error.to_string().contains("power of two from 4096"), "{error}");
            assert!(SdmaQueueRequest::new(bytes).check().is_err());
        }
        assert!(Pm4QueueRequest::new(4096).check().is_ok());
        assert!(SdmaQueueRequest::new(1 << 31).check().is_ok());
        assert!(SdmaQueueRequest::new(4096).priority(16).check().is_err());
    }

    #[test]
    fn kinds_say_what_they_are() {
        let kind = QueueKind::Sdma(SdmaEngine::Index(3));
        assert_eq!((kind.to_string().as_str(), kind.unit()), ("SDMA of engine 3", "bytes"));
        assert!(QueueKind::Pm4.is_compute() && !kind.is_compute());
    }
}
