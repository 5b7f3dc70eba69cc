//! What scalar operations have in common: sources, destination, and what happens to SCC.

use crate::exec::{Code, Wave};
use crate::isa::ir::{Inst, SrcKind, sgpr};

#[inline(always)]
pub(in crate::exec) fn dst(i: &Inst) -> u8 {
    i.dst as u8
}

/// One source; SCC stays.
#[inline(always)]
pub(super) fn keep1<const N: usize>(
    w: &mut Wave<N>,
    i: &Inst,
    code: &Code,
    f: impl Fn(u32) -> u32,
) {
    let r = f(w.s_src32(i.src[0], code));
    w.set_s32(dst(i), r);
}

#[inline(always)]
pub(super) fn keep1x64<const N: usize>(
    w: &mut Wave<N>,
    i: &Inst,
    code: &Code,
    f: impl Fn(u64) -> u64,
) {
    let r = f(w.s_src64(i.src[0], code));
    w.set_s64(dst(i), r);
}

#[inline(always)]
pub(super) fn keep2<const N: usize>(
    w: &mut Wave<N>,
    i: &Inst,
    code: &Code,
    f: impl Fn(u32, u32) -> u32,
) {
    let r = f(w.s_src32(i.src[0], code), w.s_src32(i.src[1], code));
    w.set_s32(dst(i), r);
}

/// SCC tells whether the result has a bit set.
#[inline(always)]
pub(super) fn bits1<const N: usize>(
    w: &mut Wave<N>,
    i: &Inst,
    code: &Code,
    f: impl Fn(u32) -> u32,
) {
    let r = f(w.s_src32(i.src[0], code));
    w.set_s32(dst(i), r);
    w.scc = r != 0;
}

#[inline(always)]
pub(super) fn bits1x64<const N: usize>(
    w: &mut Wave<N>,
    i: &Inst,
    code: &Code,
    f: impl Fn(u64) -> u64,
) {
    let r = f(w.s_src64(i.src[0], code));
    w.set_s64(dst(i), r);
    w.scc = r != 0;
}

#[inline(always)]
pub(super) fn bits2<const N: usize>(
    w: &mut Wave<N>,
    i: &Inst,
    code: &Code,
    f: impl Fn(u32, u32) -> u32,
) {
    let r = f(w.s_src32(i.src[0], code), w.s_src32(i.src[1], code));
    w.set_s32(dst(i), r);
    w.scc = r != 0;
}

#[inline(always)]
pub(super) fn bits2x64<const N: usize>(
    w: &mut Wave<N>,
    i: &Inst,
    code: &Code,
    f: impl Fn(u64, u64) -> u64,
) {
    let r = f(w.s_src64(i.src[0], code), w.s_src64(i.src[1], code));
    w.set_s64(dst(i), r);
    w.scc = r != 0;
}

/// 64-bit value, 32-bit shift or field operand.
#[inline(always)]
pub(super) fn shift64<const N: usize>(
    w: &mut Wave<N>,
    i: &Inst,
    code: &Code,
    f: impl Fn(u64, u32) -> u64,
) {
    let r = f(w.s_src64(i.src[0], code), w.s_src32(i.src[1], code));
    w.set_s64(dst(i), r);
    w.scc = r != 0;
}

/// 64-bit source, 32-bit result, SCC stays.
#[inline(always)]
pub(super) fn count64<const N: usize>(
    w: &mut Wave<N>,
    i: &Inst,
    code: &Code,
    f: impl Fn(u64) -> u32,
) -> u32 {
    let r = f(w.s_src64(i.src[0], code));
    w.set_s32(dst(i), r);
    r
}

/// Result and SCC from both sources and SCC.
#[inline(always)]
pub(super) fn carry<const N: usize>(
    w: &mut Wave<N>,
    i: &Inst,
    code: &Code,
    f: impl Fn(u32, u32, bool) -> (u32, bool),
) {
    let (r, scc) = f(w.s_src32(i.src[0], code), w.s_src32(i.src[1], code), w.scc);
    w.set_s32(dst(i), r);
    w.scc = scc;
}

#[inline(always)]
pub(super) fn compare<const N: usize>(
    w: &mut Wave<N>,
    i: &Inst,
    code: &Code,
    f: impl Fn(u32, u32) -> bool,
) {
    w.scc = f(w.s_src32(i.src[0], code), w.s_src32(i.src[1], code));
}

/// The immediate is sign-extended; unsigned comparisons take its 16 bits. What is compared stands
/// in the field of the destination.
#[inline(always)]
pub(super) fn compare_k<const N: usize>(
    w: &mut Wave<N>,
    i: &Inst,
    code: &Code,
    f: impl Fn(u32, u32) -> bool,
) {
    w.scc = f(w.s_src32(i.src[0], code), i.imm as u32);
}

