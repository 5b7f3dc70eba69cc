//! Plans, packet by packet, against the bytes that were asked for.

use pm4::sdma::{Packet, Packets};
use proptest::prelude::*;

use super::super::region::{Extent, Layout};
use super::*;

/// Each byte that is stored: address, and source address or value.
type Stored = (u64, u64);

fn run(pieces: impl Iterator<Item = Piece>) -> Vec<Stored> {
    let mut stored = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Copy(copy) => {
                let (dst, src) = (copy.dst().get(), copy.src().get());
                stored.extend((0..u64::from(copy.bytes())).map(|n| (dst + n, src + n)));
            }
            Piece::Window(window) => {
                let (src, dst) = window.sides();
                let size = u64::from(window.element_bytes());
                let at = |side: sdma::Side, [x, y, z]: [u32; 3]| {
                    let [ox, oy, oz] = side.origin.map(u64::from);
                    let row = (oy + u64::from(y)) * u64::from(side.pitch);
                    let plane = (oz + u64::from(z)) * u64::from(side.slice);
                    side.base.get() + (ox + u64::from(x) + row + plane) * size
                };
                let [width, rows, planes] = window.extent();
                for (z, y, x) in (0..planes)
                    .flat_map(|z| (0..rows).flat_map(move |y| (0..width).map(move |x| (z, y, x))))
                {
                    let (to, from) = (at(dst, [x, y, z]), at(src, [x, y, z]));
                    stored.extend((0..size).map(|n| (to + n, from + n)));
                }
            }
            Piece::Fill(fill) => {
                let bytes = match fill.data() {
                    FillData::Byte(byte) => [byte; 4],
                    FillData::Dword(dword) => dword.to_le_bytes(),
                };
                let start = fill.dst().get();
                let all = start..start + u64::from(fill.bytes());
                stored.extend(all.zip(bytes.into_iter().cycle().map(u64::from)));
            }
        }
    }
    stored.sort_unstable();
    stored
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

fn version() -> impl Strategy<Value = Version> {
    prop::sample::select(&Version::ALL[..])
}

fn extent() -> impl Strategy<Value = Extent> {
    let width = prop_oneof![1u64..40, LONG_ROW - 8..LONG_ROW + 8];
    (width, 1u64..5, 1u64..4).prop_map(|(width, rows, planes)| Extent { width, rows, planes })
}

fn region(extent: Extent) -> impl Strategy<Value = Region> {
    let step = || prop_oneof![0u64..40, (0u64..10).prop_map(|n| n * 4)];
    (0u64..16, step(), step(), any::<bool>()).prop_map(move |(base, row, plane, round)| {
        let pitch = extent.width + row;
        let pitch_bytes = if round { pitch.next_multiple_of(4) } else { pitch };
        let slice = pitch_bytes * extent.rows + plane;
        let slice_bytes = if round { slice.next_multiple_of(4) } else { slice };
        Region { base: GpuAddr::new(0x1000 + base), layout: Layout { pitch_bytes, slice_bytes } }
    })
}

/// Emits everything, in submissions of at most `limit` dwords, and decodes it.
fn emitted(plan: &Plan, limit: usize) -> Vec<Piece> {
    let bracket = Bracket { version: plan.version, waits: &[], drain: false, done: None };
    let each = bracket.fitting(limit, plan.packet_dwords());
    assert!(each > 0);
    let mut found = Vec::new();
    let mut first = 0;
    while first < plan.packets() {
        let count = each.min(plan.packets() - first);
        let dwords = usize::try_from(count).unwrap() * plan.packet_dwords();
        let mut words = vec![0; bracket.dwords() + dwords];
        let mut builder = Builder::new(&mut words[..]);
        bracket.emit(&mut builder, |to| plan.emit(first, count, to)).unwrap();
        assert_eq!(builder.dwords(), words.len(), "the length is known beforehand");
        for packet in Packets::new(&words, plan.version) {
            match packet.unwrap() {
                Packet::CopyLinear(copy) => found.push(Piece::Copy(copy)),
                Packet::CopySubWindow(window) => found.push(Piece::Window(window)),
                Packet::ConstFill(fill) => found.push(Piece::Fill(fill)),
                Packet::Nop(_) | Packet::GcrReq(_) => {}
                other => panic!("{other}"),
            }
        }
        first += count;
    }
    found
}

