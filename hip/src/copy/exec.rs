//! How a copy or fill gets to the device: by kernels on the stream's own queue, or by an SDMA engine
//! between two waits.
//!
//! A copy by an engine is, in the stream: a packet that sets a slot once everything before is done and
//! released; on the engine's queue, a poll for that slot, the copy, and a fence that sets another slot;
//! in the stream, the wait for that one, which is the operation. So whatever the stream is given next,
//! events and retirement included, is ordered behind the copy, and the host has no part in it. Where
//! the operation before was the engine's own, or is done, the first slot is not needed.

use std::sync::Arc;
use std::time::Duration;

use kfd::{SdmaQueue, SdmaQueueRequest};
use pm4::sdma::Version;

use super::blit::Blit;
use super::pattern::Pattern;
use super::peer::Relay;
use super::region::Shape;
use super::request::{CopyEngine, CopyRequest};
use super::sdma::{Bracket, Plan};
use super::shader;
use super::staging::Staging;
use crate::device::DeviceCore;
use crate::error::{Error, Result};
use crate::stream::Core;

/// The SDMA queue of a stream.
#[derive(Debug, Default)]
enum Engine {
    /// Not needed so far.
    #[default]
    Untried,
    Ready(Box<SdmaQueue>),
    /// There is none: no queue is left, or no engine is known.
    None,
}

/// What a stream needs for copies and fills. All of it is made when it is first needed.
///
/// Fields go in this order: the engine's queue before the memory it uses.
#[derive(Debug)]
pub(crate) struct Copies {
    engine: Engine,
    pub relays: Vec<Relay>,
    pub staging: Option<Staging>,
    blit: Option<Arc<Blit>>,
    /// The last operation that the engine did.
    last: u64,
    pub request: CopyRequest,
}

impl Copies {
    pub const fn new(request: &CopyRequest) -> Self {
        Self {
            engine: Engine::Untried,
            relays: Vec::new(),
            staging: None,
            blit: None,
            last: 0,
            request: *request,
        }
    }

    /// Takes everything that the device may still use.
    pub fn take(&mut self) -> Self {
        // Nobody waits for them a second time.
        self.relays.iter_mut().for_each(|relay| relay.other.core().farewell = Duration::ZERO);
        std::mem::replace(self, Self::new(&self.request))
    }

    /// The version of the engine, if there is one.
    fn version(&mut self, device: &DeviceCore) -> Result<Option<Version>> {
        if let Engine::Untried = self.engine {
            let request = SdmaQueueRequest::new(self.request.sdma_ring_bytes);
            self.engine = match device.gpu.create_sdma_queue(&request) {
                Ok(queue) => Engine::Ready(Box::new(queue)),
                Err(kfd::Error::QueueLimit { .. } | kfd::Error::Unsupported { .. }) => Engine::None,
                Err(error) => return Err(error.into()),
            };
        }
        Ok(match &self.engine {
            Engine::Ready(queue) => Some(queue.version()),
            _ => None,
        })
    }
}

/// How bytes travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Within the GPU's own memory.
    Local,
    /// Over a link.
    Link,
}

impl Core {
    /// Whether an engine should be asked for `bytes` bytes.
    fn prefers_engine(&self, way: Way, bytes: u64) -> bool {
        match self.copies.request.engine {
            CopyEngine::Auto => way == Way::Link && bytes >= self.copies.request.small,
            CopyEngine::Sdma => true,
            CopyEngine::Shader => false,
        }
    }

    /// The plan, if an engine is to do it and can.
    fn engine_plan(
        &mut self,
        way: Way,
        bytes: Option<u64>,
        plan: impl FnOnce(Version) -> Option<Plan>,
    ) -> Result<Option<Plan>> {
        if !self.prefers_engine(way, bytes.unwrap_or(u64::MAX)) {
            return Ok(None);
        }
        let device = Arc::clone(self.device());
        Ok(self.copies.version(&device)?.and_then(plan))
    }

    /// Copies a shape, from the second region to the first: operations of the stream, none for no
    /// bytes. Everything was checked.
    pub fn copy_shape(&mut self, shape: &Shape<2>, way: Way) -> Result<()> {
        let plan = |version| Plan::copy(version, shape).ok();
        match self.engine_plan(way, shape.extent.bytes(), plan)? {
            Some(plan) => self.run_plan(&plan),
            None => {
                let blit = self.blit()?;
                let most = blit.most_groups;
                match (shape.as_linear(), shape.regions) {
                    (Some(0), _) => Ok(()),
                    (Some(bytes), [dst, src]) => {
                        let launch = shader::copy_linear(dst.base, src.base, bytes, most);
                        blit.run(self, &launch)
                    }
                    (None, _) => {
                        shader::copy(*shape, most).try_for_each(|launch| blit.run(self, &launch))
                    }
                }
            }
        }
    }

