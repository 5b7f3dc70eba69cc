//! The drain's thread.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::control::{Answer, Command, Control, Next};
use super::{DrainConfig, Woken};
use crate::counters::Count;
use crate::error::Error;
use crate::pool::{Pass, Pool, Turn};
use crate::service::Table;
use crate::sync::Clock;
use crate::words::Words;

/// Passes that answer what is left at the end.
const LAST_PASSES: u32 = 3;
/// Rings for nothing in a row after which a ring is not believed any more.
const FALSE_RINGS: u32 = 64;
/// How long the drain then sleeps instead.
const STORM_PAUSE: Duration = Duration::from_millis(1);

/// The other half of a [`Drain`](super::Drain): owns the pools and the services.
pub struct Worker<W: Words> {
    control: Arc<Control<W>>,
    table: Table,
    pools: Vec<Pool<W>>,
    /// Pool that has the first turn of the next pass.
    first: usize,
    config: DrainConfig,
    clock: Clock,
}

impl<W: Words> Worker<W> {
    pub(super) fn new(control: Arc<Control<W>>, table: Table, config: DrainConfig) -> Self {
        let clock = Clock::start();
        Self { control, table, pools: Vec::new(), first: 0, config, clock }
    }

    /// Serves until the drain is stopped.
    pub fn run(mut self) {
        let control = Arc::clone(&self.control);
        // However this ends, nobody is left waiting.
        let mut ending = Ending { control: &control, pools: Vec::new() };
        self.serve();
        self.refuse_rest();
        ending.pools = std::mem::take(&mut self.pools);
    }

    fn serve(&mut self) {
        let mut last_answer = Duration::ZERO;
        let mut false_rings = 0;
        loop {
            // Before commands and packets are looked at: a ring after this ends the sleep at once.
            let seen = self.control.bell().count();
            match self.control.next() {
                Next::Stop => return,
                Next::Command(ticket, command) => self.obey(ticket, command),
                Next::Pass => {
                    let pass = self.pass();
                    let now = self.clock.now();
                    if pass.answered > 0 {
                        last_answer = now;
                        false_rings = 0;
                    }
                    if pass.more || pass.answered > 0 {
                        continue;
                    }
                    if now.saturating_sub(last_answer) < self.config.linger {
                        std::hint::spin_loop();
                        continue;
                    }
                    self.sleep(seen, &mut false_rings);
                }
            }
        }
    }

    fn sleep(&self, seen: i64, false_rings: &mut u32) {
        if *false_rings >= FALSE_RINGS {
            self.control.pause(STORM_PAUSE);
            *false_rings -= 1;
            return;
        }
        match self.control.bell().wait(seen, self.config.poll) {
            Woken::Rung => *false_rings += 1,
            Woken::TimedOut => *false_rings = 0,
            // Other GPUs may still have work, and waves of this one cannot be hurt.
            Woken::Dead => self.control.pause(self.config.poll),
        }
    }

    /// One turn for each pool, the first a different one each time.
    fn pass(&mut self) -> Pass {
        self.control.counters().note(Count::Passes);
        let control = &*self.control;
        let stop = || control.is_stopping();
        let turn =
            Turn { budget: self.config.budget, now: self.clock.now(), refuse: false, stop: &stop };
        let mut whole = Pass::default();
        self.first = self.first.checked_add(1).filter(|&at| at < self.pools.len()).unwrap_or(0);
        let (before, after) = self.pools.split_at_mut(self.first);
        for pool in after.iter_mut().chain(before) {
            let pass = pool.pass(&mut self.table, control.counters(), &turn);
            whole.answered += pass.answered;
            whole.more |= pass.more;
        }
        whole
    }

    fn obey(&mut self, ticket: u64, command: Command<W>) {
        let find = |pools: &[Pool<W>], id| pools.iter().position(|pool| pool.id() == id);
        let answer = match command {
            Command::Attach(pool) => {
                self.pools.push(*pool);
                return;
            }
            Command::Discard(id) => {
                if let Some(at) = find(&self.pools, id) {
                    drop(self.pools.remove(at));
                    self.table.forget(id, self.control.counters());
                }
                return;
            }
            Command::Detach(id) => match find(&self.pools, id) {
                Some(at) => {
                    let pool = self.pools.remove(at);
                    self.table.forget(id, self.control.counters());
                    Ok(Answer::Detached(Box::new(pool)))
                }
                None => Err(Error::UnknownPool { pool: id }),
            },
            Command::Reset(id) => match self.pools.iter_mut().find(|pool| pool.id() == id) {
                Some(pool) => {
                    pool.reset();
                    self.table.forget(id, self.control.counters());
                    Ok(Answer::Done)
                }
                None => Err(Error::UnknownPool { pool: id }),
            },
        };
        self.control.answer(ticket, answer);
    }

    /// Answers everything that waits with errors; a device that goes on pushing ends nothing.
    fn refuse_rest(&mut self) {
        let counters = self.control.counters();
        let turn = Turn { budget: u32::MAX, now: self.clock.now(), refuse: true, stop: &|| false };
        for pool in &mut self.pools {
            // What is left of one chain, and one more.
            let turn = Turn { budget: pool.area().packets().saturating_add(1), ..turn };
            for _ in 0..LAST_PASSES {
                let pass = pool.pass(&mut self.table, counters, &turn);
                counters.add(Count::RefusedAtStop, pass.answered.into());
                if !pass.more {
                    break;
                }
            }
        }
    }
}

impl<W: Words> fmt::Debug for Worker<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("table", &self.table).finish_non_exhaustive()
    }
}

struct Ending<'a, W: Words> {
    control: &'a Control<W>,
    pools: Vec<Pool<W>>,
}

impl<W: Words> Drop for Ending<'_, W> {
    fn drop(&mut self) {
        self.control.finish(std::mem::take(&mut self.pools));
    }
}
