//! SDMA engines (docs/ABI.md §SDMA; §Model for what is carried out).
//!
//! An engine executes its queues in turns: one packet after another, large copies in parts, and a
//! poll that does not hold gives the turn up. Pointers are bytes and never wrap.

mod copy;
mod sync;

use std::sync::TryLockError;

use pm4::Encode;
use pm4::sdma::{Error, Indirect, Op, Packet, Version};
use zerocopy::IntoBytes;

use super::turn::{Budget, Reason, Turn};
use super::{Halt, Progress, Queue, Runner, State};
use crate::memory::AccessError;

/// Dwords of the longest packet without data.
const LONGEST: u64 = 13;

/// An indirect buffer that is being executed.
#[derive(Clone, Copy, Debug)]
struct Frame {
    base: u64,
    dwords: u64,
    at: u64,
}

/// An engine's place in a queue.
#[derive(Debug, Default)]
pub(super) struct Copier {
    frame: Option<Frame>,
    /// Bytes, or rows, that the current packet has moved.
    progress: u64,
    /// How often the current poll has failed.
    tries: u32,
}

/// What became of a packet.
enum Done {
    /// It is carried out, and moved this many bytes.
    Next { bytes: u64 },
    /// This many dwords after it are passed over.
    Skip(u64),
    /// Go on in this buffer.
    Enter(Indirect),
    /// It needs another turn.
    More,
    /// Its condition does not hold yet.
    Wait,
    /// The queue stops.
    Stop(Reason),
}

const NEXT: Done = Done::Next { bytes: 0 };

impl Copier {
    fn place(&self, next: u64) -> String {
        match &self.frame {
            Some(frame) => {
                format!("dword {} of the indirect buffer at {:#x}", frame.at, frame.base)
            }
            None => format!("byte {next}"),
        }
    }
}

/// What is there of a packet.
struct Room {
    /// Where it starts.
    address: u64,
    /// Dwords up to the end of the buffer, or to the write pointer.
    left: u64,
    /// Dwords up to the end of the ring.
    before_end: u64,
}

impl Room {
    fn of(state: &State) -> Self {
        if let Some(frame) = &state.copier.frame {
            let left = frame.dwords.saturating_sub(frame.at);
            let address = frame.base.wrapping_add(frame.at * 4);
            return Self { address, left, before_end: u64::MAX };
        }
        let bytes = state.tunables.ring_bytes.max(4);
        let offset = state.next % bytes;
        Self {
            address: state.tunables.ring.wrapping_add(offset),
            left: state.fetch_limit.saturating_sub(state.next) / 4,
            before_end: (bytes - offset) / 4,
        }
    }

    /// Checks that a packet of so many dwords is there as a whole.
    fn check(&self, op: Op, dwords: u64) -> Result<(), Reason> {
        if dwords > self.before_end {
            let text = format!("{op} of {dwords} dwords crosses the ring's end");
            return Err(Reason::invalid(text));
        }
        if dwords > self.left {
            let text = format!("{op} has {dwords} dwords, of which {} are there", self.left);
            return Err(Reason::invalid(text));
        }
        Ok(())
    }
}

impl Queue {
    fn sdma_version(&self) -> Option<Version> {
        let version = u32::try_from(self.setup.device.info.gfx_version).ok()?;
        pm4::Target::from_version(version).map(Version::of)
    }

