//! [`Progress`]: how many of a stream's operations the device has passed.
//!
//! One thread submits; any thread may ask. The device counts in a word of its own, which is loaded
//! once per question and believed only where it lies between what is known to be done and what was
//! submitted.

use crate::sync::{AtomicU64, Ordering};

/// The device's word is out of range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken {
    /// What it says.
    pub completed: u64,
    /// Known to be done.
    pub first: u64,
    /// Submitted.
    pub last: u64,
}

/// The private counters: `passed <= submitted` always holds.
#[derive(Debug, Default)]
pub struct Progress {
    submitted: AtomicU64,
    passed: AtomicU64,
}

impl Progress {
    /// Nothing submitted.
    pub fn new() -> Self {
        Self { submitted: AtomicU64::new(0), passed: AtomicU64::new(0) }
    }

    /// Says that `count` operations will have been submitted in total, before the device can see the
    /// last of them. For the one thread that submits; it may take back what it then did not submit.
    #[inline]
    pub fn announce(&self, count: u64) {
        self.submitted.store(count, Ordering::Release);
    }

    /// Operations submitted.
    #[inline]
    pub fn submitted(&self) -> u64 {
        self.submitted.load(Ordering::Acquire)
    }

    /// Operations that the device is known to have passed.
    #[inline]
    pub fn passed(&self) -> u64 {
        self.passed.load(Ordering::Acquire)
    }

    /// Learns how far the device has got. `load` loads the device's word with Acquire: whatever the
    /// device wrote before it counted is visible afterwards.
    ///
    /// # Errors
    /// [`Broken`]: the stream is lost.
    #[inline]
    pub fn learn(&self, load: impl FnOnce() -> u64) -> Result<u64, Broken> {
        // Private; before the device's word, which never goes back.
        let first = self.passed.load(Ordering::Acquire);
        let completed = load();
        // Private; after it, so it covers all that the device can have counted.
        let last = self.submitted.load(Ordering::Acquire);
        if completed.wrapping_sub(first) > last.wrapping_sub(first) {
            return Err(Broken { completed, first, last });
        }
        if completed == first {
            return Ok(completed);
        }
        Ok(self.passed.fetch_max(completed, Ordering::AcqRel).max(completed))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_word_within_range_is_believed_and_nothing_else() {
        let progress = Progress::new();
        assert_eq!(progress.learn(|| 0), Ok(0));
        assert_eq!(progress.learn(|| 1), Err(Broken { completed: 1, first: 0, last: 0 }));
        progress.announce(3);
        assert_eq!(progress.learn(|| 2), Ok(2));
        assert_eq!(progress.learn(|| 1), Err(Broken { completed: 1, first: 2, last: 3 }));
        assert_eq!(progress.learn(|| 4), Err(Broken { completed: 4, first: 2, last: 3 }));
        assert_eq!(
            progress.learn(|| u64::MAX),
            Err(Broken { completed: u64::MAX, first: 2, last: 3 })
        );
        assert_eq!(progress.learn(|| 3), Ok(3));
        assert_eq!(progress.submitted(), 3);
    }
}
