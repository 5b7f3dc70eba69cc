//! Registers and LDS that were never written.
//!
//! As valgrind's memcheck does it: a value made of an undefined one is undefined, and what counts is
//! where it decides: a store to memory, an address, a branch. Followed by lane in vector registers,
//! by register in scalar ones, by byte in LDS, and not through scratch.

use super::access::Access;
use crate::exec::wave::{Code, Wave};
use crate::isa::ir::{Inst, SrcKind, sgpr};
use crate::isa::{Effects, Memory, Op, Span};

/// What scalar registers are filled with before a workgroup starts.
pub(in crate::exec) const SCALAR: u32 = 0xdead_5c1a;
/// The same for vector registers.
pub(in crate::exec) const VECTOR: u32 = 0xdead_7ec0;
/// The same for bytes of LDS.
pub(in crate::exec) const LDS: u8 = 0xad;

/// Fills a wave's registers.
pub(in crate::exec) fn poison<const N: usize>(w: &mut Wave<N>) {
    w.s.fill(SCALAR);
    for row in w.v.iter_mut().take(usize::from(w.vgprs)) {
        row.fill(VECTOR);
    }
}

/// What of a wave's registers is undefined.
#[derive(Clone, Debug)]
pub(super) struct Undefined {
    vector: Box<[u64; 512]>,
    scalar: Box<[bool; 256]>,
    scc: bool,
}

impl Default for Undefined {
    fn default() -> Self {
        Self { vector: Box::new([0; 512]), scalar: Box::new([false; 256]), scc: false }
    }
}

/// Where an undefined value decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Use {
    pub(super) register: Option<(bool, u16)>,
    pub(super) what: &'static str,
}

impl Undefined {
    /// A wave starts: what holds the pattern was not set.
    pub(super) fn start<const N: usize>(&mut self, w: &Wave<N>) {
        let all = if N == 64 { !0 } else { (1 << N) - 1 };
        for (lanes, row) in self.vector.iter_mut().zip(w.v.iter()) {
            *lanes = if row.iter().all(|&word| word == VECTOR) { all } else { 0 };
        }
        for (register, (flag, word)) in self.scalar.iter_mut().zip(w.s).enumerate() {
            *flag = word == SCALAR && register < usize::from(sgpr::VCC_LO);
        }
        self.scc = false;
    }

    /// Undefined lanes of a register, all of them for a scalar one.
    fn lanes<const N: usize>(&self, w: &Wave<N>, vector: bool, register: u16) -> u64 {
        if vector {
            self.vector[w.physical(register)]
        } else if self.scalar[usize::from(register & 255)] {
            !0
        } else {
            0
        }
    }

    fn span<const N: usize>(&self, w: &Wave<N>, span: &Span, lanes: u64) -> Option<(bool, u16)> {
        let mut registers = span.registers();
        let found = registers.find(|&r| self.lanes(w, span.vector, r) & lanes != 0)?;
        Some((span.vector, found))
    }

    /// Before an instruction: the undefined value that decides something.
    pub(super) fn decides<const N: usize>(
        &self,
        w: &Wave<N>,
        effects: &Effects,
        accesses: &[Access],
    ) -> Option<Use> {
        let exec = w.exec();
        if effects.branches {
            let read = effects.reads().iter().find_map(|span| self.span(w, span, !0));
            if read.is_some() || effects.reads_scc && self.scc {
                return Some(Use { register: read, what: "where control goes" });
            }
        }
        if matches!(effects.memory, Memory::None | Memory::Fence | Memory::Exchange) {
            return None;
        }
        let (addresses, data) = effects.reads().split_at(usize::from(effects.addresses));
        let vector_only = addresses.iter().any(|span| span.vector);
        if exec != 0 || !vector_only {
            let read = addresses.iter().find_map(|span| self.span(w, span, exec));
            if read.is_some() {
                return Some(Use { register: read, what: "which memory is accessed" });
            }
        }
        if effects.memory != Memory::Load && accesses.iter().any(|access| !access.lds) {
            let lanes = accesses.iter().fold(0, |lanes, access| lanes | 1 << access.lane);
            let read = data.iter().find_map(|span| self.span(w, span, lanes));
            return read
                .map(|register| Use { register: Some(register), what: "what memory holds" });
        }
        None
    }

