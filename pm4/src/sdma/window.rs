//! `COPY_LINEAR_SUBWIN`: copies a part of a plane or volume.

use core::fmt;

use super::{Error, Op, Version, aligned, head, in_range, policy, strict};
use crate::GpuAddr;
use crate::bits::layout;
use crate::emit::fixed;
use crate::packet::memory::addr;

layout! {
    subwin {
        ELEMENTSIZE = 0 [31:29]; SRC_ADDR_31_0 = 1 [31:0]; SRC_ADDR_63_32 = 2 [31:0];
        SRC_X = 3 [13:0]; SRC_Y = 3 [29:16]; SRC_Z = 4 [12:0]; SRC_PITCH = 4 [31:13];
        SRC_SLICE_PITCH = 5 [27:0]; DST_ADDR_31_0 = 6 [31:0]; DST_ADDR_63_32 = 7 [31:0];
        DST_X = 8 [13:0]; DST_Y = 8 [29:16]; DST_Z = 9 [12:0]; DST_PITCH = 9 [31:13];
        DST_SLICE_PITCH = 10 [27:0]; RECT_X = 11 [13:0]; RECT_Y = 11 [29:16]; RECT_Z = 12 [12:0];
    }
    subwin_v6 { DST_CACHE_POLICY = 12 [20:18]; SRC_CACHE_POLICY = 12 [28:26]; }
}

/// One side of a [`CopySubWindow`]. All but the address is in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Side {
    /// Address of element 0, a multiple of 4.
    pub base: GpuAddr,
    /// First element of the window: x, y and z.
    pub origin: [u32; 3],
    /// From one row to the next.
    pub pitch: u32,
    /// From one plane to the next; 1 if there is only one.
    pub slice: u32,
}

/// SDMA `COPY_LINEAR_SUBWIN`: copies rows of elements between two planes or volumes.
#[doc(alias = "SDMA_PKT_COPY_LINEAR_SUBWIN")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct CopySubWindow {
    version: Version,
    element: u8,
    src: Side,
    dst: Side,
    extent: [u32; 3],
    src_policy: u8,
    dst_policy: u8,
}

/// Most of a window's elements along x, and rows along y.
pub(super) const MAX_XY: u32 = subwin::RECT_X.max() + 1;
pub(super) const MAX_PITCH: u32 = subwin::SRC_PITCH.max() + 1;
pub(super) const MAX_SLICE: u32 = subwin::SRC_SLICE_PITCH.max() + 1;
/// Largest element: 16 bytes.
pub(super) const MAX_ELEMENT: u8 = 4;

impl CopySubWindow {
    /// Length of the packet.
    pub const DWORDS: usize = 13;

    /// Copies `extent` elements (x, y, z) of 2^`element` bytes from `src` to `dst`.
    ///
    /// # Errors
    /// [`Error::Misaligned`] unless both addresses are multiples of 4; [`Error::OutOfRange`] for
    /// what does not fit its field: `element` up to 4, 2^14 elements and rows,
    /// [`Version::max_planes`] planes, a pitch of 2^19, a slice of 2^28.
    pub fn new(
        version: Version,
        element: u8,
        src: Side,
        dst: Side,
        extent: [u32; 3],
    ) -> Result<Self, Error> {
        let op = Op::COPY_LINEAR_SUBWIN;
        let check = |field, value: u32, min: u32, max: u32| {
            in_range(op, field, value.into(), min.into(), max.into())
        };
        check("element size", element.into(), 0, MAX_ELEMENT.into())?;
        for side in [src, dst] {
            aligned(op, side.base, 4)?;
            let [x, y, z] = side.origin;
            check("x", x, 0, MAX_XY - 1)?;
            check("y", y, 0, MAX_XY - 1)?;
            check("z", z, 0, version.max_planes() - 1)?;
            check("pitch", side.pitch, 1, MAX_PITCH)?;
            check("slice pitch", side.slice, 1, MAX_SLICE)?;
        }
        let [width, rows, planes] = extent;
        check("width", width, 1, MAX_XY)?;
        check("row count", rows, 1, MAX_XY)?;
        check("plane count", planes, 1, version.max_planes())?;
        Ok(Self { version, element, src, dst, extent, src_policy: 0, dst_policy: 0 })
    }

