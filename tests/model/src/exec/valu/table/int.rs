//! Integer operations outside the hot table.

use crate::exec::valu::lane::bits::{self, med3};
use crate::exec::valu::types::{B16, I16, I16Keep, I32, I64, U16, U16Keep, U32, U64};
use crate::exec::valu::visit::Visit;
use crate::isa::Op;

/// Runs `op` if it is one of these; else gives the visitor back.
#[inline(always)]
pub fn int<V: Visit>(op: Op, v: V) -> Option<V> {
    use Op::*;
    let clamp = v.clamp();
    match op {
        VXnorB32 => v.map2::<U32, U32, U32>(|a, b| !(a ^ b)),
        VMovB64 => v.map1::<U64, U64>(|a| a),
        VBfrevB32 => v.map1::<U32, U32>(u32::reverse_bits),
        VScreenPartition4seB32 => v.map1::<U32, U32>(bits::screen_partition),
        VBfmB32 => v.map2::<U32, U32, U32>(bits::bfm),
        VBcntU32B32 => v.map2::<U32, U32, U32>(|a, b| a.count_ones().wrapping_add(b)),
        VClzI32U32 => v.map1::<U32, U32>(bits::ffbh_u32),
        VCtzI32B32 => v.map1::<U32, U32>(bits::ffbl),
        VClsI32 => v.map1::<U32, U32>(bits::ffbh_i32),
        VAlignbyteB32 => v.map3::<U32, U32, U32, U32>(bits::alignbyte),
        VPermB32 => v.map3::<U32, U32, U32, U32>(bits::perm),
        VLerpU8 => v.map3::<U32, U32, U32, U32>(bits::lerp_u8),
        VSadU8 => v.map3::<U32, U32, U32, U32>(|a, b, c| saturate(clamp, c, bits::sad_u8(a, b, 0))),
        VSadHiU8 => {
            v.map3::<U32, U32, U32, U32>(|a, b, c| saturate(clamp, c, bits::sad_u8(a, b, 0) << 16))
        }
        VSadU16 => {
            v.map3::<U32, U32, U32, U32>(|a, b, c| saturate(clamp, c, bits::sad_u16(a, b, 0)))
        }
        VSadU32 => v.map3::<U32, U32, U32, U32>(|a, b, c| saturate(clamp, c, a.abs_diff(b))),
        VMsadU8 => {
            v.map3::<U32, U32, U32, U32>(|a, b, c| saturate(clamp, c, bits::msad_u8(a, b, 0)))
        }
        VQsadPkU16U8 => v.map3::<U64, U32, U64, U64>(|a, b, c| bits::qsad_pk(a, b, c, false)),
        VMqsadPkU16U8 => v.map3::<U64, U32, U64, U64>(|a, b, c| bits::qsad_pk(a, b, c, true)),
        VSatPkU8I16 => v.map1::<U32, U16>(bits::sat_pk_u8_i16),

        VAddNcI32 => {
            v.map2::<I32, I32, I32>(
                |a, b| if clamp { a.saturating_add(b) } else { a.wrapping_add(b) },
            )
        }
        VSubNcI32 => {
            v.map2::<I32, I32, I32>(
                |a, b| if clamp { a.saturating_sub(b) } else { a.wrapping_sub(b) },
            )
        }
        VMulHiI32 => v.map2::<I32, I32, I32>(|a, b| ((i64::from(a) * i64::from(b)) >> 32) as i32),
        VMulI32I24 => v.map2::<U32, U32, I32>(|a, b| bits::i24(a).wrapping_mul(bits::i24(b))),
        VMulHiI32I24 => {
            v.map2::<U32, U32, I32>(|a, b| {
                ((i64::from(bits::i24(a)) * i64::from(bits::i24(b))) >> 32) as i32
            });
        }
        VMulHiU32U24 => {
            v.map2::<U32, U32, U32>(|a, b| {
                ((u64::from(bits::u24(a)) * u64::from(bits::u24(b))) >> 32) as u32
            });
        }
        VMadI32I24 => v.map3::<U32, U32, I32, I32>(|a, b, c| {
            let exact = i64::from(bits::i24(a)) * i64::from(bits::i24(b)) + i64::from(c);
            if clamp { exact.clamp(i32::MIN.into(), i32::MAX.into()) as i32 } else { exact as i32 }
        }),
        VMadI64I32 => v.map3_out::<I32, I32, I64, I64>(|a, b, c| {
            let (sum, over) = (i64::from(a) * i64::from(b)).overflowing_add(c);
            let limit = if c < 0 { i64::MIN } else { i64::MAX };
            (if clamp && over { limit } else { sum }, over)
        }),
        VMadU32U16 => {
            v.map3::<U16, U16, U32, U32>(|a, b, c| saturate(clamp, c, u32::from(a) * u32::from(b)))
        }
        VMadI32I16 => v.map3::<I16, I16, I32, I32>(|a, b, c| {
            let product = i32::from(a) * i32::from(b);
            if clamp { product.saturating_add(c) } else { product.wrapping_add(c) }
        }),
        VMin3I32 => v.map3::<I32, I32, I32, I32>(|a, b, c| a.min(b).min(c)),
        VMax3I32 => v.map3::<I32, I32, I32, I32>(|a, b, c| a.max(b).max(c)),
        VMed3I32 => v.map3::<I32, I32, I32, I32>(med3),
        VMin3U32 => v.map3::<U32, U32, U32, U32>(|a, b, c| a.min(b).min(c)),
        VMax3U32 => v.map3::<U32, U32, U32, U32>(|a, b, c| a.max(b).max(c)),
        VMed3U32 => v.map3::<U32, U32, U32, U32>(med3),
        VMaxminI32 => v.map3::<I32, I32, I32, I32>(|a, b, c| a.max(b).min(c)),
        VMinmaxI32 => v.map3::<I32, I32, I32, I32>(|a, b, c| a.min(b).max(c)),
        VMaxminU32 => v.map3::<U32, U32, U32, U32>(|a, b, c| a.max(b).min(c)),
        VMinmaxU32 => v.map3::<U32, U32, U32, U32>(|a, b, c| a.min(b).max(c)),

        VMovB16 => v.map1::<B16, B16>(|a| a),
        VCndmaskB16 => v.map2_in::<B16, B16, B16>(|a, b, m| if m { b } else { a }),
        VNotB16 => v.map1::<U16Keep, U16Keep>(|a| !a),
        VAndB16 => v.map2::<U16Keep, U16Keep, U16Keep>(|a, b| a & b),
        VOrB16 => v.map2::<U16Keep, U16Keep, U16Keep>(|a, b| a | b),
        VXorB16 => v.map2::<U16Keep, U16Keep, U16Keep>(|a, b| a ^ b),
        VLshlrevB16 => v.map2::<U16, U16, U16>(|a, b| b << (a & 15)),
        VLshrrevB16 => v.map2::<U16, U16, U16>(|a, b| b >> (a & 15)),
        VAshrrevI16 => v.map2::<U16, I16, I16>(|a, b| b >> (a & 15)),
        VAddNcU16 => {
            v.map2::<U16, U16, U16>(
                |a, b| if clamp { a.saturating_add(b) } else { a.wrapping_add(b) },
            )
        }
        VSubNcU16 => {
            v.map2::<U16, U16, U16>(
                |a, b| if clamp { a.saturating_sub(b) } else { a.wrapping_sub(b) },
            )
        }
        VSubrevU16 => {
            v.map2::<U16, U16, U16>(
                |a, b| if clamp { b.saturating_sub(a) } else { b.wrapping_sub(a) },
            )
        }
        VMulLoU16 => v.map2::<U16, U16, U16>(u16::wrapping_mul),
        VAddNcI16 => {
            v.map2::<I16Keep, I16Keep, I16Keep>(|a, b| {
                if clamp { a.saturating_add(b) } else { a.wrapping_add(b) }
            });
        }
        VSubNcI16 => {
            v.map2::<I16Keep, I16Keep, I16Keep>(|a, b| {
                if clamp { a.saturating_sub(b) } else { a.wrapping_sub(b) }
            });
        }
        VMinU16 => v.map2::<U16, U16, U16>(|a, b| a.min(b)),
        VMaxU16 => v.map2::<U16, U16, U16>(|a, b| a.max(b)),
        VMinI16 => v.map2::<I16, I16, I16>(|a, b| a.min(b)),
        VMaxI16 => v.map2::<I16, I16, I16>(|a, b| a.max(b)),
        VMadU16 => v.map3::<U16Keep, U16Keep, U16Keep, U16Keep>(|a, b, c| mad_u16(a, b, c, clamp)),
        VMadI16 => v.map3::<I16Keep, I16Keep, I16Keep, I16Keep>(|a, b, c| mad_i16(a, b, c, clamp)),
        VMadLegacyU16 => v.map3::<U16, U16, U16, U16>(|a, b, c| mad_u16(a, b, c, clamp)),
        VMadLegacyI16 => v.map3::<I16, I16, I16, I16>(|a, b, c| mad_i16(a, b, c, clamp)),
        VMin3I16 => v.map3::<I16Keep, I16Keep, I16Keep, I16Keep>(|a, b, c| a.min(b).min(c)),
        VMax3I16 => v.map3::<I16Keep, I16Keep, I16Keep, I16Keep>(|a, b, c| a.max(b).max(c)),
        VMed3I16 => v.map3::<I16Keep, I16Keep, I16Keep, I16Keep>(med3),
        VMin3U16 => v.map3::<U16Keep, U16Keep, U16Keep, U16Keep>(|a, b, c| a.min(b).min(c)),
        VMax3U16 => v.map3::<U16Keep, U16Keep, U16Keep, U16Keep>(|a, b, c| a.max(b).max(c)),
        VMed3U16 => v.map3::<U16Keep, U16Keep, U16Keep, U16Keep>(med3),
        _ => return Some(v),
    }
    None
}

fn saturate(clamp: bool, a: u32, b: u32) -> u32 {
    if clamp { a.saturating_add(b) } else { a.wrapping_add(b) }
}

fn mad_u16(a: u16, b: u16, c: u16, clamp: bool) -> u16 {
    let exact = u32::from(a) * u32::from(b) + u32::from(c);
    if clamp { exact.min(u32::from(u16::MAX)) as u16 } else { exact as u16 }
}

fn mad_i16(a: i16, b: i16, c: i16, clamp: bool) -> i16 {
    let exact = i32::from(a) * i32::from(b) + i32::from(c);
    if clamp { exact.clamp(i16::MIN.into(), i16::MAX.into()) as i16 } else { exact as i16 }
}
