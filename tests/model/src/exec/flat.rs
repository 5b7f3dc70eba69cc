//! FLAT, GLOBAL and SCRATCH.

use super::atomic::Atomic;
use super::context::{Context, Trouble};
use super::scratch;
use super::wave::Wave;
use crate::isa::Op;
use crate::isa::ir::{Inst, SrcKind, flag};
use crate::memory::{Element, Lanes};

/// Address spaces an instruction may name.
const GLOBAL: u8 = 0;
const FLAT: u8 = 1;
const SCRATCH: u8 = 2;

/// Declares `step` and `implements` from one list: names of GLOBAL, FLAT and SCRATCH forms.
macro_rules! flat_semantics {
    (
        $w:ident, $i:ident, $cx:ident;
        three { $($g:ident $f:ident $s:ident => |$seg3:ident| $body3:expr,)+ }
        atomics32 { $($ag:ident $af:ident => $kind32:ident,)+ }
        atomics64 { $($bg:ident $bf:ident => $kind64:ident,)+ }
        global_atomics32 { $($cg:ident => $kindg:ident,)+ }
        other { $($o:ident => $obody:expr,)+ }
    ) => {
        /// Executes a FLAT, GLOBAL or SCRATCH instruction. `None`: not one; nothing changed.
        #[inline(always)]
        pub(super) fn step<const N: usize>(
            $w: &mut Wave<N>,
            $i: &Inst,
            $cx: &mut Context<'_>,
        ) -> Option<Result<(), Trouble>> {
            Some(match $i.op {
                $(
                    Op::$g => { const $seg3: u8 = GLOBAL; $body3 }
                    Op::$f => { const $seg3: u8 = FLAT; $body3 }
                    Op::$s => { const $seg3: u8 = SCRATCH; $body3 }
                )+
                $(
                    Op::$ag => atomic::<N, GLOBAL, false>($w, $i, $cx, Atomic::$kind32),
                    Op::$af => atomic::<N, FLAT, false>($w, $i, $cx, Atomic::$kind32),
                )+
                $(
                    Op::$bg => atomic::<N, GLOBAL, true>($w, $i, $cx, Atomic::$kind64),
                    Op::$bf => atomic::<N, FLAT, true>($w, $i, $cx, Atomic::$kind64),
                )+
                $(Op::$cg => atomic::<N, GLOBAL, false>($w, $i, $cx, Atomic::$kindg),)+
                $(Op::$o => $obody,)+
                _ => return None,
            })
        }

        /// Whether [`step`] has semantics for `op`.
        pub(super) const fn implements(op: Op) -> bool {
            matches!(
                op,
                $(Op::$g | Op::$f | Op::$s)|+
                $(| Op::$ag | Op::$af)+
                $(| Op::$bg | Op::$bf)+
                $(| Op::$cg)+
                $(| Op::$o)+
            )
        }
    };
}

