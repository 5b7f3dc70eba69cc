//! [`Instance`]: the memory of one submission.
//!
//! Commands name the addresses of their arguments, so each submission in flight needs a copy of both.
//! While the device has an instance the host does not touch it; once the submission is done it is
//! brought up to date in place and used again.

use std::borrow::Cow;
use std::sync::{Arc, Weak};

use aql::{AmdSignal, BarrierAnd, FenceScope, Packet};
use kfd::{Buffer, KernelLabel, MemoryRequest};
use pm4::{GpuAddr, IndirectBuffer};
use zerocopy::IntoBytes;

use super::Changes;
use super::ib::{self, Addresses, Binding};
use super::recorded::{Recorded, STAMP_TICKS, Step};
use crate::error::Result;
use crate::protocol::Progress;
use crate::stream::StreamShared;

/// What the device reads and writes. A stream keeps it while it may.
#[derive(Debug)]
pub(crate) struct Memory {
    pub recorded: Arc<Recorded>,
    /// `None` where there is nothing to be kept.
    buffer: Option<Buffer>,
}

/// Who has an instance.
#[derive(Clone, Debug)]
pub(crate) struct User {
    /// Weak: the stream's queue goes when the stream does.
    stream: Weak<StreamShared>,
    progress: Arc<Progress>,
    /// The operation that has to be done.
    pub operation: u64,
}

/// How it is with an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Nobody has it.
    Idle,
    /// The device may have it.
    Busy,
    /// The device may have it for ever: its stream is lost, or gone without having been done.
    Lost,
}

/// A copy of the commands and their arguments.
#[derive(Debug)]
pub(crate) struct Instance {
    pub memory: Arc<Memory>,
    /// What is submitted is for a queue like this.
    binding: Option<Binding>,
    /// The first indirect buffer. Made when it is bound to a queue that runs it.
    buffer: Option<IndirectBuffer>,
    /// AQL packets, each with its kernel's name. Made when it is bound to a queue that needs them.
    packets: Option<Box<[(Packet, KernelLabel)]>>,
    /// Changes of arguments that are in it.
    seen: u64,
    user: Option<User>,
    /// The submission that used it last; 0 for none.
    pub submission: u64,
}

impl Memory {
    fn new(recorded: &Arc<Recorded>) -> Result<Self> {
        let bytes = u64::from(recorded.places.bytes);
        let buffer = if bytes == 0 {
            None
        } else {
            let request = MemoryRequest::gtt(bytes).executable().coherent().uncached();
            Some(recorded.device.gpu.allocate(&request.label("command buffer"))?)
        };
        Ok(Self { recorded: Arc::clone(recorded), buffer })
    }

    fn base(&self) -> GpuAddr {
        self.buffer.as_ref().map_or(GpuAddr::NULL, Buffer::addr)
    }

    fn at(&self, offset: u32) -> GpuAddr {
        GpuAddr::new(self.base().get() + u64::from(offset))
    }

    #[inline]
    fn write(&self, offset: u32, bytes: &[u8]) -> Result<()> {
        match &self.buffer {
            Some(buffer) => Ok(buffer.write(u64::from(offset), bytes)?),
            None => Ok(()),
        }
    }
}

impl User {
    /// Operation number `operation` of a stream.
    pub fn new(stream: &Arc<StreamShared>, operation: u64) -> Self {
        let progress = Arc::clone(&stream.progress);
        Self { stream: Arc::downgrade(stream), progress, operation }
    }

    fn state(&self) -> State {
        if self.progress.passed() >= self.operation {
            return State::Idle;
        }
        match self.stream.upgrade().map(|stream| stream.learn()) {
            Some(Ok(passed)) if passed >= self.operation => State::Idle,
            Some(Ok(_)) => State::Busy,
            Some(Err(_)) | None => State::Lost,
        }
    }
}

impl Instance {
    /// Makes one, with `arguments`, which include `seen` changes.
    pub fn new(recorded: &Arc<Recorded>, arguments: &[u8], seen: u64) -> Result<Self> {
        let memory = Arc::new(Memory::new(recorded)?);
        let places = &recorded.places;
        memory.write(places.arguments, arguments)?;
        for stamp in 0..recorded.stamps {
            // Each submission takes one off, and nobody looks.
            memory.write(places.stamp(stamp), AmdSignal::user(i64::MAX).as_bytes())?;
        }
        Ok(Self {
            memory,
            binding: None,
            buffer: None,
            packets: None,
            seen,
            user: None,
            submission: 0,
        })
    }

    /// How it is with it.
    #[inline]
    pub fn state(&self) -> State {
        self.user.as_ref().map_or(State::Idle, User::state)
    }

    /// Who waits for it can wait for this operation of this stream.
    pub fn user(&self) -> Option<(Arc<StreamShared>, u64)> {
        let user = self.user.as_ref()?;
        Some((user.stream.upgrade()?, user.operation))
    }

    /// An operation of a stream has it.
    #[inline]
    pub fn give(&mut self, stream: &Arc<StreamShared>, operation: u64, submission: u64) {
        self.submission = submission;
        match &mut self.user {
            Some(user) if std::ptr::eq(user.stream.as_ptr(), &raw const **stream) => {
                user.operation = operation;
            }
            user => *user = Some(User::new(stream, operation)),
        }
    }

