extern crate std;
use std::vec::Vec;

use super::*;
use crate::Encode;

const KERNARG: GpuAddr = GpuAddr::new(0x7f00_0030_0000);
const PACKET: GpuAddr = GpuAddr::new(0x7f00_0040_0040);
const QUEUE: GpuAddr = GpuAddr::new(0x7f00_0050_0000);

fn kernel(user_sgprs: u32, properties: Properties) -> Kernel {
    Kernel {
        entry: GpuAddr::new(0x7f00_0020_1000),
        rsrc1: 0x00ac_0083,
        rsrc2: 0x80 | user_sgprs << 1,
        rsrc3: 7,
        properties,
        preload: (0, 0),
    }
}

fn launch() -> Launch<'static> {
    Launch {
        grid: [4096 * 256, 1, 1],
        group: [256, 1, 1],
        lds_bytes: 0,
        private_bytes: 0,
        kernarg: KERNARG,
        preload: &[],
        packet: Some(PACKET),
        queue: Some(QUEUE),
        id: 0x1_0000_0002,
        scratch: Scratch::default(),
    }
}

fn words(state: &LaunchState) -> Vec<u32> {
    let mut all = Vec::new();
    state.emit(|part| all.extend_from_slice(part));
    assert_eq!(all.len(), state.dwords());
    all
}

fn register(state: &LaunchState, reg: crate::reg::Reg) -> Option<u32> {
    let mut found = None;
    state.registers(|first, values| {
        for (at, value) in (first.0..).zip(values) {
            if at == reg.0 {
                found = Some(*value);
            }
        }
    });
    found
}

#[test]
fn launches_match_the_worked_examples() {
    // docs/ABI.md §PM4 worked examples, E6: registers and dispatch.
    let kernarg = Properties::KERNARG_SEGMENT_PTR;
    let program = Program::new(Target::Gfx90a, &kernel(2, kernarg), Options::default()).unwrap();
    let state = program.launch(&launch()).unwrap();
    #[rustfmt::skip]
    let expected = [
        0xc002_7600, 0x20c, 0x2010, 0x7f,
        0xc002_7600, 0x212, 0x00ac_0083, 0x84,
        0xc001_7600, 0x22d, 7,
        0xc001_7600, 0x218, 0,
        0xc003_7600, 0x21b, 0, 0, 0,
        0xc001_7600, 0x215, 0,
        0xc008_7600, 0x204, 0, 0, 0, 0x100, 1, 1, 0, 0,
        0xc002_7600, 0x240, 0x0030_0000, 0x7f00,
        0xc003_1502, 0x1000, 1, 1, 5,
    ];
    assert_eq!(words(&state), expected);
    // E7: two more pairs of registers, RSRC3 elsewhere, waves of 32.
    let mut gfx11 = kernel(2, kernarg | Properties::WAVEFRONT_SIZE32);
    (gfx11.rsrc1, gfx11.rsrc3) = (0x60ac_0001, 0);
    let program = Program::new(Target::Gfx11, &gfx11, Options::default()).unwrap();
    let words = words(&program.launch(&launch()).unwrap());
    assert_eq!(words[..8], [0xc006_7600, 0x20c, 0x2010, 0x7f, 0, 0, 0, 0]);
    assert_eq!(words[8..15], [0xc002_7600, 0x212, 0x60ac_0001, 0x84, 0xc001_7600, 0x228, 0]);
    assert_eq!(words.last(), Some(&0x8005));
    assert_eq!(words.len() + 8 + 2 + 8, 63);
}

