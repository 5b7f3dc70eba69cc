//! Scalar memory of gfx9 that compilers do not emit: buffer stores, scalar scratch, atomics, probes.
//!
//! "Vega", "CDNA1" to "CDNA3" instruction set documents, SMEM instructions;
//! docs/ABI.md §Scalar memory.

use super::{base_register, offset};
use crate::exec::atomic::Atomic;
use crate::exec::context::{Context, Trouble};
use crate::exec::flat::memory_atomic;
use crate::exec::salu::dst;
use crate::exec::wave::{Code, Wave};
use crate::isa::Op;
use crate::isa::ir::{Inst, flag};

/// Declares `step` and `implements` from one list of operations.
macro_rules! rare_scalar_memory {
    (
        $w:ident, $i:ident, $cx:ident;
        plain { $($($op:ident)|+ => $body:expr,)+ }
        atomics { $($a32:ident $a64:ident $b32:ident $b64:ident => $kind:ident,)+ }
    ) => {
        /// Executes one of these instructions. `None`: not one; nothing changed.
        #[inline(never)]
        pub(in crate::exec) fn step<const N: usize>(
            $w: &mut Wave<N>,
            $i: &Inst,
            $cx: &mut Context<'_>,
        ) -> Option<Result<(), Trouble>> {
            Some(match $i.op {
                $($(Op::$op)|+ => $body,)+
                $(
                    Op::$a32 => atomic($w, $i, $cx, Space::Global, false, Atomic::$kind),
                    Op::$a64 => atomic($w, $i, $cx, Space::Global, true, Atomic::$kind),
                    Op::$b32 => atomic($w, $i, $cx, Space::Buffer, false, Atomic::$kind),
                    Op::$b64 => atomic($w, $i, $cx, Space::Buffer, true, Atomic::$kind),
                )+
                _ => return None,
            })
        }

        /// Whether [`step`] has semantics for `op`.
        pub(in crate::exec) const fn implements(op: Op) -> bool {
            matches!(
                op,
                $($(Op::$op)|+)|+ $(| Op::$a32 | Op::$a64 | Op::$b32 | Op::$b64)+
            )
        }
    };
}

rare_scalar_memory! { w, i, cx;
    plain {
        SBufferStoreDword => buffer_store(w, i, cx, 1),
        SBufferStoreDwordx2 => buffer_store(w, i, cx, 2),
        SBufferStoreDwordx4 => buffer_store(w, i, cx, 4),
        SScratchLoadDword => scratch_load(w, i, cx, 1),
        SScratchLoadDwordx2 => scratch_load(w, i, cx, 2),
        SScratchLoadDwordx4 => scratch_load(w, i, cx, 4),
        SScratchStoreDword => scratch_store(w, i, cx, 1),
        SScratchStoreDwordx2 => scratch_store(w, i, cx, 2),
        SScratchStoreDwordx4 => scratch_store(w, i, cx, 4),
        // A hint to the address translation: no register changes, and a miss is no fault.
        SAtcProbe | SAtcProbeBuffer => Ok(()),
    }
    atomics {
        SAtomicSwap SAtomicSwapX2 SBufferAtomicSwap SBufferAtomicSwapX2 => Swap,
        SAtomicCmpswap SAtomicCmpswapX2 SBufferAtomicCmpswap SBufferAtomicCmpswapX2 => Cmpswap,
        SAtomicAdd SAtomicAddX2 SBufferAtomicAdd SBufferAtomicAddX2 => Add,
        SAtomicSub SAtomicSubX2 SBufferAtomicSub SBufferAtomicSubX2 => Sub,
        SAtomicSmin SAtomicSminX2 SBufferAtomicSmin SBufferAtomicSminX2 => Smin,
        SAtomicUmin SAtomicUminX2 SBufferAtomicUmin SBufferAtomicUminX2 => Umin,
        SAtomicSmax SAtomicSmaxX2 SBufferAtomicSmax SBufferAtomicSmaxX2 => Smax,
        SAtomicUmax SAtomicUmaxX2 SBufferAtomicUmax SBufferAtomicUmaxX2 => Umax,
        SAtomicAnd SAtomicAndX2 SBufferAtomicAnd SBufferAtomicAndX2 => And,
        SAtomicOr SAtomicOrX2 SBufferAtomicOr SBufferAtomicOrX2 => Or,
        SAtomicXor SAtomicXorX2 SBufferAtomicXor SBufferAtomicXorX2 => Xor,
        SAtomicInc SAtomicIncX2 SBufferAtomicInc SBufferAtomicIncX2 => Inc,
        SAtomicDec SAtomicDecX2 SBufferAtomicDec SBufferAtomicDecX2 => Dec,
    }
}

