//! Scalar ALU. Expected values are worked out by hand from the instruction set documents.

use super::*;

/// s[2:3] and s[4:5] before, s[0:1] and SCC after (s[0:1] starts as 0x55, SCC as given).
struct Case {
    word: u32,
    a: u64,
    b: u64,
    scc: bool,
    want: (u64, bool),
}

const fn case(word: u32, a: u64, b: u64, want: u64, scc: bool) -> Case {
    Case { word, a, b, scc: true, want: (want, scc) }
}

const KEPT: bool = true;

const CASES: &[Case] = &[
    case(0x8000_0402, 0xffff_ffff, 1, 0x55_0000_0000, true), // s_add_u32
    case(0x8000_0402, 1, 2, 0x55_0000_0003, false),
    case(0x8201_0503, 0xffff_ffff << 32, 0, 0x55, true), // s_addc_u32 s1, s3, s5: carry in
    case(0x8080_0402, 1, 2, 0x55_ffff_ffff, true),       // s_sub_u32
    case(0x8281_0503, 5 << 32, 4 << 32, 0x55, false),    // s_subb_u32 s1, s3, s5: borrow in
    case(0x8100_0402, 0x7fff_ffff, 1, 0x55_8000_0000, true), // s_add_i32
    case(0x8100_0402, 0xffff_ffff, 1, 0x55_0000_0000, false),
    case(0x9700_0402, 0xffff_ffff, 5, 0x55_ffff_ffff, KEPT), // s_mul_hi_i32
    case(0x9300_0402, 0x1234_5678, 0x0008_0004, 0x55_0000_0067, true), // s_bfe_u32
    case(0x9380_0402, 0x1234_5678, 0x0004_000c, 0x55_0000_0005, true), // s_bfe_i32
    case(0x9380_0402, 0x8000_0000, 0x0020_001c, 0x55_ffff_fff8, true), // field past the end
    case(0x9380_0402, 0x1234_5678, 0, 0x55_0000_0000, false), // no field
    case(0x9480_0402, 0xf000_0000_0000, 0x0004_002c, 0xffff_ffff_ffff_ffff, true), // s_bfe_i64
    case(0x9500_0402, 4, 8, 0x55_0000_0f00, KEPT),           // s_bfm_b32
    case(0x8480_0402, 1, 68, 16, true),                      // s_lshl_b64: count modulo 64
    case(0x8680_0402, 1 << 63, 63, !0, true),                // s_ashr_i64
    case(0x8900_0402, 0xffff_ffff, 1, 0x55_ffff_ffff, true), // s_min_i32
    case(0x8900_0402, 1, 0xffff_ffff, 0x55_ffff_ffff, false),
    case(0x8a80_0402, 1, 0xffff_ffff, 0x55_ffff_ffff, false), // s_max_u32
    case(0x8300_0402, 3, 5, 0x55_0000_0002, true),            // s_absdiff_i32
    case(0x8800_0402, 0x2000_0001, 2, 0x55_0000_000a, true),  // s_lshl3_add_u32
    case(0x9800_0402, 6, 7, 0x55_0000_0006, KEPT),            // s_cselect_b32
    case(0xbe80_0902, 1 << 40, 0, 0x55_0000_0028, KEPT),      // s_ctz_i32_b64
    case(0xbe80_0902, 0, 0, 0x55_ffff_ffff, KEPT),
    case(0xbe80_0a02, 0x0000_8000, 0, 0x55_0000_0010, KEPT), // s_clz_i32_u32
    case(0xbe80_0c02, 0xffff_8000, 0, 0x55_0000_0011, KEPT), // s_cls_i32
    case(0xbe80_0c02, 0, 0, 0x55_ffff_ffff, KEPT),
    case(0xbe80_1902, 0xff00_0000_0001, 0, 0x55_0000_0009, true), // s_bcnt1_i32_b64
    case(0xbe80_0402, 1, 0, 0x55_8000_0000, KEPT),                // s_brev_b32
    case(0xbe80_0e02, 0x80, 0, 0x55_ffff_ff80, KEPT),             // s_sext_i32_i8
    case(0xbe80_1402, 0x8000_0005, 0, 0xc000_0000_0000_0033, KEPT), // s_bitreplicate_b64_b32
    case(0xbe80_1d02, 0x0100_0000_0000_0020, 0, 0x0f00_0000_0000_00f0, true), // s_wqm_b64
    case(0xbe80_1a02, 0x1000_0003, 0, 0x55_0000_0081, true),      // s_quadmask_b32
    case(0x8e80_0402, !0, !0, 0, false),                          // s_nand_b64
    case(0x9980_0402, 0x1111_2222, 0x3333_4444, 0x55_3333_2222, KEPT), // s_pack_lh_b32_b16
    case(0xbf04_0402, 0xffff_ffff, 0, UNTOUCHED, true),           // s_cmp_lt_i32
    case(0xbf11_0402, 1 << 32, 0, UNTOUCHED, true),               // s_cmp_lg_u64
    case(0xbf0f_0402, 1 << 40, 40, UNTOUCHED, true),              // s_bitcmp1_b64
    case(0xb602_8000, 0x8000, 0, UNTOUCHED, true),                // s_cmpk_ge_u32: zero-extended
    case(0xb382_8000, 0xffff_0000, 0, UNTOUCHED, true),           // s_cmpk_lt_i32: sign-extended
    case(0xbe80_01eb, 0, 0, LDS_BASE, KEPT), // s_mov_b64 s[0:1], src_shared_base
    case(0xbe80_4700, 0, 0, CODE + 4, KEPT), // s_getpc_b64
    case(0xbefc_0002, 9, 0, UNTOUCHED, KEPT), // s_mov_b32 null, s2
    case(0xbe80_007c, 9, 0, 0x55_0000_0000, KEPT), // s_mov_b32 s0, null
];

