//! MUBUF: loads, stores and atomics through a buffer descriptor, and the cache operations.
//!
//! Addressing follows "Vega" and "RDNA3" instruction set documents, "Buffer addressing". Out of
//! range loads give zero, stores are dropped.

use super::atomic::Atomic;
use super::context::{Context, Trouble};
use super::flat::{Part, memory_atomic, operand};
use super::smem::fence;
use super::wave::Wave;
use crate::isa::Op;
use crate::isa::ir::{Inst, SrcKind, flag};
use crate::memory::Lanes;

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

/// When a lane's access is out of range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bounds {
    /// Record index against their number.
    Index,
    /// Record index, and the offset inside the record against the stride.
    IndexAndOffset,
    /// Byte offset against the size; each dword on its own.
    RawDword,
    /// Byte offset with the whole payload against the size.
    RawWhole,
    /// Never, unless the buffer has no records.
    Unchecked,
}

/// A decoded buffer descriptor, and its use by one instruction.
#[derive(Clone, Copy, Debug)]
struct Buffer {
    base: u64,
    stride: u32,
    records: u32,
    swizzle: bool,
    index_stride: u32,
    add_tid: bool,
    bounds: Bounds,
    /// Scalar offset: outside the swizzle.
    soffset: u32,
    /// What a lane moves, and how many of them.
    part: Part,
    words: u32,
}

impl Buffer {
    /// Bytes a lane moves.
    fn bytes(&self) -> u32 {
        match self.part {
            Part::U8 | Part::I8 => 1,
            Part::U16 | Part::I16 => 2,
            Part::B32 => 4 * self.words,
        }
    }

    fn new<const N: usize>(
        w: &Wave<N>,
        i: &Inst,
        cx: &Context<'_>,
        part: Part,
        words: u32,
    ) -> Result<Self, Trouble> {
        let SrcKind::S(v) = i.src[1].kind() else { return Err(Trouble::Illegal) };
        let word = [0, 1, 2, 3].map(|k| w.s32(v.wrapping_add(k)));
        let gfx9 = cx.env.target.is_gfx9();
        let swizzle = if gfx9 { word[1] >> 31 != 0 } else { word[1] >> 30 != 0 };
        let add_tid = word[3] >> 23 & 1 != 0;
        let mut stride = word[1] >> 16 & 0x3fff;
        if gfx9 && add_tid {
            // With ADD_TID_ENABLE the data format field extends the stride.
            stride |= (word[3] >> 15 & 15) << 14;
        }
        let soffset = w.s_src32(i.src[2], &cx.cache.code);
        let bounds = if gfx9 {
            if stride == 0 || !swizzle { Bounds::RawDword } else { Bounds::Index }
        } else {
            match word[3] >> 28 & 3 {
                0 => Bounds::IndexAndOffset,
                1 => Bounds::Index,
                2 => Bounds::Unchecked,
                _ => Bounds::RawWhole,
            }
        };
        Ok(Self {
            base: u64::from(word[0]) | u64::from(word[1] & 0xffff) << 32,
            stride,
            records: word[2],
            swizzle,
            index_stride: 8 << (word[3] >> 21 & 3),
            add_tid,
            bounds,
            soffset,
            part,
            words,
        })
    }

    /// Byte offset of a record's byte, without base and scalar offset.
    fn place(&self, index: u32, offset: u32) -> u32 {
        if !self.swizzle {
            return index.wrapping_mul(self.stride).wrapping_add(offset);
        }
        let (index_high, index_low) = (index / self.index_stride, index % self.index_stride);
        let (offset_high, offset_low) = (offset & !3, offset & 3);
        index_high
            .wrapping_mul(self.stride)
            .wrapping_add(offset_high)
            .wrapping_mul(self.index_stride)
            .wrapping_add(index_low * 4)
            .wrapping_add(offset_low)
    }

    /// Whether `bytes` bytes of a record are in range.
    fn allows(&self, index: u32, offset: u32, place: u32, bytes: u32) -> bool {
        let (records, place) = (u64::from(self.records), u64::from(place));
        match self.bounds {
            Bounds::Index => index < self.records,
            Bounds::IndexAndOffset => {
                index < self.records
                    && (self.stride == 0
                        || u64::from(offset) + u64::from(bytes) <= u64::from(self.stride))
            }
            Bounds::RawDword => place + u64::from(bytes) + u64::from(self.soffset) <= records,
            Bounds::RawWhole => place + u64::from(bytes) <= records,
            Bounds::Unchecked => self.records != 0,
        }
    }
}

