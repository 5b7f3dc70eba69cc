//! Scalar memory. EXEC does not matter; addresses lose their two low bits.

pub(super) mod rare;

use super::context::{Context, Trouble};
use super::salu::dst;
use super::wave::{Code, Wave};
use crate::isa::Op;
use crate::isa::ir::{Inst, Src, SrcKind, flag, sgpr};

/// Declares `step` and `implements` from one list of operations.
macro_rules! scalar_memory {
    ($w:ident, $i:ident, $cx:ident; $($($op:ident)|+ => $body:expr,)+) => {
        /// Executes a scalar memory instruction. `None`: not one; nothing changed.
        #[inline(always)]
        pub(super) fn step<const N: usize>(
            $w: &mut Wave<N>,
            $i: &Inst,
            $cx: &mut Context<'_>,
        ) -> Option<Result<(), Trouble>> {
            Some(match $i.op {
                $($(Op::$op)|+ => $body,)+
                _ => return None,
            })
        }

        /// Whether [`step`] has semantics for `op`.
        pub(super) const fn implements(op: Op) -> bool {
            matches!(op, $($(Op::$op)|+)|+)
        }
    };
}

scalar_memory! { w, i, cx;
    SLoadB32 => load::<N, 1>(w, i, cx),
    SLoadB64 => load::<N, 2>(w, i, cx),
    SLoadB128 => load::<N, 4>(w, i, cx),
    SLoadB256 => load::<N, 8>(w, i, cx),
    SLoadB512 => load::<N, 16>(w, i, cx),
    SBufferLoadB32 => buffer_load(w, i, cx, 1),
    SBufferLoadB64 => buffer_load(w, i, cx, 2),
    SBufferLoadB128 => buffer_load(w, i, cx, 4),
    SBufferLoadB256 => buffer_load(w, i, cx, 8),
    SBufferLoadB512 => buffer_load(w, i, cx, 16),
    SStoreDword => store(w, i, cx, 1),
    SStoreDwordx2 => store(w, i, cx, 2),
    SStoreDwordx4 => store(w, i, cx, 4),
    SDcacheInv | SDcacheInvVol | SDcacheWb | SDcacheWbVol | SGl1Inv => fence(),
}

/// Orders earlier accesses of this thread before later ones, whatever the caches would do.
pub(super) fn fence() -> Result<(), Trouble> {
    std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
    Ok(())
}

/// The byte offset: immediate plus scalar register.
#[inline(always)]
fn offset<const N: usize>(w: &Wave<N>, i: &Inst, code: &Code) -> u64 {
    let imm = i64::from(i.imm) as u64;
    if i.flags & flag::SOFFSET != 0 {
        imm.wrapping_add(u64::from(w.s_src32(i.src[1], code)))
    } else {
        imm
    }
}

/// Where an access without a buffer descriptor goes, for those who watch.
pub(super) fn place<const N: usize>(w: &Wave<N>, i: &Inst, code: &Code) -> u64 {
    w.s64(base_register(i.src[0])).wrapping_add(offset(w, i, code)) & !3
}

#[inline(always)]
fn base_register(src: Src) -> u8 {
    match src.kind() {
        SrcKind::S(n) => n,
        _ => sgpr::NULL,
    }
}

#[inline(always)]
fn load<const N: usize, const W: usize>(
    w: &mut Wave<N>,
    i: &Inst,
    cx: &mut Context<'_>,
) -> Result<(), Trouble> {
    let base = w.s64(base_register(i.src[0]));
    let at = base.wrapping_add(offset(w, i, &cx.cache.code)) & !3;
    let words: [u32; W] = if i.flags & flag::GLC != 0 && W <= 2 {
        load_coherent(cx, at)?
    } else {
        cx.view.load_words(cx.slot, at)?
    };
    for (k, word) in words.into_iter().enumerate() {
        w.set_s32(dst(i).wrapping_add(k as u8), word);
    }
    Ok(())
}

/// With glc, up to 64 bits are read as a whole.
#[cold]
#[inline(never)]
fn load_coherent<const W: usize>(cx: &mut Context<'_>, at: u64) -> Result<[u32; W], Trouble> {
    let mut words = [0; W];
    let value = if W == 2 {
        cx.view.load_coherent_u64(cx.slot, at)?
    } else {
        u64::from(cx.view.load_coherent_u32(cx.slot, at)?)
    };
    for (k, word) in words.iter_mut().enumerate() {
        *word = (value >> (32 * k)) as u32;
    }
    Ok(words)
}

/// Loads through a buffer descriptor: dwords past its end read as zero.
#[inline(never)]
fn buffer_load<const N: usize>(
    w: &mut Wave<N>,
    i: &Inst,
    cx: &mut Context<'_>,
    words: u8,
) -> Result<(), Trouble> {
    let buffer = rare::Buffer::new(w, i);
    let offset = offset(w, i, &cx.cache.code) & !3;
    for k in 0..words {
        let value = match buffer.place(offset.wrapping_add(4 * u64::from(k)), 4) {
            Some(at) => cx.view.load_dword(cx.slot, at)?,
            None => 0,
        };
        w.set_s32(dst(i).wrapping_add(k), value);
    }
    Ok(())
}

/// gfx9 scalar stores. Data in `src[2]`.
#[inline(never)]
fn store<const N: usize>(
    w: &mut Wave<N>,
    i: &Inst,
    cx: &mut Context<'_>,
    words: u8,
) -> Result<(), Trouble> {
    let base = w.s64(base_register(i.src[0]));
    let at = base.wrapping_add(offset(w, i, &cx.cache.code)) & !3;
    let data = base_register(i.src[2]);
    for k in 0..words {
        cx.view.store_dword(
            cx.slot,
            at.wrapping_add(4 * u64::from(k)),
            w.s32(data.wrapping_add(k)),
        )?;
    }
    Ok(())
}
