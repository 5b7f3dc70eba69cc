//! Atomic operations on memory and LDS.

use super::batch::next_batch;
use super::{Segment, Space, data_register, vgpr};
use crate::exec::atomic::Atomic;
use crate::exec::context::{Context, Trouble};
use crate::exec::scratch;
use crate::exec::wave::Wave;
use crate::isa::ir::{Inst, flag};

/// An atomic operation: lane by lane, ascending.
#[inline(never)]
pub(super) fn atomic<const N: usize>(
    w: &mut Wave<N>,
    i: &Inst,
    cx: &mut Context<'_>,
    segment: Segment,
    wide: bool,
    kind: Atomic,
) -> Result<(), Trouble> {
    let first = usize::from(data_register(w, i, vgpr(i.src[1])));
    let words = if wide { 2 } else { 1 };
    let mut old = [[0; N]; 2];
    let mut rest = w.exec();
    while rest != 0 {
        let batch = next_batch(w, i, cx, segment, &mut rest)?;
        for lane in batch.active() {
            let data = operand(w, first, lane, wide);
            let second = if kind.has_second() { operand(w, first + words, lane, wide) } else { 0 };
            let before = match batch.space {
                Space::Lds => lds_atomic(cx, batch.offset[lane], wide, kind, data, second)?,
                Space::Global => memory_atomic(cx, batch.address(lane), wide, kind, data, second)?,
                Space::Private => {
                    let at = scratch::address(w, cx, batch.offset[lane], lane, 4 * words as u32)?;
                    memory_atomic(cx, at, wide, kind, data, second)?
                }
            };
            old[0][lane] = before as u32;
            old[1][lane] = (before >> 32) as u32;
        }
    }
    if i.flags & flag::GLC != 0 {
        let dst = data_register(w, i, i.dst);
        w.write_v(dst, &old[0]);
        if wide {
            w.write_v(dst.wrapping_add(1), &old[1]);
        }
    }
    Ok(())
}

/// A lane's data operand of one or two dwords.
pub(in crate::exec) fn operand<const N: usize>(
    w: &Wave<N>,
    first: usize,
    lane: usize,
    wide: bool,
) -> u64 {
    let low = u64::from(w.v[first & 511][lane]);
    if wide { low | u64::from(w.v[(first + 1) & 511][lane]) << 32 } else { low }
}

/// An atomic operation on memory; returns the old value.
pub(in crate::exec) fn memory_atomic(
    cx: &mut Context<'_>,
    address: u64,
    wide: bool,
    kind: Atomic,
    data: u64,
    second: u64,
) -> Result<u64, Trouble> {
    let slot = cx.slot;
    if wide {
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
pub(in crate::exec) fn lds_atomic(
    cx: &mut Context<'_>,
    offset: u32,
    wide: bool,
    kind: Atomic,
    data: u64,
    second: u64,
) -> Result<u64, Trouble> {
    let bytes = if wide { 8 } else { 4 };
    if !offset.is_multiple_of(bytes) {
        return Err(Trouble::Violation(cx.env.apertures.lds_base.wrapping_add(u64::from(offset))));
    }
    if wide {
        let old = cx.lds.read_u64(offset);
        cx.lds.write_u64(offset, kind.apply64(old, data, second));
        return Ok(old);
    }
    let old = cx.lds.read_u32(offset);
    cx.lds.write_u32(offset, kind.apply32(old, data as u32, second as u32));
    Ok(u64::from(old))
}
