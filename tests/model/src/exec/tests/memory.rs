//! FLAT, GLOBAL, MUBUF and scalar memory.

use super::*;
use crate::exec::MemoryFault;
use crate::exec::context::Trouble;

/// Bytes 0, 1, 2, ... of the data page.
fn pattern<const N: usize>(m: &Machine<N>) {
    let bytes: Vec<u8> = (0..=255).collect();
    m.space.write(DATA, &bytes).unwrap();
}

#[test]
fn loads_extend_and_place_what_they_read() {
    // v4 (and up) of lane 1, which reads at DATA + 0x81.
    for (word, want) in [
        (0xdc52_0000, &[0x8483_8281][..]),          // global_load_b32
        (0xdc56_0000, &[0x8483_8281, 0x8887_8685]), // b64
        (0xdc5a_0000, &[0x8483_8281, 0x8887_8685, 0x8c8b_8a89]), // b96
        (0xdc5e_0000, &[0x8483_8281, 0x8887_8685, 0x8c8b_8a89, 0x908f_8e8d]), // b128
        (0xdc42_0000, &[0x81]),                     // u8
        (0xdc46_0000, &[0xffff_ff81]),              // i8
        (0xdc4e_0000, &[0xffff_8281]),              // i16
        (0xdc82_0000, &[0xaaaa_8281]),              // d16_b16 keeps the high half
        (0xdc86_0000, &[0x0081_aaaa]),              // d16_hi_u8 keeps the low half
        (0xdc56_4000, &[0x8483_8281, 0x8887_8685]), // b64 glc
    ] {
        let mut m = gfx11();
        pattern(&m);
        m.addresses(0, |lane| DATA + 0x80 + lane);
        m.fill(4, |_| 0xaaaa_aaaa);
        assert_eq!(m.run(&[word, 0x047c_0000]), Stop::End);
        let got: Vec<u32> = (0..want.len()).map(|k| m.wave.v[4 + k][1]).collect();
        assert_eq!(got, want, "{word:#x}");
    }
}

#[test]
fn a_scalar_base_takes_a_32_bit_offset_per_lane() {
    let mut m = gfx11();
    pattern(&m);
    m.wave.set_s64(2, DATA - 0x1000);
    m.fill(0, |lane| 0x1000 + 4 * (31 - lane));
    m.run(&[0xdc52_0008, 0x0402_0000]); // global_load_b32 v4, v0, s[2:3] offset:8
    assert_eq!((m.wave.v[4][31], m.wave.v[4][30]), (0x0b0a_0908, 0x0f0e_0d0c));
}

#[test]
fn stores_touch_only_active_lanes_and_their_bytes() {
    let mut m = gfx11();
    m.addresses(0, |lane| DATA + 4 * lane);
    m.fill(4, |lane| 0x1122_3300 + lane);
    m.wave.set_exec(0b110);
    m.run(&[0xdc6a_0000, 0x007c_0400]); // global_store_b32 v[0:1], v4, off
    assert_eq!([0, 4, 8, 12].map(|at| m.word(DATA + at)), [0, 0x1122_3301, 0x1122_3302, 0]);
    m.run(&[0xdc92_0000, 0x007c_0400]); // global_store_d16_hi_b8
    assert_eq!(m.word(DATA + 4), 0x1122_3322);
    m.wave.set_exec(1 << 31);
    m.run(&[0xdc76_0000, 0x007c_0400]); // global_store_b128 v[0:1], v[4:7], off
    assert_eq!(m.word(DATA + 124), 0x1122_331f);
}

#[test]
fn all_lanes_active_and_contiguous_give_the_same_as_one_by_one() {
    for (exec, step) in [(u32::MAX, 4), (u32::MAX, 8), (0x5555_5555, 4)] {
        let mut m = gfx11();
        pattern(&m);
        m.addresses(0, |lane| DATA + step * lane);
        m.wave.set_exec(u64::from(exec));
        m.run(&[0xdc52_0000, 0x047c_0000]);
        for lane in (0..32).filter(|lane| exec >> lane & 1 != 0) {
            assert_eq!(m.wave.v[4][lane], m.word(DATA + step * lane as u64));
        }
    }
}

#[test]
fn lanes_four_gibibytes_apart_are_served_in_turn() {
    let mut m = gfx11();
    let mut far = [0x7777_7777u32; 4];
    // SAFETY: `far` outlives the machine's last use of it.
    unsafe { m.space.map(5 << 32, 16, far.as_mut_ptr().cast(), Access::default()) }.unwrap();
    pattern(&m);
    m.addresses(0, |lane| if lane == 9 { 5 << 32 } else { DATA });
    assert_eq!(m.run(&[0xdc52_0000, 0x047c_0000]), Stop::End);
    assert_eq!(
        (m.wave.v[4][8], m.wave.v[4][9], m.wave.v[4][10]),
        (0x0302_0100, 0x7777_7777, 0x0302_0100)
    );
}

