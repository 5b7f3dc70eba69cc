//! A wait on events, from its registration to its end.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use kfd::abi::{EventType, HsaHwExceptionData, HsaMemoryExceptionData, WaitResult};
use kfd::sys::Errno;
use rustix::thread::futex::{self, Timespec};

use super::{Events, Waiter};

/// What a fired entry of a wait tells.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Payload {
    None,
    Memory(HsaMemoryExceptionData),
    Hardware(HsaHwExceptionData),
    Age(u64),
}

impl Events {
    /// Begins a wait on `count` events; `entry` gives each event's id and last seen age.
    ///
    /// # Errors
    /// What `entry` returns, or `EINVAL` for an unknown id.
    pub(crate) fn wait(
        &self,
        count: usize,
        all: bool,
        mut entry: impl FnMut(usize) -> Result<(u32, u64), Errno>,
    ) -> Result<Wait<'_>, Errno> {
        let mut table = self.lock();
        let number = table.next_wait;
        table.next_wait += 1;
        table.waits.insert(number, Vec::with_capacity(count.min(64)));
        let wait = Wait { events: self, number, all };
        for index in 0..count {
            let begun = entry(index).and_then(|(id, age)| {
                let event = table.events.get_mut(&id).ok_or(Errno::INVAL)?;
                let mut activated = event.signaled;
                event.signaled = event.signaled && !event.auto_reset;
                let wants_age = self.has_age && event.kind == EventType::SIGNAL && age != 0;
                activated |= wants_age && event.age != age;
                if !activated {
                    event.waiters.push((number, index));
                }
                let waiter = Waiter { event: id, destroyed: false, activated, wants_age };
                if let Some(waiters) = table.waits.get_mut(&number) {
                    waiters.push(waiter);
                }
                Ok(())
            });
            if let Err(errno) = begun {
                drop(table);
                drop(wait);
                return Err(errno);
            }
        }
        drop(table);
        Ok(wait)
    }
}

/// A wait in progress. Dropping it takes it off the events.
#[derive(Debug)]
pub(crate) struct Wait<'a> {
    events: &'a Events,
    number: u64,
    all: bool,
}

impl Wait<'_> {
    /// How things stand.
    pub(crate) fn test(&self) -> WaitResult {
        self.events.lock().test(self.number, self.all)
    }

    /// Sleeps until the wait is over, `deadline`, or (with `slice`) that much time has passed.
    ///
    /// # Errors
    /// `EINTR` when a signal handler ran.
    pub(crate) fn sleep(
        &self,
        deadline: Option<Instant>,
        slice: Option<Duration>,
    ) -> Result<WaitResult, Errno> {
        let started = Instant::now();
        loop {
            // Read before the test: a change after it makes the sleep return at once.
            let changes = self.events.changes.load(Ordering::Acquire);
            let result = self.test();
            if result != WaitResult::TIMEOUT {
                return Ok(result);
            }
            let now = Instant::now();
            let until_deadline = deadline.map(|at| at.saturating_duration_since(now));
            let until_slice = slice.map(|slice| slice.saturating_sub(now - started));
            let left = match (until_deadline, until_slice) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            };
            if left == Some(Duration::ZERO) {
                return Ok(result);
            }
            // A timeout that a `timespec` does not hold is none.
            let left = left.and_then(|left| Timespec::try_from(left).ok());
            let flags = futex::Flags::PRIVATE;
            // Otherwise a change, the time, or a change before the sleep began.
            let woken = futex::wait(&self.events.changes, flags, changes, left.as_ref());
            if woken == Err(Errno::INTR) {
                return Err(Errno::INTR);
            }
        }
    }

    /// What the fired entries tell, by index.
    ///
    /// # Errors
    /// `EINVAL` when an event was destroyed meanwhile.
    pub(crate) fn payloads(&self) -> Result<Vec<(usize, Payload)>, Errno> {
        let table = self.events.lock();
        let mut payloads = Vec::new();
        for (index, waiter) in table.waits.get(&self.number).into_iter().flatten().enumerate() {
            let event = table.events.get(&waiter.event).filter(|_| !waiter.destroyed);
            let event = event.ok_or(Errno::INVAL)?;
            if waiter.activated {
                payloads.push((
                    index,
                    match event.kind {
                        EventType::MEMORY => Payload::Memory(event.memory),
                        EventType::HW_EXCEPTION => Payload::Hardware(event.hardware),
                        EventType::SIGNAL if waiter.wants_age => Payload::Age(event.age),
                        _ => Payload::None,
                    },
                ));
            }
        }
        Ok(payloads)
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        let mut table = self.events.lock();
        for waiter in table.waits.remove(&self.number).unwrap_or_default() {
            if let Some(event) = table.events.get_mut(&waiter.event) {
                event.waiters.retain(|(wait, _)| *wait != self.number);
            }
        }
    }
}
