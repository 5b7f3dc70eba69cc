//! One launch while it runs: which workgroups are left, resident, parked.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use super::group::Group;
use super::init::Setup;
use super::launch::{Launch, Listener, Outcome};
use super::observe::JobWatch;

/// Waves a large chip holds: the limit of resident waves of a launch.
const RESIDENT_WAVES: u64 = 4096;
/// Workgroups a worker takes at once.
const BATCH: u64 = 16;

/// Scratch slots of one queue, XCC by XCC: each resident wave has one.
#[derive(Debug)]
pub(super) struct Slots {
    free: Vec<Mutex<Vec<u32>>>,
}

impl Slots {
    /// `count` slots on each of `xccs`.
    pub(super) fn new(xccs: u32, count: u32) -> Self {
        let slots = || Mutex::new((0..count).rev().collect());
        Self { free: (0..xccs.max(1)).map(|_| slots()).collect() }
    }

    /// Takes `count` slots of an XCC, or none.
    fn take(&self, xcc: u32, count: u32) -> Option<Vec<u32>> {
        let mut free = lock(&self.free[xcc as usize]);
        let start = free.len().checked_sub(count as usize)?;
        Some(free.split_off(start))
    }

    fn give(&self, xcc: u32, slots: impl Iterator<Item = u32>) {
        lock(&self.free[xcc as usize]).extend(slots);
    }
}

/// A resident workgroup of either wave size.
#[derive(Debug)]
pub(super) enum AnyGroup {
    Wave32(Group<32>),
    Wave64(Group<64>),
}

impl AnyGroup {
    /// Its XCC and its slots there.
    fn slots(&self) -> (u32, Vec<u32>) {
        match self {
            Self::Wave32(group) => (group.xcc, group.slots().collect()),
            Self::Wave64(group) => (group.xcc, group.slots().collect()),
        }
    }
}

/// A resident workgroup that no worker runs now.
#[derive(Debug)]
struct Parked {
    group: AnyGroup,
    asleep: bool,
}

/// A workgroup that the watchdog looks at.
#[derive(Debug)]
pub(super) struct Resident {
    pub(super) group: AnyGroup,
    /// It can never run again.
    pub(super) stuck: bool,
}

/// Bits of [`Job::held`].
mod hold {
    /// Its queue is off the hardware.
    pub(super) const PAUSED: u8 = 1;
    /// The watchdog looks at it.
    pub(super) const EXAMINED: u8 = 2;
}

/// What a worker does next for a launch.
#[derive(Debug)]
pub(super) enum Work {
    /// Continue a resident workgroup.
    Resume(AnyGroup),
    /// Start the workgroups of a range.
    Start(std::ops::Range<u64>),
    /// Everything that could run sleeps.
    Asleep,
    /// Nothing, until something is parked or the launch is cancelled.
    Nothing,
}

#[derive(Debug, Default)]
struct State {
    /// Workgroups not started yet.
    waiting: VecDeque<std::ops::Range<u64>>,
    parked: VecDeque<Parked>,
    /// Workgroups that can never run again; kept until the launch is cancelled.
    stuck: Vec<AnyGroup>,
    /// Workers inside.
    inside: usize,
    resident: u64,
    done: u64,
    prefer_new: bool,
    finished: bool,
}

