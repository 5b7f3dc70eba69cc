//! What is asked around each instruction.

use std::collections::HashMap;
use std::sync::atomic::Ordering;

use super::access::{Access, accesses};
use super::fidelity::{Reach, Source};
use super::report::Reached;
use super::run::Hooks;
use super::state::{GroupWatch, WaveWatch};
use super::trace::Before;
use super::{JobWatch, run, ulp};
use crate::exec::context::{Context, Trouble};
use crate::exec::control::{Flow, Stop};
use crate::exec::group::{Group, TURN};
use crate::exec::job::lock;
use crate::exec::launch::Diagnosis;
use crate::exec::valu::exceptions;
use crate::exec::wave::{Code, Wave};
use crate::isa::ir::{Inst, flag};
use crate::isa::{Effects, Memory, Op};

/// Watches the slices of one launch on one worker.
pub(in crate::exec) struct Watcher<'a> {
    pub(super) job: &'a JobWatch,
    exceptions: bool,
    /// Executions by operation, and where the first of this slice was.
    counts: HashMap<Op, (u64, u64)>,
    /// Executions by address, for coverage.
    executions: HashMap<u64, u64>,
    pub(super) accesses: Vec<Access>,
    pub(super) group: Box<GroupWatch>,
    pub(super) findings: Vec<Diagnosis>,
}

/// What was kept of the wave before an instruction.
pub(super) struct Seen<const N: usize> {
    pc: u64,
    exec: u64,
    before: Option<Before<N>>,
    /// Lanes that load LDS which was never written.
    lds: u64,
    /// Arithmetic exceptions that it raises.
    raised: u32,
}

impl<'a> Watcher<'a> {
    /// A watcher; `exceptions`: arithmetic exceptions are recorded.
    pub(in crate::exec) fn new(job: &'a JobWatch, exceptions: bool) -> Self {
        Self {
            job,
            exceptions,
            counts: HashMap::new(),
            executions: HashMap::new(),
            accesses: Vec::new(),
            group: Box::default(),
            findings: Vec::new(),
        }
    }

    /// The workgroup that is started as the `next` one of `total`.
    pub(in crate::exec) fn number(&self, next: u64, total: u64) -> u64 {
        let Some(seed) = self.job.observer.watch.schedule else { return next };
        let random = ulp::mix(seed ^ ulp::mix(self.job.number));
        // A step that shares no factor with the total visits every number once.
        let mut step = ((random >> 32) % total.max(1)) | 1;
        while gcd(step, total) != 1 {
            step += 2;
        }
        let product = u128::from(next) * u128::from(step) + u128::from(random & 0xffff_ffff);
        (product % u128::from(total.max(1))) as u64
    }

    /// Whether registers and LDS are to be filled before a workgroup starts.
    pub(in crate::exec) fn poisons(&self) -> bool {
        self.job.observer.watch.poison
    }

    /// A workgroup was started.
    pub(in crate::exec) fn started<const N: usize>(&self, group: &mut Group<N>, number: u64) {
        let mut watch = group.watch.take().unwrap_or_default();
        watch.start(number, group.place, self.job.lds_bytes, group.waves());
        group.watch = Some(watch);
    }

    /// Puts a workgroup's state in, or takes it back out.
    pub(in crate::exec) fn exchange<const N: usize>(&mut self, group: &mut Group<N>) {
        match &mut group.watch {
            Some(watch) => std::mem::swap(watch, &mut self.group),
            none => *none = Some(std::mem::take(&mut self.group)),
        }
    }

    /// One turn of a wave.
    pub(in crate::exec) fn turn<const N: usize>(
        &mut self,
        number: usize,
        w: &mut Wave<N>,
        cx: &mut Context<'_>,
    ) -> Stop {
        let mut budget = TURN;
        let group = &mut *self.group;
        let waves = group.waves.len();
        let Some(Some(wave)) = group.waves.get_mut(number) else {
            return run::run(self, number, w, cx, budget);
        };
        if wave.at_barrier {
            wave.at_barrier = false;
            wave.barriers += 1;
            if group.barriers.len() < wave.barriers {
                // The first one past it: what all of them did before is done.
                let time = self.job.time.fetch_add(1, Ordering::Relaxed);
                group.barriers.push(time);
                let mut races = lock(&self.job.races);
                for k in 0..waves {
                    let id = wave_id(group.number, k);
                    group.lds_races.synchronise(id, time);
                    races.synchronise(id, time);
                }
            }
            wave.order.synchronise(group.barriers.last().copied().unwrap_or(0));
        }
        if let Some(seed) = self.job.observer.watch.schedule {
            wave.turns += 1;
            let of =
                group.number << 20 ^ (number as u64) << 40 ^ wave.turns ^ self.job.number << 52;
            let random = ulp::mix(seed ^ ulp::mix(of));
            if random & 1 != 0 {
                return Stop::Quantum; // its turn comes later
            }
            budget = 1 << ((random >> 8) % 13);
        }
        let stop = run::run(self, number, w, cx, budget);
        self.turned(number, stop);
        stop
    }

