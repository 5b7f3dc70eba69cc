//! FLAT, GLOBAL and SCRATCH.

mod access;
mod atomics;
mod batch;
mod hot;
mod places;

use super::atomic::Atomic;
use super::context::{Context, Trouble};
use super::wave::Wave;
use crate::isa::Op;
use crate::isa::ir::{Inst, Src, SrcKind, flag};
use access::{load, load_addtid, load_d16, load_words, store, store_addtid, store_words};
use atomics::atomic;
pub(super) use atomics::{lds_atomic, memory_atomic, operand};
use hot::{hot_load, hot_load_wide, hot_store, hot_store_wide};
pub(super) use places::places;

/// Declares `step` and `implements` from one list.
///
/// Loads and stores of dwords of global memory are code in the interpreter's loop; everything else
/// is called, and is compiled once per wave size.
macro_rules! flat_semantics {
    (
        $w:ident, $i:ident, $cx:ident;
        hot { $($h:ident => $hbody:expr,)+ }
        called { $($g:ident $f:ident $s:ident => |$seg:ident| $body:expr,)+ }
        flat_only { $($ff:ident $fs:ident => |$fseg:ident| $fbody:expr,)+ }
        atomics32 { $($ag:ident $af:ident => $kind32:ident,)+ }
        atomics64 { $($bg:ident $bf:ident => $kind64:ident,)+ }
        global { $($o:ident => $obody:expr,)+ }
    ) => {
        /// Executes a FLAT, GLOBAL or SCRATCH instruction. `None`: not one; nothing changed.
        #[inline(always)]
        pub(super) fn step<const N: usize>(
            $w: &mut Wave<N>,
            $i: &Inst,
            $cx: &mut Context<'_>,
        ) -> Option<Result<(), Trouble>> {
            match $i.op {
                $(Op::$h => Some($hbody),)+
                _ => None,
            }
        }

        /// Executes the instructions of the list that [`step`] leaves out.
        #[inline(never)]
        pub(super) fn step_called<const N: usize>(
            $w: &mut Wave<N>,
            $i: &Inst,
            $cx: &mut Context<'_>,
        ) -> Option<Result<(), Trouble>> {
            Some(match $i.op {
                $(
                    Op::$g => { let $seg = Segment::Global; $body }
                    Op::$f => { let $seg = Segment::Flat; $body }
                    Op::$s => { let $seg = Segment::Scratch; $body }
                )+
                $(
                    Op::$ff => { let $fseg = Segment::Flat; $fbody }
                    Op::$fs => { let $fseg = Segment::Scratch; $fbody }
                )+
                $(
                    Op::$ag => atomic($w, $i, $cx, Segment::Global, false, Atomic::$kind32),
                    Op::$af => atomic($w, $i, $cx, Segment::Flat, false, Atomic::$kind32),
                )+
                $(
                    Op::$bg => atomic($w, $i, $cx, Segment::Global, true, Atomic::$kind64),
                    Op::$bf => atomic($w, $i, $cx, Segment::Flat, true, Atomic::$kind64),
                )+
                $(Op::$o => $obody,)+
                _ => return None,
            })
        }

        /// Whether [`step`] or [`step_called`] has semantics for `op`.
        pub(super) const fn implements(op: Op) -> bool {
            matches!(
                op,
                $(Op::$h)|+
                $(| Op::$g | Op::$f | Op::$s)+
                $(| Op::$ff | Op::$fs)+
                $(| Op::$ag | Op::$af)+
                $(| Op::$bg | Op::$bf)+
                $(| Op::$o)+
            )
        }
    };
}

