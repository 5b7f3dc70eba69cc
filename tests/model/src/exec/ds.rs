//! LDS instructions and the lane permutations that share their encoding.

use super::atomic::Atomic;
use super::context::{Context, Trouble};
use super::flat::{lds_atomic, operand};
use super::wave::Wave;
use crate::isa::Op;
use crate::isa::ir::{Inst, Src, SrcKind, flag, sgpr};

/// Declares `step` and `implements` from one list of operations.
macro_rules! lds_semantics {
    (
        $w:ident, $i:ident, $cx:ident;
        plain { $($op:ident => $body:expr,)+ }
        atomics32 { $($a:ident $ar:ident => $ka:ident,)+ }
        atomics64 { $($b:ident $br:ident => $kb:ident,)+ }
        compare32 { $($c:ident $cr:ident => $kc:ident $corder:ident,)+ }
        compare64 { $($d:ident $dr:ident => $kd:ident $dorder:ident,)+ }
    ) => {
        /// Executes an LDS instruction. `None`: not one; nothing changed.
        #[inline(never)]
        pub(super) fn step<const N: usize>(
            $w: &mut Wave<N>,
            $i: &Inst,
            $cx: &mut Context<'_>,
        ) -> Option<Result<(), Trouble>> {
            Some(match $i.op {
                $(Op::$op => $body,)+
                $(
                    Op::$a => atomic($w, $i, $cx, false, Atomic::$ka, Order::Data, false),
                    Op::$ar => atomic($w, $i, $cx, false, Atomic::$ka, Order::Data, true),
                )+
                $(
                    Op::$b => atomic($w, $i, $cx, true, Atomic::$kb, Order::Data, false),
                    Op::$br => atomic($w, $i, $cx, true, Atomic::$kb, Order::Data, true),
                )+
                $(
                    Op::$c => atomic($w, $i, $cx, false, Atomic::$kc, Order::$corder, false),
                    Op::$cr => atomic($w, $i, $cx, false, Atomic::$kc, Order::$corder, true),
                )+
                $(
                    Op::$d => atomic($w, $i, $cx, true, Atomic::$kd, Order::$dorder, false),
                    Op::$dr => atomic($w, $i, $cx, true, Atomic::$kd, Order::$dorder, true),
                )+
                _ => return None,
            })
        }

        /// Whether [`step`] has semantics for `op`.
        pub(super) const fn implements(op: Op) -> bool {
            matches!(
                op,
                $(Op::$op)|+
                $(| Op::$a | Op::$ar)+
                $(| Op::$b | Op::$br)+
                $(| Op::$c | Op::$cr)+
                $(| Op::$d | Op::$dr)+
            )
        }
    };
}

