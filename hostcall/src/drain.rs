//! [`Drain`]: the thread that answers, and how it sleeps, wakes and ends.
//!
//! ```text
//! host threads ── launch() ─────> in flight 0 -> 1: the drain wakes up
//!              ── attach() ─────> commands, taken between passes; the drain owns the pools
//!              ── stop() ───────> the last pass answers everything with errors
//! device ──────── doorbell ─────> Bell: an event of the kernel, or at most `poll` later anyway
//! ```
//!
//! While no launch is in flight that could use a service, the thread sleeps without a timer.
//! While one is, it looks at every pool when the doorbell rings and at least each `poll`: doorbells
//! get lost, are throttled by the device library, or ring for nothing, so what they say is only
//! "look now".

mod bell;
mod control;
mod worker;

use std::fmt;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

pub use bell::{Bell, HostBell, Woken};
pub use control::InFlight;
pub use worker::Worker;

use crate::counters::Counters;
use crate::error::{Error, Result};
use crate::pool::{Pool, PoolId};
use crate::service::{HeapControl, HeapLimits, Table};
use crate::words::Words;
use control::{Answer, Command, Control};

/// Longest that a lost doorbell may go unnoticed.
pub const MAX_POLL: Duration = Duration::from_millis(5);

/// How the drain works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrainConfig {
    /// Longest sleep while a launch is in flight; above [`MAX_POLL`] it is that.
    pub poll: Duration,
    /// How long the drain goes on looking after it has answered: the phase transport's device side
    /// rings at most once in 10 µs, and most waves call again at once.
    pub linger: Duration,
    /// Most packets of one pool before the next has its turn.
    pub budget: u32,
    /// How long a caller waits for the thread: to stop, to give a pool back.
    pub patience: Duration,
}

impl DrainConfig {
    /// 2 ms, 50 µs, 256 packets, 5 s.
    pub const DEFAULT: Self = Self {
        poll: Duration::from_millis(2),
        linger: Duration::from_micros(50),
        budget: 256,
        patience: Duration::from_secs(5),
    };
}

impl Default for DrainConfig {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Why a pool is taken away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detach {
    /// Nothing uses it: refused while launches of it are in flight.
    Idle,
    /// Its queue was destroyed or lost: no wave will use it, whatever is in flight.
    QueueGone,
}

/// Answers the packets of any number of pools.
///
/// Dropping it stops it, as [`Drain::stop`] does. In a forked child it does nothing.
pub struct Drain<W: Words> {
    control: Arc<Control<W>>,
    thread: Option<JoinHandle<()>>,
    config: DrainConfig,
}

impl<W: Words + 'static> Drain<W> {
    /// Starts the thread. It has no pool yet and sleeps.
    ///
    /// # Errors
    /// [`Error::Thread`].
    pub fn start(
        table: Table,
        bell: Arc<dyn Bell>,
        counters: Arc<Counters>,
        config: DrainConfig,
    ) -> Result<Self> {
        let (mut drain, worker) = Self::parts(table, bell, counters, config);
        let thread = std::thread::Builder::new()
            .name("hostcall".into())
            .spawn(move || worker.run())
            .map_err(|source| Error::Thread { what: "hostcall", source })?;
        drain.thread = Some(thread);
        Ok(drain)
    }
}

impl<W: Words> Drain<W> {
    /// A drain and its worker, for a host that has a thread to run it on.
    pub fn parts(
        table: Table,
        bell: Arc<dyn Bell>,
        counters: Arc<Counters>,
        config: DrainConfig,
    ) -> (Self, Worker<W>) {
        let config = DrainConfig { poll: config.poll.min(MAX_POLL), ..config };
        let control = Arc::new(Control::new(bell, counters));
        let worker = Worker::new(Arc::clone(&control), table, config);
        (Self { control, thread: None, config }, worker)
    }

    /// What was counted.
    pub fn counters(&self) -> &Arc<Counters> {
        self.control.counters()
    }

    /// Hands a pool to the drain.
    ///
    /// # Errors
    /// [`Error::DuplicatePool`], [`Error::Stopped`], [`Error::Inherited`].
    pub fn attach(&self, pool: Pool<W>) -> Result<()> {
        self.control.attach(pool)
    }

