//! The engine: workers that run launches.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use super::dispatch::Runners;
use super::job::{self, Pools, lock};
use super::launch::{Cause, Diagnosis, Launch, Listener};
use super::observe::Observer;
use super::watchdog::Watchdog;
use super::worker::{Slice, Worker};

/// How long workers nap when every wave sleeps; a store that waves poll for should
/// [`Engine::wake`] them sooner.
const NAP: Duration = Duration::from_micros(50);

/// Why a launch was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// Wave size other than 32 (gfx11) or 64.
    #[error("wave size {0} is not one of the target")]
    WaveSize(u32),
    /// Workgroup of zero or more than 1024 work-items.
    #[error("workgroup of {0} work-items")]
    Group(u64),
    /// LDS beyond 64 KiB.
    #[error("{0} bytes of LDS")]
    Lds(u32),
    /// More user SGPRs than 16.
    #[error("{0} user SGPRs")]
    UserSgprs(usize),
    /// The kernel needs scratch and the queue has too little for one workgroup.
    #[error(
        "needs {needed} bytes of scratch for {waves} waves, the queue has {slots} slots of {have}"
    )]
    Scratch {
        /// Bytes of one wave.
        needed: u64,
        /// Waves of a workgroup.
        waves: u32,
        /// Bytes of a slot.
        have: u64,
        /// Slots.
        slots: u32,
    },
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Arc<job::Job>>,
    /// Grows with every wake: a worker that sees it change does not nap.
    wakes: u64,
    stop: bool,
}

struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
    acquires: AtomicU64,
    watchdog: OnceLock<Watchdog>,
    /// Launches with a limit of time, to be looked at even if no worker is.
    timed: Mutex<Vec<Weak<job::Job>>>,
    instructions: AtomicU64,
    pools: Pools,
    observer: OnceLock<Arc<Observer>>,
}

impl Shared {
    /// Makes workers look at a launch.
    fn enqueue(&self, job: &Arc<job::Job>) {
        let mut queue = lock(&self.queue);
        if !queue.jobs.iter().any(|queued| Arc::ptr_eq(queued, job)) {
            queue.jobs.push_back(Arc::clone(job));
        }
        queue.wakes = queue.wakes.wrapping_add(1);
        self.changed.notify_all();
    }

    /// The next launch in turn, and how many there are.
    fn next(&self, queue: &mut Queue) -> Option<(Arc<job::Job>, usize)> {
        let job = queue.jobs.pop_front()?;
        queue.jobs.push_back(Arc::clone(&job));
        Some((job, queue.jobs.len()))
    }

    /// Removes a launch that has nothing to do; whoever parks something puts it back.
    fn retire(&self, job: &Arc<job::Job>) {
        let mut queue = lock(&self.queue);
        if !job.has_work() {
            queue.jobs.retain(|queued| !Arc::ptr_eq(queued, job));
        }
    }

    /// Has the watchdog look at launches that are over their time.
    fn check_time(&self) {
        let Some(watchdog) = self.watchdog.get().filter(|watchdog| watchdog.time.is_some()) else {
            return;
        };
        let mut timed = lock(&self.timed);
        timed.retain(|job| job.upgrade().is_some_and(|job| !job.examined.load(Ordering::Acquire)));
        let due: Vec<_> = timed.iter().filter_map(Weak::upgrade).collect();
        drop(timed);
        for job in due {
            watchdog.barks(&job);
            if job.wants_examination() {
                self.enqueue(&job);
            }
        }
    }

    /// One slice; a panic in it cancels the launch instead of hanging its host.
    fn slice(&self, worker: &mut Worker, job: &Arc<job::Job>, wake: bool) -> Slice {
        let before = worker.executed;
        let result = catch_unwind(AssertUnwindSafe(|| {
            worker.slice(job, &self.acquires, self.watchdog.get(), wake)
        }));
        self.instructions.fetch_add(worker.executed.wrapping_sub(before), Ordering::Relaxed);
        match result {
            Ok(Slice::Ran) => {
                if job.has_work() {
                    self.enqueue_if_missing(job);
                }
                Slice::Ran
            }
            Ok(slice) => slice,
            Err(_) => {
                *worker = Worker::new(Runners::new());
                job.cancel();
                job.listener.diagnosis(&internal_failure(job));
                if let Some(outcome) = job.leave(0) {
                    job.listener.finished(outcome);
                }
                Slice::Ran
            }
        }
    }

    fn enqueue_if_missing(&self, job: &Arc<job::Job>) {
        let mut queue = lock(&self.queue);
        if !queue.jobs.iter().any(|queued| Arc::ptr_eq(queued, job)) {
            queue.jobs.push_back(Arc::clone(job));
            self.changed.notify_one();
        }
    }

