//! Events of a process: the page of slots, waiting, and what the device reports.
//!
//! Source: Linux 6.12.117, drivers/gpu/drm/amd/amdkfd/kfd_events.c (docs/ABI.md §Model).

#[cfg(test)]
mod tests;
mod wait;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kfd::GpuId;
use kfd::abi::{
    EVENT_PAGE_BYTES, EventType, FIRST_NONSIGNAL_EVENT_ID, HsaHwExceptionData,
    HsaMemoryExceptionData, MmapType, SIGNAL_EVENT_LIMIT, UNSIGNALED_EVENT_SLOT, WaitResult,
};
use kfd::sys::Errno;
use rustix::thread::futex;

use crate::kernel::{Arena, Region};
pub(crate) use wait::Payload;

/// Slots of a page that the driver has not mapped.
const UNMAPPED_SLOTS: u32 = 256;

/// One event.
#[derive(Debug)]
struct Event {
    kind: EventType,
    auto_reset: bool,
    signaled: bool,
    age: u64,
    memory: HsaMemoryExceptionData,
    hardware: HsaHwExceptionData,
    /// Waits that sleep on it: their number and the entry in it. Waking takes them off.
    waiters: Vec<(u64, usize)>,
}

/// One entry of a wait.
#[derive(Clone, Copy, Debug)]
struct Waiter {
    event: u32,
    destroyed: bool,
    activated: bool,
    wants_age: bool,
}

/// The page of slots.
#[derive(Debug)]
struct Page {
    region: Arc<Region>,
    /// Handle of the driver's allocation; `None` for a page of the kernel's.
    handle: Option<u64>,
    /// Slots in use: what the driver mapped.
    slots: u32,
}

#[derive(Debug)]
struct Table {
    page: Option<Page>,
    events: BTreeMap<u32, Event>,
    /// Signal events, and one for id 0.
    signal_events: u32,
    waits: BTreeMap<u64, Vec<Waiter>>,
    next_wait: u64,
}

/// The events of a process.
#[derive(Debug)]
pub(crate) struct Events {
    table: Mutex<Table>,
    /// Counts changes; who waits sleeps on it.
    changes: AtomicU32,
    has_age: bool,
}

/// What CREATE_EVENT returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Created {
    pub(crate) id: u32,
    pub(crate) has_slot: bool,
}

const fn has_slot(kind: EventType) -> bool {
    matches!(kind, EventType::SIGNAL | EventType::DEBUG_EVENT)
}

impl Table {
    /// `set_event`: marks the event and wakes who sleeps on it.
    fn set(&mut self, id: u32) {
        let Some(event) = self.events.get_mut(&id) else { return };
        let woken = std::mem::take(&mut event.waiters);
        event.signaled = !event.auto_reset || woken.is_empty();
        event.age = event.age.checked_add(1).unwrap_or(2);
        for (wait, index) in woken {
            let entry = self.waits.get_mut(&wait).and_then(|waiters| waiters.get_mut(index));
            if let Some(waiter) = entry {
                waiter.activated = true;
            }
        }
    }

    fn slot_fired(&self, id: u32) -> bool {
        let word = self.page.as_ref().and_then(|page| page.region.word(usize::try_from(id).ok()?));
        word.is_some_and(|word| word.load(Ordering::Acquire) != UNSIGNALED_EVENT_SLOT)
    }

    fn clear_slot(&self, id: u32) {
        let word = self.page.as_ref().and_then(|page| page.region.word(usize::try_from(id).ok()?));
        if let Some(word) = word {
            word.store(UNSIGNALED_EVENT_SLOT, Ordering::Release);
        }
    }

    /// `set_event_from_interrupt`.
    fn set_from_interrupt(&mut self, id: u32) {
        if self.events.get(&id).is_some_and(|event| has_slot(event.kind)) {
            self.clear_slot(id);
            self.set(id);
        }
    }

    /// `test_event_condition`.
    fn test(&self, wait: u64, all: bool) -> WaitResult {
        let Some(waiters) = self.waits.get(&wait) else { return WaitResult::FAIL };
        let mut activated = 0;
        for waiter in waiters {
            if waiter.destroyed {
                return WaitResult::FAIL;
            }
            if waiter.activated {
                if !all {
                    return WaitResult::COMPLETE;
                }
                activated += 1;
            }
        }
        if activated == waiters.len() { WaitResult::COMPLETE } else { WaitResult::TIMEOUT }
    }
}

