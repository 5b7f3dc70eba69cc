//! [`CommandBuffer`]: commands recorded once and submitted many times.
//!
//! # Kinds
//! An *indirect buffer* holds PM4 packets in memory that the device executes by itself: a submission
//! is one packet, whatever the length. Where that cannot be (GPUs with several XCCs, kernels that PM4
//! packets cannot launch) the commands are *AQL packets*, copied into the ring by each submission.
//! [`CommandBuffer::kind`] and [`CommandBuffer::reason`] say which it is and why.
//!
//! One exception: on a queue that streams share, kernels with scratch are submitted as packets, since
//! another stream may have the queue's scratch replaced at any time, and only the firmware knows then
//! where it is.
//!
//! # Instances
//! Commands name addresses of arguments, so each submission in flight has a copy of both, an
//! instance. They are made when needed, up to a limit, and used in turn; an instance is the next
//! submission's once the device has passed the one before. What of the queue is in an instance (its
//! scratch memory, where kernels have scratch, and its descriptor, where a kernel looks at it) is
//! noted with it: on a queue where that differs another instance is taken, or one is written anew.

mod changes;
mod copy;
mod error;
mod ib;
mod instance;
mod record;
mod recorded;
mod request;

use std::sync::Arc;
use std::time::Duration;

use pm4::GpuAddr;
use pm4::dispatch::Scratch;

use self::changes::{Changes, Range};
pub use self::error::CommandError;
pub(crate) use self::ib::Binding;
pub(crate) use self::instance::Instance;
use self::instance::State;
pub use self::record::{CommandRecorder, KernelId, TimeId};
use self::recorded::Kernel;
pub(crate) use self::recorded::Recorded;
pub use self::request::{CommandKind, CommandRequest, Reason};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::launch::{Argument, Arguments};

/// Commands that were recorded and can be submitted any number of times, to any stream of their
/// device that takes their kind: [`Stream::submit`](crate::Stream::submit).
///
/// The commands never change; the arguments of kernels do, for submissions to come:
/// [`CommandBuffer::set_argument`]. A submission takes the same time whatever the length of an
/// indirect buffer, plus that of copying what was changed since its instance was last used.
///
/// It may be dropped at any time: what is in flight keeps what it needs. `Send`.
#[derive(Debug)]
pub struct CommandBuffer {
    recorded: Arc<Recorded>,
    /// The arguments of the next submission.
    arguments: Box<[u8]>,
    changes: Changes,
    instances: Vec<Instance>,
    /// The instance used longest ago.
    next: usize,
    submissions: u64,
}

/// One submission of a [`CommandBuffer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Submission {
    tag: u32,
    number: u64,
}

const _: () = assert!(size_of::<Submission>() == 16);
const _: () = assert!(size_of::<CommandBuffer>() <= 128);
const _: () = assert!(size_of::<Instance>() <= 192);

impl CommandBuffer {
    fn new(recorded: Recorded, arguments: Box<[u8]>) -> Self {
        Self {
            // Of what is forgotten, all is copied.
            changes: Changes::new((arguments.len() / 64).clamp(64, 1 << 16)),
            instances: Vec::with_capacity(recorded.request.instances),
            recorded: Arc::new(recorded),
            arguments,
            next: 0,
            submissions: 0,
        }
    }

    /// The device whose streams take it.
    pub fn device(&self) -> Device {
        Device { core: Arc::clone(&self.recorded.device) }
    }

    /// What it is made of.
    pub fn kind(&self) -> CommandKind {
        self.recorded.kind
    }

    /// Why it is of this kind.
    pub fn reason(&self) -> &Reason {
        &self.recorded.reason
    }

    /// Kernels in it, those of copies and fills included.
    pub fn kernels(&self) -> usize {
        self.recorded.kernels.len()
    }

    /// Bytes of memory of an instance.
    pub fn instance_bytes(&self) -> u64 {
        self.recorded.places.bytes.into()
    }

    /// Instances there are: as many as submissions were in flight at once, up to the limit.
    pub fn instances(&self) -> usize {
        self.instances.len()
    }

