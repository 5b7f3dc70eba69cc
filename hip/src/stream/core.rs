//! [`Core`]: a stream's own state, and how an operation gets to the device.
//!
//! # Operations
//! An operation is one or more packets of which the last counts the stream's progress down. Its number
//! is its place in the stream, from 1. [`Core::ready`] makes sure that there is room for it, then its
//! packets go out with [`Core::submit`], and [`Core::retire`] says what it uses until the device has
//! passed it. This is the seam for operations of other kinds: they live in files of their own and
//! need nothing else.
//!
//! # Memory
//! Launches release at agent scope. Before anybody else looks, [`Core::release`] releases at system
//! scope. The first packet after the host, or another queue, has changed memory acquires at system
//! scope ([`Core::acquire_scope`]).

use std::collections::TryReserveError;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use aql::{BarrierAnd, FenceScope, Packet};
use kfd::KernelLabel;
use pm4::GpuAddr;

use super::deferred::DeferredRecord;
use super::kernarg::KernargRing;
use super::pm4::Pm4Line;
use super::request::StreamRequest;
use super::retire::{ModulesInUse, Retire, RetireQueue};
use super::ring::Ring;
use super::shared::{Line, StreamShared};
use crate::copy::Copies;
use crate::device::DeviceCore;
use crate::error::{Error, Result};
use crate::event::{Slot, SlotId};

/// What is kept of an operation in flight.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Record {
    /// Kernel arguments up to here may be in use.
    pub kernarg_end: u64,
}

/// Instead of the number of operations released: the last packet counts for none.
const UNCOUNTED: u64 = u64::MAX;

/// Slots that a stream keeps for itself.
const OWN_SLOTS: usize = 64;
/// Slots that it takes or gives back at a time.
const SLOT_BATCH: usize = 32;

/// Where a stream's packets go.
#[derive(Debug)]
pub(crate) enum Engine {
    /// An AQL queue of its own.
    Own(Arc<Ring>),
    /// An AQL queue that other streams use, too.
    Shared(Arc<Ring>),
    /// A PM4 queue.
    Pm4(Box<Pm4Line>),
}

/// The owner's side of a stream.
#[derive(Debug)]
pub(crate) struct Core {
    pub shared: Arc<StreamShared>,
    pub engine: Engine,
    /// Operations submitted.
    pub count: u64,
    /// Operations whose resources were given back.
    retired: u64,
    /// Of each operation in flight, by its number modulo their count.
    records: Box<[Record]>,
    pub kernarg: KernargRing,
    /// Where kernel arguments are put together.
    pub staging: Box<[u8]>,
    /// The host's looks that the device knows of.
    epoch: u64,
    /// The loads of code that the device knows of.
    code: u64,
    /// Operations whose writes were released to the host.
    released: u64,
    retire: RetireQueue,
    pub modules: ModulesInUse,
    /// Operations up to this one wait for a host function, or did.
    pub host_bound: u64,
    /// Slots for the next events.
    slots: Vec<SlotId>,
    /// What copies and fills need besides.
    pub copies: Copies,
    pub farewell: Duration,
}

impl Core {
    pub fn new(device: &Arc<DeviceCore>, request: &StreamRequest) -> Result<Self> {
        device.clock.start(&device.gpu)?;
        let kernarg = KernargRing::new(device, request.kernarg_bytes)?;
        let (engine, line) = if request.pm4 {
            let line = Pm4Line::new(device, request)?;
            let watch = line.watch();
            (Engine::Pm4(Box::new(line)), Line::Pm4(watch))
        } else {
            let ring = device.rings.take(device, request)?;
            let line = Line::Aql(Arc::clone(&ring));
            (if ring.is_shared { Engine::Shared(ring) } else { Engine::Own(ring) }, line)
        };
        let shared = StreamShared::new(device, line, request.patience)?;
        // The queue's creation checked that it is a power of two.
        let records = usize::try_from(request.packets).unwrap_or(usize::MAX);
        let mut core = Self {
            count: 0,
            retired: 0,
            records: vec![Record::default(); records].into_boxed_slice(),
            kernarg,
            staging: vec![0; 4096].into_boxed_slice(),
            epoch: 0,
            code: 0,
            released: 0,
            retire: RetireQueue::new(2 * records),
            modules: ModulesInUse::default(),
            host_bound: 0,
            slots: Vec::with_capacity(request.events.max(OWN_SLOTS) + SLOT_BATCH),
            copies: Copies::new(&request.copies),
            farewell: request.farewell,
            shared,
            engine,
        };
        while core.slots.len() < request.events {
            let slots = &device.shared.slots;
            slots.take(&device.gpu, &mut core.slots, SLOT_BATCH)?;
        }
        Ok(core)
    }

