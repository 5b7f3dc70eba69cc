//! What a wave starts with, target by target.

use std::sync::Arc;

use super::*;
use crate::exec::hwreg;
use crate::exec::init::Setup;
use crate::exec::launch::{Launch, Part, ScratchSetup};

/// Scratch of 0x4000 bytes a wave, 16 waves an XCC.
const SCRATCH_OF_QUEUE: ScratchSetup = ScratchSetup {
    base: 0x7000_0000,
    wave_bytes: 0x4000,
    waves: 16,
    xcc_bytes: 0x4_0000,
    resource: [0x7000_0000, 0x8000_0000, 0x4_0000, 0x00ea_4fac],
};

/// RSRC2: scratch, workgroup ids of all dimensions, `ids` more work-item ids than x.
const fn rsrc2(user_sgprs: u32, ids: u32) -> u32 {
    1 | user_sgprs << 1 | 7 << 7 | ids << 11
}

fn launch(target: Target, wave_size: u32, ids: u32, xccs: u32) -> Launch {
    Launch {
        target,
        memory: Arc::new(AddressSpace::new()),
        entry: CODE,
        rsrc1: 3,
        rsrc2: rsrc2(2, ids),
        rsrc3: 3,
        wave_size,
        user_sgprs: vec![0x11, 0x22],
        grid: [8, 6, 4],
        group: [4, 2, 2],
        lds_bytes: 0,
        private_bytes: 64,
        xccs,
        part: Part::default(),
        scratch: SCRATCH_OF_QUEUE,
        apertures: Machine::<64>::new(target).env.apertures,
        trap: None,
        trap_enabled: true,
        dispatch_index: 0,
        doorbell_id: 0,
        gws: None,
    }
}

/// The first wave of workgroup `number`, with scratch slot `slot`.
fn start<const N: usize>(launch: &Launch, number: u64, slot: u32) -> Wave<N> {
    let setup = Setup::new(launch);
    let mut wave = Wave::new();
    wave.v[1] = [77; N];
    wave.v[2] = [77; N];
    let place = setup.place(number);
    let size = setup.size(place);
    setup.start(&mut wave, place, size, 0, 1, setup.xcc(number), Some(slot));
    wave
}

/// Lane 13 of a 4x2x2 workgroup: x 1, y 1, z 1.
const LANE: usize = 13;

#[test]
fn ids_of_work_items_are_packed_from_gfx90a_on_and_in_registers_of_their_own_before() {
    for target in Target::ALL {
        for ids in 0..3 {
            let wave: Wave<64> = start(&launch(target, 64, ids, 1), 0, 0);
            let got = [wave.v[0][LANE], wave.v[1][LANE], wave.v[2][LANE]];
            // Debug builds poison what is not set.
            let unset = if cfg!(debug_assertions) { 0xdead_7ec0 } else { 77 };
            let want = match (target, ids) {
                (Target::Gfx900 | Target::Gfx906 | Target::Gfx908, 0) => [1, unset, unset],
                (Target::Gfx900 | Target::Gfx906 | Target::Gfx908, 1) => [1, 1, unset],
                (Target::Gfx900 | Target::Gfx906 | Target::Gfx908, _) => [1, 1, 1],
                (_, 0) => [1, unset, unset],
                (_, 1) => [1 | 1 << 10, unset, unset],
                (_, _) => [1 | 1 << 10 | 1 << 20, unset, unset],
            };
            assert_eq!(got, want, "{target}, {ids}");
        }
    }
}

#[test]
fn scalars_are_user_registers_then_workgroup_ids_then_the_scratch_offset_where_there_is_one() {
    for target in Target::ALL {
        // Workgroup (1, 2, 1) of 2x3x2.
        let wave: Wave<64> = start(&launch(target, 64, 2, 1), 11, 3);
        assert_eq!(wave.s[..5], [0x11, 0x22, 1, 2, 1], "{target}");
        if target.has_architected_flat_scratch() {
            assert_ne!(wave.s[5], 3 * 0x4000, "{target}");
            assert_eq!(wave.s64(sgpr::FLAT_SCRATCH), 0x7000_0000 + 3 * 0x4000, "{target}");
        } else {
            assert_eq!(wave.s[5], 3 * 0x4000, "{target}");
        }
    }
}

#[test]
fn xccs_take_workgroups_in_turn_and_each_has_scratch_of_its_own() {
    let launch = launch(Target::Gfx942, 64, 2, 8);
    let machine = Machine::<64>::new(Target::Gfx942);
    for number in 0..12 {
        let wave: Wave<64> = start(&launch, number, 5);
        let xcc = number % 8;
        let want = 0x7000_0000 + xcc * 0x4_0000 + 5 * 0x4000;
        assert_eq!(wave.s64(sgpr::FLAT_SCRATCH), want);
        let cx = Context {
            env: &machine.env,
            view: machine.space.view(),
            lds: Lds::default(),
            cache: &mut CodeCache::new(Target::Gfx942, 64),
            slot: 0,
            interrupts: Vec::new(),
            acquires: &machine.acquires,
            gws: None,
        };
        // hwreg(HW_REG_XCC_ID)
        assert_eq!(u64::from(hwreg::read(&wave, &cx, 20 | 31 << 11)), xcc);
    }
}

#[test]
fn a_partial_workgroup_has_as_many_waves_as_it_needs() {
    let mut launch = launch(Target::Gfx1151, 32, 0, 1);
    (launch.grid, launch.group) = ([1000, 1, 1], [256, 1, 1]);
    let setup = Setup::new(&launch);
    assert_eq!([0, 1, 2, 3].map(|number| setup.waves_of(number)), [8, 8, 8, 8]);
    launch.grid = [800, 1, 1];
    assert_eq!(Setup::new(&launch).waves_of(3), 1);
}

#[test]
fn vector_registers_come_in_granules_of_the_target_and_wave_size() {
    for target in Target::ALL {
        let granule = match target {
            Target::Gfx900 | Target::Gfx906 | Target::Gfx908 => 4,
            Target::Gfx90a | Target::Gfx942 => 8,
            _ => 4,
        };
        let wave: Wave<64> = start(&launch(target, 64, 0, 1), 0, 0);
        assert_eq!(wave.vgprs, 4 * granule, "{target}");
        let accum = if target.has_unified_vgprs() { 16 } else { 256 };
        assert_eq!(wave.accum_offset, accum, "{target}");
        if target.is_gfx11() {
            let wave: Wave<32> = start(&launch(target, 32, 0, 1), 0, 0);
            assert_eq!(wave.vgprs, 32, "{target}");
        }
    }
}
