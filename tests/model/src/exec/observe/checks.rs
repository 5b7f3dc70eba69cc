//! The checks that a watcher makes of the registers and accesses of an instruction.

use std::sync::atomic::Ordering;

use super::access::Access;
use super::late::TooEarly;
use super::place::Place;
use super::race::Step;
use super::report::{Finding, FindingKind};
use super::state::WaveWatch;
use super::trace;
use super::watcher::{WAVES, Watcher, wave_id};
use crate::exec::code::CodeCache;
use crate::exec::context::Context;
use crate::exec::job::lock;
use crate::exec::launch::{Cause, Diagnosis};
use crate::exec::wave::Wave;
use crate::isa::ir::Inst;
use crate::isa::{Effects, Memory};

impl Watcher<'_> {
    /// Stores to LDS define it, with what is defined.
    pub(super) fn define_lds<const N: usize>(
        &mut self,
        w: &Wave<N>,
        i: &Inst,
        wave: &WaveWatch,
        effects: &Effects,
    ) {
        if matches!(effects.memory, Memory::Store | Memory::Atomic) {
            let name = i.op.name();
            if name.contains("addtid") || name.contains("append") || name.contains("src2") {
                self.group.lds_undefined.fill(false);
            }
            let undefined = wave.undefined.data(w, effects);
            for access in self.accesses.iter().filter(|access| access.lds) {
                let end = access.at.saturating_add(access.bytes.into());
                let range = access.at as usize..end as usize;
                if let Some(bytes) = self.group.lds_undefined.get_mut(range) {
                    bytes.fill(undefined >> access.lane & 1 != 0);
                }
            }
        }
    }

    /// Reports undefined values that decide something; lanes that load LDS which was never written.
    pub(super) fn undefined<const N: usize>(
        &mut self,
        number: usize,
        w: &Wave<N>,
        cx: &mut Context<'_>,
        wave: &WaveWatch,
        effects: &Effects,
        list: &[Access],
    ) -> u64 {
        if let Some(found) = wave.undefined.decides(w, effects, list) {
            let text = match found.register {
                Some((true, r)) => format!("v{r} was never written and decides {}", found.what),
                Some((false, r)) => {
                    let name = trace::name(r as u8);
                    format!("{name} was never written and decides {}", found.what)
                }
                None => format!(
                    "the condition code comes from what was never written and decides {}",
                    found.what
                ),
            };
            self.found(FindingKind::Undefined, number, w, cx, None, text);
        }
        if effects.memory == Memory::Store {
            return 0;
        }
        let mut lanes = 0;
        for access in list.iter().filter(|access| access.lds) {
            let end = access.at.saturating_add(access.bytes.into());
            let bytes = self.group.lds_undefined.get(access.at as usize..end as usize);
            if bytes.is_some_and(|bytes| bytes.contains(&true)) {
                lanes |= 1 << access.lane;
            }
        }
        lanes
    }

    pub(super) fn lds_bounds<const N: usize>(
        &mut self,
        number: usize,
        w: &Wave<N>,
        cx: &mut Context<'_>,
        list: &[Access],
    ) {
        let limit = u64::from(self.job.lds_bytes);
        let beyond = list.iter().find(|a| a.lds && a.at.saturating_add(a.bytes.into()) > limit);
        if let Some(access) = beyond {
            let text = format!(
                "lane {} accesses {} bytes at offset {:#x} of LDS, the workgroup asked for {limit:#x}",
                access.lane, access.bytes, access.at
            );
            self.found(FindingKind::LdsOverrun, number, w, cx, None, text);
        }
    }

    pub(super) fn races<const N: usize>(
        &mut self,
        number: usize,
        w: &Wave<N>,
        cx: &mut Context<'_>,
        wave: &mut WaveWatch,
        effects: &Effects,
        list: &[Access],
    ) {
        let id = wave_id(self.group.number, number);
        let mut races = lock(&self.job.races);
        if effects.coherent || effects.memory == Memory::Fence {
            let time = self.job.time.fetch_add(1, Ordering::Relaxed);
            wave.order.synchronise(time);
            races.synchronise(id, time);
            self.group.lds_races.synchronise(id, time);
        }
        let step = Step {
            wave: id,
            time: self.job.time.load(Ordering::Relaxed),
            pc: w.pc,
            writes: matches!(effects.memory, Memory::Store | Memory::Atomic),
            synchronised: effects.coherent,
            values: [None; 4],
        };
        let mut race = None;
        for access in list {
            let mut step = step;
            if effects.memory == Memory::Store {
                step.values = stored(w, effects, access);
                if step.values.first().is_some_and(Option::is_some)
                    && is_there(cx, access, step.values)
                {
                    continue; // whoever reads it is none the wiser
                }
            }
            let map = if access.lds { &mut self.group.lds_races } else { &mut *races };
            let found = map.access(step, &mut wave.order, access.at, access.bytes);
            race = race.or(found.map(|race| (race, access.lds)));
        }
        drop(races);
        if let Some((race, lds)) = race {
            let text = format!(
                "{} {:#x} that wave {} of workgroup {} {} without order between them",
                if lds {
                    if step.writes { "writes LDS at" } else { "reads LDS at" }
                } else if step.writes {
                    "writes memory at"
                } else {
                    "reads memory at"
                },
                race.at,
                race.other_wave % WAVES,
                race.other_wave / WAVES,
                if race.other_wrote { "writes" } else { "reads" },
            );
            self.found(FindingKind::Race, number, w, cx, Some(race.other_pc), text);
        }
    }

    pub(super) fn too_early<const N: usize>(
        &mut self,
        number: usize,
        w: &Wave<N>,
        cx: &mut Context<'_>,
        early: TooEarly,
    ) {
        let register = match (early.vector, early.register) {
            (true, r) if r >= 256 => format!("a{}", r - 256),
            (true, r) => format!("v{r}"),
            (false, r) => trace::name(r as u8),
        };
        let what = if early.written { "overwritten" } else { "used" };
        let text = format!("{register} is {what} before the load into it was waited for");
        self.found(FindingKind::MissingWait, number, w, cx, Some(early.load), text);
    }

    pub(super) fn place(&self, cx: &mut Context<'_>, pc: u64) -> Place {
        let job = self.job;
        let mut loaded = lock(&job.loaded);
        Place::new(&mut cx.view, &mut loaded, (job.target, job.wave_size), job.entry, pc)
    }

    /// Keeps a finding, unless there was one of its kind at this instruction.
    pub(super) fn found<const N: usize>(
        &mut self,
        kind: FindingKind,
        number: usize,
        w: &Wave<N>,
        cx: &mut Context<'_>,
        other: Option<u64>,
        text: String,
    ) {
        let job = self.job;
        if !lock(&job.observer.totals).is_new_finding(kind, w.pc) {
            return;
        }
        let at = self.place(cx, w.pc);
        let other = other.map(|pc| self.place(cx, pc));
        let (group, wave) = (self.group.place, number as u32);
        let beside =
            other.as_ref().map(|other| format!("; the other is {other}")).unwrap_or_default();
        self.findings.push(Diagnosis {
            cause: Cause::Finding(kind),
            target: job.target,
            pc: w.pc,
            entry: job.entry,
            words: CodeCache::words_at(w.pc, &mut cx.view),
            group,
            wave,
            exec: w.exec(),
            text: format!("{}: {at}: wave {wave} of group {group:?}: {text}{beside}", job.target),
        });
        lock(&job.observer.totals).found(Finding { kind, at, other, group, wave, text });
    }
}

/// The dwords that a lane stores; nothing for parts of dwords.
fn stored<const N: usize>(w: &Wave<N>, effects: &Effects, access: &Access) -> [Option<u32>; 4] {
    let data = effects.reads().get(usize::from(effects.addresses)..).unwrap_or_default();
    let registers = data.iter().filter(|span| span.vector).flat_map(|span| span.registers());
    let registers: Vec<u16> = registers.skip(usize::from(access.word)).collect();
    std::array::from_fn(|k| {
        let register = registers.get(k).filter(|_| (k as u32) < access.bytes / 4)?;
        Some(w.v[w.physical(*register)][usize::from(access.lane)])
    })
}

/// Whether these dwords are where they are about to be stored.
fn is_there(cx: &mut Context<'_>, access: &Access, values: [Option<u32>; 4]) -> bool {
    values.into_iter().flatten().zip((0..).step_by(4)).all(|(value, offset)| {
        let at = access.at.wrapping_add(offset);
        let mut bytes = [0; 4];
        if access.lds {
            bytes = cx.lds.read(at as u32);
        } else if cx.view.read(at, &mut bytes).is_err() {
            return false;
        }
        u32::from_le_bytes(bytes) == value
    })
}
