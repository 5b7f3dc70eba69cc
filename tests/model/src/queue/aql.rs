//! The AQL packet processor (docs/ABI.md §AQL; order of steps after AMD's firmware as its clients
//! see it).

use std::sync::atomic::{Ordering, fence};

use super::error::PacketError;
use super::packet::{Head, Packet, kind, vendor};
use super::{Flight, Format, Halt, Progress, Queue, Runner, State, signal};
use crate::exec::{Job, Outcome};
use crate::memory::AccessError;

/// Packets looked at per turn, so that no queue starves another.
const PER_TURN: u32 = 64;

/// Dispatches of a queue that run at once.
const MAX_FLIGHTS: usize = 64;

/// Where a packet leads.
pub(super) enum Step {
    /// Consumed.
    Next,
    /// It goes on at the next turn.
    More,
    /// Not yet: look again.
    Wait,
    /// Not before an earlier packet has completed.
    Blocked,
    /// Refused.
    Refuse(PacketError),
}

pub(super) type Outcomes = Result<Step, AccessError>;

impl Queue {
    /// Cancels and forgets everything; gives the jobs that may still run.
    pub(super) fn destroy(&self) -> Vec<Job> {
        let mut state = self.lock();
        state.destroyed = true;
        state.mapped = false;
        if let Some(word) = self.doorbell_word() {
            word.store(super::DOORBELL_SILENT, Ordering::Release);
        }
        state.abandon()
    }

    /// Looks at the doorbell and the next packets.
    pub(super) fn advance(&self, runner: &Runner) -> Progress {
        let mut state = self.lock();
        let state = &mut *state;
        if self.setup.device.is_evicted() {
            state.mapped = false;
            for job in state.abandon() {
                job.cancel();
            }
            return Progress::Idle;
        }
        if !state.wants_hardware() {
            return Progress::Idle;
        }
        if !runner.faults().fetches() {
            return Progress::Idle;
        }
        if !state.mapped {
            self.map(runner, state);
        }
        let rung = self.take_doorbell();
        match self.setup.format {
            Format::Aql => self.advance_aql(runner, state, rung),
            Format::Pm4 => self.advance_pm4(runner, state, rung),
            Format::Sdma => self.advance_sdma(runner, state, rung),
        }
    }

    /// Hardware gets the queue: the write index in memory counts, code may be new.
    fn map(&self, runner: &Runner, state: &mut State) {
        state.mapped = true;
        for job in state.jobs() {
            job.resume();
        }
        runner.engine().invalidate_code();
        match self.setup.device.space.load_u64(self.setup.write_pointer) {
            Ok(index) if self.setup.format == Format::Aql => {
                state.fetch_limit = state.fetch_limit.max(index);
            }
            // Whatever the doorbell said before: hardware starts from memory.
            Ok(pointer) => state.fetch_limit = pointer,
            Err(error) => runner.access_error(self, state, error),
        }
    }

    fn advance_aql(&self, runner: &Runner, state: &mut State, rung: Option<u64>) -> Progress {
        if let Some(last) = rung {
            state.fetch_limit = state.fetch_limit.max(last.saturating_add(1));
        }
        let mut moved = rung.is_some();
        let mut blocked = false;
        if !state.work.is_empty() {
            match self.settle(runner, state) {
                Ok(settled) => moved |= settled,
                Err(error) => {
                    runner.access_error(self, state, error);
                    return Progress::Moved;
                }
            }
        }
        for _ in 0..PER_TURN {
            match state.halt {
                Halt::No => {}
                Halt::Dead => return Progress::Idle,
                Halt::Scratch { signal } => match signal::value(&self.setup.device.space, signal) {
                    Ok(0) => state.halt = Halt::No,
                    Ok(_) => return Progress::Waiting,
                    Err(error) => {
                        runner.access_error(self, state, error);
                        return Progress::Moved;
                    }
                },
            }
            if state.next >= state.fetch_limit {
                break;
            }
            match self.packet(runner, state) {
                Ok(Step::Next) => moved = true,
                Ok(Step::More) => {
                    moved = true;
                    break;
                }
                Ok(Step::Wait) => break,
                Ok(Step::Blocked) => {
                    blocked = true;
                    break;
                }
                Ok(Step::Refuse(error)) => {
                    runner.packet_error(self, state, error);
                    return Progress::Moved;
                }
                Err(error) => {
                    runner.access_error(self, state, error);
                    return Progress::Moved;
                }
            }
        }
        match () {
            () if moved => Progress::Moved,
            () if state.next < state.fetch_limit && !blocked => Progress::Waiting,
            () if state.flights.is_empty() => Progress::Idle,
            () => Progress::Running,
        }
    }

