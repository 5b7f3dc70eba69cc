//! The lanes of an access, in groups that go to the same kind of memory.

use super::{Segment, Space, vgpr};
use crate::exec::context::{Context, Trouble};
use crate::exec::wave::Wave;
use crate::isa::ir::{Inst, SrcKind, flag};
use crate::memory::Lanes;

/// A group of lanes that share an address space and, in global memory, the high address word.
pub(super) struct Batch<const N: usize> {
    pub(super) space: Space,
    pub(super) base: u64,
    pub(super) offset: [u32; N],
    pub(super) mask: [u32; N],
    pub(super) exec: u64,
}

impl<const N: usize> Batch<N> {
    pub(super) fn lanes(&self) -> Lanes<'_, N> {
        Lanes { base: self.base, offset: &self.offset, mask: &self.mask, exec: self.exec }
    }

    pub(super) fn active(&self) -> impl Iterator<Item = usize> + use<N> {
        let exec = self.exec;
        (0..N).filter(move |&lane| exec >> lane & 1 != 0)
    }

    pub(super) fn address(&self, lane: usize) -> u64 {
        self.base.wrapping_add(u64::from(self.offset[lane]))
    }
}

/// Groups of the lanes in `rest` (not empty), one per call: `rest` loses the lanes of the result.
pub(super) fn next_batch<const N: usize>(
    w: &Wave<N>,
    i: &Inst,
    cx: &Context<'_>,
    segment: Segment,
    rest: &mut u64,
) -> Result<Batch<N>, Trouble> {
    let row = usize::from(vgpr(i.src[0])) & 511;
    let imm = i64::from(i.imm) as u64;
    let mut batch =
        Batch { space: Space::Global, base: 0, offset: w.v[row], mask: w.mask, exec: *rest };
    if segment == Segment::Scratch {
        let saddr =
            if i.flags & flag::SADDR != 0 { w.s_src32(i.src[2], &cx.cache.code) } else { 0 };
        let common = saddr.wrapping_add(i.imm as u32);
        for k in 0..N {
            let vaddr = if i.flags & flag::VADDR != 0 { batch.offset[k] } else { 0 };
            batch.offset[k] = vaddr.wrapping_add(common);
        }
        batch.space = Space::Private;
        *rest = 0;
        return Ok(batch);
    }
    if segment == Segment::Global && i.flags & flag::SADDR != 0 {
        let SrcKind::S(saddr) = i.src[2].kind() else { return Err(Trouble::Illegal) };
        batch.base = w.s64(saddr).wrapping_add(imm);
        *rest = 0;
        return Ok(batch);
    }
    let high = &w.v[(row + 1) & 511];
    let first = high[rest.trailing_zeros() as usize % N];
    batch.exec = 0;
    for k in 0..N {
        let member = *rest >> k & 1 != 0 && high[k] == first;
        batch.mask[k] = if member { !0 } else { 0 };
        batch.exec |= u64::from(member) << k;
    }
    *rest &= !batch.exec;
    let base = u64::from(first) << 32;
    let apertures = &cx.env.apertures;
    batch.space = match base {
        base if segment == Segment::Flat && base == apertures.lds_base => Space::Lds,
        base if segment == Segment::Flat && base == apertures.scratch_base => Space::Private,
        _ => Space::Global,
    };
    if batch.space == Space::Global {
        batch.base = base.wrapping_add(imm);
    } else {
        for offset in &mut batch.offset {
            *offset = offset.wrapping_add(imm as u32);
        }
    }
    Ok(batch)
}
