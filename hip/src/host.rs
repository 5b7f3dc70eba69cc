//! The thread that calls host functions: started by the first one, asleep while there are none.
//!
//! A job waits for a signal. When the device has set it, the thread calls the job's function, if it
//! has one, and then lets the stream go on: by a signal that a packet of the stream waits for, or, for
//! a stream that shares its hardware queue, by submitting what was held back. A job whose stream or
//! device is lost or gone is dropped without calling.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use kfd::{AnyQueue, Gpu, Kfd, Signal, Until};

use crate::device::Shared;
use crate::error::{Error, Result};
use crate::event::SlotId;
use crate::stream::StreamShared;
use crate::sync::lock;

/// A host function.
pub(crate) type Call = Box<dyn FnOnce() + Send>;

/// What a job waits for.
#[derive(Debug)]
pub(crate) enum When {
    /// A signal that is 1 until then.
    Signal(Arc<Signal>),
    /// A slot that the job has pinned.
    Slot(SlotId),
}

/// How a stream goes on after a job.
#[derive(Debug)]
pub(crate) enum Then {
    /// Its queue waits for this signal.
    Set(Arc<Signal>),
    /// What comes next was held back.
    Submit,
}

/// Something to do when the device is so far.
pub(crate) struct Job {
    pub when: When,
    pub call: Option<Call>,
    pub then: Then,
    pub stream: Weak<StreamShared>,
}

/// The thread and its jobs.
#[derive(Debug)]
pub(crate) struct HostThread {
    inner: Arc<Inner>,
    started: AtomicBool,
    thread: Mutex<Option<(JoinHandle<()>, u32)>>,
}

#[derive(Default)]
struct Inner {
    new: Mutex<Vec<Job>>,
    bell: Mutex<Option<Arc<Signal>>>,
    stop: AtomicBool,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inner").field("stop", &self.stop).finish_non_exhaustive()
    }
}

thread_local! {
    static IN_HOST_FUNCTION: Cell<bool> = const { Cell::new(false) };
}

/// Whether this is the thread that calls host functions: whatever it waited for might wait for it.
pub(crate) fn is_host_thread() -> bool {
    IN_HOST_FUNCTION.with(Cell::get)
}

/// Longest sleep while there are jobs: a lost device raises no event for each of them.
const LONGEST: Duration = Duration::from_millis(50);
/// How soon a full ring is tried again.
const SOON: Duration = Duration::from_millis(1);

impl HostThread {
    pub fn new() -> Self {
        Self { inner: Arc::default(), started: AtomicBool::new(false), thread: Mutex::default() }
    }

    pub fn is_started(&self) -> bool {
        self.started.load(Ordering::Relaxed)
    }

    /// Starts the thread, once.
    pub fn start(&self, kfd: &Kfd, gpu: &Gpu) -> Result<()> {
        if self.is_started() {
            return Ok(());
        }
        let mut thread = lock(&self.thread);
        if thread.is_some() {
            return Ok(());
        }
        let bell = Arc::new(gpu.create_signal(0)?);
        *lock(&self.inner.bell) = Some(Arc::clone(&bell));
        let (inner, kfd) = (Arc::clone(&self.inner), kfd.clone());
        let run = move || inner.run(&kfd, &bell);
        let builder = std::thread::Builder::new().name("hip host functions".to_owned());
        let handle = builder.spawn(run).map_err(|error| Error::Thread(Arc::new(error)))?;
        *thread = Some((handle, std::process::id()));
        self.started.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Takes a job; the thread was started.
    pub fn add(&self, job: Job) {
        lock(&self.inner.new).push(job);
        self.inner.wake();
    }
}

impl Drop for HostThread {
    fn drop(&mut self) {
        let Some((thread, owner)) = lock(&self.thread).take() else { return };
        if owner != std::process::id() {
            std::mem::forget(thread); // a forked child does not have it
            return;
        }
        self.inner.stop.store(true, Ordering::Release);
        self.inner.wake();
        if thread.thread().id() != std::thread::current().id() {
            let _ = thread.join();
        }
    }
}

impl Inner {
    fn wake(&self) {
        if let Some(bell) = &*lock(&self.bell) {
            bell.add(1);
            // Where it fails the thread looks by itself, a little later.
            let _ = bell.notify();
        }
    }