proptest! {
    #[test]
    fn copies_move_each_byte_once(
        (extent, dst, src) in extent().prop_flat_map(|e| (Just(e), region(e), region(e))),
        version in version(),
        limit in 64usize..200,
    ) {
        let src = Region { base: GpuAddr::new(src.base.get() + 0x10_0000), ..src };
        let shape = Shape::new([dst, src], extent);
        let wanted = expected(extent, dst, |x, y, z| src.row(y, z).get() + x);
        match Plan::copy(version, &shape) {
            Ok(plan) => {
                prop_assert_eq!(run(plan.pieces(0)), wanted);
                prop_assert_eq!(plan.packets(), plan.pieces(0).count() as u64);
                let all: Vec<_> = plan.pieces(0).collect();
                prop_assert_eq!(emitted(&plan, limit), all);
            }
            Err(Unfit::Rows { width, .. }) => {
                prop_assert!(width < LONG_ROW);
                let steps = shape.regions.map(|r| r.layout.pitch_bytes | r.layout.slice_bytes);
                prop_assert!(!(steps[0] | steps[1]).is_multiple_of(4));
            }
            Err(other) => prop_assert!(false, "{other}"),
        }
    }

    #[test]
    fn fills_store_each_byte_once(
        (extent, dst) in extent().prop_flat_map(|e| (Just(e), region(e))),
        version in version(),
        (value, size) in (any::<u32>(), 0..5),
        limit in 64usize..200,
    ) {
        let pattern = match size {
            0 => Pattern::from(value.to_le_bytes()[0]),
            1 => Pattern::from(u16::from_le_bytes([value.to_le_bytes()[0], value.to_le_bytes()[1]])),
            2 => Pattern::from(value),
            3 => Pattern::from(u64::from(value) << 32 | u64::from(value)),
            _ => Pattern::from(u64::from(value) << 32 | u64::from(!value)),
        };
        // Rows hold whole values, as `Alignment` demands.
        let width = extent.width / pattern.bytes() * pattern.bytes();
        let extent = Extent { width, ..extent };
        let shape = Shape::new([dst], extent);
        match Plan::fill(version, &shape, pattern) {
            Ok(plan) => {
                let wanted = expected(extent, dst, |x, _, _| pattern.rotated(x)[0].into());
                prop_assert_eq!(run(plan.pieces(0)), wanted);
                prop_assert_eq!(plan.packets(), plan.pieces(0).count() as u64);
                let all: Vec<_> = plan.pieces(0).collect();
                prop_assert_eq!(emitted(&plan, limit), all);
            }
            Err(Unfit::Value { .. }) => prop_assert_eq!(size, 4),
            Err(Unfit::Rows { rows, .. }) => prop_assert!(rows > 1),
            Err(other) => prop_assert!(false, "{other}"),
        }
    }
}

fn linear(dst: u64, src: u64, bytes: u64) -> Shape<2> {
    let region = |at| Region::linear(GpuAddr::new(at));
    Shape::new([region(dst), region(src)], Extent::linear(bytes))
}