flat_semantics! { w, i, cx;
    three {
        GlobalLoadB32 FlatLoadB32 ScratchLoadB32 => |SEG| load_or_call::<N, SEG, u32>(w, i, cx),
        GlobalLoadB64 FlatLoadB64 ScratchLoadB64 => |SEG| load_wide_or_call::<N, SEG, 2>(w, i, cx),
        GlobalLoadB96 FlatLoadB96 ScratchLoadB96 => |SEG| load_wide_cold::<N, SEG, 3>(w, i, cx),
        GlobalLoadB128 FlatLoadB128 ScratchLoadB128 => |SEG| load_wide_or_call::<N, SEG, 4>(w, i, cx),
        GlobalLoadU8 FlatLoadU8 ScratchLoadU8 => |SEG| load_cold::<N, SEG, u8>(w, i, cx),
        GlobalLoadI8 FlatLoadI8 ScratchLoadI8 => |SEG| load_cold::<N, SEG, i8>(w, i, cx),
        GlobalLoadU16 FlatLoadU16 ScratchLoadU16 => |SEG| load_cold::<N, SEG, u16>(w, i, cx),
        GlobalLoadI16 FlatLoadI16 ScratchLoadI16 => |SEG| load_cold::<N, SEG, i16>(w, i, cx),
        GlobalLoadD16U8 FlatLoadD16U8 ScratchLoadD16U8 => |SEG| load_d16::<N, SEG, u8>(w, i, cx, false),
        GlobalLoadD16I8 FlatLoadD16I8 ScratchLoadD16I8 => |SEG| load_d16::<N, SEG, i8>(w, i, cx, false),
        GlobalLoadD16B16 FlatLoadD16B16 ScratchLoadD16B16 => |SEG| load_d16::<N, SEG, u16>(w, i, cx, false),
        GlobalLoadD16HiU8 FlatLoadD16HiU8 ScratchLoadD16HiU8 => |SEG| load_d16::<N, SEG, u8>(w, i, cx, true),
        GlobalLoadD16HiI8 FlatLoadD16HiI8 ScratchLoadD16HiI8 => |SEG| load_d16::<N, SEG, i8>(w, i, cx, true),
        GlobalLoadD16HiB16 FlatLoadD16HiB16 ScratchLoadD16HiB16 => |SEG| load_d16::<N, SEG, u16>(w, i, cx, true),
        GlobalStoreB32 FlatStoreB32 ScratchStoreB32 => |SEG| store_or_call::<N, SEG, u32>(w, i, cx),
        GlobalStoreB64 FlatStoreB64 ScratchStoreB64 => |SEG| store_wide_or_call::<N, SEG, 2>(w, i, cx),
        GlobalStoreB96 FlatStoreB96 ScratchStoreB96 => |SEG| store_wide_cold::<N, SEG, 3>(w, i, cx),
        GlobalStoreB128 FlatStoreB128 ScratchStoreB128 => |SEG| store_wide_or_call::<N, SEG, 4>(w, i, cx),
        GlobalStoreB8 FlatStoreB8 ScratchStoreB8 => |SEG| store_cold::<N, SEG, u8>(w, i, cx, 0),
        GlobalStoreB16 FlatStoreB16 ScratchStoreB16 => |SEG| store_cold::<N, SEG, u16>(w, i, cx, 0),
        GlobalStoreD16HiB8 FlatStoreD16HiB8 ScratchStoreD16HiB8 => |SEG| store_cold::<N, SEG, u8>(w, i, cx, 16),
        GlobalStoreD16HiB16 FlatStoreD16HiB16 ScratchStoreD16HiB16 => |SEG| store_cold::<N, SEG, u16>(w, i, cx, 16),
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
    global_atomics32 {
        GlobalAtomicCsubU32 => Csub,
    }
    other {
        GlobalLoadAddtidB32 => load_addtid(w, i, cx),
        GlobalStoreAddtidB32 => store_addtid(w, i, cx),
    }
}

/// Where a group of lanes goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Space {
    Global,
    Lds,
    Private,
}

/// First architected VGPR of the data operand, AccVGPRs resolved.
#[inline(always)]
fn data_register<const N: usize>(w: &Wave<N>, i: &Inst, reg: u16) -> u16 {
    if i.flags & flag::ACC != 0 { w.physical(256 + (reg & 255)) as u16 } else { reg }
}

#[inline(always)]
fn vgpr(src: crate::isa::ir::Src) -> u16 {
    match src.kind() {
        SrcKind::V(n) => n,
        _ => 0,
    }
}

