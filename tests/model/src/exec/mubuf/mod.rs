//! MUBUF and MTBUF: loads, stores and atomics through a buffer descriptor, and the cache operations.
//!
//! Addressing follows "Vega" and "RDNA3" instruction set documents, "Buffer addressing". Out of
//! range loads give zero, stores are dropped.

mod address;
mod convert;
mod format;

use super::atomic::Atomic;
use super::context::{Context, Trouble};
use super::flat::{Part, memory_atomic, operand};
use super::smem::fence;
use super::wave::Wave;
use crate::isa::Op;
use crate::isa::ir::{Inst, flag, sgpr};
use address::{Buffer, accessed};
use format::Data;

/// Declares `step` and `implements` from one list of operations.
macro_rules! buffer_semantics {
    (
        $w:ident, $i:ident, $cx:ident;
        plain { $($($op:ident)|+ => $body:expr,)+ }
        atomics32 { $($a:ident => $ka:ident,)+ }
        atomics64 { $($b:ident => $kb:ident,)+ }
    ) => {
        /// Executes a buffer instruction. `None`: not one; nothing changed.
        #[inline(never)]
        pub(super) fn step<const N: usize>(
            $w: &mut Wave<N>,
            $i: &Inst,
            $cx: &mut Context<'_>,
        ) -> Option<Result<(), Trouble>> {
            Some(match $i.op {
                $($(Op::$op)|+ => $body,)+
                $(Op::$a => atomic($w, $i, $cx, false, Atomic::$ka),)+
                $(Op::$b => atomic($w, $i, $cx, true, Atomic::$kb),)+
                _ => return None,
            })
        }

        /// Whether [`step`] has semantics for `op`.
        pub(super) const fn implements(op: Op) -> bool {
            matches!(op, $($(Op::$op)|+)|+ $(| Op::$a)+ $(| Op::$b)+)
        }
    };
}

