//! The launches' arguments, carried out on the CPU as the kernels do.

use proptest::prelude::*;

use super::super::Layout;
use super::*;

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let (first, rest) = self.0.split_first_chunk::<N>().unwrap();
        self.0 = rest;
        *first
    }
    fn u32(&mut self) -> u64 {
        u32::from_le_bytes(self.take()).into()
    }
    fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }
}

/// Each byte that is stored: address, and source address or value.
type Stored = (u64, u64);

/// `copy` and `fill`; `from` tells what is stored at an address.
fn linear(dst: u64, bytes: u64, from: impl Fn(u64) -> u64) -> Vec<Stored> {
    (dst..dst + bytes).map(|at| (at, from(at))).collect()
}

/// `copy_rows` and `fill_rows`: calls `store` with offset in a row, row, plane, bytes, and whether
/// it is a row's last segment.
fn rows(groups: u32, mut walk: Reader<'_>, mut store: impl FnMut(u64, u64, u64, u64, bool)) {
    let count = [walk.u32(), walk.u32(), walk.u32()];
    let step = [walk.u32(), walk.u32(), walk.u32()];
    let (unit, _, last) = (walk.u32(), walk.u32(), walk.u64());
    for lane in 0..u64::from(groups * GROUP) {
        let row = lane / count[0];
        let mut at = [lane % count[0], row % count[1], row / count[1]];
        while at[2] < count[2] {
            let is_last = at[0] == count[0] - 1;
            store(if is_last { last } else { at[0] * unit }, at[1], at[2], unit, is_last);
            let x = at[0] + step[0];
            let carry = x / count[0];
            let y = at[1] + step[1] + carry;
            assert!(x < u64::from(u32::MAX) && carry < 2 && y / count[1] < 2);
            at = [x % count[0], y % count[1], at[2] + step[2] + y / count[1]];
        }
    }
}

/// What launches store, in address order, each byte once; equal stores may repeat.
fn run(launches: impl Iterator<Item = Launch>) -> Vec<Stored> {
    let mut stored = Vec::new();
    for launch in launches {
        let mut a = Reader(launch.arguments());
        match launch.kernel {
            Kernel::Copy => {
                let (dst, src, bytes) = (a.u64(), a.u64(), a.u64());
                assert_eq!(a.u32(), u64::from(launch.groups * GROUP));
                stored.extend(linear(dst, bytes, |at| at - dst + src));
            }
            Kernel::Fill => {
                let (dst, bytes, pattern) = (a.u64(), a.u64(), a.take::<16>());
                assert_eq!(a.u32(), u64::from(launch.groups * GROUP));
                let value = |at: u64| pattern[usize::try_from(at % 16).unwrap()].into();
                stored.extend(linear(dst, bytes, value));
            }
            Kernel::CopyRows => {
                let dst = [a.u64(), a.u64(), a.u64()];
                let src = [a.u64(), a.u64(), a.u64()];
                rows(launch.groups, a, |x, y, z, bytes, _| {
                    let to = |[base, pitch, slice]: [u64; 3]| base + x + y * pitch + z * slice;
                    stored.extend((0..bytes).map(|n| (to(dst) + n, to(src) + n)));
                });
            }
            Kernel::FillRows => {
                let [base, pitch, slice] = [a.u64(), a.u64(), a.u64()];
                let mut patterns = Reader(&a.0[40..]);
                let (pattern, last) = (patterns.take::<16>(), patterns.take::<16>());
                rows(launch.groups, a, |x, y, z, bytes, is_last| {
                    let to = base + x + y * pitch + z * slice;
                    let from = if is_last { last } else { pattern };
                    stored.extend((0..bytes).zip(from).map(|(n, byte)| (to + n, byte.into())));
                });
            }
        }
    }
    stored.sort_unstable();
    stored.dedup();
    stored
}

/// A region of `extent` and where each of its bytes is: row by row.
fn region(extent: Extent) -> impl Strategy<Value = Region> {
    (0u64..64, 0u64..40, 0u64..80).prop_map(move |(base, row, plane)| {
        let pitch_bytes = extent.width + row;
        let slice_bytes = pitch_bytes * extent.rows + plane;
        Region { base: GpuAddr::new(0x1000 + base), layout: Layout { pitch_bytes, slice_bytes } }
    })
}

