//! Matrix multiply-accumulate of gfx11 (v_wmma): D = A * B + C, 16 by 16 by 16, whatever EXEC says.
//!
//! Lane l holds row l mod 16 of A and column l mod 16 of B (the other groups of 16 lanes must hold
//! the same), and of D column l mod 16, rows `groups * r + l / 16` in register r, where `groups` is
//! the number of groups of 16 lanes. docs/ABI.md §Matrix layouts.

use super::lane::half::{Half, bf16_from_f32, bf16_to_f32};
use super::operands::{Lanes, Source};
use crate::isa::Op;

/// Element types of A and B, and of C and D.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wmma {
    F32F16,
    F32Bf16,
    F16F16,
    Bf16Bf16,
    I32Iu8,
    I32Iu4,
}

impl Wmma {
    /// Of a v_wmma operation.
    pub const fn of(op: Op) -> Option<Self> {
        Some(match op {
            Op::VWmmaF3216x16x16F16 => Self::F32F16,
            Op::VWmmaF3216x16x16Bf16 => Self::F32Bf16,
            Op::VWmmaF1616x16x16F16 => Self::F16F16,
            Op::VWmmaBf1616x16x16Bf16 => Self::Bf16Bf16,
            Op::VWmmaI3216x16x16Iu8 => Self::I32Iu8,
            Op::VWmmaI3216x16x16Iu4 => Self::I32Iu4,
            _ => return None,
        })
    }

    const fn is_bf16(self) -> bool {
        matches!(self, Self::F32Bf16 | Self::Bf16Bf16)
    }
}

fn word(lanes: &Lanes<'_>, source: usize, reg: usize, lane: usize) -> u32 {
    match lanes.sources[source] {
        Source::Row(first) => lanes.row(first + reg)[lane],
        Source::Same(value) => value as u32,
    }
}

/// Element `k` of a row of A (source 0) or a column of B (source 1).
fn float(lanes: &Lanes<'_>, kind: Wmma, source: usize, lane: usize, k: usize) -> f32 {
    let bits = (word(lanes, source, k / 2, lane) >> (16 * (k % 2))) as u16;
    let value = if kind.is_bf16() { bf16_to_f32(bits) } else { Half(bits).to_f32() };
    let negate = [lanes.mods.neg, lanes.mods.neg_hi][k % 2];
    if negate >> source & 1 != 0 { -value } else { value }
}

/// Integer element `k`, signed where the source's negate bit is set.
fn integer(lanes: &Lanes<'_>, kind: Wmma, source: usize, lane: usize, k: usize) -> i64 {
    let bits = if kind == Wmma::I32Iu8 { 8 } else { 4 };
    let per_word = 32 / bits;
    let up = word(lanes, source, k / per_word, lane) << (32 - bits * (k % per_word + 1));
    if lanes.mods.neg >> source & 1 != 0 {
        i64::from(up as i32 >> (32 - bits))
    } else {
        i64::from(up >> (32 - bits))
    }
}

/// Executes the instruction.
pub fn wmma(lanes: &mut Lanes<'_>, kind: Wmma) {
    let groups = lanes.count / 16;
    let shift = if lanes.mods.opsel & 4 != 0 { 16 } else { 0 };
    let dst = lanes.dst;
    let mut out = vec![[0u32; 64]; 16 / groups];
    for (reg, row) in out.iter_mut().enumerate() {
        for lane in 0..lanes.count {
            let (i, j) = (groups * reg + lane / 16, lane % 16);
            let c = word(lanes, 2, reg, lane);
            let sum = |start: f32| {
                let signed = if lanes.mods.neg & 4 != 0 { -start } else { start };
                (0..16).fold(signed, |sum, k| {
                    float(lanes, kind, 0, i, k).mul_add(float(lanes, kind, 1, j, k), sum)
                })
            };
            let old = lanes.row(dst + reg)[lane];
            let into_half = |bits: u16| old & !(0xffff << shift) | u32::from(bits) << shift;
            let c_half = (c >> shift) as u16;
            row[lane] = match kind {
                Wmma::F32F16 | Wmma::F32Bf16 => sum(f32::from_bits(c)).to_bits(),
                Wmma::F16F16 => into_half(Half::from_f32(sum(Half(c_half).to_f32())).0),
                Wmma::Bf16Bf16 => into_half(bf16_from_f32(sum(bf16_to_f32(c_half)))),
                Wmma::I32Iu8 | Wmma::I32Iu4 => {
                    let products = (0..16)
                        .map(|k| integer(lanes, kind, 0, i, k) * integer(lanes, kind, 1, j, k));
                    let sum = i64::from(c as i32) + products.sum::<i64>();
                    if lanes.mods.clamp {
                        sum.clamp(i32::MIN.into(), i32::MAX.into()) as u32
                    } else {
                        sum as u32
                    }
                }
            };
        }
    }
    for (reg, row) in out.iter().enumerate() {
        let count = lanes.count;
        lanes.row_mut(dst + reg).copy_from_slice(&row[..count]);
    }
}
