//! Loads and stores of any kind of memory.

use super::batch::{Batch, next_batch};
use super::{Part, Segment, Space, data_register, vgpr};
use crate::exec::context::{Context, Trouble};
use crate::exec::scratch;
use crate::exec::wave::Wave;
use crate::isa::ir::{Inst, SrcKind, flag, sgpr};

/// Loads one element per lane of a batch; other lanes of `out` stay.
fn fetch<const N: usize>(
    w: &Wave<N>,
    cx: &mut Context<'_>,
    batch: &Batch<N>,
    part: Part,
    coherent: bool,
    out: &mut [u32; N],
) -> Result<(), Trouble> {
    let mut got = [0; N];
    match batch.space {
        Space::Global if coherent && part == Part::B32 => {
            for lane in batch.active() {
                got[lane] = cx.view.load_coherent_u32(cx.slot, batch.address(lane))?;
            }
        }
        Space::Global => match part {
            Part::U8 => cx.view.gather::<N, u8>(cx.slot, batch.lanes(), &mut got)?,
            Part::I8 => cx.view.gather::<N, i8>(cx.slot, batch.lanes(), &mut got)?,
            Part::U16 => cx.view.gather::<N, u16>(cx.slot, batch.lanes(), &mut got)?,
            Part::I16 => cx.view.gather::<N, i16>(cx.slot, batch.lanes(), &mut got)?,
            Part::B32 => cx.view.gather::<N, u32>(cx.slot, batch.lanes(), &mut got)?,
        },
        Space::Lds => {
            for lane in batch.active() {
                let offset = batch.offset[lane];
                got[lane] = match part {
                    Part::U8 => u32::from(cx.lds.read::<1>(offset)[0]),
                    Part::I8 => i8::from_le_bytes(cx.lds.read(offset)) as u32,
                    Part::U16 => u32::from(u16::from_le_bytes(cx.lds.read(offset))),
                    Part::I16 => i16::from_le_bytes(cx.lds.read(offset)) as u32,
                    Part::B32 => cx.lds.read_u32(offset),
                };
            }
        }
        Space::Private => scratch::load(w, cx, batch.lanes(), part, &mut got)?,
    }
    for k in 0..N {
        out[k] = got[k] & batch.mask[k] | out[k] & !batch.mask[k];
    }
    Ok(())
}

/// Stores one element per lane of a batch, in lane order.
fn put<const N: usize>(
    w: &Wave<N>,
    cx: &mut Context<'_>,
    batch: &Batch<N>,
    part: Part,
    coherent: bool,
    data: &[u32; N],
) -> Result<(), Trouble> {
    match batch.space {
        Space::Global if coherent && part == Part::B32 => {
            for lane in batch.active() {
                cx.view.store_coherent_u32(cx.slot, batch.address(lane), data[lane])?;
            }
        }
        Space::Global => match part {
            Part::U8 | Part::I8 => cx.view.scatter::<N, u8>(cx.slot, batch.lanes(), data)?,
            Part::U16 | Part::I16 => cx.view.scatter::<N, u16>(cx.slot, batch.lanes(), data)?,
            Part::B32 => cx.view.scatter::<N, u32>(cx.slot, batch.lanes(), data)?,
        },
        Space::Lds => {
            for lane in batch.active() {
                let (offset, value) = (batch.offset[lane], data[lane]);
                match part {
                    Part::U8 | Part::I8 => cx.lds.write(offset, [value as u8]),
                    Part::U16 | Part::I16 => cx.lds.write(offset, (value as u16).to_le_bytes()),
                    Part::B32 => cx.lds.write_u32(offset, value),
                }
            }
        }
        Space::Private => scratch::store(w, cx, batch.lanes(), part, data)?,
    }
    Ok(())
}

#[inline(never)]
pub(super) fn load<const N: usize>(
    w: &mut Wave<N>,
    i: &Inst,
    cx: &mut Context<'_>,
    segment: Segment,
    part: Part,
) -> Result<(), Trouble> {
    let coherent = i.flags & flag::GLC != 0;
    let mut out = [0; N];
    let mut rest = w.exec();
    while rest != 0 {
        let batch = next_batch(w, i, cx, segment, &mut rest)?;
        fetch(w, cx, &batch, part, coherent, &mut out)?;
    }
    if i.flags & flag::LDS != 0 {
        put_in_lds(w, i, cx, &out);
        return Ok(());
    }
    let dst = data_register(w, i, i.dst);
    w.write_v(dst, &out);
    Ok(())
}

/// The lds bit, and the operations that load to LDS: each active lane's dword goes to
/// M0\[17:2\] * 4 + immediate + 4 * lane.
fn put_in_lds<const N: usize>(w: &Wave<N>, i: &Inst, cx: &mut Context<'_>, row: &[u32; N]) {
    let start = (w.s32(sgpr::M0) & 0x3_fffc).wrapping_add(i.imm as u32);
    w.for_active(|lane| {
        let lane = lane & (N - 1);
        cx.lds.write_u32(start.wrapping_add(4 * lane as u32), row[lane]);
    });
}