    /// Changes an explicit argument of a recorded kernel, by its number from 0, for the submissions to
    /// come. Those in flight keep what they have.
    ///
    /// # Errors
    /// [`CommandError::OtherBuffer`]; [`CommandError::NoArgument`]; [`Error::Launch`] when the size is
    /// not that of the argument.
    #[inline]
    pub fn set_argument<A: Argument>(
        &mut self,
        kernel: KernelId,
        index: usize,
        value: A,
    ) -> Result<()> {
        let found = find(&self.recorded, kernel)?;
        let slots = found.cold.layout.slots();
        let Some(slot) = slots.get(index) else {
            return Err(no_argument(found, index, slots.len()));
        };
        let offset = found.kernarg + slot.offset;
        let place = self.arguments.get_mut(offset as usize..);
        let place = place.and_then(|rest| rest.get_mut(..slot.size as usize));
        if !place.is_some_and(|place| value.put(place)) {
            return Err(wrong_size(found, index, value.bytes(), slot.size));
        }
        note(&mut self.changes, self.recorded.places.arguments, found, slot.offset, slot.size);
        Ok(())
    }

    /// Changes all explicit arguments of a recorded kernel for the submissions to come.
    ///
    /// # Errors
    /// [`CommandError::OtherBuffer`]; [`Error::Launch`] when count or sizes differ: nothing is changed
    /// then.
    pub fn set_arguments<A: Arguments>(&mut self, kernel: KernelId, arguments: A) -> Result<()> {
        let found = find(&self.recorded, kernel)?;
        let bytes = found.cold.layout.explicit_bytes();
        let mut packed = vec![0; bytes];
        let packing = arguments.pack(found.cold.layout.slots(), &mut packed);
        packing.map_err(|problem| found.cold.refuse(problem.into()))?;
        let start = found.kernarg as usize;
        if let Some(place) = self.arguments.get_mut(start..start + bytes) {
            place.copy_from_slice(&packed);
        }
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        note(&mut self.changes, self.recorded.places.arguments, found, 0, bytes);
        Ok(())
    }

    /// Whether the device has passed a submission.
    ///
    /// # Errors
    /// [`CommandError::OtherBuffer`]; [`Error::NotReady`] never comes: a stream that was lost, or
    /// dropped before it had done it, has not passed it.
    pub fn is_done(&self, submission: Submission) -> Result<bool> {
        let instance = self.instance_of(submission)?;
        // Its instance has been used again, which comes after that.
        Ok(instance.is_none_or(|instance| instance.state() == State::Idle))
    }

    /// When a submission reached a recorded time, in nanoseconds of `CLOCK_MONOTONIC_RAW`. Kept until
    /// the submission's instance is used again.
    ///
    /// # Errors
    /// [`Error::NotReady`] while the submission is not done; [`CommandError::Overwritten`] when a
    /// later one has taken its place; [`CommandError::OtherBuffer`]; [`Error::Driver`] when the clocks
    /// cannot be read.
    pub fn nanoseconds(&self, submission: Submission, time: TimeId) -> Result<i64> {
        let ticks = self.ticks(submission, time)?;
        let device = &self.recorded.device;
        Ok(device.clock.rate(&device.gpu)?.when(ticks))
    }

    /// Nanoseconds between two recorded times of a submission.
    ///
    /// # Errors
    /// As [`CommandBuffer::nanoseconds`].
    pub fn nanoseconds_between(
        &self,
        submission: Submission,
        from: TimeId,
        to: TimeId,
    ) -> Result<i64> {
        let ticks = (self.ticks(submission, from)?, self.ticks(submission, to)?);
        let device = &self.recorded.device;
        Ok(device.clock.rate(&device.gpu)?.between(ticks.0, ticks.1))
    }

    fn ticks(&self, submission: Submission, time: TimeId) -> Result<u64> {
        if time.tag != self.recorded.tag {
            return Err(other_buffer("time", time.number.into()));
        }
        let number = submission.number;
        match self.instance_of(submission)? {
            None => Err(CommandError::Overwritten { number }.into()),
            Some(instance) if instance.state() == State::Idle => instance.ticks(time.number),
            Some(_) => Err(Error::NotReady),
        }
    }

    fn instance_of(&self, submission: Submission) -> Result<Option<&Instance>> {
        if submission.tag != self.recorded.tag {
            return Err(other_buffer("submission", submission.number));
        }
        Ok(self.instances.iter().find(|instance| instance.submission == submission.number))
    }

    pub(crate) fn recorded(&self) -> &Arc<Recorded> {
        &self.recorded
    }

    /// What of a queue the instances have in them.
    #[inline]
    pub(crate) fn binding(&self, queue: GpuAddr, scratch: Scratch, as_packets: bool) -> Binding {
        Binding {
            queue: if self.recorded.uses_queue { queue } else { GpuAddr::NULL },
            // Of AQL's dispatches the firmware sees to scratch.
            scratch: if as_packets { Scratch::default() } else { scratch },
            as_packets,
        }
    }

