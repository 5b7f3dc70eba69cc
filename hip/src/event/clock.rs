//! GPU ticks to nanoseconds.

use std::sync::Mutex;
use std::time::Duration;

use kfd::{Clocks, Gpu};

use crate::error::{Error, Result};
use crate::sync::lock;

/// Shortest time between two readings of the clocks that a rate is made of: their readings are a
/// microsecond or so apart, which is then a thousandth of it at most.
const SHORTEST_NS: u64 = 2_000_000;
/// Once the readings are so far apart, the rate is exact enough not to be measured again.
const LONG_NS: u64 = 1_000_000_000;

/// The clocks of a GPU, read once at the start and again when a rate is wanted.
///
/// The host's clock is `CLOCK_MONOTONIC_RAW`: it is never set. Source: docs/ABI.md §Clocks.
#[derive(Debug, Default)]
pub(crate) struct Clock {
    readings: Mutex<Option<(Clocks, Clocks)>>,
}

/// How ticks become nanoseconds of `CLOCK_MONOTONIC_RAW`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rate {
    base_ticks: u64,
    base_ns: u64,
    /// So many ticks ...
    ticks: u64,
    /// ... take so many nanoseconds.
    ns: u64,
}

impl Clock {
    /// Reads the clocks for the first time, so that a rate can be told later.
    pub fn start(&self, gpu: &Gpu) -> Result<()> {
        let mut readings = lock(&self.readings);
        if readings.is_none() {
            let now = gpu.clocks()?;
            *readings = Some((now, now));
        }
        Ok(())
    }

    /// The rate. Waits up to 2 ms, once, where the clocks were read for the first time just now.
    pub fn rate(&self, gpu: &Gpu) -> Result<Rate> {
        self.start(gpu)?;
        let mut readings = lock(&self.readings);
        let Some((first, last)) = &mut *readings else { return Err(Error::NotReady) };
        while last.cpu_ns.saturating_sub(first.cpu_ns) < LONG_NS {
            *last = gpu.clocks()?;
            let passed = last.cpu_ns.saturating_sub(first.cpu_ns);
            if passed >= SHORTEST_NS {
                break;
            }
            std::thread::sleep(Duration::from_nanos(SHORTEST_NS - passed));
        }
        Rate::new(first, last).ok_or(Error::Driver(kfd::Error::Nonsense {
            call: "GET_CLOCK_COUNTERS",
            what: "the GPU's counter, which stands still or goes back,",
            value: last.gpu_ticks,
        }))
    }
}

impl Rate {
    fn new(first: &Clocks, last: &Clocks) -> Option<Self> {
        let ticks = last.gpu_ticks.checked_sub(first.gpu_ticks).filter(|ticks| *ticks > 0)?;
        let ns = last.cpu_ns.checked_sub(first.cpu_ns)?;
        Some(Self { base_ticks: last.gpu_ticks, base_ns: last.cpu_ns, ticks, ns })
    }

    /// Nanoseconds from one tick to a later one; negative from a later one to an earlier.
    pub fn between(&self, from: u64, to: u64) -> i64 {
        let scale = |ticks: u64| {
            let ns = u128::from(ticks) * u128::from(self.ns) / u128::from(self.ticks);
            i64::try_from(ns).unwrap_or(i64::MAX)
        };
        if to >= from { scale(to - from) } else { -scale(from - to) }
    }

    /// When a tick was, nanoseconds of `CLOCK_MONOTONIC_RAW`.
    pub fn when(&self, tick: u64) -> i64 {
        let base = i64::try_from(self.base_ns).unwrap_or(i64::MAX);
        base.saturating_add(self.between(self.base_ticks, tick))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(hz: u64) -> Rate {
        Rate { base_ticks: u64::MAX - 5, base_ns: 1_000_000_000, ticks: hz, ns: 1_000_000_000 }
    }

    #[test]
    fn five_milliseconds_are_five_milliseconds_at_every_frequency() {
        for hz in [25_000_000, 27_000_000, 100_000_000] {
            let ticks = hz / 200;
            assert_eq!(rate(hz).between(1 << 60, (1 << 60) + ticks), 5_000_000, "{hz}");
            assert_eq!(rate(hz).between(u64::MAX - ticks, u64::MAX), 5_000_000, "{hz}");
            assert_eq!(rate(hz).between((1 << 60) + ticks, 1 << 60), -5_000_000, "{hz}");
        }
    }

    #[test]
    fn a_tick_before_the_base_is_earlier() {
        let rate = rate(100_000_000);
        assert_eq!(rate.when(u64::MAX - 5), 1_000_000_000);
        assert_eq!(rate.when(u64::MAX - 105), 1_000_000_000 - 1000);
    }
}