buffer_semantics! { w, i, cx;
    plain {
        BufferLoadB32 => load(w, i, cx, Part::B32, 1),
        BufferLoadB64 => load(w, i, cx, Part::B32, 2),
        BufferLoadB96 => load(w, i, cx, Part::B32, 3),
        BufferLoadB128 => load(w, i, cx, Part::B32, 4),
        BufferLoadLdsB32 => load_to_lds(w, i, cx, Part::B32, 1),
        BufferLoadLdsU8 => load_to_lds(w, i, cx, Part::U8, 1),
        BufferLoadLdsI8 => load_to_lds(w, i, cx, Part::I8, 1),
        BufferLoadLdsU16 => load_to_lds(w, i, cx, Part::U16, 1),
        BufferLoadLdsI16 => load_to_lds(w, i, cx, Part::I16, 1),
        BufferLoadU8 => load(w, i, cx, Part::U8, 1),
        BufferLoadI8 => load(w, i, cx, Part::I8, 1),
        BufferLoadU16 => load(w, i, cx, Part::U16, 1),
        BufferLoadI16 => load(w, i, cx, Part::I16, 1),
        BufferLoadD16U8 => load_d16(w, i, cx, Part::U8, false),
        BufferLoadD16I8 => load_d16(w, i, cx, Part::I8, false),
        BufferLoadD16B16 => load_d16(w, i, cx, Part::U16, false),
        BufferLoadD16HiU8 => load_d16(w, i, cx, Part::U8, true),
        BufferLoadD16HiI8 => load_d16(w, i, cx, Part::I8, true),
        BufferLoadD16HiB16 => load_d16(w, i, cx, Part::U16, true),
        BufferStoreB32 => store(w, i, cx, Part::B32, 1, 0),
        BufferStoreB64 => store(w, i, cx, Part::B32, 2, 0),
        BufferStoreB96 => store(w, i, cx, Part::B32, 3, 0),
        BufferStoreB128 => store(w, i, cx, Part::B32, 4, 0),
        BufferStoreB8 => store(w, i, cx, Part::U8, 1, 0),
        BufferStoreB16 => store(w, i, cx, Part::U16, 1, 0),
        BufferStoreD16HiB8 => store(w, i, cx, Part::U8, 1, 16),
        BufferStoreD16HiB16 => store(w, i, cx, Part::U16, 1, 16),
        BufferLoadFormatX | BufferLoadLdsFormatX | TbufferLoadFormatX => format::load(w, i, cx, 1, Data::Words),
        BufferStoreFormatX | TbufferStoreFormatX => format::store(w, i, cx, 1, Data::Words),
        BufferLoadD16FormatX | TbufferLoadD16FormatX => format::load(w, i, cx, 1, Data::Halves),
        BufferStoreD16FormatX | TbufferStoreD16FormatX => format::store(w, i, cx, 1, Data::Halves),
        BufferLoadFormatXy | TbufferLoadFormatXy => format::load(w, i, cx, 2, Data::Words),
        BufferStoreFormatXy | TbufferStoreFormatXy => format::store(w, i, cx, 2, Data::Words),
        BufferLoadD16FormatXy | TbufferLoadD16FormatXy => format::load(w, i, cx, 2, Data::Halves),
        BufferStoreD16FormatXy | TbufferStoreD16FormatXy => format::store(w, i, cx, 2, Data::Halves),
        BufferLoadFormatXyz | TbufferLoadFormatXyz => format::load(w, i, cx, 3, Data::Words),
        BufferStoreFormatXyz | TbufferStoreFormatXyz => format::store(w, i, cx, 3, Data::Words),
        BufferLoadD16FormatXyz | TbufferLoadD16FormatXyz => format::load(w, i, cx, 3, Data::Halves),
        BufferStoreD16FormatXyz | TbufferStoreD16FormatXyz => format::store(w, i, cx, 3, Data::Halves),
        BufferLoadFormatXyzw | TbufferLoadFormatXyzw => format::load(w, i, cx, 4, Data::Words),
        BufferStoreFormatXyzw | TbufferStoreFormatXyzw => format::store(w, i, cx, 4, Data::Words),
        BufferLoadD16FormatXyzw | TbufferLoadD16FormatXyzw => format::load(w, i, cx, 4, Data::Halves),
        BufferStoreD16FormatXyzw | TbufferStoreD16FormatXyzw => format::store(w, i, cx, 4, Data::Halves),
        BufferLoadD16HiFormatX => format::load(w, i, cx, 1, Data::HighHalf),
        BufferStoreD16HiFormatX => format::store(w, i, cx, 1, Data::HighHalf),
        BufferGl0Inv | BufferGl1Inv | BufferInv | BufferInvl2 | BufferWbinvl1 | BufferWbinvl1Vol | BufferWbl2 => fence(),
    }
    atomics32 {
        BufferAtomicSwapB32 => Swap,
        BufferAtomicCmpswapB32 => Cmpswap,
        BufferAtomicCmpswapF32 => Fcmpswap,
        BufferAtomicAddU32 => Add,
        BufferAtomicSubU32 => Sub,
        BufferAtomicCsubU32 => Csub,
        BufferAtomicMinI32 => Smin,
        BufferAtomicMinU32 => Umin,
        BufferAtomicMaxI32 => Smax,
        BufferAtomicMaxU32 => Umax,
        BufferAtomicAndB32 => And,
        BufferAtomicOrB32 => Or,
        BufferAtomicXorB32 => Xor,
        BufferAtomicIncU32 => Inc,
        BufferAtomicDecU32 => Dec,
        BufferAtomicAddF32 => Fadd,
        BufferAtomicMinF32 => Fmin,
        BufferAtomicMaxF32 => Fmax,
        BufferAtomicPkAddF16 => PkAddF16,
    }
    atomics64 {
        BufferAtomicSwapB64 => Swap,
        BufferAtomicCmpswapB64 => Cmpswap,
        BufferAtomicAddU64 => Add,
        BufferAtomicSubU64 => Sub,
        BufferAtomicMinI64 => Smin,
        BufferAtomicMinU64 => Umin,
        BufferAtomicMaxI64 => Smax,
        BufferAtomicMaxU64 => Umax,
        BufferAtomicAndB64 => And,
        BufferAtomicOrB64 => Or,
        BufferAtomicXorB64 => Xor,
        BufferAtomicIncU64 => Inc,
        BufferAtomicDecU64 => Dec,
        BufferAtomicAddF64 => Fadd,
        BufferAtomicMinF64 => Fmin,
        BufferAtomicMaxF64 => Fmax,
    }
}

