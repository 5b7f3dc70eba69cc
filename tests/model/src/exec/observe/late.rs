//! Loads whose results appear at the wait for them.
//!
//! A load executes at once; its results are then taken out of the registers and a pattern put in
//! their place, until an `s_waitcnt` says that they are there. Counters follow the instruction set
//! documents and LLVM's memory legalizer: vector memory returns in order, LDS in order, scalar
//! memory and messages in any order, and FLAT counts with both.

use std::collections::VecDeque;

use crate::Target;
use crate::exec::wave::Wave;
use crate::isa::Op;
use crate::isa::ir::{Inst, sgpr};
use crate::isa::{Counter, Effects, Memory, Span};

/// What a vector register holds before its load is waited for.
const VECTOR: u32 = 0xdead_1a7e;
/// The same for a scalar register.
const SCALAR: u32 = 0xdead_1a7e;

/// Bits of [`Pending::counters`].
const VM: u8 = 1;
const LGKM: u8 = 2;
const STORES: u8 = 4;

/// A register whose value is on its way.
#[derive(Clone, Debug)]
enum Value {
    Vector { row: usize, lanes: u64, values: Box<[u32; 64]> },
    Scalar { register: u8, value: u32 },
}

/// An instruction that was not waited for.
#[derive(Clone, Debug)]
struct Pending {
    pc: u64,
    /// Counters that have not come down yet.
    counters: u8,
    /// May overtake others of its counter.
    unordered: bool,
    values: Vec<Value>,
}

/// The loads of a wave that are on their way.
#[derive(Clone, Debug, Default)]
pub(super) struct Late {
    pending: VecDeque<Pending>,
}

/// A use of a register before its value was waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooEarly {
    /// The register, as in assembly.
    pub(super) vector: bool,
    pub(super) register: u16,
    /// The load.
    pub(super) load: u64,
    /// It is overwritten rather than read.
    pub(super) written: bool,
}

/// How many of each counter a wait leaves on their way; `None`: it does not wait for that one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Wait {
    vm: Option<u32>,
    lgkm: Option<u32>,
    stores: Option<u32>,
}

/// What a wait instruction waits for.
fn wait(target: Target, i: &Inst) -> Wait {
    let imm = i.imm as u32;
    let none = Wait::default();
    match i.op {
        Op::SWaitcnt if target.is_gfx9() => {
            Wait { vm: Some(imm & 15 | (imm >> 14 & 3) << 4), lgkm: Some(imm >> 8 & 15), ..none }
        }
        Op::SWaitcnt => Wait { vm: Some(imm >> 10 & 63), lgkm: Some(imm >> 4 & 63), ..none },
        Op::SWaitcntVmcnt => Wait { vm: Some(imm & 63), ..none },
        Op::SWaitcntLgkmcnt => Wait { lgkm: Some(imm & 63), ..none },
        Op::SWaitcntVscnt => Wait { stores: Some(imm & 63), ..none },
        Op::SWaitIdle => Wait { vm: Some(0), lgkm: Some(0), stores: Some(0) },
        _ => none,
    }
}

impl Late {
    /// Forgets everything: a wave starts.
    pub(super) fn clear(&mut self) {
        self.pending.clear();
    }

    /// Whether nothing is on its way.
    fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// Lanes of a vector register that are on their way, and the load.
    fn vector(&self, row: usize) -> Option<(u64, u64)> {
        let of = |pending: &Pending| {
            pending.values.iter().find_map(|value| match value {
                Value::Vector { row: r, lanes, .. } if *r == row => Some((*lanes, pending.pc)),
                _ => None,
            })
        };
        self.pending.iter().filter_map(of).reduce(|a, b| (a.0 | b.0, a.1))
    }

    fn scalar(&self, register: u16) -> Option<u64> {
        self.pending.iter().find_map(|pending| {
            let is = |value: &Value| matches!(value, Value::Scalar { register: r, .. } if u16::from(*r) == register);
            pending.values.iter().any(is).then_some(pending.pc)
        })
    }

    /// Before an instruction: what it uses too early. Registers that a load overwrites get their
    /// values back for the while: what it does not write stays what it was.
    pub(super) fn before<const N: usize>(
        &mut self,
        w: &mut Wave<N>,
        target: Target,
        i: &Inst,
        effects: &Effects,
        lanes: u64,
    ) -> Option<TooEarly> {
        if self.is_empty() {
            return None;
        }
        self.wait(w, wait(target, i));
        let mut found = None;
        for span in effects.reads() {
            found = found
                .or_else(|| self.uses(w, *span, if effects.by_exec { lanes } else { !0 }, false));
        }
        let mask = if N == 64 { 2 } else { 1 };
        let exec = Span { vector: false, first: u16::from(sgpr::EXEC_LO), count: mask };
        let is_vector = effects.writes().iter().chain(effects.reads()).any(|span| span.vector);
        if is_vector {
            found = found.or_else(|| self.uses(w, exec, 0, false));
        }
        let late = effects.counter != Counter::None;
        for span in effects.writes() {
            if late {
                self.show(w, *span);
            } else {
                found = found.or_else(|| {
                    self.uses(w, *span, if effects.partial { lanes } else { !0 }, true)
                });
            }
        }
        found
    }

    fn uses<const N: usize>(
        &self,
        w: &Wave<N>,
        span: Span,
        lanes: u64,
        written: bool,
    ) -> Option<TooEarly> {
        span.registers().find_map(|register| {
            let load = if span.vector {
                self.vector(w.physical(register)).filter(|(late, _)| late & lanes != 0)?.1
            } else {
                self.scalar(register)?
            };
            Some(TooEarly { vector: span.vector, register, load, written })
        })
    }