/// A launch and its progress.
pub(super) struct Job {
    pub(super) launch: Launch,
    pub(super) setup: Setup,
    pub(super) listener: Arc<dyn Listener>,
    /// Where it is watched.
    watch: Option<JobWatch>,
    /// Where it is not, but has to be for the sake of arithmetic exceptions.
    exceptions_watch: OnceLock<JobWatch>,
    /// Whether arithmetic exceptions are recorded; decided before its first instruction.
    exceptions: OnceLock<bool>,
    slots: Option<Arc<Slots>>,
    resident_limit: u64,
    /// No worker starts or continues anything: cancelled, or faulted and waiting for that.
    stopped: AtomicBool,
    cancelled: AtomicBool,
    faulted: AtomicBool,
    /// No worker starts or continues anything until it is resumed: bits of [`hold`].
    held: AtomicU8,
    /// Instructions executed so far.
    pub(super) instructions: AtomicU64,
    /// When it was launched.
    pub(super) started: Instant,
    /// The watchdog wants to know where its waves are.
    pub(super) overdue: AtomicBool,
    /// The watchdog has looked.
    pub(super) examined: AtomicBool,
    /// Instructions at which waves halted.
    halts: Mutex<HashSet<u64>>,
    state: Mutex<State>,
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Job {
    pub(super) fn new(
        launch: Launch,
        listener: Arc<dyn Listener>,
        slots: Option<Arc<Slots>>,
        watch: Option<JobWatch>,
    ) -> Self {
        let setup = Setup::new(&launch);
        let total = setup.total();
        let lds_groups = match launch.lds_bytes {
            0 => u64::MAX,
            // 64 KiB in each of some 128 compute units.
            bytes => 128 * u64::from(65_536 / bytes.max(1)),
        };
        let resident_limit =
            (RESIDENT_WAVES / u64::from(setup.waves.max(1))).min(lds_groups).max(1);
        let waiting = std::iter::once(0..total).filter(|range| !range.is_empty()).collect();
        Self {
            launch,
            setup,
            listener,
            watch,
            exceptions_watch: OnceLock::new(),
            exceptions: OnceLock::new(),
            slots,
            resident_limit,
            stopped: AtomicBool::new(false),
            cancelled: AtomicBool::new(false),
            faulted: AtomicBool::new(false),
            held: AtomicU8::new(0),
            instructions: AtomicU64::new(0),
            started: Instant::now(),
            overdue: AtomicBool::new(false),
            examined: AtomicBool::new(false),
            halts: Mutex::default(),
            state: Mutex::new(State { waiting, ..State::default() }),
        }
    }

    /// Who watches it.
    pub(super) fn watch(&self) -> Option<&JobWatch> {
        self.watch.as_ref().or_else(|| self.exceptions_watch.get())
    }

    /// Whether arithmetic exceptions are recorded.
    pub(super) fn records_exceptions(&self) -> bool {
        self.exceptions.get() == Some(&true)
    }

    /// Decides whether arithmetic exceptions are recorded, if that was not done: by the launch
    /// registers, or else as `code` says. True when the launch is watched from now on and was not.
    pub(super) fn decide(&self, code: impl FnOnce() -> bool) -> bool {
        let before = self.watch().is_some();
        let enabled = self.launch.rsrc2 >> 24 & 0x7f != 0;
        let records = *self.exceptions.get_or_init(|| enabled || code());
        if records && self.watch.is_none() {
            self.exceptions_watch.get_or_init(|| JobWatch::quiet(&self.launch));
        }
        !before && self.watch().is_some()
    }

    /// Takes work and counts the worker in, unless it is [`Work::Asleep`] or [`Work::Nothing`].
    /// With `wake`, sleepers count as awake.
    pub(super) fn take(&self, wake: bool) -> Work {
        let mut state = lock(&self.state);
        if state.finished || self.is_stopped() {
            return Work::Nothing;
        }
        if wake {
            for parked in &mut state.parked {
                parked.asleep = false;
            }
        }
        let room = state.resident < self.resident_limit && !state.waiting.is_empty();
        state.prefer_new = !state.prefer_new;
        if !(state.prefer_new && room)
            && let Some(at) = state.parked.iter().position(|parked| !parked.asleep)
            && let Some(parked) = state.parked.remove(at)
        {
            state.inside += 1;
            return Work::Resume(parked.group);
        }
        if room && let Some(range) = state.waiting.pop_front() {
            let count =
                BATCH.min(self.resident_limit - state.resident).min(range.end - range.start);
            let taken = range.start..range.start + count;
            if taken.end < range.end {
                state.waiting.push_front(taken.end..range.end);
            }
            state.inside += 1;
            state.resident += count;
            return Work::Start(taken);
        }
        if state.parked.is_empty() { Work::Nothing } else { Work::Asleep }
    }

    /// Scratch slots for the workgroup with a number: `None` when too few are free on its XCC.
    pub(super) fn take_slots(&self, number: u64) -> Option<Vec<u32>> {
        match &self.slots {
            Some(slots) => slots.take(self.setup.xcc(number), self.setup.waves_of(number)),
            None => Some(Vec::new()),
        }
    }

    /// Returns the slots of a workgroup that ended.
    pub(super) fn give_slots(&self, xcc: u32, slots: impl Iterator<Item = u32>) {
        if let Some(pool) = &self.slots {
            pool.give(xcc, slots);
        }
    }

    /// Puts workgroups back that could not be started.
    pub(super) fn put_back(&self, range: std::ops::Range<u64>) {
        let mut state = lock(&self.state);
        state.resident -= range.end - range.start;
        state.waiting.push_front(range);
    }

    /// Parks a workgroup.
    pub(super) fn park(&self, group: AnyGroup, asleep: bool) {
        lock(&self.state).parked.push_back(Parked { group, asleep });
    }

    /// Keeps a workgroup that can never run again.
    pub(super) fn park_stuck(&self, group: AnyGroup) {
        lock(&self.state).stuck.push(group);
    }

    /// Counts a worker out and `done` workgroups as ended. The outcome, if this was the last.
    pub(super) fn leave(&self, done: u64) -> Option<Outcome> {
        let mut state = lock(&self.state);
        state.inside -= 1;
        state.resident -= done;
        state.done += done;
        if state.finished {
            return None;
        }
        if state.done == self.setup.total() {
            state.finished = true;
            return Some(Outcome::Completed);
        }
        self.end_if_cancelled(&mut state)
    }

    /// The outcome of a cancelled launch that no worker is in any more; given once.
    pub(super) fn settle(&self) -> Option<Outcome> {
        let mut state = lock(&self.state);
        if state.finished {
            return None;
        }
        if state.done == self.setup.total() {
            state.finished = true;
            return Some(Outcome::Completed);
        }
        self.end_if_cancelled(&mut state)
    }

    fn end_if_cancelled(&self, state: &mut State) -> Option<Outcome> {
        if !self.cancelled.load(Ordering::Acquire) || state.inside != 0 {
            return None;
        }
        state.finished = true;
        let parked = state.parked.drain(..).map(|parked| parked.group);
        for (xcc, slots) in parked.chain(state.stuck.drain(..)).map(|group| group.slots()) {
            self.give_slots(xcc, slots.into_iter());
        }
        Some(Outcome::Cancelled)
    }

    /// Whether no wave was reported that halted at this instruction.
    pub(super) fn is_new_halt(&self, pc: u64) -> bool {
        lock(&self.halts).insert(pc)
    }

    /// Asks workers to stop. The outcome comes from a worker.
    pub(super) fn cancel(&self) {
        self.cancelled.store(true, Ordering::Release);
        self.stopped.store(true, Ordering::Release);
    }

    /// Stops the launch where it is. True for the first fault.
    pub(super) fn fault(&self) -> bool {
        self.stopped.store(true, Ordering::Release);
        !self.faulted.swap(true, Ordering::AcqRel)
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire) || self.held.load(Ordering::Acquire) != 0
    }