    /// After an instruction: what it made.
    pub(super) fn after<const N: usize>(
        &mut self,
        w: &Wave<N>,
        (i, code): (&Inst, &Code),
        effects: &Effects,
        exec: u64,
        lds: u64,
    ) {
        let mut made = match effects.memory {
            Memory::None | Memory::Exchange => self.sources(w, (i, code), effects, exec),
            // What memory holds is defined, LDS where it was written.
            _ => lds,
        };
        if effects.memory == Memory::Exchange && made & exec != 0 {
            made = 0; // lanes read from each other: who from whom is not followed
        }
        if effects.writes_scc {
            self.scc = made != 0;
        }
        // The low half of the sum does not depend on the high half of the addend, which compilers
        // leave undefined where they use the low half only.
        let low = match (i.op, effects.reads()) {
            (Op::VMadU64U32 | Op::VMadI64I32, [.., addend])
                if addend.vector && addend.count == 2 =>
            {
                let factors = effects.reads().iter().rev().skip(1);
                let half = Span { count: 1, ..*addend };
                let spans = factors
                    .chain(std::iter::once(&half))
                    .flat_map(|span| span.registers().map(move |register| (span.vector, register)));
                Some(spans.fold(0, |lanes, (vector, r)| lanes | self.lanes(w, vector, r)))
            }
            _ => None,
        };
        for span in effects.writes() {
            for register in span.registers() {
                if !span.vector {
                    // A carry-out of the sum is as little used as its high half.
                    self.scalar[usize::from(register & 255)] = low.is_none() && made & exec != 0;
                    continue;
                }
                let made = low.filter(|_| register == span.first).unwrap_or(made);
                let row = &mut self.vector[w.physical(register)];
                *row = match i.op {
                    Op::VWritelaneB32 => *row & !lane(w, i, code),
                    _ if effects.partial => *row & !exec | made & exec,
                    _ => made,
                };
            }
        }
    }

    /// Lanes whose result is made of something undefined.
    fn sources<const N: usize>(
        &self,
        w: &Wave<N>,
        (i, code): (&Inst, &Code),
        effects: &Effects,
        exec: u64,
    ) -> u64 {
        let half = half(i, code);
        let read = |span: &Span| {
            let counts = |k: &(usize, u16)| span.count != 2 || half.is_none_or(|half| half == k.0);
            let registers = span.registers().enumerate().filter(counts);
            registers.fold(0, |lanes, (_, r)| lanes | self.lanes(w, span.vector, r))
        };
        let scc = if effects.reads_scc && self.scc { !0 } else { 0 };
        let all = |lanes: u64| if lanes == 0 { 0 } else { !0 };
        match i.op {
            Op::VReadlaneB32 => all(effects.reads().first().map_or(0, read) & lane(w, i, code)),
            Op::VReadfirstlaneB32 => {
                let first = if exec == 0 { 1 } else { exec & exec.wrapping_neg() };
                all(effects.reads().first().map_or(0, read) & first)
            }
            Op::VWritelaneB32 => 0,
            Op::VCndmaskB32 => match effects.reads() {
                [a, b, mask] => match i.src[2].kind() {
                    SrcKind::S(register) => {
                        let chosen = w.lane_mask(register);
                        read(a) & !chosen | read(b) & chosen | read(mask)
                    }
                    _ => 0,
                },
                _ => 0,
            },
            // A register combined with itself says nothing of what it held.
            Op::VXorB32 | Op::SXorB32 | Op::SXorB64 if i.src[0] == i.src[1] => 0,
            _ if !effects.by_exec => all(effects.reads().iter().fold(0, |all, s| all | read(s))),
            _ => effects.reads().iter().fold(scc, |lanes, span| lanes | read(span)),
        }
    }

    /// Lanes with undefined data among what a store moves: for LDS.
    pub(super) fn data<const N: usize>(&self, w: &Wave<N>, effects: &Effects) -> u64 {
        let data = effects.reads().get(usize::from(effects.addresses)..).unwrap_or_default();
        data.iter()
            .flat_map(|span| span.registers().map(|r| self.lanes(w, span.vector, r)))
            .fold(0, |a, b| a | b)
    }
}

/// A constant source.
fn constant(i: &Inst, k: usize, code: &Code) -> Option<u32> {
    match i.src[k].kind() {
        SrcKind::K(index) => Some(code.constant(index) as u32),
        _ => None,
    }
}

/// The lane that v_readlane and v_writelane name, as a bit.
fn lane<const N: usize>(w: &Wave<N>, i: &Inst, code: &Code) -> u64 {
    let lane = match i.src[1].kind() {
        SrcKind::S(register) => w.s32(register),
        _ => constant(i, 1, code).unwrap_or(0),
    };
    1 << (lane as usize & (N - 1))
}

/// Which half of a 64-bit source a shift or bit field by a constant uses, if only one.
fn half(i: &Inst, code: &Code) -> Option<usize> {
    let by = |k| constant(i, k, code);
    match i.op {
        Op::SBfeU64 | Op::SBfeI64 => {
            let field = by(1)?;
            let (first, bits) = (field & 63, field >> 16 & 127);
            if first + bits <= 32 { Some(0) } else { (first >= 32).then_some(1) }
        }
        Op::SLshlB64 => (by(1)? & 63 >= 32).then_some(0),
        Op::SLshrB64 | Op::SAshrI64 => (by(1)? & 63 >= 32).then_some(1),
        Op::VLshlrevB64 => (by(0)? & 63 >= 32).then_some(0),
        Op::VLshrrevB64 | Op::VAshrrevI64 => (by(0)? & 63 >= 32).then_some(1),
        _ => None,
    }
}
