//! What can be done to a queue of any kind: changed, taken off the GPU, taken down.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::live::{Live, QueueCore};
use crate::abi;
use crate::context::Context;
use crate::error::{Error, Object, Result};
use crate::sys::Errno;

/// What the kernel saved of a queue's waves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WaveState {
    /// Bytes used of the control stack.
    pub control_stack_bytes: u32,
    /// Bytes used of the save area.
    pub save_area_bytes: u32,
}

impl QueueCore {
    pub fn object(&self) -> Object {
        Object::Queue(self.id)
    }

    fn update(&self, percentage: u32) -> Result<()> {
        let mut args = abi::UpdateQueueArgs {
            ring_base_address: self.ring.addr().get(),
            queue_id: self.id,
            ring_size: u32::try_from(self.ring.info().bytes).unwrap_or(u32::MAX),
            queue_percentage: percentage | self.percentage_bits,
            queue_priority: self.priority.load(Ordering::Relaxed),
        };
        self.core.call(&mut args, self.object())?;
        self.suspended.store(percentage == 0, Ordering::Relaxed);
        Ok(())
    }

    pub fn suspend(&self) -> Result<()> {
        self.update(0)
    }

    pub fn resume(&self) -> Result<()> {
        self.update(abi::MAX_QUEUE_PERCENTAGE)
    }

    pub fn set_priority(&self, priority: u32) -> Result<()> {
        if priority > abi::MAX_QUEUE_PRIORITY {
            let what = "the priority, from 0 to 15,";
            let value = u64::from(priority);
            return Err(Error::InvalidArgument { call: "set_priority", what, value });
        }
        let before = self.priority.swap(priority, Ordering::Relaxed);
        self.resume().inspect_err(|_| self.priority.store(before, Ordering::Relaxed))
    }

    pub fn set_cu_mask(&self, mask: &[u32]) -> Result<()> {
        if mask.iter().all(|word| *word == 0) {
            let what = "the mask of compute units";
            return Err(Error::InvalidArgument { call: "set_cu_mask", what, value: 0 });
        }
        self.core.set_cu_mask(self.id, mask)
    }

    pub fn wave_state(&self) -> Result<WaveState> {
        let none = Error::Unsupported { gpu: self.gpu_id(), missing: "waves of a copy queue" };
        let area = self.save_area.as_ref().ok_or(none)?.mapping()?;
        let (control_stack_bytes, save_area_bytes) = self.core.queue_wave_state(self.id, area)?;
        Ok(WaveState { control_stack_bytes, save_area_bytes })
    }
}

/// Destroys a queue. Where the kernel may not have done it, everything the queue owns is leaked.
pub(super) fn take_down(context: &Context, live: &Arc<dyn Live>) -> Result<()> {
    let queue = live.core();
    let mut args = abi::DestroyQueueArgs { queue_id: queue.id, pad: 0 };
    let result = queue.core.call(&mut args, queue.object()).map(drop);
    context.remove_queue(live);
    queue.stop();
    match &result {
        Ok(()) => queue.forget_signal(context),
        Err(Error::Ioctl { errno: Errno::TIME | Errno::IO, .. }) => {}
        Err(error) => {
            queue.core.leak(format!("queue {}", queue.id), queue.bytes(), error.clone());
            // One owner more than there are: what it owns is never freed.
            std::mem::forget(Arc::clone(live));
        }
    }
    result
}