    /// Puts the values of a span back.
    fn show<const N: usize>(&self, w: &mut Wave<N>, span: Span) {
        for register in span.registers() {
            let row = w.physical(register);
            for value in self.pending.iter().flat_map(|pending| &pending.values) {
                match value {
                    Value::Vector { row: r, lanes, values } if span.vector && *r == row => {
                        for lane in (0..N).filter(|lane| lanes >> lane & 1 != 0) {
                            w.v[row][lane] = values[lane];
                        }
                    }
                    Value::Scalar { register: r, value }
                        if !span.vector && u16::from(*r) == register =>
                    {
                        w.s[usize::from(*r)] = *value;
                    }
                    _ => {}
                }
            }
        }
    }

    /// After an instruction: takes the results of a load away.
    pub(super) fn after<const N: usize>(
        &mut self,
        w: &mut Wave<N>,
        target: Target,
        pc: u64,
        effects: &Effects,
        lanes: u64,
    ) {
        let returns = !effects.writes().is_empty();
        let counters = match effects.counter {
            Counter::None => return,
            Counter::Lds => LGKM,
            Counter::Scalar => LGKM,
            Counter::Vector if !returns && !target.is_gfx9() => STORES,
            Counter::Both if !returns && !target.is_gfx9() => STORES | LGKM,
            Counter::Vector => VM,
            Counter::Both => VM | LGKM,
        };
        let mut values = Vec::new();
        for span in effects.writes() {
            for register in span.registers() {
                if span.vector {
                    let row = w.physical(register);
                    let lanes = lanes | self.vector(row).map_or(0, |(late, _)| late);
                    let mut kept = Box::new([0; 64]);
                    kept[..N].copy_from_slice(&w.v[row]);
                    for lane in (0..N).filter(|lane| lanes >> lane & 1 != 0) {
                        w.v[row][lane] = VECTOR;
                    }
                    if lanes != 0 {
                        values.push(Value::Vector { row, lanes, values: kept });
                    }
                } else {
                    let register = register as u8;
                    values.push(Value::Scalar { register, value: w.s32(register) });
                    w.set_s32(register, SCALAR);
                }
            }
        }
        let unordered = effects.counter == Counter::Scalar
            || effects.counter == Counter::Both && target.is_gfx9()
            || effects.memory == Memory::None;
        self.pending.push_back(Pending { pc, counters, unordered, values });
    }

    /// Delivers what a wait waits for.
    fn wait<const N: usize>(&mut self, w: &mut Wave<N>, wait: Wait) {
        for (bit, most) in [(VM, wait.vm), (LGKM, wait.lgkm), (STORES, wait.stores)] {
            let Some(most) = most else { continue };
            let counted = self.pending.iter().filter(|pending| pending.counters & bit != 0);
            let (count, unordered) =
                counted.fold((0, false), |(n, any), pending| (n + 1, any || pending.unordered));
            // Of what may overtake, a wait for less than all says nothing.
            let done =
                if unordered && most != 0 { 0 } else { count as u32 - most.min(count as u32) };
            for pending in
                self.pending.iter_mut().filter(|p| p.counters & bit != 0).take(done as usize)
            {
                pending.counters &= !bit;
            }
        }
        let mut done = Vec::new();
        self.pending.retain_mut(|pending| {
            if pending.counters == 0 {
                done.append(&mut pending.values);
            }
            pending.counters != 0
        });
        self.deliver(w, &done);
    }

    /// Delivers everything: a trap handler is entered, whose first level waits.
    pub(super) fn deliver_all<const N: usize>(&mut self, w: &mut Wave<N>) {
        let all: Vec<Value> = self.pending.drain(..).flat_map(|pending| pending.values).collect();
        self.deliver(w, &all);
    }

    fn deliver<const N: usize>(&self, w: &mut Wave<N>, values: &[Value]) {
        for value in values {
            match value {
                Value::Vector { row, lanes, values } => {
                    let still = self.vector(*row).map_or(0, |(lanes, _)| lanes);
                    for lane in (0..N).filter(|lane| lanes & !still & 1 << lane != 0) {
                        w.v[*row][lane] = values[lane];
                    }
                }
                Value::Scalar { register, value } => {
                    if self.scalar(u16::from(*register)).is_none() {
                        w.set_s32(*register, *value);
                        if matches!(*register, sgpr::EXEC_LO | sgpr::EXEC_HI) {
                            w.rebuild_mask();
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::ir::Src;

    fn inst(op: Op, imm: i32) -> Inst {
        Inst {
            op,
            flags: 0,
            dst: 0,
            sdst: 0,
            words: 1,
            mods: 0,
            vgprs: 0,
            src: [Src::default(); 3],
            imm,
        }
    }

    #[test]
    fn waits_are_read_as_each_generation_encodes_them() {
        // s_waitcnt vmcnt(0); s_waitcnt lgkmcnt(0); s_waitcnt vmcnt(20) lgkmcnt(3)
        let of = |target, imm| wait(target, &inst(Op::SWaitcnt, imm));
        let both = |vm, lgkm| Wait { vm: Some(vm), lgkm: Some(lgkm), stores: None };
        assert_eq!(of(Target::Gfx90a, 0x0f70), both(0, 15));
        assert_eq!(of(Target::Gfx90a, 0xc07f_u16.cast_signed().into()), both(63, 0));
        assert_eq!(of(Target::Gfx1100, 0x03f7), both(0, 63));
        assert_eq!(of(Target::Gfx1100, 0xfc07_u16.cast_signed().into()), both(63, 0));
    }
}
