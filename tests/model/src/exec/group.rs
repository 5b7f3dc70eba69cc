//! A resident workgroup: its waves, its LDS, its barrier.

use super::context::{Context, Trouble};
use super::control::Stop;
use super::init::Setup;
use super::lds::Lds;
use super::wave::Wave;
use super::{MemoryFault, run};

/// Instructions a wave executes before the next one of its group has a turn.
const TURN: u64 = 4096;
/// Instructions a group executes before its worker looks for other work.
pub(super) const SLICE: u64 = 65_536;

/// What a wave of a group waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Runnable,
    Asleep,
    Barrier,
    Halted,
    Ended,
}

/// A wave and its place in the group.
#[derive(Debug)]
struct Member<const N: usize> {
    wave: Wave<N>,
    state: State,
    slot: Option<u32>,
}

/// Why a group left its worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Left {
    /// All waves ended.
    Done,
    /// There is more to run.
    Runnable,
    /// All waves that could run sleep.
    Asleep,
    /// No wave can ever run again.
    Stuck,
    /// A wave touched memory it must not.
    Fault(MemoryFault),
}

/// A wave that halted, for the model's report.
#[derive(Clone, Copy, Debug)]
pub(super) struct Halted {
    pub(super) trouble: Option<Trouble>,
    pub(super) pc: u64,
    pub(super) wave: u32,
    pub(super) exec: u64,
}

/// A resident workgroup of waves of `N` lanes.
#[derive(Debug)]
pub(super) struct Group<const N: usize> {
    members: Vec<Member<N>>,
    /// Waves in use; the vector may hold more from an earlier workgroup.
    count: usize,
    lds: Lds,
    /// Its place in the grid.
    pub(super) place: [u32; 3],
    /// The XCC it runs on.
    pub(super) xcc: u32,
    /// Instructions executed.
    pub(super) instructions: u64,
}

impl<const N: usize> Group<N> {
    pub(super) fn new() -> Self {
        Self {
            members: Vec::new(),
            count: 0,
            lds: Lds::default(),
            place: [0; 3],
            xcc: 0,
            instructions: 0,
        }
    }

    /// Makes this the workgroup `number` of a launch. `slots` yields scratch slots.
    pub(super) fn start(
        &mut self,
        setup: &Setup,
        number: u64,
        mut slots: impl Iterator<Item = u32>,
    ) {
        self.place = setup.place(number);
        self.xcc = setup.xcc(number);
        let size = setup.size(self.place);
        let items = size.iter().product::<u32>();
        let waves = items.div_ceil(N as u32);
        self.count = waves as usize;
        self.instructions = 0;
        self.lds.reset(setup.lds_bytes);
        while self.members.len() < self.count {
            self.members.push(Member { wave: Wave::new(), state: State::Ended, slot: None });
        }
        for (number, member) in self.members.iter_mut().enumerate().take(self.count) {
            member.slot = if setup.scratch { slots.next() } else { None };
            member.state = State::Runnable;
            setup.start(
                &mut member.wave,
                self.place,
                size,
                number as u32,
                waves,
                self.xcc,
                member.slot,
            );
        }
    }

    /// The scratch slots of the group.
    pub(super) fn slots(&self) -> impl Iterator<Item = u32> {
        self.members.iter().take(self.count).filter_map(|member| member.slot)
    }

    /// Runs the waves in turn until the slice is used up or none can go on.
    #[inline(always)]
    pub(super) fn run<const FAST: bool>(
        &mut self,
        cx: &mut Context<'_>,
        halted: &mut Vec<Halted>,
    ) -> Left {
        std::mem::swap(&mut self.lds, &mut cx.lds);
        let left = self.run_turns::<FAST>(cx, halted);
        std::mem::swap(&mut self.lds, &mut cx.lds);
        left
    }

    #[inline(always)]
    fn run_turns<const FAST: bool>(
        &mut self,
        cx: &mut Context<'_>,
        halted: &mut Vec<Halted>,
    ) -> Left {
        let mut left = SLICE;
        let members = self.members.get_mut(..self.count).unwrap_or_default();
        for member in members.iter_mut().filter(|member| member.state == State::Asleep) {
            member.state = State::Runnable;
        }
        loop {
            let mut ran = false;
            for (number, member) in members.iter_mut().enumerate() {
                if member.state != State::Runnable {
                    continue;
                }
                ran = true;
                let before = member.wave.clock;
                let stop = run::run::<N, FAST>(&mut member.wave, cx, TURN);
                let executed = member.wave.clock - before;
                self.instructions += executed;
                left = left.saturating_sub(executed);
                member.state = match stop {
                    Stop::Quantum | Stop::Interrupt => State::Runnable,
                    Stop::Barrier => State::Barrier,
                    Stop::Sleep => State::Asleep,
                    Stop::End => State::Ended,
                    Stop::Halted(trouble) => {
                        let w = &member.wave;
                        halted.push(Halted {
                            trouble,
                            pc: w.pc,
                            wave: number as u32,
                            exec: w.exec(),
                        });
                        State::Halted
                    }
                    Stop::Fault(fault) => return Left::Fault(fault),
                };
                if stop == Stop::Interrupt {
                    return Left::Runnable;
                }
            }
            if ran && left != 0 && members.iter().any(|member| member.state == State::Runnable) {
                continue;
            }
            let any = |state| members.iter().any(|member| member.state == state);
            if any(State::Runnable) {
                return Left::Runnable;
            }
            if any(State::Asleep) {
                return Left::Asleep;
            }
            if any(State::Halted) {
                return Left::Stuck;
            }
            if !any(State::Barrier) {
                return Left::Done;
            }
            for member in members.iter_mut().filter(|member| member.state == State::Barrier) {
                member.state = State::Runnable;
            }
            if left == 0 {
                return Left::Runnable;
            }
        }
    }

    /// Where the waves are: number, program counter, EXEC.
    pub(super) fn places(&self) -> impl Iterator<Item = (u32, u64, u64)> {
        let members = self.members.iter().take(self.count).enumerate();
        members
            .filter(|(_, member)| member.state != State::Ended)
            .map(|(number, member)| (number as u32, member.wave.pc, member.wave.exec()))
    }
}