#[test]
fn large_copies_are_cut_at_each_engines_limit() {
    for version in Version::ALL {
        let most = version.max_copy_bytes();
        let plan = Plan::copy(version, &linear(0x1000, 1 << 40, 3 * most)).unwrap();
        assert_eq!(plan.packets(), 3, "{version}");
        let plan = Plan::copy(version, &linear(0x1000, 1 << 40, 3 * most + 1)).unwrap();
        assert_eq!(plan.packets(), 4, "{version}");
        // Copies that are not aligned have no last bytes of their own.
        let plan = Plan::copy(version, &linear(0x1001, 1 << 40, most + 1)).unwrap();
        let sizes: Vec<u32> = plan
            .pieces(0)
            .map(|piece| match piece {
                Piece::Copy(copy) => copy.bytes(),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(sizes, [u32::try_from(most).unwrap(), 1], "{version}");
        assert_eq!(Plan::copy(version, &linear(1, 1 << 40, 0)).unwrap().packets(), 0);
    }
}

#[test]
fn dwords_go_first_and_the_last_bytes_alone() {
    let plan = Plan::copy(Version::V4_0, &linear(0x1000, 0x2000, 4099)).unwrap();
    let sizes: Vec<_> = plan
        .pieces(0)
        .map(|piece| match piece {
            Piece::Copy(copy) => (copy.dst().get(), copy.bytes()),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(sizes, [(0x1000, 4096), (0x2000, 3)]);
}

#[test]
fn rows_take_windows_where_pitches_are_dwords() {
    let version = Version::V4_4_2;
    let rows = |pitch, width, rows| {
        let region = |at| Region { base: GpuAddr::new(at), layout: Layout::pitched(pitch) };
        Shape::new([region(0x1003), region(1 << 40)], Extent::plane(width, rows))
    };
    let plan = Plan::copy(version, &rows(128, 100, 1000)).unwrap();
    assert_eq!((plan.packets(), plan.packet_dwords()), (1, CopySubWindow::DWORDS));
    // Short rows, and no window: the shader's.
    let unfit = Plan::copy(version, &rows(127, 100, 1000));
    assert_eq!(unfit, Err(Unfit::Rows { rows: 1000, width: 100 }));
    // Long rows one by one, up to a limit.
    let plan = Plan::copy(version, &rows(LONG_ROW + 1, LONG_ROW, MOST_ROWS)).unwrap();
    assert_eq!((plan.packets(), plan.packet_dwords()), (MOST_ROWS, CopyLinear::DWORDS));
    assert!(Plan::copy(version, &rows(LONG_ROW + 1, LONG_ROW, MOST_ROWS + 1)).is_err());
    // A pitch over 2^19 elements of the largest size has no window.
    let wide = rows((1 << 23) + 16, LONG_ROW, 3);
    assert_eq!(Plan::copy(version, &wide).unwrap().packet_dwords(), CopyLinear::DWORDS);
}

#[test]
fn brackets_wait_drain_flush_and_signal() {
    let signals = [GpuAddr::new(0x4000), GpuAddr::new(0x4040)];
    for version in Version::ALL {
        let done = Some(GpuAddr::new(0x8000));
        let bracket = Bracket { version, waits: &signals, drain: true, done };
        let plan = Plan::copy(version, &linear(0x1000, 0x2000, 64)).unwrap();
        let mut words = vec![0; bracket.dwords() + plan.packet_dwords()];
        let mut builder = Builder::new(&mut words[..]);
        bracket.emit(&mut builder, |to| plan.emit(0, 1, to)).unwrap();
        assert_eq!(builder.dwords(), words.len());
        let text: Vec<String> =
            Packets::new(&words, version).map(|packet| packet.unwrap().to_string()).collect();
        let names: Vec<&str> = text.iter().filter_map(|line| line.split(' ').next()).collect();
        let polls = 2 * version.poll_repeats();
        assert!(names[..polls].iter().all(|name| *name == "POLL_REGMEM"), "{text:#?}");
        assert!(text[0].contains("0x4008 until == 0x0"), "{text:#?}");
        let rest = &names[polls..];
        if version.is_v6() {
            assert_eq!(rest, ["NOP", "GCR_REQ", "COPY_LINEAR", "GCR_REQ", "FENCE"]);
        } else {
            assert_eq!(rest, ["NOP", "COPY_LINEAR", "FENCE"]);
        }
        let fence = text.iter().find(|line| line.starts_with("FENCE")).unwrap();
        assert!(fence.contains("0x8008 data=0x0"), "{fence}");
    }
}