#[test]
fn user_sgprs_come_in_the_order_of_the_abi() {
    let all = Properties::all() - Properties::WAVEFRONT_SIZE32 - Properties::PRIVATE_SEGMENT_BUFFER;
    let scratch = Scratch {
        base: GpuAddr::new(0x7f00_1000_0000),
        tmpring_size: 17 << 12 | 64,
        resource: [11, 12, 13, 14],
    };
    let launch = Launch { scratch, private_bytes: 270, ..launch() };
    let mut enabled = kernel(13, all);
    enabled.rsrc2 |= 1;
    let program = Program::new(Target::Gfx908, &enabled, Options::default()).unwrap();
    let state = program.launch(&launch).unwrap();
    let expected = [
        0x0040_0040,
        0x7f00,
        0x0050_0000,
        0x7f00,
        0x0030_0000,
        0x7f00,
        2,
        1,
        0x1000_0000,
        0x7f00,
        272,
        0,
        0,
    ];
    assert_eq!(state.user_data(), expected);
    assert_eq!(register(&state, crate::reg::gfx9::COMPUTE_TMPRING_SIZE), Some(17 << 12 | 64));
    // With architected scratch there is no flat_scratch_init, and the base is a register.
    let program = Program::new(Target::Gfx942, &enabled, Options::default()).unwrap();
    let state = program.launch(&launch).unwrap();
    assert_eq!(state.user_data()[8..], [272, 0, 0, 0, 0]);
    let base = register(&state, crate::reg::gfx9::COMPUTE_DISPATCH_SCRATCH_BASE_LO);
    assert_eq!(base, Some(0x0010_0000));
    // The descriptor comes first, where there is one.
    let mut buffer = kernel(6, Properties::PRIVATE_SEGMENT_BUFFER | Properties::DISPATCH_PTR);
    buffer.rsrc2 |= 1;
    let program = Program::new(Target::Gfx900, &buffer, Options::default()).unwrap();
    let state = program.launch(&launch).unwrap();
    assert_eq!(state.user_data(), [11, 12, 13, 14, 0x0040_0040, 0x7f00]);
    let program = Program::new(Target::Gfx11, &buffer, Options::default()).unwrap();
    let granules = Scratch { tmpring_size: 68 << 12 | 64, ..scratch };
    let state = program.launch(&Launch { scratch: granules, ..launch }).unwrap();
    assert_eq!(state.user_data()[..2], [0x0040_0040, 0x7f00]);
}

#[test]
fn preloaded_arguments_follow_the_others_and_move_the_entry() {
    let size = Properties::KERNARG_SEGMENT_PTR | Properties::PRIVATE_SEGMENT_SIZE;
    let preloading = Kernel { preload: (2, 3), ..kernel(6, size) };
    let program = Program::new(Target::Gfx942, &preloading, Options::default()).unwrap();
    assert_eq!((program.code().get(), program.preload()), (0x7f00_0020_1100, (2, 3)));
    let state = program.launch(&Launch { preload: &[7, 8, 9, 10], ..launch() }).unwrap();
    assert_eq!(state.user_data(), [0x0030_0000, 0x7f00, 0, 7, 8, 9]);
    assert_eq!(program.launch(&launch()), Err(Error::Preload { needed: 3, found: 0 }));
    // Elsewhere, or when not wanted, the kernel loads its arguments itself.
    for (target, no_preload) in [(Target::Gfx942, true), (Target::Gfx908, false)] {
        let options = Options { no_preload, ..Options::default() };
        let program = Program::new(target, &preloading, options).unwrap();
        assert_eq!(program.code(), preloading.entry);
        let state = program.launch(&launch()).unwrap();
        assert_eq!(state.user_data(), [0x0030_0000, 0x7f00, 0, 0, 0, 0]);
    }
}

#[test]
fn preloaded_arguments_start_behind_what_the_descriptor_asks_for() {
    let size = Properties::KERNARG_SEGMENT_PTR | Properties::PRIVATE_SEGMENT_SIZE;
    let preloading = Kernel { preload: (0, 2), ..kernel(6, size) };
    let program = Program::new(Target::Gfx90a, &preloading, Options::default()).unwrap();
    let state = program.launch(&Launch { preload: &[7, 8], ..launch() }).unwrap();
    let first = program.preload_sgpr() as usize;
    assert_eq!(state.user_data()[first..first + 2], [7, 8]);
}

#[test]
fn a_launch_that_keeps_scratch_differs_in_nothing_else() {
    use crate::Encode;
    use crate::reg::gfx9::{COMPUTE_DISPATCH_SCRATCH_BASE_LO, COMPUTE_TMPRING_SIZE};
    for target in [Target::Gfx90a, Target::Gfx942, Target::Gfx11] {
        let kernel = kernel(2, Properties::KERNARG_SEGMENT_PTR);
        let program = Program::new(target, &kernel, Options::default()).unwrap();
        let state = program.launch(&launch()).unwrap();
        let keeping = state.keeping_scratch();
        let scratch = [COMPUTE_TMPRING_SIZE, COMPUTE_DISPATCH_SCRATCH_BASE_LO];
        assert!(scratch.iter().all(|reg| register(&keeping, *reg).is_none()), "{target:?}");
        state.registers(|first, values| {
            for (n, value) in (0..).zip(values) {
                let reg = first.plus(n);
                let kept = register(&keeping, reg);
                assert!(kept == Some(*value) || kept.is_none(), "{target:?} {reg}");
            }
        });
        // SET_SH_REG of one register is three dwords; four fewer where the base is one.
        let fewer = if target.has_architected_scratch() { 3 + 4 } else { 3 };
        assert_eq!(keeping.dwords() + fewer, state.dwords());
    }
}