#[test]
fn a_wild_access_faults_with_the_lanes_address_and_changes_no_register() {
    let mut m = gfx11();
    m.addresses(0, |lane| if lane == 3 { 0xdead_0000 } else { DATA });
    m.fill(4, |_| 9);
    let fault = MemoryFault { address: 0xdead_0000, write: false, fetch: false, not_present: true };
    assert_eq!(m.run(&[0xdc52_0000, 0x047c_0000]), Stop::Fault(fault));
    assert_eq!(m.wave.v[4][0], 9);
    assert_eq!(m.wave.pc, CODE);
    let fault = MemoryFault { address: 0xdead_0000, write: true, fetch: false, not_present: true };
    assert_eq!(m.run(&[0xdc6a_0000, 0x007c_0400]), Stop::Fault(fault));
    // Inactive lanes access nothing.
    m.wave.set_exec(!8);
    assert_eq!(m.run(&[0xdc52_0000, 0x047c_0000]), Stop::End);
    m.wave.set_exec(0);
    assert_eq!(m.run(&[0xdc6a_0000, 0x007c_0400]), Stop::End);
}

#[test]
fn fetching_from_memory_that_may_not_be_executed_faults() {
    let mut m = gfx11();
    m.wave.pc = DATA;
    let fault = MemoryFault { address: DATA, write: false, fetch: true, not_present: false };
    assert_eq!(m.resume(10), Stop::Fault(fault));
}

#[test]
fn atomics_return_the_old_value_and_write_the_new_one() {
    let mut m = gfx11();
    m.put(DATA, &[100]);
    m.addresses(0, |_| DATA);
    m.fill(2, |lane| lane);
    m.run(&[0xdcd6_4000, 0x047c_0200]); // global_atomic_add_u32 v4, v[0:1], v2, off glc
    assert_eq!((m.word(DATA), m.wave.v[4][0], m.wave.v[4][3]), (100 + 31 * 16, 100, 103));
    m.put(DATA, &[7]);
    m.fill(2, |lane| 50 + lane); // new
    m.fill(3, |_| 7); // comparand: only lane 0 finds it
    m.run(&[0xdcd2_4000, 0x047c_0200]); // global_atomic_cmpswap_b32 v4, v[0:1], v[2:3], off glc
    assert_eq!((m.word(DATA), m.wave.v[4][0], m.wave.v[4][1]), (50, 7, 50));
    m.put(DATA, &[5, 6]);
    for (reg, value) in [(6, 1), (7, 2), (8, 5), (9, 6)] {
        m.fill(reg, |_| value);
    }
    m.run(&[0xdd0a_4000, 0x047c_0600]); // global_atomic_cmpswap_b64 v[4:5], v[0:1], v[6:9], off glc
    assert_eq!([m.word(DATA), m.word(DATA + 4), m.wave.v[5][0], m.wave.v[5][1]], [1, 2, 6, 2]);
    m.put(DATA, &[3]);
    m.fill(2, |lane| 0u32.wrapping_sub(lane));
    m.run(&[0xdce2_0000, 0x007c_0200]); // global_atomic_min_i32 v[0:1], v2, off
    assert_eq!(m.word(DATA) as i32, -31);
    m.put(DATA, &[0]);
    m.fill(2, |_| 9);
    m.run(&[0xdcfe_0000, 0x007c_0200]); // global_atomic_inc_u32: wraps at 9
    assert_eq!(m.word(DATA), 2);
}

#[test]
fn a_misaligned_atomic_halts_the_wave() {
    let mut m = gfx11();
    m.addresses(0, |_| DATA + 2);
    assert_eq!(
        m.run(&[0xdcd6_4000, 0x047c_0200]),
        Stop::Halted(Some(Trouble::Violation(DATA + 2)))
    );
    assert_eq!(m.wave.trapsts, status::MEM_VIOL);
    assert_eq!(m.wave.pc, CODE);
}

#[test]
fn flat_addresses_reach_memory_lds_and_scratch_in_one_instruction() {
    let mut m = gfx11();
    m.put(DATA, &[1111]);
    m.lds.write_u32(8, 2222);
    // Lane 2's private dword 1.
    m.put(SCRATCH + 4 * 32 + 8, &[3333]);
    m.addresses(0, |lane| match lane {
        1 => LDS_BASE + 8,
        2 => PRIVATE_BASE + 4,
        _ => DATA,
    });
    assert_eq!(m.run(&[0xdc50_0000, 0x047c_0000]), Stop::End); // flat_load_b32 v4, v[0:1]
    assert_eq!([0, 1, 2].map(|lane| m.wave.v[4][lane]), [1111, 2222, 3333]);
    m.fill(2, |_| 1);
    m.run(&[0xdcd4_4000, 0x047c_0200]); // flat_atomic_add_u32 v4, v[0:1], v2 glc
    assert_eq!((m.word(DATA), m.lds.read_u32(8)), (1111 + 30, 2223));
    assert_eq!(m.word(SCRATCH + 4 * 32 + 8), 3334);
}