    /// A worker thread.
    fn work(&self) {
        let mut worker = Worker::new(Runners::new());
        let mut idle = 0;
        let mut wake = 0_usize;
        loop {
            let (job, jobs) = {
                let mut queue = lock(&self.queue);
                loop {
                    if queue.stop {
                        return;
                    }
                    if let Some(next) = self.next(&mut queue) {
                        break next;
                    }
                    queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
                }
            };
            match self.slice(&mut worker, &job, wake > 0) {
                Slice::Ran => idle = 0,
                Slice::Asleep => idle += 1,
                Slice::Nothing => self.retire(&job),
            }
            wake = wake.saturating_sub(1);
            if idle > 0 && idle >= jobs {
                self.nap();
                idle = 0;
                wake = jobs;
            }
        }
    }

    /// Waits until something changes, a short while at most.
    fn nap(&self) {
        let queue = lock(&self.queue);
        let wakes = queue.wakes;
        let waiting = self
            .changed
            .wait_timeout_while(queue, NAP, |queue| queue.wakes == wakes && !queue.stop);
        drop(waiting.unwrap_or_else(PoisonError::into_inner));
    }
}

fn internal_failure(job: &job::Job) -> Diagnosis {
    Diagnosis {
        cause: Cause::Internal,
        target: job.launch.target,
        pc: job.launch.entry,
        entry: job.launch.entry,
        words: Vec::new(),
        group: [0; 3],
        wave: 0,
        exec: 0,
        text: format!("{}: the executor failed; the launch was cancelled", job.launch.target),
    }
}

/// A running launch. Dropping it does not cancel the launch.
#[derive(Clone)]
pub struct Job {
    job: Arc<job::Job>,
    shared: Arc<Shared>,
}

impl Job {
    /// Stops the launch; the listener gets [`super::Outcome::Cancelled`] once no worker touches its
    /// memory, from a worker or from [`Engine::step`]. Nothing happens if it has ended.
    pub fn cancel(&self) {
        self.job.cancel();
        self.shared.enqueue(&self.job);
    }

    /// Keeps the waves from running on, as when their queue is taken off the hardware; they stay
    /// as they are. [`Self::is_paused`] says when the last worker has left.
    pub fn pause(&self) {
        self.job.set_paused(true);
    }

    /// Whether no wave runs: paused and left by all workers, or ended.
    pub fn is_paused(&self) -> bool {
        self.job.is_quiet()
    }

    /// Lets paused waves run on.
    pub fn resume(&self) {
        self.job.set_paused(false);
        self.shared.enqueue(&self.job);
    }

    /// Whether the outcome was given to the listener, or is being given.
    pub fn is_finished(&self) -> bool {
        self.job.is_finished()
    }

    /// Wave instructions executed so far.
    pub fn instructions(&self) -> u64 {
        self.job.instructions.load(Ordering::Relaxed)
    }
}

impl std::fmt::Debug for Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Job")
            .field("entry", &self.job.launch.entry)
            .field("instructions", &self.instructions())
            .finish_non_exhaustive()
    }
}

/// Runs launches on worker threads, or on the caller's with [`Engine::step`].
///
/// Dropping it stops the workers; launches that have not ended are abandoned without an outcome.
pub struct Engine {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    stepper: Mutex<Worker>,
}

impl Engine {
    /// An engine with `workers` threads. 0: nothing runs except inside [`Engine::step`].
    ///
    /// A thread that the host cannot create is left out.
    pub fn new(workers: usize) -> Self {
        let shared = Arc::new(Shared {
            queue: Mutex::default(),
            changed: Condvar::new(),
            acquires: AtomicU64::new(0),
            watchdog: OnceLock::new(),
            timed: Mutex::default(),
            instructions: AtomicU64::new(0),
            pools: Pools::default(),
            observer: OnceLock::new(),
        });
        let threads = (0..workers)
            .filter_map(|number| {
                let shared = Arc::clone(&shared);
                let name = format!("kfd-model-wave-{number}");
                std::thread::Builder::new().name(name).spawn(move || shared.work()).ok()
            })
            .collect();
        Self { shared, threads, stepper: Mutex::new(Worker::new(Runners::new())) }
    }

    /// Workers for a host: one core is left to the threads that drive the GPU.
    pub fn default_workers() -> usize {
        std::thread::available_parallelism().map_or(1, |cores| cores.get().saturating_sub(1).max(1))
    }