/// Calls `each` with every active lane in range and the number and address of each dword, for those who watch.
pub(super) fn places<const N: usize>(
    w: &Wave<N>,
    i: &Inst,
    cx: &Context<'_>,
    bytes: u32,
    mut each: impl FnMut(usize, u8, u64),
) {
    let Ok(buffer) = Buffer::new(w, i, cx, bytes, false) else { return };
    for k in 0..bytes.div_ceil(4) {
        let accessed = accessed(w, i, &buffer, k);
        let base = buffer.base.wrapping_add(u64::from(buffer.soffset));
        for lane in (0..N).filter(|&lane| accessed.mask[lane] != 0) {
            each(lane, k as u8, base.wrapping_add(u64::from(accessed.offset[lane])));
        }
    }
}

/// Bytes of an element.
const fn bytes(part: Part) -> u32 {
    match part {
        Part::U8 | Part::I8 => 1,
        Part::U16 | Part::I16 => 2,
        Part::B32 => 4,
    }
}

fn data_register<const N: usize>(w: &Wave<N>, i: &Inst) -> u16 {
    if i.flags & flag::ACC != 0 { w.physical(256 + (i.dst & 255)) as u16 } else { i.dst }
}

#[inline(never)]
fn load<const N: usize>(
    w: &mut Wave<N>,
    i: &Inst,
    cx: &mut Context<'_>,
    part: Part,
    words: u16,
) -> Result<(), Trouble> {
    if i.flags & flag::LDS != 0 {
        return load_to_lds(w, i, cx, part, words);
    }
    let buffer = Buffer::new(w, i, cx, bytes(part) * u32::from(words), false)?;
    let mut rows = [[0; N]; 4];
    for (k, row) in rows.iter_mut().enumerate().take(usize::from(words)) {
        fetch(w, i, cx, &buffer, part, k as u32, row)?;
    }
    let dst = data_register(w, i);
    for (k, row) in rows.iter().enumerate().take(usize::from(words)) {
        w.write_v(dst.wrapping_add(k as u16), row);
    }
    Ok(())
}

/// Loads one element or dword per lane; lanes out of range get zero.
fn fetch<const N: usize>(
    w: &Wave<N>,
    i: &Inst,
    cx: &mut Context<'_>,
    buffer: &Buffer,
    part: Part,
    k: u32,
    row: &mut [u32; N],
) -> Result<(), Trouble> {
    let accessed = accessed(w, i, buffer, k);
    if accessed.exec == 0 {
        *row = [0; N];
        return Ok(());
    }
    let lanes = accessed.lanes(buffer);
    match part {
        Part::U8 => cx.view.gather::<N, u8>(cx.slot, lanes, row),
        Part::I8 => cx.view.gather::<N, i8>(cx.slot, lanes, row),
        Part::U16 => cx.view.gather::<N, u16>(cx.slot, lanes, row),
        Part::I16 => cx.view.gather::<N, i16>(cx.slot, lanes, row),
        Part::B32 => cx.view.gather::<N, u32>(cx.slot, lanes, row),
    }?;
    for lane in 0..N {
        row[lane] &= accessed.mask[lane];
    }
    Ok(())
}