    pub fn device(&self) -> &Arc<DeviceCore> {
        &self.shared.device
    }

    /// Operations whose resources were given back.
    #[inline]
    pub const fn retired(&self) -> u64 {
        self.retired
    }

    #[inline]
    fn mask(&self) -> u64 {
        self.records.len() as u64 - 1
    }

    /// Makes sure that another operation can be in flight, with up to four uses of things.
    #[inline]
    pub fn ready(&mut self) -> Result<()> {
        let has_record = self.count - self.retired < self.records.len() as u64;
        if has_record && self.retire.has_room(4) {
            return Ok(());
        }
        self.make_room(|core| {
            core.count - core.retired < core.records.len() as u64 && core.retire.has_room(4)
        })
    }

    /// Waits until there is room: for the operation in the middle of those in flight, so that one wait
    /// makes room for many.
    #[cold]
    pub fn make_room(&mut self, is_enough: impl Fn(&Self) -> bool) -> Result<()> {
        self.look()?;
        while !is_enough(self) {
            // What no operation counts for yet is held until the next one.
            let has_record = self.count - self.retired < self.records.len() as u64;
            if self.released == UNCOUNTED && has_record {
                self.submit_release()?;
                continue;
            }
            if self.retired == self.count {
                let what = "the size of an operation, in an empty stream,";
                return Err(Error::InvalidArgument { call: "submit", what, value: 0 });
            }
            let middle = self.retired + (self.count - self.retired).div_ceil(2);
            self.shared.wait_for(middle, self.shared.patience)?;
            self.look()?;
        }
        Ok(())
    }

    /// Learns how far the device has got, and gives back what is not in use any more.
    pub fn look(&mut self) -> Result<u64> {
        let passed = self.shared.learn()?;
        if passed > self.retired {
            let at = usize::try_from((passed - 1) & self.mask()).unwrap_or(usize::MAX);
            if let Some(record) = self.records.get(at) {
                self.kernarg.give_back(record.kernarg_end);
            }
            self.retired = passed;
            while let Some(what) = self.retire.pop(passed) {
                match what {
                    Retire::Slot(slot) => self.let_go(slot),
                    Retire::Keep(_) => {}
                }
            }
            self.modules.sweep(passed);
        }
        self.shared.sweep();
        Ok(passed)
    }

    /// The acquire scope of the next packet.
    #[inline]
    pub fn acquire_scope(&mut self) -> Result<FenceScope> {
        let epoch = self.shared.device.shared.epoch();
        if epoch == self.epoch {
            return Ok(FenceScope::AGENT);
        }
        self.look_again(epoch)
    }

    #[cold]
    fn look_again(&mut self, epoch: u64) -> Result<FenceScope> {
        let code = self.shared.device.shared.code();
        if code != self.code {
            self.invalidate_code()?;
            self.code = code;
        }
        self.epoch = epoch;
        Ok(FenceScope::SYSTEM)
    }

    /// Another queue has changed memory: the next packet acquires at system scope.
    pub fn others_wrote(&mut self) {
        self.epoch = 0;
    }

    /// Makes instruction caches forget code that was replaced.
    fn invalidate_code(&mut self) -> Result<()> {
        if let Engine::Pm4(_) = self.engine {
            return Ok(()); // every launch invalidates them
        }
        let device = self.device();
        let packet = device.invalidation.packet(device)?;
        self.push(&packet, KernelLabel::NONE)
    }

    /// A packet of an AQL queue that is no operation of its own, in front of one.
    #[inline]
    pub fn push(&self, packet: &Packet, label: KernelLabel) -> Result<()> {
        match &self.engine {
            Engine::Own(ring) => match ring.queue.submit(packet, label) {
                Ok(_) => Ok(()),
                Err(error) => self.push_later(packet, label, error),
            },
            Engine::Shared(ring) => self.push_shared(ring, packet, label),
            Engine::Pm4(_) => Err(not_aql()),
        }
    }

