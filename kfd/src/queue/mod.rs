//! AQL queues: making one, submitting to it, and taking it down.
//!
//! Everything a queue needs is allocated before CREATE_QUEUE and owned by the queue until
//! DESTROY_QUEUE has succeeded. Where it has not, nothing of it is freed, and
//! [`Kfd::leaks`](crate::Kfd::leaks) says so. Source: docs/ABI.md §Queues.

mod control;
mod create;
mod cwsr;
mod doorbell;
mod exceptions;
mod inspect;
mod live;
mod request;
mod scratch;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use aql::{Packet, PacketType};

use crate::abi;
use crate::context::Context;
use crate::error::{Error, Object, Result};
use crate::ids::{GpuId, QueueId};
use crate::report::QueueState;
use crate::sys::Errno;

pub use control::WaveState;
pub(crate) use exceptions::{Runtime, TrapHandler};
pub use live::KernelLabel;
pub(crate) use live::QueueCore;
pub use request::QueueRequest;

/// An AQL queue of a GPU. `Send` and `Sync`: any thread may submit.
///
/// Dropping it destroys the queue, whatever it is doing: packets that have not finished never will,
/// and their completion signals keep their values.
#[derive(Debug)]
pub struct Queue {
    context: Arc<Context>,
    /// `None` once destroyed.
    core: Option<Arc<QueueCore>>,
    /// What [`Queue::core`] gives then, too.
    view: Arc<QueueCore>,
}

impl Queue {
    pub(crate) fn core(&self) -> &QueueCore {
        &self.view
    }

    /// KFD's id.
    pub fn id(&self) -> QueueId {
        self.view.id()
    }

    /// The GPU it runs on.
    pub fn gpu_id(&self) -> GpuId {
        self.view.gpu_id()
    }

    /// Packets the ring has room for.
    pub fn size(&self) -> u64 {
        self.view.ring().size()
    }

    /// Address of its descriptor (`amd_queue_t`), for kernels that look at it.
    #[inline]
    pub fn descriptor(&self) -> pm4::GpuAddr {
        self.view.memory.page().addr()
    }

    /// Bytes of private memory a work-item can have.
    pub fn scratch_bytes(&self) -> u32 {
        self.view.scratch_lane_bytes()
    }

    /// Submits a packet and returns its index. Plain stores into mapped memory: no system call, no
    /// lock, no allocation.
    ///
    /// # Errors
    /// [`Error::Ring`] when the ring is full ([`Queue::submit_within`] waits) or the device broke
    /// its rules; [`Error::ScratchTooSmall`]; [`Error::DeviceLost`] and [`Error::QueueLost`] once
    /// known.
    #[inline]
    pub fn submit(&self, packet: &Packet, kernel: KernelLabel) -> Result<u64> {
        let queue = &*self.view;
        if queue.is_stopped() {
            return Err(queue.why_stopped());
        }
        if packet.header().packet_type() == PacketType::KERNEL_DISPATCH {
            queue.check_scratch(packet)?;
        }
        let submitted = queue
            .ring()
            .submit_noting(packet, |index| queue.label(index, kernel))
            .map_err(|cause| queue.ring_error(cause))?;
        if let Some(last) = submitted.doorbell {
            queue.doorbell().ring(last);
        }
        Ok(submitted.index)
    }

    /// Submits packets as one batch with one doorbell, and returns the index of the last. All are
    /// submitted or none.
    ///
    /// # Errors
    /// As [`Queue::submit`].
    pub fn submit_all(&self, packets: &[(Packet, KernelLabel)]) -> Result<u64> {
        let queue = &*self.view;
        if queue.is_stopped() {
            return Err(queue.why_stopped());
        }
        for (packet, _) in packets {
            match packet.header().packet_type() {
                PacketType::KERNEL_DISPATCH => queue.check_scratch(packet)?,
                PacketType::INVALID => return Err(queue.ring_error(aql::Error::InvalidPacket)),
                _ => {}
            }
        }
        let count = u32::try_from(packets.len()).unwrap_or(u32::MAX);
        let mut slots = queue.ring().reserve(count).map_err(|cause| queue.ring_error(cause))?;
        for (n, (packet, kernel)) in packets.iter().enumerate() {
            queue.label(slots.first() + n as u64, *kernel);
            slots.push(packet).map_err(|cause| queue.ring_error(cause))?;
        }
        let submitted = slots.commit();
        if let Some(last) = submitted.doorbell {
            queue.doorbell().ring(last);
        }
        Ok(submitted.index)
    }

    /// As [`Queue::submit`], but waits up to `timeout` for room in the ring.
    ///
    /// # Errors
    /// As [`Queue::submit`]; [`Error::Timeout`].
    pub fn submit_within(
        &self,
        packet: &Packet,
        kernel: KernelLabel,
        timeout: Duration,
    ) -> Result<u64> {
        match self.submit(packet, kernel) {
            Err(Error::Ring { cause: aql::Error::Full { .. }, .. }) => {
                self.view.wait_for_room(&self.context, timeout, || self.submit(packet, kernel))
            }
            result => result,
        }
    }

    /// Fails when the queue or its GPU is known to be lost. [`Kfd::poll_faults`] finds out.
    ///
    /// [`Kfd::poll_faults`]: crate::Kfd::poll_faults
    ///
    /// # Errors
    /// [`Error::DeviceLost`], [`Error::QueueLost`].
    pub fn check(&self) -> Result<()> {
        self.view.check()
    }

    /// How far it is, and what is in flight.
    pub fn state(&self) -> QueueState {
        self.view.state(&self.context)
    }

    /// Destroys it and says how that went. Works on a queue that hangs: the kernel takes its waves
    /// off the GPU.
    ///
    /// # Errors
    /// [`Error::Ioctl`] of DESTROY_QUEUE. After `ETIME` and `EIO` the queue is gone although its
    /// waves could not be saved; after anything else it may run on and all its memory is leaked.
    pub fn destroy(mut self) -> Result<()> {
        self.take_down()
    }

    fn take_down(&mut self) -> Result<()> {
        let Some(core) = self.core.take() else { return Ok(()) };
        let mut args = abi::DestroyQueueArgs { queue_id: core.id(), pad: 0 };
        let result = self.context.core.call(&mut args, Object::Queue(core.id())).map(drop);
        self.context.remove_queue(&core);
        core.stop();
        match &result {
            Ok(()) => core.forget_signal(&self.context),
            Err(Error::Ioctl { errno: Errno::TIME | Errno::IO, .. }) => {}
            Err(error) => {
                self.context.core.leak(format!("queue {}", core.id()), core.bytes(), error.clone());
                // One owner more than there are: what it owns is never freed.
                std::mem::forget(core);
            }
        }
        result
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // A failure is in the list of leaks.
        let _ = self.take_down();
    }
}

/// Ordering of the words that devices write to tell of errors.
const REPORT: Ordering = Ordering::Acquire;

const _: fn() = || {
    fn shared<T: Send + Sync>() {}
    shared::<Queue>();
};