#[inline(always)]
pub(super) fn overflowing(f: impl Fn(i32, i32) -> (i32, bool), a: u32, b: u32) -> (u32, bool) {
    let (r, overflow) = f(a as i32, b as i32);
    (r as u32, overflow)
}

#[inline(always)]
pub(super) fn pick(a: u32, b: u32, first: bool) -> (u32, bool) {
    (if first { a } else { b }, first)
}

#[inline(always)]
pub(super) fn shift_add(a: u32, shift: u32, b: u32) -> (u32, bool) {
    let sum = (u64::from(a) << shift) + u64::from(b);
    (sum as u32, sum >> 32 != 0)
}

#[inline(always)]
pub(super) fn low_bits(count: u32) -> u32 {
    if count >= 32 { !0 } else { (1 << count) - 1 }
}

#[inline(always)]
pub(super) fn low_bits64(count: u32) -> u64 {
    if count >= 64 { !0 } else { (1 << count) - 1 }
}

/// The low `width` bits of `value`, sign-extended.
#[inline(always)]
pub(super) fn sign_extend(value: u64, width: u32) -> u64 {
    if width == 0 { 0 } else { ((value << (64 - width)) as i64 >> (64 - width)) as u64 }
}

pub(super) fn quadmask(a: u64) -> u64 {
    (0..16).fold(0, |r, quad| r | u64::from(a >> (4 * quad) & 15 != 0) << quad)
}

pub(super) fn whole_quads(a: u64) -> u64 {
    (0..16).fold(0, |r, quad| if a >> (4 * quad) & 15 != 0 { r | 15 << (4 * quad) } else { r })
}

/// The register M0 places behind `base`; outside the file it reads as zero.
#[cold]
pub(super) fn relative<const N: usize>(w: &Wave<N>, base: SrcKind) -> u8 {
    let SrcKind::S(base) = base else { return sgpr::NULL };
    match u32::from(base).checked_add(w.s32(sgpr::M0)) {
        Some(n) if n < u32::from(sgpr::VCC_LO) => n as u8,
        _ => sgpr::NULL,
    }
}

/// Both register numbers are offset: the source's by M0\[9:0\], the destination's by M0\[25:16\].
#[cold]
pub(super) fn move_relative2<const N: usize>(w: &mut Wave<N>, i: &Inst) {
    let m0 = w.s32(sgpr::M0);
    let number = |base: u8, by: u32| {
        let number = u32::from(base) + by;
        (number < u32::from(sgpr::VCC_LO)).then_some(number as u8)
    };
    let from = match i.src[0].kind() {
        SrcKind::S(base) => number(base, m0 & 0x3ff),
        _ => None,
    };
    let value = w.s32(from.unwrap_or(sgpr::NULL));
    w.set_s32(number(dst(i), m0 >> 16 & 0x3ff).unwrap_or(sgpr::SINK), value);
}

#[cold]
pub(super) fn relative_dst<const N: usize>(w: &Wave<N>, i: &Inst) -> u8 {
    match relative(w, SrcKind::S(dst(i))) {
        sgpr::NULL => sgpr::SINK,
        n => n,
    }
}

#[inline(always)]
pub(super) fn save_exec64<const N: usize>(
    w: &mut Wave<N>,
    i: &Inst,
    code: &Code,
    f: impl Fn(u64, u64) -> u64,
) {
    let source = w.s_src64(i.src[0], code);
    let exec = w.s64(sgpr::EXEC_LO);
    w.set_s64(dst(i), exec);
    let new = f(source, exec);
    w.set_s64(sgpr::EXEC_LO, new);
    w.scc = new != 0;
}

#[inline(always)]
pub(super) fn save_exec32<const N: usize>(
    w: &mut Wave<N>,
    i: &Inst,
    code: &Code,
    f: impl Fn(u32, u32) -> u32,
) {
    let source = w.s_src32(i.src[0], code);
    let exec = w.s32(sgpr::EXEC_LO);
    w.set_s32(dst(i), exec);
    let new = f(source, exec);
    w.set_s32(sgpr::EXEC_LO, new);
    w.scc = new != 0;
}

/// EXEC and the destination both receive the result.
#[inline(always)]
pub(super) fn write_exec64<const N: usize>(
    w: &mut Wave<N>,
    i: &Inst,
    code: &Code,
    f: impl Fn(u64, u64) -> u64,
) {
    let new = f(w.s_src64(i.src[0], code), w.s64(sgpr::EXEC_LO));
    w.set_s64(sgpr::EXEC_LO, new);
    w.set_s64(dst(i), new);
    w.scc = new != 0;
}

#[inline(always)]
pub(super) fn write_exec32<const N: usize>(
    w: &mut Wave<N>,
    i: &Inst,
    code: &Code,
    f: impl Fn(u32, u32) -> u32,
) {
    let new = f(w.s_src32(i.src[0], code), w.s32(sgpr::EXEC_LO));
    w.set_s32(sgpr::EXEC_LO, new);
    w.set_s32(dst(i), new);
    w.scc = new != 0;
}
