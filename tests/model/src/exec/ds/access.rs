//! Loads and stores.

use super::{data_row, dst, each, local, row};
use crate::exec::context::{Context, Trouble};
use crate::exec::lds::Lds;
use crate::exec::wave::Wave;
use crate::isa::ir::{Inst, sgpr};

#[inline(never)]
pub(super) fn load<const N: usize, const W: usize>(
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
    w.write_rows(dst, &out);
    Ok(())
}

#[inline(never)]
pub(super) fn load_part<const N: usize>(
    w: &mut Wave<N>,
    i: &Inst,
    cx: &mut Context<'_>,
    f: impl Fn(&Lds, u32) -> u32,
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
pub(super) fn load_half<const N: usize>(
    w: &mut Wave<N>,
    i: &Inst,
    cx: &mut Context<'_>,
    high: bool,
    f: impl Fn(&Lds, u32) -> u32,
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
pub(super) fn two_offsets(i: &Inst, bytes: u32, stride: u32) -> [u32; 2] {
    let imm = i.imm as u32;
    [(imm & 0xff) * bytes * stride, (imm >> 8 & 0xff) * bytes * stride]
}

#[inline(never)]
pub(super) fn load_two<const N: usize, const W: usize>(
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
    w.write_rows(dst, out.as_flattened());
    Ok(())
}

#[inline(never)]
pub(super) fn store<const N: usize, const W: usize>(
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
pub(super) fn store_part<const N: usize>(
    w: &mut Wave<N>,
    i: &Inst,
    cx: &mut Context<'_>,
    f: impl Fn(&mut Lds, u32, u32),
) -> Result<(), Trouble> {
    local(i)?;
    let data = data_row(w, i, i.src[1]);
    each(w, i, |lane, at| f(&mut cx.lds, at, w.v[data][lane]));
    Ok(())
}

#[inline(never)]
pub(super) fn store_two<const N: usize, const W: usize>(
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

/// M0\[15:0\] + offset + 4 * lane.
fn addtid<const N: usize>(w: &Wave<N>, i: &Inst, lane: usize) -> u32 {
    (w.s32(sgpr::M0) & 0xffff).wrapping_add(i.imm as u32).wrapping_add(4 * lane as u32)
}

#[inline(never)]
pub(super) fn load_addtid<const N: usize>(
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
pub(super) fn store_addtid<const N: usize>(
    w: &mut Wave<N>,
    i: &Inst,
    cx: &mut Context<'_>,
) -> Result<(), Trouble> {
    local(i)?;
    let data = data_row(w, i, i.src[1]);
    w.for_active(|lane| cx.lds.write_u32(addtid(w, i, lane), w.v[data][lane & (N - 1)]));
    Ok(())
}
