//! What can be changed about a live queue.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use aql::{AmdQueueV2, BarrierAnd};

use super::create::{allocate_scratch, describe_scratch};
use super::{KernelLabel, Queue};
use crate::abi;
use crate::core::lock;
use crate::error::{Error, Object, Result};
use crate::signal::Signal;
use crate::topology::GfxVersion;
use crate::wait::Until;

/// What the kernel saved of a queue's waves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WaveState {
    /// Bytes used of the control stack.
    pub control_stack_bytes: u32,
    /// Bytes used of the save area.
    pub save_area_bytes: u32,
}

impl Queue {
    fn object(&self) -> Object {
        Object::Queue(self.id())
    }

    fn update(&self, percentage: u32) -> Result<()> {
        let queue = self.core();
        let ring = queue.memory.ring_memory();
        let mut args = abi::UpdateQueueArgs {
            ring_base_address: ring.addr().get(),
            queue_id: self.id(),
            ring_size: u32::try_from(ring.info().bytes).unwrap_or(u32::MAX),
            queue_percentage: percentage,
            queue_priority: queue.priority.load(Ordering::Relaxed),
        };
        self.context.core.call(&mut args, self.object()).map(drop)
    }

    /// Takes the queue off the GPU: its waves are saved. Packets stay where they are.
    ///
    /// # Errors
    /// [`Error::Ioctl`] of UPDATE_QUEUE: `EACCES` after a GPU reset.
    pub fn suspend(&self) -> Result<()> {
        self.update(0)
    }

    /// Lets the queue run again.
    ///
    /// # Errors
    /// As [`Queue::suspend`].
    pub fn resume(&self) -> Result<()> {
        self.update(abi::MAX_QUEUE_PERCENTAGE)
    }

    /// Changes the priority, from 0 to 15. Resumes a suspended queue.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`]; as [`Queue::suspend`].
    pub fn set_priority(&self, priority: u32) -> Result<()> {
        if priority > abi::MAX_QUEUE_PRIORITY {
            let what = "the priority, from 0 to 15,";
            let value = u64::from(priority);
            return Err(Error::InvalidArgument { call: "set_priority", what, value });
        }
        let before = self.core().priority.swap(priority, Ordering::Relaxed);
        self.resume().inspect_err(|_| self.core().priority.store(before, Ordering::Relaxed))
    }

    /// Chooses the compute units it may use: bit n of the words is unit n. On gfx10 and newer units
    /// come in pairs of an even and the next odd one, which go together.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for an empty mask; [`Error::Ioctl`] of SET_CU_MASK: `EINVAL` for
    /// half a pair.
    pub fn set_cu_mask(&self, mask: &[u32]) -> Result<()> {
        if mask.iter().all(|word| *word == 0) {
            let what = "the mask of compute units";
            return Err(Error::InvalidArgument { call: "set_cu_mask", what, value: 0 });
        }
        self.context.core.set_cu_mask(self.id(), mask)
    }

    /// How much the kernel saved of its waves. The queue must be suspended.
    ///
    /// # Errors
    /// [`Error::Ioctl`] of GET_QUEUE_WAVE_STATE: `EINVAL` while the queue is active.
    pub fn wave_state(&self) -> Result<WaveState> {
        let area = self.core().save_area.mapping()?;
        let (control_stack_bytes, save_area_bytes) =
            self.context.core.queue_wave_state(self.id(), area)?;
        Ok(WaveState { control_stack_bytes, save_area_bytes })
    }

    /// Claims the GPU's global wave sync for cooperative kernels, or gives it back.
    ///
    /// # Errors
    /// [`Error::Ioctl`] of ALLOC_QUEUE_GWS: `EBUSY` while another queue of the process has it,
    /// `ENODEV` where there is none, `EINVAL` when there is nothing to give back.
    pub fn set_global_wave_sync(&self, claim: bool) -> Result<()> {
        let node = &self.context.core.gpu(self.core().gpu())?.node;
        let all = node.properties.num_gws.unwrap_or(0).max(1);
        let mut args = abi::AllocQueueGwsArgs {
            queue_id: self.id(),
            num_gws: if claim { all } else { 0 },
            ..Default::default()
        };
        self.context.core.call(&mut args, self.object()).map(drop)
    }

    /// Waits until everything submitted so far is done.
    ///
    /// # Errors
    /// As [`Queue::wait`] and [`Queue::submit_within`].
    pub fn drain(&self, timeout: Duration) -> Result<()> {
        let kernel = &self.context.core.kernel;
        let start = kernel.now();
        let done = Signal::new(&self.context, self.core().gpu(), 1, true)?;
        let packet = BarrierAnd::noop().barrier().completion(done.addr()).encode();
        self.submit_within(&packet, KernelLabel::NONE, timeout)?;
        let left = timeout.saturating_sub(kernel.now().saturating_sub(start));
        self.wait(&done, Until::Below(1), left).map(drop)
    }

    /// Gives kernels up to `bytes` of private memory a work-item. Where that is more than before,
    /// waits until the queue is idle: nothing else may submit meanwhile.
    ///
    /// # Errors
    /// [`Error::Ioctl`] with `ENOMEM` when there is not enough memory even for few waves: the queue
    /// keeps what it has; as [`Queue::drain`].
    pub fn grow_scratch(&self, bytes: u32, timeout: Duration) -> Result<()> {
        let queue = self.core();
        if bytes <= queue.scratch_lane_bytes() {
            return Ok(());
        }
        let mut owned = lock(&queue.scratch);
        if bytes <= queue.scratch_lane_bytes() {
            return Ok(());
        }
        let (scratch, memory) = allocate_scratch(&self.context.core, queue.gpu(), bytes)?;
        self.drain(timeout)?;
        let gfx = self.context.core.gpu(queue.gpu())?.node.gfx_version();
        let mut descriptor = AmdQueueV2::new();
        describe_scratch(&mut descriptor, &scratch, gfx.unwrap_or(GfxVersion::UNKNOWN), &memory);
        // The firmware reads these fields when it connects the queue.
        self.suspend()?;
        let set = queue.memory.words().set_scratch(&descriptor);
        let resumed = self.resume();
        set.map_err(|cause| queue.ring_error(cause))?;
        // Whether it runs again or not, it knows the new memory from here on.
        let old = owned.replace(memory);
        queue.scratch_lane_bytes.store(scratch.lane_bytes, Ordering::Release);
        resumed?;
        drop(old);
        Ok(())
    }
}

impl Queue {
    pub(super) fn new(context: Arc<crate::context::Context>, core: Arc<super::QueueCore>) -> Self {
        let view = Arc::clone(&core);
        Self { context, core: Some(core), view }
    }
}