impl Events {
    /// No events; id 0 is taken.
    pub(crate) fn new(has_age: bool) -> Self {
        let table = Table {
            page: None,
            events: BTreeMap::new(),
            signal_events: 1,
            waits: BTreeMap::new(),
            next_wait: 0,
        };
        Self { table: Mutex::new(table), changes: AtomicU32::new(0), has_age }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes who waits.
    fn tell(&self) {
        self.changes.fetch_add(1, Ordering::Release);
        // The kernel takes the number as signed: a larger one would wake a single thread.
        let all = i32::MAX.unsigned_abs();
        let _ = futex::wake(&self.changes, futex::Flags::PRIVATE, all);
    }

    /// Whether there is a page already.
    pub(crate) fn has_page(&self) -> bool {
        self.lock().page.is_some()
    }

    /// Handle of the allocation that serves as page.
    pub(crate) fn page_handle(&self) -> Option<u64> {
        self.lock().page.as_ref().and_then(|page| page.handle)
    }

    /// Takes the driver's allocation as page.
    ///
    /// # Errors
    /// `EINVAL` when it is too small.
    pub(crate) fn set_page(&self, region: Arc<Region>, handle: u64) -> Result<(), Errno> {
        if region.bytes() < EVENT_PAGE_BYTES {
            return Err(Errno::INVAL);
        }
        let words = usize::try_from(SIGNAL_EVENT_LIMIT).unwrap_or(0);
        for word in (0..words).filter_map(|index| region.word(index)) {
            word.store(UNSIGNALED_EVENT_SLOT, Ordering::Release);
        }
        let slots = u32::try_from(region.bytes() / 8).unwrap_or(u32::MAX).min(SIGNAL_EVENT_LIMIT);
        self.lock().page = Some(Page { region, handle: Some(handle), slots });
        Ok(())
    }

    /// The kernel's page, for a mapping of `bytes` bytes.
    ///
    /// # Errors
    /// `EINVAL` when it is larger than the page, or there is none.
    pub(crate) fn map_page(&self, bytes: u64) -> Result<Arc<Region>, Errno> {
        // The kernel compares orders of pages, so sizes are rounded up to powers of two.
        if bytes.next_power_of_two() > EVENT_PAGE_BYTES {
            return Err(Errno::INVAL);
        }
        let mut table = self.lock();
        let page = table.page.as_mut().ok_or(Errno::INVAL)?;
        page.slots = u32::try_from(bytes / 8).unwrap_or(SIGNAL_EVENT_LIMIT);
        Ok(Arc::clone(&page.region))
    }

    /// The offset for `mmap` of the page.
    pub(crate) fn mmap_offset(&self) -> u64 {
        let page = |page: &Page| page.region.mmap_offset(MmapType::EVENTS, GpuId(0));
        self.lock().page.as_ref().map_or(0, page)
    }

    /// Creates an event.
    ///
    /// # Errors
    /// `ENOSPC` when no slot is left, `ENOMEM` when the page cannot be had.
    pub(crate) fn create(
        &self,
        kind: EventType,
        auto_reset: bool,
        arena: &Arc<Arena>,
    ) -> Result<Created, Errno> {
        let mut table = self.lock();
        let id = if has_slot(kind) {
            if let Some(page) = &table.page {
                // Equality, as the kernel has it: a page that was mapped smaller than what is in
                // use leaves the slots free that lie within the mapping.
                if table.signal_events == page.slots {
                    return Err(Errno::NOSPC);
                }
            } else {
                let region = arena.region(EVENT_PAGE_BYTES).map_err(|_| Errno::NOMEM)?;
                region.fill(UNSIGNALED_EVENT_SLOT);
                table.page = Some(Page { region, handle: None, slots: UNMAPPED_SLOTS });
            }
            let slots = table.page.as_ref().map_or(0, |page| page.slots);
            let free = (1..slots).find(|id| !table.events.contains_key(id));
            let id = free.ok_or(Errno::NOSPC)?;
            table.signal_events += 1;
            table.clear_slot(id);
            id
        } else {
            let mut ids = FIRST_NONSIGNAL_EVENT_ID..=i32::MAX.unsigned_abs();
            ids.find(|id| !table.events.contains_key(id)).ok_or(Errno::NOSPC)?
        };
        table.events.insert(
            id,
            Event {
                kind,
                auto_reset,
                signaled: false,
                age: 1,
                memory: HsaMemoryExceptionData::default(),
                hardware: HsaHwExceptionData::default(),
                waiters: Vec::new(),
            },
        );
        Ok(Created { id, has_slot: has_slot(kind) })
    }

    /// Destroys an event; waits on it fail.
    ///
    /// # Errors
    /// `EINVAL` for an unknown id.
    pub(crate) fn destroy(&self, id: u32) -> Result<(), Errno> {
        let mut table = self.lock();
        let event = table.events.remove(&id).ok_or(Errno::INVAL)?;
        if has_slot(event.kind) {
            table.signal_events -= 1;
        }
        for (wait, index) in event.waiters {
            let entry = table.waits.get_mut(&wait).and_then(|waiters| waiters.get_mut(index));
            if let Some(waiter) = entry {
                waiter.destroyed = true;
            }
        }
        drop(table);
        self.tell();
        Ok(())
    }

    /// SET_EVENT and RESET_EVENT.
    ///
    /// # Errors
    /// `EINVAL` for an unknown id or an event that the CPU may not set.
    pub(crate) fn set(&self, id: u32, signaled: bool) -> Result<(), Errno> {
        let mut table = self.lock();
        let event = table.events.get_mut(&id).ok_or(Errno::INVAL)?;
        if event.kind != EventType::SIGNAL {
            return Err(Errno::INVAL);
        }
        if signaled {
            table.set(id);
            drop(table);
            self.tell();
        } else {
            event.signaled = false;
        }
        Ok(())
    }

    /// An interrupt with `valid_bits` bits of an event id: marks the event whose slot is written,
    /// or every such event when the id leads to none.
    pub(crate) fn interrupt(&self, partial: u32, valid_bits: u32) {
        let mut table = self.lock();
        if table.page.is_none() {
            return;
        }
        let mut found = None;
        if valid_bits > 0 && partial < SIGNAL_EVENT_LIMIT {
            let step = 1_u32.checked_shl(valid_bits).unwrap_or(SIGNAL_EVENT_LIMIT);
            let ids = (partial..SIGNAL_EVENT_LIMIT)
                .step_by(usize::try_from(step.max(1)).unwrap_or(usize::MAX));
            found = ids.into_iter().find(|id| table.slot_fired(*id));
            found = found.filter(|id| table.events.contains_key(id));
        }
        match found {
            Some(id) => table.set_from_interrupt(id),
            None => {
                let ids = table.events.range(1..SIGNAL_EVENT_LIMIT).map(|(id, _)| *id);
                let fired: Vec<u32> = ids.filter(|id| table.slot_fired(*id)).collect();
                for id in fired {
                    table.set_from_interrupt(id);
                }
            }
        }
        drop(table);
        self.tell();
    }

    /// Fires every signal event, as an interrupt without a cause may.
    pub(crate) fn fire_signals(&self) {
        let mut table = self.lock();
        let signals = table.events.range(1..SIGNAL_EVENT_LIMIT);
        let ids: Vec<u32> = signals.map(|(id, _)| *id).collect();
        for id in ids {
            table.set(id);
        }
        drop(table);
        self.tell();
    }

    /// Fires every event of type `kind` that is no signal, after `fill` has stored its payload.
    fn fire(&self, kind: EventType, fill: impl Fn(&mut Event)) {
        let mut table = self.lock();
        let others = table.events.range_mut(FIRST_NONSIGNAL_EVENT_ID..);
        let mut ids = Vec::new();
        for (id, event) in others.filter(|(_, event)| event.kind == kind) {
            fill(event);
            ids.push(*id);
        }
        for id in ids {
            table.set(id);
        }
        drop(table);
        self.tell();
    }

    /// Fires every memory exception event.
    pub(crate) fn memory_exception(&self, data: HsaMemoryExceptionData) {
        self.fire(EventType::MEMORY, |event| event.memory = data);
    }

    /// Fires every hardware exception event.
    pub(crate) fn hardware_exception(&self, data: HsaHwExceptionData) {
        self.fire(EventType::HW_EXCEPTION, |event| event.hardware = data);
    }

    /// Sets an event for the kernel itself (the `err_event_id` of a queue).
    pub(crate) fn set_for_kernel(&self, id: u32) {
        // kfd_send_exception_to_runtime uses kfd_set_event: only signal events react.
        let _ = self.set(id, true);
    }
}
