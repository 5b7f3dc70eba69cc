//! Atomic operations of lanes on LDS.

use super::access::two_offsets;
use super::{Order, data_row, dst, each, local, row};
use crate::exec::atomic::Atomic;
use crate::exec::context::{Context, Trouble};
use crate::exec::flat::{lds_atomic, operand};
use crate::exec::wave::Wave;
use crate::isa::ir::{Inst, sgpr};

#[inline(never)]
pub(super) fn atomic<const N: usize>(
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
pub(super) fn append<const N: usize>(
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

#[inline(never)]
pub(super) fn exchange_two<const N: usize, const W: usize>(
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
    w.write_rows(dst, out.as_flattened());
    Ok(())
}

/// ds_*_src2: the second operand is in LDS too, so many dwords from the first as the offset field or
/// the address's high bits say.
#[inline(never)]
pub(super) fn source2<const N: usize>(
    w: &Wave<N>,
    i: &Inst,
    cx: &mut Context<'_>,
    wide: bool,
    kind: Atomic,
) -> Result<(), Trouble> {
    local(i)?;
    let addresses = &w.v[row(i.src[0])];
    let low_bits = if wide { 7 } else { 3 };
    let field = i.imm as u32;
    let mut result = Ok(());
    w.for_active(|lane| {
        let address = addresses[lane & (N - 1)];
        // Distances are 15 bits and a sign.
        let (at, distance) = if field & 0x8000 != 0 {
            (address & 0x1_ffff, address as i32 >> 17)
        } else {
            (address, (field << 17) as i32 >> 17)
        };
        let at = at & !low_bits;
        let from = at.wrapping_add((distance << 2) as u32) & !low_bits;
        let data = if wide { cx.lds.read_u64(from) } else { u64::from(cx.lds.read_u32(from)) };
        if result.is_ok() {
            result = lds_atomic(cx, at, wide, kind, data, 0).map(|_| ());
        }
    });
    result
}

/// ds_condxchg32_rtn_b64: each dword of the data whose top bit is set replaces the dword in LDS,
/// without that bit.
#[inline(never)]
pub(super) fn conditional_exchange<const N: usize>(
    w: &mut Wave<N>,
    i: &Inst,
    cx: &mut Context<'_>,
) -> Result<(), Trouble> {
    local(i)?;
    let data = data_row(w, i, i.src[1]);
    let mut old = [[0; N]; 2];
    each(w, i, |lane, at| {
        for (k, row) in old.iter_mut().enumerate() {
            let at = (at & 0xfff8) + 4 * k as u32;
            row[lane] = cx.lds.read_u32(at);
            let value = w.v[(data + k) & 511][lane];
            if value >> 31 != 0 {
                cx.lds.write_u32(at, value & 0x7fff_ffff);
            }
        }
    });
    let dst = dst(w, i);
    w.write_rows(dst, &old);
    Ok(())
}
