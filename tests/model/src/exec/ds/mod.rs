//! LDS instructions and the lane permutations that share their encoding.

mod access;
mod atomics;
mod lanes;

use super::atomic::Atomic;
use super::context::{Context, Trouble};
use super::gws;
use super::wave::Wave;
use crate::isa::Op;
use crate::isa::ir::{Inst, Src, SrcKind, flag};
use access::{
    load, load_addtid, load_half, load_part, load_two, store, store_addtid, store_part, store_two,
};
use atomics::{append, atomic, conditional_exchange, exchange_two, source2};
use lanes::{bpermute, permute, swizzle};

/// Declares `step` and `implements` from one list of operations.
macro_rules! lds_semantics {
    (
        $w:ident, $i:ident, $cx:ident;
        plain { $($op:ident => $body:expr,)+ }
        atomics32 { $($a:ident $ar:ident => $ka:ident,)+ }
        atomics64 { $($b:ident $br:ident => $kb:ident,)+ }
        compare32 { $($c:ident $cr:ident => $kc:ident $corder:ident,)+ }
        compare64 { $($d:ident $dr:ident => $kd:ident $dorder:ident,)+ }
        source2 { $($e:ident $wide:literal => $ke:ident,)+ }
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
                $(Op::$e => source2($w, $i, $cx, $wide, Atomic::$ke),)+
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
                $(| Op::$e)+
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
        DsCondxchg32RtnB64 => conditional_exchange(w, i, cx),
        DsGwsInit => gws::init(w, i, cx),
        DsGwsBarrier => gws::barrier(w, i, cx),
        DsGwsSemaV => gws::release(w, i, cx, gws::Release::One),
        DsGwsSemaBr => gws::release(w, i, cx, gws::Release::Many),
        DsGwsSemaReleaseAll => gws::release(w, i, cx, gws::Release::Waiting),
        DsGwsSemaP => gws::acquire(w, i, cx),
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
    source2 {
        DsAddSrc2U32 false => Add,
        DsAddSrc2U64 true => Add,
        DsSubSrc2U32 false => Sub,
        DsSubSrc2U64 true => Sub,
        DsRsubSrc2U32 false => Rsub,
        DsRsubSrc2U64 true => Rsub,
        DsIncSrc2U32 false => Inc,
        DsIncSrc2U64 true => Inc,
        DsDecSrc2U32 false => Dec,
        DsDecSrc2U64 true => Dec,
        DsMinSrc2I32 false => Smin,
        DsMinSrc2I64 true => Smin,
        DsMaxSrc2I32 false => Smax,
        DsMaxSrc2I64 true => Smax,
        DsMinSrc2U32 false => Umin,
        DsMinSrc2U64 true => Umin,
        DsMaxSrc2U32 false => Umax,
        DsMaxSrc2U64 true => Umax,
        DsAndSrc2B32 false => And,
        DsAndSrc2B64 true => And,
        DsOrSrc2B32 false => Or,
        DsOrSrc2B64 true => Or,
        DsXorSrc2B32 false => Xor,
        DsXorSrc2B64 true => Xor,
        DsMinSrc2F32 false => Fmin,
        DsMinSrc2F64 true => Fmin,
        DsMaxSrc2F32 false => Fmax,
        DsMaxSrc2F64 true => Fmax,
        DsWriteSrc2B32 false => Swap,
        DsWriteSrc2B64 true => Swap,
        DsAddSrc2F32 false => Fadd,
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
