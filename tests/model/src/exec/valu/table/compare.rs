//! All compares.
#![allow(clippy::neg_cmp_op_on_partial_ord, clippy::double_comparisons)] // with a NaN these differ from their "simpler" forms

use crate::exec::valu::lane::half::Half;
use crate::exec::valu::lane::minmax;
use crate::exec::valu::types::{F16, F32, F64, I16, I32, I64, U16, U32, U64};
use crate::exec::valu::visit::Visit;
use crate::isa::Op;

/// Arms of one type: `op => predicate`, for v_cmp and v_cmpx.
macro_rules! compares {
    ($op:expr, $v:expr; $($ty:ty, ($a:ident, $b:ident) => { $($cmp:ident $cmpx:ident $test:expr),* $(,)? })*) => {
        match $op {
            $($(
                Op::$cmp => $v.compare::<$ty, $ty>(false, |$a, $b| {
                    let _ = ($a, $b);
                    $test
                }),
                Op::$cmpx => $v.compare::<$ty, $ty>(true, |$a, $b| {
                    let _ = ($a, $b);
                    $test
                }),
            )*)*
            Op::VCmpClassF16 => $v.compare::<F16, U16>(false, |a, b| minmax::f16::class(a, b.into())),
            Op::VCmpxClassF16 => $v.compare::<F16, U16>(true, |a, b| minmax::f16::class(a, b.into())),
            Op::VCmpClassF32 => $v.compare::<F32, U32>(false, minmax::f32::class),
            Op::VCmpxClassF32 => $v.compare::<F32, U32>(true, minmax::f32::class),
            Op::VCmpClassF64 => $v.compare::<F64, U32>(false, minmax::f64::class),
            Op::VCmpxClassF64 => $v.compare::<F64, U32>(true, minmax::f64::class),
            _ => return false,
        }
    };
}

fn f(a: Half) -> f32 {
    a.to_f32()
}

