//! VOP3P: two halves at once, dot products and mixed precision.

use super::fp::{ByMode, Fp};
use super::lane::bits::dot;
use super::lane::convert::pack;
use super::lane::half::{Half, bf16_from_f32, bf16_to_f32};
use super::lane::soft::{self, F16 as FORMAT16, F32 as FORMAT32};
use super::operands::Operands;
use super::types::{F16, F16Keep, F32, I32, Ty, U16Keep, U32, U64};
use crate::exec::{Code, Env, Wave};
use crate::isa::ir::{Inst, flag};

/// Opens an instruction's operands with the format's defaults: low results from low halves, high
/// results from high halves.
fn open<'a, const N: usize>(
    wave: &'a mut Wave<N>,
    inst: &'a Inst,
    code: &'a Code,
    env: &'a Env,
) -> Operands<'a, N> {
    let mut operands = Operands::new(wave, inst, code, env);
    if inst.flags & flag::MODS == 0 {
        operands.mods.opsel_hi = 7;
    }
    operands
}

/// Both halves of a 16-bit source, as the low and the high result take them.
fn halves<const N: usize, T: Ty>(operands: &Operands<'_, N>, k: usize) -> [[u64; 2]; N] {
    let raw = operands.raw(k, false)[0];
    let mods = &operands.mods;
    let select = [mods.opsel >> k & 1, mods.opsel_hi >> k & 1];
    let negate = [mods.neg >> k & 1, mods.neg_hi >> k & 1];
    raw.map(|word| {
        std::array::from_fn(|half| {
            let bits = u64::from(word >> (16 * select[half]) & 0xffff);
            let bits = if negate[half] != 0 { bits ^ T::SIGN } else { bits };
            match T::FLOAT {
                Some(format) => operands.fp.flush_source(bits, format),
                None => bits,
            }
        })
    })
}

/// `f` on both halves; it gets the clamp bit.
pub fn pk<const N: usize, T: Ty, const K: usize>(
    wave: &mut Wave<N>,
    inst: &Inst,
    code: &Code,
    env: &Env,
    f: impl Fn(ByMode, bool, [T::V; K]) -> T::V,
) {
    let mut operands = open(wave, inst, code, env);
    let sources: [_; K] = std::array::from_fn(|k| halves::<N, T>(&operands, k));
    let (fp, clamp) = (operands.fp, operands.mods.clamp);
    let out = std::array::from_fn(|lane| {
        let [low, high] = [0, 1].map(|half| {
            let bits = T::put(f(fp, clamp, sources.map(|source| T::get(source[lane][half]))));
            match T::FLOAT {
                Some(format) => operands.finish(bits, format),
                None => bits,
            }
        });
        low | high << 16
    });
    operands.store::<U32>(&out);
}

/// `f` on both single-precision words of register pairs.
pub fn pk_f32<const N: usize, const K: usize>(
    wave: &mut Wave<N>,
    inst: &Inst,
    code: &Code,
    env: &Env,
    f: impl Fn(ByMode, [f32; K]) -> f32,
) {
    let mut operands = open(wave, inst, code, env);
    let (fp, mods) = (operands.fp, operands.mods);
    let sources: [_; K] = std::array::from_fn(|k| operands.raw(k, true));
    let out = std::array::from_fn(|lane| {
        let [low, high] =
            [(mods.opsel, mods.neg), (mods.opsel_hi, mods.neg_hi)].map(|(select, negate)| {
                let values = std::array::from_fn(|k| {
                    let word = sources[k][usize::from(select >> k & 1)][lane];
                    let word = word ^ u32::from(negate >> k & 1) << 31;
                    f32::from_bits(fp.flush_source(u64::from(word), FORMAT32) as u32)
                });
                operands.finish(u64::from(f(fp, values).to_bits()), FORMAT32)
            });
        low | high << 32
    });
    operands.store::<U64>(&out);
}

/// v_pk_mov_b32: a word of source 0 below a word of source 1.
pub fn pk_mov<const N: usize>(wave: &mut Wave<N>, inst: &Inst, code: &Code, env: &Env) {
    let mut operands = open(wave, inst, code, env);
    let opsel = operands.mods.opsel;
    let low = operands.raw(0, true)[usize::from(opsel & 1)];
    let high = operands.raw(1, true)[usize::from(opsel >> 1 & 1)];
    let out = std::array::from_fn(|lane| u64::from(low[lane]) | u64::from(high[lane]) << 32);
    operands.store::<U64>(&out);
}

