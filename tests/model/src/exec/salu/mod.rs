//! Scalar ALU: SOP1, SOP2, SOPC, SOPK without the control-flow and hardware-register operations.
//!
//! SCC follows AMD's "RDNA3" and "CDNA3" instruction set documents: logic, shifts and bit counts
//! set it when the result is not zero, additions on carry or overflow, moves leave it.

pub(super) mod float;
mod shapes;

use super::{Code, Wave};
use crate::isa::Op;
use crate::isa::ir::Inst;
pub(super) use shapes::dst;
use shapes::{
    bits1, bits1x64, bits2, bits2x64, carry, compare, compare_k, count64, keep1, keep1x64, keep2,
    low_bits, low_bits64, move_relative2, overflowing, pick, quadmask, relative, relative_dst,
    save_exec32, save_exec64, shift_add, shift64, sign_extend, whole_quads, write_exec32,
    write_exec64,
};

/// Declares `step` and `implements` from one list of operations.
macro_rules! scalar_semantics {
    ($w:ident, $i:ident, $code:ident; $($($op:ident)|+ => $body:expr,)+) => {
        /// Executes a scalar ALU instruction. False: not one; nothing changed.
        #[inline(always)]
        pub(super) fn step<const N: usize>($w: &mut Wave<N>, $i: &Inst, $code: &Code) -> bool {
            match $i.op {
                $($(Op::$op)|+ => $body,)+
                _ => return false,
            }
            true
        }

        /// Whether [`step`] has semantics for `op`.
        pub(super) const fn implements(op: Op) -> bool {
            matches!(op, $($(Op::$op)|+)|+)
        }
    };
}