    /// Looks at the next packets of an SDMA queue.
    pub(super) fn advance_sdma(
        &self,
        runner: &Runner,
        state: &mut State,
        rung: Option<u64>,
    ) -> Progress {
        let before = state.fetch_limit;
        if let Some(pointer) = rung {
            state.fetch_limit = before.max(pointer);
        }
        if state.halt == Halt::Dead {
            return Progress::Idle;
        }
        if state.copier.frame.is_none() && state.next == state.fetch_limit {
            return Progress::Idle;
        }
        let Some(version) = self.sdma_version() else {
            let gfx_version = self.setup.device.info.gfx_version;
            self.stop_engine(runner, state, &format!("no engine for version {gfx_version}"));
            return Progress::Moved;
        };
        let submitted = state.fetch_limit.saturating_sub(before) / 4;
        let least = version.min_submission_dwords() as u64;
        let short = rung.is_some() && submitted > 0 && submitted < least;
        let checked = self.check_pointers(state, 1);
        let problem = match checked {
            Err(reason) => Some(reason.text),
            Ok(()) if !state.fetch_limit.is_multiple_of(4) => {
                Some(format!("the write pointer {} is no multiple of 4", state.fetch_limit))
            }
            Ok(()) if short => {
                Some(format!("{submitted} dwords submitted: {version} needs {least} at a time"))
            }
            Ok(()) => None,
        };
        if let Some(problem) = problem {
            self.stop_engine(runner, state, &problem);
            return Progress::Moved;
        }
        // The engine has one queue at a time; whoever has it now looks here next.
        let engine = usize::try_from(self.setup.engine).unwrap_or(usize::MAX);
        let _turn = match self.setup.device.engines.get(engine).map(|engine| engine.try_lock()) {
            Some(Err(TryLockError::WouldBlock)) => return Progress::Waiting,
            Some(Ok(guard)) => Some(guard),
            Some(Err(TryLockError::Poisoned(poisoned))) => Some(poisoned.into_inner()),
            None => None,
        };
        match self.turn_sdma(runner, state, version) {
            Ok(progress) => progress,
            Err(error) => {
                runner.access_error(self, state, error);
                Progress::Moved
            }
        }
    }

    fn turn_sdma(
        &self,
        runner: &Runner,
        state: &mut State,
        version: Version,
    ) -> Result<Progress, AccessError> {
        let Some(mut budget) = Budget::of(runner, state) else { return Ok(Progress::Waiting) };
        let packets = budget.packets;
        let turn = self.run_sdma(runner, state, version, &mut budget);
        let moved = budget.packets != packets || matches!(turn, Ok(Turn::More));
        if moved {
            Self::rest(runner, state);
        }
        self.tell(runner, state)?;
        Ok(match turn? {
            Turn::Stop(reason) => {
                self.stop_engine(runner, state, &reason.text);
                Progress::Moved
            }
            _ if moved => Progress::Moved,
            Turn::Wait => Progress::Waiting,
            _ => Progress::Idle,
        })
    }

    /// KFD hears nothing of an engine that met a packet it does not know: the queue stands still.
    fn stop_engine(&self, runner: &Runner, state: &mut State, problem: &str) {
        let place = state.copier.place(state.next);
        runner.say(self, format!("{place}: SDMA engine {}: {problem}", self.setup.engine));
        state.halt = Halt::Dead;
    }