    #[cold]
    fn push_later(&self, packet: &Packet, label: KernelLabel, error: kfd::Error) -> Result<()> {
        let Engine::Own(ring) = &self.engine else { return Err(error.into()) };
        let patience = self.shared.patience;
        match error {
            kfd::Error::ScratchTooSmall { needed, .. } => {
                ring.queue.grow_scratch(needed, patience)?;
                ring.queue.submit_within(packet, label, patience)?;
                Ok(())
            }
            error if error.is_full() => {
                ring.queue.submit_within(packet, label, patience)?;
                Ok(())
            }
            error => Err(error.into()),
        }
    }

    /// Streams that share a queue: unless what comes is held back on the host.
    fn push_shared(&self, ring: &Ring, packet: &Packet, label: KernelLabel) -> Result<()> {
        let record = DeferredRecord { packet: *packet, label };
        if self.shared.deferred.hold(&self.shared, record)? {
            return Ok(());
        }
        match ring.submit(packet, label) {
            Err(Error::Driver(error)) if error.is_full() => {
                ring.queue.submit_within(packet, label, self.shared.patience)?;
                Ok(())
            }
            result => result,
        }
    }

    /// Address of the signal that the last packet of each operation names.
    #[inline]
    pub fn progress(&self) -> GpuAddr {
        self.shared.word.addr()
    }

    /// Submits the last packet of an operation, which names [`Self::progress`], and returns the
    /// operation's number.
    #[inline]
    pub fn submit(&mut self, packet: &Packet, label: KernelLabel) -> Result<u64> {
        let number = self.count + 1;
        // Before the device can count it.
        self.shared.progress.announce(number);
        if let Err(error) = self.push(packet, label) {
            self.shared.progress.announce(self.count);
            return Err(error);
        }
        self.note(number);
        Ok(number)
    }

    /// Operation `number` was submitted.
    #[inline]
    pub fn note(&mut self, number: u64) {
        let at = usize::try_from((number - 1) & self.mask()).unwrap_or(usize::MAX);
        if let Some(record) = self.records.get_mut(at) {
            *record = Record { kernarg_end: self.kernarg.head() };
        }
        self.count = number;
    }

    /// Submits an operation of two packets with one doorbell. Only the second names
    /// [`Self::progress`].
    #[inline]
    pub fn submit_two(&mut self, packets: &[(Packet, KernelLabel); 2]) -> Result<u64> {
        let number = self.count + 1;
        self.shared.progress.announce(number);
        let submitted = match &self.engine {
            Engine::Own(ring) => match ring.queue.submit_all(packets) {
                Ok(_) => Ok(()),
                Err(error) => self.submit_two_later(packets, error),
            },
            _ => packets.iter().try_for_each(|(packet, label)| self.push(packet, *label)),
        };
        if let Err(error) = submitted {
            self.shared.progress.announce(self.count);
            return Err(error);
        }
        self.note(number);
        Ok(number)
    }

    #[cold]
    fn submit_two_later(
        &self,
        packets: &[(Packet, KernelLabel); 2],
        error: kfd::Error,
    ) -> Result<()> {
        if !error.is_full() {
            return Err(error.into());
        }
        packets
            .iter()
            .try_for_each(|(packet, label)| self.push_later(packet, *label, error.clone()))
    }

    /// The latest operation uses `what` until the device has passed it. [`Self::ready`] made room.
    #[inline]
    pub fn retire(&mut self, what: Retire) {
        self.retire.push(self.count, what);
    }

    /// Operation `number`, the latest or the next, uses `what` until the device has passed it.
    #[inline]
    pub fn retire_at(&mut self, number: u64, what: Retire) {
        self.retire.push(number, what);
    }

    /// A packet that is no operation of its own came last: a synchronisation has to wait for it, too.
    #[inline]
    pub fn note_uncounted(&mut self) {
        if let Engine::Pm4(_) = self.engine {
            return;
        }
        self.released = UNCOUNTED;
        self.shared.released.store(UNCOUNTED, Ordering::Release);
    }

