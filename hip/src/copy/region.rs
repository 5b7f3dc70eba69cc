//! What bytes a copy or fill is about: pure geometry, checked before anything is submitted.

use pm4::GpuAddr;

use super::error::{CopyError, Side};

/// Size of a region: rows of `width` bytes, rows in a plane, planes.
///
/// A region of which any of the three is 0 has no bytes; copying or filling it does nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Extent {
    /// Bytes of a row.
    pub width: u64,
    /// Rows of a plane.
    pub rows: u64,
    /// Planes.
    pub planes: u64,
}

impl Extent {
    /// One row.
    pub const fn linear(bytes: u64) -> Self {
        Self { width: bytes, rows: 1, planes: 1 }
    }

    /// One plane: `width` in bytes.
    pub const fn plane(width: u64, rows: u64) -> Self {
        Self { width, rows, planes: 1 }
    }

    /// A volume: `width` in bytes.
    pub const fn volume(width: u64, rows: u64, planes: u64) -> Self {
        Self { width, rows, planes }
    }

    /// Bytes in it; `None` when they are more than 64 bits count.
    pub const fn bytes(self) -> Option<u64> {
        match self.width.checked_mul(self.rows) {
            Some(plane) => plane.checked_mul(self.planes),
            None => None,
        }
    }

    /// Whether it has no bytes.
    pub const fn is_empty(self) -> bool {
        self.width == 0 || self.rows == 0 || self.planes == 0
    }
}

/// How rows follow each other in memory.
///
/// HIP's pitched pointers have the height of a plane in rows instead of `slice_bytes`; that times
/// the pitch is `slice_bytes`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Layout {
    /// Bytes from one row to the next, at least the width; of no account for one row.
    pub pitch_bytes: u64,
    /// Bytes from one plane to the next, at least all rows of one; of no account for one plane.
    pub slice_bytes: u64,
}

impl Layout {
    /// Rows `pitch_bytes` apart in one plane.
    pub const fn pitched(pitch_bytes: u64) -> Self {
        Self { pitch_bytes, slice_bytes: 0 }
    }

    /// Rows `pitch_bytes` apart, planes of `height` rows; `None` on overflow.
    pub const fn planes(pitch_bytes: u64, height: u64) -> Option<Self> {
        match pitch_bytes.checked_mul(height) {
            Some(slice_bytes) => Some(Self { pitch_bytes, slice_bytes }),
            None => None,
        }
    }

    /// Rows without gaps, for regions of `extent`.
    pub const fn dense(extent: Extent) -> Self {
        Self { pitch_bytes: extent.width, slice_bytes: extent.width.saturating_mul(extent.rows) }
    }

    /// Bytes from the first of a region of `extent` to behind its last.
    ///
    /// # Errors
    /// [`CopyError::Pitch`] and [`CopyError::Slice`] when rows or planes overlap;
    /// [`CopyError::TooLarge`] when that is more than 64 bits count.
    #[inline]
    pub fn span(self, side: Side, extent: Extent) -> Result<u64, CopyError> {
        let Extent { width, rows, planes } = extent;
        if extent.is_empty() {
            return Ok(0);
        }
        let Self { pitch_bytes, slice_bytes } = self;
        let too_large = CopyError::TooLarge { side, extent };
        if rows > 1 && pitch_bytes < width {
            return Err(CopyError::Pitch { side, pitch_bytes, width });
        }
        let plane = match rows {
            1 => Some(width),
            _ => (rows - 1).checked_mul(pitch_bytes).and_then(|bytes| bytes.checked_add(width)),
        };
        let plane = plane.ok_or(too_large)?;
        if planes == 1 {
            return Ok(plane);
        }
        if slice_bytes < plane {
            return Err(CopyError::Slice { side, slice_bytes, plane_bytes: plane });
        }
        let before = (planes - 1).checked_mul(slice_bytes);
        before.and_then(|bytes| bytes.checked_add(plane)).ok_or(too_large)
    }
}

/// One side of a copy, or what a fill fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Region {
    pub base: GpuAddr,
    pub layout: Layout,
}

impl Region {
    pub const fn linear(base: GpuAddr) -> Self {
        Self { base, layout: Layout { pitch_bytes: 0, slice_bytes: 0 } }
    }

    /// Where a row starts.
    pub const fn row(self, row: u64, plane: u64) -> GpuAddr {
        let rows = row.wrapping_mul(self.layout.pitch_bytes);
        let planes = plane.wrapping_mul(self.layout.slice_bytes);
        GpuAddr::new(self.base.get().wrapping_add(rows).wrapping_add(planes))
    }
}