    /// Asks workers to leave, or lets them in again.
    pub(super) fn set_paused(&self, paused: bool) {
        self.set_held(hold::PAUSED, paused);
    }

    fn set_held(&self, bit: u8, held: bool) {
        if held {
            self.held.fetch_or(bit, Ordering::AcqRel);
        } else {
            self.held.fetch_and(!bit, Ordering::AcqRel);
        }
    }

    /// Whether the watchdog is to look now.
    pub(super) fn wants_examination(&self) -> bool {
        self.overdue.load(Ordering::Acquire) && !self.examined.load(Ordering::Acquire)
    }

    /// Whether nothing of it can ever go on, though it has not ended.
    pub(super) fn is_stuck(&self) -> bool {
        let state = lock(&self.state);
        !state.finished
            && state.inside == 0
            && state.parked.is_empty()
            && !state.stuck.is_empty()
            && !self.is_stopped()
            && (state.waiting.is_empty() || state.resident >= self.resident_limit)
    }

    /// Takes all resident workgroups out once no worker is in any, and how many wait to be started.
    /// Workers stay out until [`Job::put_all`], and whoever took them counts as one that is in. `None`: a worker did not leave within two seconds.
    pub(super) fn take_all(&self) -> Option<(Vec<Resident>, u64)> {
        self.set_held(hold::EXAMINED, true);
        let start = Instant::now();
        loop {
            let mut state = lock(&self.state);
            if state.inside == 0 {
                state.inside = 1; // whoever looks at them
                let waiting = state.waiting.iter().map(|range| range.end - range.start).sum();
                let parked =
                    state.parked.drain(..).map(|p| Resident { group: p.group, stuck: false });
                let mut all: Vec<Resident> = parked.collect();
                all.extend(state.stuck.drain(..).map(|group| Resident { group, stuck: true }));
                return Some((all, waiting));
            }
            drop(state);
            if start.elapsed() > Duration::from_secs(2) {
                self.set_held(hold::EXAMINED, false);
                return None;
            }
            std::thread::yield_now();
        }
    }

