//! Branches, calls, messages, waits, hardware registers, changing code.

use super::*;
use crate::exec::context::Trouble;

#[test]
fn calls_return_to_what_follows_them() {
    let mut m = gfx11();
    m.put(CODE + 0x100, &[0x7e06_0281, 0xbe80_481e]); // v_mov_b32 v3, 1; s_setpc_b64 s[30:31]
    m.wave.set_s64(4, CODE + 0x100);
    assert_eq!(m.run(&[0xbe9e_4904]), Stop::End); // s_swappc_b64 s[30:31], s[4:5]
    assert_eq!((m.wave.s64(30), m.wave.v[3][0]), (CODE + 4, 1));
    // s_call_b64 s[30:31], 2: over two words
    m.wave.v[3][0] = 0;
    assert_eq!(m.run(&[0xba1e_0002, 0, 0]), Stop::End);
    assert_eq!(m.wave.s64(30), CODE + 4);
}

#[test]
fn branches_test_exec_and_vcc_over_the_lanes_of_the_wave() {
    let mut m = gfx11();
    // s_cbranch_execz 1; v_mov_b32 v3, 1
    m.wave.set_s64(sgpr::EXEC_LO, 0xffff_ffff_0000_0000);
    m.wave.rebuild_mask();
    m.run(&[0xbfa5_0001, 0xbf83_0001]); // EXEC_HI does not count in wave32: s_sleep is skipped
    assert_eq!(m.wave.pc, CODE + 12);
    m.wave.set_s64(sgpr::VCC_LO, 1 << 32);
    assert_eq!(m.run(&[0xbfa4_0001, 0xbf83_0001]), Stop::Sleep); // s_cbranch_vccnz: not taken
    assert_eq!(m.wave.pc, CODE + 8);
}

#[test]
fn an_endless_loop_uses_up_its_turn() {
    let mut m = gfx11();
    m.put(CODE, &[0xbfa0_ffff]); // s_branch to itself
    m.wave.pc = CODE;
    assert_eq!(m.resume(1000), Stop::Quantum);
    assert_eq!((m.wave.clock, m.wave.pc), (1000, CODE));
}

#[test]
fn barriers_and_sleep_leave_the_wave_after_them() {
    let mut m = gfx11();
    assert_eq!(m.run(&[0xbfbd_0000]), Stop::Barrier);
    assert_eq!(m.wave.pc, CODE + 4);
    assert_eq!(m.resume(10), Stop::End);
}

#[test]
fn messages_carry_m0() {
    let mut m = gfx11();
    // s_mov_b32 m0, 0x1234; s_sendmsg sendmsg(MSG_INTERRUPT)
    assert_eq!(m.run(&[0xbefd_00ff, 0x0000_1234, 0xbfb6_0001]), Stop::Interrupt);
    assert_eq!(m.interrupts, [(0x1234, false)]);
    assert_eq!(m.resume(10), Stop::End);
    m.run(&[0xbe80_4c80]); // s_sendmsg_rtn_b32 s0, sendmsg(MSG_RTN_GET_DOORBELL)
    assert_eq!(m.wave.s32(0), 0x155);
    let mut m = gfx90a();
    m.run(&[0xbf90_000a]); // s_sendmsg sendmsg(MSG_GET_DOORBELL)
    assert_eq!(m.wave.s32(sgpr::EXEC_LO), 0x155);
}

#[test]
fn hardware_registers_are_read_and_written_by_field() {
    let mut m = gfx11();
    m.wave.mode = 0x3f0;
    // s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 4), 5; s_getreg_b32 s0, hwreg(HW_REG_MODE, 0, 8)
    m.run(&[0xb980_1801, 5, 0xb880_3801]);
    assert_eq!((m.wave.mode, m.wave.s32(0)), (0x3f5, 0xf5));
    m.wave.scc = true;
    m.wave.set_exec(0);
    m.run(&[0xb880_f802]); // s_getreg_b32 s0, hwreg(HW_REG_STATUS)
    let want = status::VALID | status::TRAP_EN | status::SCC | status::EXECZ | status::VCCZ;
    assert_eq!(m.wave.s32(0), want);
}

#[test]
fn code_changed_in_memory_is_seen_in_the_next_generation() {
    let mut m = gfx11();
    m.run(&[0x7e06_0281]); // v_mov_b32 v3, 1
    m.put(CODE, &[0x7e06_0282]); // v_mov_b32 v3, 2
    m.wave.pc = CODE;
    m.resume(10);
    assert_eq!(m.wave.v[3][0], 1, "an instruction cache is not coherent");
    m.cache.refresh(1, 0);
    m.wave.pc = CODE;
    m.resume(10);
    assert_eq!(m.wave.v[3][0], 2);
    // By itself: s_icache_inv, then over a word to code that was overwritten.
    m.put(CODE, &[0xbfbc_0000, 0xbfa0_0000, 0x7e06_0283, 0xbfb0_0000]);
    m.cache.refresh(2, 0);
    m.wave.pc = CODE + 8;
    m.resume(10);
    m.put(CODE + 8, &[0x7e06_0284]);
    m.wave.pc = CODE;
    m.resume(10);
    assert_eq!((m.wave.v[3][0], m.acquires.load(std::sync::atomic::Ordering::Relaxed)), (4, 1));
}

#[test]
fn words_that_are_no_instruction_halt_the_wave() {
    let mut m = gfx11();
    m.put(CODE, &[0x7e06_0281, 0xffff_ffff]);
    m.wave.pc = CODE;
    assert_eq!(m.resume(10), Stop::Halted(Some(Trouble::Illegal)));
    assert_eq!((m.wave.pc, m.wave.v[3][0], m.wave.clock), (CODE + 4, 1, 1));
    m.wave.pc = CODE + 2;
    assert_eq!(m.resume(10), Stop::Halted(Some(Trouble::Illegal)));
}
