//! Conversions and packing.

use crate::exec::valu::fp::Fp;
use crate::exec::valu::lane::convert::{self, pack};
use crate::exec::valu::lane::fp8::Eight;
use crate::exec::valu::lane::half::{self, Half};
use crate::exec::valu::types::{F16, F32, F64, I16, I32, U16, U16Keep, U32, U64};
use crate::exec::valu::visit::Visit;
use crate::isa::Op;

/// Runs `op` if it is one of these; else gives the visitor back.
#[inline(always)]
pub fn convert<V: Visit>(op: Op, v: V) -> Option<V> {
    use Op::*;
    let fp = v.fp();
    match op {
        VCvtF32Ubyte0 => v.map1::<U32, F32>(|a| (a & 0xff) as f32),
        VCvtF32Ubyte1 => v.map1::<U32, F32>(|a| (a >> 8 & 0xff) as f32),
        VCvtF32Ubyte2 => v.map1::<U32, F32>(|a| (a >> 16 & 0xff) as f32),
        VCvtF32Ubyte3 => v.map1::<U32, F32>(|a| (a >> 24) as f32),
        VCvtOffF32I4 => v.map1::<U32, F32>(convert::off_f32_i4),
        VCvtNearestI32F32 => v.map1::<F32, I32>(convert::nearest_i32),
        VCvtFloorI32F32 => v.map1::<F32, I32>(convert::floor_i32),
        VCvtF64F32 => v.map1::<F32, F64>(f64::from),
        VCvtF32F64 => v.map1::<F64, F32>(|a| fp.narrow32(a)),
        VCvtF64I32 => v.map1::<I32, F64>(f64::from),
        VCvtF64U32 => v.map1::<U32, F64>(f64::from),
        VCvtI32F64 => v.map1::<F64, I32>(|a| a as i32),
        VCvtU32F64 => v.map1::<F64, U32>(|a| a as u32),
        VCvtF16F32 => v.map1::<F32, F16>(|a| fp.narrow16(a)),
        VCvtF32F16 => v.map1::<F16, F32>(Half::to_f32),
        VCvtF16U16 => v.map1::<U16, F16>(|a| fp.int16(i32::from(a))),
        VCvtF16I16 => v.map1::<I16, F16>(|a| fp.int16(i32::from(a))),
        VCvtU16F16 => v.map1::<F16, U16>(|a| a.to_f32() as u16),
        VCvtI16F16 => v.map1::<F16, I16>(|a| a.to_f32() as i16),
        VCvtI32I16 => v.map1::<I16, I32>(i32::from),
        VCvtU32U16 => v.map1::<U16, U32>(u32::from),
        VCvtNormI16F16 => v.map1::<F16, I16>(|a| convert::snorm16(a.to_f32())),
        VCvtNormU16F16 => v.map1::<F16, U16>(|a| convert::unorm16(a.to_f32())),
        VCvtPkRtzF16F32 => v.map2::<F32, F32, U32>(|a, b| {
            pack(half::from_f32_toward_zero(a), half::from_f32_toward_zero(b))
        }),
        VCvtPkI16F32 => v.map2::<F32, F32, U32>(|a, b| pack(a as i16 as u16, b as i16 as u16)),
        VCvtPkU16F32 => v.map2::<F32, F32, U32>(|a, b| pack(a as u16, b as u16)),
        VCvtPkI16I32 => v.map2::<I32, I32, U32>(|a, b| {
            let saturate = |x: i32| x.clamp(i16::MIN.into(), i16::MAX.into()) as u16;
            pack(saturate(a), saturate(b))
        }),
        VCvtPkU16U32 => v.map2::<U32, U32, U32>(|a, b| {
            let saturate = |x: u32| x.min(u16::MAX.into()) as u16;
            pack(saturate(a), saturate(b))
        }),
        VCvtPkNormI16F32 => {
            v.map2::<F32, F32, U32>(|a, b| {
                pack(convert::snorm16(a) as u16, convert::snorm16(b) as u16)
            });
        }
        VCvtPkNormU16F32 => {
            v.map2::<F32, F32, U32>(|a, b| pack(convert::unorm16(a), convert::unorm16(b)))
        }
        VCvtPkNormI16F16 => v.map2::<F16, F16, U32>(|a, b| {
            pack(convert::snorm16(a.to_f32()) as u16, convert::snorm16(b.to_f32()) as u16)
        }),
        VCvtPkNormU16F16 => v.map2::<F16, F16, U32>(|a, b| {
            pack(convert::unorm16(a.to_f32()), convert::unorm16(b.to_f32()))
        }),
        VCvtPkU8F32 => v.map3::<F32, U32, U32, U32>(convert::pk_u8_f32),
        // SDWA's selection has taken the byte or word already.
        VCvtF32Fp8 => v.map1::<U32, F32>(|a| Eight::Fp8.to_f32(a as u8)),
        VCvtF32Bf8 => v.map1::<U32, F32>(|a| Eight::Bf8.to_f32(a as u8)),
        VCvtPkF32Fp8 => v.map1::<U32, U64>(|a| widen(Eight::Fp8, a)),
        VCvtPkF32Bf8 => v.map1::<U32, U64>(|a| widen(Eight::Bf8, a)),
        VCvtPkFp8F32 => {
            v.map2::<F32, F32, U16Keep>(|a, b| narrow(Eight::Fp8, a, b, fp.saturates()))
        }
        VCvtPkBf8F32 => {
            v.map2::<F32, F32, U16Keep>(|a, b| narrow(Eight::Bf8, a, b, fp.saturates()))
        }
        VPackB32F16 => v.map2::<F16, F16, U32>(|a, b| pack(a.0, b.0)),
        _ => return Some(v),
    }
    None
}

fn widen(format: Eight, a: u32) -> u64 {
    let value = |byte: u32| u64::from(format.to_f32(byte as u8).to_bits());
    value(a) | value(a >> 8) << 32
}

fn narrow(format: Eight, a: f32, b: f32, saturate: bool) -> u16 {
    u16::from(format.narrow(a, saturate)) | u16::from(format.narrow(b, saturate)) << 8
}