    /// Fills a shape, as [`Self::copy_shape`].
    pub fn fill_shape(&mut self, shape: &Shape<1>, pattern: Pattern, way: Way) -> Result<()> {
        let plan = |version| Plan::fill(version, shape, pattern).ok();
        match self.engine_plan(way, shape.extent.bytes(), plan)? {
            Some(plan) => self.run_plan(&plan),
            None => {
                let blit = self.blit()?;
                let most = blit.most_groups;
                match (shape.as_linear(), shape.regions) {
                    (Some(0), _) => Ok(()),
                    (Some(bytes), [dst]) => {
                        blit.run(self, &shader::fill_linear(dst.base, bytes, pattern, most))
                    }
                    (None, _) => {
                        let mut launches = shader::fill(*shape, pattern, most);
                        launches.try_for_each(|launch| blit.run(self, &launch))
                    }
                }
            }
        }
    }

    fn blit(&mut self) -> Result<Arc<Blit>> {
        if let Some(blit) = &self.copies.blit {
            return Ok(Arc::clone(blit));
        }
        let blit = Blit::of(self.device())?;
        Ok(Arc::clone(self.copies.blit.insert(blit)))
    }

    /// Has the engine carry out a plan, as one operation.
    fn run_plan(&mut self, plan: &Plan) -> Result<()> {
        if plan.packets() == 0 {
            return Ok(());
        }
        self.ready()?;
        let is_next = self.copies.last == self.count;
        let is_idle = self.is_released() && self.shared.learn()? == self.count;
        let first = if is_next || is_idle { None } else { Some(self.set_slot()?) };
        // Held by the wait for it, and until that is in the stream.
        let done = self.start_slot(2)?;
        let waits = first.map(|(_, addr)| addr);
        // Where this fails the device may know of the slots or not: they are not used again.
        self.submit_plan(plan, waits.as_slice(), is_next, done.1)?;
        if let Err(error) = self.wait_for_slot(done.0, done.1) {
            return Err(self.shared.lose(error));
        }
        self.let_go(done.0);
        if let Some((first, _)) = first {
            self.retire(crate::stream::Retire::Slot(first));
        }
        // What came before was released for the engine, which has no caches of its own.
        self.note_released();
        self.copies.last = self.count;
        Ok(())
    }

    /// Puts the packets into the engine's ring, in as many submissions as it takes.
    fn submit_plan(
        &mut self,
        plan: &Plan,
        waits: &[pm4::GpuAddr],
        drain: bool,
        done: pm4::GpuAddr,
    ) -> Result<()> {
        let patience = self.shared.patience;
        let Engine::Ready(queue) = &mut self.copies.engine else { return Ok(()) };
        let version = queue.version();
        // At most half of what fits, so that the engine has work while the host writes more.
        let limit = queue.capacity() / 2;
        let all = Bracket { version, waits, drain, done: Some(done) };
        let each = all.fitting(limit, plan.packet_dwords()).max(1);
        let mut at = 0;
        while at < plan.packets() {
            let count = each.min(plan.packets() - at);
            let is_last = at + count == plan.packets();
            let bracket = Bracket {
                version,
                waits: if at == 0 { waits } else { &[] },
                drain: drain && at == 0,
                done: is_last.then_some(done),
            };
            let packets = usize::try_from(count).unwrap_or(usize::MAX);
            let dwords = bracket.dwords() + packets * plan.packet_dwords();
            let mut problem = None;
            let sent = queue.submit_within(
                dwords,
                |to| problem = bracket.emit(to, |to| plan.emit(at, count, to)).err(),
                patience,
            );
            let error = match (sent, problem) {
                (Ok(_), None) => {
                    at += count;
                    continue;
                }
                (Err(error), _) => Error::from(error),
                (Ok(_), Some(_)) => {
                    let what = "the address of a slot";
                    Error::InvalidArgument { call: "copy", what, value: done.get() }
                }
            };
            // A part of a copy without an end: what follows would not be ordered behind it.
            return Err(if at == 0 { error } else { self.shared.lose(error) });
        }
        Ok(())
    }
}