/// A region or two of them, with as few dimensions as describe the same bytes in the same order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape<const N: usize> {
    pub regions: [Region; N],
    pub extent: Extent,
}

impl<const N: usize> Shape<N> {
    /// Joins what is contiguous in every region: planes of one row are rows, rows without gaps are
    /// one row. The spans must have been checked ([`Layout::span`]).
    #[inline]
    pub fn new(mut regions: [Region; N], mut extent: Extent) -> Self {
        let all = |regions: &[Region; N], holds: &dyn Fn(Layout) -> bool| {
            regions.iter().all(|region| holds(region.layout))
        };
        if extent.is_empty() {
            return Self { regions, extent: Extent::linear(0) };
        }
        if extent.rows == 1 && extent.planes == 1 {
            regions.iter_mut().for_each(|region| region.layout = Layout::default());
            return Self { regions, extent };
        }
        if extent.planes == 1 {
            regions.iter_mut().for_each(|region| region.layout.slice_bytes = 0);
        }
        if extent.rows > 1 && all(&regions, &|layout| layout.pitch_bytes == extent.width) {
            extent.width = extent.width.saturating_mul(extent.rows);
            extent.rows = 1;
        }
        if extent.rows == 1 {
            for region in &mut regions {
                region.layout = Layout::pitched(region.layout.slice_bytes);
            }
            extent = Extent::plane(extent.width, extent.planes);
            if extent.rows > 1 && all(&regions, &|layout| layout.pitch_bytes == extent.width) {
                extent = Extent::linear(extent.width.saturating_mul(extent.rows));
            }
        }
        if extent.rows == 1 && extent.planes == 1 {
            regions.iter_mut().for_each(|region| region.layout = Layout::default());
        }
        Self { regions, extent }
    }

    /// The bytes, if they are in one piece.
    pub fn as_linear(&self) -> Option<u64> {
        (self.extent.rows == 1 && self.extent.planes == 1).then_some(self.extent.width)
    }
}

const fn meets(a: u64, b: u64, a_bytes: u64, b_bytes: u64) -> bool {
    a < b.saturating_add(b_bytes) && b < a.saturating_add(a_bytes)
}

/// Whether two regions of one size share a byte. Where their spans do, one step for each row.
#[inline]
pub(crate) fn overlap(a: Region, b: Region, extent: Extent) -> bool {
    let span = |region: Region| region.layout.span(Side::Source, extent).unwrap_or(u64::MAX);
    !extent.is_empty()
        && meets(a.base.get(), b.base.get(), span(a), span(b))
        && rows_overlap(a, b, extent)
}

