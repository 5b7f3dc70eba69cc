//! Moves all queues of a process: on a thread that watches doorbells, or step by step.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::thread::{JoinHandle, Thread};
use std::time::{Duration, Instant};

use super::{Device, Progress, Queue, Tunables};
use crate::diagnostics::Diagnostics;
use crate::event::Events;
use crate::exec::observe::Observer;
use crate::exec::{Engine, Watchdog};
use crate::fault::FaultPlan;
use crate::kernel::Debug;

/// Wave instructions that one step of a stepped model runs.
const STEP_BUDGET: u64 = 4096;

/// How the watching thread slows down. A look at silent doorbells costs some 25 µs with its wake-up:
/// a hundred a second are a quarter of a percent of a core. Whoever waits makes it look at once.
const SPIN: Duration = Duration::from_micros(50);
const NEAR: Duration = Duration::from_millis(2);
const NEAR_SLEEP: Duration = Duration::from_micros(50);
const WAITING_SLEEP: Duration = Duration::from_micros(500);
const LONGEST_SLEEP: Duration = Duration::from_millis(10);

/// A repeated interrupt comes so much later.
const REPETITION: Duration = Duration::from_millis(20);

/// An interrupt on its way.
#[derive(Debug)]
struct Late {
    at: Instant,
    id: u32,
    bits: u32,
}

/// Moves queues.
#[derive(Debug)]
pub(crate) struct Runner {
    stepped: bool,
    suspends_bad_queues: bool,
    workers: usize,
    engine: OnceLock<Engine>,
    queues: Mutex<Vec<Arc<Queue>>>,
    events: Arc<Events>,
    diagnostics: Arc<Diagnostics>,
    faults: Arc<FaultPlan>,
    observer: Option<Arc<Observer>>,
    watchdog: Watchdog,
    debug: Arc<Debug>,
    late: Mutex<Vec<Late>>,
    /// Some queue waits for a word in memory.
    waited_for: AtomicBool,
    stop: AtomicBool,
    /// The watching thread, to be woken and joined.
    thread: Mutex<Option<JoinHandle<()>>>,
    waker: OnceLock<Thread>,
    #[cfg(test)]
    looks: std::sync::atomic::AtomicU64,
    own: Weak<Self>,
}

impl Runner {
    /// A runner without queues. Threads start with the first queue.
    #[allow(clippy::too_many_arguments)] // what a process is made of
    pub(crate) fn new(
        stepped: bool,
        suspends_bad_queues: bool,
        workers: Option<usize>,
        events: Arc<Events>,
        debug: Arc<Debug>,
        diagnostics: Arc<Diagnostics>,
        faults: Arc<FaultPlan>,
        observer: Option<Arc<Observer>>,
        watchdog: Watchdog,
    ) -> Arc<Self> {
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
        let workers = if stepped { 0 } else { workers.unwrap_or(cores - 1).max(1) };
        Arc::new_cyclic(|own| Self {
            stepped,
            suspends_bad_queues,
            workers,
            engine: OnceLock::new(),
            queues: Mutex::default(),
            events,
            diagnostics,
            faults,
            observer,
            watchdog,
            debug,
            late: Mutex::default(),
            waited_for: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            thread: Mutex::default(),
            waker: OnceLock::new(),
            #[cfg(test)]
            looks: Default::default(),
            own: own.clone(),
        })
    }

    pub(super) fn engine(&self) -> &Engine {
        self.engine.get_or_init(|| {
            let engine = Engine::new(self.workers);
            engine.set_watchdog(self.watchdog);
            if let Some(observer) = &self.observer {
                engine.observe(Arc::clone(observer));
            }
            engine
        })
    }

    pub(super) fn events(&self) -> &Events {
        &self.events
    }

    pub(super) fn diagnostics(&self) -> &Diagnostics {
        &self.diagnostics
    }

    pub(super) fn faults(&self) -> &FaultPlan {
        &self.faults
    }

    pub(super) fn own(&self) -> Weak<Self> {
        Weak::clone(&self.own)
    }

    pub(super) fn suspends_bad_queues(&self) -> bool {
        self.suspends_bad_queues
    }

