//! The PM4 command processor: PM4 queues, and the indirect buffers of AQL's PM4-IB packets
//! (docs/ABI.md §PM4; §Model for what is carried out).
//!
//! Packets are fetched one by one when their turn comes. A packet that has to wait keeps its place
//! and is looked at again at the next turn, so nothing ever blocks another queue. Dispatches and
//! releases go on behind the processor's back, as on hardware.

mod buffer;
mod dispatch;
mod memory;
mod register;
mod sync;

use pm4::{Error, Header, IndirectBuffer, Opcode, Packet as Pm4, Target};
use zerocopy::IntoBytes;

use super::turn::{Budget, Reason, Turn};
use super::{Halt, Progress, Queue, Runner, State};
use crate::memory::AccessError;
use register::Registers;

/// Buffers that one packet of the ring may enter, before the model takes them for endless.
const MAX_BUFFERS: u32 = 4096;

/// Buffers inside each other: IB1 and IB2.
const MAX_DEPTH: usize = 2;

/// A buffer that is being executed.
#[derive(Clone, Copy, Debug)]
struct Frame {
    base: u64,
    dwords: u64,
    /// The next dword.
    at: u64,
}

impl Frame {
    fn new(buffer: IndirectBuffer) -> Self {
        Self { base: buffer.base().get(), dwords: buffer.buffer_dwords().into(), at: 0 }
    }
}

/// A command processor's place in a queue: that of one XCC.
#[derive(Debug)]
pub(super) struct Processor {
    /// The XCC's number among those that execute the queue.
    xcc: u32,
    registers: Registers,
    /// The buffers that it is in, the innermost last.
    frames: Vec<Frame>,
    /// Buffers entered since the last packet of the ring.
    entered: u32,
    /// Bytes that the current packet has moved.
    progress: u64,
    /// What the last ATOMIC_MEM returned.
    returned: u64,
    words: Vec<u32>,
}

/// What became of a packet.
enum Done {
    /// It is carried out; how many bytes it moved.
    Next { bytes: u64 },
    /// This many dwords after it are passed over.
    Skip(u64),
    /// Go on in this buffer.
    Enter(IndirectBuffer),
    /// It needs another turn.
    More,
    /// Its condition does not hold yet.
    Wait,
    /// Launches have to end first.
    Blocked,
    /// The queue stops.
    Stop(Reason),
}

const NEXT: Done = Done::Next { bytes: 0 };

impl Processor {
    fn new(queue: &Queue, xcc: u32, aql: bool) -> Option<Self> {
        let version = u32::try_from(queue.setup.device.info.gfx_version).ok()?;
        let target = Target::from_version(version)?;
        let has_trap_handler = queue.setup.device.trap_handler().is_some();
        Some(Self {
            xcc,
            registers: Registers::new(target, has_trap_handler, aql),
            frames: Vec::new(),
            entered: 0,
            progress: 0,
            returned: 0,
            words: Vec::new(),
        })
    }

    /// Where it is, for people.
    fn place(&self, next: u64) -> String {
        match self.frames.last() {
            Some(frame) => {
                format!("dword {} of the indirect buffer at {:#x}", frame.at, frame.base)
            }
            None => format!("dword {next}"),
        }
    }
}

impl Queue {
    /// Looks at the next packets of a PM4 queue.
    pub(super) fn advance_pm4(
        &self,
        runner: &Runner,
        state: &mut State,
        rung: Option<u64>,
    ) -> Progress {
        if let Some(pointer) = rung {
            state.fetch_limit = state.fetch_limit.max(pointer);
        }
        if state.halt == Halt::Dead {
            return Progress::Idle;
        }
        match self.turn_pm4(runner, state) {
            Ok(progress) => progress.max(if rung.is_some() { Progress::Moved } else { progress }),
            Err(error) => {
                runner.access_error(self, state, error);
                Progress::Moved
            }
        }
    }

    fn turn_pm4(&self, runner: &Runner, state: &mut State) -> Result<Progress, AccessError> {
        let mut moved = !state.work.is_empty() && self.settle(runner, state)?;
        let in_buffer = state.processors.iter().any(|processor| !processor.frames.is_empty());
        if state.next == state.fetch_limit && !in_buffer {
            return Ok(match () {
                () if moved => Progress::Moved,
                () if state.work.is_empty() => Progress::Idle,
                () => Progress::Running,
            });
        }
        let before = state.next;
        let processor = match state.processors.pop() {
            Some(processor) => Some(processor),
            None => Processor::new(self, 0, false),
        };
        let Some(mut processor) = processor else {
            let version = self.setup.device.info.gfx_version;
            runner.say(self, format!("no executor for gfx_target_version {version}"));
            state.halt = Halt::Dead;
            return Ok(Progress::Moved);
        };
        let turn = match self.check_pointers(state, 4) {
            Ok(()) => match Budget::of(runner, state) {
                Some(mut budget) => {
                    let before = budget.packets;
                    let turn = self.run(runner, state, &mut processor, None, &mut budget);
                    if budget.packets != before || matches!(turn, Ok(Turn::More)) {
                        moved = true;
                        Self::rest(runner, state);
                    }
                    turn
                }
                None => Ok(Turn::Wait),
            },
            Err(reason) => Ok(Turn::Stop(reason)),
        };
        let place = processor.place(state.next);
        state.processors.push(processor);
        if state.next != before || state.told.is_none() {
            self.tell(runner, state)?;
        }
        Ok(match turn? {
            Turn::Stop(reason) => {
                runner.bad_packet(self, state, &place, &reason);
                Progress::Moved
            }
            Turn::More => Progress::Moved,
            _ if moved => Progress::Moved,
            Turn::Wait => Progress::Waiting,
            Turn::Done | Turn::Blocked if !state.work.is_empty() => Progress::Running,
            Turn::Done | Turn::Blocked => Progress::Idle,
        })
    }