#[test]
fn scalar_loads_ignore_exec_and_the_low_address_bits() {
    let mut m = gfx11();
    pattern(&m);
    m.wave.set_exec(0);
    m.wave.set_s64(2, DATA + 3);
    m.run(&[0xf400_0101, 0xf800_0008]); // s_load_b32 s4, s[2:3], 0x8
    assert_eq!(m.wave.s32(4), 0x0b0a_0908);
    m.wave.set_s32(6, 8);
    m.run(&[0xf404_0101, 0x0c00_0004]); // s_load_b64 s[4:5], s[2:3], s6 offset:0x4
    assert_eq!(m.wave.s64(4), 0x1312_1110_0f0e_0d0c);
    m.run(&[0xf40c_0201, 0xf800_0000]); // s_load_b256 s[8:15], s[2:3], 0x0
    assert_eq!(m.wave.s32(15), 0x1f1e_1d1c);
}

#[test]
fn scalar_buffer_loads_read_zero_beyond_the_buffer() {
    let mut m = gfx11();
    pattern(&m);
    m.wave.set_s64(8, DATA);
    m.wave.set_s64(10, 16);
    m.run(&[0xf424_0104, 0xf800_000c]); // s_buffer_load_b64 s[4:5], s[8:11], 0xc
    assert_eq!(m.wave.s64(4), 0x0f0e_0d0c);
}

#[test]
fn scalar_stores_and_the_clock_work_on_gfx9() {
    let mut m = gfx90a();
    m.wave.set_s64(2, DATA);
    m.wave.set_s32(4, 99);
    m.run(&[0xc042_0101, 0x0000_0008]); // s_store_dword s4, s[2:3], 0x8
    assert_eq!(m.word(DATA + 8), 99);
    m.run(&[0xbf80_0000, 0xbf80_0000, 0xc090_0000, 0]); // s_nop, s_nop, s_memtime s[0:1]
    assert!(m.wave.clock >= m.wave.s64(0) && m.wave.s64(0) > 0);
}

/// A raw buffer of 64 bytes, checked byte by byte (gfx11 OOB_SELECT 3).
fn raw_buffer(m: &mut Machine<32>) {
    m.wave.set_s64(8, DATA);
    m.wave.set_s32(10, 64);
    m.wave.set_s32(11, 3 << 28);
}

#[test]
fn buffer_accesses_beyond_the_end_load_zero_and_store_nothing() {
    let mut m = gfx11();
    pattern(&m);
    raw_buffer(&mut m);
    m.fill(0, |lane| 4 * lane);
    m.fill(4, |_| 1);
    m.run(&[0xe050_0000, 0x8042_0400]); // buffer_load_b32 v4, v0, s[8:11], 0 offen
    assert_eq!((m.wave.v[4][15], m.wave.v[4][16], m.wave.v[4][31]), (0x3f3e_3d3c, 0, 0));
    m.fill(0, |lane| 8 * lane);
    m.fill(4, |_| 1);
    m.fill(5, |_| 2);
    m.run(&[0xe06c_0004, 0x8042_0400]); // buffer_store_b64 v[4:5], v0, s[8:11], 0 offen offset:4
    // The last pair that fits is at 4 + 48; the one at 60 would pass the end.
    assert_eq!([52, 56, 60, 64].map(|at| m.word(DATA + at)), [1, 2, 0x3f3e_3d3c, 0x4342_4140]);
}

#[test]
fn indexed_buffers_count_records_by_their_stride() {
    let mut m = gfx11();
    pattern(&m);
    m.wave.set_s64(8, DATA | 8 << 48); // stride 8
    m.wave.set_s32(10, 4); // records
    m.wave.set_s32(11, 1 << 28); // index only
    m.wave.set_s32(6, 4);
    m.fill(0, |lane| lane);
    m.run(&[0xe050_0000, 0x0682_0400]); // buffer_load_b32 v4, v0, s[8:11], s6 idxen
    assert_eq!([0, 3, 4].map(|lane| m.wave.v[4][lane]), [0x0706_0504, 0x1f1e_1d1c, 0]);
}

#[test]
fn accumulation_registers_follow_the_architected_ones() {
    let mut m = gfx90a();
    pattern(&m);
    m.addresses(0, |_| DATA);
    // global_load_dword a3, v[0:1], off; v_accvgpr_read_b32 v5, a3
    assert_eq!(m.run(&[0xdc50_8000, 0x03ff_0000, 0xd3d8_4005, 0x1800_0103]), Stop::End);
    assert_eq!(m.wave.v[64 + 3][7], 0x0302_0100);
    assert_eq!(m.wave.v[5][7], 0x0302_0100);
}

#[test]
fn a_register_beyond_the_allocation_is_illegal() {
    let mut m = gfx11();
    assert_eq!(m.run(&[0x7f90_0281]), Stop::Halted(Some(Trouble::Illegal))); // v_mov_b32 v200, 1
    assert_eq!(m.wave.trapsts, status::ILLEGAL_INST);
}
