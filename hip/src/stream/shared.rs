//! [`StreamShared`]: what others than a stream's owner need of it, to wait for it and to outlive it.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use aql::{BarrierAnd, FenceScope, Packet};
use kfd::{AnyQueue, Buffer, KernelLabel, Queue, QueueWatch, Signal, Until};

use super::deferred::Deferred;
use super::ring::Ring;
use crate::device::DeviceCore;
use crate::error::{Error, Result};
use crate::host::is_host_thread;
use crate::protocol::{Broken, Progress};
use crate::sync::lock;

/// Value of a progress signal before the first operation; each one that is done takes one off.
pub(crate) const START: i64 = i64::MAX;

/// How long a wait looks before it sleeps.
const SPIN: Duration = Duration::from_micros(20);

/// Longest sleep where no wake-up is sent.
const SLICE: Duration = Duration::from_millis(1);

/// Memory that was dropped while the stream might use it, with the operation it may be used by.
type Grave = (u64, Arc<Buffer>);

/// What a stream's packets go to, as others than the owner may use it.
#[derive(Debug)]
pub(crate) enum Line {
    /// An AQL queue: anybody may submit.
    Aql(Arc<Ring>),
    /// A PM4 queue: only the owner submits.
    Pm4(QueueWatch),
}

/// A stream as others see it.
#[derive(Debug)]
pub(crate) struct StreamShared {
    pub device: Arc<DeviceCore>,
    pub line: Line,
    /// Set when a host function of the stream has panicked; the next synchronisation says so.
    pub host_panicked: AtomicBool,
    /// What is held back on the host.
    pub deferred: Deferred,
    /// How long a call waits for room.
    pub patience: Duration,
    /// Outlives the stream with whoever has to know what it has done.
    pub progress: Arc<Progress>,
    /// The device's count: `START` less the operations done.
    pub word: Signal,
    /// Operations up to which writes were released to the host and other GPUs; another number where the
    /// last packet counts for none.
    pub released: AtomicU64,
    pub lost: OnceLock<Arc<Error>>,
    graves: Mutex<Vec<Grave>>,
    grave_count: AtomicUsize,
}

impl StreamShared {
    pub fn new(device: &Arc<DeviceCore>, line: Line, patience: Duration) -> Result<Arc<Self>> {
        let shared = Arc::new(Self {
            word: device.gpu.create_silent_signal(START)?,
            device: Arc::clone(device),
            line,
            host_panicked: AtomicBool::new(false),
            deferred: Deferred::default(),
            patience,
            progress: Arc::new(Progress::new()),
            released: AtomicU64::new(0),
            lost: OnceLock::new(),
            graves: Mutex::default(),
            grave_count: AtomicUsize::new(0),
        });
        device.add_stream(&shared);
        Ok(shared)
    }

    /// The queue, for waits.
    pub fn queue(&self) -> &dyn AnyQueue {
        match &self.line {
            Line::Aql(ring) => &ring.queue,
            Line::Pm4(watch) => watch,
        }
    }

    /// The AQL queue.
    pub fn ring(&self) -> Option<&Ring> {
        match &self.line {
            Line::Aql(ring) => Some(ring),
            Line::Pm4(_) => None,
        }
    }

    /// Submits a packet to the AQL queue, if there is room.
    pub fn ring_submit(&self, packet: &Packet, label: KernelLabel) -> Result<()> {
        match self.ring() {
            Some(ring) => ring.submit(packet, label),
            None => Ok(()), // such streams hold nothing back
        }
    }

    /// Learns how many operations the device has passed.
    #[inline]
    pub fn learn(&self) -> Result<u64> {
        let load = || START.wrapping_sub(self.word.value()).cast_unsigned();
        match self.progress.learn(load) {
            Ok(passed) => Ok(passed),
            Err(broken) => Err(self.broken(broken)),
        }
    }

    #[cold]
    fn broken(&self, broken: Broken) -> Error {
        let Broken { completed, first, last } = broken;
        self.lose(Error::Progress { completed, first, last })
    }

    /// The stream is lost for the reason given: later calls say so, too.
    #[cold]
    pub fn lose(&self, error: Error) -> Error {
        let _ = self.lost.set(Arc::new(error.clone()));
        error
    }

    /// Fails when the stream, its queue or its GPU is known to be lost.
    pub fn check(&self) -> Result<()> {
        if let Some(cause) = self.lost.get() {
            return Err(Error::StreamLost(Arc::clone(cause)));
        }
        match &self.line {
            Line::Aql(ring) => Ok(ring.queue.check()?),
            Line::Pm4(watch) => Ok(watch.check()?),
        }
    }

    /// Says once that a host function has panicked.
    pub fn check_host(&self) -> Result<()> {
        if self.host_panicked.load(Ordering::Relaxed)
            && self.host_panicked.swap(false, Ordering::AcqRel)
        {
            return Err(Error::HostFunction);
        }
        Ok(())
    }

