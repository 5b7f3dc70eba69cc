//! VOP3P: two halves at once, dot products and mixed precision.

use super::fp::{ByMode, Fp};
use super::lane::bits::dot;
use super::lane::convert::pack;
use super::lane::half::{Half, bf16_from_f32, bf16_to_f32};
use super::lane::soft::{self, F16 as FORMAT16, F32 as FORMAT32};
use super::operands::{Lanes, PerLane};
use super::types::{F16, F16Keep, F32, I32, Ty, U16Keep, U32, U64};
use crate::isa::ir::{Mods, flag};

/// The modifiers, or the format's defaults: low results from low halves, high from high halves.
fn mods(lanes: &Lanes<'_>) -> Mods {
    let mut mods = lanes.mods;
    if lanes.inst.flags & flag::MODS == 0 {
        mods.opsel_hi = 7;
    }
    mods
}

/// Both halves of a 16-bit source, as the low and the high result take them.
fn halves<T: Ty>(lanes: &Lanes<'_>, k: usize) -> PerLane<[u64; 2]> {
    let mods = mods(lanes);
    let select = [mods.opsel >> k & 1, mods.opsel_hi >> k & 1];
    let negate = [mods.neg >> k & 1, mods.neg_hi >> k & 1];
    lanes.raw(k, 0).map(|word| {
        std::array::from_fn(|half| {
            let bits = u64::from(word >> (16 * select[half]) & 0xffff);
            let bits = if negate[half] != 0 { bits ^ T::SIGN } else { bits };
            match T::FLOAT {
                Some(format) => lanes.fp.flush_source(bits, format),
                None => bits,
            }
        })
    })
}

/// `f` on both halves; it gets the clamp bit.
pub fn pk<T: Ty, const K: usize>(
    lanes: &mut Lanes<'_>,
    f: impl Fn(ByMode, bool, [T::V; K]) -> T::V,
) {
    let sources: [_; K] = std::array::from_fn(|k| halves::<T>(lanes, k));
    let (fp, clamp) = (lanes.fp, lanes.mods.clamp);
    let mut out = [0; 64];
    for lane in 0..lanes.count {
        let [low, high] = [0, 1].map(|half| {
            let values = std::array::from_fn(|k| T::get(sources[k][lane][half]));
            let bits = T::put(f(fp, clamp, values));
            match T::FLOAT {
                Some(format) => lanes.finish(bits, format),
                None => bits,
            }
        });
        out[lane] = low | high << 16;
    }
    lanes.store(&U32::KIND, &out);
}

/// `f` on both single-precision words of register pairs.
pub fn pk_f32<const K: usize>(lanes: &mut Lanes<'_>, f: impl Fn(ByMode, [f32; K]) -> f32) {
    let (fp, mods) = (lanes.fp, mods(lanes));
    let sources: [_; K] = std::array::from_fn(|k| [lanes.raw(k, 0), lanes.raw(k, 1)]);
    let mut out = [0; 64];
    for lane in 0..lanes.count {
        let [low, high] =
            [(mods.opsel, mods.neg), (mods.opsel_hi, mods.neg_hi)].map(|(select, negate)| {
                let values = std::array::from_fn(|k| {
                    let word = sources[k][usize::from(select >> k & 1)][lane];
                    let word = word ^ u32::from(negate >> k & 1) << 31;
                    f32::from_bits(fp.flush_source(u64::from(word), FORMAT32) as u32)
                });
                lanes.finish(u64::from(f(fp, values).to_bits()), FORMAT32)
            });
        out[lane] = low | high << 32;
    }
    lanes.store(&U64::KIND, &out);
}

/// v_pk_mov_b32: a word of source 0 below a word of source 1.
pub fn pk_mov(lanes: &mut Lanes<'_>) {
    let opsel = lanes.mods.opsel;
    let low = lanes.raw(0, usize::from(opsel & 1));
    let high = lanes.raw(1, usize::from(opsel >> 1 & 1));
    let out = std::array::from_fn(|lane| u64::from(low[lane]) | u64::from(high[lane]) << 32);
    lanes.store(&U64::KIND, &out);
}

/// v_dot4 and v_dot8 (and the accumulating forms): integer products summed into source 2, clamped
/// when asked. `signed: None`: the negate bits say which source is signed.
pub fn dot_int<const BITS: u32>(lanes: &mut Lanes<'_>, signed: Option<bool>) {
    let mods = lanes.mods;
    let signs = signed.map_or([mods.neg & 1 != 0, mods.neg & 2 != 0], |s| [s; 2]);
    let unsigned = signed == Some(false);
    let sources = [0, 1].map(|k| {
        // Only the 16-bit form has half selects.
        if BITS == 16 {
            halves::<U16Keep>(lanes, k).map(|[low, high]| low as u32 | (high as u32) << 16)
        } else {
            lanes.raw(k, 0)
        }
    });
    let addend = lanes.raw(2, 0);
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
    lanes.store(&I32::KIND, &out);
}