fn extent() -> impl Strategy<Value = Extent> {
    let width = prop_oneof![0u64..40, 200u64..500];
    (width, 0u64..6, 0u64..4).prop_map(|(width, rows, planes)| Extent { width, rows, planes })
}

fn expected(extent: Extent, dst: Region, value: impl Fn(u64, u64, u64) -> u64) -> Vec<Stored> {
    let mut all = Vec::new();
    for plane in 0..extent.planes {
        for row in 0..extent.rows {
            let start = dst.row(row, plane).get();
            all.extend((0..extent.width).map(|x| (start + x, value(x, row, plane))));
        }
    }
    all.sort_unstable();
    all
}

fn pattern() -> impl Strategy<Value = Pattern> {
    (any::<u128>(), 0..5).prop_map(|(value, size)| {
        let bytes = value.to_le_bytes();
        match size {
            0 => bytes[0].into(),
            1 => u16::from_le_bytes([bytes[0], bytes[1]]).into(),
            2 => u32::from_le_bytes(bytes[..4].try_into().unwrap()).into(),
            3 => u64::from_le_bytes(bytes[..8].try_into().unwrap()).into(),
            _ => value.into(),
        }
    })
}

proptest! {
    #[test]
    fn copies_store_each_byte_of_the_region_and_no_other(
        (extent, dst, src) in extent().prop_flat_map(|e| (Just(e), region(e), region(e))),
        most in 1u32..5,
    ) {
        let src = Region { base: GpuAddr::new(src.base.get() + 0x10_0000), ..src };
        let stored = run(copy(Shape::new([dst, src], extent), most));
        let wanted = expected(extent, dst, |x, y, z| src.row(y, z).get() + x);
        prop_assert_eq!(stored, wanted);
    }

    #[test]
    fn fills_start_their_value_anew_in_each_row(
        (extent, dst) in extent().prop_flat_map(|e| (Just(e), region(e))),
        pattern in pattern(),
        most in 1u32..5,
    ) {
        // Rows hold whole values, as `Alignment` demands.
        let width = extent.width / pattern.bytes() * pattern.bytes();
        let extent = Extent { width, ..extent };
        let stored = run(fill(Shape::new([dst], extent), pattern, most));
        let wanted = expected(extent, dst, |x, _, _| pattern.rotated(x)[0].into());
        prop_assert_eq!(stored, wanted);
    }

    #[test]
    fn no_launch_exceeds_its_groups(
        (width, rows, planes) in any::<(u64, u64, u64)>(),
        most in 1u32..10_000,
    ) {
        let extent = Extent { width: width >> 16, rows: rows >> 28, planes: planes >> 60 };
        for part in parts(extent).take(100) {
            let walk = Walk::new(part.extent, most);
            prop_assert!(walk.groups <= most);
            prop_assert!(walk.step[0] < walk.count[0] && walk.step[1] < walk.count[1]);
            prop_assert!(walk.count.iter().all(|count| u64::from(*count) <= MAX_COUNT));
        }
    }
}

#[test]
fn sizes_that_counters_cannot_hold_take_several_launches() {
    let dst = Region { base: GpuAddr::new(0x1000), layout: Layout::pitched(1 << 40) };
    let shape = Shape::new([dst], Extent::plane((MAX_COUNT * UNIT) + 5, 2));
    let launches: Vec<_> = fill(shape, Pattern::from(7_u8), 64).collect();
    assert_eq!(launches.len(), 2);
    let mut second = Reader(launches[1].arguments());
    assert_eq!(second.u64(), 0x1000 + (MAX_COUNT * UNIT));
    // One launch, however long, for what is in one piece.
    let shape = Shape::new([Region::linear(GpuAddr::new(3))], Extent::linear(1 << 50));
    assert_eq!(fill(shape, Pattern::from(7_u8), 64).count(), 1);
}

#[test]
fn no_bytes_take_no_launch() {
    for extent in [Extent::linear(0), Extent::volume(4, 0, 2), Extent::volume(4, 2, 0)] {
        let region = Region::linear(GpuAddr::new(0x1000));
        assert_eq!(copy(Shape::new([region; 2], extent), 8).count(), 0);
        assert_eq!(fill(Shape::new([region], extent), Pattern::from(1_u8), 8).count(), 0);
    }
}
