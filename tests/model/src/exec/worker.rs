//! A worker's slice: some workgroups of one launch, with the page table locked.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use super::code::CodeCache;
use super::context::{Context, Trouble};
use super::dispatch::Runners;
use super::group::{Group, Halted, Left, SLICE};
use super::job::{AnyGroup, Job, Work};
use super::launch::{Cause, Diagnosis, MemoryFault, Outcome};
use super::lds::Lds;
use crate::Target;
use crate::memory::{AddressSpace, View};

/// Decoded code of one address space.
#[derive(Debug)]
struct Decoded {
    memory: Weak<AddressSpace>,
    target: Target,
    wave_size: u32,
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
    fn cache(&mut self, memory: &Arc<AddressSpace>, target: Target, wave_size: u32) -> usize {
        let matches = |entry: &Decoded| {
            entry.target == target
                && entry.wave_size == wave_size
                && std::ptr::eq(entry.memory.as_ptr(), Arc::as_ptr(memory))
        };
        if let Some(at) = self.decoded.iter().position(matches) {
            return at;
        }
        self.decoded.retain(|entry| entry.memory.strong_count() != 0);
        let cache = CodeCache::new(target, wave_size);
        self.decoded.push(Decoded { memory: Arc::downgrade(memory), target, wave_size, cache });
        self.decoded.len() - 1
    }

    /// Runs a slice of a launch; the outcome is told to its listener when this ends it.
    pub(super) fn slice(
        &mut self,
        job: &Job,
        acquires: &AtomicU64,
        budget: Option<u64>,
        wake: bool,
    ) -> Slice {
        let work = match job.take(wake) {
            Work::Asleep => return Slice::Asleep,
            Work::Nothing => return finish(job, job.settle()),
            work => work,
        };
        let mut report = Report::default();
        let done = self.run(job, acquires, work, &mut report);
        // The page table is unlocked here: listeners may map and unmap.
        report.deliver(job, budget);
        finish(job, job.leave(done));
        Slice::Ran
    }

    /// Runs work with the page table locked; returns the number of workgroups that ended.
    fn run(&mut self, job: &Job, acquires: &AtomicU64, work: Work, report: &mut Report) -> u64 {
        let at = self.cache(&job.launch.memory, job.launch.target, job.launch.wave_size);
        let Some(Decoded { cache, .. }) = self.decoded.get_mut(at) else { return 0 };
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
        let mut session = Session {
            job,
            runners: self.runners,
            halted: Vec::new(),
            report,
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
trait Sized2 {
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
            let slots = if pause { None } else { self.job.take_slots(next) };
            let Some(slots) = slots else {
                self.job.put_back(next..range.end);
                return;
            };
            let mut group = spare.pop().unwrap_or_else(Group::new);
            group.start(&self.job.setup, next, slots.into_iter());
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
        let left = Group::<N>::runner(&self.runners)(&mut group, cx, &mut self.halted);
        self.executed += group.instructions - before;
        for halted in self.halted.drain(..) {
            let diagnosis = diagnose(self.job, group.place, halted, &mut cx.view);
            self.report.diagnoses.push(diagnosis);
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
struct Report {
    interrupts: Vec<(u32, bool)>,
    diagnoses: Vec<Diagnosis>,
    fault: Option<MemoryFault>,
}

impl Report {
    fn deliver(&self, job: &Job, budget: Option<u64>) {
        for diagnosis in &self.diagnoses {
            job.listener.diagnosis(diagnosis);
        }
        if let Some(budget) = budget
            && job.instructions.load(Ordering::Relaxed) > budget
            && !job.budget_reported.swap(true, Ordering::AcqRel)
        {
            job.listener.diagnosis(&over_budget(job, budget));
        }
        for &(data, privileged) in &self.interrupts {
            job.listener.interrupt(data, privileged);
        }
        if let Some(fault) = self.fault {
            job.listener.memory_fault(fault);
        }
    }
}

/// A report about a wave that halted.
fn diagnose(job: &Job, group: [u32; 3], halted: Halted, view: &mut View<'_>) -> Diagnosis {
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
    Diagnosis {
        cause,
        target: job.launch.target,
        pc: halted.pc,
        entry: job.launch.entry,
        words,
        group,
        wave: halted.wave,
        exec: halted.exec,
        text,
    }
}

/// A report about a launch that runs longer than its user expects.
fn over_budget(job: &Job, budget: u64) -> Diagnosis {
    let places = job.parked_places();
    let text = format!(
        "{}: kernel at {:#x} has executed more than {budget} instructions; resident waves: {}",
        job.launch.target,
        job.launch.entry,
        places
            .iter()
            .take(16)
            .map(|(group, wave, pc, exec)| format!("{group:?}/{wave} at {pc:#x} exec {exec:#x}"))
            .collect::<Vec<_>>()
            .join(", "),
    );
    let (group, wave, pc, exec) =
        places.first().copied().unwrap_or(([0; 3], 0, job.launch.entry, 0));
    Diagnosis {
        cause: Cause::Budget,
        target: job.launch.target,
        pc,
        entry: job.launch.entry,
        words: Vec::new(),
        group,
        wave,
        exec,
        text,
    }
}
