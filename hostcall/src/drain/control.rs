//! What the drain's thread and its callers share: launches in flight, commands, the end.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::{Bell, Detach};
use crate::counters::Counters;
use crate::error::{Error, Result};
use crate::pool::{Pool, PoolId};
use crate::sync::{
    AtomicBool, Clock, Condvar, Mutex, MutexGuard, Ordering, lock, process, wait, wait_for,
};

/// What callers ask of the thread. It takes them between passes.
pub(super) enum Command<W> {
    Attach(Box<Pool<W>>),
    Detach(PoolId),
    Discard(PoolId),
    Reset(PoolId),
}

/// The thread's answer.
pub(super) enum Answer<W> {
    Done,
    Detached(Box<Pool<W>>),
}

/// An attached pool, as callers see it.
struct Attached {
    /// Tells pools apart that had the same number one after the other.
    generation: u64,
    launches: u64,
}

struct State<W> {
    attached: BTreeMap<PoolId, Attached>,
    /// Sum of their launches.
    in_flight: u64,
    generations: u64,
    commands: VecDeque<(u64, Command<W>)>,
    tickets: u64,
    answers: BTreeMap<u64, Result<Answer<W>>>,
    stop: bool,
    done: bool,
    /// The pools, once the thread is done.
    left: Vec<Pool<W>>,
}

pub(super) struct Control<W> {
    state: Mutex<State<W>>,
    /// Notified on every change of `state` that somebody may wait for.
    changed: Condvar,
    /// `state.stop`, for the middle of a pass.
    stop: AtomicBool,
    bell: Arc<dyn Bell>,
    counters: Arc<Counters>,
    owner: u32,
}

/// What the thread is to do.
pub(super) enum Next<W> {
    Command(u64, Command<W>),
    Pass,
    Stop,
}

impl<W> Control<W> {
    pub fn new(bell: Arc<dyn Bell>, counters: Arc<Counters>) -> Self {
        let state = State {
            attached: BTreeMap::new(),
            in_flight: 0,
            generations: 0,
            commands: VecDeque::new(),
            tickets: 0,
            answers: BTreeMap::new(),
            stop: false,
            done: false,
            left: Vec::new(),
        };
        Self {
            state: Mutex::new(state),
            changed: Condvar::new(),
            stop: AtomicBool::new(false),
            bell,
            counters,
            owner: process(),
        }
    }

    pub fn bell(&self) -> &dyn Bell {
        &*self.bell
    }

    pub fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    pub fn is_stopping(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// In a forked child the thread does not exist, and the lock may be held for ever.
    pub fn check_process(&self) -> Result<()> {
        if self.owner == process() { Ok(()) } else { Err(Error::Inherited) }
    }

    fn open(&self) -> Result<MutexGuard<'_, State<W>>> {
        self.check_process()?;
        let state = lock(&self.state);
        if state.stop || state.done { Err(Error::Stopped) } else { Ok(state) }
    }

    /// Wakes the thread wherever it sleeps.
    fn wake(&self) {
        self.changed.notify_all();
        self.bell.ring();
    }

    pub fn attach(&self, pool: Pool<W>) -> Result<()> {
        let mut state = self.open()?;
        let id = pool.id();
        if state.attached.contains_key(&id) {
            return Err(Error::DuplicatePool { pool: id });
        }
        state.generations += 1;
        let attached = Attached { generation: state.generations, launches: 0 };
        state.attached.insert(id, attached);
        state.tickets += 1;
        // Nobody waits for it: a launch of this pool is served only after it.
        let ticket = state.tickets;
        state.commands.push_back((ticket, Command::Attach(Box::new(pool))));
        Ok(())
    }

    pub fn check_attached(&self, pool: PoolId) -> Result<()> {
        let state = self.open()?;
        let known = state.attached.contains_key(&pool);
        if known { Ok(()) } else { Err(Error::UnknownPool { pool }) }
    }

    pub fn launch(this: &Arc<Self>, pool: PoolId) -> Result<InFlight<W>> {
        let mut state = this.open()?;
        let attached = state.attached.get_mut(&pool).ok_or(Error::UnknownPool { pool })?;
        attached.launches += 1;
        let generation = attached.generation;
        state.in_flight += 1;
        let first = state.in_flight == 1;
        drop(state);
        if first {
            this.changed.notify_all();
        }
        Ok(InFlight { control: Arc::clone(this), pool, generation })
    }

    pub fn watch(this: &Arc<Self>) -> Result<InFlight<W>> {
        let mut state = this.open()?;
        state.in_flight += 1;
        let first = state.in_flight == 1;
        drop(state);
        if first {
            this.changed.notify_all();
        }
        Ok(InFlight { control: Arc::clone(this), pool: PoolId(0), generation: NO_POOL })
    }

    pub fn in_flight(&self) -> u64 {
        self.check_process().map_or(0, |()| lock(&self.state).in_flight)
    }

    fn landed(&self, pool: PoolId, generation: u64) {
        if self.check_process().is_err() {
            return;
        }
        let mut state = lock(&self.state);
        if generation == NO_POOL {
            state.in_flight = state.in_flight.saturating_sub(1);
            return;
        }
        let attached = state.attached.get_mut(&pool);
        if let Some(attached) = attached.filter(|attached| attached.generation == generation) {
            attached.launches = attached.launches.saturating_sub(1);
            state.in_flight = state.in_flight.saturating_sub(1);
        }
    }