/// Offsets and mask of the lanes in range, for dword `k` of `bytes` bytes.
struct Accessed<const N: usize> {
    offset: [u32; N],
    mask: [u32; N],
    exec: u64,
}

impl<const N: usize> Accessed<N> {
    fn lanes(&self, buffer: &Buffer) -> Lanes<'_, N> {
        let base = buffer.base.wrapping_add(u64::from(buffer.soffset));
        Lanes { base, offset: &self.offset, mask: &self.mask, exec: self.exec }
    }
}

fn accessed<const N: usize>(w: &Wave<N>, i: &Inst, buffer: &Buffer, k: u32) -> Accessed<N> {
    let bytes = buffer.bytes();
    let row = match i.src[0].kind() {
        SrcKind::V(n) => usize::from(n),
        _ => 0,
    };
    let (idxen, offen) = (i.flags & flag::IDXEN != 0, i.flags & flag::OFFEN != 0);
    let offset_row = if idxen { row + 1 } else { row };
    let mut result = Accessed { offset: [0; N], mask: [0; N], exec: 0 };
    let whole = buffer.bounds == Bounds::RawWhole || buffer.bounds == Bounds::IndexAndOffset;
    for lane in 0..N {
        let mut index = if idxen { w.v[row & 511][lane] } else { 0 };
        if buffer.add_tid {
            index = index.wrapping_add(lane as u32);
        }
        let vector = if offen { w.v[offset_row & 511][lane] } else { 0 };
        let start = vector.wrapping_add(i.imm as u32);
        let offset = start.wrapping_add(4 * k);
        let place = buffer.place(index, offset);
        let inside = if whole {
            buffer.allows(index, start, buffer.place(index, start), bytes)
        } else {
            buffer.allows(index, offset, place, bytes.min(4))
        };
        result.offset[lane] = place;
        if inside && w.mask[lane] != 0 {
            result.mask[lane] = !0;
            result.exec |= 1 << lane;
        }
    }
    result
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
    let buffer = Buffer::new(w, i, cx, part, u32::from(words))?;
    let mut rows = [[0; N]; 4];
    for (k, row) in rows.iter_mut().enumerate().take(usize::from(words)) {
        fetch(w, i, cx, &buffer, k as u32, row)?;
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
    k: u32,
    row: &mut [u32; N],
) -> Result<(), Trouble> {
    let accessed = accessed(w, i, buffer, k);
    if accessed.exec == 0 {
        *row = [0; N];
        return Ok(());
    }
    let lanes = accessed.lanes(buffer);
    match buffer.part {
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

/// `lds` bit: the data goes to LDS at M0 + immediate + 4 * lane instead of a register (gfx9).
#[inline(never)]
fn load_to_lds<const N: usize>(
    w: &mut Wave<N>,
    i: &Inst,
    cx: &mut Context<'_>,
    part: Part,
    words: u16,
) -> Result<(), Trouble> {
    if words != 1 {
        return Err(Trouble::Illegal);
    }
    let buffer = Buffer::new(w, i, cx, part, 1)?;
    let mut row = [0; N];
    fetch(w, i, cx, &buffer, 0, &mut row)?;
    let start = (w.s32(crate::isa::ir::sgpr::M0) & 0xffff).wrapping_add(i.imm as u32);
    for lane in (0..N).filter(|&lane| w.mask[lane] != 0) {
        cx.lds.write_u32(start.wrapping_add(4 * lane as u32), row[lane]);
    }
    Ok(())
}

#[inline(never)]
fn load_d16<const N: usize>(
    w: &mut Wave<N>,
    i: &Inst,
    cx: &mut Context<'_>,
    part: Part,
    high: bool,
) -> Result<(), Trouble> {
    let buffer = Buffer::new(w, i, cx, part, 1)?;
    let mut row = [0; N];
    fetch(w, i, cx, &buffer, 0, &mut row)?;
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
    let buffer = Buffer::new(w, i, cx, part, words)?;
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
    let buffer = Buffer::new(w, i, cx, Part::B32, if wide { 2 } else { 1 })?;
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
