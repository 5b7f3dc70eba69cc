//! The primitives that protocols are built from: the real ones, or loom's in its model tests.

#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// Locks a mutex whose data is valid between any two statements.
///
/// No call on the way of a launch, a record, a wait or a satisfied synchronisation comes here; a test
/// counts.
#[cfg(not(loom))]
pub(crate) fn lock<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    LOCKS.with(|locks| locks.set(locks.get() + 1));
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(not(loom))]
std::thread_local! {
    static LOCKS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// Locks that this thread has taken in this crate so far: tests prove that the hot paths take none.
#[cfg(not(loom))]
#[doc(hidden)]
pub fn locks_taken() -> u64 {
    LOCKS.with(std::cell::Cell::get)
}
