// Second-level trap handler for gfx11. Registers on entry, and the reasons: docs/ABI.md §Trap.
//
// The first level leaves ttmp[2:5] free; ttmp7 belongs to this level; ttmp6[31:25] likewise.
//   ttmp0, ttmp1   PC; ttmp1[23:16] trap id, ttmp1[24] host trap
//   ttmp12         STATUS
//   ttmp[14:15]    0, or the address of a table of signals indexed by doorbell
// Uses: ttmp2 exceptions (bit = code - 1), ttmp3 doorbell.

.set TRAP_ID, 16 | 8 << 16        // s_bfe field of ttmp1
.set HOST_TRAP, 24                // bit of ttmp1
.set DEBUGGER, 23                 // bit of ttmp11: a debugger is attached
.set HALT, 13                     // bits of STATUS
.set NO_VGPRS, 24
.set MEM_VIOL, 8                  // bits of TRAPSTS
.set ILLEGAL_INST, 11
.set XNACK_ERROR, 28
.set ABORT, 0                     // bits of ttmp2: exception code - 1
.set TRAP, 1
.set MATH, 2
.set ILLEGAL, 3
.set MEMORY, 4
.set APERTURE, 5

entry:
  s_bfe_u32       ttmp2, ttmp1, TRAP_ID
  s_cbranch_scc0  stop                          // an exception
  s_bitcmp1_b32   ttmp1, HOST_TRAP
  s_cbranch_scc1  stop
  s_add_u32       ttmp0, ttmp0, 4               // the PC is that of the s_trap
  s_addc_u32      ttmp1, ttmp1, 0
  s_cmp_eq_u32    ttmp2, 3
  s_cbranch_scc0  stop
  s_bitcmp1_b32   ttmp11, DEBUGGER
  s_cbranch_scc1  stop
  // A debug trap and nobody to tell: go on, unless the wave is also in error.
  s_getreg_b32    ttmp3, hwreg(HW_REG_TRAPSTS)
  s_and_b32       ttmp3, ttmp3, 1 << MEM_VIOL | 1 << ILLEGAL_INST | 1 << XNACK_ERROR
  s_cbranch_scc0  return

stop:
  // For a debugger: ttmp6[28:25] trap id, [29] HALT on entry, [30] stopped by the handler.
  s_min_u32       ttmp2, ttmp2, 15
  s_lshl_b32      ttmp2, ttmp2, 25
  s_and_not1_b32  ttmp6, ttmp6, 0x3e000000
  s_or_b32        ttmp6, ttmp6, ttmp2
  s_and_b32       ttmp3, ttmp12, 1 << HALT
  s_lshl_b32      ttmp3, ttmp3, 29 - HALT
  s_or_b32        ttmp6, ttmp6, ttmp3
  s_bitset1_b32   ttmp6, 30

  s_mov_b32       ttmp2, 0
  s_getreg_b32    ttmp3, hwreg(HW_REG_TRAPSTS)
  s_bitcmp1_b32   ttmp3, XNACK_ERROR
  s_cbranch_scc0  not_memory
  s_bitset1_b32   ttmp2, MEMORY
  s_branch        not_aperture
not_memory:
  s_bitcmp1_b32   ttmp3, MEM_VIOL
  s_cbranch_scc0  not_aperture
  s_bitset1_b32   ttmp2, APERTURE
not_aperture:
  s_bitcmp1_b32   ttmp3, ILLEGAL_INST
  s_cbranch_scc0  not_illegal
  s_bitset1_b32   ttmp2, ILLEGAL
not_illegal:
  s_getreg_b32    ttmp4, hwreg(HW_REG_MODE, 12, 7)
  s_and_b32       ttmp4, ttmp4, ttmp3           // raised and enabled
  s_cbranch_scc0  not_math
  s_bitset1_b32   ttmp2, MATH
not_math:
  s_bfe_u32       ttmp4, ttmp1, TRAP_ID
  s_cmp_eq_u32    ttmp4, 2
  s_cbranch_scc0  not_abort
  s_bitset1_b32   ttmp2, ABORT
not_abort:
  s_cmp_eq_u32    ttmp2, 0
  s_cbranch_scc0  ask
  s_bitset1_b32   ttmp2, TRAP                   // another trap, address watch, single step

