//! A resident workgroup: its waves, its LDS, its barrier.

use super::context::{Context, Trouble};
use super::control::Stop;
use super::init::Setup;
use super::lds::Lds;
use super::observe::{Doing, GroupWatch, Probe, Watcher, undefined};
use super::wave::Wave;
use super::{MemoryFault, run, watchdog};

/// Instructions a wave executes before the next one of its group has a turn.
pub(super) const TURN: u64 = 4096;
/// Instructions a group executes before its worker looks for other work.
pub(super) const SLICE: u64 = 65_536;

/// What a wave of a group waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
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

/// Where a wave stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Standing {
    pub(super) group: [u32; 3],
    pub(super) wave: u32,
    pub(super) pc: u64,
    pub(super) exec: u64,
    pub(super) state: State,
    pub(super) doing: Doing,
}

impl Standing {
    /// Whether it is known to get nowhere by itself.
    pub(super) fn is_settled(&self) -> bool {
        matches!(self.state, State::Barrier | State::Halted) || self.doing != Doing::Goes
    }
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
    /// What is known beside the waves, where somebody watches.
    pub(super) watch: Option<Box<GroupWatch>>,
}

/// How waves run in their turns.
trait Turns<const N: usize> {
    fn turn(&mut self, number: usize, w: &mut Wave<N>, cx: &mut Context<'_>) -> Stop;
}

/// In the ordinary loop.
struct Plain<const FAST: bool>;

impl<const N: usize, const FAST: bool> Turns<N> for Plain<FAST> {
    #[inline(always)]
    fn turn(&mut self, _: usize, w: &mut Wave<N>, cx: &mut Context<'_>) -> Stop {
        run::run::<N, FAST>(w, cx, TURN)
    }
}

impl<const N: usize> Turns<N> for Probe<'_, '_, N> {
    fn turn(&mut self, number: usize, w: &mut Wave<N>, cx: &mut Context<'_>) -> Stop {
        Probe::turn(self, number, w, cx)
    }
}

impl<const N: usize> Turns<N> for Watcher<'_> {
    fn turn(&mut self, number: usize, w: &mut Wave<N>, cx: &mut Context<'_>) -> Stop {
        Watcher::turn(self, number, w, cx)
    }
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
            watch: None,
        }
    }

    /// The waves.
    pub(super) fn waves(&self) -> impl Iterator<Item = &Wave<N>> {
        self.members.iter().take(self.count).map(|member| &member.wave)
    }

    /// Fills registers and LDS with a pattern, before what a launch sets is set again.
    pub(super) fn poison(&mut self) {
        for member in self.members.iter_mut().take(self.count) {
            undefined::poison(&mut member.wave);
        }
        self.lds.fill(undefined::LDS);
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
        let left = self.run_turns(cx, halted, &mut Plain::<FAST>);
        std::mem::swap(&mut self.lds, &mut cx.lds);
        left
    }

    /// Runs the waves as [`Group::run`] does, watched.
    pub(super) fn run_watched(
        &mut self,
        cx: &mut Context<'_>,
        halted: &mut Vec<Halted>,
        watcher: &mut Watcher<'_>,
    ) -> Left {
        watcher.exchange(self);
        std::mem::swap(&mut self.lds, &mut cx.lds);
        let left = self.run_turns(cx, halted, watcher);
        std::mem::swap(&mut self.lds, &mut cx.lds);
        watcher.exchange(self);
        left
    }

    /// Runs the waves as [`Group::run`] does, to see whether they get anywhere.
    pub(super) fn run_probed(
        &mut self,
        cx: &mut Context<'_>,
        halted: &mut Vec<Halted>,
        probe: &mut Probe<'_, '_, N>,
    ) -> Left {
        probe.exchange(self);
        std::mem::swap(&mut self.lds, &mut cx.lds);
        let left = self.run_turns(cx, halted, probe);
        std::mem::swap(&mut self.lds, &mut cx.lds);
        probe.exchange(self);
        left
    }

    /// Where the waves stand that have not ended; `doing` says what they were found doing.
    pub(super) fn standing(&self, doing: impl Fn(usize) -> Doing) -> Vec<Standing> {
        let members = self.members.iter().take(self.count).enumerate();
        members
            .filter(|(_, member)| member.state != State::Ended)
            .map(|(number, member)| Standing {
                group: self.place,
                wave: number as u32,
                pc: member.wave.pc,
                exec: member.wave.exec(),
                state: member.state,
                doing: match doing(number) {
                    Doing::Goes => watchdog::gws(member.wave.gws),
                    doing => doing,
                },
            })
            .collect()
    }

    #[inline(always)]
    fn run_turns(
        &mut self,
        cx: &mut Context<'_>,
        halted: &mut Vec<Halted>,
        turns: &mut impl Turns<N>,
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
                let stop = turns.turn(number, &mut member.wave, cx);
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
}
