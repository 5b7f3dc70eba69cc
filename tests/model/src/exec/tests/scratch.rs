//! Private memory: the layout in the scratch buffer is the same by every way to reach it.

use super::*;
use crate::exec::context::Trouble;

#[test]
fn scratch_interleaves_the_dwords_of_the_lanes() {
    let mut m = gfx11();
    m.fill(0, |lane| 4 * (lane % 4));
    m.fill(4, |lane| 100 + lane);
    assert_eq!(m.run(&[0xdc69_0000, 0x00fc_0400]), Stop::End); // scratch_store_b32 v0, v4, off
    // Lane 6 wrote its dword 2.
    assert_eq!(m.word(SCRATCH + 2 * 4 * 32 + 6 * 4), 106);
    m.wave.set_s32(2, 4);
    // scratch_load_b32 v4, off, s2 offset:12: dword 4 of each lane
    m.put(SCRATCH + 4 * 4 * 32, &[1, 2, 3]);
    m.run(&[0xdc51_000c, 0x0402_0000]);
    assert_eq!([0, 1, 2, 3].map(|lane| m.wave.v[4][lane]), [1, 2, 3, 0]);
    // scratch_load_b64 v[4:5], v0, s2 offset:4: two dwords of a lane are a row apart
    m.fill(0, |_| 0);
    m.run(&[0xdc55_0004, 0x0482_0000]);
    assert_eq!((m.wave.v[4][6], m.wave.v[5][3]), (106, 103));
}

#[test]
fn unaligned_private_accesses_split_where_the_dword_ends() {
    let mut m = gfx11();
    m.fill(0, |_| 3);
    m.fill(4, |_| 0xbbaa);
    assert_eq!(m.run(&[0xdc65_0000, 0x00fc_0400]), Stop::End); // scratch_store_b16 v0, v4, off
    assert_eq!(m.word(SCRATCH), 0xaa00_0000);
    assert_eq!(m.word(SCRATCH + 4 * 32), 0xbb);
}

#[test]
fn leaving_the_private_segment_is_a_violation() {
    let mut m = gfx11();
    m.fill(0, |lane| if lane == 5 { 32 } else { 28 });
    let stop = m.run(&[0xdc69_0000, 0x00fc_0400]);
    assert_eq!(stop, Stop::Halted(Some(Trouble::Violation(PRIVATE_BASE + 32))));
    m.wave.set_exec(!(1 << 5));
    assert_eq!(m.run(&[0xdc69_0000, 0x00fc_0400]), Stop::End);
}

/// gfx90a's descriptor for the same buffer: swizzled, index stride 64, lane added.
fn descriptor(m: &mut Machine<64>) {
    m.wave.set_s64(0, SCRATCH | 1 << 63);
    m.wave.set_s32(2, 0x1000);
    m.wave.set_s32(3, 0x00ea_4fac);
}

#[test]
fn a_scratch_descriptor_and_flat_scratch_reach_the_same_bytes() {
    let mut m = gfx90a();
    descriptor(&mut m);
    m.fill(4, |lane| 1000 + lane);
    // buffer_store_dword v4, off, s[0:3], 0 offset:4
    assert_eq!(m.run(&[0xe070_0004, 0x8000_0400]), Stop::End);
    assert_eq!(m.word(SCRATCH + 4 * 64 + 63 * 4), 1063);
    // flat_load_dword v5, v[0:1] at private 4
    m.addresses(0, |_| PRIVATE_BASE + 4);
    assert_eq!(m.run(&[0xdc50_0000, 0x0500_0000]), Stop::End);
    assert_eq!((m.wave.v[5][0], m.wave.v[5][63]), (1000, 1063));
    // scratch_load_dword v5, off, s4
    m.fill(5, |_| 0);
    m.wave.set_s32(4, 4);
    assert_eq!(m.run(&[0xdc50_4000, 0x0504_0000]), Stop::End);
    assert_eq!(m.wave.v[5][63], 1063);
    // The scalar offset counts bytes of the wave: 256 are dword 1 of all lanes.
    m.fill(4, |lane| 2000 + lane);
    m.wave.set_s32(32, 256);
    // buffer_store_dword v4, off, s[0:3], s32 offset:4: dword 2
    assert_eq!(m.run(&[0xe070_0004, 0x2000_0400]), Stop::End);
    assert_eq!(m.word(SCRATCH + 2 * 4 * 64 + 8), 2002);
}