    /// Says that a launch which may use `pool` is about to be submitted. The drain looks after its
    /// pools until the last guard is gone: drop it once the launch has ended, on every path.
    ///
    /// # Errors
    /// [`Error::UnknownPool`], [`Error::Stopped`], [`Error::Inherited`].
    pub fn launch(&self, pool: PoolId) -> Result<InFlight<W>> {
        Control::launch(&self.control, pool)
    }

    /// Says that something is in flight that uses no pool, and whose end the [`Bell`] looks for: as
    /// [`Drain::launch`].
    ///
    /// # Errors
    /// [`Error::Stopped`], [`Error::Inherited`].
    pub fn watch(&self) -> Result<InFlight<W>> {
        Control::watch(&self.control)
    }

    /// Launches in flight, of all pools.
    pub fn in_flight(&self) -> u64 {
        self.control.in_flight()
    }

    /// Takes a pool back. The drain does not touch its memory after this returns.
    ///
    /// # Errors
    /// [`Error::InFlight`] while launches may use it, unless the queue is gone;
    /// [`Error::UnknownPool`]; [`Error::Stopped`]; [`Error::Stuck`] when the thread does not answer:
    /// it may then still be using the memory, and lets it go when it comes back; [`Error::Inherited`].
    pub fn detach(&self, pool: PoolId, why: Detach) -> Result<Pool<W>> {
        self.control.forget(pool, why)?;
        match self.control.ask(Command::Detach(pool), self.config.patience)? {
            Answer::Detached(pool) => Ok(*pool),
            Answer::Done => Err(Error::UnknownPool { pool }),
        }
    }

    /// Lets go of a pool whose queue was destroyed, without waiting: for a drop, from any thread, the
    /// drain's own included. Its memory is freed when the thread comes to it.
    ///
    /// # Errors
    /// [`Error::UnknownPool`], [`Error::Stopped`], [`Error::Inherited`].
    pub fn discard(&self, pool: PoolId) -> Result<()> {
        self.control.discard(pool)
    }

    /// Makes every packet of a pool free again, and drops messages that its waves had begun. For a
    /// queue that was reset: no wave of it is left.
    ///
    /// # Errors
    /// As [`Drain::detach`], but for [`Error::InFlight`].
    pub fn reset(&self, pool: PoolId) -> Result<()> {
        self.control.check_attached(pool)?;
        self.control.ask(Command::Reset(pool), self.config.patience).map(drop)
    }

    /// Sets the limits of a heap.
    ///
    /// # Errors
    /// [`Error::InFlight`] while a launch is that may allocate; [`Error::Inherited`].
    pub fn set_heap_limits(&self, heap: &HeapControl, limits: HeapLimits) -> Result<()> {
        self.control.when_idle("the device heap", || heap.set_limits(limits))
    }

    /// Ends the thread: what still waits is answered with errors, by number bounded. Gives back the
    /// pools, whose memory a queue that was not destroyed may still use.
    ///
    /// Stop launches and destroy their queues first: a wave that calls later waits for ever.
    ///
    /// # Errors
    /// [`Error::Stuck`] when a service does not return: the thread is left to itself and keeps the
    /// pools; [`Error::Inherited`].
    pub fn stop(mut self) -> Result<Vec<Pool<W>>> {
        self.close()
    }

    fn close(&mut self) -> Result<Vec<Pool<W>>> {
        let thread = self.thread.take();
        if let Err(error) = self.control.check_process() {
            // The thread is the parent's: there is nothing to join, or to detach.
            std::mem::forget(thread);
            return Err(error);
        }
        let pools = self.control.stop(self.config.patience)?;
        if let Some(thread) = thread {
            // It is past its last statement that can block. A panic there was its end as well.
            let _ = thread.join();
        }
        Ok(pools)
    }
}

impl<W: Words> fmt::Debug for Drain<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Drain").field("config", &self.config).finish_non_exhaustive()
    }
}

impl<W: Words> Drop for Drain<W> {
    fn drop(&mut self) {
        if self.thread.is_some() {
            // Pools that come back go here: their queues should be gone.
            let _ = self.close();
        } else if self.control.check_process().is_ok() {
            // A host's own thread ends by itself.
            self.control.request_stop();
        }
    }
}
