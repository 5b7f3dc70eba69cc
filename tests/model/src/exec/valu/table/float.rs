//! Single and double precision outside the hot table.

use crate::exec::valu::fp::Fp;
use crate::exec::valu::lane::minmax::{f32 as single, f64 as double};
use crate::exec::valu::lane::soft::{self, F32 as FORMAT32, F64 as FORMAT64};
use crate::exec::valu::lane::{convert, div, trans};
use crate::exec::valu::types::{F32, F64, I32, U32};
use crate::exec::valu::visit::Visit;
use crate::isa::Op;

/// Runs `op` if it is one of these; else gives the visitor back.
#[inline(always)]
pub fn float<V: Visit>(op: Op, v: V) -> Option<V> {
    use Op::*;
    let fp = v.fp();
    match op {
        VMulDx9ZeroF32 => {
            v.map2::<F32, F32, F32>(|a, b| if a == 0.0 || b == 0.0 { 0.0 } else { fp.mul32(a, b) });
        }
        VFmaDx9ZeroF32 | VFmacDx9ZeroF32 => {
            v.map3::<F32, F32, F32, F32>(
                |a, b, c| {
                    if a == 0.0 || b == 0.0 { c } else { fp.fma32(a, b, c) }
                },
            )
        }
        VMadF32 | VMacF32 | VMadakF32 | VMadmkF32 => {
            v.map3::<F32, F32, F32, F32>(|a, b, c| mad_f32(fp, a, b, c));
        }
        VMadLegacyF32 => v.map3::<F32, F32, F32, F32>(|a, b, c| {
            if a == 0.0 || b == 0.0 { c } else { mad_f32(fp, a, b, c) }
        }),
        VMin3F32 => v.map3::<F32, F32, F32, F32>(|a, b, c| single::min3(a, b, c, fp.ieee())),
        VMed3F32 => v.map3::<F32, F32, F32, F32>(|a, b, c| single::med3(a, b, c, fp.ieee())),
        VMaxminF32 => v.map3::<F32, F32, F32, F32>(|a, b, c| {
            single::min(single::max(a, b, fp.ieee()), c, fp.ieee())
        }),
        VMinmaxF32 => v.map3::<F32, F32, F32, F32>(|a, b, c| {
            single::max(single::min(a, b, fp.ieee()), c, fp.ieee())
        }),
        VMullitF32 => v.map3::<F32, F32, F32, F32>(|a, b, c| {
            let low = b == -f32::MAX || b == f32::NEG_INFINITY || b.is_nan();
            if low || c <= 0.0 || c.is_nan() { -f32::MAX } else { fp.mul32(a, b) }
        }),
        VCeilF32 => v.map1::<F32, F32>(f32::ceil),
        VRndneF32 => v.map1::<F32, F32>(f32::round_ties_even),
        VFractF32 => v.map1::<F32, F32>(convert::fract_f32),
        VSqrtF32 => v.map1::<F32, F32>(f32::sqrt),
        VRsqF32 => v.map1::<F32, F32>(|a| trans::rsq(f64::from(a)) as f32),
        VExpF32 | VExpLegacyF32 => v.map1::<F32, F32>(trans::exp2_f32),
        VLogF32 | VLogLegacyF32 => v.map1::<F32, F32>(trans::log2_f32),
        VSinF32 => v.map1::<F32, F32>(|a| trans::sin(f64::from(a)) as f32),
        VCosF32 => v.map1::<F32, F32>(|a| trans::cos(f64::from(a)) as f32),
        VFrexpExpI32F32 => v.map1::<F32, I32>(convert::frexp_exp_f32),
        VFrexpMantF32 => v.map1::<F32, F32>(convert::frexp_mant_f32),
        VLdexpF32 => v.map2::<F32, I32, F32>(|a, b| {
            f32::from_bits(soft::scale(bits(a), b, FORMAT32, fp.round32()) as u32)
        }),
        VCubeidF32 => v.map3::<F32, F32, F32, F32>(trans::cube_id),
        VCubescF32 => v.map3::<F32, F32, F32, F32>(trans::cube_sc),
        VCubetcF32 => v.map3::<F32, F32, F32, F32>(trans::cube_tc),
        VCubemaF32 => v.map3::<F32, F32, F32, F32>(trans::cube_ma),
        VDivScaleF32 => v.map3_out::<F32, F32, F32, F32>(div::div_scale_f32),
        VDivFmasF32 => v.map3_vcc::<F32, F32, F32, F32>(|a, b, c, scaled| {
            if scaled { div::div_fmas_scaled_f32(a, b, c, fp.round32()) } else { fp.fma32(a, b, c) }
        }),
        VDivFixupF32 => v.map3::<F32, F32, F32, F32>(div::div_fixup_f32),

        VMinF64 => v.map2::<F64, F64, F64>(|a, b| double::min(a, b, fp.ieee())),
        VMaxF64 => v.map2::<F64, F64, F64>(|a, b| double::max(a, b, fp.ieee())),
        VFloorF64 => v.map1::<F64, F64>(f64::floor),
        VCeilF64 => v.map1::<F64, F64>(f64::ceil),
        VTruncF64 => v.map1::<F64, F64>(f64::trunc),
        VRndneF64 => v.map1::<F64, F64>(f64::round_ties_even),
        VFractF64 => v.map1::<F64, F64>(convert::fract_f64),
        VRcpF64 => v.map1::<F64, F64>(|a| 1.0 / a),
        VRsqF64 => v.map1::<F64, F64>(trans::rsq),
        VSqrtF64 => v.map1::<F64, F64>(f64::sqrt),
        VFrexpExpI32F64 => v.map1::<F64, I32>(convert::frexp_exp_f64),
        VFrexpMantF64 => v.map1::<F64, F64>(convert::frexp_mant_f64),
        VLdexpF64 => v.map2::<F64, I32, F64>(|a, b| {
            f64::from_bits(soft::scale(a.to_bits(), b, FORMAT64, fp.round64()))
        }),
        VTrigPreopF64 => v.map2::<F64, U32, F64>(trans::trig_preop),
        VDivScaleF64 => v.map3_out::<F64, F64, F64, F64>(div::div_scale_f64),
        VDivFmasF64 => v.map3_vcc::<F64, F64, F64, F64>(|a, b, c, scaled| {
            if scaled { div::div_fmas_scaled_f64(a, b, c, fp.round64()) } else { fp.fma64(a, b, c) }
        }),
        VDivFixupF64 => v.map3::<F64, F64, F64, F64>(div::div_fixup_f64),
        _ => return Some(v),
    }
    None
}

fn bits(x: f32) -> u64 {
    u64::from(x.to_bits())
}

/// v_mad_f32 and its kin: two roundings, and denormals flushed whatever MODE says.
pub fn mad_f32(fp: impl Fp, a: f32, b: f32, c: f32) -> f32 {
    let flush = |x: f32| f32::from_bits(soft::flush(bits(x), FORMAT32) as u32);
    let product = flush(fp.mul32(flush(a), flush(b)));
    flush(fp.add32(product, flush(c)))
}
