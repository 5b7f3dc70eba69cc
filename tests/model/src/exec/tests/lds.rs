//! LDS, and permutations between lanes.

use super::*;
use crate::exec::context::Trouble;

#[test]
fn lds_keeps_what_was_stored() {
    let mut m = gfx11();
    m.fill(0, |lane| 4 * lane);
    m.fill(4, |lane| 100 + lane);
    // ds_store_b32 v0, v4; ds_load_b32 v5, v0
    assert_eq!(m.run(&[0xd834_0000, 0x0000_0400, 0xd8d8_0000, 0x0500_0000]), Stop::End);
    assert_eq!((m.lds.read_u32(8), m.wave.v[5][31]), (102, 131));
}

#[test]
fn lds_offsets_scale_with_the_element() {
    let mut m = gfx11();
    for dword in 0..256 {
        m.lds.write_u32(4 * dword, dword);
    }
    m.fill(0, |_| 4);
    m.run(&[0xd8dc_0301, 0x0400_0000]); // ds_load_2addr_b32 v[4:5], v0 offset0:1 offset1:3
    assert_eq!((m.wave.v[4][0], m.wave.v[5][0]), (2, 4));
    m.run(&[0xdbfc_0010, 0x0400_0000]); // ds_load_b128 v[4:7], v0 offset:16
    assert_eq!([4, 5, 6, 7].map(|reg| m.wave.v[reg][0]), [5, 6, 7, 8]);
    m.fill(4, |_| 70);
    m.fill(5, |_| 71);
    m.run(&[0xd83c_0100, 0x0005_0400]); // ds_store_2addr_stride64_b32 v0, v4, v5 offset1:1
    assert_eq!((m.lds.read_u32(4), m.lds.read_u32(4 + 256)), (70, 71));
}

#[test]
fn narrow_lds_accesses_keep_the_other_bytes() {
    let mut m = gfx11();
    m.lds.write_u32(0, 0x4433_2211);
    m.fill(0, |_| 0);
    m.fill(4, |_| 0xaabb_ccdd);
    m.run(&[0xd878_0001, 0x0000_0400]); // ds_store_b8 v0, v4 offset:1
    assert_eq!(m.lds.read_u32(0), 0x4433_dd11);
    m.run(&[0xda9c_0000, 0x0400_0000]); // ds_load_u16_d16_hi v4, v0
    assert_eq!(m.wave.v[4][0], 0xdd11_ccdd);
}

#[test]
fn lds_beyond_the_allocation_reads_zero_and_drops_stores() {
    let mut m = gfx11();
    m.fill(0, |lane| if lane == 0 { 1020 } else { 0xffff_fffc });
    m.fill(4, |_| 7);
    m.fill(5, |_| 9);
    assert_eq!(m.run(&[0xd834_0000, 0x0000_0400, 0xd8d8_0000, 0x0500_0000]), Stop::End);
    assert_eq!((m.wave.v[5][0], m.wave.v[5][1]), (7, 0));
}

#[test]
fn lds_atomics_serialise_the_lanes() {
    let mut m = gfx11();
    m.lds.write_u32(16, 5);
    m.fill(0, |_| 16);
    m.fill(4, |_| 1);
    m.run(&[0xd880_0000, 0x0500_0400]); // ds_add_rtn_u32 v5, v0, v4
    assert_eq!((m.lds.read_u32(16), m.wave.v[5][0], m.wave.v[5][31]), (37, 5, 36));
    m.lds.write_u32(16, 1.0f32.to_bits());
    m.fill(4, |lane| (lane as f32).to_bits());
    m.run(&[0xd8cc_0000, 0x0500_0400]); // ds_max_rtn_f32 v5, v0, v4
    assert_eq!(m.lds.read_u32(16), 31f32.to_bits());
    m.fill(0, |_| 18);
    assert_eq!(
        m.run(&[0xd880_0000, 0x0500_0400]),
        Stop::Halted(Some(Trouble::Violation(LDS_BASE + 18)))
    );
}

#[test]
fn compare_and_store_takes_its_operands_in_the_targets_order() {
    let mut m = gfx11();
    m.lds.write_u32(0, 3);
    m.fill(4, |_| 8); // new
    m.fill(6, |_| 3); // comparand
    m.run(&[0xd8c0_0000, 0x0506_0400]); // ds_cmpstore_rtn_b32 v5, v0, v4, v6
    assert_eq!((m.lds.read_u32(0), m.wave.v[5][0]), (8, 3));
    let mut m = gfx90a();
    m.lds.write_u32(0, 3);
    m.fill(4, |_| 3); // comparand
    m.fill(6, |_| 8); // new
    m.run(&[0xd860_0000, 0x0506_0400]); // ds_cmpst_rtn_b32 v5, v0, v4, v6
    assert_eq!((m.lds.read_u32(0), m.wave.v[5][0]), (8, 3));
}

#[test]
fn swizzles_give_zero_from_inactive_lanes() {
    let mut m = gfx11();
    m.fill(4, |lane| 10 + lane);
    m.wave.set_exec(!2);
    m.run(&[0xd8d4_041f, 0x0500_0004]); // ds_swizzle_b32 v5, v4 offset:swizzle(SWAP,1)
    assert_eq!([0, 1, 2, 3].map(|lane| m.wave.v[5][lane]), [0, 0, 13, 12]);
}

#[test]
fn permute_pushes_and_bpermute_pulls() {
    let mut m = gfx90a();
    m.fill(0, |lane| 4 * (63 - lane));
    m.fill(4, |lane| 10 + lane);
    m.run(&[0xd87c_0000, 0x0500_0400]); // ds_permute_b32 v5, v0, v4
    assert_eq!((m.wave.v[5][0], m.wave.v[5][63]), (73, 10));
    m.wave.set_exec(!(1 << 63));
    m.run(&[0xd87e_0000, 0x0500_0400]); // ds_bpermute_b32 v5, v0, v4
    assert_eq!((m.wave.v[5][0], m.wave.v[5][1]), (0, 72), "lane 63 is inactive");
    // gfx11 permutes within 32 lanes, also where a wave has 64.
    let mut m = Machine::<64>::new(Target::Gfx1100);
    m.fill(0, |_| 4);
    m.fill(4, |lane| 10 + lane);
    m.run(&[0xdacc_0000, 0x0500_0400]); // ds_bpermute_b32 v5, v0, v4
    assert_eq!((m.wave.v[5][0], m.wave.v[5][40]), (11, 43));
}