lds_semantics! { w, i, cx;
    plain {
        DsLoadB32 => load::<N, 1>(w, i, cx),
        DsLoadB64 => load::<N, 2>(w, i, cx),
        DsLoadB96 => load::<N, 3>(w, i, cx),
        DsLoadB128 => load::<N, 4>(w, i, cx),
        DsLoadU8 => load_part(w, i, cx, |lds, at| u32::from(lds.read::<1>(at)[0])),
        DsLoadI8 => load_part(w, i, cx, |lds, at| i8::from_le_bytes(lds.read(at)) as u32),
        DsLoadU16 => load_part(w, i, cx, |lds, at| u32::from(u16::from_le_bytes(lds.read(at)))),
        DsLoadI16 => load_part(w, i, cx, |lds, at| i16::from_le_bytes(lds.read(at)) as u32),
        DsLoadU8D16 => load_half(w, i, cx, false, |lds, at| u32::from(lds.read::<1>(at)[0])),
        DsLoadU8D16Hi => load_half(w, i, cx, true, |lds, at| u32::from(lds.read::<1>(at)[0])),
        DsLoadI8D16 => load_half(w, i, cx, false, |lds, at| i8::from_le_bytes(lds.read(at)) as u32),
        DsLoadI8D16Hi => load_half(w, i, cx, true, |lds, at| i8::from_le_bytes(lds.read(at)) as u32),
        DsLoadU16D16 => load_half(w, i, cx, false, |lds, at| u32::from(u16::from_le_bytes(lds.read(at)))),
        DsLoadU16D16Hi => load_half(w, i, cx, true, |lds, at| u32::from(u16::from_le_bytes(lds.read(at)))),
        DsLoad2addrB32 => load_two::<N, 1>(w, i, cx, 1),
        DsLoad2addrB64 => load_two::<N, 2>(w, i, cx, 1),
        DsLoad2addrStride64B32 => load_two::<N, 1>(w, i, cx, 64),
        DsLoad2addrStride64B64 => load_two::<N, 2>(w, i, cx, 64),
        DsLoadAddtidB32 => load_addtid(w, i, cx),
        DsStoreB32 => store::<N, 1>(w, i, cx),
        DsStoreB64 => store::<N, 2>(w, i, cx),
        DsStoreB96 => store::<N, 3>(w, i, cx),
        DsStoreB128 => store::<N, 4>(w, i, cx),
        DsStoreB8 => store_part(w, i, cx, |lds, at, value| lds.write(at, [value as u8])),
        DsStoreB8D16Hi => store_part(w, i, cx, |lds, at, value| lds.write(at, [(value >> 16) as u8])),
        DsStoreB16 => store_part(w, i, cx, |lds, at, value| lds.write(at, (value as u16).to_le_bytes())),
        DsStoreB16D16Hi => store_part(w, i, cx, |lds, at, value| lds.write(at, ((value >> 16) as u16).to_le_bytes())),
        DsStore2addrB32 => store_two::<N, 1>(w, i, cx, 1),
        DsStore2addrB64 => store_two::<N, 2>(w, i, cx, 1),
        DsStore2addrStride64B32 => store_two::<N, 1>(w, i, cx, 64),
        DsStore2addrStride64B64 => store_two::<N, 2>(w, i, cx, 64),
        DsStoreAddtidB32 => store_addtid(w, i, cx),
        DsStorexchgRtnB32 => atomic(w, i, cx, false, Atomic::Swap, Order::Data, true),
        DsStorexchgRtnB64 => atomic(w, i, cx, true, Atomic::Swap, Order::Data, true),
        DsStorexchg2addrRtnB32 => exchange_two::<N, 1>(w, i, cx, 1),
        DsStorexchg2addrRtnB64 => exchange_two::<N, 2>(w, i, cx, 1),
        DsStorexchg2addrStride64RtnB32 => exchange_two::<N, 1>(w, i, cx, 64),
        DsStorexchg2addrStride64RtnB64 => exchange_two::<N, 2>(w, i, cx, 64),
        DsWrapRtnB32 => atomic(w, i, cx, false, Atomic::Wrap, Order::Data, true),
        DsAppend => append(w, i, cx, true),
        DsConsume => append(w, i, cx, false),
        DsSwizzleB32 => swizzle(w, i),
        DsPermuteB32 => permute(w, i, cx),
        DsBpermuteB32 => bpermute(w, i, cx),
    }
    atomics32 {
        DsAddU32 DsAddRtnU32 => Add,
        DsSubU32 DsSubRtnU32 => Sub,
        DsRsubU32 DsRsubRtnU32 => Rsub,
        DsIncU32 DsIncRtnU32 => Inc,
        DsDecU32 DsDecRtnU32 => Dec,
        DsMinI32 DsMinRtnI32 => Smin,
        DsMaxI32 DsMaxRtnI32 => Smax,
        DsMinU32 DsMinRtnU32 => Umin,
        DsMaxU32 DsMaxRtnU32 => Umax,
        DsAndB32 DsAndRtnB32 => And,
        DsOrB32 DsOrRtnB32 => Or,
        DsXorB32 DsXorRtnB32 => Xor,
        DsMskorB32 DsMskorRtnB32 => Mskor,
        DsAddF32 DsAddRtnF32 => Fadd,
        DsMinF32 DsMinRtnF32 => Fmin,
        DsMaxF32 DsMaxRtnF32 => Fmax,
        DsPkAddF16 DsPkAddRtnF16 => PkAddF16,
        DsPkAddBf16 DsPkAddRtnBf16 => PkAddBf16,
    }
    atomics64 {
        DsAddU64 DsAddRtnU64 => Add,
        DsSubU64 DsSubRtnU64 => Sub,
        DsRsubU64 DsRsubRtnU64 => Rsub,
        DsIncU64 DsIncRtnU64 => Inc,
        DsDecU64 DsDecRtnU64 => Dec,
        DsMinI64 DsMinRtnI64 => Smin,
        DsMaxI64 DsMaxRtnI64 => Smax,
        DsMinU64 DsMinRtnU64 => Umin,
        DsMaxU64 DsMaxRtnU64 => Umax,
        DsAndB64 DsAndRtnB64 => And,
        DsOrB64 DsOrRtnB64 => Or,
        DsXorB64 DsXorRtnB64 => Xor,
        DsMskorB64 DsMskorRtnB64 => Mskor,
        DsAddF64 DsAddRtnF64 => Fadd,
        DsMinF64 DsMinRtnF64 => Fmin,
        DsMaxF64 DsMaxRtnF64 => Fmax,
    }
    compare32 {
        DsCmpstB32 DsCmpstRtnB32 => Cmpswap Comparand,
        DsCmpstF32 DsCmpstRtnF32 => Fcmpswap Comparand,
        DsCmpstoreB32 DsCmpstoreRtnB32 => Cmpswap Data,
        DsCmpstoreF32 DsCmpstoreRtnF32 => Fcmpswap Data,
    }
    compare64 {
        DsCmpstB64 DsCmpstRtnB64 => Cmpswap Comparand,
        DsCmpstF64 DsCmpstRtnF64 => Fcmpswap Comparand,
        DsCmpstoreB64 DsCmpstoreRtnB64 => Cmpswap Data,
        DsCmpstoreF64 DsCmpstoreRtnF64 => Fcmpswap Data,
    }
}

