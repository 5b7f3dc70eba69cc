//! One instruction with modifiers: its sources with DPP and SDWA applied, and how results are
//! written. The wave size is a value here, not a type: this code exists once.

use super::dpp::{self, From};
use super::fp::{ByMode, mode};
use super::lane::soft::{self, Format};
use super::types::Kind;
use crate::exec::{Code, Env, Wave};
use crate::isa::ir::{Inst, Mods, Sdwa, Src, SrcKind, flag, sgpr};

/// A value for each lane; a wave32 uses the first half.
pub type PerLane<T> = [T; 64];

/// Where a source's lanes are.
#[derive(Clone, Copy, Debug)]
pub enum Source {
    /// In a vector register.
    Row(usize),
    /// The same in every lane.
    Same(u64),
}

/// An instruction and the registers of its wave.
pub struct Lanes<'a> {
    pub inst: &'a Inst,
    pub mods: Mods,
    pub fp: ByMode,
    pub sources: [Source; 3],
    /// The destination's physical register.
    pub dst: usize,
    /// Lanes of the wave: 32 or 64.
    pub count: usize,
    /// Lanes that are written: active ones, without those DPP disables.
    pub written: u64,
    /// Active lanes.
    pub exec: u64,
    /// VCC.
    pub vcc: u64,
    /// M0.
    pub m0: u32,
    /// Vector registers allocated.
    pub allocated: usize,
    /// gfx9: some 16-bit results clear the other half of their register.
    clears: bool,
    vector: &'a mut [u32],
    scalar: &'a mut [u32; 256],
    mask: &'a mut [u32],
    dpp: Option<PerLane<From>>,
}

impl<'a> Lanes<'a> {
    /// Of an instruction about to be executed.
    pub fn new<const N: usize>(
        wave: &'a mut Wave<N>,
        inst: &'a Inst,
        code: &Code,
        env: &Env,
    ) -> Self {
        let mods = if inst.flags & flag::MODS != 0 { code.mods_of(inst) } else { Mods::default() };
        let source = |src: Src| match src.kind() {
            SrcKind::V(n) => Source::Row(wave.physical(n)),
            _ => Source::Same(wave.s_src64(src, code)),
        };
        let sources = inst.src.map(source);
        let exec = wave.exec();
        let mut written = exec;
        let dpp = mods.dpp.map(|dpp| {
            let from = std::array::from_fn(|lane| dpp::source(&dpp, lane, N, exec));
            for lane in 0..N {
                if from[lane] == From::Nothing {
                    written &= !(1 << lane);
                }
            }
            from
        });
        Self {
            inst,
            mods,
            fp: ByMode(wave.mode),
            sources,
            dst: wave.physical(inst.dst),
            count: N,
            written,
            exec,
            vcc: wave.vcc(),
            m0: wave.s32(sgpr::M0),
            allocated: wave.vgprs.into(),
            clears: env.target.is_gfx9(),
            vector: wave.v.as_flattened_mut(),
            scalar: &mut wave.s,
            mask: &mut wave.mask,
            dpp,
        }
    }

    /// A vector register.
    pub fn row(&self, reg: usize) -> &[u32] {
        let start = (reg & 511) * self.count;
        &self.vector[start..start + self.count]
    }

    /// A vector register, to write.
    pub fn row_mut(&mut self, reg: usize) -> &mut [u32] {
        let start = (reg & 511) * self.count;
        &mut self.vector[start..start + self.count]
    }

    /// Source `k` in a scalar role: a lane select or the like.
    pub fn scalar_source(&self, k: usize) -> u32 {
        match self.sources[k] {
            Source::Same(value) => value as u32,
            Source::Row(_) => 0,
        }
    }

    /// Source 2 as a lane mask.
    pub fn mask_source(&self) -> u64 {
        match self.sources[2] {
            Source::Same(mask) => mask,
            Source::Row(_) => 0,
        }
    }

    /// Word `word` of source `k` as it stands in the registers, after DPP and SDWA's selection.
    pub fn raw(&self, k: usize, word: usize) -> PerLane<u32> {
        let mut raw = [0; 64];
        match self.sources[k] {
            Source::Row(reg) => raw[..self.count].copy_from_slice(self.row(reg + word)),
            Source::Same(value) => raw = [(value >> (32 * word)) as u32; 64],
        }
        if k == 0
            && let Some(from) = &self.dpp
        {
            let before = raw;
            for lane in 0..self.count {
                raw[lane] = if let From::Lane(l) = from[lane] { before[l] } else { 0 };
            }
        }
        if let (0 | 1, Some(sdwa)) = (k, &self.mods.sdwa) {
            for word in &mut raw {
                *word = select(*word, sdwa.src_sel[k], sdwa.sext[k]);
            }
        }
        raw
    }

    /// Source `k` with half select, absolute value, negation and flushing: bits per lane.
    pub fn fetch(&self, k: usize, kind: &Kind) -> PerLane<u64> {
        let mut bits = self.raw(k, 0).map(u64::from);
        if kind.wide {
            let high = self.raw(k, 1);
            for lane in 0..self.count {
                bits[lane] |= u64::from(high[lane]) << 32;
            }
        }
        if kind.half {
            let shift = if self.mods.opsel >> k & 1 != 0 { 16 } else { 0 };
            bits = bits.map(|b| b >> shift & 0xffff);
        }
        if self.mods.abs >> k & 1 != 0 {
            bits = bits.map(|b| b & !kind.sign);
        }
        if self.mods.neg >> k & 1 != 0 {
            bits = bits.map(|b| b ^ kind.sign);
        }
        if let Some(format) = kind.float {
            bits = bits.map(|b| self.fp.flush_source(b, format));
        }
        bits
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

    /// Writes a result, in the lanes that are written.
    pub fn store(&mut self, kind: &Kind, values: &PerLane<u64>) {
        let dst = self.dst;
        let into_high = kind.half && self.mods.opsel & 8 != 0;
        let keeps = kind.half && !(kind.clears && self.clears);
        for lane in 0..self.count {
            if self.written >> lane & 1 == 0 {
                continue;
            }
            let mut bits = values[lane];
            if let Some(format) = kind.float {
                bits = self.finish(bits, format);
            }
            let old = self.row(dst)[lane];
            self.row_mut(dst)[lane] = match &self.mods.sdwa {
                Some(sdwa) => deposit(bits as u32, old, sdwa),
                None if into_high => old & 0xffff | (bits as u32) << 16,
                None if keeps => old & 0xffff_0000 | bits as u32 & 0xffff,
                None => bits as u32,
            };
            if kind.wide {
                self.row_mut(dst + 1)[lane] = (bits >> 32) as u32;
            }
        }
    }

    /// Writes the scalar destination: a bit per lane, zero where the lane is not written.
    pub fn set_sdst(&mut self, bits: u64) -> u64 {
        let mask = bits & self.written;
        self.set_mask(self.inst.sdst, mask);
        mask
    }

    /// Writes EXEC.
    pub fn set_exec(&mut self, exec: u64) {
        self.set_mask(sgpr::EXEC_LO, exec);
        for (lane, word) in self.mask.iter_mut().enumerate() {
            *word = 0u32.wrapping_sub((exec >> lane) as u32 & 1);
        }
    }

    fn set_mask(&mut self, reg: u8, mask: u64) {
        self.scalar[usize::from(reg)] = mask as u32;
        if self.count == 64 {
            self.scalar[usize::from(reg.wrapping_add(1))] = (mask >> 32) as u32;
        }
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