#[cold]
fn rows_overlap(a: Region, b: Region, extent: Extent) -> bool {
    // Both lists of rows ascend: the lower of the two current rows either meets the other or is
    // done with.
    let mut rows = Shape::new([a, b], extent);
    let extent = rows.extent;
    let [a, b] = &mut rows.regions;
    let (mut at_a, mut at_b) = ((0, 0), (0, 0));
    let next = |(row, plane): (u64, u64)| {
        if row + 1 < extent.rows { (row + 1, plane) } else { (0, plane + 1) }
    };
    while at_a.1 < extent.planes && at_b.1 < extent.planes {
        let (row_a, row_b) = (a.row(at_a.0, at_a.1).get(), b.row(at_b.0, at_b.1).get());
        if meets(row_a, row_b, extent.width, extent.width) {
            return true;
        }
        if row_a < row_b {
            at_a = next(at_a);
        } else {
            at_b = next(at_b);
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    const SIDE: Side = Side::Destination;

    fn region(base: u64, pitch_bytes: u64, slice_bytes: u64) -> Region {
        Region { base: GpuAddr::new(base), layout: Layout { pitch_bytes, slice_bytes } }
    }

    /// Addresses in order.
    fn bytes(region: Region, extent: Extent) -> Vec<u64> {
        let mut all = Vec::new();
        for plane in 0..extent.planes {
            for row in 0..extent.rows {
                let start = region.row(row, plane).get();
                all.extend(start..start + extent.width);
            }
        }
        all
    }

    #[test]
    fn spans_name_the_pitch_or_slice_that_is_too_small() {
        let extent = Extent::volume(100, 4, 3);
        let layout = Layout { pitch_bytes: 128, slice_bytes: 1024 };
        assert_eq!(layout.span(SIDE, extent), Ok(2 * 1024 + 3 * 128 + 100));
        let narrow = Layout { pitch_bytes: 99, ..layout };
        let error = CopyError::Pitch { side: SIDE, pitch_bytes: 99, width: 100 };
        assert_eq!(narrow.span(SIDE, extent), Err(error));
        let flat = Layout { slice_bytes: 483, ..layout };
        let error = CopyError::Slice { side: SIDE, slice_bytes: 483, plane_bytes: 484 };
        assert_eq!(flat.span(SIDE, extent), Err(error));
        let tall = Extent::volume(100, u64::MAX / 64, 1);
        assert_eq!(layout.span(SIDE, tall), Err(CopyError::TooLarge { side: SIDE, extent: tall }));
        let deep = Extent::volume(100, 4, u64::MAX / 512);
        assert_eq!(layout.span(SIDE, deep), Err(CopyError::TooLarge { side: SIDE, extent: deep }));
    }

    #[test]
    fn regions_without_bytes_span_none_whatever_their_layout() {
        for extent in [Extent::volume(0, 4, 3), Extent::volume(5, 0, 3), Extent::volume(5, 4, 0)] {
            assert_eq!(Layout::default().span(SIDE, extent), Ok(0));
            assert_eq!(Shape::new([region(1, 0, 0)], extent).as_linear(), Some(0));
        }
    }

    #[test]
    fn what_is_contiguous_on_both_sides_becomes_one_piece() {
        let extent = Extent::volume(16, 4, 3);
        let dense = region(0, 16, 64);
        assert_eq!(Shape::new([dense, dense], extent).as_linear(), Some(192));
        let planes = Shape::new([dense, region(0, 16, 80)], extent);
        assert_eq!(planes.extent, Extent::plane(64, 3));
        assert_eq!(planes.regions[1].layout, Layout::pitched(80));
        let rows = Shape::new([dense, region(0, 20, 80)], extent);
        assert_eq!(rows.extent, extent);
        let one_row = Shape::new([region(0, 9999, 32)], Extent::volume(16, 1, 3));
        assert_eq!(
            (one_row.extent, one_row.regions[0].layout.pitch_bytes),
            (Extent::plane(16, 3), 32)
        );
    }

    #[test]
    fn halves_of_one_surface_do_not_overlap() {
        let extent = Extent::plane(32, 100);
        let left = region(0x1000, 64, 0);
        assert!(!overlap(left, region(0x1020, 64, 0), extent));
        assert!(overlap(left, region(0x101F, 64, 0), extent));
        assert!(overlap(left, region(0x1040, 64, 0), extent));
        assert!(!overlap(left, region(0x1000 + 6400, 64, 0), extent));
    }

    fn layout(extent: Extent) -> impl Strategy<Value = Layout> {
        (0u64..8, 0u64..24).prop_map(move |(row, plane)| {
            let pitch_bytes = extent.width + row;
            Layout { pitch_bytes, slice_bytes: pitch_bytes * extent.rows + plane }
        })
    }

    fn two() -> impl Strategy<Value = (Extent, Region, Region)> {
        (1u64..10, 1u64..5, 1u64..4).prop_flat_map(|(width, rows, planes)| {
            let extent = Extent::volume(width, rows, planes);
            (0u64..200, layout(extent), 0u64..200, layout(extent)).prop_map(
                move |(a, a_layout, b, b_layout)| {
                    let region = |base, layout| Region { base: GpuAddr::new(base), layout };
                    (extent, region(a, a_layout), region(b, b_layout))
                },
            )
        })
    }

    proptest! {
        #[test]
        fn a_shape_has_the_same_bytes_in_the_same_order((extent, a, b) in two()) {
            let shape = Shape::new([a, b], extent);
            prop_assert_eq!(bytes(shape.regions[0], shape.extent), bytes(a, extent));
            prop_assert_eq!(bytes(shape.regions[1], shape.extent), bytes(b, extent));
            let last = *bytes(a, extent).last().unwrap();
            prop_assert_eq!(a.layout.span(SIDE, extent), Ok(last + 1 - a.base.get()));
        }

        #[test]
        fn overlap_is_found_exactly((extent, a, b) in two()) {
            let of_a: HashSet<u64> = bytes(a, extent).into_iter().collect();
            let common = bytes(b, extent).into_iter().any(|byte| of_a.contains(&byte));
            prop_assert_eq!(overlap(a, b, extent), common);
        }
    }
}
