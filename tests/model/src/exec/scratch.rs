//! Private memory: per-lane offsets to addresses in the queue's scratch buffer.
//!
//! The layout is the hardware's: dword `d` of all lanes is consecutive, so lane `l`'s byte `o` is at
//! `wave base + (o / 4) * 4 * N + l * 4 + o % 4`.

use super::context::{Context, Trouble};
use super::wave::Wave;
use crate::memory::{Element, Lanes};

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

/// Whether all active lanes stay inside the private segment and no element leaves its dword.
#[inline(always)]
fn check<const N: usize>(
    cx: &Context<'_>,
    offsets: &[u32; N],
    mask: &[u32; N],
    bytes: u32,
) -> Result<bool, Trouble> {
    let (mut high, mut low_bits) = (0, 0);
    for i in 0..N {
        high = high.max(offsets[i] & mask[i]);
        low_bits |= offsets[i] & mask[i];
    }
    let limit = cx.env.private_bytes;
    if limit < bytes || high > limit - bytes {
        return Err(overflow(cx, offsets, mask, bytes));
    }
    Ok(low_bits & (bytes.min(4) - 1) == 0)
}

#[cold]
fn overflow<const N: usize>(
    cx: &Context<'_>,
    offsets: &[u32; N],
    mask: &[u32; N],
    bytes: u32,
) -> Trouble {
    let limit = u64::from(cx.env.private_bytes);
    let lane = (0..N).find(|&i| mask[i] != 0 && u64::from(offsets[i]) + u64::from(bytes) > limit);
    let offset = lane.map_or(0, |lane| offsets[lane]);
    Trouble::Violation(cx.env.apertures.scratch_base.wrapping_add(u64::from(offset)))
}

/// Loads one element per active lane.
#[inline(always)]
pub(super) fn load<const N: usize, T: Element>(
    w: &Wave<N>,
    cx: &mut Context<'_>,
    offsets: &[u32; N],
    mask: &[u32; N],
    exec: u64,
    out: &mut [u32; N],
) -> Result<(), Trouble> {
    if !check(cx, offsets, mask, T::BYTES as u32)? {
        return load_bytes::<N, T>(w, cx, offsets, mask, out);
    }
    let mut offset = [0; N];
    for i in 0..N {
        offset[i] = swizzled::<N>(offsets[i], i);
    }
    let lanes = Lanes { base: base(w, cx), offset: &offset, mask, exec };
    Ok(cx.view.gather::<N, T>(cx.slot, lanes, out)?)
}

/// Stores one element per active lane.
#[inline(always)]
pub(super) fn store<const N: usize, T: Element>(
    w: &Wave<N>,
    cx: &mut Context<'_>,
    offsets: &[u32; N],
    mask: &[u32; N],
    exec: u64,
    data: &[u32; N],
) -> Result<(), Trouble> {
    if !check(cx, offsets, mask, T::BYTES as u32)? {
        return store_bytes::<N, T>(w, cx, offsets, mask, data);
    }
    let mut offset = [0; N];
    for i in 0..N {
        offset[i] = swizzled::<N>(offsets[i], i);
    }
    let lanes = Lanes { base: base(w, cx), offset: &offset, mask, exec };
    Ok(cx.view.scatter::<N, T>(cx.slot, lanes, data)?)
}

/// Unaligned: byte by byte, since neighbouring dwords of a lane are not neighbours in memory.
#[cold]
#[inline(never)]
fn load_bytes<const N: usize, T: Element>(
    w: &Wave<N>,
    cx: &mut Context<'_>,
    offsets: &[u32; N],
    mask: &[u32; N],
    out: &mut [u32; N],
) -> Result<(), Trouble> {
    let base = base(w, cx);
    for i in (0..N).filter(|&i| mask[i] != 0) {
        let mut bytes = [0; 4];
        for (k, byte) in bytes.iter_mut().enumerate().take(T::BYTES as usize) {
            let at =
                base.wrapping_add(u64::from(swizzled::<N>(offsets[i].wrapping_add(k as u32), i)));
            cx.view.read(at, std::slice::from_mut(byte))?;
        }
        out[i] = T::narrow(u32::from_le_bytes(bytes)).widen();
    }
    Ok(())
}

#[cold]
#[inline(never)]
fn store_bytes<const N: usize, T: Element>(
    w: &Wave<N>,
    cx: &mut Context<'_>,
    offsets: &[u32; N],
    mask: &[u32; N],
    data: &[u32; N],
) -> Result<(), Trouble> {
    let base = base(w, cx);
    for i in (0..N).filter(|&i| mask[i] != 0) {
        for (k, byte) in data[i].to_le_bytes().iter().enumerate().take(T::BYTES as usize) {
            let at =
                base.wrapping_add(u64::from(swizzled::<N>(offsets[i].wrapping_add(k as u32), i)));
            cx.view.write(at, std::slice::from_ref(byte))?;
        }
    }
    Ok(())
}

/// The address of a lane's aligned private dword or quadword, for atomics.
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
