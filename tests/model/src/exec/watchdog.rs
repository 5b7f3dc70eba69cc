//! The model's own watchdog: says where the waves of a launch are that does not end.
//!
//! The device does not notice: like hardware it goes on hanging. Docs: `docs/watching.md`.

use std::fmt::Write as _;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::group::{Standing, State};
use super::gws::Waiting;
use super::job::Job;
use super::launch::{Cause, Diagnosis};
use super::observe::{Doing, Loaded, Place};
use crate::memory::View;

/// How long a launch may run before the model's user is told where its waves are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Watchdog {
    /// Wave instructions.
    pub instructions: Option<u64>,
    /// Time since it was launched.
    pub time: Option<Duration>,
}

impl Watchdog {
    /// A watchdog that waits for so many wave instructions of a launch.
    pub const fn instructions(mut self, limit: u64) -> Self {
        self.instructions = Some(limit);
        self
    }

    /// A watchdog that waits for so long after a launch.
    pub const fn time(mut self, limit: Duration) -> Self {
        self.time = Some(limit);
        self
    }

    /// Whether it never barks.
    pub(super) fn sleeps(&self) -> bool {
        *self == Self::default()
    }

    /// Marks a launch that is over a limit, or of which nothing can go on. True when that is new.
    pub(super) fn barks(&self, job: &Job) -> bool {
        let over =
            self.instructions.is_some_and(|most| job.instructions.load(Ordering::Relaxed) > most)
                || self.time.is_some_and(|most| job.started.elapsed() > most)
                || job.is_stuck();
        over && !job.is_finished() && !job.overdue.swap(true, Ordering::AcqRel)
    }
}

/// Waves that a diagnosis lists.
const LISTED: usize = 16;

/// What the watchdog saw of a launch.
pub(super) struct Sight {
    pub(super) standing: Vec<Standing>,
    /// Waves that were not looked at.
    pub(super) unseen: usize,
    /// Workgroups that were not started.
    pub(super) waiting: u64,
}

impl Sight {
    /// Deadlock: every wave waits, for another or for somebody outside. Livelock: some go round in
    /// circles, and none gets anywhere.
    fn cause(&self) -> Cause {
        let waits = |wave: &Standing| match (wave.state, wave.doing) {
            (State::Barrier | State::Halted, _) | (_, Doing::Gws) => true,
            (_, Doing::Spins { sleeps, .. }) => sleeps,
            (_, Doing::Goes) => false,
        };
        let spins = |wave: &Standing| waits(wave) || matches!(wave.doing, Doing::Spins { .. });
        if self.standing.is_empty() {
            Cause::Budget
        } else if self.standing.iter().all(waits) {
            Cause::Deadlock
        } else if self.standing.iter().all(spins) {
            Cause::Livelock
        } else {
            Cause::Budget
        }
    }

    /// The report for the model's user.
    pub(super) fn diagnosis(&self, job: &Job, view: &mut View<'_>) -> Diagnosis {
        let launch = &job.launch;
        let cause = self.cause();
        let what = match cause {
            Cause::Deadlock => "deadlock: every wave waits",
            Cause::Livelock => "livelock: waves go round in circles and nothing changes",
            _ => "its waves run on",
        };
        let mut loaded: Vec<Loaded> = Vec::new();
        let mut place =
            |pc| Place::new(view, &mut loaded, (launch.target, launch.wave_size), launch.entry, pc);
        let entry = place(launch.entry);
        let name = entry.symbol.unwrap_or_else(|| format!("kernel at {:#x}", launch.entry));
        let mut text = format!(
            "{}: {name} has not ended after {} instructions and {:.1} s; {what}; {} workgroups not \
             started",
            launch.target,
            job.instructions.load(Ordering::Relaxed),
            job.started.elapsed().as_secs_f64(),
            self.waiting,
        );
        // Those that keep the others waiting come first.
        let mut waves: Vec<&Standing> = self.standing.iter().collect();
        waves.sort_by_key(|wave| wave.state == State::Barrier);
        for wave in waves.iter().take(LISTED) {
            let _ = write!(
                text,
                "\n  group {:?} wave {} exec {:#x} {} {}",
                wave.group,
                wave.wave,
                wave.exec,
                doing(wave),
                place(wave.pc),
            );
        }
        let left_out = waves.len().saturating_sub(LISTED) + self.unseen;
        if left_out != 0 {
            let _ = write!(text, "\n  and {left_out} more waves");
        }
        let first = waves.first();
        Diagnosis {
            cause,
            target: launch.target,
            pc: first.map_or(launch.entry, |wave| wave.pc),
            entry: launch.entry,
            words: Vec::new(),
            group: first.map_or([0; 3], |wave| wave.group),
            wave: first.map_or(0, |wave| wave.wave),
            exec: first.map_or(0, |wave| wave.exec),
            text,
        }
    }
}

/// What a wave does, followed by its place.
fn doing(wave: &Standing) -> String {
    match (wave.state, wave.doing) {
        (State::Barrier, _) => "waits at the barrier before".to_owned(),
        (State::Halted, _) => "is halted at".to_owned(),
        (_, Doing::Gws) => "waits at a global wave sync resource at".to_owned(),
        (_, Doing::Spins { sleeps, polls }) => {
            let how = if sleeps { "sleeps and looks again" } else { "goes round in a circle" };
            match polls {
                Some(at) => format!("{how}, reading {at:#x}, at"),
                None => format!("{how} at"),
            }
        }
        (_, Doing::Goes) => "is at".to_owned(),
    }
}

/// Whether a wave waits at a global wave sync resource without having been looked at.
pub(super) const fn gws(waiting: Waiting) -> Doing {
    match waiting {
        Waiting::No => Doing::Goes,
        _ => Doing::Gws,
    }
}