    /// Tells the model's user.
    pub(super) fn say(&self, queue: &Queue, text: String) {
        self.diagnostics.add(queue.gpu_id(), Some(queue.setup.id), text);
    }

    /// The debugger of the process.
    pub(super) fn debug(&self) -> &Debug {
        &self.debug
    }

    fn snapshot(&self) -> Vec<Arc<Queue>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A queue that satisfies `wanted`.
    pub(super) fn find(&self, wanted: impl Fn(&Queue) -> bool) -> Option<Arc<Queue>> {
        self.snapshot().into_iter().find(|queue| wanted(queue))
    }

    /// Takes on a queue.
    pub(crate) fn add(&self, queue: Arc<Queue>) {
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        queues.push(queue);
        by_priority(&mut queues);
        drop(queues);
        if !self.stepped {
            self.start();
        }
        self.kick();
    }

    /// Preempts a queue and forgets it: on return none of its waves runs.
    pub(crate) fn remove(&self, queue: &Arc<Queue>) {
        let jobs = queue.destroy();
        for job in &jobs {
            job.cancel();
        }
        while !jobs.iter().all(super::Job::is_finished) {
            if self.stepped {
                self.engine().step(STEP_BUDGET);
            } else {
                std::thread::yield_now();
            }
        }
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        queues.retain(|other| !Arc::ptr_eq(other, queue));
    }

