//! The blit kernels on the software GPU of every target, over plain AQL, against the CPU.

use std::time::Duration;

use aql::KernelDispatch;
use hsaco::CodeObject;
use kfd::{Buffer, Gpu, KernelLabel, Kfd, MemoryRequest, Queue, QueueRequest, Until};
use kfd_model::{Model, Preset, Target};
use pm4::GpuAddr;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestError, TestRunner};

use super::objects::object;
use super::region::{Region, Shape};
use super::shader::{self, GROUP, Launch};
use super::{Extent, Layout, Pattern, Side};

const LIMIT: Duration = Duration::from_secs(60);
const PAGE: u64 = 4096;

/// A GPU with the kernels loaded.
struct Device {
    gpu: Gpu,
    queue: Queue,
    kernarg: Buffer,
    object: CodeObject<'static>,
    image: hsaco::Image,
    _code: Buffer,
}

impl Device {
    fn new(target: Target) -> Self {
        let model = Model::builder().gpu(Preset::of(target)).build();
        let kfd = Kfd::open_on(model).unwrap();
        let gpu = kfd.first_gpu().unwrap();
        let object = CodeObject::parse(object(target.name()).unwrap()).unwrap();
        let request = MemoryRequest::gtt(object.load_bytes()).executable();
        let code = gpu.allocate(&request).unwrap();
        let image = object.image(code.addr().get()).unwrap();
        code.write(0, image.bytes()).unwrap();
        let queue = gpu.create_queue(&QueueRequest::aql(64)).unwrap();
        let kernarg = gpu.allocate(&MemoryRequest::gtt(PAGE).coherent().uncached()).unwrap();
        Self { gpu, queue, kernarg, object, image, _code: code }
    }

    fn memory(&self, bytes: u64) -> Buffer {
        self.gpu.allocate(&MemoryRequest::gtt(bytes).coherent()).unwrap()
    }

    fn run(&self, launches: impl Iterator<Item = Launch>) {
        for launch in launches {
            let kernel = self.object.kernel(launch.kernel.name()).unwrap();
            let descriptor = self.image.address_of(kernel.descriptor_vaddr());
            self.kernarg.write(0, launch.arguments()).unwrap();
            let done = self.gpu.create_signal(1).unwrap();
            let grid = [launch.groups * GROUP, 1, 1];
            let group = [u16::try_from(GROUP).unwrap(), 1, 1];
            let packet = KernelDispatch::new(descriptor.into(), grid, group)
                .unwrap()
                .kernarg(self.kernarg.addr())
                .completion(done.addr());
            self.queue.submit(&packet.encode(), KernelLabel::NONE).unwrap();
            self.queue.wait(&done, Until::Below(1), LIMIT).unwrap();
        }
    }
}

/// Bytes that differ from their neighbours, near and far.
fn noise(seed: u64, bytes: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let step = |_| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state.to_le_bytes()[7]
    };
    (0..bytes).map(step).collect()
}

fn read(buffer: &Buffer) -> Vec<u8> {
    let mut bytes = vec![0; usize::try_from(buffer.bytes()).unwrap()];
    buffer.read(0, &mut bytes).unwrap();
    bytes
}

fn at(offset: u64) -> usize {
    usize::try_from(offset).unwrap()
}

/// The first byte that differs, and how many do.
fn difference(found: &[u8], wanted: &[u8]) -> Option<(usize, usize)> {
    let differ = |(a, b): (&u8, &u8)| a != b;
    let first = found.iter().zip(wanted).position(differ)?;
    Some((first, found.iter().zip(wanted).filter(|pair| differ(*pair)).count()))
}

fn each_target<S: Strategy>(cases: u32, case: impl Fn() -> S, test: impl Fn(&Device, S::Value))
where
    S::Value: Clone,
{
    for target in Target::ALL {
        let device = Device::new(target);
        let mut runner =
            TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
        let outcome = runner.run(&case(), |value| {
            test(&device, value);
            Ok(())
        });
        match outcome {
            Ok(()) => {}
            Err(TestError::Fail(reason, value)) => panic!("{target}: {reason} with {value:?}"),
            Err(TestError::Abort(reason)) => panic!("{target}: {reason}"),
        }
    }
}

