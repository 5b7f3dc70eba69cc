//! Launches of the kernels in tests/fixtures/code-objects, read back from the packets as hardware
//! would and compared with the ABI's own description.
#![allow(clippy::indexing_slicing)] // what is not there fails the test

use std::collections::BTreeMap;

use pm4::dispatch::{Kernel, Launch, Options, Program, Properties, Scratch};
use pm4::{Encode, GpuAddr, IbBuilder, Packet, Packets, Target};
use proptest::prelude::*;
use serde_json::Value;

const ENTRY: GpuAddr = GpuAddr::new(0x7f00_0020_1000);
const KERNARG: u64 = 0x7f00_0030_0000;
const PACKET: u64 = 0x7f00_0040_0040;
const QUEUE: u64 = 0x7f00_0050_0000;
const SCRATCH: u64 = 0x7f00_1000_0000;
const RESOURCE: [u32; 4] = [0x1000_0000, 0x8000_7f00, 0x10_0000, 0x00ea_4fac];
const ID: u64 = 0x3_0000_0004;

/// The kernels of the fixtures for targets that PM4 launches: target, name, descriptor, private
/// bytes, LDS bytes.
fn kernels() -> Vec<(Target, String, Kernel, u32, u32)> {
    let facts = include_str!("../../tests/fixtures/code-objects/facts.jsonl");
    let mut all = Vec::new();
    for line in facts.lines() {
        let object: Value = serde_json::from_str(line).unwrap();
        let name = object["target"].as_str().unwrap_or_default();
        let processor = name.rsplit("--").next().unwrap_or_default();
        let processor = processor.split(':').next().unwrap_or_default();
        let Some(target) = Target::from_name(processor) else { continue };
        for kernel in object["kernels"].as_array().into_iter().flatten() {
            let hex = |key: &str| {
                let text = kernel[key].as_str().unwrap().trim_start_matches("0x");
                u32::from_str_radix(text, 16).unwrap()
            };
            let number = |key: &str| u32::try_from(kernel[key].as_u64().unwrap()).unwrap();
            let (properties, preload) = (hex("props"), hex("preload"));
            let words = Kernel {
                entry: ENTRY,
                rsrc1: hex("rsrc1"),
                rsrc2: hex("rsrc2"),
                rsrc3: hex("rsrc3"),
                properties: Properties::from_bits_retain(u16::try_from(properties).unwrap()),
                preload: (
                    u16::try_from(preload >> 7).unwrap(),
                    u16::try_from(preload & 0x7f).unwrap(),
                ),
            };
            let file = object["file"].as_str().unwrap();
            let name = format!("{file} {}", kernel["name"]);
            all.push((target, name, words, number("private"), number("group")));
        }
    }
    all
}

/// Registers and dispatch of a stream, as the command processor would have them.
struct Machine {
    registers: BTreeMap<u32, u32>,
    dims: [u32; 3],
    initiator: u32,
}

impl Machine {
    fn run(words: &[u32]) -> Self {
        let mut machine = Self { registers: BTreeMap::new(), dims: [0; 3], initiator: 0 };
        for packet in Packets::new(words) {
            match packet.unwrap() {
                Packet::SetReg(set) => {
                    machine.registers.extend((set.first().0..).zip(set.values().iter().copied()));
                }
                Packet::DispatchDirect(dispatch) => {
                    machine.dims = dispatch.dims();
                    machine.initiator = dispatch.initiator().bits();
                }
                other => panic!("{other}"),
            }
        }
        machine
    }

    fn reg(&self, offset: u32) -> u32 {
        *self.registers.get(&(0x2E00 + offset)).unwrap_or_else(|| panic!("{offset:#x} is not set"))
    }

    /// Work-items of the group at `place` along one axis, as the shader input distributes them.
    fn size(&self, axis: usize, place: u32) -> u32 {
        let word = self.reg(7 + u32::try_from(axis).unwrap());
        let last = place + 1 == *self.dims.get(axis).unwrap();
        if last && self.initiator & 2 != 0 { word >> 16 } else { word & 0xFFFF }
    }
}

fn launch(grid: [u32; 3], group: [u32; 3], preload: &[u32]) -> Launch<'_> {
    Launch {
        grid,
        group,
        lds_bytes: 0,
        private_bytes: 0,
        kernarg: GpuAddr::new(KERNARG),
        preload,
        packet: Some(GpuAddr::new(PACKET)),
        queue: Some(GpuAddr::new(QUEUE)),
        id: ID,
        scratch: Scratch::default(),
    }
}

fn run(program: &Program, launch: &Launch) -> Machine {
    let state = program.launch(launch).unwrap();
    let mut words = vec![0; state.dwords()];
    let mut ib = IbBuilder::new(&mut words[..]);
    ib.push(&state);
    ib.end().unwrap();
    Machine::run(&words)
}

