//! What a stream that shares its hardware queue holds back.
//!
//! Nothing that the host has to satisfy may be in a shared queue: it would hold up streams that the
//! host may be waiting for. So from a host function on, or from a wait for an event behind one, a
//! stream's packets stay here, in order, until the host has done its part; then the runtime's thread
//! submits them. There is room for [`MOST`]; whoever needs more waits.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aql::Packet;
use kfd::{KernelLabel, Signal};

use super::shared::StreamShared;
use crate::error::{Error, Result};
use crate::event::SlotId;
use crate::host::{Call, Job, Then, When};
use crate::sync::lock;

/// Pending operations at most.
pub(crate) const MOST: usize = 1024;

/// How often a thread that waits for room looks whether the stream is lost.
const LOOK: Duration = Duration::from_millis(20);

/// A packet that is held back.
#[derive(Debug)]
pub(crate) struct DeferredRecord {
    pub packet: Packet,
    pub label: KernelLabel,
}

const _: () = assert!(size_of::<DeferredRecord>() <= 136);

/// Something that is held back.
pub(crate) enum Pending {
    /// A packet.
    Packet(DeferredRecord),
    /// A host function, called when the device has set the signal.
    Call { reached: Arc<Signal>, call: Call },
    /// The stream goes on when the device has set the slot, which is pinned.
    Gate(SlotId),
}

const _: () = assert!(size_of::<Pending>() <= 320);

/// The packets held back, and who is waited for.
#[derive(Default)]
pub(crate) struct Deferred {
    pending: Mutex<VecDeque<Pending>>,
    /// Set while a job of the runtime's thread will submit what is here. Changed under the lock.
    active: AtomicBool,
    room: Condvar,
}

impl std::fmt::Debug for Deferred {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Deferred").field("active", &self.active).finish_non_exhaustive()
    }
}

impl Deferred {
    /// Whether what comes next is held back.
    pub fn is_active(&self) -> bool {
        self.active.load(Ordering::Acquire)
    }

    /// Holds back a packet if the stream is held back at all. Whether it did.
    pub fn hold(&self, stream: &StreamShared, record: DeferredRecord) -> Result<bool> {
        if !self.is_active() {
            return Ok(false);
        }
        let mut pending = self.room(stream)?;
        // The thread may have submitted the rest meanwhile.
        if !self.is_active() {
            return Ok(false);
        }
        pending.push_back(Pending::Packet(record));
        Ok(true)
    }

    /// Holds the stream back from here on.
    pub fn hold_at(&self, stream: &Arc<StreamShared>, what: Pending) -> Result<()> {
        let mut pending = self.room(stream)?;
        if self.active.swap(true, Ordering::AcqRel) {
            pending.push_back(what);
            return Ok(());
        }
        drop(pending);
        if let Some(job) = job(stream, what) {
            stream.device.shared.host.add(job);
        }
        Ok(())
    }

    /// The list, once it has room.
    fn room(&self, stream: &StreamShared) -> Result<MutexGuard<'_, VecDeque<Pending>>> {
        let mut pending = lock(&self.pending);
        let kernel = &**stream.device.shared.kfd.kernel();
        let start = kernel.now();
        while pending.len() >= MOST {
            let waited = self.room.wait_timeout(pending, LOOK);
            pending = waited.unwrap_or_else(PoisonError::into_inner).0;
            stream.check()?;
            let waited = kernel.now().saturating_sub(start);
            if waited > stream.patience {
                return Err(Error::Timeout {
                    waited_ms: u64::try_from(waited.as_millis()).unwrap_or(u64::MAX),
                    completed: stream.learn()?,
                    submitted: stream.progress.submitted(),
                    hang: None,
                });
            }
        }
        Ok(pending)
    }

    /// Submits what is held back, up to the next thing that the host or the device has to do first.
    /// Whether that is all for now; otherwise the ring is full.
    pub fn advance(&self, stream: &Arc<StreamShared>) -> bool {
        let mut pending = lock(&self.pending);
        if !self.is_active() {
            return true;
        }
        loop {
            match pending.front() {
                None => {
                    self.active.store(false, Ordering::Release);
                    break;
                }
                Some(Pending::Packet(DeferredRecord { packet, label })) => {
                    match stream.ring_submit(packet, *label) {
                        Ok(()) => drop(pending.pop_front()),
                        Err(Error::Driver(error)) if error.is_full() => {
                            self.room.notify_all();
                            return false;
                        }
                        Err(error) => {
                            stream.lose(error);
                            pending.clear();
                        }
                    }
                }
                Some(Pending::Call { .. } | Pending::Gate(_)) => {
                    let Some(job) = pending.pop_front().and_then(|what| job(stream, what)) else {
                        continue;
                    };
                    drop(pending);
                    self.room.notify_all();
                    stream.device.shared.host.add(job);
                    return true;
                }
            }
        }
        self.room.notify_all();
        true
    }
}

fn job(stream: &Arc<StreamShared>, what: Pending) -> Option<Job> {
    let (when, call) = match what {
        Pending::Packet(_) => return None,
        Pending::Call { reached, call } => (When::Signal(reached), Some(call)),
        Pending::Gate(slot) => (When::Slot(slot), None),
    };
    Some(Job { when, call, then: Then::Submit, stream: Arc::downgrade(stream) })
}
