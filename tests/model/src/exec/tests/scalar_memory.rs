//! Scalar stores, scalar scratch and scalar atomics of gfx9.

use super::*;
use crate::exec::context::Trouble;

/// s[4:5] = DATA, s6 = 8.
fn machine() -> Machine<64> {
    let mut m = gfx90a();
    m.wave.set_s64(4, DATA);
    m.wave.set_s32(6, 8);
    m
}

fn descriptor(m: &mut Machine<64>, stride: u32, records: u32) {
    for (reg, word) in
        [DATA as u32, (DATA >> 32) as u32 | stride << 16, records, 0].into_iter().enumerate()
    {
        m.wave.set_s32(8 + reg as u8, word);
    }
}

#[test]
fn scalar_atomics_return_the_old_value_with_glc_only() {
    // Words, memory at DATA + 8 before, s2 before; memory and s2 after.
    for (words, memory, data, want) in [
        ([0xc20b_0082, 8], 40, 2, (42, 40)), // s_atomic_add s2, s[4:5], 0x8 glc
        ([0xc20a_0082, 8], 40, 2, (42, 2)),  // s_atomic_add without glc
        ([0xc21f_0082, 8], 5, !0, (!0, 5)),  // s_atomic_umax
        ([0xc213_0082, 8], 5, !0, (!0, 5)),  // s_atomic_smin: -1
        ([0xc213_0082, 8], 5, 6, (5, 5)),
        ([0xc233_0082, 8], 0, 9, (9, 0)), // s_atomic_dec wraps
        ([0xc233_0082, 8], 10, 9, (9, 10)),
        ([0xc233_0082, 8], 9, 9, (8, 9)),
    ] {
        let mut m = machine();
        m.put(DATA + 8, &[memory]);
        m.wave.set_s32(2, data);
        m.wave.set_exec(0); // does not matter
        assert_eq!(m.run(&words), Stop::End);
        assert_eq!((m.word(DATA + 8), m.wave.s32(2)), want, "{:#x}", words[0]);
    }
}

#[test]
fn the_comparand_follows_the_data() {
    for (comparand, want) in [(7, 9), (8, 7)] {
        let mut m = machine();
        m.put(DATA + 8, &[7]);
        m.wave.set_s32(2, 9);
        m.wave.set_s32(3, comparand);
        m.run(&[0xc207_0082, 8]); // s_atomic_cmpswap s[2:3], s[4:5], 0x8 glc
        assert_eq!((m.word(DATA + 8), m.wave.s32(2), m.wave.s32(3)), (want, 7, comparand));
    }
    let mut m = machine();
    m.put(DATA + 8, &[1, 2]);
    m.wave.set_s64(8, 5 << 32);
    m.wave.set_s64(10, 2 << 32 | 1);
    m.run(&[0xc287_0202, 8]); // s_atomic_cmpswap_x2 s[8:11], s[4:5], 0x8 glc
    assert_eq!((m.word(DATA + 12), m.wave.s64(8), m.wave.s64(10)), (5, 2 << 32 | 1, 2 << 32 | 1));
}

#[test]
fn wide_scalar_atomics_move_register_pairs() {
    let mut m = machine();
    m.put(DATA + 8, &[!0, 3]);
    m.wave.set_s64(2, 9 << 32);
    m.run(&[0xc2ad_0082, 6]); // s_atomic_inc_x2 s[2:3], s[4:5], s6 glc
    assert_eq!((m.word(DATA + 8), m.word(DATA + 12), m.wave.s64(2)), (0, 4, 3 << 32 | 0xffff_ffff));
    m.run(&[0xc283_0082, 8]); // s_atomic_swap_x2 s[2:3], s[4:5], 0x8 glc
    assert_eq!((m.word(DATA + 12), m.wave.s64(2)), (3, 4 << 32));
    // A pair that lies across quadwords is no atomic access.
    m.wave.set_s64(4, DATA + 4);
    assert_eq!(m.run(&[0xc283_0082, 8]), Stop::Halted(Some(Trouble::Violation(DATA + 12))));
}

#[test]
fn scalar_buffers_drop_what_is_past_their_end() {
    let mut m = machine();
    descriptor(&mut m, 0, 16);
    for reg in 4..8 {
        m.wave.set_s32(reg, 100 + u32::from(reg));
    }
    m.run(&[0xc06a_0104, 8]); // s_buffer_store_dwordx4 s[4:7], s[8:11], 0x8
    assert_eq!([8, 12, 16, 20].map(|at| m.word(DATA + at)), [104, 105, 0, 0]);
    m.wave.set_s32(6, 4);
    m.wave.set_s32(2, 7);
    m.run(&[0xc060_0084, 6]); // s_buffer_store_dword s2, s[8:11], s6
    assert_eq!(m.word(DATA + 4), 7);
    m.run(&[0xc127_0084, 4]); // s_buffer_atomic_or s2, s[8:11], 0x4 glc
    assert_eq!((m.word(DATA + 4), m.wave.s32(2)), (7, 7));
    // Half of the quadword is inside: all or nothing, and the old value reads as zero.
    m.wave.set_s64(2, !0);
    m.run(&[0xc1ab_0084, 0xc]); // s_buffer_atomic_xor_x2 s[2:3], s[8:11], 0xc glc
    assert_eq!((m.word(DATA + 12), m.wave.s64(2)), (105, 0));
    // With a stride the size counts records of it.
    descriptor(&mut m, 8, 3);
    m.wave.set_s32(2, 3);
    m.wave.set_s32(6, 20);
    m.run(&[0xc060_0084, 6]);
    assert_eq!(m.word(DATA + 20), 3);
}

#[test]
fn scalar_scratch_counts_register_offsets_in_64_bytes() {
    let mut m = machine();
    m.put(DATA + 8 * 64, &[77]);
    m.put(DATA + 8, &[5, 6]);
    m.run(&[0xc014_0082, 6]); // s_scratch_load_dword s2, s[4:5], s6
    assert_eq!(m.wave.s32(2), 77);
    m.run(&[0xc01a_0082, 8]); // s_scratch_load_dwordx2 s[2:3], s[4:5], 0x8
    assert_eq!(m.wave.s64(2), 6 << 32 | 5);
    m.run(&[0xc058_0082, 6]); // s_scratch_store_dwordx2 s[2:3], s[4:5], s6
    assert_eq!([0, 4].map(|at| m.word(DATA + 512 + at)), [5, 6]);
    m.run(&[0xc056_0082, 0x14]); // s_scratch_store_dword s2, s[4:5], 0x14
    assert_eq!(m.word(DATA + 0x14), 5);
}

#[test]
fn probes_change_nothing_and_never_fault() {
    let mut m = machine();
    m.wave.set_s64(4, 0xdead_0000);
    let before = m.wave.s;
    // s_atc_probe 0, s[4:5], 0x0; s_atc_probe_buffer 0, s[8:11], 0x0
    assert_eq!(m.run(&[0xc09a_0002, 0, 0xc09e_0004, 0]), Stop::End);
    assert_eq!(m.wave.s, before);
    let mut m = gfx11();
    assert_eq!(m.run(&[0xf488_0002, 0xf800_0000]), Stop::End);
}