    /// Waits until `count` operations are done, from any thread.
    ///
    /// Looks for about 20 µs, then sleeps: for that the device is asked to raise an event.
    pub fn wait_for(&self, count: u64, timeout: Duration) -> Result<()> {
        if self.learn()? >= count {
            return Ok(());
        }
        self.wait_long(count, timeout)
    }

    #[cold]
    fn wait_long(&self, count: u64, timeout: Duration) -> Result<()> {
        if is_host_thread() {
            return Err(Error::InHostFunction);
        }
        let kernel = &**self.device.shared.kfd.kernel();
        let start = kernel.now();
        let waited = || kernel.now().saturating_sub(start);
        for rounds in 0.. {
            if self.learn()? >= count {
                return Ok(());
            }
            self.check()?;
            if waited() >= SPIN.min(timeout) {
                break;
            }
            kernel.relax(rounds);
        }
        let result = self.sleep(count, timeout, &waited);
        match result {
            Err(kfd::Error::Timeout(report)) => Err(Error::Timeout {
                waited_ms: u64::try_from(waited().as_millis()).unwrap_or(u64::MAX),
                completed: self.learn()?,
                submitted: self.progress.submitted(),
                hang: Some(Arc::new(kfd::Error::Timeout(report))),
            }),
            Err(error) => Err(error.into()),
            Ok(()) if self.learn()? >= count => Ok(()),
            Ok(()) => Err(Error::Timeout {
                waited_ms: u64::try_from(waited().as_millis()).unwrap_or(u64::MAX),
                completed: self.learn()?,
                submitted: self.progress.submitted(),
                hang: None,
            }),
        }
    }

    fn sleep(
        &self,
        count: u64,
        timeout: Duration,
        waited: &dyn Fn() -> Duration,
    ) -> kfd::Result<()> {
        let left = || timeout.saturating_sub(waited());
        if let Line::Aql(ring) = &self.line {
            self.sleep_on(&ring.queue, left())?;
        }
        // What was held back on the host comes after that; and there may have been no room, or there is
        // no packet for it: the word is looked at once a millisecond.
        let bound = START.wrapping_sub_unsigned(count).wrapping_add(1);
        let word = [(&self.word, Until::Below(bound))];
        self.device.shared.kfd.wait_any(&word, &[self.queue()], left().max(SLICE)).map(drop)
    }

    /// Sleeps until a packet behind everything submitted so far has raised an event.
    fn sleep_on(&self, queue: &Queue, timeout: Duration) -> kfd::Result<()> {
        let wake = self.device.gpu.create_signal(1)?;
        let packet = BarrierAnd::noop().barrier().completion(wake.addr()).encode();
        match queue.submit(&packet, KernelLabel::NONE) {
            Ok(_) => queue.wait(&wake, Until::Below(1), timeout).map(drop),
            Err(error) if error.is_full() => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Waits until everything submitted so far is done, and its writes can be seen by the host.
    pub fn wait_idle(&self, timeout: Duration) -> Result<()> {
        let count = self.progress.submitted();
        let kernel = &**self.device.shared.kfd.kernel();
        let start = kernel.now();
        self.wait_for(count, timeout)?;
        if self.released.load(Ordering::Acquire) != count
            && let Line::Aql(ring) = &self.line
        {
            // The owner has not asked for it yet.
            let done = self.device.gpu.create_signal(1)?;
            let packet = BarrierAnd::noop().barrier().release(FenceScope::SYSTEM);
            let packet = packet.completion(done.addr()).encode();
            let left = || timeout.saturating_sub(kernel.now().saturating_sub(start));
            ring.queue.submit_within(&packet, KernelLabel::NONE, left())?;
            ring.queue.wait(&done, Until::Below(1), left())?;
        }
        self.device.shared.host_looked();
        Ok(())
    }

    /// Keeps memory until the stream has passed what was submitted so far, and frees what it has
    /// passed already.
    pub fn bury(&self, memory: Option<&Arc<Buffer>>) {
        if self.device.shared.is_inherited() {
            return; // the parent's streams use it, and it is not there to be freed
        }
        let count = self.progress.submitted();
        // A broken word: everything stays until the queue is gone.
        let passed = self.learn().unwrap_or(0);
        let mut graves = lock(&self.graves);
        graves.retain(|(needed, _)| *needed > passed);
        if let Some(memory) = memory
            && count > passed
        {
            graves.push((count, Arc::clone(memory)));
        }
        self.grave_count.store(graves.len(), Ordering::Release);
    }

    /// Frees what the stream has passed, if there is something.
    #[inline]
    pub fn sweep(&self) {
        if self.grave_count.load(Ordering::Acquire) > 0 {
            self.bury(None);
        }
    }

    /// What is buried, for an owner that takes it over.
    pub fn exhume(&self) -> Vec<Grave> {
        std::mem::take(&mut *lock(&self.graves))
    }
}
