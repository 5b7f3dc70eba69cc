use super::*;
use crate::error::ArgumentError;
use crate::metadata::{Argument, KernelMetadata, Metadata, ValueKind};

fn fixture(name: &str) -> Vec<u8> {
    let path = format!("{}/../tests/fixtures/code-objects/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(path).unwrap()
}

/// The layout of a kernel in a fixture.
fn layout(file: &str, kernel: &str) -> ArgLayout {
    let bytes = fixture(file);
    let object = crate::CodeObject::parse(&bytes).unwrap();
    object.kernel(kernel).unwrap().arguments().clone()
}

/// The layout of a made-up kernel: offset, size and kind of each argument.
fn made(segment_bytes: u32, args: &[(u32, u32, &str)]) -> ArgLayout {
    let note = fixture_metadata();
    let metadata = Metadata::parse(&note).unwrap();
    let mut kernel: KernelMetadata<'_> = metadata.kernels.into_iter().next().unwrap();
    let kind = |name: &str| match Hidden::from_name(name) {
        Some(hidden) => ValueKind::Hidden(hidden),
        None if name == "unknown" => ValueKind::Unknown("unknown"),
        None if name.starts_with("hidden_") => ValueKind::UnknownHidden("hidden_new"),
        None => ValueKind::ByValue,
    };
    let template = *kernel.args.iter().flatten().next().unwrap();
    let argument = |&(offset, size, name): &(u32, u32, &str)| Argument {
        offset,
        size,
        kind: kind(name),
        ..template
    };
    kernel.kernarg_segment_size = segment_bytes;
    kernel.args = Some(args.iter().map(argument).collect());
    ArgLayout::new(&kernel)
}

fn fixture_metadata() -> Vec<u8> {
    let bytes = fixture("vadd.gfx90a.v5.co");
    let start = bytes.windows(7).position(|window| window == b"AMDGPU\0").unwrap();
    let size: [u8; 4] = bytes[start - 8..start - 4].try_into().unwrap();
    let size = u32::from_le_bytes(size) as usize;
    bytes[start + 8..start + 8 + size].to_vec()
}

fn geometry() -> Geometry {
    Geometry::new([1000, 30, 7], [256, 4, 2], 3).unwrap()
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes[at..at + 2].try_into().unwrap())
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

#[test]
fn hidden_offsets_are_those_of_real_version_5_objects() {
    for file in
        ["dims.gfx90a.v5.co", "dims.gfx1100.v6.co", "stack.gfx90a.v5.co", "hostcall.gfx1100.v5.co"]
    {
        let bytes = fixture(file);
        let object = crate::CodeObject::parse(&bytes).unwrap();
        for kernel in object.kernels() {
            let start = kernel.arguments().explicit_bytes().next_multiple_of(8);
            for hidden in kernel.arguments().hidden() {
                assert_eq!(hidden.offset, start + hidden.kind.v5_offset(), "{:?}", hidden.kind);
                assert_eq!(hidden.size, hidden.kind.bytes(), "{:?}", hidden.kind);
            }
        }
    }
}

#[test]
fn names_and_kinds_are_one_to_one() {
    for &kind in Hidden::ALL {
        assert_eq!(Hidden::from_name(kind.name()), Some(kind));
    }
    assert_eq!(Hidden::ALL.len(), 24);
}

#[test]
fn a_version_5_segment_has_every_launch_dimension() {
    let layout = layout("dims.gfx90a.v5.co", "dims");
    let mut builder = layout.builder().unwrap();
    builder.push(&0x1122_3344_5566_7788_u64.to_le_bytes()).unwrap();
    let geometry = geometry().global_offset([5, 6, 7]);
    let segment = builder.finish(&HiddenValues::new(geometry)).unwrap();
    assert_eq!(segment.len(), 264);
    assert_eq!(u64_at(&segment, 0), 0x1122_3344_5566_7788);
    // 1000 / 256, 30 / 4, 7 / 2 whole groups, then sizes, then what is left over.
    assert_eq!([8, 12, 16].map(|at| u32_at(&segment, at)), [3, 7, 3]);
    assert_eq!([20, 22, 24].map(|at| u16_at(&segment, at)), [256, 4, 2]);
    assert_eq!([26, 28, 30].map(|at| u16_at(&segment, at)), [232, 2, 1]);
    assert_eq!([48, 56, 64].map(|at| u64_at(&segment, at)), [5, 6, 7]);
    assert_eq!(u16_at(&segment, 72), 3);
    assert!(segment[74..].iter().all(|&byte| byte == 0));
}

#[test]
fn a_version_4_segment_has_the_global_offset_first() {
    let layout = layout("dims.gfx90a.v4.co", "dims");
    let mut builder = layout.builder().unwrap();
    builder.push(&[0xff; 8]).unwrap();
    let mut hidden = HiddenValues::new(geometry().global_offset([5, 6, 7]));
    hidden.services.hostcall_buffer = 0x77;
    hidden.services.multigrid_sync_arg = 0x88;
    let segment = builder.finish(&hidden).unwrap();
    assert_eq!(u64_at(&segment, 0), u64::MAX);
    assert_eq!([8, 16, 24].map(|at| u64_at(&segment, at)), [5, 6, 7]);
    for argument in layout.hidden() {
        let value = u64_at(&segment, argument.offset as usize);
        match argument.kind {
            Hidden::HostcallBuffer => assert_eq!(value, 0x77),
            Hidden::MultigridSyncArg => assert_eq!(value, 0x88),
            Hidden::GlobalOffsetX | Hidden::GlobalOffsetY | Hidden::GlobalOffsetZ => {}
            _ => assert_eq!(value, 0),
        }
    }
}

#[test]
fn services_go_where_they_are_declared() {
    let layout = layout("stack.gfx90a.v5.co", "indirect");
    let services = Services {
        printf_buffer: 1,
        hostcall_buffer: 2,
        multigrid_sync_arg: 3,
        heap_v1: 4,
        default_queue: 5,
        completion_action: 6,
        private_base: 7,
        shared_base: 8,
        queue_ptr: 9,
    };
    let template = layout.template(&services).unwrap();
    let mut segment = vec![0xee; template.segment_bytes()];
    let geometry = geometry().dynamic_lds_bytes(0x1234);
    template.write(&mut segment, &[&[0; 8]], &geometry).unwrap();
    let at = |kind: Hidden| {
        let argument = layout.hidden().iter().find(|argument| argument.kind == kind);
        argument.map(|argument| u64_at(&segment, argument.offset as usize))
    };
    assert_eq!(at(Hidden::HostcallBuffer), Some(2));
    assert_eq!(at(Hidden::MultigridSyncArg), Some(3));
    assert_eq!(at(Hidden::HeapV1), Some(4));
    assert_eq!(at(Hidden::DefaultQueue), Some(5));
    assert_eq!(at(Hidden::CompletionAction), Some(6));
    assert_eq!(at(Hidden::QueuePtr), Some(9));
}

#[test]
fn dynamic_lds_and_heap_are_written_where_declared() {
    let layout =
        made(64, &[(0, 8, ""), (8, 4, "hidden_dynamic_lds_size"), (16, 8, "hidden_heap_v1")]);
    let template = layout.template(&Services { heap_v1: 0xabc, ..Services::default() }).unwrap();
    let mut segment = [0xee; 64];
    let geometry = geometry().dynamic_lds_bytes(4096);
    template.write(&mut segment, &[&[1; 8]], &geometry).unwrap();
    assert_eq!(u32_at(&segment, 8), 4096);
    assert_eq!(u32_at(&segment, 12), 0);
    assert_eq!(u64_at(&segment, 16), 0xabc);
    assert!(segment[24..].iter().all(|&byte| byte == 0));
}

#[test]
fn nothing_past_the_segment_is_touched() {
    let layout = made(12, &[(0, 8, ""), (8, 4, "")]);
    let template = layout.template(&Services { queue_ptr: 9, ..Services::default() }).unwrap();
    let mut segment = [0xee; 32];
    template.write(&mut segment, &[&[1; 8], &[2; 4]], &geometry()).unwrap();
    assert_eq!(segment[..12], [1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2]);
    assert_eq!(segment[12..], [0xee; 20]);
}

#[test]
fn hidden_arguments_may_start_anywhere() {
    let layout = made(
        256,
        &[
            (0, 201, ""),
            (201, 4, "hidden_block_count_x"),
            (205, 2, "hidden_group_size_x"),
            (209, 2, "hidden_grid_dims"),
        ],
    );
    let template = layout.template(&Services::default()).unwrap();
    let mut segment = [0xee; 256];
    template.write(&mut segment, &[&[7; 201]], &geometry()).unwrap();
    assert!(segment[..201].iter().all(|&byte| byte == 7));
    assert_eq!(u32_at(&segment, 201), 3);
    assert_eq!(u16_at(&segment, 205), 256);
    assert_eq!(u16_at(&segment, 207), 0);
    assert_eq!(u16_at(&segment, 209), 3);
    assert!(segment[211..].iter().all(|&byte| byte == 0));
}

#[test]
fn hidden_arguments_between_explicit_ones_survive_packed_arguments() {
    let layout = made(24, &[(0, 4, ""), (8, 4, "hidden_block_count_x"), (16, 8, "")]);
    let template = layout.template(&Services::default()).unwrap();
    let mut segment = [0xee; 24];
    template.write_packed(&mut segment, &[0x55; 24], &geometry()).unwrap();
    assert_eq!(u32_at(&segment, 8), 3);
    assert_eq!(u64_at(&segment, 16), 0x5555_5555_5555_5555);
}

#[test]
fn larger_declared_sizes_are_zero_extended() {
    let layout = made(
        32,
        &[(0, 8, "hidden_block_count_x"), (8, 8, "hidden_grid_dims"), (16, 16, "hidden_none")],
    );
    let template = layout.template(&Services::default()).unwrap();
    let mut segment = [0xee; 32];
    template.write(&mut segment, &[], &geometry()).unwrap();
    assert_eq!([0, 8, 16, 24].map(|at| u64_at(&segment, at)), [3, 3, 0, 0]);
}

#[test]
fn the_number_of_dimensions_is_that_of_the_dispatch() {
    let flat = Geometry::new([1000, 2, 1], [256, 1, 1], 2).unwrap();
    assert_eq!(flat.dimensions(), 2);
    let layout = made(8, &[(0, 2, "hidden_grid_dims"), (2, 2, "hidden_remainder_x")]);
    let mut segment = [0; 8];
    layout.template(&Services::default()).unwrap().write(&mut segment, &[], &flat).unwrap();
    assert_eq!((u16_at(&segment, 0), u16_at(&segment, 2)), (2, 232));
}

#[test]
fn launches_that_cannot_be_are_refused() {
    for (grid, group, dimensions) in [
        ([0, 1, 1], [1, 1, 1], 1),
        ([1, 1, 1], [1, 0, 1], 1),
        ([1, 1, 1], [65536, 1, 1], 1),
        ([1, 1, 1], [1, 1, 1], 0),
        ([1, 1, 1], [1, 1, 1], 4),
        ([8, 2, 1], [8, 1, 1], 1),
        ([8, 8, 8], [8, 1, 2], 2),
    ] {
        assert_eq!(
            Geometry::new(grid, group, dimensions),
            Err(ArgumentError::Geometry { grid, group })
        );
    }
}

#[test]
fn wrong_arguments_are_refused_with_their_index() {
    let layout = layout("vadd.gfx90a.v5.co", "vadd");
    let hidden = HiddenValues::new(geometry());
    let mut builder = layout.builder().unwrap();
    builder.push(&[0; 8]).unwrap();
    assert_eq!(
        builder.push(&[0; 4]).unwrap_err(),
        ArgumentError::Size { index: 1, given: 4, expected: 8 }
    );
    assert_eq!(
        builder.finish(&hidden).unwrap_err(),
        ArgumentError::Count { given: 1, expected: 4 }
    );
    builder.push(&[0; 8]).unwrap().push(&[0; 8]).unwrap().push(&[0; 4]).unwrap();
    assert_eq!(builder.push(&[0; 4]).unwrap_err(), ArgumentError::Count { given: 5, expected: 4 });
    let template = layout.template(&Services::default()).unwrap();
    let mut segment = vec![0; template.segment_bytes()];
    let pointer: &[u8] = &[0; 8];
    assert_eq!(
        template.write(&mut segment, &[pointer; 3], &geometry()).unwrap_err(),
        ArgumentError::Count { given: 3, expected: 4 }
    );
    assert_eq!(
        template.write(&mut segment, &[pointer; 4], &geometry()).unwrap_err(),
        ArgumentError::Size { index: 3, given: 8, expected: 4 }
    );
    assert_eq!(
        template.write_packed(&mut segment, &[0; 29], &geometry()).unwrap_err(),
        ArgumentError::PackedSize { given: 29, expected: 28 }
    );
    let needed = segment.len();
    assert_eq!(
        template.write(&mut segment[..16], &[pointer; 4], &geometry()).unwrap_err(),
        ArgumentError::Space { needed, found: 16 }
    );
}

#[test]
fn a_kernel_with_an_unknown_kind_cannot_be_launched() {
    let layout = made(16, &[(0, 8, ""), (8, 8, "unknown")]);
    assert_eq!(layout.builder().unwrap_err(), ArgumentError::Kind { index: 1 });
    assert_eq!(
        layout.template(&Services::default()).unwrap_err(),
        ArgumentError::Kind { index: 1 }
    );
    let future = made(16, &[(0, 8, ""), (8, 8, "hidden_future")]);
    let mut segment = [0xee; 16];
    future
        .template(&Services::default())
        .unwrap()
        .write(&mut segment, &[&[1; 8]], &geometry())
        .unwrap();
    assert_eq!(u64_at(&segment, 8), 0);
}

#[test]
fn both_ways_of_packing_agree_on_every_kernel() {
    for file in [
        "abi_args.gfx90a.v5.co",
        "abi_args.gfx1100.v5.co",
        "dims.gfx1100.v4.co",
        "dims.gfx1100.v6.co",
        "ocl.gfx90a.v5.co",
        "triton_add.gfx1100.co",
        "iree_mul.gfx90a.co",
        "stack.gfx1100.v5.co",
        "vadd.gfx90a.v3.c15.co",
    ] {
        let bytes = fixture(file);
        let object = crate::CodeObject::parse(&bytes).unwrap();
        for kernel in object.kernels() {
            let layout = kernel.arguments();
            let values: Vec<Vec<u8>> = (layout.explicit().iter().zip(1_u8..))
                .map(|(argument, value)| vec![value; argument.size as usize])
                .collect();
            let slices: Vec<&[u8]> = values.iter().map(Vec::as_slice).collect();
            let mut builder = layout.builder().unwrap();
            for value in &slices {
                builder.push(value).unwrap();
            }
            let built = builder.finish(&HiddenValues::new(geometry())).unwrap();
            let template = layout.template(&Services::default()).unwrap();
            let mut written = vec![0xee; template.segment_bytes()];
            template.write(&mut written, &slices, &geometry()).unwrap();
            assert!(built == written, "{file} {}", kernel.name());
            assert_eq!(built.len(), kernel.launch_facts().kernarg_bytes as usize);
        }
    }
}

#[test]
fn argument_shapes_are_those_of_the_c_abi() {
    let layout = layout("abi_args.gfx90a.v5.co", "_Z8args_mixcsilfd3Big2AlPvPy");
    let shapes: Vec<(u32, u32)> =
        layout.explicit().iter().map(|argument| (argument.offset, argument.size)).collect();
    let expected =
        [(0, 1), (2, 2), (4, 4), (8, 8), (16, 4), (24, 8), (32, 24), (64, 32), (96, 8), (104, 8)];
    assert_eq!(shapes, expected);
}