    fn run_sdma(
        &self,
        runner: &Runner,
        state: &mut State,
        version: Version,
        budget: &mut Budget,
    ) -> Result<Turn, AccessError> {
        loop {
            if state.copier.frame.is_some_and(|frame| frame.at >= frame.dwords) {
                state.copier.frame = None;
            }
            let room = Room::of(state);
            if room.left == 0 {
                return Ok(Turn::Done);
            }
            if budget.is_spent() {
                return Ok(Turn::More);
            }
            let header = self.setup.device.space.load_u32(room.address)?;
            let (dwords, done) = match Op::of(header) {
                Op::NOP => match nop(&room, header) {
                    Ok(dwords) => (dwords, NEXT),
                    Err(reason) => return Ok(Turn::Stop(reason)),
                },
                Op::WRITE_UNTILED => self.write_untiled(state, version, &room, budget)?,
                _ => self.execute_sdma(runner, state, version, &room, header, budget)?,
            };
            let passed = match done {
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
                    match Self::enter_sdma(state, buffer) {
                        Ok(()) => continue,
                        Err(reason) => return Ok(Turn::Stop(reason)),
                    }
                }
                Done::More => return Ok(Turn::More),
                Done::Wait => return Ok(Turn::Wait),
                Done::Stop(reason) => return Ok(Turn::Stop(reason)),
            };
            if passed > room.left.saturating_sub(dwords) {
                let text = format!("it makes {passed} dwords conditional, fewer follow");
                return Ok(Turn::Stop(Reason::invalid(text)));
            }
            state.copier.progress = 0;
            state.copier.tries = 0;
            match &mut state.copier.frame {
                Some(frame) => frame.at += dwords + passed,
                None => state.next += (dwords + passed) * 4,
            }
        }
    }

    /// INDIRECT has to end on a multiple of eight dwords, and does not nest.
    fn enter_sdma(state: &mut State, buffer: Indirect) -> Result<(), Reason> {
        if state.copier.frame.is_some() {
            return Err(Reason::invalid("INDIRECT inside an indirect buffer"));
        }
        let after = state.next + 4 * Indirect::DWORDS as u64;
        if !after.is_multiple_of(32) {
            let text = format!("{buffer} ends at byte {after}, no multiple of 8 dwords");
            return Err(Reason::invalid(text));
        }
        state.next = after;
        let (base, dwords) = (buffer.base().get(), buffer.buffer_dwords().into());
        state.copier.frame = Some(Frame { base, dwords, at: 0 });
        Ok(())
    }

    fn execute_sdma(
        &self,
        runner: &Runner,
        state: &mut State,
        version: Version,
        room: &Room,
        header: u32,
        budget: &Budget,
    ) -> Result<(u64, Done), AccessError> {
        let count = LONGEST.min(room.left).min(room.before_end);
        let mut words = [0; LONGEST as usize];
        let words = words.get_mut(..usize::try_from(count).unwrap_or(0)).unwrap_or_default();
        self.setup.device.space.read(room.address, words.as_mut_bytes())?;
        if let Some(word) = words.first_mut() {
            *word = header;
        }
        let packet = match Packet::decode(words, version) {
            Ok(packet) => packet,
            Err(Error::Truncated { needed, .. }) => {
                let checked = room.check(Op::of(header), needed as u64);
                let reason = checked.err().unwrap_or_else(|| Reason::invalid("cut off"));
                return Ok((0, Done::Stop(reason)));
            }
            Err(error) => return Ok((0, Done::Stop(Reason::unsupported(error)))),
        };
        let dwords = packet.dwords() as u64;
        let done = match packet {
            Packet::Nop(_) => NEXT,
            Packet::CopyLinear(copy) => self.copy_linear(runner, state, copy, budget)?,
            Packet::CopySubWindow(copy) => self.copy_sub_window(runner, state, copy, budget)?,
            Packet::ConstFill(fill) => self.const_fill(runner, state, fill, budget)?,
            Packet::Indirect(buffer) => Done::Enter(buffer),
            Packet::Fence(fence) => self.sdma_fence(runner, fence)?,
            Packet::Trap(trap) => sync::trap(runner, trap),
            Packet::PollMem(poll) => self.poll(state, poll)?,
            Packet::HdpFlush(_) | Packet::GcrReq(_) => sync::flush(),
            Packet::CondExe(exec) => {
                let (at, reference) = exec.condition();
                let value = self.setup.device.space.load_u32(at.get())?;
                if value == reference { NEXT } else { Done::Skip(exec.skips().into()) }
            }
            Packet::Atomic(atomic) => self.sdma_atomic(runner, atomic)?,
            Packet::Timestamp(stamp) => self.timestamp(stamp)?,
            other => Done::Stop(Reason::unsupported(format!("{other} is unknown here"))),
        };
        Ok((dwords, done))
    }
}

/// Dwords of a NOP: what it skips ends at the write pointer.
fn nop(room: &Room, header: u32) -> Result<u64, Reason> {
    const RESERVED: u32 = 0xc000_ff00;
    if header & RESERVED != 0 {
        let bits = header & RESERVED;
        return Err(Reason::invalid(format!("NOP {header:#010x}: bits {bits:#010x} are reserved")));
    }
    let dwords = (1 + u64::from(header >> 16)).min(room.left);
    room.check(Op::NOP, dwords).map(|()| dwords)
}
