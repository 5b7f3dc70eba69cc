//! Where a buffer instruction goes: the descriptor, its addressing and its bounds.

use crate::exec::context::{Context, Trouble};
use crate::exec::wave::Wave;
use crate::isa::ir::{Inst, SrcKind, flag};
use crate::memory::Lanes;

/// When a lane's access is out of range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bounds {
    /// Record index against their number.
    Index,
    /// Record index, and the offset inside the record against the stride.
    IndexAndOffset,
    /// Byte offset against the size; each dword on its own.
    RawDword,
    /// Byte offset with the whole payload against the size.
    RawWhole,
    /// Never, unless the buffer has no records.
    Unchecked,
}

/// A decoded buffer descriptor, and its use by one instruction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Buffer {
    pub(super) base: u64,
    stride: u32,
    records: u32,
    swizzle: bool,
    index_stride: u32,
    add_tid: bool,
    bounds: Bounds,
    /// Scalar offset: outside the swizzle.
    pub(super) soffset: u32,
    /// Bytes a lane moves.
    payload: u32,
    /// A lane is in range with all it moves, or not at all.
    whole: bool,
}

impl Buffer {
    /// The descriptor of an instruction that moves `payload` bytes per lane, dword by dword unless
    /// `whole`.
    pub(super) fn new<const N: usize>(
        w: &Wave<N>,
        i: &Inst,
        cx: &Context<'_>,
        payload: u32,
        whole: bool,
    ) -> Result<Self, Trouble> {
        let SrcKind::S(v) = i.src[1].kind() else { return Err(Trouble::Illegal) };
        let word = [0, 1, 2, 3].map(|k| w.s32(v.wrapping_add(k)));
        let gfx9 = cx.env.target.is_gfx9();
        let swizzle = if gfx9 { word[1] >> 31 != 0 } else { word[1] >> 30 != 0 };
        let add_tid = word[3] >> 23 & 1 != 0;
        let mut stride = word[1] >> 16 & 0x3fff;
        if gfx9 && add_tid {
            // With ADD_TID_ENABLE the data format field extends the stride.
            stride |= (word[3] >> 15 & 15) << 14;
        }
        let soffset = w.s_src32(i.src[2], &cx.cache.code);
        let bounds = if gfx9 {
            // Indexed or swizzled, records count strides; else bytes.
            let indexed = i.flags & flag::IDXEN != 0;
            if stride == 0 || !swizzle && !indexed { Bounds::RawDword } else { Bounds::Index }
        } else {
            match word[3] >> 28 & 3 {
                0 => Bounds::IndexAndOffset,
                1 => Bounds::Index,
                2 => Bounds::Unchecked,
                _ => Bounds::RawWhole,
            }
        };
        Ok(Self {
            base: u64::from(word[0]) | u64::from(word[1] & 0xffff) << 32,
            stride,
            records: word[2],
            swizzle,
            index_stride: 8 << (word[3] >> 21 & 3),
            add_tid,
            bounds,
            soffset,
            payload,
            whole: whole || matches!(bounds, Bounds::RawWhole | Bounds::IndexAndOffset),
        })
    }

    /// Byte offset of a record's byte, without base and scalar offset.
    fn place(&self, index: u32, offset: u32) -> u32 {
        if !self.swizzle {
            return index.wrapping_mul(self.stride).wrapping_add(offset);
        }
        let (index_high, index_low) = (index / self.index_stride, index % self.index_stride);
        let (offset_high, offset_low) = (offset & !3, offset & 3);
        index_high
            .wrapping_mul(self.stride)
            .wrapping_add(offset_high)
            .wrapping_mul(self.index_stride)
            .wrapping_add(index_low * 4)
            .wrapping_add(offset_low)
    }

    /// Whether `bytes` bytes of a record are in range.
    fn allows(&self, index: u32, offset: u32, place: u32, bytes: u32) -> bool {
        let (records, place) = (u64::from(self.records), u64::from(place));
        match self.bounds {
            Bounds::Index => index < self.records,
            Bounds::IndexAndOffset => {
                index < self.records
                    && (self.stride == 0
                        || u64::from(offset) + u64::from(bytes) <= u64::from(self.stride))
            }
            Bounds::RawDword => place + u64::from(bytes) + u64::from(self.soffset) <= records,
            Bounds::RawWhole => place + u64::from(bytes) <= records,
            Bounds::Unchecked => self.records != 0,
        }
    }
}

/// Offsets and mask of the lanes in range.
pub(super) struct Accessed<const N: usize> {
    pub(super) offset: [u32; N],
    pub(super) mask: [u32; N],
    pub(super) exec: u64,
}

impl<const N: usize> Accessed<N> {
    pub(super) fn lanes(&self, buffer: &Buffer) -> Lanes<'_, N> {
        let base = buffer.base.wrapping_add(u64::from(buffer.soffset));
        Lanes { base, offset: &self.offset, mask: &self.mask, exec: self.exec }
    }
}

/// The lanes in range for dword `k` of what they move, and where they go.
pub(super) fn accessed<const N: usize>(
    w: &Wave<N>,
    i: &Inst,
    buffer: &Buffer,
    k: u32,
) -> Accessed<N> {
    let bytes = buffer.payload;
    let row = match i.src[0].kind() {
        SrcKind::V(n) => usize::from(n),
        _ => 0,
    };
    let (idxen, offen) = (i.flags & flag::IDXEN != 0, i.flags & flag::OFFEN != 0);
    let offset_row = if idxen { row + 1 } else { row };
    let mut result = Accessed { offset: [0; N], mask: [0; N], exec: 0 };
    for lane in 0..N {
        let mut index = if idxen { w.v[row & 511][lane] } else { 0 };
        if buffer.add_tid {
            index = index.wrapping_add(lane as u32);
        }
        let vector = if offen { w.v[offset_row & 511][lane] } else { 0 };
        let start = vector.wrapping_add(i.imm as u32);
        let offset = start.wrapping_add(4 * k);
        let place = buffer.place(index, offset);
        let inside = if buffer.whole {
            buffer.allows(index, start, buffer.place(index, start), bytes)
        } else {
            buffer.allows(index, offset, place, bytes.min(4))
        };
        result.offset[lane] = place;
        if inside && w.mask[lane] != 0 {
            result.mask[lane] = !0;
            result.exec |= 1 << lane;
        }
    }
    result
}
