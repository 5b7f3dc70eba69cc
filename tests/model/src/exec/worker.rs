//! A worker's slice: some workgroups of one launch, with the page table locked.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use super::code::CodeCache;
use super::context::{Context, Trouble};
use super::dispatch::Runners;
use super::examine::Examination;
use super::group::{Group, Halted, Left, SLICE};
use super::job::{AnyGroup, Job, Resident, Work};
use super::launch::{Cause, Diagnosis, Launch, MemoryFault, Outcome};
use super::lds::Lds;
use super::observe::Watcher;
use super::watchdog::{Sight, Watchdog};
use crate::Target;
use crate::memory::{AddressSpace, View};

/// Decoded code of one address space.
#[derive(Debug)]
struct Decoded {
    memory: Weak<AddressSpace>,
    target: Target,
    wave_size: u32,
    watched: bool,
    cache: CodeCache,
}

/// State a worker keeps between slices.
#[derive(Debug)]
pub(super) struct Worker {
    runners: Runners,
    decoded: Vec<Decoded>,
    spare32: Vec<Group<32>>,
    spare64: Vec<Group<64>>,
    /// Instructions executed by this worker.
    pub(super) executed: u64,
}

/// What a slice came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slice {
    /// Something ran.
    Ran,
    /// Everything sleeps.
    Asleep,
    /// Nothing to do.
    Nothing,
}

/// Workgroups kept for reuse.
const SPARE: usize = 4;

impl Worker {
    pub(super) fn new(runners: Runners) -> Self {
        Self { runners, decoded: Vec::new(), spare32: Vec::new(), spare64: Vec::new(), executed: 0 }
    }

    /// Index of the code cache of an address space; those of dead ones are dropped.
    fn cache(&mut self, job: &Job) -> usize {
        self.cache_for(job, job.watch().is_some())
    }

    /// As [`Worker::cache`], of code that is watched or not.
    fn cache_for(&mut self, job: &Job, watched: bool) -> usize {
        let Launch { target, wave_size, ref memory, .. } = job.launch;
        let matches = |entry: &Decoded| {
            entry.target == target
                && entry.wave_size == wave_size
                && entry.watched == watched
                && std::ptr::eq(entry.memory.as_ptr(), Arc::as_ptr(memory))
        };
        if let Some(at) = self.decoded.iter().position(matches) {
            return at;
        }
        self.decoded.retain(|entry| entry.memory.strong_count() != 0);
        let cache = match watched {
            true => CodeCache::watched(target, wave_size),
            false => CodeCache::new(target, wave_size),
        };
        let memory = Arc::downgrade(memory);
        self.decoded.push(Decoded { memory, target, wave_size, watched, cache });
        self.decoded.len() - 1
    }

    /// Runs a slice of a launch; the outcome is told to its listener when this ends it.
    pub(super) fn slice(
        &mut self,
        job: &Job,
        acquires: &AtomicU64,
        watchdog: Option<&Watchdog>,
        wake: bool,
    ) -> Slice {
        if watchdog.is_some() && job.wants_examination() {
            return self.examine(job, acquires);
        }
        let work = match job.take(wake) {
            Work::Asleep => return Slice::Asleep,
            Work::Nothing => return finish(job, job.settle()),
            work => work,
        };
        let mut report = Report::default();
        let done = self.run(job, acquires, work, &mut report);
        // The page table is unlocked here: listeners may map and unmap.
        report.deliver(job);
        finish(job, job.leave(done));
        if watchdog.is_some_and(|watchdog| watchdog.barks(job)) {
            return self.examine(job, acquires);
        }
        Slice::Ran
    }