    /// Executes packets until the budget is spent or one cannot go on. `aql` is the index of the
    /// PM4-IB packet whose buffer is executed; without one, the ring is.
    fn run(
        &self,
        runner: &Runner,
        state: &mut State,
        processor: &mut Processor,
        aql: Option<u64>,
        budget: &mut Budget,
    ) -> Result<Turn, AccessError> {
        loop {
            while processor.frames.pop_if(|frame| frame.at >= frame.dwords).is_some() {}
            let in_ring = processor.frames.is_empty();
            if in_ring && (aql.is_some() || state.next >= state.fetch_limit) {
                return Ok(Turn::Done);
            }
            if budget.is_spent() {
                return Ok(Turn::More);
            }
            let mut words = std::mem::take(&mut processor.words);
            let done = match self.fetch(state, processor, &mut words)? {
                Ok(()) => self.execute(runner, state, processor, aql, &words, budget),
                Err(reason) => Ok(Done::Stop(reason)),
            };
            let header = words.first().and_then(|word| Header::from_word(*word));
            let dwords = header.map_or(1, |header| header.dwords() as u64);
            processor.words = words;
            let passed = match done? {
                Done::Next { bytes } => {
                    budget.packet(bytes);
                    0
                }
                Done::Skip(count) => {
                    budget.packet(0);
                    count
                }
                Done::Enter(buffer) => {
                    budget.packet(0);
                    match self.enter(state, processor, buffer) {
                        Ok(()) => continue,
                        Err(reason) => return Ok(Turn::Stop(reason)),
                    }
                }
                Done::More => return Ok(Turn::More),
                Done::Wait => return Ok(Turn::Wait),
                Done::Blocked => return Ok(Turn::Blocked),
                Done::Stop(reason) => return Ok(Turn::Stop(reason)),
            };
            if passed > left(state, processor).saturating_sub(dwords) {
                let text = format!("it makes {passed} dwords conditional, fewer follow");
                return Ok(Turn::Stop(Reason::invalid(text)));
            }
            processor.progress = 0;
            match processor.frames.last_mut() {
                Some(frame) => frame.at += dwords + passed,
                None => {
                    state.next += dwords + passed;
                    processor.entered = 0;
                }
            }
        }
    }

    /// Enters the buffer of the packet that is being executed.
    fn enter(
        &self,
        state: &mut State,
        processor: &mut Processor,
        buffer: IndirectBuffer,
    ) -> Result<(), Reason> {
        processor.entered += 1;
        if processor.entered > MAX_BUFFERS {
            let text = format!("more than {MAX_BUFFERS} indirect buffers behind one packet");
            return Err(Reason::invalid(text));
        }
        let length = IndirectBuffer::DWORDS as u64;
        match (processor.frames.last_mut(), buffer.is_chained()) {
            (Some(frame), true) => *frame = Frame::new(buffer),
            (None, true) => {
                return Err(Reason::invalid("INDIRECT_BUFFER chains outside of a buffer"));
            }
            (Some(frame), false) => {
                frame.at += length;
                if processor.frames.len() >= MAX_DEPTH {
                    let text = format!("INDIRECT_BUFFER inside {MAX_DEPTH} others");
                    return Err(Reason::invalid(text));
                }
                processor.frames.push(Frame::new(buffer));
            }
            (None, false) => {
                state.next += length;
                processor.frames.push(Frame::new(buffer));
            }
        }
        Ok(())
    }

    /// Reads the next packet. The payload of a NOP stays where it is.
    fn fetch(
        &self,
        state: &State,
        processor: &Processor,
        words: &mut Vec<u32>,
    ) -> Result<Result<(), Reason>, AccessError> {
        let space = &self.setup.device.space;
        let left = left(state, processor);
        let first = space.load_u32(self.address(state, processor))?;
        let Some(header) = Header::from_word(first) else {
            return Ok(Err(Reason::unsupported(Error::NotType3 { word: first })));
        };
        let dwords = header.dwords();
        if dwords as u64 > left {
            let opcode = header.opcode();
            let text = format!("{opcode} has {dwords} dwords, of which {left} are there");
            return Ok(Err(Reason::invalid(text)));
        }
        let wanted = if header.opcode() == Opcode::NOP { 1 } else { dwords };
        words.resize(wanted, 0);
        self.read_words(state, processor, words)?;
        // What the length was read from.
        if let Some(word) = words.first_mut() {
            *word = first;
        }
        Ok(Ok(()))
    }