    /// Changes a queue. If that takes it off hardware, none of its waves runs on return.
    pub(crate) fn update(&self, queue: &Queue, tunables: Tunables) {
        self.pause(&queue.update(tunables));
        by_priority(&mut self.queues.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Suspends or resumes a queue for the debugger: on return from the first none of its waves
    /// runs. True if it has launches in flight.
    pub(crate) fn hold(&self, queue: &Queue, hold: bool) -> bool {
        let jobs = queue.hold(hold);
        self.pause(&jobs);
        !jobs.is_empty()
    }

    /// Waits until none of the launches runs.
    fn pause(&self, jobs: &[super::Job]) {
        for job in jobs {
            job.pause();
        }
        while !jobs.iter().all(super::Job::is_paused) {
            std::thread::yield_now();
        }
        self.kick();
    }

    /// Takes all queues of the process off this GPU, for good. False if they were already.
    pub(crate) fn evict(&self, device: &Device) -> bool {
        let first = !device.evicted.swap(true, Ordering::AcqRel);
        // Their waves are stopped by the next look at the queues: this may be one of them.
        self.kick();
        first
    }

    /// Raises an interrupt that carries `bits` bits of an event id.
    pub(super) fn interrupt(&self, id: u32, bits: u32) {
        if self.faults.loses_interrupt() {
            return;
        }
        let delay = self.faults.interrupt_delay();
        if self.faults.repeats_interrupt() {
            self.interrupt_later(id, bits, delay + REPETITION);
        }
        if delay.is_zero() {
            self.events.interrupt(id, bits);
        } else {
            self.interrupt_later(id, bits, delay);
        }
    }

    fn interrupt_later(&self, id: u32, bits: u32, delay: Duration) {
        let late = Late { at: Instant::now() + delay, id, bits };
        self.late.lock().unwrap_or_else(PoisonError::into_inner).push(late);
        self.kick();
    }

    /// Delivers delayed interrupts. True while some are left.
    fn deliver(&self) -> bool {
        let mut late = self.late.lock().unwrap_or_else(PoisonError::into_inner);
        if late.is_empty() {
            return false;
        }
        let now = Instant::now();
        let due: Vec<Late> = late.extract_if(.., |late| late.at <= now).collect();
        let more = !late.is_empty();
        drop(late);
        for late in due {
            self.events.interrupt(late.id, late.bits);
        }
        more
    }

    #[cfg(test)]
    pub(crate) fn looks(&self) -> u64 {
        self.looks.load(Ordering::Relaxed)
    }

    /// Looks at every queue once.
    fn look(&self) -> Progress {
        #[cfg(test)]
        self.looks.fetch_add(1, Ordering::Relaxed);
        if self.faults.takes_spurious_interrupt() {
            self.events.fire_signals();
        }
        let mut progress = Progress::Idle;
        for queue in self.snapshot() {
            progress = progress.max(queue.advance(self));
        }
        self.waited_for.store(progress == Progress::Waiting, Ordering::Release);
        if self.watchdog.time.is_some()
            && let Some(engine) = self.engine.get()
        {
            engine.check_watchdog();
        }
        if self.deliver() { progress.max(Progress::Waiting) } else { progress }
    }

    /// Whether at the last look a queue waited for a word in memory, which may change now.
    pub(super) fn is_waited_for(&self) -> bool {
        self.waited_for.load(Ordering::Acquire)
    }

    /// Stepped mode: looks at every queue and runs some instructions. True while there is more.
    /// With threads: wakes them, false.
    pub(crate) fn step(&self) -> bool {
        if !self.stepped {
            self.kick();
            return false;
        }
        let progress = self.look();
        let running = self.engine.get().is_some_and(|engine| engine.step(STEP_BUDGET));
        running || progress == Progress::Moved
    }

    /// Looks at the queues on the caller's thread, which is about to wait for one of them.
    pub(crate) fn help(&self) {
        if self.look() >= Progress::Waiting {
            self.kick();
        }
    }

    /// Makes the watching thread look now.
    pub(crate) fn kick(&self) {
        if let Some(thread) = self.waker.get() {
            thread.unpark();
        }
    }

    fn start(&self) {
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if thread.is_some() {
            return;
        }
        let own = self.own();
        let spawned = std::thread::Builder::new().name("kfd-model cp".into()).spawn(move || {
            watch(&own);
        });
        if let Ok(handle) = spawned {
            let _ = self.waker.set(handle.thread().clone());
            *thread = Some(handle);
        }
    }

    /// Ends the threads. No queue may be left.
    pub(crate) fn shut_down(&self) {
        self.stop.store(true, Ordering::Release);
        self.kick();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        // The last reference may be dropped by the thread itself.
        if let Some(thread) = thread.filter(|t| t.thread().id() != std::thread::current().id()) {
            let _ = thread.join();
        }
    }
}

/// Queues of higher priority first, else as they were made.
fn by_priority(queues: &mut [Arc<Queue>]) {
    queues.sort_by_cached_key(|queue| std::cmp::Reverse(queue.priority()));
}

impl Drop for Runner {
    /// The last reference may be a listener's, on a worker of the engine, which cannot join itself.
    fn drop(&mut self) {
        let engine = self.engine.take();
        if std::thread::current().name().is_some_and(|name| name.starts_with("kfd-model-wave")) {
            let _ = std::thread::Builder::new().spawn(move || {
                let _dropped_here = engine;
            });
        }
    }
}

/// The watching thread: looks often near activity, seldom otherwise.
fn watch(runner: &Weak<Runner>) {
    let mut last_moved = Instant::now();
    let mut sleep = NEAR_SLEEP;
    loop {
        let Some(runner) = runner.upgrade() else { return };
        if runner.stop.load(Ordering::Acquire) {
            return;
        }
        let progress = runner.look();
        let idle = runner.queues.lock().unwrap_or_else(PoisonError::into_inner).is_empty();
        drop(runner);
        if progress == Progress::Moved {
            last_moved = Instant::now();
        }
        let since = last_moved.elapsed();
        if since < SPIN {
            std::thread::yield_now();
            continue;
        }
        sleep = match progress {
            _ if idle => Duration::MAX,
            _ if since < NEAR => NEAR_SLEEP,
            Progress::Waiting | Progress::Moved => (sleep * 2).min(WAITING_SLEEP),
            _ => (sleep * 2).min(LONGEST_SLEEP),
        };
        let before = Instant::now();
        if sleep == Duration::MAX {
            std::thread::park()
        } else {
            std::thread::park_timeout(sleep)
        }
        if before.elapsed() < sleep {
            // Somebody asked for a look: expect more.
            last_moved = Instant::now();
        }
        if sleep == Duration::MAX {
            sleep = NEAR_SLEEP;
        }
    }
}
