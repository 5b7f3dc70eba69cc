//! Whether waves get anywhere: what the watchdog looks at.
//!
//! Each wave runs on for a while, one instruction at a time. Its whole state is kept now and then; if
//! it comes to the same state again without having changed memory, it goes round in a circle that
//! only somebody else can break.

use std::collections::HashMap;

use super::access::{Access, accesses};
use super::run::{self, Hooks};
use super::watcher::{Seen, Watcher};
use crate::exec::context::Context;
use crate::exec::control::{Flow, Stop};
use crate::exec::group::Group;
use crate::exec::gws::Waiting;
use crate::exec::wave::{Code, Wave};
use crate::isa::{Memory, Op};

/// Instructions of a turn.
const TURN: u64 = 1024;
/// Instructions after which the state is kept first; then after twice as many each time.
const FIRST: u64 = 16;

/// What a wave was found doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::exec) enum Doing {
    /// Its state changes, or it ended.
    Goes,
    /// It goes round in a circle, asleep in between or not; the address it last loaded.
    Spins { sleeps: bool, polls: Option<u64> },
    /// It waits at a global wave sync resource.
    Gws,
}

/// A wave's state, kept.
struct Kept<const N: usize> {
    pc: u64,
    scalar: [u32; 128],
    vector: Box<[[u32; N]]>,
    rest: (bool, u32, u32),
}

impl<const N: usize> Kept<N> {
    fn new(w: &Wave<N>) -> Self {
        Self {
            pc: w.pc,
            scalar: Self::scalars(w),
            vector: Self::rows(w).into(),
            rest: Self::rest(w),
        }
    }

    fn scalars(w: &Wave<N>) -> [u32; 128] {
        std::array::from_fn(|k| w.s[k])
    }

    fn rows(w: &Wave<N>) -> &[[u32; N]] {
        w.v.get(..usize::from(w.vgprs)).unwrap_or(&w.v[..])
    }

    fn rest(w: &Wave<N>) -> (bool, u32, u32) {
        (w.scc, w.mode, w.status)
    }

    fn is(&self, w: &Wave<N>) -> bool {
        self.pc == w.pc
            && self.rest == Self::rest(w)
            && self.scalar == Self::scalars(w)
            && *self.vector == *Self::rows(w)
    }
}

/// What is known of one wave.
struct Wanderer<const N: usize> {
    kept: Option<Kept<N>>,
    steps: u64,
    next: u64,
    changed_memory: bool,
    slept: bool,
    polls: Option<u64>,
    doing: Doing,
}

impl<const N: usize> Default for Wanderer<N> {
    fn default() -> Self {
        Self {
            kept: None,
            steps: 0,
            next: FIRST,
            changed_memory: false,
            slept: false,
            polls: None,
            doing: Doing::Goes,
        }
    }
}

/// Looks at the waves of a workgroup.
pub(in crate::exec) struct Probe<'p, 'a, const N: usize> {
    waves: HashMap<usize, Wanderer<N>>,
    /// The one who watches anyway.
    watcher: Option<&'p mut Watcher<'a>>,
    list: Vec<Access>,
}

impl<'p, 'a, const N: usize> Probe<'p, 'a, N> {
    pub(in crate::exec) fn new(watcher: Option<&'p mut Watcher<'a>>) -> Self {
        Self { waves: HashMap::new(), watcher, list: Vec::new() }
    }

    /// Puts what a watcher keeps of a workgroup in, or takes it out.
    pub(in crate::exec) fn exchange(&mut self, group: &mut Group<N>) {
        if let Some(watcher) = &mut self.watcher {
            watcher.exchange(group);
        }
    }