/// Calls `f` for each group of lanes that share a space and the high address word: almost always
/// once, for all active lanes. The caller has checked that EXEC is not zero.
#[inline(always)]
fn for_groups<const N: usize, const SEG: u8>(
    w: &Wave<N>,
    i: &Inst,
    cx: &mut Context<'_>,
    mut f: impl FnMut(&mut Context<'_>, Space, Lanes<'_, N>) -> Result<(), Trouble>,
) -> Result<(), Trouble> {
    let exec = w.exec();
    let row = usize::from(vgpr(i.src[0])) & 511;
    let imm = i64::from(i.imm) as u64;
    if SEG == SCRATCH {
        let saddr = if i.flags & flag::SADDR != 0 { scalar_offset(w, i) } else { 0 };
        let common = saddr.wrapping_add(i.imm as u32);
        let mut offset = [common; N];
        if i.flags & flag::VADDR != 0 {
            for k in 0..N {
                offset[k] = w.v[row][k].wrapping_add(common);
            }
        }
        return f(cx, Space::Private, Lanes { base: 0, offset: &offset, mask: &w.mask, exec });
    }
    if SEG == GLOBAL && i.flags & flag::SADDR != 0 {
        let SrcKind::S(saddr) = i.src[2].kind() else { return Err(Trouble::Illegal) };
        let base = w.s64(saddr).wrapping_add(imm);
        let lanes = Lanes { base, offset: &w.v[row], mask: &w.mask, exec };
        return f(cx, Space::Global, lanes);
    }
    let (offset, high) = (&w.v[row], &w.v[(row + 1) & 511]);
    let mut rest = exec;
    loop {
        let first = high[rest.trailing_zeros() as usize % N];
        let mut differs = 0;
        for k in 0..N {
            differs |= (high[k] ^ first) & w.mask[k];
        }
        let (mask, active);
        if differs == 0 {
            (mask, active) = (w.mask, exec);
        } else {
            (mask, active) = lanes_with(high, first, rest);
        }
        let base = u64::from(first) << 32;
        let apertures = &cx.env.apertures;
        let (space, base) = if SEG == FLAT && base == apertures.lds_base {
            (Space::Lds, 0)
        } else if SEG == FLAT && base == apertures.scratch_base {
            (Space::Private, 0)
        } else {
            (Space::Global, base.wrapping_add(imm))
        };
        if SEG == FLAT && space != Space::Global {
            let mut moved = [0; N];
            for k in 0..N {
                moved[k] = offset[k].wrapping_add(imm as u32);
            }
            f(cx, space, Lanes { base, offset: &moved, mask: &mask, exec: active })?;
        } else {
            f(cx, space, Lanes { base, offset, mask: &mask, exec: active })?;
        }
        rest &= !active;
        if rest == 0 {
            return Ok(());
        }
    }
}

#[inline(always)]
fn scalar_offset<const N: usize>(w: &Wave<N>, i: &Inst) -> u32 {
    match i.src[2].kind() {
        SrcKind::S(n) => w.s32(n),
        _ => 0,
    }
}

/// The lanes of `rest` whose high word is `first`.
#[cold]
#[inline(never)]
fn lanes_with<const N: usize>(high: &[u32; N], first: u32, rest: u64) -> ([u32; N], u64) {
    let (mut mask, mut active) = ([0; N], 0);
    for k in 0..N {
        if rest >> k & 1 != 0 && high[k] == first {
            mask[k] = !0;
            active |= 1 << k;
        }
    }
    (mask, active)
}

/// Keeps what earlier groups of the same instruction loaded.
#[inline(always)]
fn merge<const N: usize>(out: &mut [u32; N], part: &[u32; N], mask: &[u32; N]) {
    for k in 0..N {
        out[k] = part[k] & mask[k] | out[k] & !mask[k];
    }
}

#[inline(always)]
fn fetch<const N: usize, const SEG: u8, T: Element>(
    w: &Wave<N>,
    i: &Inst,
    cx: &mut Context<'_>,
    out: &mut [u32; N],
) -> Result<(), Trouble> {
    let exec = w.exec();
    let coherent = i.flags & flag::GLC != 0 && T::BYTES == 4;
    for_groups::<N, SEG>(w, i, cx, |cx, space, lanes| {
        let mut part = [0; N];
        match space {
            Space::Global if coherent => load_coherent(cx, lanes, &mut part)?,
            Space::Global => cx.view.gather::<N, T>(cx.slot, lanes, &mut part)?,
            Space::Lds => lds_load::<N, T>(cx, lanes, &mut part),
            Space::Private => {
                scratch::load::<N, T>(w, cx, lanes.offset, lanes.mask, lanes.exec, &mut part)?
            }
        }
        if lanes.exec == exec {
            *out = part;
        } else {
            merge(out, &part, lanes.mask);
        }
        Ok(())
    })
}

#[inline(always)]
fn load<const N: usize, const SEG: u8, T: Element>(
    w: &mut Wave<N>,
    i: &Inst,
    cx: &mut Context<'_>,
) -> Result<(), Trouble> {
    if w.exec() == 0 {
        return Ok(());
    }
    let mut out = [0; N];
    fetch::<N, SEG, T>(w, i, cx, &mut out)?;
    let dst = data_register(w, i, i.dst);
    w.write_v(dst, &out);
    Ok(())
}

/// As [`load`]; only loads from global memory are worth code in the interpreter's loop.
#[inline(always)]
fn load_or_call<const N: usize, const SEG: u8, T: Element>(
    w: &mut Wave<N>,
    i: &Inst,
    cx: &mut Context<'_>,
) -> Result<(), Trouble> {
    if SEG == GLOBAL { load::<N, SEG, T>(w, i, cx) } else { load_cold::<N, SEG, T>(w, i, cx) }
}