    /// A turn ended.
    pub(super) fn turned(&mut self, number: usize, stop: Stop) {
        if let Some(Some(wave)) = self.group.waves.get_mut(number) {
            wave.at_barrier = stop == Stop::Barrier;
        }
    }

    /// What an instruction made.
    fn made<const N: usize>(
        &mut self,
        w: &mut Wave<N>,
        cx: &mut Context<'_>,
        wave: &mut WaveWatch,
        (i, code): (&Inst, &Code),
        effects: &Effects,
        seen: &Seen<N>,
    ) {
        let job = self.job;
        let watch = &job.observer.watch;
        if let Some(seed) = watch.ulp {
            ulp::perturb(w, i, effects, seed, seen.exec);
        }
        if watch.poison {
            if effects.memory != Memory::Load {
                self.define_lds(w, i, wave, effects);
            } else if i.flags & flag::LDS != 0 {
                self.group.lds_undefined.fill(false);
            }
            wave.undefined.after(w, (i, code), effects, seen.exec, seen.lds);
        }
        if watch.report {
            let all = if N == 64 { !0 } else { (1 << N) - 1 };
            let full = seen.exec == all;
            let mut reached = Vec::new();
            wave.inexact.after(w, job.target, i.op, seen.pc, effects, full, |source, reach| {
                reached.push((source, reach));
            });
            for (source, reach) in reached {
                self.reached(cx, source, reach, seen.pc);
            }
        }
        if watch.late {
            wave.late.after(w, job.target, seen.pc, effects, seen.exec);
        }
    }

    fn reached(&mut self, cx: &mut Context<'_>, source: Source, reach: Reach, pc: u64) {
        let job = self.job;
        if lock(&job.observer.totals).is_new_reach(job.target, source.op, reach) {
            let [from, at] = [source.pc, pc].map(|pc| self.place(cx, pc));
            lock(&job.observer.totals).reached(job.target, source.op, Reached { reach, from, at });
        }
    }

    fn trace<const N: usize>(
        &self,
        number: usize,
        w: &Wave<N>,
        cx: &mut Context<'_>,
        before: &Before<N>,
        seen: &Seen<N>,
    ) {
        let (place, group) = (self.place(cx, seen.pc), self.group.place);
        let changes = before.changes(w);
        let line = format!("{group:?}/{number} {:#x} {place} ;{changes}", seen.pc);
        self.job.observer.write_trace(&line);
    }

    /// Adds what was counted to the observer's totals; what was found is for the listener.
    pub(in crate::exec) fn finish(mut self, cx: &mut Context<'_>) -> Vec<Diagnosis> {
        let job = self.job;
        for (op, (count, pc)) in std::mem::take(&mut self.counts) {
            let inexact = crate::exec::fidelity(job.target, op).class() != "exact";
            let place = inexact.then(|| self.place(cx, pc));
            lock(&job.observer.totals).count(job.target, op, count, || place);
        }
        let executions = std::mem::take(&mut self.executions);
        for (pc, count) in executions {
            let base = self.base(cx, pc);
            let Some(base) = base else { continue };
            let objects = &job.observer.objects;
            let found =
                objects.iter().position(|object| object.is_loaded_at(&mut cx.view, base, pc));
            if let Some(object) = found {
                lock(&job.observer.totals).executed(object, pc - base, count);
            }
        }
        self.findings
    }

    /// Where the object around `pc` was loaded.
    fn base(&self, cx: &mut Context<'_>, pc: u64) -> Option<u64> {
        super::symbols::Loaded::find(&mut cx.view, pc).map(|loaded| loaded.base)
    }
}

