//! Every wait: look, spin about 20 µs, then sleep in the kernel. Every wait ends: the value is
//! there, time ran out, the GPU is lost, or the queue is.
//!
//! A sleep listens to the event of each signal, to memory and hardware exceptions, and to the
//! alert that fires when any queue reports an exception or another thread recorded a loss. With
//! event age (KFD 1.14) no wake-up can be missed: the age is read before the value. Before 1.14 a
//! sleep is short and looks again.

use std::sync::Arc;
use std::time::Duration;

use crate::context::Context;
use crate::device::Kfd;
use crate::error::{Error, Result};
use crate::event::SignalEvent;
use crate::queue::{AnyQueue, Live};
use crate::report::HangReport;
use crate::signal::Signal;

/// How long a wait looks before it sleeps.
const SPIN: Duration = Duration::from_micros(20);
/// Longest sleep where wake-ups cannot be missed: an interrupt may still be lost on its way.
const SLICE: Duration = Duration::from_millis(50);
/// Longest sleep where a wake-up can be missed, or where none is sent.
const SHORT_SLICE: Duration = Duration::from_millis(1);

/// What a signal's value is waited to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// Less than this.
    Below(i64),
    /// This or more.
    AtLeast(i64),
    /// This.
    Equal(i64),
    /// Anything else.
    NotEqual(i64),
}

impl Until {
    /// Whether `value` ends the wait.
    #[inline]
    pub const fn holds(self, value: i64) -> bool {
        match self {
            Self::Below(bound) => value < bound,
            Self::AtLeast(bound) => value >= bound,
            Self::Equal(bound) => value == bound,
            Self::NotEqual(bound) => value != bound,
        }
    }
}

/// One wait.
struct Wait<'a> {
    context: &'a Context,
    signals: &'a [(&'a Signal, Until)],
    queues: &'a [&'a dyn Live],
}

impl Wait<'_> {
    fn satisfied(&self) -> Option<usize> {
        self.signals.iter().position(|(signal, until)| until.holds(signal.value()))
    }

    /// The first cause, when something that was waited for is lost.
    fn check(&self) -> Result<()> {
        for (signal, _) in self.signals {
            self.context.core.gpu(signal.gpu())?.check()?;
        }
        for queue in self.queues {
            queue.core().check()?;
        }
        Ok(())
    }

    fn run(&self, timeout: Duration) -> Result<usize> {
        let kernel = &*self.context.core.kernel;
        let start = kernel.now();
        let elapsed = || kernel.now().saturating_sub(start);
        for rounds in 0.. {
            if let Some(index) = self.satisfied() {
                return Ok(index);
            }
            self.check()?;
            let waited = elapsed();
            if waited >= timeout {
                return self.time_out(waited);
            }
            if waited >= SPIN {
                break;
            }
            kernel.relax(rounds);
        }
        let events = self.context.any_events()?;
        let silent = self.signals.iter().any(|(signal, _)| signal.event().is_none());
        let longest = if silent || !events.has_age() { SHORT_SLICE } else { SLICE };
        loop {
            let watched: Vec<(&SignalEvent, u64)> = std::iter::once(&events.alert)
                .chain(self.signals.iter().filter_map(|(signal, _)| signal.event()))
                .map(|event| (event, event.age()))
                .collect();
            // From here on whatever happens changes an age, and the sleep ends at once.
            if let Some(index) = self.satisfied() {
                return Ok(index);
            }
            self.check()?;
            let waited = elapsed();
            let left = timeout.saturating_sub(waited);
            if left.is_zero() {
                return self.time_out(waited);
            }
            for queue in self.queues {
                queue.ring_again();
                queue.core().note(queue.look(), kernel.now());
            }
            let fired = events.wait(&watched, milliseconds(left.min(longest)))?;
            self.context.record(&fired)?;
            self.context.scan_queues()?;
        }
    }

    /// Time ran out, unless something happened meanwhile that nobody has noticed.
    fn time_out(&self, waited: Duration) -> Result<usize> {
        self.context.poll()?;
        if let Some(index) = self.satisfied() {
            return Ok(index);
        }
        self.check()?;
        let report = HangReport {
            waited_ms: u64::try_from(waited.as_millis()).unwrap_or(u64::MAX),
            value: self.signals.first().map_or(0, |(signal, _)| signal.value()),
            queue: self.queues.first().map(|queue| queue.state(self.context)),
            packet: self.queues.first().and_then(|queue| queue.current_packet(self.context)),
            snapshot: self.context.snapshot_after(waited),
        };
        Err(Error::Timeout(Arc::new(report)))
    }
}

