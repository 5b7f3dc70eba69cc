//! Operations that read their own operands: packed, dot products, between lanes.

use crate::exec::valu::across::{self, Relative};
use crate::exec::valu::fp::Fp;
use crate::exec::valu::lane::fp8::Eight;
use crate::exec::valu::lane::half::Half;
use crate::exec::valu::lane::minmax::f16 as half_order;
use crate::exec::valu::matrix::{Shape, mfma};
use crate::exec::valu::packed::{self, Mix};
use crate::exec::valu::sparse::{Sparse, cvt_sr, smfmac};
use crate::exec::valu::table::float::mad_f32;
use crate::exec::valu::types::{F16, I16Keep, U16Keep};
use crate::exec::valu::visit::Visit;
use crate::exec::valu::wmma::{Wmma, wmma};
use crate::isa::Op;

/// Runs `op` if it is one of these.
#[inline(always)]
pub fn special<V: Visit>(op: Op, v: V) -> bool {
    use Op::*;
    match op {
        VPkAddF16 => v.whole(|lanes| packed::pk::<F16, 2>(lanes, |fp, _, [a, b]| fp.add16(a, b))),
        VPkMulF16 => v.whole(|lanes| packed::pk::<F16, 2>(lanes, |fp, _, [a, b]| fp.mul16(a, b))),
        VPkFmaF16 => {
            v.whole(|lanes| packed::pk::<F16, 3>(lanes, |fp, _, [a, b, c]| fp.fma16(a, b, c)));
        }
        VPkMinF16 => v.whole(|lanes| {
            packed::pk::<F16, 2>(lanes, |fp, _, [a, b]: [Half; 2]| {
                half_order::min(a, b, fp.ieee())
            });
        }),
        VPkMaxF16 => v.whole(|lanes| {
            packed::pk::<F16, 2>(lanes, |fp, _, [a, b]: [Half; 2]| {
                half_order::max(a, b, fp.ieee())
            });
        }),
        VPkFmacF16 => v.whole(packed::pk_fmac_f16),
        VPkAddU16 => {
            unsigned2(v, |clamp, a, b| if clamp { a.saturating_add(b) } else { a.wrapping_add(b) })
        }
        VPkSubU16 => {
            unsigned2(v, |clamp, a, b| if clamp { a.saturating_sub(b) } else { a.wrapping_sub(b) })
        }
        VPkMulLoU16 => unsigned2(v, |_, a, b| a.wrapping_mul(b)),
        VPkMinU16 => unsigned2(v, |_, a, b| a.min(b)),
        VPkMaxU16 => unsigned2(v, |_, a, b| a.max(b)),
        VPkLshlrevB16 => unsigned2(v, |_, a, b| b << (a & 15)),
        VPkLshrrevB16 => unsigned2(v, |_, a, b| b >> (a & 15)),
        VPkAddI16 => {
            signed2(v, |clamp, a, b| if clamp { a.saturating_add(b) } else { a.wrapping_add(b) })
        }
        VPkSubI16 => {
            signed2(v, |clamp, a, b| if clamp { a.saturating_sub(b) } else { a.wrapping_sub(b) })
        }
        VPkMinI16 => signed2(v, |_, a, b| a.min(b)),
        VPkMaxI16 => signed2(v, |_, a, b| a.max(b)),
        VPkAshrrevI16 => signed2(v, |_, a, b| b >> (a & 15)),
        VPkMadU16 => v.whole(|lanes| {
            packed::pk::<U16Keep, 3>(lanes, |_, clamp, [a, b, c]| {
                let exact = u32::from(a) * u32::from(b) + u32::from(c);
                if clamp { exact.min(u16::MAX.into()) as u16 } else { exact as u16 }
            });
        }),
        VPkMadI16 => v.whole(|lanes| {
            packed::pk::<I16Keep, 3>(lanes, |_, clamp, [a, b, c]| {
                let exact = i32::from(a) * i32::from(b) + i32::from(c);
                if clamp {
                    exact.clamp(i16::MIN.into(), i16::MAX.into()) as i16
                } else {
                    exact as i16
                }
            });
        }),
        VPkAddF32 => v.whole(|lanes| packed::pk_f32(lanes, |fp, [a, b]| fp.add32(a, b))),
        VPkMulF32 => v.whole(|lanes| packed::pk_f32(lanes, |fp, [a, b]| fp.mul32(a, b))),
        VPkFmaF32 => v.whole(|lanes| packed::pk_f32(lanes, |fp, [a, b, c]| fp.fma32(a, b, c))),
        VPkMovB32 => v.whole(packed::pk_mov),

        VFmaMixF32 => v.whole(|lanes| packed::mix(lanes, Mix::Single, Fp::fma32)),
        VFmaMixloF16 => v.whole(|lanes| packed::mix(lanes, Mix::Low, Fp::fma32)),
        VFmaMixhiF16 => v.whole(|lanes| packed::mix(lanes, Mix::High, Fp::fma32)),
        VMadMixF32 => v.whole(|lanes| packed::mix(lanes, Mix::Single, mad_f32)),
        VMadMixloF16 => v.whole(|lanes| packed::mix(lanes, Mix::Low, mad_f32)),
        VMadMixhiF16 => v.whole(|lanes| packed::mix(lanes, Mix::High, mad_f32)),

        VDot2F32F16 | VDot2accF32F16 => v.whole(packed::dot2_f32_f16),
        VDot2F32Bf16 => v.whole(packed::dot2_f32_bf16),
        VDot2F16F16 => v.whole(packed::dot2_f16_f16),
        VDot2Bf16Bf16 => v.whole(packed::dot2_bf16_bf16),
        VDot2I32I16 | VDot2cI32I16 => v.whole(|lanes| packed::dot_int::<16>(lanes, Some(true))),
        VDot2U32U16 => v.whole(|lanes| packed::dot_int::<16>(lanes, Some(false))),
        VDot4I32I8 | VDot4cI32I8 => v.whole(|lanes| packed::dot_int::<8>(lanes, Some(true))),
        VDot4U32U8 => v.whole(|lanes| packed::dot_int::<8>(lanes, Some(false))),
        VDot4I32Iu8 => v.whole(|lanes| packed::dot_int::<8>(lanes, None)),
        VDot8I32I4 | VDot8cI32I4 => v.whole(|lanes| packed::dot_int::<4>(lanes, Some(true))),
        VDot8U32U4 => v.whole(|lanes| packed::dot_int::<4>(lanes, Some(false))),
        VDot8I32Iu4 => v.whole(|lanes| packed::dot_int::<4>(lanes, None)),

        VPermlane16B32 => v.whole(|lanes| across::permlane16(lanes, false)),
        VPermlanex16B32 => v.whole(|lanes| across::permlane16(lanes, true)),
        VPermlane64B32 => v.whole(across::permlane64),
        VSwapB32 => v.whole(|lanes| across::swap(lanes, (0, 0))),
        VSwaprelB32 => {
            v.whole(|lanes| across::swap(lanes, across::relative(lanes.m0, Relative::Two)))
        }
        VMovrelsB32 => v.whole(|lanes| across::movrel(lanes, Relative::Source)),
        VMovreldB32 => v.whole(|lanes| across::movrel(lanes, Relative::Destination)),
        VMovrelsdB32 => v.whole(|lanes| across::movrel(lanes, Relative::Both)),
        VMovrelsd2B32 => v.whole(|lanes| across::movrel(lanes, Relative::Two)),
        VCvtPkaccumU8F32 => v.whole(across::pkaccum),
        VMqsadU32U8 => v.whole(across::mqsad_u32_u8),
        VCvtSrFp8F32 => v.whole(|lanes| cvt_sr(lanes, Eight::Fp8)),
        VCvtSrBf8F32 => v.whole(|lanes| cvt_sr(lanes, Eight::Bf8)),
        _ => match (Shape::of(op), Wmma::of(op), Sparse::of(op)) {
            (Some(shape), ..) => v.whole(|lanes| mfma(lanes, shape)),
            (_, Some(kind), _) => v.whole(|lanes| wmma(lanes, kind)),
            (.., Some(shape)) => v.whole(|lanes| smfmac(lanes, shape)),
            _ => return false,
        },
    }
    true
}

#[inline(always)]
fn unsigned2<V: Visit>(v: V, f: impl Fn(bool, u16, u16) -> u16) {
    v.whole(|lanes| packed::pk::<U16Keep, 2>(lanes, |_, clamp, [a, b]| f(clamp, a, b)));
}

#[inline(always)]
fn signed2<V: Visit>(v: V, f: impl Fn(bool, i16, i16) -> i16) {
    v.whole(|lanes| packed::pk::<I16Keep, 2>(lanes, |_, clamp, [a, b]| f(clamp, a, b)));
}
