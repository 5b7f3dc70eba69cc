//! [`CommandRecorder`]: collects commands, checked one by one, and finishes them into a buffer.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use hsaco::{ArgumentError, Needs};
use kfd::Buffer;

use super::recorded::{Kernel, Places, Recorded, Step};
use super::{CommandBuffer, CommandError, CommandKind, CommandRequest, Reason, ib};
use crate::device::{Device, DeviceCore, same_device};
use crate::error::{Error, LaunchProblem, Result};
use crate::launch::{Arguments, Cold, Function, Grid};

/// Tells command buffers of this process apart.
static TAGS: AtomicU32 = AtomicU32::new(0);

/// Most of anything that is counted.
const MAX_COUNT: u32 = 1 << 24;
/// Most bytes of arguments.
const MAX_ARGUMENTS: u64 = 1 << 30;

/// A recorded kernel, whose arguments can be changed for submissions to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KernelId {
    pub(crate) tag: u32,
    pub(crate) number: u32,
}

/// A recorded time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TimeId {
    pub(crate) tag: u32,
    pub(crate) number: u32,
}

/// Records commands for one GPU.
///
/// A call that fails records nothing. `Send`.
#[derive(Debug)]
pub struct CommandRecorder {
    pub(super) device: Arc<DeviceCore>,
    request: CommandRequest,
    kind: CommandKind,
    reason: Reason,
    tag: u32,
    steps: Vec<Step>,
    /// Something was recorded that a barrier would wait for.
    is_open: bool,
    kernels: Vec<Kernel>,
    stamps: u32,
    packets: u32,
    arguments: Vec<u8>,
    /// Alignment of the arguments, bytes.
    align: u32,
    queue_words: Vec<u32>,
    staging: Vec<u8>,
    pub(super) memory: Vec<Arc<Buffer>>,
}

impl CommandRecorder {
    /// Records for streams of `device`.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a request that cannot be; [`Error::Unsupported`] when an
    /// indirect buffer is asked for and the GPU's PM4 packets are not known, or it has several XCCs.
    pub fn new(device: &Device, request: CommandRequest) -> Result<Self> {
        let device = Arc::clone(&device.core);
        let call = "CommandRecorder::new";
        let dwords = request.buffer_dwords;
        let buffers = ib::MIN_BUFFER_DWORDS..=pm4::IndirectBuffer::MAX_BUFFER_DWORDS;
        if !buffers.contains(&dwords) {
            let what = "the dwords of an indirect buffer (from 256 to 2^20 - 1)";
            return Err(Error::InvalidArgument { call, what, value: dwords.into() });
        }
        if request.instances == 0 || request.instances > 1024 {
            let what = "the number of instances (from 1 to 1024)";
            let value = request.instances as u64;
            return Err(Error::InvalidArgument { call, what, value });
        }
        let xccs = device.gpu.node().num_xcc();
        let (kind, reason) = match request.kind {
            Some(CommandKind::IndirectBuffer) if device.pm4.is_none() => {
                let what = "its PM4 packets are not known: record command buffers as packets";
                return Err(Error::Unsupported { gpu: device.gpu.id(), what });
            }
            Some(CommandKind::IndirectBuffer) if xccs > 1 => {
                let what = "only AQL uses all of its XCCs: record command buffers as packets";
                return Err(Error::Unsupported { gpu: device.gpu.id(), what });
            }
            Some(kind) => (kind, Reason::Asked),
            None if device.pm4.is_none() => (CommandKind::Packets, Reason::UnknownPm4),
            None if xccs > 1 => (CommandKind::Packets, Reason::Xccs(xccs)),
            None => (CommandKind::IndirectBuffer, Reason::Fastest),
        };
        Ok(Self {
            device,
            request,
            kind,
            reason,
            tag: TAGS.fetch_add(1, Ordering::Relaxed),
            steps: Vec::new(),
            is_open: false,
            kernels: Vec::new(),
            stamps: 0,
            packets: 0,
            arguments: Vec::new(),
            align: 64,
            queue_words: Vec::new(),
            staging: Vec::new(),
            memory: Vec::new(),
        })
    }

