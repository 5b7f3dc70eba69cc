//! The primitives that the drain's protocol is built from: the real ones, or loom's in its model
//! tests.

use core::time::Duration;

#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicBool, Ordering};
#[cfg(not(loom))]
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicBool, Ordering};
#[cfg(loom)]
pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard};

/// Locks; data behind a lock of this crate is whole even if a holder panicked.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Waits to be notified.
pub(crate) fn wait<'a, T>(condvar: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condvar.wait(guard).unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Waits to be notified, or for `at_most`. In loom's model time does not pass.
pub(crate) fn wait_for<'a, T>(
    condvar: &Condvar,
    guard: MutexGuard<'a, T>,
    at_most: Duration,
) -> MutexGuard<'a, T> {
    #[cfg(loom)]
    {
        let _ = at_most;
        wait(condvar, guard)
    }
    #[cfg(not(loom))]
    {
        let waited = condvar.wait_timeout(guard, at_most);
        waited.unwrap_or_else(std::sync::PoisonError::into_inner).0
    }
}

/// Time since some moment; stands still in loom's model.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    #[cfg(not(loom))]
    start: std::time::Instant,
}

impl Clock {
    pub fn start() -> Self {
        Self {
            #[cfg(not(loom))]
            start: std::time::Instant::now(),
        }
    }

    pub fn now(&self) -> Duration {
        #[cfg(loom)]
        {
            Duration::ZERO
        }
        #[cfg(not(loom))]
        {
            self.start.elapsed()
        }
    }
}

/// The process; 0 in loom's model, which does not fork.
pub(crate) fn process() -> u32 {
    if cfg!(loom) { 0 } else { std::process::id() }
}