    /// Puts workgroups back. [`Job::leave`] is to follow.
    pub(super) fn put_all(&self, groups: Vec<Resident>) {
        let mut state = lock(&self.state);
        for Resident { group, stuck } in groups {
            if stuck {
                state.stuck.push(group);
            } else {
                state.parked.push_back(Parked { group, asleep: false });
            }
        }
        drop(state);
        self.set_held(hold::EXAMINED, false);
    }

    /// Whether no worker is inside, and none comes while the launch is paused.
    pub(super) fn is_quiet(&self) -> bool {
        let state = lock(&self.state);
        state.finished || state.inside == 0 && self.is_stopped()
    }

    pub(super) fn is_finished(&self) -> bool {
        lock(&self.state).finished
    }

    /// Whether a worker could find something to do, now or after a nap.
    pub(super) fn has_work(&self) -> bool {
        let state = lock(&self.state);
        if state.finished {
            return false;
        }
        if self.cancelled.load(Ordering::Acquire) {
            return state.inside == 0;
        }
        if self.wants_examination() && !self.is_stopped() {
            return true;
        }
        !self.is_stopped()
            && (!state.parked.is_empty()
                || !state.waiting.is_empty() && state.resident < self.resident_limit)
    }
}

/// Address space, base, slots of an XCC, XCCs.
type PoolKey = (usize, u64, u32, u32);

/// Scratch pools of all queues.
#[derive(Debug, Default)]
pub(super) struct Pools {
    pools: Mutex<HashMap<PoolKey, std::sync::Weak<Slots>>>,
}

impl Pools {
    /// The pool of a launch's queue.
    pub(super) fn of(&self, launch: &Launch) -> Arc<Slots> {
        let scratch = &launch.scratch;
        let space = Arc::as_ptr(&launch.memory).addr();
        let key = (space, scratch.base, scratch.waves, launch.xccs);
        let mut pools = lock(&self.pools);
        pools.retain(|_, pool| pool.strong_count() != 0);
        if let Some(pool) = pools.get(&key).and_then(std::sync::Weak::upgrade) {
            return pool;
        }
        let pool = Arc::new(Slots::new(launch.xccs, scratch.waves));
        pools.insert(key, Arc::downgrade(&pool));
        pool
    }
}