impl<const N: usize> Hooks<N> for Watcher<'_> {
    type Seen = Seen<N>;

    fn enters_handler(&mut self, number: usize, w: &mut Wave<N>) {
        if let Some(Some(wave)) = self.group.waves.get_mut(number) {
            wave.late.deliver_all(w);
        }
    }

    fn before(
        &mut self,
        number: usize,
        w: &mut Wave<N>,
        cx: &mut Context<'_>,
        code: &Code,
        index: usize,
    ) -> Seen<N> {
        let mut seen = Seen { pc: w.pc, exec: w.exec(), before: None, lds: 0, raised: 0 };
        let (Some(i), Some(effects)) = (code.insts.get(index), cx.cache.effects(index).copied())
        else {
            return seen;
        };
        let pair = cx.cache.effects(index + 1).filter(|_| i.flags & flag::VOPD_X != 0).copied();
        let Some(mut wave) = self.group.waves.get_mut(number).and_then(Option::take) else {
            return seen;
        };
        let watch = &self.job.observer.watch;
        if watch.late {
            let early = wave.late.before(w, self.job.target, i, &effects, seen.exec);
            let early = early
                .or_else(|| wave.late.before(w, self.job.target, i, pair.as_ref()?, seen.exec));
            if let Some(early) = early {
                self.too_early(number, w, cx, early);
            }
            seen.exec = w.exec();
        }
        if self.exceptions {
            seen.raised = exceptions::raised(w, i, code, cx.env);
            if let Some(y) = code.insts.get(index + 1).filter(|_| pair.is_some()) {
                seen.raised |= exceptions::raised(w, y, code, cx.env);
            }
        }
        let mut list = std::mem::take(&mut self.accesses);
        list.clear();
        if watch.poison || watch.races || watch.lds {
            accesses(w, i, &effects, cx, false, &mut list);
        }
        if watch.lds {
            self.lds_bounds(number, w, cx, &list);
        }
        if watch.poison {
            seen.lds = self.undefined(number, w, cx, &wave, &effects, &list);
            if let Some(pair) = &pair {
                self.undefined(number, w, cx, &wave, pair, &[]);
            }
        }
        if watch.races {
            self.races(number, w, cx, &mut wave, &effects, &list);
        }
        if watch.trace.is_some() {
            let all: Vec<&Effects> = std::iter::once(&effects).chain(&pair).collect();
            seen.before = Some(Before::new(w, &all));
        }
        self.accesses = list;
        self.group.waves[number] = Some(wave);
        seen
    }

    fn after(
        &mut self,
        number: usize,
        w: &mut Wave<N>,
        cx: &mut Context<'_>,
        code: &Code,
        index: usize,
        flow: &Flow,
        seen: Seen<N>,
    ) -> bool {
        let Some(i) = code.insts.get(index) else { return false };
        let watch = &self.job.observer.watch;
        let pair = code.insts.get(index + 1).filter(|_| i.flags & flag::VOPD_X != 0);
        if matches!(flow, Flow::Trouble(Trouble::Wait)) {
            return false; // executed again later
        }
        if watch.report {
            for op in std::iter::once(i.op).chain(pair.map(|y| y.op)) {
                self.counts.entry(op).or_insert((0, seen.pc)).0 += 1;
            }
        }
        if !watch.coverage.is_empty() {
            *self.executions.entry(seen.pc).or_default() += 1;
        }
        if let Some(before) = &seen.before {
            self.trace(number, w, cx, before, &seen);
        }
        if matches!(flow, Flow::Trouble(_)) {
            return false;
        }
        w.trapsts |= seen.raised;
        let Some(mut wave) = self.group.waves.get_mut(number).and_then(Option::take) else {
            return false;
        };
        for (i, at) in std::iter::once((i, index)).chain(pair.map(|y| (y, index + 1))) {
            let Some(effects) = cx.cache.effects(at).copied() else { continue };
            self.made(w, cx, &mut wave, (i, code), &effects, &seen);
        }
        if i.op == Op::STrap && matches!(flow, Flow::Jump(_)) {
            wave.late.deliver_all(w);
        }
        self.group.waves[number] = Some(wave);
        exceptions::traps(w.mode, seen.raised)
    }
}

/// Waves of a workgroup, at most.
pub(super) const WAVES: u64 = 64;

pub(super) fn wave_id(group: u64, wave: usize) -> u64 {
    group * WAVES + wave as u64
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