    /// Carries out the next packet, or finds that it cannot yet.
    fn packet(&self, runner: &Runner, state: &mut State) -> Outcomes {
        let space = &self.setup.device.space;
        let at = state.slot(state.next);
        // One atomic load of the whole first dword: a packet is there only when its type is.
        let head = Head(space.load_u32(at)?);
        if head.kind() == kind::INVALID {
            return Ok(Step::Wait);
        }
        if head.barrier() && !state.flights.is_empty() || state.flights.len() >= MAX_FLIGHTS {
            return Ok(Step::Blocked);
        }
        let mut bytes = [0; 64];
        space.read(at, &mut bytes)?;
        let packet = Packet(bytes);
        let step = match head.kind() {
            kind::DISPATCH => self.dispatch(runner, state, head, &packet, at)?,
            kind::BARRIER_AND => self.barrier(&packet, true)?,
            kind::BARRIER_OR => self.barrier(&packet, false)?,
            kind::VENDOR => match head.vendor_format() {
                vendor::BARRIER_VALUE => self.barrier_value(&packet)?,
                vendor::PM4_IB => self.indirect_buffer(runner, state, head, &packet)?,
                _ => Step::Refuse(PacketError::VENDOR),
            },
            _ => Step::Refuse(PacketError::UNSUPPORTED),
        };
        if matches!(step, Step::Next) {
            if head.acquire() != 0 {
                fence(Ordering::SeqCst);
                runner.engine().invalidate_code();
            }
            let index = state.next;
            state.next += 1;
            // A dispatch has put itself in flight; everything else is complete now, but for what a
            // PM4-IB packet has started.
            if head.kind() != kind::DISPATCH {
                let signal = packet.completion_signal();
                let start = state.buffer.take().unwrap_or_else(|| self.setup.device.clock());
                let profiled = signal != 0 && self.profiling()?;
                let job = None;
                let flight = Flight { index, done: false, signal, start, profiled, job };
                state.flights.push_back(flight);
                if state.work.is_done(index) {
                    self.complete(runner, state, index)?;
                } else {
                    state.work.wait_for(index);
                }
            }
        }
        Ok(step)
    }

    /// Whether timestamps are wanted.
    pub(super) fn profiling(&self) -> Result<bool, AccessError> {
        let properties = self.descriptor()? + signal::field::PROPERTIES;
        Ok(self.setup.device.space.load_u32(properties)? & signal::ENABLE_PROFILING != 0)
    }

    fn barrier(&self, packet: &Packet, all: bool) -> Outcomes {
        let handles = [8, 16, 24, 32, 40].map(|at| packet.u64(at));
        let mut any = false;
        let mut open = false;
        for handle in handles.into_iter().filter(|handle| *handle != 0) {
            if signal::value(&self.setup.device.space, handle)? == 0 {
                any = true;
            } else {
                open = true;
            }
        }
        let passes = if all { !open } else { any || !open };
        Ok(if passes { Step::Next } else { Step::Wait })
    }

    fn barrier_value(&self, packet: &Packet) -> Outcomes {
        let handle = packet.u64(8);
        if handle == 0 {
            return Ok(Step::Next);
        }
        let value = signal::value(&self.setup.device.space, handle)? & packet.i64(24);
        let reference = packet.i64(16);
        let passes = match packet.u32(32) {
            0 => value == reference,
            1 => value != reference,
            2 => value < reference,
            3 => value >= reference,
            _ => return Ok(Step::Refuse(PacketError::VENDOR)),
        };
        Ok(if passes { Step::Next } else { Step::Wait })
    }

    /// The packet's work is done: release fence, timestamps, signal, then retirement in order.
    pub(super) fn complete(
        &self,
        runner: &Runner,
        state: &mut State,
        index: u64,
    ) -> Result<(), AccessError> {
        let flight = state.flights.iter_mut().find(|flight| flight.index == index && !flight.done);
        let Some(flight) = flight else { return Ok(()) };
        flight.done = true;
        flight.job = None;
        let (signal, start, profiled) = (flight.signal, flight.start, flight.profiled);
        fence(Ordering::SeqCst);
        if signal != 0 {
            if profiled {
                signal::stamp(&self.setup.device.space, signal, start, self.setup.device.clock())?;
            }
            runner.change_signal(self, signal, |value| value.wrapping_sub(1))?;
        }
        self.retire(runner, state)
    }

    /// Gives the slots of finished packets back, in order.
    fn retire(&self, runner: &Runner, state: &mut State) -> Result<(), AccessError> {
        let space = &self.setup.device.space;
        while let Some(flight) = state.flights.front().filter(|flight| flight.done) {
            let index = flight.index;
            let slot = state.slot(index);
            space.update_u32(slot, |head| Some(head & !0xffff | kind::INVALID))?;
            let told = runner.faults().told_read_index(index + 1);
            space.store_u64(self.setup.read_pointer, told)?;
            state.flights.pop_front();
        }
        Ok(())
    }
}

impl Runner {
    /// The engine is done with a dispatch.
    pub(super) fn dispatch_finished(&self, queue: &Queue, index: u64, pm4: bool, outcome: Outcome) {
        let mut guard = queue.lock();
        let state = &mut *guard;
        if pm4 {
            state.work.ended(index);
        } else if outcome == Outcome::Completed
            && !state.destroyed
            && !queue.setup.device.is_evicted()
            && let Err(error) = queue.complete(self, state, index)
        {
            self.access_error(queue, state, error);
        }
        drop(guard);
        // What waited for it goes on here and now, without the way through another thread.
        if queue.advance(self) >= Progress::Waiting || self.is_waited_for() {
            self.kick();
        }
    }
}