/// The methods that queues of all kinds have, for a type with `context`, `live` and `destroyed`.
macro_rules! queue_methods {
    ($queue:ident) => {
        impl $queue {
            /// KFD's id.
            pub fn id(&self) -> $crate::QueueId {
                self.as_live().core().id()
            }

            /// The GPU it runs on.
            pub fn gpu_id(&self) -> $crate::GpuId {
                self.as_live().core().gpu_id()
            }

            /// Fails when the queue or its GPU is known to be lost. [`Kfd::poll_faults`] finds out.
            ///
            /// [`Kfd::poll_faults`]: crate::Kfd::poll_faults
            ///
            /// # Errors
            /// [`Error::DeviceLost`], [`Error::QueueLost`].
            pub fn check(&self) -> $crate::Result<()> {
                self.as_live().core().check()
            }

            /// How far it is, and what is in flight.
            pub fn state(&self) -> $crate::report::QueueState {
                self.as_live().state(&self.context)
            }

            /// Takes the queue off the GPU: its waves are saved. Packets stay where they are.
            ///
            /// # Errors
            /// [`Error::Ioctl`] of UPDATE_QUEUE: `EACCES` after a GPU reset.
            pub fn suspend(&self) -> $crate::Result<()> {
                self.as_live().core().suspend()
            }

            /// Lets the queue run again.
            ///
            /// # Errors
            /// As [`Self::suspend`].
            pub fn resume(&self) -> $crate::Result<()> {
                self.as_live().core().resume()
            }

            /// Changes the priority, from 0 to 15. Resumes a suspended queue.
            ///
            /// # Errors
            /// [`Error::InvalidArgument`]; as [`Self::suspend`].
            pub fn set_priority(&self, priority: u32) -> $crate::Result<()> {
                self.as_live().core().set_priority(priority)
            }

            /// Waits for a value that packets of this queue lead to, and returns it.
            ///
            /// Spins for about 20 µs, then sleeps in the kernel. `timeout` is rounded up to
            /// milliseconds then, and the kernel adds up to two ticks (4 ms each at HZ=250).
            ///
            /// # Errors
            /// [`Error::Timeout`] with what the queue stands at; [`Error::DeviceLost`] with the
            /// first cause when the GPU faulted; [`Error::QueueLost`] when the queue reported an
            /// exception.
            ///
            /// # Source
            /// `AMDKFD_IOC_WAIT_EVENTS` in include/uapi/linux/kfd_ioctl.h; docs/ABI.md §Events.
            #[inline]
            pub fn wait(
                &self,
                signal: &$crate::Signal,
                until: $crate::Until,
                timeout: std::time::Duration,
            ) -> $crate::Result<i64> {
                let value = signal.value();
                if until.holds(value) {
                    return Ok(value);
                }
                signal.wait_long(until, &[self.as_live()], timeout)
            }

            /// Destroys it and says how that went. Works on a queue that hangs: the kernel takes
            /// its work off the GPU.
            ///
            /// # Errors
            /// [`Error::Ioctl`] of DESTROY_QUEUE. After `ETIME` and `EIO` the queue is gone although
            /// its waves could not be saved; after anything else it may run on and all its memory is
            /// leaked.
            pub fn destroy(mut self) -> $crate::Result<()> {
                self.take_down()
            }

            fn as_live(&self) -> &dyn $crate::queue::Live {
                &*self.live
            }

            fn take_down(&mut self) -> $crate::Result<()> {
                if std::mem::replace(&mut self.destroyed, true) {
                    return Ok(());
                }
                let live: std::sync::Arc<dyn $crate::queue::Live> = self.live.clone();
                $crate::queue::control::take_down(&self.context, &live)
            }
        }

        impl Drop for $queue {
            fn drop(&mut self) {
                // A failure is in the list of leaks.
                let _ = self.take_down();
            }
        }

        impl $crate::queue::any::Sealed for $queue {
            fn view(&self) -> $crate::queue::any::View<'_> {
                $crate::queue::any::View(self.as_live())
            }
        }

        impl $crate::AnyQueue for $queue {}
    };
}
pub(super) use queue_methods;

/// The methods of queues that run kernels.
macro_rules! compute_queue_methods {
    ($queue:ident) => {
        impl $queue {
            /// Bytes of private memory a work-item can have.
            pub fn scratch_bytes(&self) -> u32 {
                self.as_live().core().scratch_lane_bytes()
            }

            /// Chooses the compute units it may use: bit n of the words is unit n. On gfx10 and
            /// newer units come in pairs of an even and the next odd one, which go together.
            ///
            /// # Errors
            /// [`Error::InvalidArgument`] for an empty mask; [`Error::Ioctl`] of SET_CU_MASK:
            /// `EINVAL` for half a pair.
            pub fn set_cu_mask(&self, mask: &[u32]) -> $crate::Result<()> {
                self.as_live().core().set_cu_mask(mask)
            }

            /// How much the kernel saved of its waves. The queue must be suspended.
            ///
            /// # Errors
            /// [`Error::Ioctl`] of GET_QUEUE_WAVE_STATE: `EINVAL` while the queue is active.
            pub fn wave_state(&self) -> $crate::Result<$crate::WaveState> {
                self.as_live().core().wave_state()
            }
        }
    };
}
pub(super) use compute_queue_methods;