/// The user SGPRs as LLVM's user guide lists them: (property bit, absolute scratch only, words).
fn described(target: Target, kernel: &Kernel, private: u32, preload: &[u32]) -> Vec<u32> {
    let halves = |value: u64| vec![(value & 0xFFFF_FFFF) as u32, (value >> 32) as u32];
    let table: [(u16, bool, Vec<u32>); 7] = [
        (0, true, RESOURCE.to_vec()),
        (1, false, halves(PACKET)),
        (2, false, halves(QUEUE)),
        (3, false, halves(KERNARG)),
        (4, false, halves(ID)),
        (5, true, halves(SCRATCH)),
        (6, false, vec![private.next_multiple_of(4)]),
    ];
    let absolute =
        matches!(target, Target::Gfx900 | Target::Gfx906 | Target::Gfx908 | Target::Gfx90a);
    let mut words: Vec<u32> = table
        .into_iter()
        .filter(|(bit, only, _)| kernel.properties.bits() >> bit & 1 != 0 && (absolute || !only))
        .flat_map(|(.., words)| words)
        .collect();
    if matches!(target, Target::Gfx90a | Target::Gfx942) {
        words.extend(&preload[..usize::from(kernel.preload.1)]);
    }
    words.resize((kernel.rsrc2 >> 1 & 31) as usize, 0);
    words
}

#[test]
fn every_fixture_kernel_gets_what_its_descriptor_asks_for() {
    let arguments: Vec<u32> = (0..16).map(|n| 0xa000_0000 | n).collect();
    let (mut targets, mut preloading, mut scratching, mut wave32) = (Vec::new(), 0, 0, 0);
    for (target, name, kernel, private, lds) in kernels() {
        let program = Program::new(target, &kernel, Options::default())
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        let scratch = kernel.rsrc2 & 1 != 0;
        let private = if scratch { private } else { 0 };
        let wave_bytes = private.next_multiple_of(4) * 64;
        let granule = if target == Target::Gfx11 { 256 } else { 1024 };
        let tmpring_size = wave_bytes.div_ceil(granule) << 12 | 32;
        let mut launch = launch([1000, 3, 1], [64, 2, 1], &arguments);
        launch.lds_bytes = lds + 100;
        launch.private_bytes = private;
        launch.scratch = Scratch { base: GpuAddr::new(SCRATCH), tmpring_size, resource: RESOURCE };
        let machine = run(&program, &launch);

        let sgprs = described(target, &kernel, private, &arguments);
        for (n, expected) in (0x40..).zip(&sgprs) {
            assert_eq!(machine.reg(n), *expected, "{name}: user SGPR {}", n - 0x40);
        }
        assert!(!machine.registers.contains_key(&(0x2E40 + u32::try_from(sgprs.len()).unwrap())));
        let preloads = target.has_kernarg_preload() && kernel.preload.1 > 0;
        let code = u64::from(machine.reg(0xD)) << 40 | u64::from(machine.reg(0xC)) << 8;
        assert_eq!(code, ENTRY.get() + if preloads { 256 } else { 0 }, "{name}");
        assert_eq!(machine.reg(0x12), kernel.rsrc1, "{name}: the driver's bits are clear");
        let lds_field = (lds + 100).div_ceil(512) << 15;
        assert_eq!(machine.reg(0x13), kernel.rsrc2 & !(0x1FF << 15) | lds_field, "{name}");
        match target {
            Target::Gfx90a | Target::Gfx942 => assert_eq!(machine.reg(0x2D), kernel.rsrc3),
            Target::Gfx11 => assert_eq!(machine.reg(0x28), kernel.rsrc3),
            _ => assert!(!machine.registers.contains_key(&0x2E2D)),
        }
        assert_eq!(machine.reg(0x18), tmpring_size);
        let base = machine.registers.get(&0x2E10).map(|lo| u64::from(*lo) << 8);
        let architected = matches!(target, Target::Gfx942 | Target::Gfx11);
        assert_eq!(base, architected.then_some(SCRATCH & 0xFF_FFFF_FFFF), "{name}");
        let wave32_bit = kernel.properties.contains(Properties::WAVEFRONT_SIZE32);
        assert_eq!(machine.initiator, 7 | if wave32_bit { 0x8000 } else { 0 }, "{name}");
        targets.push(target);
        preloading += u32::from(preloads);
        scratching += u32::from(private > 0);
        wave32 += u32::from(wave32_bit);
    }
    targets.sort();
    targets.dedup();
    assert!(targets.len() >= 4, "{targets:?}");
    assert!(preloading > 0 && scratching > 0 && wave32 > 0, "{preloading} {scratching} {wave32}");
}

proptest! {
    #[test]
    fn every_work_item_of_a_grid_is_launched_exactly_once(
        grid in prop::array::uniform3(1u32..40),
        group in prop::array::uniform3(1u32..11),
    ) {
        let kernel = Kernel {
            entry: ENTRY, rsrc1: 0, rsrc2: 0, rsrc3: 0,
            properties: Properties::empty(), preload: (0, 0),
        };
        let program = Program::new(Target::Gfx11, &kernel, Options::default()).unwrap();
        let machine = run(&program, &launch(grid, group, &[]));
        for axis in 0..3 {
            // A group of the grid has what is left of it, as the ABI cuts it.
            let mut items = 0;
            for place in 0..machine.dims[axis] {
                let expected = group[axis].min(grid[axis] - place * group[axis]);
                prop_assert_eq!(machine.size(axis, place), expected);
                items += expected;
            }
            prop_assert_eq!(items, grid[axis]);
        }
        let whole = (0..3).all(|axis| grid[axis] % group[axis] == 0);
        prop_assert_eq!(machine.initiator, if whole { 5 } else { 7 });
    }
}