#[inline(always)]
fn load_wide_or_call<const N: usize, const SEG: u8, const W: usize>(
    w: &mut Wave<N>,
    i: &Inst,
    cx: &mut Context<'_>,
) -> Result<(), Trouble> {
    if SEG == GLOBAL {
        load_wide::<N, SEG, W>(w, i, cx)
    } else {
        load_wide_cold::<N, SEG, W>(w, i, cx)
    }
}

#[inline(always)]
fn store_or_call<const N: usize, const SEG: u8, T: Element>(
    w: &mut Wave<N>,
    i: &Inst,
    cx: &mut Context<'_>,
) -> Result<(), Trouble> {
    if SEG == GLOBAL {
        store::<N, SEG, T>(w, i, cx, 0)
    } else {
        store_cold::<N, SEG, T>(w, i, cx, 0)
    }
}

#[inline(always)]
fn store_wide_or_call<const N: usize, const SEG: u8, const W: usize>(
    w: &mut Wave<N>,
    i: &Inst,
    cx: &mut Context<'_>,
) -> Result<(), Trouble> {
    if SEG == GLOBAL {
        store_wide::<N, SEG, W>(w, i, cx)
    } else {
        store_wide_cold::<N, SEG, W>(w, i, cx)
    }
}

#[inline(never)]
fn load_cold<const N: usize, const SEG: u8, T: Element>(
    w: &mut Wave<N>,
    i: &Inst,
    cx: &mut Context<'_>,
) -> Result<(), Trouble> {
    load::<N, SEG, T>(w, i, cx)
}

/// Loads into one half of the register and keeps the other.
#[inline(never)]
fn load_d16<const N: usize, const SEG: u8, T: Element>(
    w: &mut Wave<N>,
    i: &Inst,
    cx: &mut Context<'_>,
    high: bool,
) -> Result<(), Trouble> {
    if w.exec() == 0 {
        return Ok(());
    }
    let mut out = [0; N];
    fetch::<N, SEG, T>(w, i, cx, &mut out)?;
    let dst = data_register(w, i, i.dst);
    let old = &w.v[usize::from(dst) & 511];
    for k in 0..N {
        out[k] = if high {
            old[k] & 0xffff | out[k] << 16
        } else {
            old[k] & 0xffff_0000 | out[k] & 0xffff
        };
    }
    w.write_v(dst, &out);
    Ok(())
}

#[inline(always)]
fn load_wide<const N: usize, const SEG: u8, const W: usize>(
    w: &mut Wave<N>,
    i: &Inst,
    cx: &mut Context<'_>,
) -> Result<(), Trouble> {
    let exec = w.exec();
    if exec == 0 {
        return Ok(());
    }
    let coherent = i.flags & flag::GLC != 0;
    let mut out = [[0; N]; W];
    for_groups::<N, SEG>(w, i, cx, |cx, space, lanes| {
        let mut part = [[0; N]; W];
        match space {
            Space::Global if coherent => load_coherent_wide(cx, lanes, &mut part)?,
            Space::Global => cx.view.gather_wide(cx.slot, lanes, &mut part)?,
            Space::Lds => lds_load_wide(cx, lanes, &mut part),
            Space::Private => load_private_wide(w, cx, lanes, &mut part)?,
        }
        if lanes.exec == exec {
            out = part;
        } else {
            for k in 0..W {
                merge(&mut out[k], &part[k], lanes.mask);
            }
        }
        Ok(())
    })?;
    let dst = data_register(w, i, i.dst);
    for (k, row) in out.iter().enumerate() {
        w.write_v(dst.wrapping_add(k as u16), row);
    }
    Ok(())
}

#[inline(never)]
fn load_wide_cold<const N: usize, const SEG: u8, const W: usize>(
    w: &mut Wave<N>,
    i: &Inst,
    cx: &mut Context<'_>,
) -> Result<(), Trouble> {
    load_wide::<N, SEG, W>(w, i, cx)
}

