//! Packets that order: acquires, releases, events, waits.

use std::sync::atomic::{Ordering, fence};

use pm4::ReleaseMem;
use pm4::packet::{
    Compare, DataSel, DstSel, EventType, EventWrite, IntSel, WaitOn, WaitRegMem, WaitRegMem64,
    gfx9, gfx11,
};

use super::super::turn::Reason;
use super::super::{Format, Queue, Runner, State};
use super::{Done, NEXT, Processor};
use crate::exec::MemoryFault;
use crate::memory::AccessError;

/// Bits of an event id in the interrupt of a release.
const EVENT_BITS: u32 = 32;

fn acquire(runner: &Runner, instructions: bool) -> Done {
    fence(Ordering::SeqCst);
    if instructions {
        runner.engine().invalidate_code();
    }
    NEXT
}

/// Invalidates caches; instructions only if the packet says so.
pub(super) fn acquire_gfx9(runner: &Runner, packet: gfx9::AcquireMem) -> Done {
    acquire(runner, packet.cache().contains(gfx9::AcquireCache::SH_ICACHE))
}

/// Invalidates caches; instructions only if the packet says so.
pub(super) fn acquire_gfx11(runner: &Runner, packet: gfx11::AcquireMem) -> Done {
    let instructions = gfx11::Gcr::GLI_INV_ALL | gfx11::Gcr::GLI_INV_RANGE;
    acquire(runner, packet.cache().intersects(instructions))
}

/// CS_PARTIAL_FLUSH waits until the queue's dispatches have ended.
pub(super) fn event_write(state: &State, processor: &Processor, packet: EventWrite) -> Done {
    if packet.event() != (EventType::CS_PARTIAL_FLUSH, 4) {
        return Done::Stop(Reason::unsupported(format!("{packet} is unknown here")));
    }
    if state.is_running(processor.xcc) { Done::Blocked } else { NEXT }
}

/// Whether `value` passes; `None` for a comparison that does not exist.
fn holds(compare: Compare, value: u64, reference: u64) -> Done {
    match compare.holds(value, reference) {
        Some(true) => NEXT,
        Some(false) => Done::Wait,
        None => Done::Stop(Reason::invalid(format!("comparison {}", compare.0))),
    }
}

/// What a release asks for that no compute queue has.
fn check(packet: &ReleaseMem, is_gfx9: bool) -> Result<(), &'static str> {
    let (event, index) = packet.event();
    let end_of_pipe =
        [EventType::CACHE_FLUSH_AND_INV_TS, EventType::BOTTOM_OF_PIPE_TS].contains(&event);
    let known = end_of_pipe && index == 5 || event == EventType::CS_DONE && index == 6;
    let (selector, _) = packet.dst();
    let (data, _) = packet.data();
    let (interrupt, _) = packet.interrupts();
    let interrupts = [IntSel::NONE, IntSel::INTERRUPT, IntSel::AFTER_CONFIRM, IntSel::CONFIRM_ONLY];
    if !known {
        return Err("event");
    }
    if is_gfx9 && packet.gfx9_cache().bits() & !gfx9::ReleaseCache::all().bits() != 0 {
        return Err("cache action");
    }
    if ![DstSel::MEMORY, DstSel::TC_L2].contains(&selector) {
        return Err("destination");
    }
    if ![DataSel::NONE, DataSel::LOW_32, DataSel::ALL_64, DataSel::GPU_CLOCK].contains(&data) {
        return Err("data");
    }
    if interrupts.contains(&interrupt) { Ok(()) } else { Err("interrupt") }
}

impl Queue {
    /// RELEASE_MEM happens once the work before it has ended; the queue goes on meanwhile.
    pub(super) fn release_mem(
        &self,
        runner: &Runner,
        state: &mut State,
        processor: &Processor,
        aql: Option<u64>,
        packet: ReleaseMem,
    ) -> Result<Done, AccessError> {
        let is_gfx9 = processor.registers.target().is_gfx9();
        if let Err(what) = check(&packet, is_gfx9) {
            return Ok(Done::Stop(Reason::unsupported(format!("{packet}: unknown {what}"))));
        }
        if self.setup.format == Format::Pm4 && self.setup.eop == 0 {
            // The event goes through the queue's end-of-pipe buffer, here at address 0.
            let fault = MemoryFault { address: 0, write: true, fetch: false, not_present: true };
            return Err(fault.into());
        }
        let before = aql.unwrap_or(u64::MAX);
        if !state.work.release(before, processor.xcc, packet) {
            return Ok(Done::Blocked);
        }
        self.settle(runner, state)?;
        Ok(NEXT)
    }

    /// The effects of a release: data, then interrupt.
    pub(in crate::queue) fn perform(
        &self,
        runner: &Runner,
        packet: &ReleaseMem,
    ) -> Result<(), AccessError> {
        let space = &self.setup.device.space;
        fence(Ordering::SeqCst);
        let (_, dst) = packet.dst();
        match packet.data() {
            (DataSel::LOW_32, value) => {
                space.store_u32(dst.get(), u32::try_from(value & 0xffff_ffff).unwrap_or(0))?;
            }
            (DataSel::ALL_64, value) => space.store_u64(dst.get(), value)?,
            (DataSel::GPU_CLOCK, _) => space.store_u64(dst.get(), self.setup.device.clock())?,
            _ => {}
        }
        let (interrupt, context_id) = packet.interrupts();
        if [IntSel::INTERRUPT, IntSel::AFTER_CONFIRM].contains(&interrupt) {
            // KFD drops end-of-pipe interrupts without a context id, except from MES chips.
            if context_id != 0 || self.setup.device.info.has_mes() {
                runner.interrupt(context_id, EVENT_BITS);
            }
        }
        runner.engine().wake();
        Ok(())
    }

    pub(super) fn wait_reg_mem(
        &self,
        processor: &mut Processor,
        packet: WaitRegMem,
    ) -> Result<Done, AccessError> {
        let (compare, reference, mask) = packet.condition();
        let value = match packet.on() {
            WaitOn::Memory(at) | WaitOn::MemoryPreemptible(at) => {
                self.setup.device.space.load_u32(at.get())?
            }
            WaitOn::Register(reg) => match processor.registers.get(reg) {
                Ok(value) => value,
                Err(reason) => return Ok(Done::Stop(reason)),
            },
            WaitOn::WriteThenRegister { write, wait } => {
                let registers = &mut processor.registers;
                match registers.set(write, reference).and_then(|()| registers.get(wait)) {
                    Ok(value) => value,
                    Err(reason) => return Ok(Done::Stop(reason)),
                }
            }
        };
        Ok(holds(compare, (value & mask).into(), reference.into()))
    }

    pub(super) fn wait_reg_mem64(&self, packet: WaitRegMem64) -> Result<Done, AccessError> {
        let (compare, reference, mask) = packet.condition();
        let value = self.setup.device.space.load_u64(packet.addr().get())?;
        Ok(holds(compare, value & mask, reference))
    }
}
