//! [`Signal`]: a value that packets decrement and threads wait for.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use aql::{AmdSignal, SignalWords};
use pm4::GpuAddr;

use crate::context::Context;
use crate::core::lock;
use crate::error::{Error, Result};
use crate::event::SignalEvent;
use crate::memory::{Allocation, MemoryRequest};

/// Signals in a block of one page.
const SLOTS: usize = 64;
const SLOT_BYTES: u64 = 64;

/// A page of signals.
#[derive(Debug)]
struct Block {
    memory: Arc<Allocation>,
    /// The event of each slot: made at its first use, kept for the next.
    events: Mutex<[Option<Arc<SignalEvent>>; SLOTS]>,
}

/// A slot that can be used again.
#[derive(Debug)]
struct Slot {
    block: Arc<Block>,
    index: usize,
    gpu: usize,
}

impl Slot {
    fn value(&self) -> Result<i64> {
        let words = self.block.memory.mapping()?;
        let word = words.u64(self.index as u64 * SLOT_BYTES + 8)?;
        Ok(word.load(Ordering::Acquire).cast_signed())
    }
}

/// Slots to hand out.
#[derive(Debug, Default)]
pub(crate) struct SignalPool {
    free: Vec<Slot>,
    /// Dropped while a packet may still decrement them: usable once it has, or once no queue is
    /// left that could.
    pending: Vec<Slot>,
}

impl SignalPool {
    fn take(&mut self, gpu: usize) -> Option<Slot> {
        let done = |slot: &Slot| slot.value().is_ok_and(|value| value <= 0);
        if !self.free.iter().any(|slot| slot.gpu == gpu) {
            self.free.extend(self.pending.extract_if(.., |slot| done(slot)));
        }
        let at = self.free.iter().rposition(|slot| slot.gpu == gpu)?;
        Some(self.free.swap_remove(at))
    }

    /// No queue is left that could write a signal.
    pub fn release_pending(&mut self) {
        self.free.append(&mut self.pending);
    }
}

/// A 64-bit value in memory that GPUs and this process share.
///
/// A packet that names it as completion signal decrements it when the packet is done. `Send` and
/// `Sync`. When it is dropped while its value is above 0 a packet may still be on its way to it, so
/// its memory is not used again before the value is 0 or no queue is left.
#[derive(Debug)]
pub struct Signal {
    context: Arc<Context>,
    /// `None` only while dropping.
    slot: Option<Slot>,
    addr: GpuAddr,
    event: Option<Arc<SignalEvent>>,
}

impl Signal {
    /// Makes a signal in memory of the GPU at `index`, reachable by every GPU that is in use.
    pub(crate) fn new(
        context: &Arc<Context>,
        index: usize,
        value: i64,
        with_event: bool,
    ) -> Result<Self> {
        if context.core.is_inherited() {
            return Err(Error::Inherited);
        }
        let events = context.events(index)?;
        let taken = lock(&context.signals).take(index);
        let slot = match taken {
            Some(slot) => slot,
            None => Self::grow(context, index)?,
        };
        let addr = slot.block.memory.addr().get() + slot.index as u64 * SLOT_BYTES;
        let event = if with_event {
            let mut made = lock(&slot.block.events);
            match made.get_mut(slot.index) {
                Some(Some(event)) => Some(Arc::clone(event)),
                Some(place) => {
                    let event = Arc::new(events.create_signal()?);
                    *place = Some(Arc::clone(&event));
                    Some(event)
                }
                None => None,
            }
        } else {
            None
        };
        let signal = Self {
            context: Arc::clone(context),
            slot: Some(slot),
            addr: GpuAddr::new(addr),
            event,
        };
        let mut content = AmdSignal::user(value);
        if let Some(event) = &signal.event {
            content = content.with_event(event.mailbox, event.id.0);
        }
        signal.with(|words| words.init(&content))?;
        Ok(signal)
    }