/// Loads into one half of the register and keeps the other.
#[inline(never)]
pub(super) fn load_d16<const N: usize>(
    w: &mut Wave<N>,
    i: &Inst,
    cx: &mut Context<'_>,
    segment: Segment,
    part: Part,
    high: bool,
) -> Result<(), Trouble> {
    if i.flags & flag::LDS != 0 {
        return Err(Trouble::Illegal); // half a register is nothing that LDS could take
    }
    let dst = data_register(w, i, i.dst);
    let old = w.v[usize::from(dst) & 511];
    let mut out = [0; N];
    let mut rest = w.exec();
    while rest != 0 {
        let batch = next_batch(w, i, cx, segment, &mut rest)?;
        fetch(w, cx, &batch, part, false, &mut out)?;
    }
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

/// Two to four dwords per lane.
#[inline(never)]
pub(super) fn load_words<const N: usize>(
    w: &mut Wave<N>,
    i: &Inst,
    cx: &mut Context<'_>,
    segment: Segment,
    words: usize,
) -> Result<(), Trouble> {
    if i.flags & flag::LDS != 0 {
        return Err(Trouble::Illegal); // one dword per lane at most goes to LDS
    }
    let coherent = i.flags & flag::GLC != 0;
    let mut out = [[0; N]; 4];
    let mut rest = w.exec();
    while rest != 0 {
        let mut batch = next_batch(w, i, cx, segment, &mut rest)?;
        if batch.space == Space::Global && words != 3 {
            // Pairs are read as a whole: another agent may be writing them.
            for (pair, rows) in out.chunks_exact_mut(2).enumerate().take(words / 2) {
                for lane in batch.active() {
                    let at = batch.address(lane).wrapping_add(8 * pair as u64);
                    let value = if coherent {
                        cx.view.load_coherent_u64(cx.slot, at)?
                    } else {
                        let [low, high] = cx.view.load_words(cx.slot, at)?;
                        u64::from(low) | u64::from(high) << 32
                    };
                    if let [low, high] = rows {
                        low[lane] = value as u32;
                        high[lane] = (value >> 32) as u32;
                    }
                }
            }
            continue;
        }
        for row in out.iter_mut().take(words) {
            fetch(w, cx, &batch, Part::B32, coherent, row)?;
            advance(&mut batch);
        }
    }
    let dst = data_register(w, i, i.dst);
    for (k, row) in out.iter().enumerate().take(words) {
        w.write_v(dst.wrapping_add(k as u16), row);
    }
    Ok(())
}

/// Moves a batch to the next dword of each lane.
fn advance<const N: usize>(batch: &mut Batch<N>) {
    if batch.space == Space::Global {
        batch.base = batch.base.wrapping_add(4);
    } else {
        for offset in &mut batch.offset {
            *offset = offset.wrapping_add(4);
        }
    }
}

#[inline(never)]
pub(super) fn store<const N: usize>(
    w: &mut Wave<N>,
    i: &Inst,
    cx: &mut Context<'_>,
    segment: Segment,
    part: Part,
    shift: u32,
) -> Result<(), Trouble> {
    let row = usize::from(data_register(w, i, vgpr(i.src[1]))) & 511;
    let coherent = i.flags & flag::GLC != 0;
    let data = w.v[row].map(|value| value >> shift);
    let mut rest = w.exec();
    while rest != 0 {
        let batch = next_batch(w, i, cx, segment, &mut rest)?;
        put(w, cx, &batch, part, coherent, &data)?;
    }
    Ok(())
}

/// Two to four dwords per lane.
#[inline(never)]
pub(super) fn store_words<const N: usize>(
    w: &mut Wave<N>,
    i: &Inst,
    cx: &mut Context<'_>,
    segment: Segment,
    words: usize,
) -> Result<(), Trouble> {
    let first = usize::from(data_register(w, i, vgpr(i.src[1])));
    let coherent = i.flags & flag::GLC != 0;
    let mut rest = w.exec();
    while rest != 0 {
        let mut batch = next_batch(w, i, cx, segment, &mut rest)?;
        if batch.space == Space::Global && words != 3 {
            for pair in 0..words / 2 {
                let (low, high) =
                    (&w.v[(first + 2 * pair) & 511], &w.v[(first + 2 * pair + 1) & 511]);
                for lane in batch.active() {
                    let at = batch.address(lane).wrapping_add(8 * pair as u64);
                    let value = u64::from(low[lane]) | u64::from(high[lane]) << 32;
                    cx.view.store_coherent_u64(cx.slot, at, value)?;
                }
            }
            continue;
        }
        for k in 0..words {
            put(w, cx, &batch, Part::B32, coherent, &w.v[(first + k) & 511])?;
            advance(&mut batch);
        }
    }
    Ok(())
}

/// Address `saddr + imm + 4 * lane`.
#[inline(never)]
pub(super) fn load_addtid<const N: usize>(
    w: &mut Wave<N>,
    i: &Inst,
    cx: &mut Context<'_>,
) -> Result<(), Trouble> {
    let mut out = [0; N];
    for lane in (0..N).filter(|&lane| w.mask[lane] != 0) {
        out[lane] = cx.view.load_dword(cx.slot, addtid(w, i, lane)?)?;
    }
    w.write_v(i.dst, &out);
    Ok(())
}

#[inline(never)]
pub(super) fn store_addtid<const N: usize>(
    w: &mut Wave<N>,
    i: &Inst,
    cx: &mut Context<'_>,
) -> Result<(), Trouble> {
    let row = usize::from(vgpr(i.src[1])) & 511;
    for lane in (0..N).filter(|&lane| w.mask[lane] != 0) {
        let at = addtid(w, i, lane)?;
        cx.view.store_dword(cx.slot, at, w.v[row][lane])?;
    }
    Ok(())
}

fn addtid<const N: usize>(w: &Wave<N>, i: &Inst, lane: usize) -> Result<u64, Trouble> {
    let SrcKind::S(saddr) = i.src[2].kind() else { return Err(Trouble::Illegal) };
    Ok(w.s64(saddr).wrapping_add(i64::from(i.imm) as u64).wrapping_add(4 * lane as u64))
}
