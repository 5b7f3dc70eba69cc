//! Dwords of global memory: code in the interpreter's loop.

use super::access::{load, load_words, store, store_words};
use super::{Part, Segment, data_register, vgpr};
use crate::exec::context::{Context, Trouble};
use crate::exec::wave::Wave;
use crate::isa::ir::{Inst, SrcKind, flag};
use crate::memory::Lanes;

/// The lanes of an access to global memory that share the high address word: almost always all.
struct Global<'a, const N: usize> {
    base: u64,
    offset: &'a [u32; N],
}

/// Resolves the addresses of a GLOBAL instruction. `None`: they have different high words.
/// EXEC is not zero.
#[inline(always)]
fn global<'a, const N: usize>(w: &'a Wave<N>, i: &Inst) -> Option<Global<'a, N>> {
    let row = usize::from(vgpr(i.src[0])) & 511;
    let imm = i64::from(i.imm) as u64;
    if i.flags & flag::SADDR != 0 {
        let SrcKind::S(saddr) = i.src[2].kind() else { return None };
        return Some(Global { base: w.s64(saddr).wrapping_add(imm), offset: &w.v[row] });
    }
    let high = &w.v[(row + 1) & 511];
    let first = high[w.exec().trailing_zeros() as usize % N];
    let mut differs = 0;
    for k in 0..N {
        differs |= (high[k] ^ first) & w.mask[k];
    }
    let base = (u64::from(first) << 32).wrapping_add(imm);
    (differs == 0).then_some(Global { base, offset: &w.v[row] })
}

/// Whether the usual path does not apply: coherent accesses, and addresses 4 GiB apart.
#[inline(always)]
fn usual<'a, const N: usize>(w: &'a Wave<N>, i: &Inst) -> Option<Global<'a, N>> {
    if i.flags & (flag::GLC | flag::LDS) != 0 { None } else { global(w, i) }
}

#[inline(always)]
pub(super) fn hot_load<const N: usize>(
    w: &mut Wave<N>,
    i: &Inst,
    cx: &mut Context<'_>,
) -> Result<(), Trouble> {
    let exec = w.exec();
    if exec == 0 {
        return Ok(());
    }
    let Some(Global { base, offset }) = usual(w, i) else {
        return load(w, i, cx, Segment::Global, Part::B32);
    };
    let mut out = [0; N];
    let lanes = Lanes { base, offset, mask: &w.mask, exec };
    cx.view.gather::<N, u32>(cx.slot, lanes, &mut out)?;
    let dst = data_register(w, i, i.dst);
    w.write_v(dst, &out);
    Ok(())
}

#[inline(always)]
pub(super) fn hot_load_wide<const N: usize, const W: usize>(
    w: &mut Wave<N>,
    i: &Inst,
    cx: &mut Context<'_>,
) -> Result<(), Trouble> {
    let exec = w.exec();
    if exec == 0 {
        return Ok(());
    }
    let Some(Global { base, offset }) = usual(w, i) else {
        return load_words(w, i, cx, Segment::Global, W);
    };
    let mut out = [[0; N]; W];
    let lanes = Lanes { base, offset, mask: &w.mask, exec };
    cx.view.gather_wide(cx.slot, lanes, &mut out)?;
    let dst = data_register(w, i, i.dst);
    w.write_rows(dst, &out);
    Ok(())
}

#[inline(always)]
pub(super) fn hot_store<const N: usize>(
    w: &mut Wave<N>,
    i: &Inst,
    cx: &mut Context<'_>,
) -> Result<(), Trouble> {
    let exec = w.exec();
    if exec == 0 {
        return Ok(());
    }
    let Some(Global { base, offset }) = usual(w, i) else {
        return store(w, i, cx, Segment::Global, Part::B32, 0);
    };
    let row = usize::from(data_register(w, i, vgpr(i.src[1]))) & 511;
    let lanes = Lanes { base, offset, mask: &w.mask, exec };
    Ok(cx.view.scatter::<N, u32>(cx.slot, lanes, &w.v[row])?)
}

#[inline(always)]
pub(super) fn hot_store_wide<const N: usize, const W: usize>(
    w: &mut Wave<N>,
    i: &Inst,
    cx: &mut Context<'_>,
) -> Result<(), Trouble> {
    let exec = w.exec();
    if exec == 0 {
        return Ok(());
    }
    let Some(Global { base, offset }) = usual(w, i) else {
        return store_words(w, i, cx, Segment::Global, W);
    };
    let first = usize::from(data_register(w, i, vgpr(i.src[1])));
    let mut data = [&w.v[0]; W];
    for (k, row) in data.iter_mut().enumerate() {
        *row = &w.v[(first + k) & 511];
    }
    let lanes = Lanes { base, offset, mask: &w.mask, exec };
    Ok(cx.view.scatter_wide(cx.slot, lanes, data)?)
}
