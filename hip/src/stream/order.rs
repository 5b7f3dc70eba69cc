//! Events in a stream: recording them, and waiting for them on the device.

use std::sync::atomic::Ordering;

use aql::{BarrierAnd, FenceScope};
use kfd::KernelLabel;
use pm4::GpuAddr;

use super::core::{Core, Engine};
use super::deferred::Pending;
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
        slot.host_bound.store(self.is_host_bound(), Ordering::Relaxed);
        let addr = slot.addr();
        let submitted = if let Engine::Pm4(_) = self.engine {
            self.pm4_record(addr)
        } else {
            // No operation of its own: the next one counts for it.
            let stamp = BarrierAnd::noop().barrier().release(FenceScope::SYSTEM);
            self.push(&stamp.completion(addr).encode(), KernelLabel::NONE).map(|()| self.count + 1)
        };
        // After a failure the device may know of the slot or not: it is not used again.
        self.retire_at(submitted?, Retire::Slot(id));
        self.note_uncounted();
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
        let (addr, host_bound) = (slot.addr(), slot.is_host_bound());
        if let Err(error) = self.ready() {
            self.let_go(id);
            return Err(error);
        }
        if host_bound {
            return self.wait_for_host_bound(id, addr);
        }
        self.wait_for_slot(id, addr)
    }

    /// A host function has to come first: no reason to hold up streams that share the queue.
    #[cold]
    pub fn wait_for_host_bound(&mut self, id: SlotId, addr: GpuAddr) -> Result<()> {
        if let Engine::Shared(_) = self.engine {
            // The job gives the pin back; the packet behind it needs none.
            if let Err(error) = self.shared.deferred.hold_at(&self.shared, Pending::Gate(id)) {
                self.let_go(id);
                return Err(error);
            }
            let packet = BarrierAnd::noop().barrier().acquire(FenceScope::SYSTEM);
            let packet = packet.completion(self.progress()).encode();
            self.submit(&packet, KernelLabel::NONE)?;
            return Ok(());
        }
        self.host_bound = self.count + 1;
        self.wait_for_slot(id, addr)
    }

    /// Whether what was given to the stream so far may wait for a host function.
    #[inline]
    pub fn is_host_bound(&self) -> bool {
        match self.engine {
            Engine::Shared(_) => self.shared.deferred.is_active(),
            _ => self.host_bound > self.retired(),
        }
    }

    /// Has the device set a slot once everything so far is done and its writes are released to
    /// everybody. An operation that waits for the slot, and holds it until then, has to follow.
    /// [`Self::ready`] made room.
    pub fn set_slot(&mut self) -> Result<(SlotId, GpuAddr)> {
        let (id, addr) = self.start_slot(1)?;
        let submitted = if let Engine::Pm4(_) = self.engine {
            self.pm4_set(addr).and_then(|_| self.ready())
        } else {
            let packet = BarrierAnd::noop().barrier().release(FenceScope::SYSTEM);
            self.push(&packet.completion(addr).encode(), KernelLabel::NONE)
        };
        // As in `record`: after a failure the slot is not used again.
        submitted.map(|()| (id, addr))
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
        if let Engine::Pm4(_) = self.engine {
            if let Err(error) = self.pm4_wait(addr) {
                self.let_go(id);
                return Err(error);
            }
            self.retire(Retire::Slot(id));
            return Ok(());
        }
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