/// Which operand comes first: gfx9's cmpst has the comparand in data0, gfx11's cmpstore in data1.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    Data,
    Comparand,
}

#[inline(always)]
fn row(src: Src) -> usize {
    match src.kind() {
        SrcKind::V(n) => usize::from(n) & 511,
        _ => 0,
    }
}

/// First row of a data operand, AccVGPRs resolved.
#[inline(always)]
fn data_row<const N: usize>(w: &Wave<N>, i: &Inst, src: Src) -> usize {
    let row = row(src);
    if i.flags & flag::ACC != 0 { w.physical(256 + (row as u16 & 255)) } else { row }
}

#[inline(always)]
fn dst<const N: usize>(w: &Wave<N>, i: &Inst) -> u16 {
    if i.flags & flag::ACC != 0 { w.physical(256 + (i.dst & 255)) as u16 } else { i.dst }
}

/// The global data share is not there on these GPUs' compute queues.
#[inline(always)]
fn local(i: &Inst) -> Result<(), Trouble> {
    if i.flags & flag::GDS != 0 { Err(Trouble::Illegal) } else { Ok(()) }
}

/// Applies `f` to every active lane with its byte offset in LDS.
#[inline(always)]
fn each<const N: usize>(w: &Wave<N>, i: &Inst, mut f: impl FnMut(usize, u32)) {
    let addresses = &w.v[row(i.src[0])];
    w.for_active(|lane| f(lane & (N - 1), addresses[lane & (N - 1)].wrapping_add(i.imm as u32)));
}

#[inline(never)]
fn load<const N: usize, const W: usize>(
    w: &mut Wave<N>,
    i: &Inst,
    cx: &mut Context<'_>,
) -> Result<(), Trouble> {
    local(i)?;
    let mut out = [[0; N]; W];
    let lds = &cx.lds;
    each(w, i, |lane, at| {
        for (k, row) in out.iter_mut().enumerate() {
            row[lane] = lds.read_u32(at.wrapping_add(4 * k as u32));
        }
    });
    let dst = dst(w, i);
    for (k, row) in out.iter().enumerate() {
        w.write_v(dst.wrapping_add(k as u16), row);
    }
    Ok(())
}

