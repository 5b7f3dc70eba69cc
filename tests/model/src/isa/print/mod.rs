//! The printer: an instruction as text, close to LLVM's.
//!
//! It prints the decoded form, so that comparing its text with LLVM's tests the decoder. Only what
//! decoding drops (cache bits, encoding suffix) is read from the words.

mod memory;
mod operand;
mod scalar;
mod vector;

use std::fmt::Write as _;

use super::decode::{Pools, Shape, decode};
use super::ir::{Inst, Mods, Src, flag};
use super::sig::{Format, Operand, Sig};
use crate::Target;

/// The text of the instruction at the start of `words`, which is at address `pc`: branch targets are
/// printed as addresses. What does not decode is printed as a word.
pub fn print(target: Target, wave_size: u32, words: &[u32], pc: u64) -> String {
    let Some(&first) = words.first() else { return String::new() };
    let mut pools = Pools::default();
    let Ok(decoded) = decode(target, wave_size, words, &mut pools) else {
        return format!(".long {first:#010x}");
    };
    let Shape { format, sig, pair } = decoded.shape;
    let words = [first, words.get(1).copied().unwrap_or(0)];
    let base = Printer {
        target,
        wave_size,
        words,
        pools: &pools,
        inst: decoded.inst,
        sig,
        mods: mods_of(&decoded.inst, &pools),
        format,
        pc,
        text: String::new(),
        operands: 0,
    };
    let mut text = base.clone().print();
    if let (Some(inst), Some(sig)) = (decoded.pair, pair) {
        text.push_str(" :: ");
        let mods = mods_of(&inst, &pools);
        text.push_str(&Printer { inst, sig, mods, format: Format::VopdY, ..base }.print());
    }
    text
}

fn mods_of(inst: &Inst, pools: &Pools) -> Mods {
    if inst.flags & flag::MODS == 0 {
        return Mods::default();
    }
    pools.mods.get(usize::from(inst.mods)).copied().unwrap_or_default()
}

#[derive(Clone)]
struct Printer<'a> {
    target: Target,
    wave_size: u32,
    words: [u32; 2],
    pools: &'a Pools,
    inst: Inst,
    sig: &'static Sig,
    mods: Mods,
    format: Format,
    pc: u64,
    text: String,
    operands: usize,
}

impl Printer<'_> {
    fn print(mut self) -> String {
        let name = self.inst.op.name_on(self.target);
        match self.format {
            Format::VopdX | Format::VopdY => {
                let plain = self.inst.op.name();
                self.text.push_str("v_dual_");
                self.text.push_str(plain.strip_prefix("v_").unwrap_or(plain));
            }
            _ => self.text.push_str(name),
        }
        match self.format {
            Format::Sop1 | Format::Sop2 | Format::Sopc | Format::Sopk | Format::Sopp => {
                self.scalar();
            }
            Format::Smem => self.smem(),
            Format::Ds => self.ds(),
            Format::Flat | Format::Scratch | Format::Global => self.flat(),
            Format::Mubuf | Format::Mtbuf => self.buffer(),
            _ => self.vector(),
        }
        self.text
    }

    /// A source and its shape.
    fn slot(&self, slot: usize) -> (Src, Operand) {
        let source = self.inst.src.get(slot).copied().unwrap_or_default();
        (source, self.sig.src.get(slot).copied().unwrap_or(Operand::NONE))
    }

    /// Appends one operand.
    fn operand(&mut self, text: &str) {
        self.text.push_str(if self.operands == 0 { " " } else { ", " });
        self.operands += 1;
        self.text.push_str(text);
    }

    /// Appends a modifier.
    fn modifier(&mut self, text: &str) {
        self.text.push(' ');
        self.text.push_str(text);
    }

    fn modifier_if(&mut self, condition: bool, text: &str) {
        if condition {
            self.modifier(text);
        }
    }

    /// Appends ` name:[b,b,b]`, one digit for each bit.
    fn bit_list(&mut self, name: &str, bits: u8, count: usize) {
        let _ = write!(self.text, " {name}:[");
        for i in 0..count {
            let comma = if i == 0 { "" } else { "," };
            let _ = write!(self.text, "{comma}{}", bits >> i & 1);
        }
        self.text.push(']');
    }
}

#[cfg(test)]
mod tests;