#[inline(never)]
fn load_private_wide<const N: usize, const W: usize>(
    w: &Wave<N>,
    cx: &mut Context<'_>,
    lanes: Lanes<'_, N>,
    out: &mut [[u32; N]; W],
) -> Result<(), Trouble> {
    for (k, row) in out.iter_mut().enumerate() {
        let offset = lanes.offset.map(|offset| offset.wrapping_add(4 * k as u32));
        scratch::load::<N, u32>(w, cx, &offset, lanes.mask, lanes.exec, row)?;
    }
    Ok(())
}

#[inline(always)]
fn store<const N: usize, const SEG: u8, T: Element>(
    w: &mut Wave<N>,
    i: &Inst,
    cx: &mut Context<'_>,
    shift: u32,
) -> Result<(), Trouble> {
    if w.exec() == 0 {
        return Ok(());
    }
    let row = usize::from(data_register(w, i, vgpr(i.src[1]))) & 511;
    let coherent = i.flags & flag::GLC != 0 && T::BYTES == 4;
    let shifted;
    let data = if shift == 0 {
        &w.v[row]
    } else {
        shifted = w.v[row].map(|value| value >> shift);
        &shifted
    };
    for_groups::<N, SEG>(w, i, cx, |cx, space, lanes| match space {
        Space::Global if coherent => store_coherent(cx, lanes, data),
        Space::Global => Ok(cx.view.scatter::<N, T>(cx.slot, lanes, data)?),
        Space::Lds => {
            lds_store::<N, T>(cx, lanes, data);
            Ok(())
        }
        Space::Private => scratch::store::<N, T>(w, cx, lanes.offset, lanes.mask, lanes.exec, data),
    })
}

#[inline(never)]
fn store_cold<const N: usize, const SEG: u8, T: Element>(
    w: &mut Wave<N>,
    i: &Inst,
    cx: &mut Context<'_>,
    shift: u32,
) -> Result<(), Trouble> {
    store::<N, SEG, T>(w, i, cx, shift)
}

#[inline(always)]
fn store_wide<const N: usize, const SEG: u8, const W: usize>(
    w: &mut Wave<N>,
    i: &Inst,
    cx: &mut Context<'_>,
) -> Result<(), Trouble> {
    if w.exec() == 0 {
        return Ok(());
    }
    let first = usize::from(data_register(w, i, vgpr(i.src[1])));
    let coherent = i.flags & flag::GLC != 0;
    let data: [&[u32; N]; W] = std::array::from_fn(|k| &w.v[(first + k) & 511]);
    for_groups::<N, SEG>(w, i, cx, |cx, space, lanes| match space {
        Space::Global if coherent => store_coherent_wide(cx, lanes, data),
        Space::Global => Ok(cx.view.scatter_wide(cx.slot, lanes, data)?),
        Space::Lds => {
            lds_store_wide(cx, lanes, data);
            Ok(())
        }
        Space::Private => {
            for (k, row) in data.iter().enumerate() {
                let offset = lanes.offset.map(|offset| offset.wrapping_add(4 * k as u32));
                scratch::store::<N, u32>(w, cx, &offset, lanes.mask, lanes.exec, row)?;
            }
            Ok(())
        }
    })
}

#[inline(never)]
fn store_wide_cold<const N: usize, const SEG: u8, const W: usize>(
    w: &mut Wave<N>,
    i: &Inst,
    cx: &mut Context<'_>,
) -> Result<(), Trouble> {
    store_wide::<N, SEG, W>(w, i, cx)
}

fn active<const N: usize>(exec: u64) -> impl Iterator<Item = usize> {
    (0..N).filter(move |&lane| exec >> lane & 1 != 0)
}

fn address<const N: usize>(lanes: &Lanes<'_, N>, lane: usize) -> u64 {
    lanes.base.wrapping_add(u64::from(lanes.offset[lane]))
}

/// Loads another agent may race with: each dword or aligned pair is read as a whole.
#[inline(never)]
fn load_coherent<const N: usize>(
    cx: &mut Context<'_>,
    lanes: Lanes<'_, N>,
    out: &mut [u32; N],
) -> Result<(), Trouble> {
    for lane in active::<N>(lanes.exec) {
        out[lane] = cx.view.load_coherent_u32(cx.slot, address(&lanes, lane))?;
    }
    Ok(())
}