#[test]
fn lds_is_counted_in_512_bytes_and_replaces_the_descriptors() {
    let program = Program::new(
        Target::Gfx90a,
        &Kernel { rsrc2: 0x84 | 5 << 15, ..kernel(2, Properties::KERNARG_SEGMENT_PTR) },
        Options { trap_handler: true, ..Options::default() },
    )
    .unwrap();
    for (bytes, granules) in [(0, 0), (1, 1), (512, 1), (513, 2), (65536, 128)] {
        let state = program.launch(&Launch { lds_bytes: bytes, ..launch() }).unwrap();
        let rsrc2 = register(&state, crate::reg::gfx9::COMPUTE_PGM_RSRC2);
        assert_eq!(rsrc2, Some(0x84 | 1 << 6 | granules << 15));
    }
    let error = program.launch(&Launch { lds_bytes: 65537, ..launch() });
    assert_eq!(error, Err(Error::Lds { bytes: 65537, max: 65536 }));
}

#[test]
fn options_and_the_drivers_bits_replace_the_descriptors() {
    let noisy = Kernel {
        rsrc1: 0x00ac_0083 | 3 << 10 | 1 << 20 | 1 << 22 | 3 << 24,
        ..kernel(0, Properties::empty())
    };
    let rsrc1 = |options| {
        let program = Program::new(Target::Gfx90a, &noisy, options).unwrap();
        register(&program.launch(&launch()).unwrap(), crate::reg::gfx9::COMPUTE_PGM_RSRC1)
    };
    assert_eq!(rsrc1(Options::default()), Some(0x00ac_0083));
    let privileged = Options { privileged: true, ..Options::default() };
    assert_eq!(rsrc1(privileged), Some(0x00ac_0083 | 1 << 20));
    let program = Program::new(Target::Gfx90a, &noisy, Options::default()).unwrap();
    let state = program.launch(&launch()).unwrap();
    assert_eq!(register(&state, crate::reg::gfx9::COMPUTE_USER_DATA_0), None);
}

#[test]
fn what_a_target_cannot_run_is_refused() {
    let new = |target, kernel: &Kernel| Program::new(target, kernel, Options::default());
    let plain = kernel(2, Properties::KERNARG_SEGMENT_PTR);
    let entry = GpuAddr::new(0x7f00_0020_1080);
    let error = new(Target::Gfx90a, &Kernel { entry, ..plain });
    assert_eq!(error, Err(Error::Entry { entry }));
    let wave32 = kernel(2, Properties::WAVEFRONT_SIZE32);
    let target = Target::Gfx942;
    assert_eq!(new(target, &wave32), Err(Error::Wave32 { target }));
    let error = new(target, &kernel(1, Properties::KERNARG_SEGMENT_PTR));
    assert_eq!(error, Err(Error::UserSgprs { needed: 2, counted: 1, max: 16 }));
    assert!(matches!(new(target, &kernel(17, Properties::empty())), Err(Error::UserSgprs { .. })));
    let many = Kernel { rsrc1: 63, ..plain };
    assert!(new(Target::Gfx90a, &many).is_ok());
    assert!(new(Target::Gfx908, &many).is_ok());
    let wide = Kernel { properties: Properties::WAVEFRONT_SIZE32, ..many };
    assert_eq!(new(Target::Gfx11, &wide), Err(Error::Vgprs { vgprs: 512, max: 256 }));
}

