//! The PM4 command processor: PM4 queues, and the indirect buffers of AQL's PM4-IB packets
//! (docs/ABI.md §PM4; §Model for what is carried out).
//!
//! Packets are fetched one by one when their turn comes. A packet that has to wait keeps its place
//! and is looked at again at the next turn, so nothing ever blocks another queue. Dispatches and
//! releases go on behind the processor's back, as on hardware.

mod buffer;
mod dispatch;
mod execute;
mod fetch;
mod memory;
mod register;
mod sync;

use pm4::{Header, IndirectBuffer, Target};

use super::turn::{Budget, Reason, Turn};
use super::{Halt, Progress, Queue, Runner, State};
use crate::memory::AccessError;
use fetch::left;
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
    /// Nothing was to do.
    Nop,
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
        let is_apu = matches!(version, 11_00_03 | 11_05_00..=11_05_99);
        let has_trap_handler = queue.setup.device.trap_handler().is_some();
        Some(Self {
            xcc,
            registers: Registers::new(target, has_trap_handler, aql, is_apu),
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
        let info = &self.setup.device.info;
        let missing = match &processor {
            None => Some(format!("no executor for gfx_target_version {}", info.gfx_version)),
            Some(_) if u64::from(self.setup.xcc) >= info.xccs => {
                Some(format!("the queue is for XCC {}, the GPU has {}", self.setup.xcc, info.xccs))
            }
            Some(_) => None,
        };
        if let Some(missing) = missing {
            runner.say(self, missing);
            state.halt = Halt::Dead;
        }
        let Some(mut processor) = processor.filter(|_| state.halt != Halt::Dead) else {
            return Ok(Progress::Moved);
        };
        let turn = match self.check_pointers(state, 4) {
            Ok(()) => match Budget::of(runner, state) {
                Some(mut budget) => {
                    let before = budget;
                    let turn = self.run(runner, state, &mut processor, None, &mut budget);
                    if budget != before || matches!(turn, Ok(Turn::More)) {
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
                Done::Nop => {
                    budget.nop();
                    0
                }
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
}
