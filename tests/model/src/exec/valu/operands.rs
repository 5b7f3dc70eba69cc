//! Operands of instructions with modifiers: fetched whole, DPP and SDWA applied.

use std::mem::MaybeUninit;

use super::dpp::{self, From};
use super::fp::{ByMode, mode};
use super::lane::soft::{self, Format};
use super::types::Ty;
use crate::exec::{Code, Env, Wave};
use crate::isa::ir::{Inst, Mods, Sdwa, flag};

/// Raw registers of a source, low and high word.
pub type Raw<const N: usize> = [[u32; N]; 2];

/// The parts common to every operand of one instruction.
pub struct Operands<'a, const N: usize> {
    pub wave: &'a mut Wave<N>,
    pub inst: &'a Inst,
    pub code: &'a Code,
    pub env: &'a Env,
    pub mods: Mods,
    pub fp: ByMode,
    /// Lanes that are written: active ones, without those DPP disables.
    pub lanes: [u32; N],
    dpp: Option<[From; N]>,
}

impl<'a, const N: usize> Operands<'a, N> {
    pub fn new(wave: &'a mut Wave<N>, inst: &'a Inst, code: &'a Code, env: &'a Env) -> Self {
        let mods = if inst.flags & flag::MODS != 0 { code.mods_of(inst) } else { Mods::default() };
        let mut lanes = wave.mask;
        let dpp = mods.dpp.map(|dpp| {
            let exec = wave.exec();
            let from = std::array::from_fn(|lane| dpp::source(&dpp, lane, N, exec));
            for lane in 0..N {
                if from[lane] == From::Nothing {
                    lanes[lane] = 0;
                }
            }
            from
        });
        let fp = ByMode(wave.mode);
        Self { wave, inst, code, env, mods, fp, lanes, dpp }
    }

    /// Source `k` as it stands in the registers, after DPP and SDWA's selection.
    pub fn raw(&self, k: usize, wide: bool) -> Raw<N> {
        let src = self.inst.src[k];
        let mut low = MaybeUninit::uninit();
        let mut raw = [[0; N]; 2];
        if wide {
            let mut buffers = [low, MaybeUninit::uninit()];
            let (low, high) = self.wave.src_u64(src, self.code, &mut buffers);
            raw = [*low, *high];
        } else {
            raw[0] = *self.wave.src_u32(src, self.code, &mut low);
        }
        if k == 0
            && let Some(from) = &self.dpp
        {
            let before = raw;
            for lane in 0..N {
                for (word, old) in raw.iter_mut().zip(&before) {
                    word[lane] = if let From::Lane(l) = from[lane] { old[l] } else { 0 };
                }
            }
        }
        if let (0 | 1, Some(sdwa)) = (k, &self.mods.sdwa) {
            for word in &mut raw[0] {
                *word = select(*word, sdwa.src_sel[k], sdwa.sext[k]);
            }
        }
        raw
    }

    /// Source `k` with half select, absolute value, negation and flushing: bits per lane.
    pub fn fetch<T: Ty>(&self, k: usize) -> [u64; N] {
        let raw = self.raw(k, T::WIDE);
        let high_half = T::HALF && self.mods.opsel >> k & 1 != 0;
        let absolute = self.mods.abs >> k & 1 != 0;
        let negate = self.mods.neg >> k & 1 != 0;
        std::array::from_fn(|lane| {
            let mut bits = u64::from(raw[0][lane]) | u64::from(raw[1][lane]) << 32;
            if high_half {
                bits >>= 16;
            }
            if T::HALF {
                bits &= 0xffff;
            }
            if absolute {
                bits &= !T::SIGN;
            }
            if negate {
                bits ^= T::SIGN;
            }
            match T::FLOAT {
                Some(format) => self.fp.flush_source(bits, format),
                None => bits,
            }
        })
    }

    /// Output modifiers of a float result: scaling, flushing, clamping.
    pub fn finish(&self, bits: u64, format: Format) -> u64 {
        let flushes = self.fp.flushes_results(format);
        let mut bits = bits;
        // Scaling works only where denormal results are flushed.
        if flushes {
            let by = [0, 1, 2, -1][usize::from(self.mods.omod & 3)];
            if by != 0 {
                bits = soft::scale(bits, by, format, self.fp.round(format));
            }
            bits = soft::flush(bits, format);
        }
        if self.mods.clamp { clamp(bits, format, self.fp.0 & mode::DX10_CLAMP != 0) } else { bits }
    }

