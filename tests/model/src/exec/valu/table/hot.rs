//! Operations of ordinary compiled code: inlined into the interpreter's loop.

use crate::exec::valu::fp::Fp;
use crate::exec::valu::lane::bits;
use crate::exec::valu::lane::minmax::f32 as single;
use crate::exec::valu::types::{B32, F32, F64, I32, I64, U32, U64};
use crate::exec::valu::visit::Visit;
use crate::isa::Op;

/// Runs `op` if it is one of these.
#[inline(always)]
pub fn hot<V: Visit>(op: Op, v: V) -> bool {
    use Op::*;
    let fp = v.fp();
    let clamp = v.clamp();
    match op {
        VNop => {}
        VMovB32 => v.map1::<B32, B32>(|a| a),
        VCndmaskB32 => v.map2_in::<B32, B32, B32>(|a, b, m| if m { b } else { a }),

        VAddF32 => v.map2::<F32, F32, F32>(|a, b| fp.add32(a, b)),
        VSubF32 => v.map2::<F32, F32, F32>(|a, b| fp.add32(a, -b)),
        VSubrevF32 => v.map2::<F32, F32, F32>(|a, b| fp.add32(b, -a)),
        VMulF32 => v.map2::<F32, F32, F32>(|a, b| fp.mul32(a, b)),
        VFmaF32 | VFmacF32 | VFmaakF32 | VFmamkF32 => {
            v.map3::<F32, F32, F32, F32>(|a, b, c| fp.fma32(a, b, c));
        }
        VMinF32 => v.map2::<F32, F32, F32>(|a, b| single::min(a, b, fp.ieee())),
        VMaxF32 => v.map2::<F32, F32, F32>(|a, b| single::max(a, b, fp.ieee())),
        VAddNcU32 => v.map2::<U32, U32, U32>(|a, b| add_u32(a, b, clamp)),
        VLshlrevB32 => v.map2::<U32, U32, U32>(|a, b| b << (a & 31)),
        VAndB32 => v.map2::<U32, U32, U32>(|a, b| a & b),
        VMax3F32 => v.map3::<F32, F32, F32, F32>(|a, b, c| single::max3(a, b, c, fp.ieee())),
        VRcpF32 | VRcpIflagF32 => v.map1::<F32, F32>(|a| 1.0 / a),
        VFloorF32 => v.map1::<F32, F32>(f32::floor),
        VTruncF32 => v.map1::<F32, F32>(f32::trunc),
        VCvtF32U32 => v.map1::<U32, F32>(|a| fp.int32(i64::from(a))),
        VCvtF32I32 => v.map1::<I32, F32>(|a| fp.int32(i64::from(a))),
        VCvtU32F32 => v.map1::<F32, U32>(|a| a as u32),
        VCvtI32F32 => v.map1::<F32, I32>(|a| a as i32),
        VAddF64 => v.map2::<F64, F64, F64>(|a, b| fp.add64(a, b)),
        VMulF64 => v.map2::<F64, F64, F64>(|a, b| fp.mul64(a, b)),
        VFmaF64 | VFmacF64 => v.map3::<F64, F64, F64, F64>(|a, b, c| fp.fma64(a, b, c)),

        VSubNcU32 => v.map2::<U32, U32, U32>(|a, b| sub_u32(a, b, clamp)),
        VSubrevNcU32 => v.map2::<U32, U32, U32>(|a, b| sub_u32(b, a, clamp)),
        VAddCoU32 => v.carry(|a, b| add(a, b, false, clamp)),
        VSubCoU32 => v.carry(|a, b| sub(a, b, false, clamp)),
        VSubrevCoU32 => v.carry(|a, b| sub(b, a, false, clamp)),
        VAddCoCiU32 => v.carry_in(|a, b, c| add(a, b, c, clamp)),
        VSubCoCiU32 => v.carry_in(|a, b, c| sub(a, b, c, clamp)),
        VSubrevCoCiU32 => v.carry_in(|a, b, c| sub(b, a, c, clamp)),
        VLshrrevB32 => v.map2::<U32, U32, U32>(|a, b| b >> (a & 31)),
        VAshrrevI32 => v.map2::<U32, I32, I32>(|a, b| b >> (a & 31)),
        VLshlrevB64 => v.map2::<U32, U64, U64>(|a, b| b << (a & 63)),
        VLshrrevB64 => v.map2::<U32, U64, U64>(|a, b| b >> (a & 63)),
        VAshrrevI64 => v.map2::<U32, I64, I64>(|a, b| b >> (a & 63)),
        VOrB32 => v.map2::<U32, U32, U32>(|a, b| a | b),
        VXorB32 => v.map2::<U32, U32, U32>(|a, b| a ^ b),
        VNotB32 => v.map1::<U32, U32>(|a| !a),
        VAndOrB32 => v.map3::<U32, U32, U32, U32>(|a, b, c| a & b | c),
        VOr3B32 => v.map3::<U32, U32, U32, U32>(|a, b, c| a | b | c),
        VXor3B32 => v.map3::<U32, U32, U32, U32>(|a, b, c| a ^ b ^ c),
        VAdd3U32 => v.map3::<U32, U32, U32, U32>(|a, b, c| a.wrapping_add(b).wrapping_add(c)),
        VLshlAddU32 => v.map3::<U32, U32, U32, U32>(|a, b, c| (a << (b & 31)).wrapping_add(c)),
        VAddLshlU32 => v.map3::<U32, U32, U32, U32>(|a, b, c| a.wrapping_add(b) << (c & 31)),
        VLshlOrB32 => v.map3::<U32, U32, U32, U32>(|a, b, c| a << (b & 31) | c),
        VXadU32 => v.map3::<U32, U32, U32, U32>(|a, b, c| (a ^ b).wrapping_add(c)),
        VLshlAddU64 => v.map3::<U64, U32, U64, U64>(|a, b, c| (a << (b & 7)).wrapping_add(c)),
        VBfeU32 => v.map3::<U32, U32, U32, U32>(bits::bfe_u32),
        VBfeI32 => v.map3::<U32, U32, U32, U32>(bits::bfe_i32),
        VBfiB32 => v.map3::<U32, U32, U32, U32>(|a, b, c| a & b | !a & c),
        VAlignbitB32 => v.map3::<U32, U32, U32, U32>(bits::alignbit),
        VMulLoU32 => v.map2::<U32, U32, U32>(u32::wrapping_mul),
        VMulHiU32 => v.map2::<U32, U32, U32>(|a, b| ((u64::from(a) * u64::from(b)) >> 32) as u32),
        VMulU32U24 => v.map2::<U32, U32, U32>(|a, b| bits::u24(a).wrapping_mul(bits::u24(b))),
        VMadU32U24 => v.map3::<U32, U32, U32, U32>(|a, b, c| {
            let product = u64::from(bits::u24(a)) * u64::from(bits::u24(b));
            if clamp {
                u32::try_from(product + u64::from(c)).unwrap_or(u32::MAX)
            } else {
                (product as u32).wrapping_add(c)
            }
        }),
        VMadU64U32 => v.map3_out::<U32, U32, U64, U64>(|a, b, c| {
            let (sum, carry) = (u64::from(a) * u64::from(b)).overflowing_add(c);
            (if clamp && carry { u64::MAX } else { sum }, carry)
        }),
        VMinU32 => v.map2::<U32, U32, U32>(|a, b| a.min(b)),
        VMaxU32 => v.map2::<U32, U32, U32>(|a, b| a.max(b)),
        VMinI32 => v.map2::<I32, I32, I32>(|a, b| a.min(b)),
        VMaxI32 => v.map2::<I32, I32, I32>(|a, b| a.max(b)),
        VMbcntLoU32B32 => v.map2_lane::<U32, U32, U32>(|lane, a, b| {
            (a & bits::below_lo(lane)).count_ones().wrapping_add(b)
        }),
        VMbcntHiU32B32 => v.map2_lane::<U32, U32, U32>(|lane, a, b| {
            (a & bits::below_hi(lane)).count_ones().wrapping_add(b)
        }),

        VCmpEqI32 | VCmpEqU32 => v.compare::<U32, U32>(false, |a, b| a == b),
        VCmpNeI32 | VCmpNeU32 => v.compare::<U32, U32>(false, |a, b| a != b),
        VCmpLtU32 => v.compare::<U32, U32>(false, |a, b| a < b),
        VCmpLeU32 => v.compare::<U32, U32>(false, |a, b| a <= b),
        VCmpGtU32 => v.compare::<U32, U32>(false, |a, b| a > b),
        VCmpGeU32 => v.compare::<U32, U32>(false, |a, b| a >= b),
        VCmpLtI32 => v.compare::<I32, I32>(false, |a, b| a < b),
        VCmpLeI32 => v.compare::<I32, I32>(false, |a, b| a <= b),
        VCmpGtI32 => v.compare::<I32, I32>(false, |a, b| a > b),
        VCmpGeI32 => v.compare::<I32, I32>(false, |a, b| a >= b),
        VCmpxEqI32 | VCmpxEqU32 => v.compare::<U32, U32>(true, |a, b| a == b),
        VCmpxNeI32 | VCmpxNeU32 => v.compare::<U32, U32>(true, |a, b| a != b),
        VCmpxLtU32 => v.compare::<U32, U32>(true, |a, b| a < b),
        VCmpxLeU32 => v.compare::<U32, U32>(true, |a, b| a <= b),
        VCmpxGtU32 => v.compare::<U32, U32>(true, |a, b| a > b),
        VCmpxGeU32 => v.compare::<U32, U32>(true, |a, b| a >= b),
        VCmpxLtI32 => v.compare::<I32, I32>(true, |a, b| a < b),
        VCmpxLeI32 => v.compare::<I32, I32>(true, |a, b| a <= b),
        VCmpxGtI32 => v.compare::<I32, I32>(true, |a, b| a > b),
        VCmpxGeI32 => v.compare::<I32, I32>(true, |a, b| a >= b),
        VCmpEqI64 | VCmpEqU64 => v.compare_equal64(false, true),
        VCmpNeI64 | VCmpNeU64 => v.compare_equal64(false, false),
        VCmpEqF32 => v.compare::<F32, F32>(false, |a, b| a == b),
        VCmpNeqF32 => v.compare::<F32, F32>(false, |a, b| a != b),
        VCmpLtF32 => v.compare::<F32, F32>(false, |a, b| a < b),
        VCmpLeF32 => v.compare::<F32, F32>(false, |a, b| a <= b),
        VCmpGtF32 => v.compare::<F32, F32>(false, |a, b| a > b),
        VCmpGeF32 => v.compare::<F32, F32>(false, |a, b| a >= b),
        _ => return false,
    }
    true
}

#[inline(always)]
fn sub_u32(a: u32, b: u32, clamp: bool) -> u32 {
    if clamp { a.saturating_sub(b) } else { a.wrapping_sub(b) }
}

#[inline(always)]
fn add(a: u32, b: u32, carry: bool, clamp: bool) -> (u32, bool) {
    let partial = a.wrapping_add(b);
    let sum = partial.wrapping_add(u32::from(carry));
    let over = partial < a || sum < partial;
    (if clamp && over { u32::MAX } else { sum }, over)
}

#[inline(always)]
fn sub(a: u32, b: u32, borrow: bool, clamp: bool) -> (u32, bool) {
    let difference = a.wrapping_sub(b).wrapping_sub(u32::from(borrow));
    let under = a < b || a == b && borrow;
    (if clamp && under { 0 } else { difference }, under)
}

#[inline(always)]
fn add_u32(a: u32, b: u32, clamp: bool) -> u32 {
    if clamp { a.saturating_add(b) } else { a.wrapping_add(b) }
}