flat_semantics! { w, i, cx;
    hot {
        GlobalLoadB32 => hot_load(w, i, cx),
        GlobalLoadB64 => hot_load_wide::<N, 2>(w, i, cx),
        GlobalLoadB128 => hot_load_wide::<N, 4>(w, i, cx),
        GlobalStoreB32 => hot_store(w, i, cx),
        GlobalStoreB64 => hot_store_wide::<N, 2>(w, i, cx),
        GlobalStoreB128 => hot_store_wide::<N, 4>(w, i, cx),
    }
    called {
        GlobalLoadB96 FlatLoadB96 ScratchLoadB96 => |seg| load_words(w, i, cx, seg, 3),
        GlobalLoadU8 FlatLoadU8 ScratchLoadU8 => |seg| load(w, i, cx, seg, Part::U8),
        GlobalLoadI8 FlatLoadI8 ScratchLoadI8 => |seg| load(w, i, cx, seg, Part::I8),
        GlobalLoadU16 FlatLoadU16 ScratchLoadU16 => |seg| load(w, i, cx, seg, Part::U16),
        GlobalLoadI16 FlatLoadI16 ScratchLoadI16 => |seg| load(w, i, cx, seg, Part::I16),
        GlobalLoadD16U8 FlatLoadD16U8 ScratchLoadD16U8 => |seg| load_d16(w, i, cx, seg, Part::U8, false),
        GlobalLoadD16I8 FlatLoadD16I8 ScratchLoadD16I8 => |seg| load_d16(w, i, cx, seg, Part::I8, false),
        GlobalLoadD16B16 FlatLoadD16B16 ScratchLoadD16B16 => |seg| load_d16(w, i, cx, seg, Part::U16, false),
        GlobalLoadD16HiU8 FlatLoadD16HiU8 ScratchLoadD16HiU8 => |seg| load_d16(w, i, cx, seg, Part::U8, true),
        GlobalLoadD16HiI8 FlatLoadD16HiI8 ScratchLoadD16HiI8 => |seg| load_d16(w, i, cx, seg, Part::I8, true),
        GlobalLoadD16HiB16 FlatLoadD16HiB16 ScratchLoadD16HiB16 => |seg| load_d16(w, i, cx, seg, Part::U16, true),
        GlobalStoreB96 FlatStoreB96 ScratchStoreB96 => |seg| store_words(w, i, cx, seg, 3),
        GlobalStoreB8 FlatStoreB8 ScratchStoreB8 => |seg| store(w, i, cx, seg, Part::U8, 0),
        GlobalStoreB16 FlatStoreB16 ScratchStoreB16 => |seg| store(w, i, cx, seg, Part::U16, 0),
        GlobalStoreD16HiB8 FlatStoreD16HiB8 ScratchStoreD16HiB8 => |seg| store(w, i, cx, seg, Part::U8, 16),
        GlobalStoreD16HiB16 FlatStoreD16HiB16 ScratchStoreD16HiB16 => |seg| store(w, i, cx, seg, Part::U16, 16),
    }
    flat_only {
        FlatLoadB32 ScratchLoadB32 => |seg| load(w, i, cx, seg, Part::B32),
        FlatLoadB64 ScratchLoadB64 => |seg| load_words(w, i, cx, seg, 2),
        FlatLoadB128 ScratchLoadB128 => |seg| load_words(w, i, cx, seg, 4),
        FlatStoreB32 ScratchStoreB32 => |seg| store(w, i, cx, seg, Part::B32, 0),
        FlatStoreB64 ScratchStoreB64 => |seg| store_words(w, i, cx, seg, 2),
        FlatStoreB128 ScratchStoreB128 => |seg| store_words(w, i, cx, seg, 4),
    }
    atomics32 {
        GlobalAtomicSwapB32 FlatAtomicSwapB32 => Swap,
        GlobalAtomicCmpswapB32 FlatAtomicCmpswapB32 => Cmpswap,
        GlobalAtomicCmpswapF32 FlatAtomicCmpswapF32 => Fcmpswap,
        GlobalAtomicAddU32 FlatAtomicAddU32 => Add,
        GlobalAtomicSubU32 FlatAtomicSubU32 => Sub,
        GlobalAtomicMinI32 FlatAtomicMinI32 => Smin,
        GlobalAtomicMinU32 FlatAtomicMinU32 => Umin,
        GlobalAtomicMaxI32 FlatAtomicMaxI32 => Smax,
        GlobalAtomicMaxU32 FlatAtomicMaxU32 => Umax,
        GlobalAtomicAndB32 FlatAtomicAndB32 => And,
        GlobalAtomicOrB32 FlatAtomicOrB32 => Or,
        GlobalAtomicXorB32 FlatAtomicXorB32 => Xor,
        GlobalAtomicIncU32 FlatAtomicIncU32 => Inc,
        GlobalAtomicDecU32 FlatAtomicDecU32 => Dec,
        GlobalAtomicAddF32 FlatAtomicAddF32 => Fadd,
        GlobalAtomicMinF32 FlatAtomicMinF32 => Fmin,
        GlobalAtomicMaxF32 FlatAtomicMaxF32 => Fmax,
        GlobalAtomicPkAddF16 FlatAtomicPkAddF16 => PkAddF16,
        GlobalAtomicPkAddBf16 FlatAtomicPkAddBf16 => PkAddBf16,
    }
    atomics64 {
        GlobalAtomicSwapB64 FlatAtomicSwapB64 => Swap,
        GlobalAtomicCmpswapB64 FlatAtomicCmpswapB64 => Cmpswap,
        GlobalAtomicAddU64 FlatAtomicAddU64 => Add,
        GlobalAtomicSubU64 FlatAtomicSubU64 => Sub,
        GlobalAtomicMinI64 FlatAtomicMinI64 => Smin,
        GlobalAtomicMinU64 FlatAtomicMinU64 => Umin,
        GlobalAtomicMaxI64 FlatAtomicMaxI64 => Smax,
        GlobalAtomicMaxU64 FlatAtomicMaxU64 => Umax,
        GlobalAtomicAndB64 FlatAtomicAndB64 => And,
        GlobalAtomicOrB64 FlatAtomicOrB64 => Or,
        GlobalAtomicXorB64 FlatAtomicXorB64 => Xor,
        GlobalAtomicIncU64 FlatAtomicIncU64 => Inc,
        GlobalAtomicDecU64 FlatAtomicDecU64 => Dec,
        GlobalAtomicAddF64 FlatAtomicAddF64 => Fadd,
        GlobalAtomicMinF64 FlatAtomicMinF64 => Fmin,
        GlobalAtomicMaxF64 FlatAtomicMaxF64 => Fmax,
    }
    global {
        GlobalAtomicCsubU32 => atomic(w, i, cx, Segment::Global, false, Atomic::Csub),
        GlobalLoadLdsDword => load(w, i, cx, Segment::Global, Part::B32),
        GlobalLoadLdsUbyte => load(w, i, cx, Segment::Global, Part::U8),
        GlobalLoadLdsSbyte => load(w, i, cx, Segment::Global, Part::I8),
        GlobalLoadLdsUshort => load(w, i, cx, Segment::Global, Part::U16),
        GlobalLoadLdsSshort => load(w, i, cx, Segment::Global, Part::I16),
        ScratchLoadLdsDword => load(w, i, cx, Segment::Scratch, Part::B32),
        ScratchLoadLdsUbyte => load(w, i, cx, Segment::Scratch, Part::U8),
        ScratchLoadLdsSbyte => load(w, i, cx, Segment::Scratch, Part::I8),
        ScratchLoadLdsUshort => load(w, i, cx, Segment::Scratch, Part::U16),
        ScratchLoadLdsSshort => load(w, i, cx, Segment::Scratch, Part::I16),
        GlobalLoadAddtidB32 => load_addtid(w, i, cx),
        GlobalStoreAddtidB32 => store_addtid(w, i, cx),
    }
}

/// Address spaces an instruction may name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Segment {
    Global,
    Flat,
    Scratch,
}

/// What one lane moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    U8,
    I8,
    U16,
    I16,
    B32,
}

/// Where a group of lanes goes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Space {
    Global,
    Lds,
    Private,
}

/// First physical register of the data operand, AccVGPRs resolved.
#[inline(always)]
fn data_register<const N: usize>(w: &Wave<N>, i: &Inst, reg: u16) -> u16 {
    if i.flags & flag::ACC != 0 { w.physical(256 + (reg & 255)) as u16 } else { reg }
}

#[inline(always)]
fn vgpr(src: Src) -> u16 {
    match src.kind() {
        SrcKind::V(n) => n,
        _ => 0,
    }
}