#[inline(never)]
fn load_part<const N: usize>(
    w: &mut Wave<N>,
    i: &Inst,
    cx: &mut Context<'_>,
    f: impl Fn(&super::lds::Lds, u32) -> u32,
) -> Result<(), Trouble> {
    local(i)?;
    let mut out = [0; N];
    each(w, i, |lane, at| out[lane] = f(&cx.lds, at));
    let dst = dst(w, i);
    w.write_v(dst, &out);
    Ok(())
}

/// Loads into one half of the register and keeps the other.
#[inline(never)]
fn load_half<const N: usize>(
    w: &mut Wave<N>,
    i: &Inst,
    cx: &mut Context<'_>,
    high: bool,
    f: impl Fn(&super::lds::Lds, u32) -> u32,
) -> Result<(), Trouble> {
    local(i)?;
    let dst = dst(w, i);
    let mut out = w.v[usize::from(dst) & 511];
    each(w, i, |lane, at| {
        let value = f(&cx.lds, at);
        out[lane] = if high {
            out[lane] & 0xffff | value << 16
        } else {
            out[lane] & 0xffff_0000 | value & 0xffff
        };
    });
    w.write_v(dst, &out);
    Ok(())
}

/// The two offsets of a two-address form, in bytes.
#[inline(always)]
fn two_offsets(i: &Inst, bytes: u32, stride: u32) -> [u32; 2] {
    let imm = i.imm as u32;
    [(imm & 0xff) * bytes * stride, (imm >> 8 & 0xff) * bytes * stride]
}

#[inline(never)]
fn load_two<const N: usize, const W: usize>(
    w: &mut Wave<N>,
    i: &Inst,
    cx: &mut Context<'_>,
    stride: u32,
) -> Result<(), Trouble> {
    local(i)?;
    let offsets = two_offsets(i, 4 * W as u32, stride);
    let addresses = &w.v[row(i.src[0])];
    let mut out = [[[0; N]; W]; 2];
    w.for_active(|lane| {
        let lane = lane & (N - 1);
        for (part, offset) in out.iter_mut().zip(offsets) {
            for (k, row) in part.iter_mut().enumerate() {
                row[lane] = cx
                    .lds
                    .read_u32(addresses[lane].wrapping_add(offset).wrapping_add(4 * k as u32));
            }
        }
    });
    let dst = dst(w, i);
    for (k, row) in out.as_flattened().iter().enumerate() {
        w.write_v(dst.wrapping_add(k as u16), row);
    }
    Ok(())
}

#[inline(never)]
fn store<const N: usize, const W: usize>(
    w: &mut Wave<N>,
    i: &Inst,
    cx: &mut Context<'_>,
) -> Result<(), Trouble> {
    local(i)?;
    let data = data_row(w, i, i.src[1]);
    each(w, i, |lane, at| {
        for k in 0..W {
            cx.lds.write_u32(at.wrapping_add(4 * k as u32), w.v[(data + k) & 511][lane]);
        }
    });
    Ok(())
}

#[inline(never)]
fn store_part<const N: usize>(
    w: &mut Wave<N>,
    i: &Inst,
    cx: &mut Context<'_>,
    f: impl Fn(&mut super::lds::Lds, u32, u32),
) -> Result<(), Trouble> {
    local(i)?;
    let data = data_row(w, i, i.src[1]);
    each(w, i, |lane, at| f(&mut cx.lds, at, w.v[data][lane]));
    Ok(())
}

#[inline(never)]
fn store_two<const N: usize, const W: usize>(
    w: &mut Wave<N>,
    i: &Inst,
    cx: &mut Context<'_>,
    stride: u32,
) -> Result<(), Trouble> {
    local(i)?;
    let offsets = two_offsets(i, 4 * W as u32, stride);
    let addresses = &w.v[row(i.src[0])];
    let data = [data_row(w, i, i.src[1]), data_row(w, i, i.src[2])];
    w.for_active(|lane| {
        let lane = lane & (N - 1);
        for (first, offset) in data.into_iter().zip(offsets) {
            for k in 0..W {
                let at = addresses[lane].wrapping_add(offset).wrapping_add(4 * k as u32);
                cx.lds.write_u32(at, w.v[(first + k) & 511][lane]);
            }
        }
    });
    Ok(())
}