/// Sizes around the widths that paths change at, and some that cross pages.
fn bytes() -> impl Strategy<Value = u64> {
    prop_oneof![
        0u64..40,
        0u64..600,
        (1u64..4, 0u64..32).prop_map(|(pages, more)| pages * PAGE - 16 + more),
        (40_000u64..70_000),
    ]
}

#[test]
fn linear_copies_move_their_bytes_and_no_others() {
    let case = || (bytes(), 0..PAGE + 32, 0..PAGE + 32, 1u32..6, any::<u64>());
    each_target(48, case, |device, (bytes, to, from, groups, seed)| {
        let (dst, src) = (device.memory(20 * PAGE), device.memory(20 * PAGE));
        let (mut wanted, source) = (noise(seed, dst.bytes()), noise(!seed, src.bytes()));
        dst.write(0, &wanted).unwrap();
        src.write(0, &source).unwrap();
        let region =
            |buffer: &Buffer, offset| Region::linear(GpuAddr::new(buffer.addr().get() + offset));
        let shape = Shape::new([region(&dst, to), region(&src, from)], Extent::linear(bytes));
        device.run(shader::copy(shape, groups));
        wanted[at(to)..at(to + bytes)].copy_from_slice(&source[at(from)..at(from + bytes)]);
        assert_eq!(difference(&read(&dst), &wanted), None);
        assert_eq!(difference(&read(&src), &source), None);
    });
}

#[test]
fn linear_fills_repeat_values_of_every_size_from_any_start() {
    let case = || (bytes(), 0..PAGE + 32, 1u32..6, any::<u128>(), 0u32..5);
    each_target(32, case, |device, (bytes, to, groups, value, size)| {
        let pattern = pattern(value, size);
        let dst = device.memory(20 * PAGE);
        let mut wanted = noise(bytes, dst.bytes());
        dst.write(0, &wanted).unwrap();
        let region = Region::linear(GpuAddr::new(dst.addr().get() + to));
        let shape = Shape::new([region], Extent::linear(bytes));
        device.run(shader::fill(shape, pattern, groups));
        let value = value.to_le_bytes();
        for n in 0..bytes {
            wanted[at(to + n)] = value[at(n % pattern.bytes())];
        }
        assert_eq!(difference(&read(&dst), &wanted), None);
    });
}

fn pattern(value: u128, size: u32) -> Pattern {
    let bytes = value.to_le_bytes();
    match size {
        0 => bytes[0].into(),
        1 => u16::from_le_bytes([bytes[0], bytes[1]]).into(),
        2 => u32::from_le_bytes(bytes[..4].try_into().unwrap()).into(),
        3 => u64::from_le_bytes(bytes[..8].try_into().unwrap()).into(),
        _ => value.into(),
    }
}

fn extent() -> impl Strategy<Value = Extent> {
    let width = prop_oneof![1u64..40, 100u64..300, Just(PAGE - 8)];
    (width, 1u64..20, 1u64..4).prop_map(|(width, rows, planes)| Extent { width, rows, planes })
}

fn layout(extent: Extent) -> impl Strategy<Value = Layout> {
    (0u64..70, 0u64..200).prop_map(move |(row, plane)| {
        let pitch_bytes = extent.width + row;
        Layout { pitch_bytes, slice_bytes: pitch_bytes * extent.rows + plane }
    })
}

#[test]
fn volumes_are_copied_and_filled_row_by_row_and_nothing_between() {
    let case = || {
        let layouts = |e| (Just(e), layout(e), layout(e));
        (extent().prop_flat_map(layouts), 0u64..40, 0u64..40, 1u32..4, any::<u128>(), 0u32..5)
    };
    each_target(32, case, |device, ((extent, to, from), dst_at, src_at, groups, value, size)| {
        let span = |layout: Layout| layout.span(Side::Source, extent).unwrap();
        let dst = device.memory(dst_at + span(to) + 64);
        let src = device.memory(src_at + span(from) + 64);
        let (mut wanted, source) = (noise(1, dst.bytes()), noise(2, src.bytes()));
        dst.write(0, &wanted).unwrap();
        src.write(0, &source).unwrap();
        let region = |buffer: &Buffer, offset, layout| Region {
            base: GpuAddr::new(buffer.addr().get() + offset),
            layout,
        };
        let (dst_region, src_region) = (region(&dst, dst_at, to), region(&src, src_at, from));
        device.run(shader::copy(Shape::new([dst_region, src_region], extent), groups));
        let rows = || (0..extent.planes).flat_map(|z| (0..extent.rows).map(move |y| (y, z)));
        let offset = |layout: Layout, (y, z)| y * layout.pitch_bytes + z * layout.slice_bytes;
        for row in rows() {
            let (t, f) = (at(dst_at + offset(to, row)), at(src_at + offset(from, row)));
            let width = at(extent.width);
            wanted[t..t + width].copy_from_slice(&source[f..f + width]);
        }
        assert_eq!(difference(&read(&dst), &wanted), None, "copy");
        let pattern = pattern(value, size);
        let width = extent.width / pattern.bytes() * pattern.bytes();
        let narrow = Extent { width, ..extent };
        device.run(shader::fill(Shape::new([dst_region], narrow), pattern, groups));
        let value = value.to_le_bytes();
        for row in rows() {
            for n in 0..width {
                let byte = value[at(n % pattern.bytes())];
                wanted[at(dst_at + offset(to, row) + n)] = byte;
            }
        }
        assert_eq!(difference(&read(&dst), &wanted), None, "fill");
    });
}

