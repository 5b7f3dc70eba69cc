//! Half precision.

use crate::exec::valu::fp::Fp;
use crate::exec::valu::lane::half::Half;
use crate::exec::valu::lane::minmax::f16 as half_order;
use crate::exec::valu::lane::soft::{self, F16 as FORMAT};
use crate::exec::valu::lane::{convert, div, half, trans};
use crate::exec::valu::types::{F16, F16Keep, I16};
use crate::exec::valu::visit::Visit;
use crate::isa::Op;

/// Runs `op` if it is one of these; else gives the visitor back.
///
/// The `Keep` types are the operations that keep the other half of the destination on gfx9 too.
#[inline(always)]
pub fn half<V: Visit>(op: Op, v: V) -> Option<V> {
    use Op::*;
    let fp = v.fp();
    match op {
        VAddF16 => v.map2::<F16, F16, F16>(|a, b| fp.add16(a, b)),
        VSubF16 => v.map2::<F16, F16, F16>(|a, b| fp.add16(a, negate(b))),
        VSubrevF16 => v.map2::<F16, F16, F16>(|a, b| fp.add16(b, negate(a))),
        VMulF16 => v.map2::<F16, F16, F16>(|a, b| fp.mul16(a, b)),
        VFmaF16 | VFmacF16 | VFmaakF16 | VFmamkF16 => {
            v.map3::<F16, F16, F16, F16Keep>(|a, b, c| fp.fma16(a, b, c));
        }
        VFmaLegacyF16 => v.map3::<F16, F16, F16, F16>(|a, b, c| fp.fma16(a, b, c)),
        VMadF16 | VMacF16 | VMadakF16 | VMadmkF16 => {
            v.map3::<F16, F16, F16, F16Keep>(|a, b, c| mad(fp, a, b, c));
        }
        VMadLegacyF16 => v.map3::<F16, F16, F16, F16>(|a, b, c| mad(fp, a, b, c)),
        VMinF16 => v.map2::<F16, F16, F16>(|a, b| half_order::min(a, b, fp.ieee())),
        VMaxF16 => v.map2::<F16, F16, F16>(|a, b| half_order::max(a, b, fp.ieee())),
        VMin3F16 => {
            v.map3::<F16, F16, F16, F16Keep>(|a, b, c| half_order::min3(a, b, c, fp.ieee()))
        }
        VMax3F16 => {
            v.map3::<F16, F16, F16, F16Keep>(|a, b, c| half_order::max3(a, b, c, fp.ieee()))
        }
        VMed3F16 => {
            v.map3::<F16, F16, F16, F16Keep>(|a, b, c| half_order::med3(a, b, c, fp.ieee()))
        }
        VMaxminF16 => v.map3::<F16, F16, F16, F16Keep>(|a, b, c| {
            half_order::min(half_order::max(a, b, fp.ieee()), c, fp.ieee())
        }),
        VMinmaxF16 => v.map3::<F16, F16, F16, F16Keep>(|a, b, c| {
            half_order::max(half_order::min(a, b, fp.ieee()), c, fp.ieee())
        }),
        VFloorF16 => v.map1::<F16, F16>(|a| Half::from_f32(a.to_f32().floor())),
        VCeilF16 => v.map1::<F16, F16>(|a| Half::from_f32(a.to_f32().ceil())),
        VTruncF16 => v.map1::<F16, F16>(|a| Half::from_f32(a.to_f32().trunc())),
        VRndneF16 => v.map1::<F16, F16>(|a| Half::from_f32(a.to_f32().round_ties_even())),
        VFractF16 => v.map1::<F16, F16>(convert::fract_f16),
        VSqrtF16 => v.map1::<F16, F16>(|a| Half::from_f32(a.to_f32().sqrt())),
        VRcpF16 => v.map1::<F16, F16>(|a| Half::from_f32(1.0 / a.to_f32())),
        VRsqF16 => v.map1::<F16, F16>(|a| Half(half::from_f64(trans::rsq(a.to_f64())))),
        VExpF16 => v.map1::<F16, F16>(trans::exp2_f16),
        VLogF16 => v.map1::<F16, F16>(trans::log2_f16),
        VSinF16 => v.map1::<F16, F16>(|a| Half(half::from_f64(trans::sin(a.to_f64())))),
        VCosF16 => v.map1::<F16, F16>(|a| Half(half::from_f64(trans::cos(a.to_f64())))),
        VFrexpExpI16F16 => v.map1::<F16, I16>(|a| convert::frexp_exp_f32(a.to_f32()) as i16),
        VFrexpMantF16 => v.map1::<F16, F16>(convert::frexp_mant_f16),
        VLdexpF16 => v.map2::<F16, I16, F16>(|a, b| {
            Half(soft::scale(u64::from(a.0), i32::from(b), FORMAT, fp.round64()) as u16)
        }),
        VDivFixupF16 => v.map3::<F16, F16, F16, F16Keep>(div::div_fixup_f16),
        VDivFixupLegacyF16 => v.map3::<F16, F16, F16, F16>(div::div_fixup_f16),
        _ => return Some(v),
    }
    None
}

fn negate(a: Half) -> Half {
    Half(a.0 ^ 0x8000)
}

/// v_mad_f16 and its kin: two roundings, and denormals flushed whatever MODE says.
fn mad(fp: impl Fp, a: Half, b: Half, c: Half) -> Half {
    let flush = |x: Half| Half(soft::flush(u64::from(x.0), FORMAT) as u16);
    let product = flush(fp.mul16(flush(a), flush(b)));
    flush(fp.add16(product, flush(c)))
}