scalar_semantics! { w, i, code;
    SMovB32 => keep1(w, i, code, |a| a),
    SMovB64 => keep1x64(w, i, code, |a| a),
    SMovkI32 => w.set_s32(dst(i), i.imm as u32),
    SCmovB32 => if w.scc { keep1(w, i, code, |a| a) },
    SCmovB64 => if w.scc { keep1x64(w, i, code, |a| a) },
    SCmovkI32 => if w.scc { w.set_s32(dst(i), i.imm as u32) },

    SAddU32 => carry(w, i, code, |a, b, _| a.overflowing_add(b)),
    SSubU32 => carry(w, i, code, |a, b, _| a.overflowing_sub(b)),
    SAddcU32 => carry(w, i, code, |a, b, c| {
        let sum = u64::from(a) + u64::from(b) + u64::from(c);
        (sum as u32, sum >> 32 != 0)
    }),
    SSubbU32 => carry(w, i, code, |a, b, c| {
        let difference = i64::from(a) - i64::from(b) - i64::from(c);
        (difference as u32, difference < 0)
    }),
    SAddI32 => carry(w, i, code, |a, b, _| overflowing(i32::overflowing_add, a, b)),
    SSubI32 => carry(w, i, code, |a, b, _| overflowing(i32::overflowing_sub, a, b)),
    SAddkI32 => {
        let (sum, overflow) = (w.s32(dst(i)) as i32).overflowing_add(i.imm);
        w.set_s32(dst(i), sum as u32);
        w.scc = overflow;
    },
    SMulkI32 => {
        let product = (w.s32(dst(i)) as i32).wrapping_mul(i.imm);
        w.set_s32(dst(i), product as u32);
    },
    SMulI32 => keep2(w, i, code, u32::wrapping_mul),
    SMulHiU32 => keep2(w, i, code, |a, b| ((u64::from(a) * u64::from(b)) >> 32) as u32),
    SMulHiI32 => keep2(w, i, code, |a, b| ((i64::from(a as i32) * i64::from(b as i32)) >> 32) as u32),
    SMinI32 => carry(w, i, code, |a, b, _| pick(a, b, (a as i32) < b as i32)),
    SMinU32 => carry(w, i, code, |a, b, _| pick(a, b, a < b)),
    SMaxI32 => carry(w, i, code, |a, b, _| pick(a, b, a as i32 >= b as i32)),
    SMaxU32 => carry(w, i, code, |a, b, _| pick(a, b, a >= b)),
    SAbsI32 => bits1(w, i, code, |a| (a as i32).wrapping_abs() as u32),
    SAbsdiffI32 => bits2(w, i, code, |a, b| (a as i32).wrapping_sub(b as i32).wrapping_abs() as u32),
    SLshl1AddU32 => carry(w, i, code, |a, b, _| shift_add(a, 1, b)),
    SLshl2AddU32 => carry(w, i, code, |a, b, _| shift_add(a, 2, b)),
    SLshl3AddU32 => carry(w, i, code, |a, b, _| shift_add(a, 3, b)),
    SLshl4AddU32 => carry(w, i, code, |a, b, _| shift_add(a, 4, b)),

    SCselectB32 => {
        let source = if w.scc { i.src[0] } else { i.src[1] };
        let value = w.s_src32(source, code);
        w.set_s32(dst(i), value);
    },
    SCselectB64 => {
        let source = if w.scc { i.src[0] } else { i.src[1] };
        let value = w.s_src64(source, code);
        w.set_s64(dst(i), value);
    },

    SAndB32 => bits2(w, i, code, |a, b| a & b),
    SOrB32 => bits2(w, i, code, |a, b| a | b),
    SXorB32 => bits2(w, i, code, |a, b| a ^ b),
    SAndNot1B32 => bits2(w, i, code, |a, b| a & !b),
    SOrNot1B32 => bits2(w, i, code, |a, b| a | !b),
    SNandB32 => bits2(w, i, code, |a, b| !(a & b)),
    SNorB32 => bits2(w, i, code, |a, b| !(a | b)),
    SXnorB32 => bits2(w, i, code, |a, b| !(a ^ b)),
    SNotB32 => bits1(w, i, code, |a| !a),
    SAndB64 => bits2x64(w, i, code, |a, b| a & b),
    SOrB64 => bits2x64(w, i, code, |a, b| a | b),
    SXorB64 => bits2x64(w, i, code, |a, b| a ^ b),
    SAndNot1B64 => bits2x64(w, i, code, |a, b| a & !b),
    SOrNot1B64 => bits2x64(w, i, code, |a, b| a | !b),
    SNandB64 => bits2x64(w, i, code, |a, b| !(a & b)),
    SNorB64 => bits2x64(w, i, code, |a, b| !(a | b)),
    SXnorB64 => bits2x64(w, i, code, |a, b| !(a ^ b)),
    SNotB64 => bits1x64(w, i, code, |a| !a),

    SLshlB32 => bits2(w, i, code, |a, b| a << (b & 31)),
    SLshrB32 => bits2(w, i, code, |a, b| a >> (b & 31)),
    SAshrI32 => bits2(w, i, code, |a, b| (a as i32 >> (b & 31)) as u32),
    SLshlB64 => shift64(w, i, code, |a, b| a << (b & 63)),
    SLshrB64 => shift64(w, i, code, |a, b| a >> (b & 63)),
    SAshrI64 => shift64(w, i, code, |a, b| (a as i64 >> (b & 63)) as u64),
    SBfeU32 => bits2(w, i, code, |a, b| (a >> (b & 31)) & low_bits(b >> 16 & 0x7f)),
    SBfeI32 => bits2(w, i, code, |a, b| {
        let width = b >> 16 & 0x7f;
        sign_extend(u64::from(a >> (b & 31)), width.min(32 - (b & 31))) as u32
    }),
    SBfeU64 => shift64(w, i, code, |a, b| (a >> (b & 63)) & low_bits64(b >> 16 & 0x7f)),
    SBfeI64 => shift64(w, i, code, |a, b| {
        let width = b >> 16 & 0x7f;
        sign_extend(a >> (b & 63), width.min(64 - (b & 63)))
    }),
    SBfmB32 => keep2(w, i, code, |a, b| low_bits(a & 31) << (b & 31)),
    SBfmB64 => {
        let (a, b) = (w.s_src32(i.src[0], code), w.s_src32(i.src[1], code));
        w.set_s64(dst(i), low_bits64(a & 63) << (b & 63));
    },
    SPackLlB32B16 => keep2(w, i, code, |a, b| a & 0xffff | b << 16),
    SPackLhB32B16 => keep2(w, i, code, |a, b| a & 0xffff | b & 0xffff_0000),
    SPackHhB32B16 => keep2(w, i, code, |a, b| a >> 16 | b & 0xffff_0000),
    SPackHlB32B16 => keep2(w, i, code, |a, b| a >> 16 | b << 16),

    SBrevB32 => keep1(w, i, code, u32::reverse_bits),
    SBrevB64 => keep1x64(w, i, code, u64::reverse_bits),
    SBcnt0I32B32 => bits1(w, i, code, u32::count_zeros),
    SBcnt1I32B32 => bits1(w, i, code, u32::count_ones),
    SBcnt0I32B64 => { let n = count64(w, i, code, u64::count_zeros); w.scc = n != 0; },
    SBcnt1I32B64 => { let n = count64(w, i, code, u64::count_ones); w.scc = n != 0; },
    SFf0I32B32 => keep1(w, i, code, |a| if a == !0 { !0 } else { a.trailing_ones() }),
    SFf0I32B64 => { count64(w, i, code, |a| if a == !0 { !0 } else { a.trailing_ones() }); },
    SCtzI32B32 => keep1(w, i, code, |a| if a == 0 { !0 } else { a.trailing_zeros() }),
    SCtzI32B64 => { count64(w, i, code, |a| if a == 0 { !0 } else { a.trailing_zeros() }); },
    SClzI32U32 => keep1(w, i, code, |a| if a == 0 { !0 } else { a.leading_zeros() }),
    SClzI32U64 => { count64(w, i, code, |a| if a == 0 { !0 } else { a.leading_zeros() }); },
    SClsI32 => keep1(w, i, code, |a| {
        let differing = a ^ (a as i32 >> 31) as u32;
        if differing == 0 { !0 } else { differing.leading_zeros() }
    }),
    SClsI32I64 => { count64(w, i, code, |a| {
        let differing = a ^ (a as i64 >> 63) as u64;
        if differing == 0 { !0 } else { differing.leading_zeros() }
    }); },
    SSextI32I8 => keep1(w, i, code, |a| a as i8 as u32),
    SSextI32I16 => keep1(w, i, code, |a| a as i16 as u32),
    SBitset0B32 => { let n = w.s_src32(i.src[0], code) & 31; let d = w.s32(dst(i)); w.set_s32(dst(i), d & !(1 << n)); },
    SBitset1B32 => { let n = w.s_src32(i.src[0], code) & 31; let d = w.s32(dst(i)); w.set_s32(dst(i), d | 1 << n); },
    SBitset0B64 => { let n = w.s_src32(i.src[0], code) & 63; let d = w.s64(dst(i)); w.set_s64(dst(i), d & !(1 << n)); },
    SBitset1B64 => { let n = w.s_src32(i.src[0], code) & 63; let d = w.s64(dst(i)); w.set_s64(dst(i), d | 1 << n); },
    SBitreplicateB64B32 => {
        let a = w.s_src32(i.src[0], code);
        let mut r = 0;
        for bit in 0..32 {
            r |= (u64::from(a >> bit & 1) * 3) << (2 * bit);
        }
        w.set_s64(dst(i), r);
    },
    SQuadmaskB32 => bits1(w, i, code, |a| quadmask(u64::from(a)) as u32),
    SQuadmaskB64 => bits1x64(w, i, code, quadmask),
    SWqmB32 => bits1(w, i, code, |a| whole_quads(u64::from(a)) as u32),
    SWqmB64 => bits1x64(w, i, code, whole_quads),

    SMovrelsB32 => { let from = relative(w, i.src[0].kind()); let v = w.s32(from); w.set_s32(dst(i), v); },
    SMovrelsB64 => { let from = relative(w, i.src[0].kind()); let v = w.s64(from); w.set_s64(dst(i), v); },
    SMovreldB32 => { let v = w.s_src32(i.src[0], code); let to = relative_dst(w, i); w.set_s32(to, v); },
    SMovrelsd2B32 => move_relative2(w, i),
    SMovreldB64 => { let v = w.s_src64(i.src[0], code); let to = relative_dst(w, i); w.set_s64(to, v); },

    SAndSaveexecB64 => save_exec64(w, i, code, |s, exec| s & exec),
    SOrSaveexecB64 => save_exec64(w, i, code, |s, exec| s | exec),
    SXorSaveexecB64 => save_exec64(w, i, code, |s, exec| s ^ exec),
    SAndNot1SaveexecB64 => save_exec64(w, i, code, |s, exec| s & !exec),
    SOrNot1SaveexecB64 => save_exec64(w, i, code, |s, exec| s | !exec),
    SAndNot0SaveexecB64 => save_exec64(w, i, code, |s, exec| !s & exec),
    SOrNot0SaveexecB64 => save_exec64(w, i, code, |s, exec| !s | exec),
    SNandSaveexecB64 => save_exec64(w, i, code, |s, exec| !(s & exec)),
    SNorSaveexecB64 => save_exec64(w, i, code, |s, exec| !(s | exec)),
    SXnorSaveexecB64 => save_exec64(w, i, code, |s, exec| !(s ^ exec)),
    SAndSaveexecB32 => save_exec32(w, i, code, |s, exec| s & exec),
    SOrSaveexecB32 => save_exec32(w, i, code, |s, exec| s | exec),
    SXorSaveexecB32 => save_exec32(w, i, code, |s, exec| s ^ exec),
    SAndNot1SaveexecB32 => save_exec32(w, i, code, |s, exec| s & !exec),
    SOrNot1SaveexecB32 => save_exec32(w, i, code, |s, exec| s | !exec),
    SAndNot0SaveexecB32 => save_exec32(w, i, code, |s, exec| !s & exec),
    SOrNot0SaveexecB32 => save_exec32(w, i, code, |s, exec| !s | exec),
    SNandSaveexecB32 => save_exec32(w, i, code, |s, exec| !(s & exec)),
    SNorSaveexecB32 => save_exec32(w, i, code, |s, exec| !(s | exec)),
    SXnorSaveexecB32 => save_exec32(w, i, code, |s, exec| !(s ^ exec)),
    SAndNot1WrexecB64 => write_exec64(w, i, code, |s, exec| s & !exec),
    SAndNot0WrexecB64 => write_exec64(w, i, code, |s, exec| !s & exec),
    SAndNot1WrexecB32 => write_exec32(w, i, code, |s, exec| s & !exec),
    SAndNot0WrexecB32 => write_exec32(w, i, code, |s, exec| !s & exec),

    SCmpEqI32 | SCmpEqU32 => compare(w, i, code, |a, b| a == b),
    SCmpLgI32 | SCmpLgU32 => compare(w, i, code, |a, b| a != b),
    SCmpGtI32 => compare(w, i, code, |a, b| a as i32 > b as i32),
    SCmpGeI32 => compare(w, i, code, |a, b| a as i32 >= b as i32),
    SCmpLtI32 => compare(w, i, code, |a, b| (a as i32) < b as i32),
    SCmpLeI32 => compare(w, i, code, |a, b| a as i32 <= b as i32),
    SCmpGtU32 => compare(w, i, code, |a, b| a > b),
    SCmpGeU32 => compare(w, i, code, |a, b| a >= b),
    SCmpLtU32 => compare(w, i, code, |a, b| a < b),
    SCmpLeU32 => compare(w, i, code, |a, b| a <= b),
    SCmpEqU64 => w.scc = w.s_src64(i.src[0], code) == w.s_src64(i.src[1], code),
    SCmpLgU64 => w.scc = w.s_src64(i.src[0], code) != w.s_src64(i.src[1], code),
    SBitcmp0B32 => compare(w, i, code, |a, b| a >> (b & 31) & 1 == 0),
    SBitcmp1B32 => compare(w, i, code, |a, b| a >> (b & 31) & 1 == 1),
    SBitcmp0B64 => w.scc = w.s_src64(i.src[0], code) >> (w.s_src32(i.src[1], code) & 63) & 1 == 0,
    SBitcmp1B64 => w.scc = w.s_src64(i.src[0], code) >> (w.s_src32(i.src[1], code) & 63) & 1 == 1,

    SCmpkEqI32 => compare_k(w, i, code, |a, b| a == b),
    SCmpkLgI32 => compare_k(w, i, code, |a, b| a != b),
    SCmpkGtI32 => compare_k(w, i, code, |a, b| a as i32 > b as i32),
    SCmpkGeI32 => compare_k(w, i, code, |a, b| a as i32 >= b as i32),
    SCmpkLtI32 => compare_k(w, i, code, |a, b| (a as i32) < b as i32),
    SCmpkLeI32 => compare_k(w, i, code, |a, b| a as i32 <= b as i32),
    SCmpkEqU32 => compare_k(w, i, code, |a, b| a == b & 0xffff),
    SCmpkLgU32 => compare_k(w, i, code, |a, b| a != b & 0xffff),
    SCmpkGtU32 => compare_k(w, i, code, |a, b| a > b & 0xffff),
    SCmpkGeU32 => compare_k(w, i, code, |a, b| a >= b & 0xffff),
    SCmpkLtU32 => compare_k(w, i, code, |a, b| a < b & 0xffff),
    SCmpkLeU32 => compare_k(w, i, code, |a, b| a <= b & 0xffff),
}