#[test]
fn strides_and_sizes_beyond_four_gibibytes_are_right() {
    const STRIDE: u64 = (4 << 30) + 12;
    for target in [Target::Gfx900, Target::Gfx90a, Target::Gfx1100] {
        let device = Device::new(target);
        let (dst, src) = (device.memory(STRIDE + PAGE), device.memory(PAGE));
        src.write(0, &noise(9, PAGE)).unwrap();
        let layout = Layout::pitched(STRIDE);
        let to = Region { base: GpuAddr::new(dst.addr().get() + 5), layout };
        let from = Region { base: src.addr(), layout: Layout::pitched(100) };
        let extent = Extent::plane(75, 2);
        device.run(shader::copy(Shape::new([to, from], extent), 1));
        let mut source = vec![0; 200];
        src.read(0, &mut source).unwrap();
        for row in 0..2 {
            let mut found = vec![0; 77];
            dst.read(4 + row * STRIDE, &mut found).unwrap();
            assert_eq!(found[0], 0);
            assert_eq!(found[1..76], source[at(row * 100)..at(row * 100 + 75)]);
            assert_eq!(found[76], 0);
        }
        // Planes far apart, filled.
        let extent = Extent::volume(20, 3, 2);
        let layout = Layout { pitch_bytes: 24, slice_bytes: STRIDE };
        let to = Region { base: dst.addr(), layout };
        device.run(shader::fill(Shape::new([to], extent), Pattern::from(0xABCD_u16), 1));
        let mut found = vec![0; 20];
        dst.read(STRIDE + 48, &mut found).unwrap();
        assert!(found.chunks(2).all(|pair| pair == [0xCD, 0xAB]));
    }
}

/// All loads and stores of a copy of more than 4 GiB would take a minute: the lanes of one group are
/// told that they are many, and move every so many blocks of it, from the first to the last.
#[test]
fn copies_and_fills_count_more_than_four_gibibytes() {
    const LANES: u64 = 1 << 24;
    for target in [Target::Gfx900, Target::Gfx942, Target::Gfx1100] {
        let device = Device::new(target);
        let bytes = 20 * LANES * 16 + 7;
        let (dst, src) = (device.memory(bytes), device.memory(bytes));
        let tail = bytes - 7;
        let moved = [0, 3 * LANES * 16, 16 * LANES * 16, 19 * LANES * 16, tail];
        for (offset, value) in moved.into_iter().zip(1u8..) {
            src.write(offset, &[value; 7]).unwrap();
        }
        let [to, from] = [&dst, &src].map(|buffer| Region::linear(buffer.addr()));
        let few = |launch: Launch| launch.with_lanes(u32::try_from(LANES).unwrap());
        device.run(shader::copy(Shape::new([to, from], Extent::linear(bytes)), 1).map(few));
        let found = |offset| {
            let mut found = [0; 7];
            dst.read(offset, &mut found).unwrap();
            found
        };
        for (offset, value) in moved.into_iter().zip(1u8..) {
            assert_eq!(found(offset), [value; 7], "at {offset:#x}");
        }
        let fill = shader::fill(Shape::new([to], Extent::linear(bytes)), 0x55_u8.into(), 1);
        device.run(fill.map(few));
        for offset in moved {
            assert_eq!(found(offset), [0x55; 7], "at {offset:#x}");
        }
    }
}
