//! [`Pm4Queue`]: a queue of PM4 packets.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use aql::AmdQueueV2;
use pm4::dispatch::Scratch as DispatchScratch;
use pm4::packet::{EventWrite, gfx9, gfx11};
use pm4::sdma::Version;
use pm4::{GpuAddr, IbBuilder, ReleaseMem, RingSink, Target};

use super::control::{compute_queue_methods, queue_methods};
use super::create::{self, Recipe};
use super::dword_queue::{DwordLive, Language, Producer, dword_queue_methods};
use super::scratch::{describe, dispatch_scratch};
use super::{Pm4QueueRequest, QueueKind};
use crate::context::Context;
use crate::core::lock;
use crate::error::{Error, Result};
use crate::gpu::Gpu;
use crate::signal::Signal;
use crate::topology::GfxVersion;
use crate::wait::Until;

/// A PM4 queue of a GPU, with one producer: submission takes `&mut self`, and no lock or locked
/// instruction. `Send`.
///
/// Caches, completion and the life of what packets name are the caller's. The device may read packets
/// as soon as [`Pm4Queue::ring`] or [`Pm4Queue::submit`] told it. On GPUs with several XCCs the queue
/// runs on one of them.
///
/// Dropping it destroys the queue, whatever it is doing.
#[derive(Debug)]
pub struct Pm4Queue {
    context: Arc<Context>,
    live: Arc<DwordLive>,
    destroyed: bool,
    producer: Producer,
    target: Target,
    scratch: DispatchScratch,
}