    /// Writes a result in the lanes of [`Operands::lanes`].
    pub fn store<D: Ty>(&mut self, values: &[u64; N]) {
        let dst = usize::from(self.inst.dst);
        let into_high = D::HALF && self.mods.opsel & 8 != 0;
        let clears = D::CLEARS && self.env.target.is_gfx9();
        for lane in 0..N {
            let mut bits = values[lane];
            if let Some(format) = D::FLOAT {
                bits = self.finish(bits, format);
            }
            let row = &mut self.wave.v[dst & 511];
            let old = row[lane];
            let word = match &self.mods.sdwa {
                Some(sdwa) => deposit(bits as u32, old, sdwa),
                None if into_high => old & 0xffff | (bits as u32) << 16,
                None if D::HALF && !clears => old & 0xffff_0000 | bits as u32 & 0xffff,
                None => bits as u32,
            };
            let mask = self.lanes[lane];
            row[lane] = word & mask | old & !mask;
            if D::WIDE {
                let high = &mut self.wave.v[(dst + 1) & 511][lane];
                *high = (bits >> 32) as u32 & mask | *high & !mask;
            }
        }
    }

    /// Packs one bit per lane; lanes that are not written give zero.
    pub fn pack(&self, bits: &[bool; N]) -> u64 {
        let mut mask = 0;
        for lane in 0..N {
            mask |= u64::from(bits[lane] && self.lanes[lane] != 0) << lane;
        }
        mask
    }
}

/// Takes a value into [0, 1]; a NaN becomes zero where MODE.DX10_CLAMP is set.
pub fn clamp(bits: u64, format: Format, nan_to_zero: bool) -> u64 {
    let sign = 1 << (format.mantissa + format.exponent);
    let one = ((1 << (format.exponent - 1)) - 1) << format.mantissa;
    if format.is_nan(bits) {
        if nan_to_zero { 0 } else { bits }
    } else if bits & sign != 0 {
        0
    } else {
        bits.min(one)
    }
}

/// SDWA source selection: a byte, a word or all.
fn select(word: u32, sel: u8, sext: bool) -> u32 {
    let (shift, width) = match sel {
        0..=3 => (8 * u32::from(sel), 8),
        4 | 5 => (16 * u32::from(sel - 4), 16),
        _ => return word,
    };
    let top = word >> shift << (32 - width);
    if sext { (top as i32 >> (32 - width)) as u32 } else { top >> (32 - width) }
}

/// SDWA destination: the selected byte or word, and what happens to the rest.
fn deposit(bits: u32, old: u32, sdwa: &Sdwa) -> u32 {
    let (shift, width) = match sdwa.dst_sel {
        sel @ 0..=3 => (8 * u32::from(sel), 8),
        sel @ (4 | 5) => (16 * u32::from(sel - 4), 16),
        _ => return bits,
    };
    let field = ((1 << width) - 1) << shift;
    let placed = bits << shift & field;
    match sdwa.dst_unused {
        1 => ((placed << (32 - width - shift)) as i32 >> (32 - width - shift)) as u32,
        2 => placed | old & !field,
        _ => placed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sdwa_selects_bytes_and_words() {
        assert_eq!(select(0x8182_8384, 0, false), 0x84);
        assert_eq!(select(0x8182_8384, 3, true), 0xffff_ff81);
        assert_eq!(select(0x8182_8384, 5, false), 0x8182);
        assert_eq!(select(0x8182_8384, 4, true), 0xffff_8384);
        assert_eq!(select(0x8182_8384, 6, true), 0x8182_8384);
    }

    #[test]
    fn sdwa_destinations_pad_extend_or_preserve() {
        let with = |dst_sel, dst_unused| {
            deposit(
                0x1234_56f8,
                0xaabb_ccdd,
                &Sdwa { src_sel: [6; 2], sext: [false; 2], dst_sel, dst_unused },
            )
        };
        assert_eq!(with(1, 0), 0x0000_f800);
        assert_eq!(with(1, 1), 0xffff_f800);
        assert_eq!(with(1, 2), 0xaabb_f8dd);
        assert_eq!(with(5, 2), 0x56f8_ccdd);
        assert_eq!(with(4, 1), 0x0000_56f8);
        assert_eq!(with(6, 2), 0x1234_56f8);
    }

    #[test]
    fn clamping_takes_nan_to_zero_only_as_directx_10_does() {
        let f = |x: f32| u64::from(x.to_bits());
        assert_eq!(clamp(f(1.5), soft::F32, true), f(1.0));
        assert_eq!(clamp(f(-0.0), soft::F32, true), 0);
        assert_eq!(clamp(f(f32::NEG_INFINITY), soft::F32, true), 0);
        assert_eq!(clamp(f(0.25), soft::F32, true), f(0.25));
        assert_eq!(clamp(f(f32::NAN), soft::F32, true), 0);
        assert_eq!(clamp(f(f32::NAN), soft::F32, false), f(f32::NAN));
        assert_eq!(clamp(0x4000, soft::F16, true), 0x3c00);
    }
}
