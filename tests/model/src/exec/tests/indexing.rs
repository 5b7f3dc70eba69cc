//! VGPR indexing of gfx9.

use super::*;

/// v4..v7 hold 40..70 plus the lane, s2 = 2.
fn machine() -> Machine<64> {
    let mut m = gfx90a();
    m.wave.mode = 0x3f0;
    for reg in 4..8 {
        m.fill(reg, |lane| 10 * reg as u32 + lane);
    }
    m.fill(8, |_| 8);
    m.wave.set_s32(2, 2);
    m.wave.set_s32(sgpr::M0, 0x5a5a_0f00);
    m
}

#[test]
fn m0_takes_index_and_enables_and_keeps_the_rest() {
    let mut m = machine();
    m.wave.set_s32(2, 0x1234_5602);
    m.wave.set_s32(3, 0xff07);
    m.run(&[0xbf11_0902]); // s_set_gpr_idx_on s2, gpr_idx(SRC0,DST)
    assert_eq!((m.wave.s32(sgpr::M0), m.wave.mode), (0x5a5a_9f02, 0x3f0 | 1 << 27));
    m.run(&[0xbf9d_0002]); // s_set_gpr_idx_mode gpr_idx(SRC1)
    assert_eq!(m.wave.s32(sgpr::M0), 0x5a5a_2f02);
    m.run(&[0xbe80_3203]); // s_set_gpr_idx_idx s3
    assert_eq!(m.wave.s32(sgpr::M0), 0x5a5a_2f07);
    m.run(&[0xbf9c_0000]); // s_set_gpr_idx_off
    assert_eq!((m.wave.s32(sgpr::M0), m.wave.mode), (0x5a5a_2f07, 0x3f0));
}

#[test]
fn only_enabled_operands_move() {
    let mut m = machine();
    // s_set_gpr_idx_on s2, gpr_idx(SRC0); v_mov_b32 v8, v4; s_set_gpr_idx_off; v_mov_b32 v9, v4
    m.run(&[0xbf11_0102, 0x7e10_0304, 0xbf9c_0000, 0x7e12_0304]);
    assert_eq!((m.wave.v[8][3], m.wave.v[9][3]), (63, 43));
    let mut m = machine();
    m.run(&[0xbf11_0802, 0x7e10_0304]); // gpr_idx(DST); v_mov_b32 v8, v4
    assert_eq!((m.wave.v[8][3], m.wave.v[10][3]), (8, 43));
    let mut m = machine();
    m.wave.set_exec(0b1000);
    // gpr_idx(SRC0,DST); v_add_u32 v8, v4, v5: v10 = v6 + v5
    m.run(&[0xbf11_0902, 0x6810_0b04]);
    assert_eq!((m.wave.v[10][3], m.wave.v[10][4], m.wave.v[8][3]), (63 + 53, 0, 8));
}

#[test]
fn an_accumulating_operation_reads_where_it_writes() {
    let mut m = machine();
    for (reg, value) in [(4, 2.0f32), (5, 3.0), (8, 100.0), (10, 1.0)] {
        m.fill(reg, |_| value.to_bits());
    }
    // gpr_idx(DST); v_fmac_f32 v8, v4, v5: v10 = 2 * 3 + v10
    m.run(&[0xbf11_0802, 0x7610_0b04]);
    assert_eq!(f32::from_bits(m.wave.v[10][0]), 7.0);
    assert_eq!(f32::from_bits(m.wave.v[8][0]), 100.0);
}

#[test]
fn lane_reads_and_writes_are_indexed_too() {
    let mut m = machine();
    m.run(&[0xbf11_0102, 0x7e12_0504]); // gpr_idx(SRC0); v_readfirstlane_b32 s9, v4
    assert_eq!(m.wave.s32(9), 60);
    let mut m = machine();
    // gpr_idx(DST); v_writelane_b32 v8, s2, 3
    m.run(&[0xbf11_0802, 0xd28a_0008, 0x0001_0602]);
    assert_eq!((m.wave.v[10][3], m.wave.v[8][3]), (2, 8));
}

#[test]
fn registers_beyond_the_allocation_read_v0_and_drop_writes() {
    let mut m = machine();
    m.fill(0, |_| 77);
    m.wave.set_s32(2, 200); // 128 are allocated
    m.run(&[0xbf11_0102, 0x7e10_0304]);
    assert_eq!(m.wave.v[8][0], 77);
    let before = m.wave.v.clone();
    m.run(&[0xbf11_0802, 0x7e10_0304]);
    assert_eq!(m.wave.v, before);
}

#[test]
fn the_mode_bit_means_something_else_on_gfx11() {
    let mut m = gfx11();
    m.wave.mode = 0x3f0 | 1 << 27;
    m.wave.set_s32(sgpr::M0, 0x9002);
    m.fill(4, |_| 4);
    m.fill(6, |_| 6);
    m.run(&[0x7e10_0304]); // v_mov_b32 v8, v4
    assert_eq!((m.wave.v[8][0], m.wave.v[10][0]), (4, 0));
}