    /// How the L2 treats the reads and the writes, AMD's codes 0 to 7.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for a greater code, or any but 0 before the sixth generation.
    pub fn policies(mut self, src: u8, dst: u8) -> Result<Self, Error> {
        self.src_policy = policy(Op::COPY_LINEAR_SUBWIN, self.version, src)?;
        self.dst_policy = policy(Op::COPY_LINEAR_SUBWIN, self.version, dst)?;
        Ok(self)
    }

    /// Bytes of an element.
    pub const fn element_bytes(self) -> u32 {
        1 << self.element
    }

    /// Source and destination.
    pub const fn sides(self) -> (Side, Side) {
        (self.src, self.dst)
    }

    /// Elements, rows and planes copied.
    pub const fn extent(self) -> [u32; 3] {
        self.extent
    }

    /// The packet.
    pub const fn encode(self) -> [u32; Self::DWORDS] {
        use subwin as s;
        let [x, y, z] = self.extent;
        let [src_origin, src_pitch, src_slice] = side(self.src);
        let [dst_origin, dst_pitch, dst_slice] = side(self.dst);
        [
            head(Op::COPY_LINEAR_SUBWIN) | s::ELEMENTSIZE.put(self.element as u32),
            self.src.base.lo(),
            self.src.base.hi(),
            src_origin,
            src_pitch,
            src_slice,
            self.dst.base.lo(),
            self.dst.base.hi(),
            dst_origin,
            dst_pitch,
            dst_slice,
            s::RECT_X.put(x - 1) | s::RECT_Y.put(y - 1),
            s::RECT_Z.put(z - 1)
                | subwin_v6::DST_CACHE_POLICY.put(self.dst_policy as u32)
                | subwin_v6::SRC_CACHE_POLICY.put(self.src_policy as u32),
        ]
    }

    /// Reads the packet at the start of `words`.
    ///
    /// # Errors
    /// What is wrong with it. Byte swaps and encryption count as reserved.
    pub fn decode(words: &[u32], version: Version) -> Result<Self, Error> {
        use subwin as s;
        let op = Op::COPY_LINEAR_SUBWIN;
        let words = strict::<{ Self::DWORDS }>(words, op, version, s::FIELDS, subwin_v6::FIELDS)?;
        let [header, src @ .., rect, last] = words;
        let [src_lo, src_hi, s0, s1, s2, dst_lo, dst_hi, d0, d1, d2] = src;
        let side = |base, [origin, pitch, slice]: [u32; 3]| Side {
            base,
            origin: [s::SRC_X.get(origin), s::SRC_Y.get(origin), s::SRC_Z.get(pitch)],
            pitch: s::SRC_PITCH.get(pitch) + 1,
            slice: s::SRC_SLICE_PITCH.get(slice) + 1,
        };
        let extent = [s::RECT_X.get(rect) + 1, s::RECT_Y.get(rect) + 1, s::RECT_Z.get(last) + 1];
        let src = side(addr(src_lo, src_hi), [s0, s1, s2]);
        let dst = side(addr(dst_lo, dst_hi), [d0, d1, d2]);
        Self::new(version, s::ELEMENTSIZE.byte(header), src, dst, extent)?.policies(
            subwin_v6::SRC_CACHE_POLICY.byte(last),
            subwin_v6::DST_CACHE_POLICY.byte(last),
        )
    }
}

/// The three dwords of one side; both sides' are alike.
const fn side(side: Side) -> [u32; 3] {
    use subwin as s;
    let [x, y, z] = side.origin;
    [
        s::SRC_X.put(x) | s::SRC_Y.put(y),
        s::SRC_Z.put(z) | s::SRC_PITCH.put(side.pitch - 1),
        s::SRC_SLICE_PITCH.put(side.slice - 1),
    ]
}

impl fmt::Display for CopySubWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.extent;
        write!(f, "COPY_LINEAR_SUBWIN element={} extent={x}x{y}x{z}", self.element_bytes())?;
        for (name, side) in [("src", self.src), ("dst", self.dst)] {
            let Side { base, origin: [x, y, z], pitch, slice } = side;
            write!(f, " {name}={base} at={x},{y},{z} pitch={pitch} slice={slice}")?;
        }
        Ok(())
    }
}

fixed!(SdmaPacket: CopySubWindow);
