//! What wakes the drain.

use std::time::Duration;

use crate::sync::{Condvar, Mutex, lock, wait_for};

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// It rang.
    Rung,
    /// Time passed.
    TimedOut,
    /// It cannot wait any more: its GPU is lost.
    Dead,
}

/// The doorbell: the device adds 1 to its count and raises an event.
///
/// The count is the device's word. It is only ever compared with what it was before.
pub trait Bell: Send + Sync {
    /// The count, loaded once.
    fn count(&self) -> i64;

    /// Waits until the count is not `seen`, for at most `limit`.
    fn wait(&self, seen: i64, limit: Duration) -> Woken;

    /// Rings it from the host: whoever waits wakes up. Best effort: a wait ends by itself.
    fn ring(&self);
}

/// A bell without a device: for devices in software.
#[derive(Debug)]
pub struct HostBell {
    count: Mutex<i64>,
    rung: Condvar,
}

impl Default for HostBell {
    fn default() -> Self {
        Self::new()
    }
}

impl HostBell {
    /// A bell that has not rung.
    pub fn new() -> Self {
        Self { count: Mutex::new(0), rung: Condvar::new() }
    }
}

impl Bell for HostBell {
    fn count(&self) -> i64 {
        *lock(&self.count)
    }

    fn wait(&self, seen: i64, limit: Duration) -> Woken {
        let mut count = lock(&self.count);
        if *count == seen {
            count = wait_for(&self.rung, count, limit);
        }
        if *count == seen { Woken::TimedOut } else { Woken::Rung }
    }

    fn ring(&self) {
        let mut count = lock(&self.count);
        *count = count.wrapping_add(1);
        drop(count);
        self.rung.notify_all();
    }
}