    /// Whether everything submitted so far has released its writes to the host.
    #[inline]
    pub fn is_released(&self) -> bool {
        self.released == self.count
    }

    /// The latest operation releases its writes, and those of all before it, to the host.
    #[inline]
    pub fn note_released(&mut self) {
        self.released = self.count;
        self.shared.released.store(self.count, Ordering::Release);
    }

    /// Releases the writes of everything submitted so far to the host and all GPUs.
    pub fn release(&mut self) -> Result<()> {
        if self.is_released() {
            return Ok(());
        }
        if let Engine::Pm4(_) = self.engine {
            // Each of its operations does.
            self.note_released();
            return Ok(());
        }
        self.ready()?;
        self.submit_release()
    }

    fn submit_release(&mut self) -> Result<()> {
        let packet = BarrierAnd::noop().barrier().release(FenceScope::SYSTEM);
        self.submit(&packet.completion(self.progress()).encode(), KernelLabel::NONE)?;
        self.note_released();
        Ok(())
    }

    /// A slot for an event or a switch of engines.
    #[inline]
    pub fn take_slot(&mut self) -> Result<SlotId> {
        match self.slots.pop() {
            Some(slot) => Ok(slot),
            None => self.take_slots(),
        }
    }

    #[cold]
    fn take_slots(&mut self) -> Result<SlotId> {
        let shared = Arc::clone(&self.shared);
        let device = &shared.device;
        device.shared.slots.take(&device.gpu, &mut self.slots, SLOT_BATCH)?;
        self.slots.pop().ok_or(Error::InvalidArgument {
            call: "events",
            what: "the number of free slots",
            value: 0,
        })
    }

    /// The slot with a number.
    #[inline]
    pub fn slot(&self, id: SlotId) -> Option<&Slot> {
        self.shared.device.shared.slots.get(id)
    }

    /// One hold on a slot less.
    #[inline]
    pub fn let_go(&mut self, id: SlotId) {
        if self.slot(id).is_some_and(|slot| slot.holders.release()) {
            self.reuse(id);
        }
    }

    /// Keeps a slot that is nobody's.
    #[inline]
    pub fn reuse(&mut self, id: SlotId) {
        if self.slots.len() < OWN_SLOTS {
            self.slots.push(id);
        } else {
            self.shared.device.shared.slots.give_back(id);
        }
    }

    /// Ends it. What the device may still use goes to whoever has the queue.
    pub fn end(&mut self) {
        if self.device().shared.is_inherited() {
            return;
        }
        let farewell = self.farewell;
        let wait = |core: &Self| core.shared.wait_for(core.count, farewell).is_ok();
        // Then there is room for what makes sure of events that were recorded last.
        let done = wait(self)
            && self.release().is_ok()
            && wait(self)
            && self.look().is_ok_and(|passed| passed == self.count);
        for slot in self.slots.drain(..) {
            self.shared.device.shared.slots.give_back(slot);
        }
        if done {
            // The signal can be used again at once.
            self.shared.word.set(0);
            return;
        }
        // Their text is printed now; what the device may still write to stays, below.
        #[cfg(feature = "services")]
        self.shared.device.services.leave(&self.shared);
        let copies = self.copies.take();
        let modules = std::mem::take(&mut self.modules);
        let retire = std::mem::replace(&mut self.retire, RetireQueue::new(0));
        let graves = self.shared.exhume();
        let remains = (copies, self.kernarg.buffer(), modules, retire, graves);
        match &self.engine {
            Engine::Own(ring) | Engine::Shared(ring) => ring.keep(Box::new(remains)),
            // The queue goes first.
            Engine::Pm4(line) => line.keep(Box::new(remains)),
        }
    }

    /// Makes the staging memory hold at least `bytes`.
    #[cold]
    pub fn grow_staging(&mut self, bytes: usize) -> std::result::Result<(), TryReserveError> {
        let mut staging = Vec::new();
        staging.try_reserve_exact(bytes)?;
        staging.resize(bytes, 0);
        self.staging = staging.into_boxed_slice();
        Ok(())
    }
}

#[cold]
fn not_aql() -> Error {
    let what = "an AQL packet, on a PM4 queue,";
    Error::InvalidArgument { call: "submit", what, value: 0 }
}