ask:
  s_sendmsg_rtn_b32 ttmp3, sendmsg(MSG_RTN_GET_DOORBELL)
  s_waitcnt       lgkmcnt(0)
  s_and_b32       ttmp3, ttmp3, 0x3ff

  s_cmp_eq_u64    ttmp[14:15], 0
  s_cbranch_scc1  message
  s_lshl_b32      ttmp4, ttmp3, 3
  s_load_b64      ttmp[4:5], ttmp[14:15], ttmp4 glc
  s_waitcnt       lgkmcnt(0)
  s_cmp_eq_u64    ttmp[4:5], 0
  s_cbranch_scc1  message
  s_bitcmp1_b32   ttmp12, NO_VGPRS
  s_cbranch_scc1  message                       // nothing left to store with

  // KFD before 1.13. ttmp[4:5] is the signal: value at 8, mailbox at 16, event id at 24.
  // There are no scalar stores: lane 0 of v0 stores, with EXEC and what was in it kept.
  s_mov_b32       ttmp3, 0                      // low half of the value: AMD's bits
  s_and_b32       ttmp7, ttmp2, 1 << MEMORY | 1 << APERTURE
  s_cbranch_scc0  value_not_memory
  s_bitset1_b32   ttmp3, 29
value_not_memory:
  s_bitcmp1_b32   ttmp2, ILLEGAL
  s_cbranch_scc0  value_not_illegal
  s_bitset1_b32   ttmp3, 30
value_not_illegal:
  s_and_b32       ttmp7, ttmp2, 1 << ABORT | 1 << TRAP | 1 << MATH
  s_cbranch_scc0  value_done
  s_bitset1_b32   ttmp3, 31
value_done:
  s_mov_b32       ttmp14, exec_lo
  s_mov_b32       ttmp15, exec_hi
  v_readlane_b32  ttmp7, v0, 0
  s_mov_b64       exec, 1
  v_writelane_b32 v0, ttmp2, 0                  // high half first: the exceptions
  global_store_addtid_b32 v0, ttmp[4:5] offset:12 glc slc
  s_waitcnt_vscnt null, 0
  v_writelane_b32 v0, ttmp3, 0
  global_store_addtid_b32 v0, ttmp[4:5] offset:8 glc slc
  s_waitcnt_vscnt null, 0
  s_load_b64      ttmp[2:3], ttmp[4:5], 16 glc
  s_waitcnt       lgkmcnt(0)
  s_load_b32      ttmp4, ttmp[4:5], 24 glc
  s_waitcnt       lgkmcnt(0)
  s_cmp_eq_u64    ttmp[2:3], 0
  s_cbranch_scc1  stored                        // the host only polls
  v_writelane_b32 v0, ttmp4, 0
  global_store_addtid_b32 v0, ttmp[2:3] glc slc
  s_waitcnt_vscnt null, 0
stored:
  v_writelane_b32 v0, ttmp7, 0
  s_mov_b32       exec_lo, ttmp14
  s_mov_b32       exec_hi, ttmp15
  s_cmp_eq_u64    ttmp[2:3], 0
  s_cbranch_scc1  halt
  s_mov_b32       ttmp3, ttmp4
  s_branch        send

message:
  s_lshl_b32      ttmp2, ttmp2, 10
  s_or_b32        ttmp3, ttmp3, ttmp2
send:
  s_mov_b32       ttmp2, m0
  s_mov_b32       m0, ttmp3
  s_nop           0
  s_sendmsg       sendmsg(MSG_INTERRUPT)
  s_waitcnt       lgkmcnt(0)
  s_mov_b32       m0, ttmp2

halt:
  // A halted wave must not rest on an s_endpgm, or it cannot be saved. Its PC goes to ttmp7 and
  // ttmp11[22:7], where a debugger looks for it.
  s_bitset1_b32   ttmp12, HALT
  s_mov_b32       ttmp7, ttmp0
  s_and_b32       ttmp1, ttmp1, 0xffff
  s_lshl_b32      ttmp1, ttmp1, 7
  s_and_not1_b32  ttmp11, ttmp11, 0xffff << 7
  s_or_b32        ttmp11, ttmp11, ttmp1
  s_getpc_b64     ttmp[0:1]
here:
  s_add_u32       ttmp0, ttmp0, parked - here
  s_addc_u32      ttmp1, ttmp1, 0

return:
  s_and_b32       ttmp1, ttmp1, 0xffff
  s_and_b64       exec, exec, exec              // EXECZ and VCCZ, which s_setreg cannot write
  s_and_b64       vcc, vcc, vcc
  s_setreg_b32    hwreg(HW_REG_STATUS), ttmp12
  s_rfe_b64       ttmp[0:1]

parked:
  s_sethalt       1
  s_branch        parked

  // The instruction cache fetches ahead.
.rept (256 - (. - entry) % 64) / 4
  s_code_end
.endr