/// v_dot4 and v_dot8 (and the accumulating forms): integer products summed into source 2, clamped
/// when asked. `signed: None`: the negate bits say which source is signed.
pub fn dot_int<const N: usize, const BITS: u32>(
    wave: &mut Wave<N>,
    inst: &Inst,
    code: &Code,
    env: &Env,
    signed: Option<bool>,
) {
    let mut operands = open(wave, inst, code, env);
    let mods = operands.mods;
    let signs = signed.map_or([mods.neg & 1 != 0, mods.neg & 2 != 0], |s| [s; 2]);
    let unsigned = signed == Some(false);
    let sources = [0, 1].map(|k| {
        // Only the 16-bit form has half selects.
        if BITS == 16 {
            halves::<N, U16Keep>(&operands, k).map(|[low, high]| low as u32 | (high as u32) << 16)
        } else {
            operands.raw(k, false)[0]
        }
    });
    let addend = operands.raw(2, false)[0];
    let out = std::array::from_fn(|lane| {
        let c = if unsigned { i64::from(addend[lane]) } else { i64::from(addend[lane] as i32) };
        let sum = dot::<BITS>(sources[0][lane], sources[1][lane], c, signs);
        let sum = match (mods.clamp, unsigned) {
            (false, _) => sum,
            (true, true) => sum.clamp(0, u32::MAX.into()),
            (true, false) => sum.clamp(i32::MIN.into(), i32::MAX.into()),
        };
        u64::from(sum as u32)
    });
    operands.store::<I32>(&out);
}

/// v_dot2_f32_f16, v_dot2acc_f32_f16: the products are exact, each addition rounds.
pub fn dot2_f32_f16<const N: usize>(wave: &mut Wave<N>, inst: &Inst, code: &Code, env: &Env) {
    let mut operands = open(wave, inst, code, env);
    let (a, b) = (halves::<N, F16>(&operands, 0), halves::<N, F16>(&operands, 1));
    let c = addend::<N, F32>(&operands);
    let fp = operands.fp;
    let value = |bits: u64| Half(bits as u16).to_f32();
    let out = std::array::from_fn(|lane| {
        let (a, b) = (a[lane].map(value), b[lane].map(value));
        let sum = fp.add32(F32::get(c[lane]), a[0] * b[0]);
        F32::put(fp.add32(sum, a[1] * b[1]))
    });
    operands.store::<F32>(&out);
}

/// v_dot2_f32_bf16.
pub fn dot2_f32_bf16<const N: usize>(wave: &mut Wave<N>, inst: &Inst, code: &Code, env: &Env) {
    let mut operands = open(wave, inst, code, env);
    let (a, b) = (bf16_halves(&operands, 0), bf16_halves(&operands, 1));
    let c = addend::<N, F32>(&operands);
    let fp = operands.fp;
    let out = std::array::from_fn(|lane| {
        let (a, b) = (a[lane], b[lane]);
        let sum = fp.add32(F32::get(c[lane]), fp.mul32(a[0], b[0]));
        F32::put(fp.add32(sum, fp.mul32(a[1], b[1])))
    });
    operands.store::<F32>(&out);
}

/// v_dot2_f16_f16: half selects apply to source 2 and the destination only.
pub fn dot2_f16_f16<const N: usize>(wave: &mut Wave<N>, inst: &Inst, code: &Code, env: &Env) {
    let mut operands = Operands::new(wave, inst, code, env);
    let (a, b, c) =
        (operands.raw(0, false)[0], operands.raw(1, false)[0], operands.fetch::<F16>(2));
    let fp = operands.fp;
    let out = std::array::from_fn(|lane| {
        let (a, b) = (a[lane], b[lane]);
        let sum = fp.fma16(Half(a as u16), Half(b as u16), F16::get(c[lane]));
        F16::put(fp.fma16(Half((a >> 16) as u16), Half((b >> 16) as u16), sum))
    });
    operands.store::<F16Keep>(&out);
}