/// KFD's unit, rounded up.
fn milliseconds(time: Duration) -> u32 {
    u32::try_from(time.as_nanos().div_ceil(1_000_000)).unwrap_or(u32::MAX - 1)
}

impl Signal {
    /// Waits for a value, and returns it.
    ///
    /// Knows only of the GPU that the signal was made on: [`Queue::wait`](crate::Queue::wait) also ends when the queue
    /// that should set it stops. `timeout` is rounded up to milliseconds once the wait sleeps, and
    /// the kernel adds up to two ticks (4 ms each at HZ=250).
    ///
    /// # Errors
    /// [`Error::Timeout`] when time runs out; [`Error::DeviceLost`] with the first cause when the
    /// GPU faulted.
    #[inline]
    pub fn wait(&self, until: Until, timeout: Duration) -> Result<i64> {
        let value = self.value();
        if until.holds(value) {
            return Ok(value);
        }
        self.wait_long(until, &[], timeout)
    }

    #[cold]
    pub(crate) fn wait_long(
        &self,
        until: Until,
        queues: &[&dyn Live],
        timeout: Duration,
    ) -> Result<i64> {
        let signals = [(self, until)];
        Wait { context: self.context(), signals: &signals, queues }.run(timeout)?;
        Ok(self.value())
    }
}

impl Kfd {
    /// Waits until one of `signals` has its value, and returns which. Ends early when a GPU of
    /// theirs or one of `queues`, which may be of any kind, is lost.
    ///
    /// # Errors
    /// As [`Queue::wait`](crate::Queue::wait); [`Error::InvalidArgument`] without signals.
    pub fn wait_any(
        &self,
        signals: &[(&Signal, Until)],
        queues: &[&dyn AnyQueue],
        timeout: Duration,
    ) -> Result<usize> {
        if signals.is_empty() {
            let what = "the number of signals";
            return Err(Error::InvalidArgument { call: "wait_any", what, value: 0 });
        }
        let queues: Vec<&dyn Live> = queues.iter().map(|queue| queue.view().0).collect();
        Wait { context: &self.context, signals, queues: &queues }.run(timeout)
    }

    /// Looks for faults and queue exceptions without waiting: afterwards [`Gpu::check`] and
    /// [`Queue::check`](crate::Queue::check) know of them.
    ///
    /// [`Gpu::check`]: crate::Gpu::check
    ///
    /// # Errors
    /// [`Error::Ioctl`] of WAIT_EVENTS.
    pub fn poll_faults(&self) -> Result<()> {
        match self.context.any_events() {
            Ok(_) => self.context.poll(),
            Err(_) => Ok(()), // nothing was ever started
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_compare_as_signed_numbers() {
        assert!(Until::Below(1).holds(0) && Until::Below(1).holds(i64::MIN));
        assert!(!Until::Below(1).holds(1));
        assert!(Until::AtLeast(0).holds(i64::MAX) && !Until::AtLeast(0).holds(-1));
        assert!(Until::Equal(-2).holds(-2) && Until::NotEqual(-2).holds(2));
    }

    #[test]
    fn sleeps_are_rounded_up_to_whole_milliseconds() {
        assert_eq!(milliseconds(Duration::from_nanos(1)), 1);
        assert_eq!(milliseconds(Duration::from_millis(7)), 7);
        assert_eq!(milliseconds(Duration::MAX), u32::MAX - 1);
        assert_eq!(milliseconds(Duration::ZERO), 0);
    }
}
