//! [`Event`]: a point in a stream, which others wait for and time is taken at.

mod clock;
mod slots;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

pub(crate) use clock::Clock;
pub(crate) use slots::{Slot, Slots};

use crate::device::{DeviceCore, Runtime, Shared};
use crate::error::{Error, Result};
pub(crate) use crate::protocol::{Current, SlotId};

/// A point in a stream: [`Stream::record`](crate::Stream::record) puts it there, other streams
/// [wait](crate::Stream::wait) for it on the device, and threads wait for it here.
///
/// Recorded again it stands for the new point; who has waited for the old one before still does. One
/// that was never recorded counts as done. `Send` and `Sync`; no call on the way of recording and
/// waiting takes a lock.
///
/// Time is the device's, taken when the stream reaches the event.
#[derive(Debug)]
pub struct Event {
    pub(crate) core: Arc<EventCore>,
}

#[derive(Debug)]
pub(crate) struct EventCore {
    pub shared: Arc<Shared>,
    pub current: Current,
    devices: Arc<[crate::Device]>,
}

/// A slot that is kept from being used again.
struct Pinned<'a> {
    shared: &'a Shared,
    id: SlotId,
    slot: &'a Slot,
}

impl Drop for Pinned<'_> {
    fn drop(&mut self) {
        self.shared.slots.release(self.id);
    }
}

impl Event {
    /// Makes an event.
    pub fn new(runtime: &Runtime) -> Self {
        let (shared, devices) = runtime.parts();
        Self { core: Arc::new(EventCore { shared, devices, current: Current::new() }) }
    }

    fn pinned(&self) -> Option<Pinned<'_>> {
        let shared = &*self.core.shared;
        let id = self.core.current.pin()?;
        let slot = shared.slots.get(id)?;
        Some(Pinned { shared, id, slot })
    }

    /// Whether the stream has reached it, or it was never recorded.
    pub fn query(&self) -> bool {
        let done = self.pinned().is_none_or(|pinned| pinned.slot.is_done());
        if done {
            self.core.shared.host_looked();
        }
        done
    }

    /// Waits until the stream has reached it.
    ///
    /// # Errors
    /// [`Error::Driver`] with the first cause when the device or the queue that it was recorded on is
    /// lost.
    pub fn synchronize(&self) -> Result<()> {
        self.synchronize_within(Duration::MAX)
    }

    /// As [`Event::synchronize`], for at most `timeout`.
    ///
    /// # Errors
    /// As [`Event::synchronize`]; [`Error::Driver`] with [`kfd::Error::Timeout`].
    pub fn synchronize_within(&self, timeout: Duration) -> Result<()> {
        if let Some(pinned) = self.pinned()
            && !pinned.slot.is_done()
        {
            self.wait_long(pinned.slot, timeout)?;
        }
        self.core.shared.host_looked();
        Ok(())
    }

    #[cold]
    fn wait_long(&self, slot: &Slot, timeout: Duration) -> Result<()> {
        if crate::host::is_host_thread() {
            return Err(Error::InHostFunction);
        }
        let device = self.device_of(slot)?;
        // Any queue of the device may be the one that the event waits behind.
        let streams = device.streams();
        let queues: Vec<&dyn kfd::AnyQueue> = streams.iter().map(|stream| stream.queue()).collect();
        let signals = [(&slot.signal, kfd::Until::NotEqual(1))];
        self.core.shared.kfd.wait_any(&signals, &queues, timeout)?;
        Ok(())
    }

    fn device_of(&self, slot: &Slot) -> Result<&Arc<DeviceCore>> {
        let index = usize::try_from(slot.gpu.load(Ordering::Relaxed)).unwrap_or(usize::MAX);
        self.core.devices.get(index).map(|device| &device.core).ok_or(Error::NotRecorded)
    }

    /// When the stream reached it, in ticks of the device's counter, and on which device.
    fn stamp(&self) -> Result<(u64, &Arc<DeviceCore>)> {
        let pinned = self.pinned().ok_or(Error::NotRecorded)?;
        if !pinned.slot.is_done() {
            return Err(Error::NotReady);
        }
        let (_, end) = pinned.slot.signal.timestamps();
        let device = self.device_of(pinned.slot)?;
        Ok((end, device))
    }

    /// When the stream reached it, in nanoseconds of `CLOCK_MONOTONIC_RAW`.
    ///
    /// # Errors
    /// [`Error::NotRecorded`]; [`Error::NotReady`]; [`Error::Driver`] when the clocks cannot be read.
    pub fn nanoseconds(&self) -> Result<i64> {
        let (tick, device) = self.stamp()?;
        Ok(device.clock.rate(&device.gpu)?.when(tick))
    }

    /// Nanoseconds from `earlier` until this event. On one device never negative for events that a
    /// stream reaches in this order, and exact to the device's counter; across devices as exact as
    /// their clocks can be compared, some microseconds.
    ///
    /// # Errors
    /// As [`Event::nanoseconds`].
    pub fn nanoseconds_since(&self, earlier: &Event) -> Result<i64> {
        let ((from, first), (to, second)) = (earlier.stamp()?, self.stamp()?);
        let rate = second.clock.rate(&second.gpu)?;
        if Arc::ptr_eq(first, second) {
            return Ok(rate.between(from, to));
        }
        Ok(rate.when(to).saturating_sub(first.clock.rate(&first.gpu)?.when(from)))
    }
}

impl Drop for EventCore {
    fn drop(&mut self) {
        if let Some((slot, pins)) = self.current.replace(None)
            && self.shared.slots.get(slot).is_some_and(|found| found.holders.replaced(pins))
        {
            self.shared.slots.give_back(slot);
        }
    }
}

const _: fn() = || {
    fn shared<T: Send + Sync>() {}
    shared::<Event>();
};