#[test]
fn bad_launches_are_refused_with_their_numbers() {
    let mut wanting = kernel(6, Properties::DISPATCH_PTR | Properties::QUEUE_PTR);
    wanting.rsrc2 |= 1;
    let program = Program::new(Target::Gfx90a, &wanting, Options::default()).unwrap();
    let refuse = |launch: Launch| program.launch(&launch).unwrap_err();
    let error = refuse(Launch { grid: [1, 0, 1], ..launch() });
    assert_eq!(error, Error::Empty { axis: Axis::Y });
    assert_eq!(refuse(Launch { group: [1, 1, 0], ..launch() }), Error::Empty { axis: Axis::Z });
    let group = [32, 32, 2];
    assert_eq!(refuse(Launch { group, ..launch() }), Error::Group { items: 2048, max: 1024 });
    let group = [u32::MAX; 3];
    assert!(matches!(refuse(Launch { group, ..launch() }), Error::Group { items: u64::MAX, .. }));
    let error = refuse(Launch { packet: None, ..launch() });
    assert_eq!(error, Error::Missing { what: "dispatch packet" });
    let error = refuse(Launch { queue: None, ..launch() });
    assert_eq!(error, Error::Missing { what: "queue descriptor" });
    let scratch = Scratch { tmpring_size: 4 << 12 | 8, ..Scratch::default() };
    let error = refuse(Launch { private_bytes: 65, scratch, ..launch() });
    assert_eq!(error, Error::Scratch { needed: 68 * 64, found: 4096 });
    assert!(program.launch(&Launch { private_bytes: 64, scratch, ..launch() }).is_ok());
    let base = GpuAddr::new(0x1010);
    let error = refuse(Launch { scratch: Scratch { base, ..scratch }, ..launch() });
    assert_eq!(error, Error::ScratchBase { base });
    let without = kernel(2, Properties::KERNARG_SEGMENT_PTR);
    let program = Program::new(Target::Gfx90a, &without, Options::default()).unwrap();
    let error = program.launch(&Launch { private_bytes: 4, scratch, ..launch() });
    assert_eq!(error, Err(Error::ScratchDisabled { bytes: 4 }));
}

#[test]
fn a_template_gives_the_words_of_the_launch_state() {
    let sets = [
        Properties::KERNARG_SEGMENT_PTR,
        Properties::empty(),
        Properties::PRIVATE_SEGMENT_BUFFER | Properties::KERNARG_SEGMENT_PTR,
        Properties::all(),
    ];
    let scratch = Scratch {
        base: GpuAddr::new(0x7f00_1234_5600),
        tmpring_size: 0x0001_1d00,
        resource: [1, 2, 3, 4],
    };
    let mut compared = 0;
    for target in Target::ALL {
        for properties in sets {
            let kernel = kernel(16, properties & Properties::from_bits_retain(0x29));
            let program = Program::new(target, &kernel, Options::default()).unwrap();
            let template = Template::new(&program).unwrap();
            let mut words = Words::new();
            for (grid, group) in
                [([4096, 1, 1], [256, 1, 1]), ([100, 50, 3], [16, 8, 2]), ([1, 1, 1], [1, 1, 1])]
            {
                let kernarg = GpuAddr::new(0x7f00_0030_0000);
                let launch = Launch { grid, group, lds_bytes: 4096, kernarg, scratch, ..launch() };
                let state = program.launch(&launch).unwrap();
                template.start(&mut words, &[7, 8], &scratch, &[9]).unwrap();
                template.size(&mut words, grid, group, 4096).unwrap();
                template.arguments(&mut words, kernarg);
                let mut found = std::vec::Vec::new();
                words.emit(|piece| found.extend_from_slice(piece));
                let mut expected = std::vec![7, 8];
                expected.extend(self::words(&state));
                expected.push(9);
                assert_eq!(found, expected, "{target} {properties:?} {grid:?}");
                assert_eq!(found.len(), template.dwords() + 3);
                compared += 1;
            }
            assert!(template.size(&mut words, [0, 1, 1], [1; 3], 0).is_err());
        }
    }
    assert_eq!(compared, 6 * 4 * 3);
}

#[test]
fn a_kernel_with_other_user_registers_has_no_template() {
    for other in [Properties::DISPATCH_PTR, Properties::QUEUE_PTR, Properties::DISPATCH_ID] {
        let kernel = kernel(8, other | Properties::KERNARG_SEGMENT_PTR);
        let program = Program::new(Target::Gfx11, &kernel, Options::default()).unwrap();
        assert_eq!(Template::new(&program), None);
    }
}