/// v_dot2_bf16_bf16.
pub fn dot2_bf16_bf16<const N: usize>(wave: &mut Wave<N>, inst: &Inst, code: &Code, env: &Env) {
    let mut operands = Operands::new(wave, inst, code, env);
    let (a, b, c) =
        (operands.raw(0, false)[0], operands.raw(1, false)[0], operands.fetch::<U16Keep>(2));
    let out = std::array::from_fn(|lane| {
        let half = |word: u32, k: u32| bf16_to_f32((word >> (16 * k)) as u16);
        let (a, b) = (a[lane], b[lane]);
        let round = |x: f32| bf16_to_f32(bf16_from_f32(x));
        let sum = round(half(a, 0).mul_add(half(b, 0), bf16_to_f32(c[lane] as u16)));
        u64::from(bf16_from_f32(half(a, 1).mul_add(half(b, 1), sum)))
    });
    operands.store::<U16Keep>(&out);
}

fn bf16_halves<const N: usize>(operands: &Operands<'_, N>, k: usize) -> [[f32; 2]; N] {
    let mods = operands.mods;
    halves::<N, U16Keep>(operands, k).map(|pair| {
        let [low, high] = pair.map(|bits| bf16_to_f32(bits as u16));
        let sign = |negate: u8, x: f32| if negate >> k & 1 != 0 { -x } else { x };
        [sign(mods.neg, low), sign(mods.neg_hi, high)]
    })
}

/// Source 2 of a dot product: a whole word, its sign by the low negate bit.
fn addend<const N: usize, T: Ty>(operands: &Operands<'_, N>) -> [u64; N] {
    operands.fetch::<T>(2)
}

/// Where a mixed-precision result goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mix {
    /// Single precision.
    Single,
    /// Half precision, low half of the destination.
    Low,
    /// Half precision, high half of the destination.
    High,
}

/// v_fma_mix*, v_mad_mix*: each source is single precision or either half of its register.
pub fn mix<const N: usize>(
    wave: &mut Wave<N>,
    inst: &Inst,
    code: &Code,
    env: &Env,
    to: Mix,
    f: impl Fn(ByMode, f32, f32, f32) -> f32,
) {
    // Unlike the rest of the format, the default is single-precision sources.
    let mut operands = Operands::new(wave, inst, code, env);
    let (fp, mods) = (operands.fp, operands.mods);
    let sources = [0, 1, 2].map(|k| {
        operands.raw(k, false)[0].map(|word| {
            let is_half = mods.opsel_hi >> k & 1 != 0;
            let value = if is_half {
                let bits = u64::from(word >> (16 * u32::from(mods.opsel >> k & 1)) & 0xffff);
                Half(fp.flush_source(bits, FORMAT16) as u16).to_f32()
            } else {
                f32::from_bits(fp.flush_source(u64::from(word), FORMAT32) as u32)
            };
            let value = if mods.neg_hi >> k & 1 != 0 { value.abs() } else { value };
            if mods.neg >> k & 1 != 0 { -value } else { value }
        })
    });
    let out: [u64; N] = std::array::from_fn(|lane| {
        F32::put(f(fp, sources[0][lane], sources[1][lane], sources[2][lane]))
    });
    match to {
        Mix::Single => operands.store::<F32>(&out),
        Mix::Low | Mix::High => {
            operands.mods.opsel = if to == Mix::High { 8 } else { 0 };
            let round = fp.round64();
            operands
                .store::<F16Keep>(&out.map(|bits| soft::convert(bits, FORMAT32, FORMAT16, round)));
        }
    }
}

/// v_pk_fmac_f16: VOP2, so both halves in place and no modifiers.
pub fn pk_fmac_f16<const N: usize>(wave: &mut Wave<N>, inst: &Inst, code: &Code, env: &Env) {
    let mut operands = Operands::new(wave, inst, code, env);
    let sources = [0, 1, 2].map(|k| operands.raw(k, false)[0]);
    let fp = operands.fp;
    let out = std::array::from_fn(|lane| {
        let [low, high] = [0, 16].map(|shift| {
            let half = |k: usize| {
                let bits = u64::from(sources[k][lane] >> shift & 0xffff);
                Half(fp.flush_source(bits, FORMAT16) as u16)
            };
            operands.finish(u64::from(fp.fma16(half(0), half(1), half(2)).0), FORMAT16) as u16
        });
        u64::from(pack(low, high))
    });
    operands.store::<U32>(&out);
}