    /// Looks where the waves of a launch are and what they do, and tells its listener.
    #[cold]
    fn examine(&mut self, job: &Job, acquires: &AtomicU64) -> Slice {
        let Some((groups, waiting)) = job.take_all() else { return Slice::Ran };
        job.examined.store(true, Ordering::Release);
        let mut report = Report::default();
        let at = self.cache_for(job, true);
        let Some(Decoded { cache, .. }) = self.decoded.get_mut(at) else { return Slice::Ran };
        let mut examination = Examination {
            job,
            sight: Sight { standing: Vec::new(), unseen: 0, waiting },
            kept: Vec::new(),
            done: 0,
            executed: 0,
            looked_at: 0,
        };
        let view = job.launch.memory.view();
        cache.refresh(acquires.load(Ordering::Acquire), job.launch.memory.generation());
        let mut cx = Context {
            env: &job.setup.env,
            view,
            lds: Lds::default(),
            cache,
            slot: 0,
            interrupts: Vec::new(),
            gws: job.launch.gws.as_deref(),
            acquires,
        };
        let mut watcher = job.watch().map(|watch| Watcher::new(watch, job.records_exceptions()));
        for Resident { group, stuck } in groups {
            match group {
                AnyGroup::Wave32(group) => {
                    examination.look(group, stuck, &mut cx, &mut report, &mut watcher);
                }
                AnyGroup::Wave64(group) => {
                    examination.look(group, stuck, &mut cx, &mut report, &mut watcher);
                }
            }
        }
        if let Some(watcher) = watcher {
            report.diagnoses.extend(watcher.finish(&mut cx));
        }
        report.diagnoses.push(examination.sight.diagnosis(job, &mut cx.view));
        report.interrupts = std::mem::take(&mut cx.interrupts);
        drop(cx);
        self.executed += examination.executed;
        job.instructions.fetch_add(examination.executed, Ordering::Relaxed);
        job.put_all(examination.kept);
        report.deliver(job);
        finish(job, job.leave(examination.done));
        Slice::Ran
    }

    /// Runs work with the page table locked; returns the number of workgroups that ended.
    fn run(&mut self, job: &Job, acquires: &AtomicU64, work: Work, report: &mut Report) -> u64 {
        let at = self.cache(job);
        let Some(Decoded { cache, .. }) = self.decoded.get_mut(at) else { return 0 };
        let mut view = job.launch.memory.view();
        cache.refresh(acquires.load(Ordering::Acquire), job.launch.memory.generation());
        if job.decide(|| cache.asks_for_exceptions(job.launch.entry, &mut view)) {
            drop(view);
            return self.run(job, acquires, work, report);
        }
        let mut cx = Context {
            env: &job.setup.env,
            view,
            lds: Lds::default(),
            cache,
            slot: 0,
            interrupts: Vec::new(),
            gws: job.launch.gws.as_deref(),
            acquires,
        };
        let mut session = Session {
            job,
            runners: self.runners,
            halted: Vec::new(),
            report,
            watcher: job.watch().map(|watch| Watcher::new(watch, job.records_exceptions())),
            done: 0,
            executed: 0,
        };
        match work {
            Work::Resume(AnyGroup::Wave32(group)) => {
                session.run(group, &mut cx, &mut self.spare32);
            }
            Work::Resume(AnyGroup::Wave64(group)) => {
                session.run(group, &mut cx, &mut self.spare64);
            }
            Work::Start(range) if job.launch.wave_size == 32 => {
                session.start(range, &mut cx, &mut self.spare32);
            }
            Work::Start(range) => session.start(range, &mut cx, &mut self.spare64),
            Work::Asleep | Work::Nothing => {}
        }
        let (done, executed) = (session.done, session.executed);
        if let Some(watcher) = session.watcher.take() {
            session.report.diagnoses.extend(watcher.finish(&mut cx));
        }
        self.executed += executed;
        job.instructions.fetch_add(executed, Ordering::Relaxed);
        report.interrupts = cx.interrupts;
        done
    }
}

/// Tells the listener the outcome, if there is one.
fn finish(job: &Job, outcome: Option<Outcome>) -> Slice {
    match outcome {
        Some(outcome) => {
            job.listener.finished(outcome);
            Slice::Ran
        }
        None => Slice::Nothing,
    }
}

/// The two wave sizes, as far as the worker treats them differently.
pub(super) trait Sized2 {
    fn runner(runners: &Runners) -> fn(&mut Self, &mut Context<'_>, &mut Vec<Halted>) -> Left;
    fn wrap(self) -> AnyGroup;
}

impl Sized2 for Group<32> {
    fn runner(runners: &Runners) -> fn(&mut Self, &mut Context<'_>, &mut Vec<Halted>) -> Left {
        runners.wave32
    }
    fn wrap(self) -> AnyGroup {
        AnyGroup::Wave32(self)
    }
}

impl Sized2 for Group<64> {
    fn runner(runners: &Runners) -> fn(&mut Self, &mut Context<'_>, &mut Vec<Halted>) -> Left {
        runners.wave64
    }
    fn wrap(self) -> AnyGroup {
        AnyGroup::Wave64(self)
    }
}

/// One slice in progress.
struct Session<'a> {
    job: &'a Job,
    runners: Runners,
    halted: Vec<Halted>,
    report: &'a mut Report,
    watcher: Option<Watcher<'a>>,
    done: u64,
    executed: u64,
}