/// The data goes to LDS instead of a register: the `lds` bit of gfx9, operations of their own on
/// gfx11.
#[inline(never)]
fn load_to_lds<const N: usize>(
    w: &Wave<N>,
    i: &Inst,
    cx: &mut Context<'_>,
    part: Part,
    words: u16,
) -> Result<(), Trouble> {
    if words != 1 {
        return Err(Trouble::Illegal);
    }
    let buffer = Buffer::new(w, i, cx, bytes(part), false)?;
    let mut row = [0; N];
    fetch(w, i, cx, &buffer, part, 0, &mut row)?;
    put_in_lds(w, i, cx, &row);
    Ok(())
}

/// Each active lane's dword goes to M0\[15:0\] + immediate + 4 * lane.
fn put_in_lds<const N: usize>(w: &Wave<N>, i: &Inst, cx: &mut Context<'_>, row: &[u32; N]) {
    let start = (w.s32(sgpr::M0) & 0xffff).wrapping_add(i.imm as u32);
    for lane in (0..N).filter(|&lane| w.mask[lane] != 0) {
        cx.lds.write_u32(start.wrapping_add(4 * lane as u32), row[lane]);
    }
}

#[inline(never)]
fn load_d16<const N: usize>(
    w: &mut Wave<N>,
    i: &Inst,
    cx: &mut Context<'_>,
    part: Part,
    high: bool,
) -> Result<(), Trouble> {
    let buffer = Buffer::new(w, i, cx, bytes(part), false)?;
    let mut row = [0; N];
    fetch(w, i, cx, &buffer, part, 0, &mut row)?;
    let dst = data_register(w, i);
    let old = &w.v[usize::from(dst) & 511];
    for k in 0..N {
        row[k] = if high {
            old[k] & 0xffff | row[k] << 16
        } else {
            old[k] & 0xffff_0000 | row[k] & 0xffff
        };
    }
    w.write_v(dst, &row);
    Ok(())
}

#[inline(never)]
fn store<const N: usize>(
    w: &mut Wave<N>,
    i: &Inst,
    cx: &mut Context<'_>,
    part: Part,
    words: u32,
    shift: u32,
) -> Result<(), Trouble> {
    let buffer = Buffer::new(w, i, cx, bytes(part) * words, false)?;
    let first = usize::from(data_register(w, i));
    for k in 0..words {
        let accessed = accessed(w, i, &buffer, k);
        if accessed.exec == 0 {
            continue;
        }
        let data = w.v[(first + k as usize) & 511].map(|value| value >> shift);
        let lanes = accessed.lanes(&buffer);
        match part {
            Part::U8 | Part::I8 => cx.view.scatter::<N, u8>(cx.slot, lanes, &data),
            Part::U16 | Part::I16 => cx.view.scatter::<N, u16>(cx.slot, lanes, &data),
            Part::B32 => cx.view.scatter::<N, u32>(cx.slot, lanes, &data),
        }?;
    }
    Ok(())
}

#[inline(never)]
fn atomic<const N: usize>(
    w: &mut Wave<N>,
    i: &Inst,
    cx: &mut Context<'_>,
    wide: bool,
    kind: Atomic,
) -> Result<(), Trouble> {
    let buffer = Buffer::new(w, i, cx, if wide { 8 } else { 4 }, false)?;
    let first = usize::from(data_register(w, i));
    let words = if wide { 2 } else { 1 };
    let accessed = accessed(w, i, &buffer, 0);
    let mut old = [[0; N]; 2];
    for lane in (0..N).filter(|&lane| accessed.mask[lane] != 0) {
        let at = buffer
            .base
            .wrapping_add(u64::from(buffer.soffset))
            .wrapping_add(u64::from(accessed.offset[lane]));
        let second = if kind.has_second() { operand(w, first + words, lane, wide) } else { 0 };
        let before = memory_atomic(cx, at, wide, kind, operand(w, first, lane, wide), second)?;
        old[0][lane] = before as u32;
        old[1][lane] = (before >> 32) as u32;
    }
    if i.flags & flag::GLC != 0 {
        let dst = data_register(w, i);
        w.write_v(dst, &old[0]);
        if wide {
            w.write_v(dst.wrapping_add(1), &old[1]);
        }
    }
    Ok(())
}
