//! The GPU's clock.

use rustix::time::{ClockId, clock_gettime};

/// Ticks of the 100 MHz reference clock since an arbitrary start: the host's monotonic clock.
pub fn ticks() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 100_000_000 + now.tv_nsec as u64 / 10
}