/// What the base operand is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Space {
    /// A pair: an address.
    Global,
    /// Four registers: a buffer descriptor.
    Buffer,
}

/// A buffer descriptor as scalar memory uses it: no swizzle, no index.
#[derive(Clone, Copy)]
pub(super) struct Buffer {
    base: u64,
    bytes: u64,
}

impl Buffer {
    pub(super) fn new<const N: usize>(w: &Wave<N>, i: &Inst) -> Self {
        let v = base_register(i.src[0]);
        let [word0, word1, word2] = [0, 1, 2].map(|k| w.s32(v.wrapping_add(k)));
        let stride = u64::from(word1 >> 16 & 0x3fff);
        Self {
            base: (u64::from(word0) | u64::from(word1 & 0xffff) << 32) & !3,
            bytes: u64::from(word2) * stride.max(1),
        }
    }

    /// The address of `bytes` bytes at `offset`. `None`: not all of them are in the buffer.
    pub(super) fn place(self, offset: u64, bytes: u64) -> Option<u64> {
        let inside = offset.saturating_add(bytes) <= self.bytes;
        inside.then_some(self.base.wrapping_add(offset))
    }
}

/// Dwords past the end are dropped, one by one.
fn buffer_store<const N: usize>(
    w: &Wave<N>,
    i: &Inst,
    cx: &mut Context<'_>,
    words: u8,
) -> Result<(), Trouble> {
    let buffer = Buffer::new(w, i);
    let start = offset(w, i, &cx.cache.code) & !3;
    let data = base_register(i.src[2]);
    for k in 0..words {
        if let Some(at) = buffer.place(start.wrapping_add(4 * u64::from(k)), 4) {
            cx.view.store_dword(cx.slot, at, w.s32(data.wrapping_add(k)))?;
        }
    }
    Ok(())
}

/// Base plus immediate, plus the scalar offset in units of 64 bytes: a wave's share of a byte that
/// every lane has.
fn scratch_address<const N: usize>(w: &Wave<N>, i: &Inst, code: &Code) -> u64 {
    let imm = i64::from(i.imm) as u64;
    let scalar = if i.flags & flag::SOFFSET != 0 { w.s_src32(i.src[1], code) } else { 0 };
    w.s64(base_register(i.src[0])).wrapping_add(imm).wrapping_add(u64::from(scalar) * 64) & !3
}

fn scratch_load<const N: usize>(
    w: &mut Wave<N>,
    i: &Inst,
    cx: &mut Context<'_>,
    words: u8,
) -> Result<(), Trouble> {
    let at = scratch_address(w, i, &cx.cache.code);
    let mut values = [0; 4];
    for (k, value) in values.iter_mut().enumerate().take(usize::from(words)) {
        *value = cx.view.load_dword(cx.slot, at.wrapping_add(4 * k as u64))?;
    }
    for k in 0..words {
        w.set_s32(dst(i).wrapping_add(k), values[usize::from(k)]);
    }
    Ok(())
}

fn scratch_store<const N: usize>(
    w: &Wave<N>,
    i: &Inst,
    cx: &mut Context<'_>,
    words: u8,
) -> Result<(), Trouble> {
    let at = scratch_address(w, i, &cx.cache.code);
    let data = base_register(i.src[2]);
    for k in 0..words {
        let value = w.s32(data.wrapping_add(k));
        cx.view.store_dword(cx.slot, at.wrapping_add(4 * u64::from(k)), value)?;
    }
    Ok(())
}

/// The data is followed by the comparand; with glc the old value replaces the data. Out of a
/// buffer's range nothing happens and the old value reads as zero.
fn atomic<const N: usize>(
    w: &mut Wave<N>,
    i: &Inst,
    cx: &mut Context<'_>,
    space: Space,
    wide: bool,
    kind: Atomic,
) -> Result<(), Trouble> {
    let data = base_register(i.src[2]);
    let operand = |reg: u8| if wide { w.s64(reg) } else { u64::from(w.s32(reg)) };
    let words = if wide { 2 } else { 1 };
    let second = if kind.has_second() { operand(data.wrapping_add(words)) } else { 0 };
    let offset = offset(w, i, &cx.cache.code);
    let at = match space {
        Space::Global => Some(w.s64(base_register(i.src[0])).wrapping_add(offset) & !3),
        Space::Buffer => Buffer::new(w, i).place(offset & !3, 4 * u64::from(words)),
    };
    let old = match at {
        Some(at) => memory_atomic(cx, at, wide, kind, operand(data), second)?,
        None => 0,
    };
    if i.flags & flag::GLC != 0 {
        w.set_s32(dst(i), old as u32);
        if wide {
            w.set_s32(dst(i).wrapping_add(1), (old >> 32) as u32);
        }
    }
    Ok(())
}
