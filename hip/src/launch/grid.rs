//! [`Grid`]: how many work-items, in groups of how many.

use crate::error::{Axis, LaunchProblem};

/// The size of a launch: work-items or groups of it, the group, and dynamic LDS.
///
/// What does not depend on the kernel is worked out when it is made, which may be at compile time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    size: [u32; 3],
    group: [u32; 3],
    dynamic_lds_bytes: u32,
    /// `size` counts groups.
    in_blocks: bool,
    /// Work-items of a group; 0 where something is wrong with any kernel.
    items: u32,
    checked: Size,
}

/// A checked size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    /// Work-items.
    pub grid: [u32; 3],
    pub group: [u16; 3],
    /// Dimensions with more than one work-item, as the dispatch packet has them.
    pub dimensions: u16,
}

/// What a kernel allows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub max_group: u32,
    /// All zero: any group.
    pub required_group: [u16; 3],
    pub static_lds_bytes: u32,
    /// Most dynamic LDS.
    pub max_dynamic_lds_bytes: u32,
}

impl Limits {
    /// LDS of a group at most, bytes.
    const fn max_lds_bytes(&self) -> u32 {
        self.static_lds_bytes.saturating_add(self.max_dynamic_lds_bytes)
    }
}

/// Work-items of a group that hardware takes at most.
const MAX_GROUP: u32 = 1024;

impl Grid {
    /// `blocks` groups of `group` work-items, as HIP counts.
    #[inline]
    pub const fn blocks(blocks: [u32; 3], group: [u32; 3]) -> Self {
        let ([x, y, z], [gx, gy, gz]) = (blocks, group);
        match (x.checked_mul(gx), y.checked_mul(gy), z.checked_mul(gz)) {
            (Some(x), Some(y), Some(z)) => Self::new(blocks, group, true, [x, y, z]),
            _ => Self::new(blocks, group, true, [0; 3]),
        }
    }

