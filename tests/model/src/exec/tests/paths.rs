//! Forks of gfx9, halves of EXEC on gfx11, skipped vector instructions.

use super::*;
use crate::exec::context::Trouble;

const DEPTH: u32 = 1 << 29;

#[test]
fn a_fork_runs_the_smaller_half_first_and_joins_twice() {
    let mut m = gfx90a();
    m.wave.mode = 0x3f0;
    m.fill(3, |_| 0);
    m.wave.set_exec(0xff);
    m.wave.set_s64(10, 0b11); // two of eight lanes take the branch
    m.wave.set_s32(8, 0); // depth before the fork
    // s_cbranch_i_fork s[10:11], +2 words; v_mov_b32 v3, 1; s_branch +1; (target) v_mov_b32 v3, 2;
    // s_cbranch_join s8
    let i_fork = 0xb800_0000 | 10 << 16 | 2;
    assert_eq!(i_fork, 0xb80a_0002);
    let code = [i_fork, 0x7e06_0281, 0xbf82_0001, 0x7e06_0282, 0xbe80_2e08];
    assert_eq!(m.run(&code), Stop::End);
    assert_eq!([0, 1, 2, 7, 8].map(|lane| m.wave.v[3][lane]), [2, 2, 1, 1, 0]);
    // The first path to join was the target's; the second found the stack as it was. Its mask stays:
    // code after a join restores EXEC itself.
    assert_eq!((m.wave.mode, m.wave.exec()), (0x3f0, 0xfc));
    assert_eq!((m.wave.s64(0), m.wave.s64(2)), (0xfc, CODE + 4), "saved in s[0:3]");
}

#[test]
fn a_fork_of_equal_halves_takes_the_branch_first() {
    let mut m = gfx90a();
    m.wave.set_exec(0b1111);
    m.wave.set_s64(10, 0b0011);
    m.wave.set_s64(12, CODE + 0x100);
    m.put(CODE + 0x100, &[0xbf81_0000]);
    // s_cbranch_g_fork s[10:11], s[12:13]
    let g_fork = 0x9480_0000 | 12 << 8 | 10;
    assert_eq!(m.run(&[g_fork]), Stop::End);
    assert_eq!((m.wave.exec(), m.wave.mode), (0b0011, DEPTH));
    assert_eq!((m.wave.s64(0), m.wave.s64(2)), (0b1100, CODE + 4));
    // With the smaller half failing, that goes first; the second entry lies four registers up.
    m.wave.set_exec(0b1111);
    m.wave.set_s64(10, 0b0111);
    assert_eq!(m.run(&[g_fork]), Stop::End);
    assert_eq!((m.wave.exec(), m.wave.mode, m.wave.pc), (0b1000, 2 * DEPTH, CODE + 8));
    assert_eq!((m.wave.s64(4), m.wave.s64(6)), (0b0111, CODE + 0x100));
}

#[test]
fn a_fork_that_all_lanes_agree_on_saves_nothing() {
    for (mask, end) in [(!0, CODE + 0x104), (0, CODE + 8)] {
        let mut m = gfx90a();
        m.wave.set_exec(0b1111);
        m.wave.set_s64(10, mask);
        m.wave.set_s64(12, CODE + 0x100);
        m.put(CODE + 0x100, &[0xbf81_0000]);
        assert_eq!(m.run(&[0x9480_0c0a]), Stop::End);
        assert_eq!((m.wave.exec(), m.wave.mode, m.wave.pc), (0b1111, 0, end));
    }
}

#[test]
fn a_subvector_loop_visits_both_halves_of_exec() {
    // s_subvector_loop_begin s2, 2; v_add_nc_u32 v3, 1, v3; s_subvector_loop_end s2, -2
    let code = [0xbb02_0002, 0x4a06_0681, 0xbb82_fffe];
    for (low, high, passes) in [(3, 1, 2), (3, 0, 1), (0, 1, 1), (0, 0, 0)] {
        let mut m = Machine::<64>::new(Target::Gfx1100);
        m.wave.set_exec(u64::from(high) << 32 | u64::from(low));
        m.fill(3, |_| 0);
        m.wave.set_s32(2, 0x77);
        let before: u64 = m.wave.clock;
        assert_eq!(m.run(&code), Stop::End);
        assert_eq!(m.wave.s64(sgpr::EXEC_LO), u64::from(high) << 32 | u64::from(low));
        let counted = [0, 1, 2, 32].map(|lane| m.wave.v[3][lane]);
        let want = [low & 1, low >> 1 & 1, 0, high & 1];
        assert_eq!(counted, want, "{low:#x} {high:#x}");
        let executed = m.wave.clock - before;
        assert_eq!(executed, 2 + 2 * passes, "{low:#x} {high:#x}");
    }
}

