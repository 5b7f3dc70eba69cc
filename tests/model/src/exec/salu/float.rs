//! Scalar floating point of gfx1150 and gfx1151, under MODE's rounding and denormal settings.
//!
//! "RDNA3.5" instruction set document, SALU floating point: half-precision operations read the low
//! half of their registers and clear the high half of the destination. The arithmetic is that of
//! the vector unit's lanes.
#![allow(clippy::neg_cmp_op_on_partial_ord, clippy::double_comparisons)] // with a NaN these differ from their "simpler" forms

use super::dst;
use crate::exec::valu::fp::{ByMode, Fp};
use crate::exec::valu::lane::convert::pack;
use crate::exec::valu::lane::half::{self, Half};
use crate::exec::valu::lane::minmax;
use crate::exec::valu::lane::soft::{self, F16, F32, Format};
use crate::exec::wave::{Code, Wave};
use crate::isa::Op;
use crate::isa::ir::Inst;

/// Declares `step` and `implements` from one list of operations.
macro_rules! scalar_float {
    (
        $scalar:ident;
        plain { $($op:ident => $body:expr,)+ }
        compare { $($c16:ident $c32:ident => |$a:ident, $b:ident| $test:expr,)+ }
    ) => {
        /// Executes a scalar float instruction. False: not one; nothing changed.
        #[inline(never)]
        pub(in crate::exec) fn step<const N: usize>(w: &mut Wave<N>, i: &Inst, code: &Code) -> bool {
            let fp = ByMode(w.mode);
            let mut $scalar = Scalar { fp, src: i.src.map(|src| w.s_src32(src, code)) };
            let result = match i.op {
                $(Op::$op => $body,)+
                $(
                    Op::$c16 => {
                        let ($a, $b) = ($scalar.half(0).to_f32(), $scalar.half(1).to_f32());
                        w.scc = $test;
                        return true;
                    }
                    Op::$c32 => {
                        let ($a, $b) = ($scalar.single(0), $scalar.single(1));
                        w.scc = $test;
                        return true;
                    }
                )+
                _ => return false,
            };
            w.set_s32(dst(i), result);
            true
        }

        /// Whether [`step`] has semantics for `op`.
        pub(in crate::exec) const fn implements(op: Op) -> bool {
            matches!(op, $(Op::$op)|+ $(| Op::$c16 | Op::$c32)+)
        }
    };
}

scalar_float! { s;
    plain {
        SAddF32 => s.out32(s.fp.add32(s.single(0), s.single(1))),
        SSubF32 => s.out32(s.fp.add32(s.single(0), -s.single(1))),
        SMulF32 => s.out32(s.fp.mul32(s.single(0), s.single(1))),
        SMinF32 => s.out32(minmax::f32::min(s.single(0), s.single(1), s.fp.ieee())),
        SMaxF32 => s.out32(minmax::f32::max(s.single(0), s.single(1), s.fp.ieee())),
        SFmacF32 => s.out32(s.fp.fma32(s.single(0), s.single(1), s.single(2))),
        SFmaakF32 => s.out32(s.fp.fma32(s.single(0), s.single(1), s.single(2))),
        SFmamkF32 => s.out32(s.fp.fma32(s.single(0), s.single(1), s.single(2))),
        SCeilF32 => s.out32(s.single(0).ceil()),
        SFloorF32 => s.out32(s.single(0).floor()),
        STruncF32 => s.out32(s.single(0).trunc()),
        SRndneF32 => s.out32(s.single(0).round_ties_even()),
        SCvtF32I32 => s.out32(s.fp.int32(i64::from(s.src[0] as i32))),
        SCvtF32U32 => s.out32(s.fp.int32(i64::from(s.src[0]))),
        SCvtI32F32 => s.single(0) as i32 as u32,
        SCvtU32F32 => s.single(0) as u32,
        SCvtF16F32 => s.out16(s.fp.narrow16(s.single(0))),
        SCvtF32F16 => s.out32(s.half(0).to_f32()),
        SCvtHiF32F16 => { s.src[0] >>= 16; s.out32(s.half(0).to_f32()) },
        SCvtPkRtzF16F32 => {
            let [low, high] = [0, 1].map(|k| half::from_f32_toward_zero(s.single(k)));
            pack(low, high)
        },
        SAddF16 => s.out16(s.fp.add16(s.half(0), s.half(1))),
        SSubF16 => s.out16(s.fp.add16(s.half(0), Half(s.half(1).0 ^ 0x8000))),
        SMulF16 => s.out16(s.fp.mul16(s.half(0), s.half(1))),
        SMinF16 => s.out16(minmax::f16::min(s.half(0), s.half(1), s.fp.ieee())),
        SMaxF16 => s.out16(minmax::f16::max(s.half(0), s.half(1), s.fp.ieee())),
        SFmacF16 => s.out16(s.fp.fma16(s.half(0), s.half(1), s.half(2))),
        SCeilF16 => s.out16(Half::from_f32(s.half(0).to_f32().ceil())),
        SFloorF16 => s.out16(Half::from_f32(s.half(0).to_f32().floor())),
        STruncF16 => s.out16(Half::from_f32(s.half(0).to_f32().trunc())),
        SRndneF16 => s.out16(Half::from_f32(s.half(0).to_f32().round_ties_even())),
    }
    compare {
        SCmpLtF16 SCmpLtF32 => |a, b| a < b,
        SCmpEqF16 SCmpEqF32 => |a, b| a == b,
        SCmpLeF16 SCmpLeF32 => |a, b| a <= b,
        SCmpGtF16 SCmpGtF32 => |a, b| a > b,
        SCmpLgF16 SCmpLgF32 => |a, b| a < b || a > b,
        SCmpGeF16 SCmpGeF32 => |a, b| a >= b,
        SCmpOF16 SCmpOF32 => |a, b| !a.is_nan() && !b.is_nan(),
        SCmpUF16 SCmpUF32 => |a, b| a.is_nan() || b.is_nan(),
        SCmpNgeF16 SCmpNgeF32 => |a, b| !(a >= b),
        SCmpNlgF16 SCmpNlgF32 => |a, b| !(a < b || a > b),
        SCmpNgtF16 SCmpNgtF32 => |a, b| !(a > b),
        SCmpNleF16 SCmpNleF32 => |a, b| !(a <= b),
        SCmpNeqF16 SCmpNeqF32 => |a, b| a != b,
        SCmpNltF16 SCmpNltF32 => |a, b| !(a < b),
    }
}

/// The sources of an instruction and how MODE has them read.
struct Scalar {
    fp: ByMode,
    src: [u32; 3],
}

impl Scalar {
    fn single(&self, k: usize) -> f32 {
        f32::from_bits(self.fp.flush_source(u64::from(self.src[k]), F32) as u32)
    }

    fn half(&self, k: usize) -> Half {
        Half(self.fp.flush_source(u64::from(self.src[k] & 0xffff), F16) as u16)
    }

    fn out(&self, bits: u64, format: Format) -> u32 {
        let flushes = self.fp.flushes_results(format);
        (if flushes { soft::flush(bits, format) } else { bits }) as u32
    }

    fn out32(&self, value: f32) -> u32 {
        self.out(u64::from(value.to_bits()), F32)
    }

    fn out16(&self, value: Half) -> u32 {
        self.out(u64::from(value.0), F16)
    }
}
