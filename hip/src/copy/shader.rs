//! Copies and fills as launches of the blit kernels: which kernel, its arguments, its grid. Pure.
//!
//! The kernels are in hip/blit/blit.cl, their arguments in docs/ABI.md §Blit kernels. A grid is bounded whatever the size; what the kernels' 31-bit
//! counters cannot hold is cut into several launches, which need no order among them.

use pm4::GpuAddr;

use super::pattern::Pattern;
use super::region::{Extent, Region, Shape};

/// Work-items of a workgroup, as the kernels require.
pub(crate) const GROUP: u32 = 256;
/// Bytes that a lane moves at a time.
const UNIT: u64 = 16;
/// Most segments of a row, rows, and planes of one launch: sums of two stay below 2^32.
const MAX_COUNT: u64 = 1 << 30;
/// Most bytes of arguments that a kernel has.
pub(crate) const ARGUMENT_BYTES: usize = 96;

/// The kernels, by their name in the code object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kernel {
    Copy,
    Fill,
    CopyRows,
    FillRows,
}

impl Kernel {
    pub const ALL: [Self; 4] = [Self::Copy, Self::Fill, Self::CopyRows, Self::FillRows];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Copy => "copy",
            Self::Fill => "fill",
            Self::CopyRows => "copy_rows",
            Self::FillRows => "fill_rows",
        }
    }

    /// Bytes of its arguments.
    pub const fn argument_bytes(self) -> usize {
        match self {
            Self::Copy => 28,
            Self::Fill => 36,
            Self::CopyRows => 88,
            Self::FillRows => 96,
        }
    }
}

/// One launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Launch {
    pub kernel: Kernel,
    /// Workgroups, of [`GROUP`] work-items each; along x only.
    pub groups: u32,
    arguments: [u8; ARGUMENT_BYTES],
}

impl Launch {
    /// The kernel's arguments, in memory order.
    pub fn arguments(&self) -> &[u8] {
        self.arguments.get(..self.kernel.argument_bytes()).unwrap_or_default()
    }

    /// Tells the lanes of a linear launch that there are `lanes` of them.
    #[cfg(test)]
    pub fn with_lanes(mut self, lanes: u32) -> Self {
        assert!(matches!(self.kernel, Kernel::Copy | Kernel::Fill));
        let at = self.kernel.argument_bytes() - 4;
        self.arguments[at..at + 4].copy_from_slice(&lanes.to_le_bytes());
        self
    }
}

/// Puts arguments one after another.
struct Arguments {
    bytes: [u8; ARGUMENT_BYTES],
    at: usize,
}

impl Arguments {
    const fn new() -> Self {
        Self { bytes: [0; ARGUMENT_BYTES], at: 0 }
    }

    fn put<const N: usize>(mut self, value: [u8; N]) -> Self {
        if let Some(place) = self.bytes.get_mut(self.at..self.at + N) {
            place.copy_from_slice(&value);
        }
        self.at += N;
        self
    }

    fn u32(self, value: u32) -> Self {
        self.put(value.to_le_bytes())
    }

    fn u64(self, value: u64) -> Self {
        self.put(value.to_le_bytes())
    }

    fn addr(self, value: GpuAddr) -> Self {
        self.u64(value.get())
    }

    fn walk(self, walk: &Walk) -> Self {
        let words = self.u32(walk.count[0]).u32(walk.count[1]).u32(walk.count[2]);
        let words = words.u32(walk.step[0]).u32(walk.step[1]).u32(walk.step[2]);
        words.u32(walk.unit).u32(0).u64(walk.last)
    }

    fn region(self, region: Region) -> Self {
        let Region { base, layout } = region;
        self.addr(base).u64(layout.pitch_bytes).u64(layout.slice_bytes)
    }
}

/// How the lanes of a launch share out rows: the kernels' `Walk`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Walk {
    /// Segments of a row, rows, planes.
    count: [u32; 3],
    step: [u32; 3],
    unit: u32,
    last: u64,
    groups: u32,
}

/// Workgroups for `units` units of work, one a lane, at most `most`.
fn groups(units: u64, most: u32) -> u32 {
    let needed = units.div_ceil(GROUP.into()).max(1);
    u32::try_from(needed).unwrap_or(u32::MAX).min(most.max(1))
}

