//! Permutations between lanes: they share the encoding, and use no memory.

use super::{data_row, dst, each, row};
use crate::exec::context::{Context, Trouble};
use crate::exec::wave::Wave;
use crate::isa::ir::Inst;

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
pub(super) fn swizzle<const N: usize>(w: &mut Wave<N>, i: &Inst) -> Result<(), Trouble> {
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
pub(super) fn permute<const N: usize>(
    w: &mut Wave<N>,
    i: &Inst,
    cx: &mut Context<'_>,
) -> Result<(), Trouble> {
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
pub(super) fn bpermute<const N: usize>(
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