    /// One turn of a wave.
    pub(in crate::exec) fn turn(
        &mut self,
        number: usize,
        w: &mut Wave<N>,
        cx: &mut Context<'_>,
    ) -> Stop {
        let before = w.clock;
        let stop = run::run(self, number, w, cx, TURN);
        let wave = self.waves.entry(number).or_default();
        if w.gws != Waiting::No {
            wave.doing = Doing::Gws;
        } else if stop == Stop::End || matches!(stop, Stop::Barrier) && w.clock != before {
            // Past the instructions seen so far; at a barrier it may still be stuck.
            wave.kept = None;
        }
        if let Some(watcher) = &mut self.watcher {
            watcher.turned(number, stop);
        }
        stop
    }

    /// What a wave was found doing.
    pub(in crate::exec) fn doing(&self, number: usize) -> Doing {
        self.waves.get(&number).map_or(Doing::Goes, |wave| wave.doing)
    }
}

impl<const N: usize> Hooks<N> for Probe<'_, '_, N> {
    type Seen = (Option<Seen<N>>, Vec<(Access, [u8; 16])>);

    fn before(
        &mut self,
        number: usize,
        w: &mut Wave<N>,
        cx: &mut Context<'_>,
        code: &Code,
        index: usize,
    ) -> Self::Seen {
        let seen = self.watcher.as_mut().map(|watcher| watcher.before(number, w, cx, code, index));
        let wave = self.waves.entry(number).or_default();
        if !wave.changed_memory && wave.kept.as_ref().is_some_and(|kept| kept.is(w)) {
            wave.doing = Doing::Spins { sleeps: wave.slept, polls: wave.polls };
        }
        if wave.kept.is_none() || wave.steps >= wave.next {
            wave.kept = Some(Kept::new(w));
            (wave.steps, wave.next) = (0, 2 * wave.next);
            (wave.changed_memory, wave.slept) = (false, false);
        }
        wave.steps += 1;
        let (Some(i), Some(effects)) = (code.insts.get(index), cx.cache.effects(index).copied())
        else {
            return (seen, Vec::new());
        };
        wave.slept |= i.op == Op::SSleep;
        let mut list = std::mem::take(&mut self.list);
        accesses(w, i, &effects, cx, true, &mut list);
        let mut held = Vec::new();
        match effects.memory {
            Memory::Load => {
                wave.polls = list.first().filter(|access| !access.lds).map(|access| access.at)
            }
            Memory::Store | Memory::Atomic if list.is_empty() => {
                // Whatever it does is not seen: taken for a change.
                wave.changed_memory |= w.exec() != 0;
            }
            Memory::Store | Memory::Atomic => {
                held.extend(list.iter().map(|access| (*access, bytes_at(cx, access))));
            }
            _ => {}
        }
        self.list = list;
        (seen, held)
    }

    fn after(
        &mut self,
        number: usize,
        w: &mut Wave<N>,
        cx: &mut Context<'_>,
        code: &Code,
        index: usize,
        flow: &Flow,
        (seen, held): Self::Seen,
    ) -> bool {
        if let Some(wave) = self.waves.get_mut(&number)
            && held.iter().any(|(access, bytes)| bytes_at(cx, access) != *bytes)
        {
            wave.changed_memory = true;
        }
        match (&mut self.watcher, seen) {
            (Some(watcher), Some(seen)) => watcher.after(number, w, cx, code, index, flow, seen),
            _ => false,
        }
    }

    fn enters_handler(&mut self, number: usize, w: &mut Wave<N>) {
        if let Some(watcher) = &mut self.watcher {
            watcher.enters_handler(number, w);
        }
    }
}

/// What an access touches; zeros where it cannot be read.
fn bytes_at(cx: &mut Context<'_>, access: &Access) -> [u8; 16] {
    let mut bytes = [0; 16];
    if access.lds {
        for (k, byte) in bytes.iter_mut().enumerate().take(access.bytes as usize) {
            [*byte] = cx.lds.read((access.at as u32).wrapping_add(k as u32));
        }
    } else if let Some(part) = bytes.get_mut(..access.bytes as usize) {
        // A fault is the access's own affair.
        let _ = cx.view.read(access.at, part);
    }
    bytes
}