impl Walk {
    /// None of the counts is 0 or over [`MAX_COUNT`] segments, rows, planes.
    fn new(extent: Extent, most_groups: u32) -> Self {
        let narrow = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
        let unit = match extent.width {
            0 | 1 => 1,
            width if width >= UNIT => UNIT,
            width => 1 << width.ilog2(),
        };
        let counts = [extent.width.div_ceil(unit), extent.rows, extent.planes];
        let [x, y, z] = counts;
        let groups = groups(x.saturating_mul(y).saturating_mul(z), most_groups);
        let lanes = u64::from(groups) * u64::from(GROUP);
        Self {
            count: counts.map(narrow),
            step: [lanes % x, lanes / x % y, lanes / x / y].map(narrow),
            unit: narrow(unit),
            last: extent.width - unit,
            groups,
        }
    }
}

/// The part of a shape that one launch can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part {
    x: u64,
    row: u64,
    plane: u64,
    extent: Extent,
}

/// Cuts an extent into parts whose counts fit.
fn parts(extent: Extent) -> impl Iterator<Item = Part> + Clone {
    let chunks = |count: u64, most: u64| {
        (0..count.div_ceil(most)).map(move |n| (n * most, most.min(count - n * most)))
    };
    chunks(extent.planes, MAX_COUNT).flat_map(move |(plane, planes)| {
        chunks(extent.rows, MAX_COUNT).flat_map(move |(row, rows)| {
            chunks(extent.width, MAX_COUNT * UNIT).map(move |(x, width)| {
                let extent = Extent { width, rows, planes };
                Part { x, row, plane, extent }
            })
        })
    })
}

impl Part {
    fn of(self, region: Region) -> Region {
        let row = region.row(self.row, self.plane);
        Region { base: GpuAddr::new(row.get().wrapping_add(self.x)), ..region }
    }
}

/// The launch that copies bytes in one piece, at least one.
#[inline]
pub(crate) fn copy_linear(dst: GpuAddr, src: GpuAddr, bytes: u64, most_groups: u32) -> Launch {
    let groups = groups(bytes.div_ceil(UNIT), most_groups);
    let arguments = Arguments::new().addr(dst).addr(src).u64(bytes).u32(groups * GROUP);
    Launch { kernel: Kernel::Copy, groups, arguments: arguments.bytes }
}

/// The launch that fills bytes in one piece, at least one.
#[inline]
pub(crate) fn fill_linear(dst: GpuAddr, bytes: u64, pattern: Pattern, most_groups: u32) -> Launch {
    let groups = groups(bytes.div_ceil(UNIT), most_groups);
    // What a block of 16 aligned bytes holds.
    let aligned = pattern.rotated(dst.get().wrapping_neg());
    let arguments = Arguments::new().addr(dst).u64(bytes).put(aligned).u32(groups * GROUP);
    Launch { kernel: Kernel::Fill, groups, arguments: arguments.bytes }
}

/// The launches that copy a shape, from the second region to the first. None for no bytes.
pub(crate) fn copy(shape: Shape<2>, most_groups: u32) -> impl Iterator<Item = Launch> + Clone {
    let [dst, src] = shape.regions;
    let bytes = shape.as_linear().filter(|bytes| *bytes > 0);
    let linear = bytes.map(|bytes| copy_linear(dst.base, src.base, bytes, most_groups));
    let rows = if shape.as_linear().is_some() { Extent::linear(0) } else { shape.extent };
    let rows = parts(rows).map(move |part| {
        let walk = Walk::new(part.extent, most_groups);
        let arguments = Arguments::new().region(part.of(dst)).region(part.of(src)).walk(&walk);
        Launch { kernel: Kernel::CopyRows, groups: walk.groups, arguments: arguments.bytes }
    });
    linear.into_iter().chain(rows)
}

/// The launches that fill a shape with `pattern`, which starts anew in each row. None for no bytes.
pub(crate) fn fill(
    shape: Shape<1>,
    pattern: Pattern,
    most_groups: u32,
) -> impl Iterator<Item = Launch> + Clone {
    let [dst] = shape.regions;
    let bytes = shape.as_linear().filter(|bytes| *bytes > 0);
    let linear = bytes.map(|bytes| fill_linear(dst.base, bytes, pattern, most_groups));
    let rows = if shape.as_linear().is_some() { Extent::linear(0) } else { shape.extent };
    let rows = parts(rows).map(move |part| {
        let walk = Walk::new(part.extent, most_groups);
        let arguments = Arguments::new().region(part.of(dst)).walk(&walk);
        let arguments = arguments.put(pattern.rotated(part.x));
        let arguments = arguments.put(pattern.rotated(part.x.wrapping_add(walk.last)));
        Launch { kernel: Kernel::FillRows, groups: walk.groups, arguments: arguments.bytes }
    });
    linear.into_iter().chain(rows)
}

#[cfg(test)]
#[path = "shader_tests.rs"]
mod tests;