#[inline(never)]
fn exchange_two<const N: usize, const W: usize>(
    w: &mut Wave<N>,
    i: &Inst,
    cx: &mut Context<'_>,
    stride: u32,
) -> Result<(), Trouble> {
    local(i)?;
    let offsets = two_offsets(i, 4 * W as u32, stride);
    let addresses = &w.v[row(i.src[0])];
    let data = [data_row(w, i, i.src[1]), data_row(w, i, i.src[2])];
    let mut out = [[[0; N]; W]; 2];
    w.for_active(|lane| {
        let lane = lane & (N - 1);
        for ((part, first), offset) in out.iter_mut().zip(data).zip(offsets) {
            for (k, row) in part.iter_mut().enumerate() {
                let at = addresses[lane].wrapping_add(offset).wrapping_add(4 * k as u32);
                row[lane] = cx.lds.read_u32(at);
                cx.lds.write_u32(at, w.v[(first + k) & 511][lane]);
            }
        }
    });
    let dst = dst(w, i);
    for (k, row) in out.as_flattened().iter().enumerate() {
        w.write_v(dst.wrapping_add(k as u16), row);
    }
    Ok(())
}

/// M0\[15:0\] + offset + 4 * lane.
fn addtid<const N: usize>(w: &Wave<N>, i: &Inst, lane: usize) -> u32 {
    (w.s32(sgpr::M0) & 0xffff).wrapping_add(i.imm as u32).wrapping_add(4 * lane as u32)
}

#[inline(never)]
fn load_addtid<const N: usize>(
    w: &mut Wave<N>,
    i: &Inst,
    cx: &mut Context<'_>,
) -> Result<(), Trouble> {
    local(i)?;
    let out = std::array::from_fn(|lane| cx.lds.read_u32(addtid(w, i, lane)));
    let dst = dst(w, i);
    w.write_v(dst, &out);
    Ok(())
}

#[inline(never)]
fn store_addtid<const N: usize>(
    w: &mut Wave<N>,
    i: &Inst,
    cx: &mut Context<'_>,
) -> Result<(), Trouble> {
    local(i)?;
    let data = data_row(w, i, i.src[1]);
    w.for_active(|lane| cx.lds.write_u32(addtid(w, i, lane), w.v[data][lane & (N - 1)]));
    Ok(())
}

#[inline(never)]
fn atomic<const N: usize>(
    w: &mut Wave<N>,
    i: &Inst,
    cx: &mut Context<'_>,
    wide: bool,
    kind: Atomic,
    order: Order,
    returns: bool,
) -> Result<(), Trouble> {
    local(i)?;
    let (mut first, mut second) = (data_row(w, i, i.src[1]), data_row(w, i, i.src[2]));
    if order == Order::Comparand {
        std::mem::swap(&mut first, &mut second);
    }
    let mut old = [[0; N]; 2];
    let mut result = Ok(());
    each(w, i, |lane, at| {
        if result.is_err() {
            return;
        }
        let one = operand(w, first, lane, wide);
        let two = if kind.has_second() { operand(w, second, lane, wide) } else { 0 };
        match lds_atomic(cx, at, wide, kind, one, two) {
            Ok(before) => {
                old[0][lane] = before as u32;
                old[1][lane] = (before >> 32) as u32;
            }
            Err(trouble) => result = Err(trouble),
        }
    });
    result?;
    if returns {
        let dst = dst(w, i);
        w.write_v(dst, &old[0]);
        if wide {
            w.write_v(dst.wrapping_add(1), &old[1]);
        }
    }
    Ok(())
}