queue_methods!(Pm4Queue);
compute_queue_methods!(Pm4Queue);
dword_queue_methods!(Pm4Queue, IbBuilder<RingSink<'_>>, "dwords.");

impl Gpu {
    /// Makes a PM4 queue.
    ///
    /// # Errors
    /// As [`Gpu::create_queue`]; [`Error::Unsupported`] where the packets of the GPU are not known.
    pub fn create_pm4_queue(&self, request: &Pm4QueueRequest) -> Result<Pm4Queue> {
        request.check()?;
        let xccs = self.node().num_xcc();
        if request.xcc >= xccs {
            let what = "the XCC, which the GPU does not have,";
            let value = u64::from(request.xcc);
            return Err(Error::InvalidArgument { call: "create_pm4_queue", what, value });
        }
        let target = self.pm4_target()?;
        let recipe = Recipe {
            kind: QueueKind::Pm4,
            ring_bytes: u64::from(request.ring_bytes),
            priority: request.priority,
            private_bytes: request.private_bytes,
            profiling: false,
            percentage_bits: request.xcc << XCC_SHIFT,
        };
        let (live, scratch) = DwordLive::create(self, &recipe, Language::Pm4(target))?;
        let memory = lock(&live.core.scratch).clone();
        let scratch = match (scratch, memory) {
            (Some(scratch), Some(memory)) => {
                dispatch_scratch(&scratch, self.gfx_version(), &memory)
            }
            _ => DispatchScratch::default(),
        };
        Ok(Pm4Queue {
            context: Arc::clone(&self.context),
            live,
            destroyed: false,
            producer: Producer::new(),
            target,
            scratch,
        })
    }

    /// Whose packets and registers this GPU has.
    ///
    /// # Errors
    /// [`Error::Unsupported`].
    pub fn pm4_target(&self) -> Result<Target> {
        let version = self.node().properties.gfx_target_version;
        let missing = "its PM4 and SDMA packets are not known";
        let unknown = Error::Unsupported { gpu: self.id(), missing };
        version.and_then(Target::from_version).ok_or(unknown)
    }
}

/// Where `queue_percentage` has the XCC of a PM4 queue. Source: docs/ABI.md §PM4 and SDMA queues.
const XCC_SHIFT: u32 = 8;

impl Pm4Queue {
    /// Nothing is padded.
    #[allow(clippy::unused_self)] // as of the other queue of dwords
    fn padded_for(&self) -> Option<Version> {
        None
    }

    /// As [`Self::submit`], without telling the device: [`Self::ring`] does it for a batch.
    ///
    /// # Errors
    /// As [`Self::submit`].
    #[inline]
    pub fn push(
        &mut self,
        dwords: usize,
        fill: impl FnOnce(&mut IbBuilder<RingSink<'_>>),
    ) -> Result<u64> {
        let queue = &*self.live;
        if queue.core.is_stopped() {
            return Err(queue.core.why_stopped());
        }
        let at = &mut self.producer.at;
        queue.ring().push_pm4(at, dwords, fill).map_err(|why| queue.refused(why))
    }

    /// A view of it for other threads.
    pub fn watch(&self) -> super::QueueWatch {
        let live: Arc<dyn super::Live> = Arc::<DwordLive>::clone(&self.live);
        super::QueueWatch::new(live)
    }

    /// Whose packets it takes.
    pub fn target(&self) -> Target {
        self.target
    }

    /// Scratch memory for the dispatches of this queue.
    pub fn scratch(&self) -> DispatchScratch {
        self.scratch
    }

    /// An `amd_queue_t`, for kernels that look at it: apertures and scratch. Its indices are the
    /// ring's, in dwords.
    pub fn descriptor(&self) -> GpuAddr {
        self.live.core.page.addr()
    }

    /// Waits until everything submitted so far is done, and its stores are visible to the host.
    ///
    /// # Errors
    /// As [`Self::wait`] and [`Self::submit_within`].
    pub fn drain(&mut self, timeout: Duration) -> Result<()> {
        let kernel = Arc::clone(&self.context.core.kernel);
        let start = kernel.now();
        let done = Signal::new(&self.context, self.live.core.gpu, 1, false)?;
        let release = release(self.target)
            .write_64(done.value_addr(), 0)
            .map_err(|cause| Error::Pm4 { queue: self.live.core.id, cause })?;
        let dwords = EventWrite::DWORDS + ReleaseMem::DWORDS;
        self.submit_within(
            dwords,
            |ib| {
                ib.push(&EventWrite::CS_PARTIAL_FLUSH).push(&release);
            },
            timeout,
        )?;
        let left = timeout.saturating_sub(kernel.now().saturating_sub(start));
        self.wait(&done, Until::Below(1), left).map(drop)
    }

    /// Gives kernels up to `bytes` of private memory a work-item. Where that is more than before,
    /// waits until the queue is idle. Launch states made with the earlier [`Self::scratch`] must not
    /// be submitted any more.
    ///
    /// # Errors
    /// [`Error::Ioctl`] with `ENOMEM` when there is not enough memory even for few waves: the queue
    /// keeps what it has; as [`Self::drain`].
    pub fn grow_scratch(&mut self, bytes: u32, timeout: Duration) -> Result<()> {
        if bytes <= self.live.core.scratch_lane_bytes() {
            return Ok(());
        }
        let (core, index) = (Arc::clone(&self.context.core), self.live.core.gpu);
        let (scratch, memory) = create::allocate_scratch(&core, index, bytes)?;
        self.drain(timeout)?;
        let gfx = core.gpu(index)?.node.gfx_version().unwrap_or(GfxVersion::UNKNOWN);
        let mut descriptor = AmdQueueV2::new();
        describe(&mut descriptor, &scratch, gfx, &memory);
        let failed = |cause| self.live.core.ring_error(cause);
        self.live.memory.words()?.set_scratch(&descriptor).map_err(failed)?;
        self.scratch = dispatch_scratch(&scratch, gfx, &memory);
        self.live.core.scratch_lane_bytes.store(scratch.lane_bytes, Ordering::Relaxed);
        // Idle, so no wave has any of the old memory.
        *lock(&self.live.core.scratch) = Some(memory);
        Ok(())
    }
}

/// The end of all earlier work, with its stores written back.
fn release(target: Target) -> ReleaseMem {
    if target.is_gfx9() {
        ReleaseMem::gfx9(gfx9::ReleaseCache::TC_WB | gfx9::ReleaseCache::TC_NC)
    } else {
        ReleaseMem::gfx11(gfx11::ReleaseCache::GL2_WB)
    }
}

const _: fn() = || {
    fn sent<T: Send>() {}
    sent::<Pm4Queue>();
};
