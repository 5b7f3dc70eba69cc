//! Compiled kernels launched by PM4, with the state that crate `pm4` makes of their descriptors.

use std::sync::atomic::Ordering::{Acquire, Relaxed};

use hsaco::CodeObject;
use hsaco::kernarg::{Geometry, HiddenValues};
use kfd::abi::{DestroyQueueArgs, QueueType, UpdateQueueArgs};
use kfd_probe::programs::{Arg, Case, Results, cases};
use pm4::dispatch::{Kernel, Launch, LaunchState, Options, Program, Properties, Scratch};
use pm4::packet::{Compare, EventWrite, IndirectBuffer, WaitOn, WaitRegMem, gfx9, gfx11};
use pm4::{GpuAddr, ReleaseMem, WriteData};

use super::client::GTT;
use super::ring::{Ring, Words, words};
use super::{Client, Page};
use crate::{Preset, Profile, Target};

const DONE: usize = 0x100;

fn ring(target: Target) -> Ring {
    Ring::on(Client::stepped(Preset::of(target), Profile::V6_12), QueueType::COMPUTE)
}

fn pm4_target(target: Target) -> pm4::Target {
    pm4::Target::from_name(target.name()).unwrap()
}

/// Everything invalidated, instructions too.
fn acquire(words: Words, target: Target) -> Words {
    if target.is_gfx9() {
        words.pm4(&gfx9::AcquireMem::new(gfx9::AcquireCache::ALL))
    } else {
        words.pm4(&gfx11::AcquireMem::new(gfx11::Gcr::ALL))
    }
}

fn release(target: Target, at: u64, value: u64) -> ReleaseMem {
    let packet = if target.is_gfx9() {
        ReleaseMem::gfx9(gfx9::ReleaseCache::TC_WB)
    } else {
        ReleaseMem::gfx11(gfx11::ReleaseCache::GL2_WB)
    };
    packet.write_64(GpuAddr::new(at), value).unwrap()
}

/// A case in the memory of a client, ready to be launched.
struct Loaded {
    state: LaunchState,
    object: CodeObject<'static>,
    code: Page,
    buffers: Vec<(Page, usize)>,
}

fn put(client: &Client, bytes: &[u8]) -> Page {
    let page = client.page(GTT, bytes.len().max(1).next_multiple_of(4096));
    for (i, part) in bytes.chunks(4).enumerate() {
        let mut word = [0; 4];
        word[..part.len()].copy_from_slice(part);
        page.u32(4 * i).store(u32::from_le_bytes(word), Relaxed);
    }
    page
}

fn get(page: &Page, bytes: usize) -> Vec<u8> {
    let words = (0..bytes.div_ceil(4)).map(|i| page.u32(4 * i).load(Acquire).to_le_bytes());
    let mut all: Vec<u8> = words.flatten().collect();
    all.truncate(bytes);
    all
}

impl Loaded {
    fn new(client: &Client, target: Target, case: &Case) -> Self {
        let object = CodeObject::parse(case.object).unwrap();
        let kernel = object.kernel(case.kernel).unwrap();
        let bytes = usize::try_from(object.load_bytes()).unwrap();
        let code = client.page(GTT, bytes.next_multiple_of(4096));
        let image = object.image(code.address()).unwrap();
        for (i, part) in image.bytes().chunks(4).enumerate() {
            let mut word = [0; 4];
            word[..part.len()].copy_from_slice(part);
            code.u32(4 * i).store(u32::from_le_bytes(word), Relaxed);
        }
        let dimensions = match case.grid {
            [_, 1, 1] => 1,
            [_, _, 1] => 2,
            _ => 3,
        };
        let geometry = Geometry::new(case.grid, case.group, dimensions).unwrap();
        let geometry = geometry.dynamic_lds_bytes(case.dynamic_lds_bytes);
        let mut builder = kernel.arguments().builder().unwrap();
        let mut buffers = Vec::new();
        for arg in &case.args {
            match arg {
                Arg::Value(bytes) => builder.push(bytes).unwrap(),
                Arg::Null => builder.push(&[0; 8]).unwrap(),
                Arg::Buffer(bytes) => {
                    let page = put(client, bytes);
                    buffers.push((page, bytes.len()));
                    builder.push(&page.address().to_le_bytes()).unwrap()
                }
            };
        }
        let hidden = HiddenValues { geometry, services: Default::default() };
        let arguments = builder.finish(&hidden).unwrap();
        let kernarg = put(client, &arguments);
        let facts = kernel.launch_facts();
        let private_bytes = if facts.uses_dynamic_stack { 4096 } else { facts.private_bytes };
        let descriptor = kernel.descriptor();
        let program = Program::new(
            pm4_target(target),
            &Kernel {
                entry: GpuAddr::new(image.address_of(kernel.entry_vaddr())),
                rsrc1: descriptor.rsrc1,
                rsrc2: descriptor.rsrc2,
                rsrc3: descriptor.rsrc3,
                properties: Properties::from_bits_retain(descriptor.properties.bits()),
                preload: (descriptor.preload.offset_dwords, descriptor.preload.dwords),
            },
            Options::default(),
        )
        .unwrap();
        let (first, count) = program.preload();
        let all: Vec<u32> =
            arguments.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
        let preload = &all[usize::from(first)..][..usize::from(count)];
        let packet = put(client, &packet(case, dimensions, kernarg.address(), private_bytes));
        let state = program
            .launch(&Launch {
                grid: case.grid,
                group: case.group,
                lds_bytes: facts.static_lds_bytes + case.dynamic_lds_bytes,
                private_bytes,
                kernarg: GpuAddr::new(kernarg.address()),
                preload,
                packet: Some(GpuAddr::new(packet.address())),
                queue: Some(GpuAddr::new(packet.address())),
                id: 1,
                scratch: scratch(client, target, facts.wave_size, private_bytes),
            })
            .unwrap();
        Self { state, object, code, buffers }
    }