    fn run(&self, kfd: &Kfd, bell: &Signal) {
        IN_HOST_FUNCTION.with(|flag| flag.set(true));
        let mut jobs: Vec<Job> = Vec::new();
        let mut stuck: Vec<Arc<StreamShared>> = Vec::new();
        loop {
            let heard = bell.value();
            jobs.append(&mut lock(&self.new));
            if self.stop.load(Ordering::Acquire) {
                return;
            }
            let mut rest = Vec::with_capacity(jobs.len());
            let mut idle = true;
            for job in jobs.drain(..) {
                match job.state() {
                    State::Waiting => rest.push(job),
                    State::Ready(stream) => {
                        idle = false;
                        if !job.finish(&stream) {
                            stuck.push(stream);
                        }
                    }
                    State::Gone => job.drop_it(),
                }
            }
            jobs = rest;
            stuck.retain(|stream| !stream.deferred.advance(stream));
            if idle {
                sleep(kfd, bell, heard, &jobs, !stuck.is_empty());
            }
        }
    }
}

fn sleep(kfd: &Kfd, bell: &Signal, heard: i64, jobs: &[Job], soon: bool) {
    let streams: Vec<Arc<StreamShared>> =
        jobs.iter().filter_map(|job| job.stream.upgrade()).collect();
    let mut signals = vec![(bell, Until::NotEqual(heard))];
    for (job, stream) in jobs.iter().zip(&streams) {
        signals.extend(job.signal(&stream.device.shared).map(|one| (one, Until::NotEqual(1))));
    }
    let queues: Vec<&dyn AnyQueue> = streams.iter().map(|stream| stream.queue()).collect();
    let longest = match (soon, jobs.is_empty()) {
        (true, _) => SOON,
        (false, true) => Duration::MAX,
        (false, false) => LONGEST,
    };
    if kfd.wait_any(&signals, &queues, longest).is_err_and(|error| {
        // A time-out is in order; a lost device is seen by the jobs that it concerns.
        !matches!(error, kfd::Error::Timeout(_))
    }) {
        std::thread::sleep(SOON);
    }
}

/// How it is with a job.
enum State {
    Waiting,
    Ready(Arc<StreamShared>),
    /// Its stream is gone or lost.
    Gone,
}

impl Job {
    fn signal<'a>(&'a self, shared: &'a Shared) -> Option<&'a Signal> {
        match &self.when {
            When::Signal(signal) => Some(signal),
            When::Slot(slot) => shared.slots.get(*slot).map(|slot| &slot.signal),
        }
    }

    fn state(&self) -> State {
        let Some(stream) = self.stream.upgrade() else { return State::Gone };
        let done = self.signal(&stream.device.shared).is_none_or(|signal| signal.value() != 1);
        match done {
            true => State::Ready(stream),
            false if stream.check().is_err() => State::Gone,
            false => State::Waiting,
        }
    }

    /// Its stream is gone or lost.
    fn drop_it(self) {
        if let (When::Slot(slot), Some(stream)) = (&self.when, self.stream.upgrade()) {
            stream.device.shared.slots.release(*slot);
        }
    }

    /// Calls the function and lets the stream go on. Whether all that was held back is submitted.
    fn finish(self, stream: &Arc<StreamShared>) -> bool {
        if let Some(call) = self.call
            && catch_unwind(AssertUnwindSafe(call)).is_err()
        {
            stream.host_panicked.store(true, Ordering::Release);
        }
        if let When::Slot(slot) = self.when {
            stream.device.shared.slots.release(slot);
        }
        stream.device.shared.host_looked();
        match self.then {
            Then::Set(signal) => {
                signal.set(0);
                true
            }
            Then::Submit => stream.deferred.advance(stream),
        }
    }
}
