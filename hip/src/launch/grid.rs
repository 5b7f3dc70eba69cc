//! [`Grid`]: how many work-items, in groups of how many.

use crate::error::{Axis, LaunchProblem};

/// The size of a launch: work-items or groups of it, the group, and dynamic LDS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    size: [u32; 3],
    group: [u32; 3],
    dynamic_lds_bytes: u32,
    /// `size` counts groups.
    in_blocks: bool,
}

/// A checked size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    /// Work-items.
    pub grid: [u32; 3],
    pub group: [u16; 3],
    /// LDS of a group, static and dynamic, bytes.
    pub lds_bytes: u32,
}

impl Size {
    /// Dimensions with more than one work-item, as the dispatch packet has them.
    #[inline]
    pub const fn dimensions(&self) -> u16 {
        if self.grid[2] > 1 || self.group[2] > 1 {
            3
        } else if self.grid[1] > 1 || self.group[1] > 1 {
            2
        } else {
            1
        }
    }
}

/// What a kernel allows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub max_group: u32,
    /// All zero: any group.
    pub required_group: [u32; 3],
    pub static_lds_bytes: u32,
    pub max_lds_bytes: u32,
}

impl Grid {
    /// `blocks` groups of `group` work-items, as HIP counts.
    pub const fn blocks(blocks: [u32; 3], group: [u32; 3]) -> Self {
        Self { size: blocks, group, dynamic_lds_bytes: 0, in_blocks: true }
    }

    /// `items` work-items in groups of `group`; the last group along an axis may be a part of one.
    pub const fn items(items: [u32; 3], group: [u32; 3]) -> Self {
        Self { size: items, group, dynamic_lds_bytes: 0, in_blocks: false }
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
    pub(crate) fn check(&self, limits: &Limits) -> Result<Size, LaunchProblem> {
        let ([x, y, z], [gx, gy, gz]) = (self.size, self.group);
        let items = u64::from(gx) * u64::from(gy);
        // Each factor is below 2^32: the product is checked before it can overflow.
        let items = if items > u64::from(u32::MAX) { u64::MAX } else { items * u64::from(gz) };
        let lds = u64::from(limits.static_lds_bytes) + u64::from(self.dynamic_lds_bytes);
        let grid = if self.in_blocks {
            match (x.checked_mul(gx), y.checked_mul(gy), z.checked_mul(gz)) {
                (Some(x), Some(y), Some(z)) => [x, y, z],
                _ => return Err(self.problem(limits)),
            }
        } else {
            self.size
        };
        let required = limits.required_group;
        let other_group = required != [0; 3] && required != self.group;
        if x == 0 || y == 0 || z == 0 || items == 0 || items > u64::from(limits.max_group) {
            return Err(self.problem(limits));
        }
        if lds > u64::from(limits.max_lds_bytes) || other_group {
            return Err(self.problem(limits));
        }
        // At most 1024 work-items: each size fits 16 bits, and the LDS is at most the maximum.
        let narrow = |size: u32| u16::try_from(size).unwrap_or(u16::MAX);
        Ok(Size {
            grid,
            group: [narrow(gx), narrow(gy), narrow(gz)],
            lds_bytes: limits.static_lds_bytes.wrapping_add(self.dynamic_lds_bytes),
        })
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
        if limits.required_group != [0; 3] && limits.required_group != self.group {
            return LaunchProblem::RequiredGroup {
                group: self.group,
                required: limits.required_group,
            };
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
            max: limits.max_lds_bytes,
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
        max_lds_bytes: 64 << 10,
    };

    fn problem(grid: Grid) -> LaunchProblem {
        grid.check(&LIMITS).unwrap_err()
    }

    #[test]
    fn blocks_are_groups_and_items_are_work_items() {
        let size = Grid::blocks([3, 2, 1], [64, 2, 1]).dynamic_lds(24).check(&LIMITS).unwrap();
        assert_eq!((size.grid, size.group, size.lds_bytes), ([192, 4, 1], [64, 2, 1], 1048));
        let size = Grid::items([100, 1, 1], [64, 1, 1]).check(&LIMITS).unwrap();
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
