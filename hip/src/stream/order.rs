//! Events in a stream: recording them, and waiting for them on the device.

use std::sync::atomic::Ordering;

use aql::{BarrierAnd, FenceScope};
use kfd::KernelLabel;
use pm4::GpuAddr;

use super::core::Core;
use super::retire::Retire;
use crate::error::{Error, Result};
use crate::event::{Event, SlotId};

impl Core {
    /// Puts an event here.
    #[inline]
    pub fn record(&mut self, event: &Event) -> Result<()> {
        self.same_runtime(event)?;
        self.ready()?;
        let id = self.take_slot()?;
        let Some(slot) = self.slot(id) else { return Err(lost_slot(id)) };
        // Held by the event and by the recording.
        slot.start(true, 1);
        slot.gpu.store(self.index(), Ordering::Relaxed);
        // The event's packet stamps it; the next counts the operation.
        let stamp = BarrierAnd::noop().barrier().release(FenceScope::SYSTEM);
        let stamp = stamp.completion(slot.addr()).encode();
        let count = BarrierAnd::noop().barrier().completion(self.progress()).encode();
        let none = KernelLabel::NONE;
        if let Err(error) = self.submit_two(&[(stamp, none), (count, none)]) {
            self.abandon_slot(id);
            return Err(error);
        }
        self.retire(Retire::Slot(id));
        self.note_released();
        if let Some((old, pins)) = event.core.current.replace(Some(id))
            && self.slot(old).is_some_and(|slot| slot.holders.replaced(pins))
        {
            self.reuse(old);
        }
        Ok(())
    }

    /// Holds back what comes next until the device has reached an event.
    #[inline]
    pub fn wait(&mut self, event: &Event) -> Result<()> {
        self.same_runtime(event)?;
        let Some(id) = event.core.current.pin() else { return Ok(()) };
        let Some(slot) = self.slot(id) else { return Err(lost_slot(id)) };
        if slot.is_done() {
            self.let_go(id);
            self.others_wrote();
            return Ok(());
        }
        let addr = slot.addr();
        if let Err(error) = self.ready() {
            self.let_go(id);
            return Err(error);
        }
        self.wait_for_slot(id, addr)
    }

    /// Has the device set a slot once everything so far is done and its writes are released to
    /// everybody. No operation of its own: one that waits for the slot, and holds it until then, has
    /// to follow. [`Self::ready`] made room.
    pub fn set_slot(&mut self) -> Result<(SlotId, GpuAddr)> {
        let (id, addr) = self.start_slot(1)?;
        let packet = BarrierAnd::noop().barrier().release(FenceScope::SYSTEM).completion(addr);
        if let Err(error) = self.push(&packet.encode(), KernelLabel::NONE) {
            self.abandon_slot(id);
            return Err(error);
        }
        Ok((id, addr))
    }

    /// A pending slot with so many holders.
    pub fn start_slot(&mut self, holders: i64) -> Result<(SlotId, GpuAddr)> {
        let id = self.take_slot()?;
        let Some(slot) = self.slot(id) else { return Err(lost_slot(id)) };
        slot.start(false, holders);
        slot.gpu.store(self.index(), Ordering::Relaxed);
        Ok((id, slot.addr()))
    }

    /// Submits the wait for a slot that the caller has pinned.
    #[inline]
    pub fn wait_for_slot(&mut self, id: SlotId, addr: GpuAddr) -> Result<()> {
        let none = GpuAddr::NULL;
        let packet = BarrierAnd::new([addr, none, none, none, none])
            .barrier()
            .acquire(FenceScope::SYSTEM)
            .release(FenceScope::NONE)
            .completion(self.progress());
        let was_released = self.is_released();
        if let Err(error) = self.submit(&packet.encode(), KernelLabel::NONE) {
            self.let_go(id);
            return Err(error);
        }
        self.retire(Retire::Slot(id));
        if was_released {
            // It has written nothing itself.
            self.note_released();
        }
        Ok(())
    }

    /// A slot whose recording failed: the device may know of it or not, so it is not used again.
    #[cold]
    pub fn abandon_slot(&self, _: SlotId) {}

    #[inline]
    fn same_runtime(&self, event: &Event) -> Result<()> {
        if std::ptr::eq(&*event.core.shared, &*self.shared.device.shared) {
            return Ok(());
        }
        Err(other_runtime())
    }

    #[inline]
    fn index(&self) -> u32 {
        self.shared.device.index
    }
}

#[cold]
fn other_runtime() -> Error {
    let what = "an event of another runtime";
    Error::InvalidArgument { call: "record or wait", what, value: 0 }
}

#[cold]
fn lost_slot(id: SlotId) -> Error {
    let what = "the slot of an event";
    Error::InvalidArgument { call: "record or wait", what, value: u64::from(id.0) }
}