    /// Starts a launch. Its end, faults and interrupts are told to `listener` from a worker thread
    /// (or from inside [`Engine::step`]), never from inside this call.
    ///
    /// # Errors
    /// [`LaunchError`] for what a packet processor should have refused.
    pub fn launch(&self, launch: Launch, listener: Arc<dyn Listener>) -> Result<Job, LaunchError> {
        check(&launch)?;
        let scratch = launch.rsrc2 & 1 != 0 && launch.scratch.wave_bytes != 0;
        let slots = scratch.then(|| self.shared.pools.of(&launch));
        let watch = self.shared.observer.get().map(|observer| observer.launch(&launch));
        let job = Arc::new(job::Job::new(launch, listener, slots, watch));
        if self.shared.watchdog.get().is_some_and(|watchdog| watchdog.time.is_some()) {
            lock(&self.shared.timed).push(Arc::downgrade(&job));
        }
        self.shared.enqueue(&job);
        Ok(Job { job, shared: Arc::clone(&self.shared) })
    }

    /// Runs about `budget` wave instructions on the caller's thread. True while there is more to
    /// run: false means that every launch ended, or waits for its cancellation.
    pub fn step(&self, budget: u64) -> bool {
        let mut worker = lock(&self.stepper);
        let end = worker.executed.saturating_add(budget.max(1));
        let mut idle = 0;
        self.shared.check_time();
        loop {
            let next = self.shared.next(&mut lock(&self.shared.queue));
            let Some((job, jobs)) = next else { return false };
            // Sleepers wake once everything else had its turn; then the caller has one.
            match self.shared.slice(&mut worker, &job, idle >= jobs) {
                Slice::Ran if idle >= jobs => return true,
                Slice::Ran => idle = 0,
                Slice::Asleep => idle += 1,
                Slice::Nothing => self.shared.retire(&job),
            }
            if worker.executed >= end {
                return true;
            }
        }
    }

    /// Starts a new generation of the instruction cache: code is compared with memory before its
    /// next use. Called for every acquire that invalidates instruction caches and at queue mapping.
    pub fn invalidate_code(&self) {
        self.shared.acquires.fetch_add(1, Ordering::AcqRel);
    }

    /// Watches launches that are made from now on. The first observer of an engine stays.
    pub fn observe(&self, observer: Arc<Observer>) {
        // A second one is not an error: the first goes on.
        let _ = self.shared.observer.set(observer);
    }

    /// Wakes workers parked because every wave sleeps: call after a store a wave may poll for.
    pub fn wake(&self) {
        let mut queue = lock(&self.shared.queue);
        queue.wakes = queue.wakes.wrapping_add(1);
        self.shared.changed.notify_all();
    }

    /// Has launches that do not end examined and reported to their listener, once each. Set before
    /// the first launch; a second watchdog changes nothing.
    pub fn set_watchdog(&self, watchdog: Watchdog) {
        if !watchdog.sleeps() {
            let _ = self.shared.watchdog.set(watchdog);
        }
    }

    /// Lets the watchdog look at launches whose time is up: called now and then by whoever moves the
    /// queues, since the waves that hang may keep no worker busy.
    pub fn check_watchdog(&self) {
        self.shared.check_time();
    }

    /// Wave instructions executed so far by all launches.
    pub fn instructions(&self) -> u64 {
        self.shared.instructions.load(Ordering::Relaxed)
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        lock(&self.shared.queue).stop = true;
        self.shared.changed.notify_all();
        for thread in self.threads.drain(..) {
            // A worker cannot panic outside of `catch_unwind`; nothing is lost if it did.
            let _ = thread.join();
        }
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine")
            .field("workers", &self.threads.len())
            .field("instructions", &self.instructions())
            .finish_non_exhaustive()
    }
}

/// What no hardware queue would start.
fn check(launch: &Launch) -> Result<(), LaunchError> {
    let wave32 = launch.wave_size == 32 && launch.target.is_gfx11();
    if !wave32 && launch.wave_size != 64 {
        return Err(LaunchError::WaveSize(launch.wave_size));
    }
    let items = launch.group.iter().map(|&size| u64::from(size)).product();
    if items == 0 || items > 1024 {
        return Err(LaunchError::Group(items));
    }
    if launch.lds_bytes > 65_536 {
        return Err(LaunchError::Lds(launch.lds_bytes));
    }
    if launch.user_sgprs.len() > 16 {
        return Err(LaunchError::UserSgprs(launch.user_sgprs.len()));
    }
    let waves = (items as u32).div_ceil(launch.wave_size);
    let needed = u64::from(launch.private_bytes) * u64::from(launch.wave_size);
    let scratch = &launch.scratch;
    if launch.rsrc2 & 1 != 0
        && needed != 0
        && (needed > scratch.wave_bytes || waves > scratch.waves)
    {
        return Err(LaunchError::Scratch {
            needed,
            waves,
            have: scratch.wave_bytes,
            slots: scratch.waves,
        });
    }
    Ok(())
}