    /// Runs `action` when nothing is in flight, and nothing can be until it returns.
    pub fn when_idle(&self, what: &'static str, action: impl FnOnce()) -> Result<()> {
        self.check_process()?;
        let state = lock(&self.state);
        match state.in_flight {
            0 => {
                action();
                Ok(())
            }
            launches => Err(Error::InFlight { what, launches }),
        }
    }

    /// Strikes a pool off the list: no launch of it can begin.
    pub fn forget(&self, pool: PoolId, why: Detach) -> Result<()> {
        let mut state = self.open()?;
        let attached = state.attached.get(&pool).ok_or(Error::UnknownPool { pool })?;
        let launches = attached.launches;
        if launches > 0 && why == Detach::Idle {
            return Err(Error::InFlight { what: "the pool", launches });
        }
        state.attached.remove(&pool);
        state.in_flight = state.in_flight.saturating_sub(launches);
        Ok(())
    }

    /// Has the thread drop a pool, and does not wait for it.
    pub fn discard(&self, pool: PoolId) -> Result<()> {
        self.forget(pool, Detach::QueueGone)?;
        let mut state = self.open()?;
        state.tickets += 1;
        let ticket = state.tickets;
        state.commands.push_back((ticket, Command::Discard(pool)));
        drop(state);
        self.wake();
        Ok(())
    }

    /// Gives the thread a command and waits for its answer.
    pub fn ask(&self, command: Command<W>, limit: Duration) -> Result<Answer<W>> {
        let mut state = self.open()?;
        state.tickets += 1;
        let ticket = state.tickets;
        state.commands.push_back((ticket, command));
        drop(state);
        self.wake();
        let clock = Clock::start();
        let mut state = lock(&self.state);
        loop {
            if let Some(answer) = state.answers.remove(&ticket) {
                return answer;
            }
            if state.done {
                return Err(Error::Stopped);
            }
            let left = limit.saturating_sub(clock.now());
            if left.is_zero() {
                return Err(Error::Stuck { milliseconds: limit.as_millis() });
            }
            state = wait_for(&self.changed, state, left);
        }
    }

    /// The thread's answer to a command. That of a caller who gave up stays until the end; there
    /// are no more of them than such callers.
    pub fn answer(&self, ticket: u64, answer: Result<Answer<W>>) {
        lock(&self.state).answers.insert(ticket, answer);
        self.changed.notify_all();
    }

    /// Sleeps until there is something to do; without a timer while nothing is in flight.
    pub fn next(&self) -> Next<W> {
        let mut state = lock(&self.state);
        loop {
            // Commands first: one who waits for an answer gets it even at the end.
            if let Some((ticket, command)) = state.commands.pop_front() {
                return Next::Command(ticket, command);
            }
            if state.stop {
                return Next::Stop;
            }
            if state.in_flight > 0 {
                return Next::Pass;
            }
            state = wait(&self.changed, state);
        }
    }

    /// Sleeps for `time`, or until there is something to do beside another pass.
    pub fn pause(&self, time: Duration) {
        let state = lock(&self.state);
        if state.commands.is_empty() && !state.stop && state.in_flight > 0 {
            drop(wait_for(&self.changed, state, time));
        }
    }

    /// The thread's last words.
    pub fn finish(&self, pools: Vec<Pool<W>>) {
        let mut state = lock(&self.state);
        state.left = pools;
        state.done = true;
        drop(state);
        self.changed.notify_all();
    }

    /// Tells the thread to end.
    pub fn request_stop(&self) {
        let mut state = lock(&self.state);
        let before = std::mem::replace(&mut state.stop, true);
        self.stop.store(true, Ordering::Relaxed);
        drop(state);
        if !before {
            self.wake();
        }
    }

    /// Tells the thread to end and waits until it has. What comes back are its pools.
    pub fn stop(&self, limit: Duration) -> Result<Vec<Pool<W>>> {
        self.request_stop();
        let clock = Clock::start();
        let mut state = lock(&self.state);
        while !state.done {
            let left = limit.saturating_sub(clock.now());
            if left.is_zero() {
                return Err(Error::Stuck { milliseconds: limit.as_millis() });
            }
            state = wait_for(&self.changed, state, left);
        }
        Ok(std::mem::take(&mut state.left))
    }
}

/// Instead of a pool's generation, which are counted from 1.
const NO_POOL: u64 = 0;

/// A launch that may use services is in flight. Keep it until the launch has ended.
///
/// Keeps the drain's state alive, not its thread: [`Drain::stop`](super::Drain::stop) does not wait
/// for it.
#[must_use]
pub struct InFlight<W> {
    control: Arc<Control<W>>,
    pool: PoolId,
    generation: u64,
}

/// A launch record has room for it.
const _: () = assert!(size_of::<InFlight<()>>() <= 24);

impl<W> fmt::Debug for InFlight<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InFlight").field("pool", &self.pool).finish_non_exhaustive()
    }
}

impl<W> Drop for InFlight<W> {
    fn drop(&mut self) {
        self.control.landed(self.pool, self.generation);
    }
}