    /// Address of the current packet.
    fn address(&self, state: &State, processor: &Processor) -> u64 {
        match processor.frames.last() {
            Some(frame) => frame.base.wrapping_add(frame.at * 4),
            None => {
                let room = (state.tunables.ring_bytes / 4).max(1);
                state.tunables.ring.wrapping_add(state.next % room * 4)
            }
        }
    }

    /// Reads dwords from the current packet's start on, round the ring's end.
    fn read_words(
        &self,
        state: &State,
        processor: &Processor,
        words: &mut [u32],
    ) -> Result<(), AccessError> {
        let space = &self.setup.device.space;
        let start = self.address(state, processor);
        let before_end = match processor.frames.last() {
            Some(_) => words.len(),
            None => {
                let end = state.tunables.ring.wrapping_add(state.tunables.ring_bytes);
                usize::try_from(end.wrapping_sub(start) / 4).unwrap_or(usize::MAX)
            }
        };
        let (front, back) = words.split_at_mut(before_end.min(words.len()));
        space.read(start, front.as_mut_bytes())?;
        if !back.is_empty() {
            space.read(state.tunables.ring, back.as_mut_bytes())?;
        }
        Ok(())
    }

    fn execute(
        &self,
        runner: &Runner,
        state: &mut State,
        processor: &mut Processor,
        aql: Option<u64>,
        words: &[u32],
        budget: &Budget,
    ) -> Result<Done, AccessError> {
        let is_nop = words.first().and_then(|word| Header::from_word(*word));
        if is_nop.is_some_and(|header| header.opcode() == Opcode::NOP) {
            return Ok(NEXT);
        }
        let packet = match Pm4::decode(words) {
            Ok(packet) => packet,
            Err(error) => return Ok(Done::Stop(Reason::invalid(error))),
        };
        let is_gfx9 = processor.registers.target().is_gfx9();
        match packet {
            Pm4::SetReg(set) => Ok(match processor.registers.set_all(set.first(), set.values()) {
                Ok(()) => NEXT,
                Err(reason) => Done::Stop(reason),
            }),
            Pm4::IndirectBuffer(buffer) => Ok(Done::Enter(buffer)),
            Pm4::AcquireMemGfx9(acquire) if is_gfx9 => Ok(sync::acquire_gfx9(runner, acquire)),
            Pm4::AcquireMemGfx11(acquire) if !is_gfx9 => Ok(sync::acquire_gfx11(runner, acquire)),
            Pm4::ReleaseMem(release) => self.release_mem(runner, state, processor, aql, release),
            Pm4::EventWrite(event) => Ok(sync::event_write(state, processor, event)),
            Pm4::WaitRegMem(wait) => self.wait_reg_mem(processor, wait),
            Pm4::WaitRegMem64(wait) if !is_gfx9 => self.wait_reg_mem64(wait),
            Pm4::WriteData(write) => self.write_data(runner, processor, write),
            Pm4::CopyData(copy) => self.copy_data(runner, processor, copy),
            Pm4::AtomicMem(atomic) => self.atomic_mem(runner, processor, atomic),
            Pm4::DmaData(dma) => self.dma_data(runner, processor, dma, budget),
            Pm4::DispatchDirect(dispatch) => self.dispatch_pm4(
                runner,
                state,
                processor,
                aql,
                dispatch.dims(),
                dispatch.initiator(),
            ),
            Pm4::DispatchIndirect(dispatch) => {
                let at = dispatch.dims().get();
                let space = &self.setup.device.space;
                let dims = [space.load_u32(at)?, space.load_u32(at + 4)?, space.load_u32(at + 8)?];
                self.dispatch_pm4(runner, state, processor, aql, dims, dispatch.initiator())
            }
            Pm4::CondExec(exec) => {
                let condition = self.setup.device.space.load_u32(exec.condition().get())?;
                Ok(if condition == 0 { Done::Skip(exec.skips().into()) } else { NEXT })
            }
            Pm4::PredExec(exec) => Ok(self.pred_exec(runner, state, processor, exec)),
            other => Ok(Done::Stop(Reason::unsupported(format!("{other} is unknown here")))),
        }
    }

    /// PRED_EXEC: only inside a buffer; in a ring the hardware passes it over.
    fn pred_exec(
        &self,
        runner: &Runner,
        state: &State,
        processor: &Processor,
        exec: pm4::packet::PredExec,
    ) -> Done {
        if processor.frames.is_empty() {
            let place = processor.place(state.next);
            runner.say(self, format!("{place}: {exec} in a ring has no effect"));
            return NEXT;
        }
        let bit = exec.xcc_mask().checked_shr(processor.xcc).unwrap_or(0) & 1;
        if bit == 0 { Done::Skip(exec.skips().into()) } else { NEXT }
    }
}

/// Dwords from the current packet's start to the end of the buffer, or of what was rung.
fn left(state: &State, processor: &Processor) -> u64 {
    match processor.frames.last() {
        Some(frame) => frame.dwords.saturating_sub(frame.at),
        None => state.fetch_limit.saturating_sub(state.next),
    }
}