#[test]
fn a_wave_that_skips_vector_instructions_executes_the_others() {
    let mut m = gfx90a();
    m.fill(3, |_| 7);
    m.addresses(0, |_| 0xdead_0000);
    m.wave.set_s32(2, 1 << 4);
    m.wave.set_s64(4, DATA);
    m.put(DATA, &[55]);
    // s_setvskip s2, 4; v_mov_b32 v3, 1; global_load_dword v4, v[0:1], off; s_mov_b32 s9, 5;
    // s_branch +1; (skipped) s_mov_b32 s9, 5; s_load_dword s12, s[4:5], 0x0; s_setvskip 0, 0;
    // v_mov_b32 v5, 1
    let code = [
        0xbf10_8402,
        0x7e06_0281,
        0xdc50_8000,
        0x047f_0000,
        0xbe89_0085,
        0xbf82_0001,
        0xbe89_0080,
        0xc002_0302,
        0,
        0xbf10_8080,
        0x7e0a_0281,
    ];
    assert_eq!(m.run(&code), Stop::End);
    assert_eq!((m.wave.v[3][0], m.wave.v[5][0]), (7, 1));
    assert_eq!((m.wave.s32(9), m.wave.s32(12)), (5, 55));
    assert_eq!((m.wave.mode >> 28 & 1, m.wave.clock), (0, 9));
    // A wild jump is a fault there too, and an endless loop ends with the turn.
    m.wave.set_s32(2, 1 << 4);
    assert_eq!(m.run(&[0xbf10_8402, 0xbf82_ffff]), Stop::Quantum);
    assert_eq!((m.wave.pc, m.wave.clock), (CODE + 4, 10_009));
}

#[test]
fn a_killed_wave_ends() {
    let mut m = gfx11();
    m.fill(3, |_| 0);
    assert_eq!(m.run(&[0xbf81_0000, 0x7e06_0281, 0xbf81_0001, 0x7e06_0282]), Stop::End);
    assert_eq!(m.wave.v[3][0], 1);
}

#[test]
fn the_end_of_code_is_an_illegal_instruction() {
    let mut m = gfx11();
    assert_eq!(m.run(&[0xbf9f_0000]), Stop::Halted(Some(Trouble::Illegal)));
    assert_eq!(m.wave.pc, CODE);
}

#[test]
fn returning_from_a_handler_needs_one() {
    let mut m = gfx90a();
    m.wave.set_s64(2, CODE + 0x100);
    m.put(CODE + 0x100, &[0xbf81_0000]);
    // s_rfe_restore_b64 s[2:3], s4
    assert_eq!(m.run(&[0x9580_0402]), Stop::Halted(Some(Trouble::Illegal)));
    m.wave.status = status::VALID | status::TRAP_EN | status::PRIV;
    assert_eq!(m.run(&[0x9580_0402]), Stop::End);
    assert_eq!((m.wave.pc, m.wave.status & status::PRIV), (CODE + 0x104, 0));
}

#[test]
fn a_move_between_two_relative_registers_offsets_each_by_its_field() {
    let mut m = gfx11();
    m.wave.set_s32(7, 77);
    m.wave.set_s32(sgpr::M0, 9 << 16 | 5);
    m.run(&[0xbe80_4402]); // s_movrelsd_2_b32 s0, s2
    assert_eq!(m.wave.s32(9), 77);
    m.wave.set_s32(sgpr::M0, 200 << 16 | 300);
    let before = m.wave.s;
    m.run(&[0xbe80_4402]);
    assert_eq!(m.wave.s[..128], before[..128], "outside the file nothing is written");
}
