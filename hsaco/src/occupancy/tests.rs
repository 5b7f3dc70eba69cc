use super::*;

fn kernel(wave_size: u32, vgprs: u32, sgprs: u32, lds_bytes: u32) -> Resources {
    Resources { wave_size, vgprs, sgprs, lds_bytes, is_wgp_mode: true }
}

fn found(name: &str, resources: &Resources, group: u32) -> (u32, u32, Limiter) {
    let processor = Processor::from_name(name).unwrap();
    let occupancy = occupancy(processor, resources, group).unwrap();
    (occupancy.groups_per_unit, occupancy.waves_per_simd, occupancy.limiter)
}

/// Worked out by hand from docs/ABI.md §Occupancy. A row: target, wave size, VGPRs, SGPRs, LDS,
/// workgroup; then workgroups of a unit, waves of a SIMD, limiter.
#[test]
fn each_resource_limits_as_worked_out_by_hand() {
    use Limiter::{Barriers, Lds, Sgprs, Vgprs, Waves};
    type Row = (&'static str, [u32; 5], (u32, u32, Limiter));
    let rows: &[Row] = &[
        // 4 SIMDs of 10 waves, 256 VGPRs by 4, 800 SGPRs by 16 and 16 more for the trap handler.
        ("gfx900", [64, 24, 16, 0, 256], (10, 10, Waves)),
        ("gfx900", [64, 28, 16, 0, 256], (9, 9, Vgprs)),
        ("gfx900", [64, 256, 16, 0, 256], (1, 1, Vgprs)),
        ("gfx900", [64, 24, 80, 0, 256], (8, 8, Sgprs)), // 800 / 96
        ("gfx906", [64, 84, 16, 0, 64], (12, 3, Vgprs)),
        ("gfx908", [64, 128, 16, 0, 256], (2, 2, Vgprs)),
        // 8 waves, 512 VGPRs by 8.
        ("gfx90a", [64, 64, 16, 0, 256], (8, 8, Waves)),
        ("gfx90a", [64, 72, 16, 0, 256], (7, 7, Vgprs)),
        ("gfx90a", [64, 512, 16, 0, 1024], (0, 0, Vgprs)), // 16 waves, room for 4
        ("gfx90a", [64, 128, 16, 0, 1024], (1, 4, Vgprs)),
        // 106 SGPRs are given as 112; with the trap handler's 16, 800 / 128 = 6, not 7.
        ("gfx942", [64, 64, 112, 0, 256], (6, 6, Sgprs)),
        ("gfx942", [64, 64, 96, 0, 256], (7, 7, Sgprs)), // 800 / 112
        // LDS: 64 KiB by 512 bytes.
        ("gfx90a", [64, 8, 16, 16384, 256], (4, 4, Lds)),
        ("gfx90a", [64, 8, 16, 16385, 256], (3, 3, Lds)),
        ("gfx90a", [64, 8, 16, 65536, 256], (1, 1, Lds)),
        ("gfx90a", [64, 8, 16, 65537, 256], (0, 0, Lds)),
        // 160 KiB by 1280 bytes.
        ("gfx950", [64, 8, 16, 81920, 256], (2, 2, Lds)),
        ("gfx950", [64, 8, 16, 1, 64], (32, 8, Waves)),
        ("gfx950", [64, 8, 16, 81921, 256], (1, 1, Lds)),
        // 16 workgroups of two waves would fit twice over.
        ("gfx900", [64, 8, 16, 0, 128], (16, 8, Barriers)),
        ("gfx900", [64, 8, 16, 0, 64], (40, 10, Waves)),
        // A pair of units: 4 SIMDs of 16 waves, 1536 VGPRs by 24 (wave32), 768 by 12 (wave64).
        ("gfx1100", [32, 96, 128, 0, 256], (8, 16, Waves)),
        ("gfx1100", [32, 104, 128, 0, 256], (6, 12, Vgprs)), // 120 each, 12 waves
        ("gfx1100", [64, 48, 128, 0, 256], (16, 16, Waves)),
        ("gfx1100", [64, 256, 128, 0, 256], (2, 2, Vgprs)), // 264 each
        ("gfx1102", [32, 96, 128, 0, 256], (5, 10, Vgprs)), // 1024 by 16
        ("gfx1151", [32, 256, 128, 0, 32], (20, 5, Vgprs)), // 264 each
        ("gfx1030", [32, 64, 128, 0, 256], (8, 16, Waves)),
        ("gfx1030", [32, 72, 128, 0, 256], (6, 12, Vgprs)), // 80 each
        // 20 waves by 8 registers.
        ("gfx1010", [32, 48, 128, 0, 64], (32, 16, Barriers)),
        ("gfx1010", [32, 56, 128, 0, 256], (9, 18, Vgprs)),
        // LDS by 1 KiB, two units' worth for all groups, one unit's for each.
        ("gfx1100", [32, 8, 128, 32768, 256], (4, 8, Lds)),
        ("gfx1100", [32, 8, 128, 32769, 256], (3, 6, Lds)),
        ("gfx1100", [32, 8, 128, 65536, 1024], (2, 16, Waves)),
        ("gfx1100", [32, 8, 128, 65537, 256], (0, 0, Lds)),
        ("gfx1201", [32, 192, 128, 0, 256], (4, 8, Vgprs)),
    ];
    for &(name, [wave_size, vgprs, sgprs, lds, group], expected) in rows {
        let resources = kernel(wave_size, vgprs, sgprs, lds);
        assert_eq!(found(name, &resources, group), expected, "{name} {resources:?} {group}");
    }
}

#[test]
fn compute_unit_mode_counts_one_unit() {
    let resources = Resources { is_wgp_mode: false, ..kernel(32, 96, 128, 0) };
    let processor = Processor::from_name("gfx1100").unwrap();
    let one = occupancy(processor, &resources, 256).unwrap();
    assert_eq!((one.groups_per_unit, one.cus_per_unit, one.waves_per_simd), (4, 1, 16));
    let pair = occupancy(processor, &kernel(32, 96, 128, 0), 256).unwrap();
    assert_eq!((pair.groups_per_unit, pair.cus_per_unit, pair.waves_per_simd), (8, 2, 16));
}

#[test]
fn a_workgroup_that_no_unit_takes_has_none() {
    let resources = kernel(64, 8, 16, 0);
    for group in [0, 1025, u32::MAX] {
        assert_eq!(found("gfx90a", &resources, group), (0, 0, Limiter::GroupSize));
    }
    let resources = kernel(64, u32::MAX, u32::MAX, u32::MAX);
    assert_eq!(found("gfx90a", &resources, 64), (0, 0, Limiter::Vgprs));
}

#[test]
fn unknown_and_generic_processors_have_no_limits() {
    for name in ["gfx9-generic", "gfx11-generic", "gfx1170", "gfx1250"] {
        assert_eq!(UnitLimits::of(Processor::from_name(name).unwrap(), 32), None, "{name}");
    }
}

/// More of any resource never gives more occupancy.
#[test]
fn occupancy_never_grows_with_need() {
    for processor in Processor::all() {
        for wave_size in [32, 64] {
            let groups = |vgprs, lds, group| {
                let resources = kernel(wave_size, vgprs, 16, lds);
                occupancy(processor, &resources, group).map(|found| found.groups_per_unit)
            };
            for value in 0..512 {
                assert!(groups(value + 1, 0, 64) <= groups(value, 0, 64));
                assert!(groups(8, (value + 1) * 128, 64) <= groups(8, value * 128, 64));
                assert!(groups(8, 0, value + 2) <= groups(8, 0, value + 1));
            }
        }
    }
}