#[inline(never)]
fn load_coherent_wide<const N: usize, const W: usize>(
    cx: &mut Context<'_>,
    lanes: Lanes<'_, N>,
    out: &mut [[u32; N]; W],
) -> Result<(), Trouble> {
    for lane in active::<N>(lanes.exec) {
        let at = address(&lanes, lane);
        let mut k = 0;
        while k < W {
            let at = at.wrapping_add(4 * k as u64);
            if k + 1 < W {
                let pair = cx.view.load_coherent_u64(cx.slot, at)?;
                out[k][lane] = pair as u32;
                out[k + 1][lane] = (pair >> 32) as u32;
                k += 2;
            } else {
                out[k][lane] = cx.view.load_coherent_u32(cx.slot, at)?;
                k += 1;
            }
        }
    }
    Ok(())
}

#[inline(never)]
fn store_coherent<const N: usize>(
    cx: &mut Context<'_>,
    lanes: Lanes<'_, N>,
    data: &[u32; N],
) -> Result<(), Trouble> {
    for lane in active::<N>(lanes.exec) {
        cx.view.store_coherent_u32(cx.slot, address(&lanes, lane), data[lane])?;
    }
    Ok(())
}

#[inline(never)]
fn store_coherent_wide<const N: usize, const W: usize>(
    cx: &mut Context<'_>,
    lanes: Lanes<'_, N>,
    data: [&[u32; N]; W],
) -> Result<(), Trouble> {
    for lane in active::<N>(lanes.exec) {
        let at = address(&lanes, lane);
        let mut k = 0;
        while k < W {
            let at = at.wrapping_add(4 * k as u64);
            if k + 1 < W {
                let pair = u64::from(data[k][lane]) | u64::from(data[k + 1][lane]) << 32;
                cx.view.store_coherent_u64(cx.slot, at, pair)?;
                k += 2;
            } else {
                cx.view.store_coherent_u32(cx.slot, at, data[k][lane])?;
                k += 1;
            }
        }
    }
    Ok(())
}

#[inline(never)]
fn lds_load<const N: usize, T: Element>(
    cx: &mut Context<'_>,
    lanes: Lanes<'_, N>,
    out: &mut [u32; N],
) {
    for lane in active::<N>(lanes.exec) {
        let offset = lanes.offset[lane];
        let value = match T::BYTES {
            1 => u32::from(cx.lds.read::<1>(offset)[0]),
            2 => u32::from(u16::from_le_bytes(cx.lds.read(offset))),
            _ => cx.lds.read_u32(offset),
        };
        out[lane] = T::narrow(value).widen();
    }
}

#[inline(never)]
fn lds_load_wide<const N: usize, const W: usize>(
    cx: &mut Context<'_>,
    lanes: Lanes<'_, N>,
    out: &mut [[u32; N]; W],
) {
    for lane in active::<N>(lanes.exec) {
        for (k, row) in out.iter_mut().enumerate() {
            row[lane] = cx.lds.read_u32(lanes.offset[lane].wrapping_add(4 * k as u32));
        }
    }
}

#[inline(never)]
fn lds_store<const N: usize, T: Element>(
    cx: &mut Context<'_>,
    lanes: Lanes<'_, N>,
    data: &[u32; N],
) {
    for lane in active::<N>(lanes.exec) {
        let (offset, value) = (lanes.offset[lane], data[lane]);
        match T::BYTES {
            1 => cx.lds.write(offset, [value as u8]),
            2 => cx.lds.write(offset, (value as u16).to_le_bytes()),
            _ => cx.lds.write_u32(offset, value),
        }
    }
}

#[inline(never)]
fn lds_store_wide<const N: usize, const W: usize>(
    cx: &mut Context<'_>,
    lanes: Lanes<'_, N>,
    data: [&[u32; N]; W],
) {
    for lane in active::<N>(lanes.exec) {
        for (k, row) in data.iter().enumerate() {
            cx.lds.write_u32(lanes.offset[lane].wrapping_add(4 * k as u32), row[lane]);
        }
    }
}