    fn check(&self, case: &Case) -> Result<(), String> {
        let image = self.object.image(self.code.address()).unwrap();
        let variable = |name: &str| {
            let variable = self.object.variable(name)?;
            let at = image.address_of(variable.vaddr) - self.code.address();
            let bytes = get(&self.code, self.code.bytes);
            Some(
                bytes[usize::try_from(at).unwrap()..][..usize::try_from(variable.bytes).unwrap()]
                    .to_vec(),
            )
        };
        let buffers = self.buffers.iter().map(|(page, bytes)| get(page, *bytes)).collect();
        (case.check)(&Results { buffers, variable: &variable }).map_err(|wrong| wrong.to_string())
    }
}

/// Scratch for some waves: on gfx11 for as many per shader engine.
fn scratch(client: &Client, target: Target, wave_size: u32, private_bytes: u32) -> Scratch {
    if private_bytes == 0 {
        return Scratch::default();
    }
    let granule = if target.is_gfx9() { 1024 } else { 256 };
    let wave_bytes = (private_bytes * wave_size).next_multiple_of(granule);
    let engines = u32::try_from(client.model.gpus[0].engines).unwrap();
    let (waves, slots) = if target.is_gfx9() { (32, 32) } else { (8, 8 * engines) };
    let bytes = (wave_bytes * slots).next_multiple_of(4096);
    let base = client.page(GTT, bytes as usize).address();
    let high = u32::try_from(base >> 32).unwrap() | 1 << 31;
    Scratch {
        base: GpuAddr::new(base),
        tmpring_size: waves | (wave_bytes / granule) << 12,
        resource: [u32::try_from(base & 0xffff_ffff).unwrap(), high, bytes, 0x00ea_4fac],
    }
}

/// `hsa_kernel_dispatch_packet_t`, as far as kernels read it.
fn packet(case: &Case, dimensions: u16, kernarg: u64, private_bytes: u32) -> Vec<u8> {
    let mut bytes = vec![0; 64];
    for (d, (group, grid)) in case.group.iter().zip(case.grid).enumerate() {
        bytes[4 + 2 * d..6 + 2 * d].copy_from_slice(&u16::try_from(*group).unwrap().to_le_bytes());
        bytes[12 + 4 * d..16 + 4 * d].copy_from_slice(&grid.to_le_bytes());
    }
    bytes[2..4].copy_from_slice(&dimensions.to_le_bytes());
    bytes[24..28].copy_from_slice(&private_bytes.to_le_bytes());
    bytes[28..32].copy_from_slice(&case.dynamic_lds_bytes.to_le_bytes());
    bytes[40..48].copy_from_slice(&kernarg.to_le_bytes());
    bytes
}

/// Steps until the word at [`DONE`] has that value.
fn wait(ring: &Ring, value: u64) {
    for _ in 0..200_000 {
        if ring.u64(DONE) == value {
            return;
        }
        ring.client.model.step();
    }
    panic!("never done: {}", ring.said());
}

/// Runs the cases of some programs on a PM4 queue of a target.
fn programs(target: Target, names: &[&str]) {
    let mut failed = Vec::new();
    let mut ring = ring(target);
    for (count, case) in (1..).zip(
        cases(target.name())
            .iter()
            .filter(|case| names.contains(&case.name.split(' ').next().unwrap_or_default())),
    ) {
        let loaded = Loaded::new(&ring.client, target, case);
        let done = release(target, ring.address(DONE), count);
        ring.submit(&acquire(words(), target).pm4(&loaded.state).pm4(&done));
        wait(&ring, count);
        if let Err(wrong) = loaded.check(case) {
            failed.push(format!("{}: {wrong}", case.name));
        }
    }
    assert!(ring.u64(DONE) > 0, "no case");
    assert!(failed.is_empty(), "{target}: {failed:#?}");
    assert_eq!(ring.said(), "");
}

