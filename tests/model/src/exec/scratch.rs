//! Private memory: per-lane offsets to addresses in the queue's scratch buffer.
//!
//! The layout is the hardware's: dword `d` of all lanes is consecutive, so lane `l`'s byte `o` is at
//! `wave base + (o / 4) * 4 * N + l * 4 + o % 4`.

use super::context::{Context, Trouble};
use super::flat::Part;
use super::wave::Wave;
use crate::memory::Lanes;

/// Bytes of the wave's slot that come before lane `lane`'s byte `offset`.
#[inline(always)]
fn swizzled<const N: usize>(offset: u32, lane: usize) -> u32 {
    (offset & !3).wrapping_mul(N as u32).wrapping_add(4 * lane as u32).wrapping_add(offset & 3)
}

/// Where the wave's slot starts.
#[inline(always)]
fn base<const N: usize>(w: &Wave<N>, cx: &Context<'_>) -> u64 {
    w.s64(cx.env.flat_scratch)
}

/// Bytes one lane moves.
fn bytes_of(part: Part) -> u32 {
    match part {
        Part::U8 | Part::I8 => 1,
        Part::U16 | Part::I16 => 2,
        Part::B32 => 4,
    }
}

/// Whether no element leaves its dword; an error when a lane leaves its private segment.
fn check<const N: usize>(
    cx: &Context<'_>,
    lanes: &Lanes<'_, N>,
    bytes: u32,
) -> Result<bool, Trouble> {
    let (mut high, mut low_bits) = (0, 0);
    for i in 0..N {
        high = high.max(lanes.offset[i] & lanes.mask[i]);
        low_bits |= lanes.offset[i] & lanes.mask[i];
    }
    let limit = cx.env.private_bytes;
    if limit < bytes || high > limit - bytes {
        return Err(overflow(cx, lanes, bytes));
    }
    Ok(low_bits & (bytes - 1) == 0)
}

#[cold]
fn overflow<const N: usize>(cx: &Context<'_>, lanes: &Lanes<'_, N>, bytes: u32) -> Trouble {
    let limit = u64::from(cx.env.private_bytes);
    let beyond =
        |i: &usize| lanes.mask[*i] != 0 && u64::from(lanes.offset[*i]) + u64::from(bytes) > limit;
    let offset = (0..N).find(beyond).map_or(0, |lane| lanes.offset[lane]);
    Trouble::Violation(cx.env.apertures.scratch_base.wrapping_add(u64::from(offset)))
}

/// The offsets of the lanes in the wave's slot.
fn places<const N: usize>(lanes: &Lanes<'_, N>) -> [u32; N] {
    let mut places = [0; N];
    for i in 0..N {
        places[i] = swizzled::<N>(lanes.offset[i], i);
    }
    places
}

/// Loads one element per active lane.
pub(super) fn load<const N: usize>(
    w: &Wave<N>,
    cx: &mut Context<'_>,
    lanes: Lanes<'_, N>,
    part: Part,
    out: &mut [u32; N],
) -> Result<(), Trouble> {
    if !check(cx, &lanes, bytes_of(part))? {
        return load_bytes(w, cx, lanes, part, out);
    }
    let offset = &places(&lanes);
    let lanes = Lanes { base: base(w, cx), offset, ..lanes };
    Ok(match part {
        Part::U8 => cx.view.gather::<N, u8>(cx.slot, lanes, out),
        Part::I8 => cx.view.gather::<N, i8>(cx.slot, lanes, out),
        Part::U16 => cx.view.gather::<N, u16>(cx.slot, lanes, out),
        Part::I16 => cx.view.gather::<N, i16>(cx.slot, lanes, out),
        Part::B32 => cx.view.gather::<N, u32>(cx.slot, lanes, out),
    }?)
}

/// Stores one element per active lane.
pub(super) fn store<const N: usize>(
    w: &Wave<N>,
    cx: &mut Context<'_>,
    lanes: Lanes<'_, N>,
    part: Part,
    data: &[u32; N],
) -> Result<(), Trouble> {
    if !check(cx, &lanes, bytes_of(part))? {
        return store_bytes(w, cx, lanes, part, data);
    }
    let offset = &places(&lanes);
    let lanes = Lanes { base: base(w, cx), offset, ..lanes };
    Ok(match part {
        Part::U8 | Part::I8 => cx.view.scatter::<N, u8>(cx.slot, lanes, data),
        Part::U16 | Part::I16 => cx.view.scatter::<N, u16>(cx.slot, lanes, data),
        Part::B32 => cx.view.scatter::<N, u32>(cx.slot, lanes, data),
    }?)
}

/// The address of byte `k` of a lane's element.
fn byte<const N: usize>(
    w: &Wave<N>,
    cx: &Context<'_>,
    lanes: &Lanes<'_, N>,
    lane: usize,
    k: usize,
) -> u64 {
    let offset = lanes.offset[lane].wrapping_add(k as u32);
    base(w, cx).wrapping_add(u64::from(swizzled::<N>(offset, lane)))
}

/// Unaligned: byte by byte, since neighbouring dwords of a lane are not neighbours in memory.
#[cold]
fn load_bytes<const N: usize>(
    w: &Wave<N>,
    cx: &mut Context<'_>,
    lanes: Lanes<'_, N>,
    part: Part,
    out: &mut [u32; N],
) -> Result<(), Trouble> {
    for lane in (0..N).filter(|&lane| lanes.mask[lane] != 0) {
        let mut bytes = [0; 4];
        for (k, place) in bytes.iter_mut().enumerate().take(bytes_of(part) as usize) {
            let at = byte(w, cx, &lanes, lane, k);
            cx.view.read(at, std::slice::from_mut(place))?;
        }
        let value = u32::from_le_bytes(bytes);
        // An element of one byte is never unaligned.
        out[lane] = if part == Part::I16 { value as u16 as i16 as u32 } else { value };
    }
    Ok(())
}

#[cold]
fn store_bytes<const N: usize>(
    w: &Wave<N>,
    cx: &mut Context<'_>,
    lanes: Lanes<'_, N>,
    part: Part,
    data: &[u32; N],
) -> Result<(), Trouble> {
    for lane in (0..N).filter(|&lane| lanes.mask[lane] != 0) {
        for (k, value) in data[lane].to_le_bytes().iter().enumerate().take(bytes_of(part) as usize)
        {
            let at = byte(w, cx, &lanes, lane, k);
            cx.view.write(at, std::slice::from_ref(value))?;
        }
    }
    Ok(())
}

/// The address of a lane's aligned private dword, for atomics. There are no wider ones.
pub(super) fn address<const N: usize>(
    w: &Wave<N>,
    cx: &Context<'_>,
    offset: u32,
    lane: usize,
    bytes: u32,
) -> Result<u64, Trouble> {
    if u64::from(offset) + u64::from(bytes) > u64::from(cx.env.private_bytes) || bytes > 4 {
        return Err(Trouble::Violation(
            cx.env.apertures.scratch_base.wrapping_add(u64::from(offset)),
        ));
    }
    Ok(base(w, cx).wrapping_add(u64::from(swizzled::<N>(offset, lane))))
}