/// v_dot2_f32_f16, v_dot2acc_f32_f16: the products are exact, each addition rounds.
pub fn dot2_f32_f16(lanes: &mut Lanes<'_>) {
    let (a, b) = (halves::<F16>(lanes, 0), halves::<F16>(lanes, 1));
    let c = lanes.fetch(2, &F32::KIND);
    let fp = lanes.fp;
    let value = |bits: u64| Half(bits as u16).to_f32();
    let out = std::array::from_fn(|lane| {
        let (a, b) = (a[lane].map(value), b[lane].map(value));
        let sum = fp.add32(F32::get(c[lane]), a[0] * b[0]);
        F32::put(fp.add32(sum, a[1] * b[1]))
    });
    lanes.store(&F32::KIND, &out);
}

/// v_dot2_f32_bf16.
pub fn dot2_f32_bf16(lanes: &mut Lanes<'_>) {
    let (a, b) = (bf16_halves(lanes, 0), bf16_halves(lanes, 1));
    let c = lanes.fetch(2, &F32::KIND);
    let fp = lanes.fp;
    let out = std::array::from_fn(|lane| {
        let (a, b) = (a[lane], b[lane]);
        let sum = fp.add32(F32::get(c[lane]), fp.mul32(a[0], b[0]));
        F32::put(fp.add32(sum, fp.mul32(a[1], b[1])))
    });
    lanes.store(&F32::KIND, &out);
}

/// v_dot2_f16_f16: half selects apply to source 2 and the destination only.
pub fn dot2_f16_f16(lanes: &mut Lanes<'_>) {
    let (a, b, c) = (lanes.raw(0, 0), lanes.raw(1, 0), lanes.fetch(2, &F16::KIND));
    let fp = lanes.fp;
    let out = std::array::from_fn(|lane| {
        let (a, b) = (a[lane], b[lane]);
        let sum = fp.fma16(Half(a as u16), Half(b as u16), F16::get(c[lane]));
        F16::put(fp.fma16(Half((a >> 16) as u16), Half((b >> 16) as u16), sum))
    });
    lanes.store(&F16Keep::KIND, &out);
}

/// v_dot2_bf16_bf16.
pub fn dot2_bf16_bf16(lanes: &mut Lanes<'_>) {
    let (a, b, c) = (lanes.raw(0, 0), lanes.raw(1, 0), lanes.fetch(2, &U16Keep::KIND));
    let out = std::array::from_fn(|lane| {
        let half = |word: u32, k: u32| bf16_to_f32((word >> (16 * k)) as u16);
        let (a, b) = (a[lane], b[lane]);
        let round = |x: f32| bf16_to_f32(bf16_from_f32(x));
        let sum = round(half(a, 0).mul_add(half(b, 0), bf16_to_f32(c[lane] as u16)));
        u64::from(bf16_from_f32(half(a, 1).mul_add(half(b, 1), sum)))
    });
    lanes.store(&U16Keep::KIND, &out);
}

fn bf16_halves(lanes: &Lanes<'_>, k: usize) -> PerLane<[f32; 2]> {
    let mods = mods(lanes);
    halves::<U16Keep>(lanes, k).map(|pair| {
        let [low, high] = pair.map(|bits| bf16_to_f32(bits as u16));
        let sign = |negate: u8, x: f32| if negate >> k & 1 != 0 { -x } else { x };
        [sign(mods.neg, low), sign(mods.neg_hi, high)]
    })
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
pub fn mix(lanes: &mut Lanes<'_>, to: Mix, f: impl Fn(ByMode, f32, f32, f32) -> f32) {
    // Unlike the rest of the format, the default is single-precision sources.
    let (fp, mods) = (lanes.fp, lanes.mods);
    let sources = [0, 1, 2].map(|k| {
        lanes.raw(k, 0).map(|word| {
            let value = if mods.opsel_hi >> k & 1 != 0 {
                let bits = u64::from(word >> (16 * u32::from(mods.opsel >> k & 1)) & 0xffff);
                Half(fp.flush_source(bits, FORMAT16) as u16).to_f32()
            } else {
                f32::from_bits(fp.flush_source(u64::from(word), FORMAT32) as u32)
            };
            let value = if mods.neg_hi >> k & 1 != 0 { value.abs() } else { value };
            if mods.neg >> k & 1 != 0 { -value } else { value }
        })
    });
    let out = std::array::from_fn(|lane| {
        F32::put(f(fp, sources[0][lane], sources[1][lane], sources[2][lane]))
    });
    if to == Mix::Single {
        lanes.store(&F32::KIND, &out);
        return;
    }
    lanes.mods.opsel = if to == Mix::High { 8 } else { 0 };
    let round = fp.round64();
    lanes.store(&F16Keep::KIND, &out.map(|bits| soft::convert(bits, FORMAT32, FORMAT16, round)));
}

/// v_pk_fmac_f16: VOP2, so both halves in place.
pub fn pk_fmac_f16(lanes: &mut Lanes<'_>) {
    let sources = [0, 1, 2].map(|k| lanes.raw(k, 0));
    let fp = lanes.fp;
    let out = std::array::from_fn(|lane| {
        let [low, high] = [0, 16].map(|shift| {
            let half = |k: usize| {
                let bits = u64::from(sources[k][lane] >> shift & 0xffff);
                Half(fp.flush_source(bits, FORMAT16) as u16)
            };
            lanes.finish(u64::from(fp.fma16(half(0), half(1), half(2)).0), FORMAT16) as u16
        });
        u64::from(pack(low, high))
    });
    lanes.store(&U32::KIND, &out);
}