    /// Whether it is made for a queue.
    #[inline]
    pub fn is_bound_to(&self, binding: &Binding) -> bool {
        self.binding.as_ref() == Some(binding)
    }

    /// Brings the arguments up to date. It is idle.
    #[inline]
    pub fn catch_up(&mut self, changes: &Changes, arguments: &[u8]) -> Result<()> {
        if self.seen == changes.head() {
            return Ok(());
        }
        let start = self.memory.recorded.places.arguments;
        let Some(since) = changes.since(self.seen) else {
            self.memory.write(start, arguments)?;
            // The queue's address was overwritten; and packets hold arguments.
            let recorded = &self.memory.recorded;
            if recorded.has_preload || !recorded.queue_words.is_empty() {
                self.binding = None;
            }
            self.seen = changes.head();
            return Ok(());
        };
        for range in since {
            let at = range.offset as usize;
            let bytes = arguments.get(at..at + range.bytes as usize).unwrap_or_default();
            self.memory.write(range.to, bytes)?;
        }
        self.seen = changes.head();
        Ok(())
    }

    /// Makes it for a queue. It is idle.
    #[cold]
    pub fn bind(&mut self, binding: &Binding, arguments: &[u8]) -> Result<()> {
        self.binding = None;
        let memory = &self.memory;
        let recorded = &memory.recorded;
        let start = recorded.places.arguments;
        for at in &recorded.queue_words {
            memory.write(start + at, &binding.queue.get().to_le_bytes())?;
        }
        if !binding.as_packets {
            self.buffer = buffers(memory, binding, arguments)?;
        } else if self.packets.is_none() {
            self.packets = Some(packets(memory));
        }
        self.binding = Some(*binding);
        Ok(())
    }

    /// The indirect buffer to enter, of an instance that is bound to a queue that runs it.
    #[inline]
    pub fn buffer(&self) -> Option<IndirectBuffer> {
        self.buffer
    }

    /// The packets, of an instance that is bound to a queue that needs them.
    #[inline]
    pub fn packets(&self) -> &[(Packet, KernelLabel)] {
        self.packets.as_deref().unwrap_or_default()
    }

    /// A time that the last submission took, in ticks.
    pub fn ticks(&self, stamp: u32) -> Result<u64> {
        let at = self.memory.recorded.places.stamp(stamp) + STAMP_TICKS;
        match &self.memory.buffer {
            Some(buffer) => {
                Ok(buffer.u64(u64::from(at))?.load(std::sync::atomic::Ordering::Acquire))
            }
            None => Ok(0),
        }
    }
}

/// Writes the indirect buffers, the last first, and returns the first.
fn buffers(memory: &Memory, binding: &Binding, arguments: &[u8]) -> Result<Option<IndirectBuffer>> {
    let recorded = &*memory.recorded;
    let Some(target) = recorded.device.pm4 else { return Ok(None) };
    let (kernels, places) = (&recorded.kernels, recorded.places);
    let mut arguments = Cow::Borrowed(arguments);
    for at in &recorded.queue_words {
        let place = arguments.to_mut().get_mut(*at as usize..).and_then(<[u8]>::first_chunk_mut);
        if let Some(place) = place {
            *place = binding.queue.get().to_le_bytes();
        }
    }
    let base = memory.base();
    let addresses = Addresses { base, places, binding: *binding, arguments: &arguments };
    for kernel in kernels {
        if let Some(packet) = kernel.packet {
            let bytes = kernel.packet(memory.at(places.arguments), true).to_bytes();
            memory.write(places.packet(packet), &bytes)?;
        }
    }
    let mut next = None;
    let mut words = Vec::new();
    for segment in recorded.segments.iter().rev() {
        words.clear();
        words.resize(segment.dwords as usize, 0);
        let steps = recorded.steps.get(segment.steps.clone()).unwrap_or_default();
        let is_first = segment.at == 0;
        ib::write(target, kernels, steps, is_first, next, &addresses, &mut words)?;
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        memory.write(segment.at, &bytes)?;
        let buffer = IndirectBuffer::new(memory.at(segment.at), segment.dwords);
        next =
            Some(buffer.map_err(|cause| crate::Error::Packet { what: "command buffer", cause })?);
    }
    Ok(next)
}

/// The packets between the first, which acquires, and the last, which counts.
fn packets(memory: &Memory) -> Box<[(Packet, KernelLabel)]> {
    let recorded = &*memory.recorded;
    let arguments = memory.at(recorded.places.arguments);
    let mut packets = Vec::new();
    // The packet in front has a barrier, and nothing has to wait for it.
    let mut barrier = true;
    for step in &recorded.steps {
        match step {
            Step::Barrier => barrier = true,
            Step::Kernel(number) => {
                if let Some(kernel) = recorded.kernels.get(*number as usize) {
                    packets.push((kernel.packet(arguments, barrier), kernel.cold.label));
                    barrier = false;
                }
            }
            Step::Stamp(stamp) => {
                let signal = memory.at(recorded.places.stamp(*stamp));
                let packet = BarrierAnd::noop().barrier().release(FenceScope::NONE);
                packets.push((packet.completion(signal).encode(), KernelLabel::NONE));
            }
        }
    }
    packets.into_boxed_slice()
}