    /// `items` work-items in groups of `group`; the last group along an axis may be a part of one.
    #[inline]
    pub const fn items(items: [u32; 3], group: [u32; 3]) -> Self {
        Self::new(items, group, false, items)
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation)] // at most 1024 where it counts
    const fn new(size: [u32; 3], group: [u32; 3], in_blocks: bool, grid: [u32; 3]) -> Self {
        let ([x, y, z], [gx, gy, gz]) = (grid, group);
        // No factor above the maximum: the product cannot overflow.
        let small = gx <= MAX_GROUP && gy <= MAX_GROUP && gz <= MAX_GROUP;
        let empty = x == 0 || y == 0 || z == 0;
        let items = if small && !empty { gx * gy * gz } else { 0 };
        let dimensions = if z > 1 || gz > 1 {
            3
        } else if y > 1 || gy > 1 {
            2
        } else {
            1
        };
        let checked = Size { grid, group: [gx as u16, gy as u16, gz as u16], dimensions };
        Self { size, group, dynamic_lds_bytes: 0, in_blocks, items, checked }
    }

    /// Gives each group `bytes` of LDS besides those that the kernel has by itself.
    #[must_use]
    pub const fn dynamic_lds(mut self, bytes: u32) -> Self {
        self.dynamic_lds_bytes = bytes;
        self
    }

    /// Dynamic LDS of a group, bytes.
    #[inline]
    pub const fn dynamic_lds_bytes(&self) -> u32 {
        self.dynamic_lds_bytes
    }

    /// Checks it for a kernel.
    #[inline]
    pub(crate) fn check(&self, limits: &Limits) -> Result<&Size, LaunchProblem> {
        // An empty grid or group has no work-items: less than 1.
        if self.items.wrapping_sub(1) >= limits.max_group
            || self.dynamic_lds_bytes > limits.max_dynamic_lds_bytes
            || limits.required_group != [0; 3] && limits.required_group != self.checked.group
        {
            return Err(self.problem(limits));
        }
        Ok(&self.checked)
    }

    /// The first thing that is wrong.
    #[cold]
    fn problem(&self, limits: &Limits) -> LaunchProblem {
        let axes = [Axis::X, Axis::Y, Axis::Z];
        for (what, sizes) in [("grid", self.size), ("group", self.group)] {
            for (size, axis) in sizes.into_iter().zip(axes) {
                if size == 0 {
                    return LaunchProblem::Empty { what, axis };
                }
            }
        }
        let items = self.group.iter().fold(1_u64, |all, size| all.saturating_mul((*size).into()));
        if items > u64::from(limits.max_group) {
            return LaunchProblem::Group { items, max: limits.max_group };
        }
        let required = limits.required_group.map(u32::from);
        if required != [0; 3] && required != self.group {
            return LaunchProblem::RequiredGroup { group: self.group, required };
        }
        for ((blocks, items), axis) in self.size.into_iter().zip(self.group).zip(axes) {
            if self.in_blocks && blocks.checked_mul(items).is_none() {
                return LaunchProblem::Grid { axis, blocks, items };
            }
        }
        let fixed = limits.static_lds_bytes;
        LaunchProblem::Lds {
            bytes: u64::from(fixed) + u64::from(self.dynamic_lds_bytes),
            fixed,
            max: limits.max_lds_bytes(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        max_group: 1024,
        required_group: [0; 3],
        static_lds_bytes: 1 << 10,
        max_dynamic_lds_bytes: 63 << 10,
    };

    fn problem(grid: Grid) -> LaunchProblem {
        grid.check(&LIMITS).unwrap_err()
    }

    #[test]
    fn blocks_are_groups_and_items_are_work_items() {
        let grid = Grid::blocks([3, 2, 1], [64, 2, 1]).dynamic_lds(24);
        let size = grid.check(&LIMITS).unwrap();
        assert_eq!((size.grid, size.group, size.dimensions), ([192, 4, 1], [64, 2, 1], 2));
        let grid = Grid::items([100, 1, 1], [64, 1, 1]);
        let size = grid.check(&LIMITS).unwrap();
        assert_eq!(size.grid, [100, 1, 1]);
    }

    #[test]
    fn an_empty_axis_is_named() {
        for axis in 0..3 {
            let mut size = [1; 3];
            size[axis] = 0;
            let axis = [Axis::X, Axis::Y, Axis::Z][axis];
            let expected = |what| LaunchProblem::Empty { what, axis };
            assert_eq!(problem(Grid::items(size, [1; 3])), expected("grid"));
            assert_eq!(problem(Grid::blocks(size, [1; 3])), expected("grid"));
            assert_eq!(problem(Grid::items([1; 3], size)), expected("group"));
        }
    }

    #[test]
    fn a_group_over_the_limit_is_refused_even_where_its_size_overflows() {
        let most = LaunchProblem::Group { items: 1025, max: 1024 };
        assert_eq!(problem(Grid::items([1; 3], [1025, 1, 1])), most);
        assert!(Grid::items([1; 3], [32, 32, 1]).check(&LIMITS).is_ok());
        for group in [[u32::MAX; 3], [1 << 16, 1 << 16, 1], [1 << 31, 2, 1 << 31]] {
            let refused = problem(Grid::items([1; 3], group));
            assert!(matches!(refused, LaunchProblem::Group { max: 1024, .. }), "{refused}");
        }
    }

    #[test]
    fn a_grid_of_more_work_items_than_32_bits_count_is_refused_along_its_axis() {
        let refused = problem(Grid::blocks([1, 1 << 31, 1], [1, 2, 1]));
        assert_eq!(refused, LaunchProblem::Grid { axis: Axis::Y, blocks: 1 << 31, items: 2 });
        assert!(Grid::blocks([u32::MAX, 1, 1], [1; 3]).check(&LIMITS).is_ok());
    }

    #[test]
    fn lds_over_the_limit_is_refused_with_both_parts() {
        let all = (64 << 10) - (1 << 10);
        assert!(Grid::items([1; 3], [1; 3]).dynamic_lds(all).check(&LIMITS).is_ok());
        let refused = problem(Grid::items([1; 3], [1; 3]).dynamic_lds(all + 1));
        let expected = LaunchProblem::Lds { bytes: 65537, fixed: 1024, max: 65536 };
        assert_eq!(refused, expected);
        let refused = problem(Grid::items([1; 3], [1; 3]).dynamic_lds(u32::MAX));
        assert!(matches!(refused, LaunchProblem::Lds { .. }), "{refused}");
    }

    #[test]
    fn a_required_group_is_the_only_one() {
        let limits = Limits { required_group: [64, 1, 1], ..LIMITS };
        assert!(Grid::items([1; 3], [64, 1, 1]).check(&limits).is_ok());
        let refused = Grid::items([1; 3], [1, 64, 1]).check(&limits).unwrap_err();
        assert!(matches!(refused, LaunchProblem::RequiredGroup { group: [1, 64, 1], .. }));
    }
}