const PROGRAMS: &[&str] = &["vadd", "dims", "abi_args", "dynlds", "atomics", "stack", "bigvgpr"];

#[test]
fn programs_run_on_the_pm4_queues_of_gfx9() {
    for target in Target::ALL.into_iter().filter(|target| target.is_gfx9()) {
        programs(target, PROGRAMS);
    }
}

#[test]
fn programs_run_on_the_pm4_queues_of_gfx11() {
    for target in Target::ALL.into_iter().filter(|target| target.is_gfx11()) {
        programs(target, PROGRAMS);
    }
}

fn vadd(target: Target) -> Case {
    let all = cases(target.name());
    all.into_iter().find(|case| case.name.starts_with("vadd")).unwrap()
}

#[test]
fn a_flush_waits_for_dispatches_and_a_write_does_not() {
    let target = Target::Gfx90a;
    let mut ring = ring(target);
    let case = vadd(target);
    let loaded = Loaded::new(&ring.client, target, &case);
    let store = |at: usize| WriteData::new(GpuAddr::new(ring.address(at)), 1).unwrap();
    let (early, late) = (store(0), store(8));
    let packets = words()
        .pm4(&loaded.state)
        .pm4(&early)
        .pm4(&EventWrite::CS_PARTIAL_FLUSH)
        .pm4(&late)
        .pm4(&release(target, ring.address(DONE), 1));
    ring.push(&packets);
    // One turn of the queue, none of the waves.
    let queue = ring.client.model.lock().processes[&std::process::id()].runner.clone();
    ring.ring_doorbell(ring.next);
    queue.help();
    assert_eq!((ring.u32(0), ring.u32(8)), (1, 0));
    wait(&ring, 1);
    assert_eq!(ring.u32(8), 1);
    loaded.check(&case).unwrap();
}

#[test]
fn a_release_comes_after_the_dispatches_before_it_and_holds_nothing_up() {
    let target = Target::Gfx1100;
    let mut ring = ring(target);
    let loaded = Loaded::new(&ring.client, target, &vadd(target));
    let after = WriteData::new(GpuAddr::new(ring.address(0)), 1).unwrap();
    let done = release(target, ring.address(DONE), 1);
    ring.push(&words().pm4(&loaded.state).pm4(&done).pm4(&after));
    let queue = ring.client.model.lock().processes[&std::process::id()].runner.clone();
    ring.ring_doorbell(ring.next);
    queue.help();
    // The kernel has not run, and the read pointer is past all of it.
    assert_eq!((ring.u32(0), ring.u64(DONE)), (1, 0));
    assert!(ring.is_drained());
    wait(&ring, 1);
}

#[test]
fn groups_start_where_the_registers_say_and_work_items_can_be_counted() {
    use pm4::packet::{DispatchDirect, SetReg};
    use pm4::reg::DispatchInitiator as Initiator;
    use pm4::reg::gfx9::COMPUTE_START_X;
    let target = Target::Gfx1100;
    let all = cases(target.name());
    let uneven = |case: &&Case| {
        let [items, group] = [case.grid[0], case.group[0]];
        case.name.starts_with("vadd") && items > 2 * group && !items.is_multiple_of(group)
    };
    let case = all.iter().find(uneven).unwrap();
    let (items, groups) = (case.grid[0], case.grid[0].div_ceil(case.group[0]));
    let wave = Initiator::COMPUTE_SHADER_EN | Initiator::CS_W32_EN;
    // Ends, not counts; the last group before the end is the partial one.
    let in_groups = [(0, 1, wave), (1, groups, wave | Initiator::PARTIAL_TG_EN)];
    let in_items = [(0, items, wave | Initiator::USE_THREAD_DIMENSIONS)];
    for parts in [in_groups.as_slice(), &in_items] {
        let mut ring = ring(target);
        let loaded = Loaded::new(&ring.client, target, case);
        let mut packets = words();
        loaded.state.registers(|first, values| {
            packets = std::mem::take(&mut packets).pm4(&SetReg::sh(first, values).unwrap());
        });
        for &(start, end, initiator) in parts {
            packets = packets
                .pm4(&SetReg::sh(COMPUTE_START_X, &[start]).unwrap())
                .pm4(&DispatchDirect::new([end, 1, 1], initiator));
        }
        ring.submit(&packets.pm4(&release(target, ring.address(DONE), 1)));
        wait(&ring, 1);
        loaded.check(case).unwrap();
        assert_eq!(ring.said(), "");
    }
}