    /// Adds a block and takes its first slot.
    fn grow(context: &Arc<Context>, gpu: usize) -> Result<Slot> {
        let request =
            MemoryRequest::gtt(SLOTS as u64 * SLOT_BYTES).coherent().uncached().label("signals");
        let memory = Allocation::new(&context.core, gpu, &request)?;
        context.share(&memory)?;
        let block = Arc::new(Block { memory, events: Mutex::new([const { None }; SLOTS]) });
        let slot = |index| Slot { block: Arc::clone(&block), index, gpu };
        lock(&context.signals).free.extend((1..SLOTS).rev().map(slot));
        Ok(slot(0))
    }

    fn with<T>(&self, f: impl FnOnce(SignalWords<'_>) -> Result<T, aql::Error>) -> Result<T> {
        let gone = || Error::NoCpuAccess { addr: self.addr };
        let slot = self.slot.as_ref().ok_or_else(gone)?;
        let words = slot.block.memory.mapping()?.shared(slot.index as u64 * SLOT_BYTES, 64)?;
        SignalWords::new(words).and_then(f).map_err(|_| gone())
    }

    #[inline]
    fn word(&self) -> Option<&AtomicI64> {
        let slot = self.slot.as_ref()?;
        let mapping = slot.block.memory.mapping().ok()?;
        mapping.i64(slot.index as u64 * SLOT_BYTES + 8).ok()
    }

    /// Its address, which is its handle in packets.
    pub fn addr(&self) -> GpuAddr {
        self.addr
    }

    /// Address of its value: what packets compare, and what those store to that know no signals.
    /// Source: docs/ABI.md §AQL signal.
    pub fn value_addr(&self) -> GpuAddr {
        GpuAddr::new(self.addr.get() + 8)
    }

    /// The value. What the packet that decremented it wrote is visible after this.
    #[inline]
    pub fn value(&self) -> i64 {
        self.word().map_or(0, |word| word.load(Ordering::Acquire))
    }

    /// Sets the value. What this thread wrote before is visible to whoever sees it. Wakes nobody:
    /// GPUs poll, threads are woken by [`Signal::notify`].
    pub fn set(&self, value: i64) {
        if let Some(word) = self.word() {
            word.store(value, Ordering::Release);
        }
    }

    /// Adds to the value and returns what it was.
    pub fn add(&self, delta: i64) -> i64 {
        self.word().map_or(0, |word| word.fetch_add(delta, Ordering::AcqRel))
    }

    /// Wakes the threads that wait for it. Does nothing for a signal without event.
    ///
    /// # Errors
    /// [`Error::Ioctl`] of SET_EVENT.
    pub fn notify(&self) -> Result<()> {
        match &self.event {
            Some(event) => self.context.any_events()?.set(event),
            None => Ok(()),
        }
    }

    /// Forgets a wake-up that nobody waited for. Never needed: waits look at the value.
    ///
    /// # Errors
    /// [`Error::Ioctl`] of RESET_EVENT.
    pub fn reset_event(&self) -> Result<()> {
        match &self.event {
            Some(event) => self.context.any_events()?.reset(event),
            None => Ok(()),
        }
    }

    /// GPU ticks at which the packet that decremented it started and ended; zero unless the queue
    /// has profiling on.
    pub fn timestamps(&self) -> (u64, u64) {
        self.with(|words| words.timestamps()).unwrap_or_default()
    }

    pub(crate) fn event(&self) -> Option<&SignalEvent> {
        self.event.as_deref()
    }

    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// GPU whose memory it is in.
    pub(crate) fn gpu(&self) -> usize {
        self.slot.as_ref().map_or(0, |slot| slot.gpu)
    }
}

impl Drop for Signal {
    fn drop(&mut self) {
        if self.context.core.is_inherited() {
            return; // its memory is not there to be read
        }
        let value = self.value();
        let Some(slot) = self.slot.take() else { return };
        let mut pool = lock(&self.context.signals);
        if value > 0 {
            pool.pending.push(slot);
        } else {
            pool.free.push(slot);
        }
    }
}