const UNTOUCHED: u64 = 0x55_0000_0055;

#[test]
fn scalar_operations_give_the_documented_results() {
    for case in CASES {
        let mut m = gfx11();
        m.wave.set_s64(0, UNTOUCHED);
        m.wave.set_s64(2, case.a);
        m.wave.set_s64(4, case.b);
        m.wave.scc = case.scc;
        assert_eq!(m.run(&[case.word]), Stop::End, "{:#x}", case.word);
        let got = (m.wave.s64(0), m.wave.scc);
        assert_eq!(
            got, case.want,
            "{:#010x} of {:#x}, {:#x}: {:#x}",
            case.word, case.a, case.b, got.0
        );
    }
}

#[test]
fn in_place_additions_set_scc_on_signed_overflow() {
    let mut m = gfx11();
    m.wave.set_s32(2, 0x7fff_8001);
    m.run(&[0xb782_7fff]); // s_addk_i32 s2, 0x7fff
    assert_eq!((m.wave.s32(2), m.wave.scc), (0x8000_0000, true));
    m.run(&[0xb802_fffd]); // s_mulk_i32 s2, -3
    assert_eq!((m.wave.s32(2), m.wave.scc), (0x8000_0000, true));
}

#[test]
fn relative_moves_stay_inside_the_register_file() {
    let mut m = gfx11();
    m.wave.set_s32(7, 77);
    m.wave.set_s32(sgpr::M0, 5);
    m.run(&[0xbe80_4002]); // s_movrels_b32 s0, s2
    assert_eq!(m.wave.s32(0), 77);
    m.wave.set_s32(sgpr::M0, 1000);
    m.run(&[0xbe80_4002]);
    assert_eq!(m.wave.s32(0), 0);
}

#[test]
fn saveexec_limits_the_lanes_of_what_follows() {
    let mut m = gfx11();
    m.wave.set_s32(2, 0x8000_0001);
    m.run(&[0xbe80_2002, 0x7e06_0281]); // s_and_saveexec_b32 s0, s2; v_mov_b32 v3, 1
    assert_eq!(m.wave.s32(0), !0);
    assert!(m.wave.scc);
    let written: Vec<usize> = (0..32).filter(|&lane| m.wave.v[3][lane] == 1).collect();
    assert_eq!(written, [0, 31]);
}

#[test]
fn compares_write_zero_for_inactive_lanes() {
    let mut m = gfx90a();
    m.fill(0, |lane| lane);
    m.fill(1, |_| 40);
    m.wave.set_exec(0xffff_ffff_ffff_fffe);
    m.wave.set_s64(sgpr::VCC_LO, !0);
    // v_cmp_gt_u32 vcc, v1, v0; s_and_saveexec_b64 s[0:1], vcc; v_mov_b32 v3, 1
    assert_eq!(m.run(&[0x7d98_0101, 0xbe80_206a, 0x7e06_0281]), Stop::End);
    assert_eq!(m.wave.vcc(), 0xff_ffff_fffe);
    assert_eq!(m.wave.s64(0), 0xffff_ffff_ffff_fffe);
    assert_eq!((m.wave.v[3][0], m.wave.v[3][1], m.wave.v[3][39], m.wave.v[3][40]), (0, 1, 1, 0));
}

#[test]
fn a_wave32_compare_leaves_vcc_hi_alone() {
    let mut m = gfx11();
    m.fill(0, |lane| lane);
    m.fill(1, |_| 4);
    m.wave.set_s64(sgpr::VCC_LO, !0);
    m.run(&[0x7c98_0101]); // v_cmp_gt_u32 vcc_lo, v1, v0
    assert_eq!(m.wave.s64(sgpr::VCC_LO), 0xffff_ffff_0000_000f);
}

#[test]
fn both_halves_of_a_dual_issue_read_before_either_writes() {
    let mut m = gfx11();
    m.fill(0, |_| 1);
    m.fill(1, |_| 2);
    // v_dual_mov_b32 v0, v1 :: v_dual_mov_b32 v1, v0
    assert_eq!(m.run(&[0xca10_0101, 0x0000_0100]), Stop::End);
    assert_eq!((m.wave.v[0][5], m.wave.v[1][5]), (2, 1));
    assert_eq!(m.wave.clock, 2, "a pair is one instruction");
}