#[test]
fn stale_instructions_run_until_an_acquire_invalidates_them() {
    let target = Target::Gfx90a;
    let mut ring = ring(target);
    let case = vadd(target);
    let loaded = Loaded::new(&ring.client, target, &case);
    let whole = release(target, ring.address(DONE), 1);
    ring.submit(&acquire(words(), target).pm4(&loaded.state).pm4(&whole));
    wait(&ring, 1);
    // The kernel becomes one that ends at once.
    let kernel = loaded.object.kernel(case.kernel).unwrap();
    let entry = usize::try_from(kernel.entry_vaddr()).unwrap();
    loaded.code.u32(entry).store(0xbf81_0000, Relaxed);
    let (page, bytes) = loaded.buffers.last().copied().unwrap();
    let clear = |value| (0..bytes / 4).for_each(|i| page.u32(4 * i).store(value, Relaxed));
    // What the test's buffer held at first.
    let untouched = (-1.0_f32).to_bits();
    clear(untouched);
    ring.submit(&words().pm4(&loaded.state).pm4(&release(target, ring.address(DONE), 2)));
    wait(&ring, 2);
    loaded.check(&case).unwrap();
    clear(untouched);
    let last = release(target, ring.address(DONE), 3);
    ring.submit(&acquire(words(), target).pm4(&loaded.state).pm4(&last));
    wait(&ring, 3);
    assert!((0..bytes / 4).all(|i| page.u32(4 * i).load(Acquire) == untouched));
}

#[test]
fn a_queue_that_is_destroyed_in_a_wait_writes_nothing_afterwards() {
    let target = Target::Gfx90a;
    let mut ring = ring(target);
    let case = vadd(target);
    let loaded = Loaded::new(&ring.client, target, &case);
    // A kernel without end.
    let entry = loaded.object.kernel(case.kernel).unwrap().entry_vaddr();
    loaded.code.u32(usize::try_from(entry).unwrap()).store(0xbf82_ffff, Relaxed);
    let at = GpuAddr::new(ring.address(0));
    let wait = WaitRegMem::new(WaitOn::Memory(at), Compare::EQUAL, 1).unwrap();
    let buffer = words().pm4(&wait).pm4(&WriteData::new(at, 7).unwrap());
    let base = ring.buffer(0x1000, &buffer);
    let call = IndirectBuffer::new(GpuAddr::new(base), 12).unwrap();
    let done = release(target, ring.address(DONE), 1);
    ring.submit(&words().pm4(&loaded.state).pm4(&done).pm4(&call));
    let queue = ring.client.model.lock().processes[&std::process::id()].runner.clone();
    queue.help();
    let queue_id = ring.args.queue_id;
    ring.client.call(0x03, &mut DestroyQueueArgs { queue_id, pad: 0 }).unwrap();
    ring.set(0, 1);
    ring.settle();
    assert_eq!((ring.u32(0), ring.u64(DONE)), (1, 0));
    // The doorbell's next owner starts clean.
    let mut next = ring.sibling(|args| args.queue_type = QueueType::COMPUTE);
    assert_eq!(next.args.doorbell_offset, ring.args.doorbell_offset);
    next.run(&words().pm4(&WriteData::new(at, 9).unwrap()));
    assert_eq!(ring.u32(0), 9);
}

#[test]
fn a_queue_without_percentage_stands_still_and_goes_on_from_its_place() {
    let target = Target::Gfx1100;
    let mut ring = ring(target);
    let case = vadd(target);
    let loaded = Loaded::new(&ring.client, target, &case);
    let done = release(target, ring.address(DONE), 1);
    let update = |ring: &Ring, percentage| {
        let mut args = UpdateQueueArgs {
            queue_id: ring.args.queue_id,
            ring_base_address: ring.args.ring_base_address,
            ring_size: ring.args.ring_size,
            queue_percentage: percentage,
            queue_priority: 7,
        };
        ring.client.call(0x07, &mut args).unwrap();
    };
    let at = GpuAddr::new(ring.address(0));
    let hold = WaitRegMem::new(WaitOn::Memory(at), Compare::EQUAL, 1).unwrap();
    ring.run(&words().pm4(&hold).pm4(&loaded.state).pm4(&done));
    update(&ring, 0);
    ring.set(0, 1);
    ring.settle();
    assert_eq!((ring.u64(DONE), ring.read()), (0, 0));
    // What is rung meanwhile counts from memory, with or without the doorbell.
    let second = release(target, ring.address(DONE + 8), 2);
    ring.push(&words().pm4(&second));
    update(&ring, 100);
    wait(&ring, 1);
    ring.settle();
    assert_eq!(ring.u64(DONE + 8), 2);
    loaded.check(&case).unwrap();
}