/// Runs a compare.
pub fn compare<V: Visit>(op: Op, v: V) -> bool {
    compares! { op, v;
        F16, (a, b) => {
            VCmpFF16 VCmpxFF16 false,
            VCmpLtF16 VCmpxLtF16 f(a) < f(b),
            VCmpEqF16 VCmpxEqF16 f(a) == f(b),
            VCmpLeF16 VCmpxLeF16 f(a) <= f(b),
            VCmpGtF16 VCmpxGtF16 f(a) > f(b),
            VCmpLgF16 VCmpxLgF16 f(a) < f(b) || f(a) > f(b),
            VCmpGeF16 VCmpxGeF16 f(a) >= f(b),
            VCmpOF16 VCmpxOF16 !(f(a).is_nan() || f(b).is_nan()),
            VCmpUF16 VCmpxUF16 f(a).is_nan() || f(b).is_nan(),
            VCmpNgeF16 VCmpxNgeF16 !(f(a) >= f(b)),
            VCmpNlgF16 VCmpxNlgF16 !(f(a) < f(b) || f(a) > f(b)),
            VCmpNgtF16 VCmpxNgtF16 !(f(a) > f(b)),
            VCmpNleF16 VCmpxNleF16 !(f(a) <= f(b)),
            VCmpNeqF16 VCmpxNeqF16 f(a) != f(b),
            VCmpNltF16 VCmpxNltF16 !(f(a) < f(b)),
            VCmpTF16 VCmpxTF16 true,
        }
        F32, (a, b) => {
            VCmpFF32 VCmpxFF32 false,
            VCmpLtF32 VCmpxLtF32 a < b,
            VCmpEqF32 VCmpxEqF32 a == b,
            VCmpLeF32 VCmpxLeF32 a <= b,
            VCmpGtF32 VCmpxGtF32 a > b,
            VCmpLgF32 VCmpxLgF32 a < b || a > b,
            VCmpGeF32 VCmpxGeF32 a >= b,
            VCmpOF32 VCmpxOF32 !(a.is_nan() || b.is_nan()),
            VCmpUF32 VCmpxUF32 a.is_nan() || b.is_nan(),
            VCmpNgeF32 VCmpxNgeF32 !(a >= b),
            VCmpNlgF32 VCmpxNlgF32 !(a < b || a > b),
            VCmpNgtF32 VCmpxNgtF32 !(a > b),
            VCmpNleF32 VCmpxNleF32 !(a <= b),
            VCmpNeqF32 VCmpxNeqF32 a != b,
            VCmpNltF32 VCmpxNltF32 !(a < b),
            VCmpTF32 VCmpxTF32 true,
        }
        F64, (a, b) => {
            VCmpFF64 VCmpxFF64 false,
            VCmpLtF64 VCmpxLtF64 a < b,
            VCmpEqF64 VCmpxEqF64 a == b,
            VCmpLeF64 VCmpxLeF64 a <= b,
            VCmpGtF64 VCmpxGtF64 a > b,
            VCmpLgF64 VCmpxLgF64 a < b || a > b,
            VCmpGeF64 VCmpxGeF64 a >= b,
            VCmpOF64 VCmpxOF64 !(a.is_nan() || b.is_nan()),
            VCmpUF64 VCmpxUF64 a.is_nan() || b.is_nan(),
            VCmpNgeF64 VCmpxNgeF64 !(a >= b),
            VCmpNlgF64 VCmpxNlgF64 !(a < b || a > b),
            VCmpNgtF64 VCmpxNgtF64 !(a > b),
            VCmpNleF64 VCmpxNleF64 !(a <= b),
            VCmpNeqF64 VCmpxNeqF64 a != b,
            VCmpNltF64 VCmpxNltF64 !(a < b),
            VCmpTF64 VCmpxTF64 true,
        }
        I16, (a, b) => {
            VCmpFI16 VCmpxFI16 false,
            VCmpLtI16 VCmpxLtI16 a < b,
            VCmpEqI16 VCmpxEqI16 a == b,
            VCmpLeI16 VCmpxLeI16 a <= b,
            VCmpGtI16 VCmpxGtI16 a > b,
            VCmpNeI16 VCmpxNeI16 a != b,
            VCmpGeI16 VCmpxGeI16 a >= b,
            VCmpTI16 VCmpxTI16 true,
        }
        U16, (a, b) => {
            VCmpFU16 VCmpxFU16 false,
            VCmpLtU16 VCmpxLtU16 a < b,
            VCmpEqU16 VCmpxEqU16 a == b,
            VCmpLeU16 VCmpxLeU16 a <= b,
            VCmpGtU16 VCmpxGtU16 a > b,
            VCmpNeU16 VCmpxNeU16 a != b,
            VCmpGeU16 VCmpxGeU16 a >= b,
            VCmpTU16 VCmpxTU16 true,
        }
        I32, (a, b) => {
            VCmpFI32 VCmpxFI32 false,
            VCmpLtI32 VCmpxLtI32 a < b,
            VCmpEqI32 VCmpxEqI32 a == b,
            VCmpLeI32 VCmpxLeI32 a <= b,
            VCmpGtI32 VCmpxGtI32 a > b,
            VCmpNeI32 VCmpxNeI32 a != b,
            VCmpGeI32 VCmpxGeI32 a >= b,
            VCmpTI32 VCmpxTI32 true,
        }
        U32, (a, b) => {
            VCmpFU32 VCmpxFU32 false,
            VCmpLtU32 VCmpxLtU32 a < b,
            VCmpEqU32 VCmpxEqU32 a == b,
            VCmpLeU32 VCmpxLeU32 a <= b,
            VCmpGtU32 VCmpxGtU32 a > b,
            VCmpNeU32 VCmpxNeU32 a != b,
            VCmpGeU32 VCmpxGeU32 a >= b,
            VCmpTU32 VCmpxTU32 true,
        }
        I64, (a, b) => {
            VCmpFI64 VCmpxFI64 false,
            VCmpLtI64 VCmpxLtI64 a < b,
            VCmpEqI64 VCmpxEqI64 a == b,
            VCmpLeI64 VCmpxLeI64 a <= b,
            VCmpGtI64 VCmpxGtI64 a > b,
            VCmpNeI64 VCmpxNeI64 a != b,
            VCmpGeI64 VCmpxGeI64 a >= b,
            VCmpTI64 VCmpxTI64 true,
        }
        U64, (a, b) => {
            VCmpFU64 VCmpxFU64 false,
            VCmpLtU64 VCmpxLtU64 a < b,
            VCmpEqU64 VCmpxEqU64 a == b,
            VCmpLeU64 VCmpxLeU64 a <= b,
            VCmpGtU64 VCmpxGtU64 a > b,
            VCmpNeU64 VCmpxNeU64 a != b,
            VCmpGeU64 VCmpxGeU64 a >= b,
            VCmpTU64 VCmpxTU64 true,
        }
    }
    true
}