    /// Launches `function` over `grid`, with `arguments` until [they are changed]. They are checked
    /// as those of [`Stream::launch`](crate::Stream::launch) are.
    ///
    /// [they are changed]: CommandBuffer::set_argument
    ///
    /// # Errors
    /// [`Error::Launch`] with the reason and its numbers; [`Error::OtherDevice`];
    /// [`CommandError::Service`] for a kernel that needs memory of each launch;
    /// [`CommandError::TooLarge`].
    pub fn kernel<A: Arguments>(
        &mut self,
        function: &Function,
        grid: &Grid,
        arguments: A,
    ) -> Result<KernelId> {
        let number = self.add_kernel(&function.cold, grid, &arguments, true)?;
        Ok(KernelId { tag: self.tag, number })
    }

    /// What comes next waits for everything recorded so far, and sees what it wrote. In order this is
    /// so by itself.
    pub fn barrier(&mut self) {
        if self.is_open {
            self.steps.push(Step::Barrier);
            self.is_open = false;
        }
    }

    /// Takes the time when everything recorded so far is done. As packets, what comes next waits for
    /// it, too.
    ///
    /// # Errors
    /// [`CommandError::TooLarge`].
    pub fn time(&mut self) -> Result<TimeId> {
        let number = self.stamps;
        count("times", number)?;
        self.steps.push(Step::Stamp(number));
        self.stamps += 1;
        Ok(TimeId { tag: self.tag, number })
    }

    /// Ends the recording.
    ///
    /// # Errors
    /// [`CommandError::TooLarge`]; [`Error::Launch`] when a kernel cannot be part of an indirect
    /// buffer that was asked for.
    pub fn finish(mut self) -> Result<CommandBuffer> {
        self.memory.sort_by_key(|memory| Arc::as_ptr(memory).addr());
        self.memory.dedup_by(|a, b| Arc::ptr_eq(a, b));
        let is_buffer = self.kind == CommandKind::IndirectBuffer;
        let segments = match self.device.pm4 {
            Some(target) if is_buffer => {
                let most = self.request.buffer_dwords;
                ib::segments(target, &mut self.kernels, &self.steps, most)?
            }
            _ => Box::default(),
        };
        let buffers = segments.last().map_or(0, |last| last.at + 4 * last.dwords);
        let packets = if is_buffer { self.packets } else { 0 };
        let arguments = u32::try_from(self.arguments.len()).unwrap_or(u32::MAX);
        let places = Places::new(buffers, self.align, arguments, packets, self.stamps);
        let places = places.ok_or(CommandError::TooLarge {
            what: "bytes of commands, arguments and times",
            found: u64::from(u32::MAX) + 1,
            max: u32::MAX.into(),
        })?;
        let private_bytes = self.kernels.iter().map(|kernel| kernel.cold.private_bytes).max();
        let uses_queue =
            !self.queue_words.is_empty() || is_buffer && self.kernels.iter().any(ib::wants_queue);
        let has_preload = self.kernels.iter().any(|kernel| kernel.preload.is_some());
        let recorded = Recorded {
            label: self.device.shared.label(&"a command buffer".into()),
            device: self.device,
            request: self.request,
            kind: self.kind,
            reason: self.reason,
            tag: self.tag,
            steps: self.steps.into_boxed_slice(),
            kernels: self.kernels.into_boxed_slice(),
            stamps: self.stamps,
            queue_words: self.queue_words.into_boxed_slice(),
            has_preload,
            uses_queue,
            private_bytes: private_bytes.unwrap_or(0),
            places,
            segments,
            _memory: self.memory.into_boxed_slice(),
        };
        Ok(CommandBuffer::new(recorded, self.arguments.into_boxed_slice()))
    }

    /// Where the recording is.
    pub(super) fn mark(&self) -> Mark {
        Mark {
            steps: self.steps.len(),
            is_open: self.is_open,
            kernels: self.kernels.len(),
            arguments: self.arguments.len(),
            queue_words: self.queue_words.len(),
            packets: self.packets,
        }
    }

    /// Forgets what was recorded since.
    pub(super) fn rewind(&mut self, mark: &Mark) {
        self.steps.truncate(mark.steps);
        self.is_open = mark.is_open;
        self.kernels.truncate(mark.kernels);
        self.arguments.truncate(mark.arguments);
        self.queue_words.truncate(mark.queue_words);
        self.packets = mark.packets;
    }