impl Session<'_> {
    /// Starts and runs workgroups until the range or the slice is used up.
    fn start<const N: usize>(
        &mut self,
        range: std::ops::Range<u64>,
        cx: &mut Context<'_>,
        spare: &mut Vec<Group<N>>,
    ) where
        Group<N>: Sized2,
    {
        let mut next = range.start;
        while next < range.end {
            let pause =
                self.executed >= SLICE || self.job.is_stopped() || !cx.interrupts.is_empty();
            let setup = &self.job.setup;
            let number = match &self.watcher {
                Some(watcher) => watcher.number(next, setup.total()),
                None => next,
            };
            let slots = if pause { None } else { self.job.take_slots(number) };
            let Some(slots) = slots else {
                self.job.put_back(next..range.end);
                return;
            };
            let mut group = spare.pop().unwrap_or_else(Group::new);
            group.start(setup, number, slots.iter().copied());
            if let Some(watcher) = &self.watcher {
                if watcher.poisons() {
                    group.poison();
                    group.start(setup, number, slots.iter().copied());
                }
                watcher.started(&mut group, number);
            }
            next += 1;
            self.run(group, cx, spare);
        }
    }

    /// Runs a workgroup for a slice and puts it where it belongs afterwards.
    fn run<const N: usize>(
        &mut self,
        mut group: Group<N>,
        cx: &mut Context<'_>,
        spare: &mut Vec<Group<N>>,
    ) where
        Group<N>: Sized2,
    {
        let before = group.instructions;
        let left = match &mut self.watcher {
            Some(watcher) => group.run_watched(cx, &mut self.halted, watcher),
            None => Group::<N>::runner(&self.runners)(&mut group, cx, &mut self.halted),
        };
        self.executed += group.instructions - before;
        for halted in self.halted.drain(..) {
            self.report.diagnoses.extend(diagnose(self.job, group.place, halted, &mut cx.view));
        }
        match left {
            Left::Done => {
                self.done += 1;
                self.job.give_slots(group.xcc, group.slots());
                if spare.len() < SPARE {
                    spare.push(group);
                }
            }
            Left::Runnable => self.job.park(group.wrap(), false),
            Left::Asleep => self.job.park(group.wrap(), true),
            Left::Stuck => self.job.park_stuck(group.wrap()),
            Left::Fault(fault) => {
                if self.job.fault() {
                    self.report.fault = Some(fault);
                }
                self.job.park_stuck(group.wrap());
            }
        }
    }
}

/// What listeners are told after a slice.
#[derive(Debug, Default)]
pub(super) struct Report {
    interrupts: Vec<(u32, bool)>,
    pub(super) diagnoses: Vec<Diagnosis>,
    pub(super) fault: Option<MemoryFault>,
}

impl Report {
    fn deliver(&self, job: &Job) {
        for diagnosis in &self.diagnoses {
            job.listener.diagnosis(diagnosis);
        }
        for &(data, privileged) in &self.interrupts {
            job.listener.interrupt(data, privileged);
        }
        if let Some(fault) = self.fault {
            job.listener.memory_fault(fault);
        }
    }
}

/// A report about a wave that halted; nothing if another one did at the same instruction.
pub(super) fn diagnose(
    job: &Job,
    group: [u32; 3],
    halted: Halted,
    view: &mut View<'_>,
) -> Option<Diagnosis> {
    if !job.is_new_halt(halted.pc) {
        return None;
    }
    let words = CodeCache::words_at(halted.pc, view);
    let (cause, what) = match halted.trouble {
        None => (Cause::Halted, "halted".to_owned()),
        Some(Trouble::Violation(address)) => {
            (Cause::MemoryViolation { address }, format!("violated memory rules at {address:#x}"))
        }
        Some(_) => (Cause::Illegal, "met an instruction it cannot execute".to_owned()),
    };
    let offset = halted.pc.wrapping_sub(job.launch.entry) as i64;
    let text = format!(
        "{}: wave {} of group {group:?} {what} at {:#x} (entry {offset:+#x}), words {words:08x?}",
        job.launch.target, halted.wave, halted.pc,
    );
    Some(Diagnosis {
        cause,
        target: job.launch.target,
        pc: halted.pc,
        entry: job.launch.entry,
        words,
        group,
        wave: halted.wave,
        exec: halted.exec,
        text,
    })
}