/// An atomic operation: lane by lane, ascending.
#[inline(never)]
fn atomic<const N: usize, const SEG: u8, const WIDE: bool>(
    w: &mut Wave<N>,
    i: &Inst,
    cx: &mut Context<'_>,
    kind: Atomic,
) -> Result<(), Trouble> {
    if w.exec() == 0 {
        return Ok(());
    }
    let first = usize::from(data_register(w, i, vgpr(i.src[1])));
    let words = if WIDE { 2 } else { 1 };
    let operand = |lane: usize, at: usize| {
        let low = u64::from(w.v[(first + at) & 511][lane]);
        if WIDE { low | u64::from(w.v[(first + at + 1) & 511][lane]) << 32 } else { low }
    };
    let mut old = [[0; N]; 2];
    for_groups::<N, SEG>(w, i, cx, |cx, space, lanes| {
        for lane in active::<N>(lanes.exec) {
            let data = operand(lane, 0);
            let second = if kind.has_second() { operand(lane, words) } else { 0 };
            let before = match space {
                Space::Lds => lds_atomic::<WIDE>(cx, lanes.offset[lane], kind, data, second)?,
                Space::Global => {
                    memory_atomic::<WIDE>(cx, address(&lanes, lane), kind, data, second)?
                }
                Space::Private => {
                    let at = scratch::address(w, cx, lanes.offset[lane], lane, 4 * words as u32)?;
                    memory_atomic::<WIDE>(cx, at, kind, data, second)?
                }
            };
            old[0][lane] = before as u32;
            old[1][lane] = (before >> 32) as u32;
        }
        Ok(())
    })?;
    if i.flags & flag::GLC != 0 {
        let dst = data_register(w, i, i.dst);
        w.write_v(dst, &old[0]);
        if WIDE {
            w.write_v(dst.wrapping_add(1), &old[1]);
        }
    }
    Ok(())
}

/// An atomic operation on memory; returns the old value.
#[inline]
pub(super) fn memory_atomic<const WIDE: bool>(
    cx: &mut Context<'_>,
    address: u64,
    kind: Atomic,
    data: u64,
    second: u64,
) -> Result<u64, Trouble> {
    let slot = cx.slot;
    if WIDE {
        return Ok(cx.view.atomic_u64(slot, address, |old| kind.apply64(old, data, second))?);
    }
    let (data, second) = (data as u32, second as u32);
    let old = match kind {
        Atomic::Add => cx.view.atomic_add_u32(slot, address, data)?,
        _ => cx.view.atomic_u32(slot, address, |old| kind.apply32(old, data, second))?,
    };
    Ok(u64::from(old))
}

/// An atomic operation on LDS; returns the old value. Misaligned: a violation, as in memory.
#[inline]
pub(super) fn lds_atomic<const WIDE: bool>(
    cx: &mut Context<'_>,
    offset: u32,
    kind: Atomic,
    data: u64,
    second: u64,
) -> Result<u64, Trouble> {
    let bytes = if WIDE { 8 } else { 4 };
    if !offset.is_multiple_of(bytes) {
        return Err(Trouble::Violation(cx.env.apertures.lds_base.wrapping_add(u64::from(offset))));
    }
    if WIDE {
        let old = cx.lds.read_u64(offset);
        cx.lds.write_u64(offset, kind.apply64(old, data, second));
        return Ok(old);
    }
    let old = cx.lds.read_u32(offset);
    cx.lds.write_u32(offset, kind.apply32(old, data as u32, second as u32));
    Ok(u64::from(old))
}

/// Address `saddr + imm + 4 * lane`.
#[inline(never)]
fn load_addtid<const N: usize>(
    w: &mut Wave<N>,
    i: &Inst,
    cx: &mut Context<'_>,
) -> Result<(), Trouble> {
    let mut out = [0; N];
    for lane in active::<N>(w.exec()) {
        out[lane] = cx.view.load_dword(cx.slot, addtid(w, i, lane)?)?;
    }
    w.write_v(i.dst, &out);
    Ok(())
}

#[inline(never)]
fn store_addtid<const N: usize>(
    w: &mut Wave<N>,
    i: &Inst,
    cx: &mut Context<'_>,
) -> Result<(), Trouble> {
    let row = usize::from(vgpr(i.src[1])) & 511;
    for lane in active::<N>(w.exec()) {
        let at = addtid(w, i, lane)?;
        cx.view.store_dword(cx.slot, at, w.v[row][lane])?;
    }
    Ok(())
}

fn addtid<const N: usize>(w: &Wave<N>, i: &Inst, lane: usize) -> Result<u64, Trouble> {
    let SrcKind::S(saddr) = i.src[2].kind() else { return Err(Trouble::Illegal) };
    Ok(w.s64(saddr).wrapping_add(i64::from(i.imm) as u64).wrapping_add(4 * lane as u64))
}
