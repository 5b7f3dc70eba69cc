//! [`SdmaQueue`]: a queue of SDMA packets.

use std::sync::Arc;
use std::time::Duration;

use pm4::RingSink;
use pm4::sdma::{Builder, Fence, Version};

use super::control::queue_methods;
use super::create::Recipe;
use super::dword_queue::{DwordLive, Language, Producer, dword_queue_methods};
use super::{QueueKind, SdmaEngine, SdmaQueueRequest};
use crate::context::Context;
use crate::device::Feature;
use crate::error::{Error, Result};
use crate::gpu::Gpu;
use crate::signal::Signal;
use crate::wait::Until;

/// An SDMA queue of a GPU, with one producer: submission takes `&mut self`, and no lock or locked
/// instruction. `Send`.
///
/// A submission stays together: where it would cross the ring's end, zeros fill what is left. So it
/// has at most half the ring's dwords. Engines that need a minimum get it, in NOPs.
///
/// The engine reports no faults of a queue of its own: those of memory are the GPU's, and anything
/// else is a wait that runs out of time.
///
/// Dropping it destroys the queue, whatever it is doing.
#[derive(Debug)]
pub struct SdmaQueue {
    context: Arc<Context>,
    live: Arc<DwordLive>,
    destroyed: bool,
    producer: Producer,
    engine: SdmaEngine,
    version: Version,
}

queue_methods!(SdmaQueue);
dword_queue_methods!(SdmaQueue, Builder<RingSink<'_>>, "bytes.");

impl Gpu {
    /// Makes an SDMA queue.
    ///
    /// # Errors
    /// As [`Gpu::create_queue`]: [`Error::QueueLimit`] is what a caller falls back to copies by
    /// kernels for. [`Error::KfdTooOld`] for an engine by number before KFD 1.17;
    /// [`Error::InvalidArgument`] for one that there is not; [`Error::Unsupported`] where there are
    /// no engines of the kind, or their packets are not known.
    pub fn create_sdma_queue(&self, request: &SdmaQueueRequest) -> Result<SdmaQueue> {
        request.check()?;
        let version = self.sdma_version()?;
        self.check_engine(request.engine)?;
        let recipe = Recipe {
            kind: QueueKind::Sdma(request.engine),
            ring_bytes: u64::from(request.ring_bytes),
            priority: request.priority,
            private_bytes: 0,
            profiling: false,
            percentage_bits: 0,
        };
        let (live, _) = DwordLive::create(self, &recipe, Language::Sdma(version))?;
        Ok(SdmaQueue {
            context: Arc::clone(&self.context),
            live,
            destroyed: false,
            producer: Producer::new(),
            engine: request.engine,
            version,
        })
    }

    /// Version of the GPU's SDMA engines.
    ///
    /// # Errors
    /// [`Error::Unsupported`] where their packets are not known.
    pub fn sdma_version(&self) -> Result<Version> {
        self.pm4_target().map(Version::of)
    }

    /// Refuses engines that the topology does not have; what it does not tell, the kernel checks.
    fn check_engine(&self, engine: SdmaEngine) -> Result<()> {
        let p = &self.node().properties;
        let (pcie, xgmi) = (p.num_sdma_engines, p.num_sdma_xgmi_engines);
        let none = |missing| Err(Error::Unsupported { gpu: self.id(), missing });
        match engine {
            SdmaEngine::Any if pcie == Some(0) => none("it has no SDMA engines"),
            SdmaEngine::Xgmi if xgmi == Some(0) => none("it has no SDMA engines for xGMI"),
            SdmaEngine::Index(index) => {
                let feature = Feature::SdmaByEngine;
                self.context.core.require(feature.name(), feature.since().minor)?;
                let all = pcie.zip(xgmi).map(|(pcie, xgmi)| pcie.saturating_add(xgmi));
                match all.is_some_and(|all| index >= all) {
                    true => Err(Error::InvalidArgument {
                        call: "create_sdma_queue",
                        what: "the SDMA engine, which the GPU does not have,",
                        value: u64::from(index),
                    }),
                    false => Ok(()),
                }
            }
            SdmaEngine::Any | SdmaEngine::Xgmi => Ok(()),
        }
    }
}

impl SdmaQueue {
    fn padded_for(&self) -> Option<Version> {
        Some(self.version)
    }

    /// As [`Self::submit`], without telling the device: [`Self::ring`] does it for a batch.
    ///
    /// # Errors
    /// As [`Self::submit`].
    #[inline]
    pub fn push(
        &mut self,
        dwords: usize,
        fill: impl FnOnce(&mut Builder<RingSink<'_>>),
    ) -> Result<u64> {
        let queue = &*self.live;
        if queue.core.is_stopped() {
            return Err(queue.core.why_stopped());
        }
        let (at, version) = (&mut self.producer.at, self.version);
        queue.ring().push_sdma(at, version, dwords, fill).map_err(|why| queue.refused(why))
    }

    /// Version of the engine, for packets.
    #[inline]
    pub fn version(&self) -> Version {
        self.version
    }

    /// The engine that was asked for.
    pub fn engine(&self) -> SdmaEngine {
        self.engine
    }

    /// Waits until everything submitted so far is done.
    ///
    /// # Errors
    /// As [`Self::wait`] and [`Self::submit_within`].
    pub fn drain(&mut self, timeout: Duration) -> Result<()> {
        let kernel = Arc::clone(&self.context.core.kernel);
        let start = kernel.now();
        let done = Signal::new(&self.context, self.live.core.gpu, 1, false)?;
        // From 1 to 0: the low dword is all that changes.
        let fence = Fence::new(self.version, done.value_addr(), 0)
            .map_err(|cause| Error::Sdma { queue: self.live.core.id, cause })?
            .snooped_system();
        self.submit_within(
            Fence::DWORDS,
            |out| {
                out.push(&fence);
            },
            timeout,
        )?;
        let left = timeout.saturating_sub(kernel.now().saturating_sub(start));
        self.wait(&done, Until::Below(1), left).map(drop)
    }
}

const _: fn() = || {
    fn sent<T: Send>() {}
    sent::<SdmaQueue>();
};