    /// Records a launch and returns its number. It `follows` what comes before it, unless the order is
    /// explicit; otherwise it may overlap with that, up to a barrier.
    pub(super) fn add_kernel<A: Arguments>(
        &mut self,
        cold: &Arc<Cold>,
        grid: &Grid,
        arguments: &A,
        follows: bool,
    ) -> Result<u32> {
        same_device(&self.device, &cold.device, "the function")?;
        if cold.needs.contains(Needs::PRINTF_BUFFER) {
            let service = "buffered printf (hidden_printf_buffer)";
            let kernel = Arc::clone(&cold.name);
            return Err(CommandError::Service { kernel, service }.into());
        }
        let size = *grid.check(&cold.limits).map_err(|problem| cold.refuse(problem))?;
        let number = self.kernels.len() as u64;
        let number = count("kernels", u32::try_from(number).unwrap_or(u32::MAX))?;
        let kernarg = self.pack(cold, grid, &size, arguments)?;
        let mut kernel = Kernel {
            cold: Arc::clone(cold),
            size,
            lds_bytes: cold.lds_bytes(grid),
            kernarg,
            packet: None,
            preload: None,
        };
        if ib::wants_packet(&kernel) {
            kernel.packet = Some(self.packets);
        }
        if self.kind == CommandKind::IndirectBuffer {
            match ib::check(&kernel) {
                Ok(()) => {}
                Err(Error::Launch { kernel, problem }) if self.request.kind.is_none() => {
                    self.kind = CommandKind::Packets;
                    self.reason = Reason::Kernel(kernel, problem);
                }
                Err(error) => return Err(error),
            }
        }
        // Nothing fails from here on.
        let layout = &cold.layout;
        let bytes = layout.ring_bytes() as usize;
        self.arguments.resize(kernarg as usize, 0);
        self.arguments.extend(self.staging.iter().take(bytes));
        self.align = self.align.max(layout.align());
        if let Some(at) = layout.queue_at() {
            self.queue_words.push(kernarg.saturating_add(u32::try_from(at).unwrap_or(u32::MAX)));
        }
        self.packets += u32::from(kernel.packet.is_some());
        if follows && !self.request.explicit_order {
            self.barrier();
        }
        self.steps.push(Step::Kernel(number));
        self.is_open = true;
        self.kernels.push(kernel);
        Ok(number)
    }

    /// Makes the kernel arguments of a launch in the staging memory, and returns where they will be.
    fn pack<A: Arguments>(
        &mut self,
        cold: &Cold,
        grid: &Grid,
        size: &crate::launch::Size,
        arguments: &A,
    ) -> Result<u32> {
        let layout = &cold.layout;
        let needed = layout.staging_bytes();
        if needed > self.staging.len() {
            let more = needed - self.staging.len();
            self.staging.try_reserve_exact(more).map_err(|_| {
                let space = ArgumentError::Space { needed, found: self.staging.len() };
                cold.refuse(LaunchProblem::Arguments(space))
            })?;
            self.staging.resize(needed, 0);
        }
        // The address of the queue comes with the queue.
        let lds = grid.dynamic_lds_bytes();
        let filled = layout.fill(&mut self.staging, arguments, size, lds, || 0);
        filled.map_err(|problem| cold.refuse(problem))?;
        let start = self.arguments.len().next_multiple_of(layout.align() as usize) as u64;
        let found = start + u64::from(layout.ring_bytes());
        if found > MAX_ARGUMENTS {
            let (what, max) = ("bytes of kernel arguments", MAX_ARGUMENTS);
            return Err(CommandError::TooLarge { what, found, max }.into());
        }
        Ok(u32::try_from(start).unwrap_or(u32::MAX))
    }
}

/// A point in a recording.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    steps: usize,
    is_open: bool,
    kernels: usize,
    arguments: usize,
    queue_words: usize,
    packets: u32,
}

/// Checks that another of something can be counted.
fn count(what: &'static str, count: u32) -> Result<u32> {
    if count < MAX_COUNT {
        return Ok(count);
    }
    let (found, max) = (u64::from(count) + 1, MAX_COUNT.into());
    Err(CommandError::TooLarge { what, found, max }.into())
}

const _: fn() = || {
    fn sendable<T: Send>() {}
    sendable::<CommandRecorder>();
};
