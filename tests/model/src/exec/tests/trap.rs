//! Exceptions, with and without a second-level handler.

use super::*;
use crate::exec::context::Trouble;

const TTMP: usize = sgpr::TTMP0 as usize;

#[test]
fn s_trap_without_a_handler_is_skipped() {
    let mut m = gfx11();
    assert_eq!(m.run(&[0xbf90_0002, 0x7e06_0281]), Stop::End); // s_trap 2; v_mov_b32 v3, 1
    assert_eq!(m.wave.v[3][0], 1);
}

#[test]
fn s_trap_enters_the_handler_with_its_number_and_rfe_returns() {
    let mut m = gfx11();
    // s_mov_b32 ttmp4, 1; s_add_u32 ttmp0, ttmp0, 4; s_rfe_b64 ttmp[0:1]
    m.handler(&[0xbef0_0081, 0x806c_846c, 0xbe80_4a6c]);
    assert_eq!(m.run(&[0xbf90_0002, 0x7e06_0281]), Stop::End);
    assert_eq!(m.wave.s32(sgpr::TTMP0 + 1), 2 << 16);
    assert_eq!(m.wave.s64(sgpr::TTMP0 + 2), HANDLER);
    assert_eq!((m.wave.s[TTMP + 4], m.wave.s64(sgpr::TTMP0 + 14)), (1, 0x1234_5678_9abc));
    assert_eq!(
        m.wave.s[TTMP + 12] & (status::PRIV | status::TRAP_EN),
        status::PRIV | status::TRAP_EN
    );
    assert_eq!((m.wave.v[3][0], m.wave.status & status::PRIV), (1, 0));
}

#[test]
fn a_handler_halts_its_wave_by_setting_status() {
    let mut m = gfx90a();
    // s_bitset1_b32 ttmp12, 13; s_setreg_b32 hwreg(HW_REG_STATUS), ttmp12; s_rfe_b64 ttmp[0:1]
    m.handler(&[0xbef8_1a8d, 0xb978_f802, 0xbe80_1f6c]);
    m.put(CODE, &[0xffff_ffff]);
    m.wave.pc = CODE;
    assert_eq!(m.resume(100), Stop::Halted(None));
    assert_eq!(m.wave.trapsts, status::ILLEGAL_INST);
    assert_eq!((m.wave.pc, m.wave.status & status::HALT), (CODE, status::HALT));
    assert_eq!(m.wave.s32(sgpr::TTMP0 + 1) >> 16, 0, "an exception has no trap number");
}

#[test]
fn an_exception_in_the_handler_halts() {
    let mut m = gfx11();
    m.handler(&[0xffff_ffff]);
    assert_eq!(m.run(&[0xbf90_0002]), Stop::Halted(Some(Trouble::Illegal)));
    assert_eq!(m.wave.pc, HANDLER);
}

#[test]
fn messages_of_a_handler_are_privileged() {
    let mut m = gfx11();
    // s_mov_b32 m0, 0x1234; s_sendmsg sendmsg(MSG_INTERRUPT); s_add_u32 ttmp0, ...; s_rfe_b64
    m.handler(&[0xbefd_00ff, 0x0000_1234, 0xbfb6_0001, 0x806c_846c, 0xbe80_4a6c]);
    assert_eq!(m.run(&[0xbf90_0003]), Stop::Interrupt);
    assert_eq!(m.interrupts, [(0x1234, true)]);
    assert_eq!(m.resume(100), Stop::End);
}

#[test]
fn a_wave_with_traps_off_skips_s_trap_and_halts_only_fatally() {
    let mut m = gfx11();
    m.handler(&[0xffff_ffff]);
    m.wave.status = status::VALID | status::PRIV;
    // s_trap 2; s_sethalt 1 (waits for a return); s_sethalt 5 (at once)
    assert_eq!(m.run(&[0xbf90_0002, 0xbf82_0001, 0xbf82_0005]), Stop::Halted(None));
    assert_eq!(m.wave.pc, CODE + 8);
    assert_eq!(m.run(&[0xffff_ffff]), Stop::Halted(Some(Trouble::Illegal)));
}

#[test]
fn s_rfe_outside_a_handler_is_illegal() {
    let mut m = gfx11();
    assert_eq!(m.run(&[0xbe80_4a6c]), Stop::Halted(Some(Trouble::Illegal)));
}
