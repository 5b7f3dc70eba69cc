//! KFD's events: the page the GPU signals through, and the events every wait listens to.
//!
//! A GPU signals by storing an event's id in its slot of the event page and raising an interrupt.
//! KFD wakes the waiters of that event. Source: docs/ABI.md §Events.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use pm4::GpuAddr;

use crate::abi::{self, EventType};
use crate::core::{Core, lock};
use crate::error::{Error, Object, Result};
use crate::ids::EventId;
use crate::memory::{Allocation, MemoryRequest};

/// A signal event: one slot of the event page.
#[derive(Debug)]
pub(crate) struct SignalEvent {
    pub id: EventId,
    /// Where the GPU stores the id.
    pub mailbox: GpuAddr,
    /// Age last seen; KFD counts from 1. Stays 1 where KFD has no age.
    age: AtomicU64,
}

impl SignalEvent {
    /// The age to wait from. Read it before the condition: whatever happens after this makes the
    /// wait return at once.
    pub fn age(&self) -> u64 {
        self.age.load(Ordering::Acquire)
    }

    fn saw(&self, age: u64) {
        self.age.fetch_max(age, Ordering::AcqRel);
    }
}

/// What a wait in the kernel found.
#[derive(Debug, Default)]
pub(crate) struct Fired {
    pub memory: Option<abi::HsaMemoryExceptionData>,
    pub hardware: Option<abi::HsaHwExceptionData>,
}

/// The page that GPUs signal through. KFD takes one for the life of the process.
#[derive(Debug)]
pub(crate) struct EventPage {
    memory: Arc<Allocation>,
    /// Whether KFD has it.
    given: AtomicBool,
}

impl EventPage {
    /// Allocates it on the GPU at `index`.
    pub fn new(core: &Arc<Core>, index: usize) -> Result<Self> {
        let request =
            MemoryRequest::gtt(abi::EVENT_PAGE_BYTES).coherent().uncached().label("event page");
        let memory = Allocation::new(core, index, &request)?;
        Ok(Self { memory, given: AtomicBool::new(false) })
    }

    /// Its memory: every GPU that signals needs it mapped.
    pub fn memory(&self) -> &Arc<Allocation> {
        &self.memory
    }
}

/// The events of a `Kfd`.
#[derive(Debug)]
pub(crate) struct Events {
    core: Arc<Core>,
    page: Arc<EventPage>,
    /// Fires when a queue reports an exception, and when a loss has been recorded.
    pub alert: SignalEvent,
    memory: EventId,
    hardware: EventId,
    has_age: bool,
    /// Events to destroy in the end.
    all: Mutex<Vec<EventId>>,
}

impl Events {
    /// Creates the events of all waits.
    pub fn new(core: &Arc<Core>, page: Arc<EventPage>) -> Result<Self> {
        let mut events = Self {
            core: Arc::clone(core),
            page,
            alert: SignalEvent { id: EventId(0), mailbox: GpuAddr::NULL, age: AtomicU64::new(1) },
            memory: EventId(0),
            hardware: EventId(0),
            has_age: core.at_least(14),
            all: Mutex::default(),
        };
        events.alert = events.create_signal()?;
        events.memory = events.create(EventType::MEMORY)?.event_id;
        events.hardware = events.create(EventType::HW_EXCEPTION)?.event_id;
        Ok(events)
    }

    /// How many there are.
    pub fn count(&self) -> u32 {
        u32::try_from(lock(&self.all).len()).unwrap_or(u32::MAX)
    }

    /// Whether KFD's waits cannot miss a wake-up.
    pub fn has_age(&self) -> bool {
        self.has_age
    }

    fn create(&self, event_type: EventType) -> Result<abi::CreateEventArgs> {
        let first = !self.page.given.load(Ordering::Relaxed);
        let mut args = abi::CreateEventArgs {
            event_page_offset: if first { self.page.memory.handle().0 } else { 0 },
            event_type,
            auto_reset: 1,
            ..Default::default()
        };
        self.core.call(&mut args, Object::Process)?;
        if first {
            self.page.memory.keep_for_ever();
            self.page.given.store(true, Ordering::Relaxed);
        }
        lock(&self.all).push(args.event_id);
        Ok(args)
    }

    /// Creates a signal event.
    pub fn create_signal(&self) -> Result<SignalEvent> {
        let args = self.create(EventType::SIGNAL)?;
        let slot = args.event_slot_index;
        if slot == 0 || slot >= abi::SIGNAL_EVENT_LIMIT {
            let value = u64::from(slot);
            return Err(Error::Nonsense { call: "CREATE_EVENT", what: "the slot index", value });
        }
        let mailbox = GpuAddr::new(self.page.memory.addr().get() + 8 * u64::from(slot));
        Ok(SignalEvent { id: args.event_id, mailbox, age: AtomicU64::new(1) })
    }

    /// Wakes whoever waits for `event`, now or with an age from before.
    pub fn set(&self, event: &SignalEvent) -> Result<()> {
        let mut args = abi::SetEventArgs { event_id: event.id, pad: 0 };
        self.core.call(&mut args, Object::Event(event.id)).map(drop)
    }

    /// Clears `event` where it was set and nobody waited.
    pub fn reset(&self, event: &SignalEvent) -> Result<()> {
        let mut args = abi::ResetEventArgs { event_id: event.id, pad: 0 };
        self.core.call(&mut args, Object::Event(event.id)).map(drop)
    }

    /// Sleeps until one of `signals` or a fault fires, or for `timeout_ms`. Each signal comes with
    /// its age from before the caller looked at what it waits for.
    pub fn wait(&self, signals: &[(&SignalEvent, u64)], timeout_ms: u32) -> Result<Fired> {
        let entry = |id| abi::EventData { event_id: id, ..Default::default() };
        let mut entries = Vec::with_capacity(signals.len() + 2);
        entries.extend([entry(self.memory), entry(self.hardware)]);
        entries.extend(signals.iter().map(|&(event, age)| {
            let mut entry = entry(event.id);
            let last_event_age = if self.has_age { age } else { 0 };
            entry.set_signal_event_data(abi::HsaSignalEventData { last_event_age });
            entry
        }));
        let mut found = Fired::default();
        if !self.core.wait_events(&mut entries, timeout_ms)? {
            return Ok(found);
        }
        let mut entries = entries.iter();
        // KFD writes only the entries that fired; a GPU id is never 0.
        if let Some(entry) = entries.next() {
            let data = entry.memory_exception_data();
            found.memory = (data.gpu_id.0 != 0).then_some(data);
        }
        if let Some(entry) = entries.next() {
            let data = entry.hw_exception_data();
            found.hardware = (data.gpu_id.0 != 0).then_some(data);
        }
        if self.has_age {
            for ((event, _), entry) in signals.iter().zip(entries) {
                event.saw(entry.signal_event_data().last_event_age);
            }
        }
        Ok(found)
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        for event_id in lock(&self.all).drain(..) {
            // Nobody waits any more; should KFD refuse, the process's end takes the event.
            let mut args = abi::DestroyEventArgs { event_id, pad: 0 };
            let _ = self.core.call(&mut args, Object::Event(event_id));
        }
    }
}
