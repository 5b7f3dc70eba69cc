//! Faults on order: what a test makes go wrong.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kfd::sys::Errno;

/// A call that a [`FaultPlan`] can make fail.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Call {
    /// `open` of this path.
    Open(String),
    /// A KFD ioctl by its number.
    Ioctl(u32),
    /// A KFD ioctl by its number, once it has had its effect: only the answer is an error.
    AfterIoctl(u32),
    /// Any KFD ioctl.
    AnyIoctl,
    /// `mmap`.
    Mmap,
    /// `munmap`.
    Munmap,
    /// `read`.
    Read,
    /// `poll`.
    Poll,
}

/// One order.
#[derive(Clone, Debug)]
struct Rule {
    call: Call,
    skip: u32,
    times: u32,
    errno: Errno,
}

type Garble = Arc<dyn Fn(&mut [u8]) + Send + Sync>;

/// What goes wrong and when. Empty by default; may be changed while the model runs.
#[derive(Default)]
pub struct FaultPlan {
    rules: Mutex<Vec<Rule>>,
    answers: Mutex<Vec<(u32, Garble)>>,
    /// Interrupts still to be dropped.
    lost_interrupts: AtomicU32,
    /// Delay of each interrupt in microseconds.
    interrupt_delay: AtomicU32,
    /// What is added to each read index that a queue publishes.
    read_index_lie: AtomicI64,
    /// Pause of PM4 and SDMA queues after each turn of one packet, in microseconds.
    packet_delay: AtomicU32,
    /// Bytes that a PM4 or SDMA queue moves in a turn; 0 for the usual number.
    turn_bytes: AtomicU32,
    /// Packet processors fetch nothing.
    stopped: AtomicBool,
}

impl FaultPlan {
    /// Nothing goes wrong.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes `call` fail with `errno`: `times` times, after `skip` calls that pass.
    pub fn fail(&self, call: Call, skip: u32, times: u32, errno: Errno) -> &Self {
        let rule = Rule { call, skip, times, errno };
        self.rules.lock().unwrap_or_else(PoisonError::into_inner).push(rule);
        self
    }

    /// Lets `garble` rewrite each answer of ioctl `number`: a `/dev/kfd` that answers nonsense.
    pub fn garble(&self, number: u32, garble: impl Fn(&mut [u8]) + Send + Sync + 'static) -> &Self {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        answers.push((number, Arc::new(garble)));
        self
    }

    /// Drops the next `count` interrupts.
    pub fn lose_interrupts(&self, count: u32) -> &Self {
        self.lost_interrupts.store(count, Ordering::Release);
        self
    }

    /// Delivers each interrupt after `delay`, rounded down to microseconds, at most 4294 s.
    pub fn delay_interrupts(&self, delay: Duration) -> &Self {
        let micros = u32::try_from(delay.as_micros()).unwrap_or(u32::MAX);
        self.interrupt_delay.store(micros, Ordering::Release);
        self
    }

    /// Adds `offset` to each read index that a queue writes for the driver.
    pub fn lie_read_index(&self, offset: i64) -> &Self {
        self.read_index_lie.store(offset, Ordering::Release);
        self
    }

    /// Slows the command processors of PM4 queues and the SDMA engines down: after each packet a
    /// queue rests for `delay` (rounded down to microseconds, at most 4294 s; zero for full speed),
    /// and in a turn it moves `bytes` bytes at most, 64 at least; 0 for the usual 256 KiB. Turns of
    /// other queues come in between.
    pub fn slow_engines(&self, delay: Duration, bytes: u32) -> &Self {
        let micros = u32::try_from(delay.as_micros()).unwrap_or(u32::MAX);
        self.packet_delay.store(micros, Ordering::Release);
        self.turn_bytes.store(bytes, Ordering::Release);
        self
    }

    /// Stops all packet processors from fetching, or lets them go on.
    pub fn stop_fetching(&self, stop: bool) -> &Self {
        self.stopped.store(stop, Ordering::Release);
        self
    }

    /// Forgets all rules.
    pub fn clear(&self) {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.answers.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.lose_interrupts(0).delay_interrupts(Duration::ZERO).lie_read_index(0);
        self.stop_fetching(false).slow_engines(Duration::ZERO, 0);
    }

    /// Whether this occurrence of `call` is to fail.
    pub(crate) fn check(&self, call: &Call) -> Result<(), Errno> {
        let mut rules = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        for rule in rules.iter_mut() {
            let any = rule.call == Call::AnyIoctl && matches!(call, Call::Ioctl(_));
            if !any && rule.call != *call {
                continue;
            }
            if rule.skip > 0 {
                rule.skip -= 1;
            } else if rule.times > 0 {
                rule.times -= 1;
                return Err(rule.errno);
            }
        }
        Ok(())
    }

    /// Rewrites the answer of ioctl `number` if that was ordered.
    pub(crate) fn rewrite(&self, number: u32, answer: &mut [u8]) {
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for (_, garble) in answers.iter().filter(|(which, _)| *which == number) {
            garble(answer);
        }
    }

    /// Whether the next interrupt is lost.
    pub(crate) fn loses_interrupt(&self) -> bool {
        let take = |count: u32| count.checked_sub(1);
        self.lost_interrupts.fetch_update(Ordering::AcqRel, Ordering::Acquire, take).is_ok()
    }

    /// Delay of the next interrupt.
    pub(crate) fn interrupt_delay(&self) -> Duration {
        Duration::from_micros(self.interrupt_delay.load(Ordering::Acquire).into())
    }

    /// What the driver is told instead of `index`.
    pub(crate) fn told_read_index(&self, index: u64) -> u64 {
        index.wrapping_add_signed(self.read_index_lie.load(Ordering::Acquire))
    }

    /// The rest after a packet, and the most bytes of a turn where that was ordered.
    pub(crate) fn engine_pace(&self) -> (Duration, Option<u64>) {
        let delay = Duration::from_micros(self.packet_delay.load(Ordering::Acquire).into());
        let bytes = self.turn_bytes.load(Ordering::Acquire);
        (delay, (bytes != 0).then_some(bytes.max(64).into()))
    }

    /// Whether packet processors fetch.
    pub(crate) fn fetches(&self) -> bool {
        !self.stopped.load(Ordering::Acquire)
    }
}

impl fmt::Debug for FaultPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rules = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        f.debug_struct("FaultPlan").field("rules", &*rules).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_fails_the_ordered_occurrences_and_no_others() {
        let plan = FaultPlan::new();
        plan.fail(Call::Ioctl(2), 1, 2, Errno::NOMEM);
        let outcomes: Vec<_> = (0..4).map(|_| plan.check(&Call::Ioctl(2)).is_err()).collect();
        assert_eq!(outcomes, [false, true, true, false]);
        assert_eq!(plan.check(&Call::Ioctl(3)), Ok(()));
    }

    #[test]
    fn any_ioctl_covers_every_number_but_no_other_call() {
        let plan = FaultPlan::new();
        plan.fail(Call::AnyIoctl, 0, 1, Errno::INTR);
        assert_eq!(plan.check(&Call::Mmap), Ok(()));
        assert_eq!(plan.check(&Call::Ioctl(0x16)), Err(Errno::INTR));
        assert_eq!(plan.check(&Call::Ioctl(0x16)), Ok(()));
    }
}