    /// An instance that is idle, bound, and has the latest arguments. Waits for one where as many as
    /// can be are in flight.
    #[inline]
    pub(crate) fn prepare(&mut self, binding: &Binding, patience: Duration) -> Result<usize> {
        let at = match self.instances.get(self.next) {
            Some(first) if first.is_bound_to(binding) && first.state() == State::Idle => self.next,
            _ => self.choose(binding, patience)?,
        };
        if let Some(instance) = self.instances.get_mut(at) {
            instance.catch_up(&self.changes, &self.arguments)?;
            if !instance.is_bound_to(binding) {
                instance.bind(binding, &self.arguments)?;
            }
        }
        Ok(at)
    }

    /// Another instance than the one used longest ago, as that is in flight or made for another queue.
    #[cold]
    fn choose(&mut self, binding: &Binding, patience: Duration) -> Result<usize> {
        let idle = |instance: &Instance| instance.state() == State::Idle;
        let fits = |instance: &Instance| instance.is_bound_to(binding) && idle(instance);
        if let Some(at) = self.instances.iter().position(fits) {
            return Ok(at);
        }
        if self.instances.len() < self.recorded.request.instances {
            let instance = self.make()?;
            // What follows was used longer ago than what comes before.
            let at = self.next.min(self.instances.len());
            self.instances.insert(at, instance);
            return Ok(at);
        }
        if let Some(at) = self.instances.iter().position(idle) {
            return Ok(at);
        }
        let lost = |instance: &Instance| instance.state() == State::Lost;
        if let Some(at) = self.instances.iter().position(lost) {
            return self.replace(at);
        }
        let oldest = self.instances.iter().enumerate().min_by_key(|(_, found)| found.submission);
        let (at, user) = oldest.map_or((0, None), |(at, instance)| (at, instance.user()));
        match user {
            Some((stream, operation)) => {
                stream.wait_for(operation, patience)?;
                Ok(at)
            }
            // Its stream has gone this moment.
            None => self.replace(at),
        }
    }

    fn make(&self) -> Result<Instance> {
        Instance::new(&self.recorded, &self.arguments, self.changes.head())
    }

    /// Leaves an instance to the device for ever.
    fn replace(&mut self, at: usize) -> Result<usize> {
        let instance = self.make()?;
        if let Some(place) = self.instances.get_mut(at) {
            *place = instance;
        }
        Ok(at)
    }

    pub(crate) fn instance(&self, at: usize) -> Option<&Instance> {
        self.instances.get(at)
    }

    /// An instance was submitted as an operation of a stream.
    #[inline]
    pub(crate) fn submitted(
        &mut self,
        at: usize,
        stream: &Arc<crate::stream::StreamShared>,
        operation: u64,
    ) -> Submission {
        self.submissions += 1;
        let number = self.submissions;
        if let Some(instance) = self.instances.get_mut(at) {
            instance.give(stream, operation, number);
        }
        self.next = if at + 1 < self.instances.len() { at + 1 } else { 0 };
        Submission { tag: self.recorded.tag, number }
    }
}

/// Notes a change of a kernel's arguments, and of those in packets that it touches.
#[inline]
fn note(changes: &mut Changes, arguments: u32, kernel: &Kernel, offset: u32, bytes: u32) {
    let start = kernel.kernarg + offset;
    changes.push(Range { offset: start, bytes, to: arguments + start });
    if let Some(preload) = &kernel.preload {
        let first = offset.max(preload.first);
        let end = (offset + bytes).min(preload.first + preload.bytes);
        if first < end {
            let to = preload.at + (first - preload.first);
            changes.push(Range { offset: kernel.kernarg + first, bytes: end - first, to });
        }
    }
}

/// A recorded kernel.
#[inline]
fn find(recorded: &Recorded, kernel: KernelId) -> Result<&Kernel> {
    match recorded.kernels.get(kernel.number as usize) {
        Some(found) if kernel.tag == recorded.tag => Ok(found),
        _ => Err(other_buffer("kernel", kernel.number.into())),
    }
}

#[cold]
fn other_buffer(what: &'static str, number: u64) -> Error {
    CommandError::OtherBuffer { what, number }.into()
}

#[cold]
fn no_argument(kernel: &Kernel, index: usize, count: usize) -> Error {
    let kernel = Arc::clone(&kernel.cold.name);
    CommandError::NoArgument { kernel, index, count }.into()
}

#[cold]
fn wrong_size(kernel: &Kernel, index: usize, given: usize, expected: u32) -> Error {
    kernel.cold.refuse(hsaco::ArgumentError::Size { index, given, expected }.into())
}

const _: fn() = || {
    fn sendable<T: Send>() {}
    sendable::<CommandBuffer>();
};
