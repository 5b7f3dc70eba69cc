//! One launch while it runs: which workgroups are left, resident, parked.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::group::Group;
use super::init::Setup;
use super::launch::{Launch, Listener, Outcome};

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

    pub(super) fn place(&self) -> [u32; 3] {
        match self {
            Self::Wave32(group) => group.place,
            Self::Wave64(group) => group.place,
        }
    }

    pub(super) fn places(&self) -> Vec<(u32, u64, u64)> {
        match self {
            Self::Wave32(group) => group.places().collect(),
            Self::Wave64(group) => group.places().collect(),
        }
    }
}

/// A resident workgroup that no worker runs now.
#[derive(Debug)]
struct Parked {
    group: AnyGroup,
    asleep: bool,
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
    slots: Option<Arc<Slots>>,
    resident_limit: u64,
    /// No worker starts or continues anything: cancelled, or faulted and waiting for that.
    stopped: AtomicBool,
    cancelled: AtomicBool,
    faulted: AtomicBool,
    /// No worker starts or continues anything until it is resumed.
    paused: AtomicBool,
    /// Instructions executed so far.
    pub(super) instructions: AtomicU64,
    /// Whether the instruction budget was reported.
    pub(super) budget_reported: AtomicBool,
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
            slots,
            resident_limit,
            stopped: AtomicBool::new(false),
            cancelled: AtomicBool::new(false),
            faulted: AtomicBool::new(false),
            paused: AtomicBool::new(false),
            instructions: AtomicU64::new(0),
            budget_reported: AtomicBool::new(false),
            state: Mutex::new(State { waiting, ..State::default() }),
        }
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
        self.stopped.load(Ordering::Acquire) || self.paused.load(Ordering::Acquire)
    }

    /// Asks workers to leave, or lets them in again.
    pub(super) fn set_paused(&self, paused: bool) {
        self.paused.store(paused, Ordering::Release);
    }

    /// Whether no worker is inside, and none comes while the launch is paused.
    pub(super) fn is_quiet(&self) -> bool {
        let state = lock(&self.state);
        state.finished || state.inside == 0 && self.is_stopped()
    }

    pub(super) fn is_finished(&self) -> bool {
        lock(&self.state).finished
    }

    /// Where the waves of parked workgroups are: group, wave, program counter, EXEC.
    pub(super) fn parked_places(&self) -> Vec<([u32; 3], u32, u64, u64)> {
        let state = lock(&self.state);
        let groups = state.parked.iter().map(|parked| &parked.group).chain(&state.stuck);
        groups
            .flat_map(|group| {
                let place = group.place();
                group.places().into_iter().map(move |(wave, pc, exec)| (place, wave, pc, exec))
            })
            .collect()
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
        !self.is_stopped()
            && (!state.parked.is_empty()
                || !state.waiting.is_empty() && state.resident < self.resident_limit)
    }
}

/// Scratch pools of all queues, by address space and base.
#[derive(Debug, Default)]
pub(super) struct Pools {
    pools: Mutex<HashMap<(usize, u64, u32, u32), std::sync::Weak<Slots>>>,
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