/// Adds the number of active lanes to (or subtracts it from) the dword at M0\[31:16\] + offset;
/// every active lane gets the old value.
#[inline(never)]
fn append<const N: usize>(
    w: &mut Wave<N>,
    i: &Inst,
    cx: &mut Context<'_>,
    add: bool,
) -> Result<(), Trouble> {
    local(i)?;
    let count = w.exec().count_ones();
    if count == 0 {
        return Ok(());
    }
    let at = (w.s32(sgpr::M0) >> 16).wrapping_add(i.imm as u32);
    let old = cx.lds.read_u32(at);
    cx.lds.write_u32(at, if add { old.wrapping_add(count) } else { old.wrapping_sub(count) });
    let dst = dst(w, i);
    w.write_v(dst, &[old; N]);
    Ok(())
}

/// The lane each lane reads from.
fn swizzle_source(offset: u32, lane: u32) -> u32 {
    let group = lane & !31;
    let low = lane & 31;
    if offset >= 0xe000 {
        // FFT: bit reversal above the masked bits.
        let mask = offset & 31;
        return group | low.reverse_bits() >> 27 >> mask.count_ones() | low & mask;
    }
    if offset >= 0xc000 {
        let (mask, count) = (offset & 31, offset >> 5 & 31);
        let count = if offset >> 10 & 1 != 0 { 32 - count } else { count };
        return group | low & mask | (low + count) & 31 & !mask;
    }
    if offset >= 0x8000 {
        return lane & !3 | offset >> (2 * (lane & 3)) & 3;
    }
    group | ((low & offset & 31 | offset >> 5 & 31) ^ offset >> 10 & 31)
}

#[inline(never)]
fn swizzle<const N: usize>(w: &mut Wave<N>, i: &Inst) -> Result<(), Trouble> {
    let source = &w.v[row(i.src[0])];
    let out = std::array::from_fn(|lane| {
        let from = swizzle_source(i.imm as u32 & 0xffff, lane as u32) as usize & (N - 1);
        source[from] & w.mask[from]
    });
    w.write_v(i.dst, &out);
    Ok(())
}

/// Lanes among which an address selects: gfx11 permutes within halves of a wave64.
fn reach<const N: usize>(cx: &Context<'_>) -> usize {
    if cx.env.target.is_gfx11() { 32 } else { N }
}

#[inline(never)]
fn permute<const N: usize>(w: &mut Wave<N>, i: &Inst, cx: &mut Context<'_>) -> Result<(), Trouble> {
    let reach = reach::<N>(cx);
    let data = data_row(w, i, i.src[1]);
    let mut out = [0; N];
    each(w, i, |lane, at| {
        let to = lane & !(reach - 1) | (at / 4) as usize & (reach - 1);
        out[to & (N - 1)] = w.v[data][lane];
    });
    let dst = dst(w, i);
    w.write_v(dst, &out);
    Ok(())
}

#[inline(never)]
fn bpermute<const N: usize>(
    w: &mut Wave<N>,
    i: &Inst,
    cx: &mut Context<'_>,
) -> Result<(), Trouble> {
    let reach = reach::<N>(cx);
    let data = data_row(w, i, i.src[1]);
    let mut out = [0; N];
    each(w, i, |lane, at| {
        let from = (lane & !(reach - 1) | (at / 4) as usize & (reach - 1)) & (N - 1);
        out[lane] = w.v[data][from] & w.mask[from];
    });
    let dst = dst(w, i);
    w.write_v(dst, &out);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::swizzle_source;

    #[test]
    fn swizzle_modes_pick_the_documented_lanes() {
        // LLVM's assembler: swizzle(SWAP,1) is 0x041f, swizzle(BROADCAST,8,2) 0x0058,
        // swizzle(QUAD_PERM,1,0,3,2) 0x80b1, swizzle(REVERSE,8) 0x1c1f.
        assert_eq!(
            (0..4).map(|lane| swizzle_source(0x041f, lane)).collect::<Vec<_>>(),
            [1, 0, 3, 2]
        );
        assert_eq!((8..10).map(|lane| swizzle_source(0x0058, lane)).collect::<Vec<_>>(), [10, 10]);
        assert_eq!(
            (32..36).map(|lane| swizzle_source(0x80b1, lane)).collect::<Vec<_>>(),
            [33, 32, 35, 34]
        );
        assert_eq!((40..42).map(|lane| swizzle_source(0x1c1f, lane)).collect::<Vec<_>>(), [47, 46]);
    }
}
