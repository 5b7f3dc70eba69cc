//! Scalar floats of gfx1150: values are worked out by hand from the instruction set document.

use super::*;

fn machine() -> Machine<32> {
    let mut m = Machine::new(Target::Gfx1150);
    m.wave.mode = 0x3f0; // to nearest, denormals, IEEE
    m
}

const fn f(x: f32) -> u32 {
    x.to_bits()
}

const QUIET: u32 = 0x7fc0_0001;
const SIGNALLING: u32 = 0x7f80_0001;
const DENORMAL: u32 = 0x0000_0003;
/// Halves.
const ONE: u32 = 0x3c00;
const TWO: u32 = 0x4000;

#[test]
fn results_are_those_of_the_definition() {
    // Words, s2, s4 and s0 before; s0 after.
    for (words, a, b, old, want) in [
        (&[0xa000_0402][..], f(1.5), f(2.25), 0, f(3.75)), // s_add_f32
        (&[0xa080_0402], f(1.5), f(2.25), 0, f(-0.75)),    // s_sub_f32
        (&[0xa200_0402], f(-1.5), f(2.0), 0, f(-3.0)),     // s_mul_f32
        (&[0xa100_0402], f(-0.0), f(0.0), 0, f(-0.0)),     // s_min_f32: -0 < +0
        (&[0xa100_0402], f(0.0), f(-0.0), 0, f(-0.0)),
        (&[0xa100_0402], QUIET, f(2.0), 0, f(2.0)),
        (&[0xa100_0402], f(2.0), SIGNALLING, 0, 0x7fc0_0001), // quieted, with IEEE
        (&[0xa180_0402], f(-0.0), f(0.0), 0, f(0.0)),         // s_max_f32
        (&[0xa180_0402], f(3.0), f(-4.0), 0, f(3.0)),
        // s_fmac_f32: one rounding. (1 + 2^-12)^2 - 1 - 2^-11 = 2^-24.
        (&[0xa380_0402], 0x3f80_0800, 0x3f80_0800, f(-1.000_488_3), f(5.960_464_5e-8)),
        (&[0xa280_0402, 0x4040_0000], f(2.0), f(5.0), 0, f(13.0)), // s_fmaak_f32, 3.0
        (&[0xa300_0402, 0x4040_0000], f(2.0), f(5.0), 0, f(11.0)), // s_fmamk_f32, 3.0
        (&[0xbe80_6002], f(-0.5), 0, 0, f(-0.0)),                  // s_ceil_f32
        (&[0xbe80_6002], f(1.25), 0, 0, f(2.0)),
        (&[0xbe80_6102], f(-1.25), 0, 0, f(-2.0)), // s_floor_f32
        (&[0xbe80_6202], f(-1.75), 0, 0, f(-1.0)), // s_trunc_f32
        (&[0xbe80_6302], f(2.5), 0, 0, f(2.0)),    // s_rndne_f32
        (&[0xbe80_6302], f(3.5), 0, 0, f(4.0)),
        (&[0xbe80_6402], 0x8000_0000, 0, 0, f(-2_147_483_648.0)), // s_cvt_f32_i32
        (&[0xbe80_6402], 0x0100_0001, 0, 0, f(16_777_216.0)),
        (&[0xbe80_6502], 0x8000_0000, 0, 0, f(2_147_483_648.0)), // s_cvt_f32_u32
        (&[0xbe80_6602], f(-2.9), 0, 0, -2i32 as u32),           // s_cvt_i32_f32
        (&[0xbe80_6602], f(3e9), 0, 0, 0x7fff_ffff),
        (&[0xbe80_6602], QUIET, 0, 0, 0),
        (&[0xbe80_6702], f(-1.0), 0, 0, 0), // s_cvt_u32_f32
        (&[0xbe80_6702], f(5e9), 0, 0, !0),
        (&[0xbe80_6802], f(1.0), 0, !0, ONE), // s_cvt_f16_f32 clears the high half
        (&[0xbe80_6802], f(65520.0), 0, 0, 0x7c00),
        (&[0xbe80_6902], 0x4000_3c00, 0, 0, f(1.0)), // s_cvt_f32_f16
        (&[0xbe80_6a02], 0x4000_3c00, 0, 0, f(2.0)), // s_cvt_hi_f32_f16
        // s_cvt_pk_rtz_f16_f32: 1 + 2^-11 + 2^-12 is cut to 1.
        (&[0xa400_0402], 0x3f80_1800, f(-2.0), 0, 0xc000_3c00),
        (&[0xa480_0402], 0xffff_3c00, TWO, !0, 0x4200), // s_add_f16: 3
        (&[0xa500_0402], ONE, TWO, !0, 0xbc00),         // s_sub_f16: -1
        (&[0xa680_0402], TWO, TWO, !0, 0x4400),         // s_mul_f16: 4
        (&[0xa580_0402], 0x8000, 0, !0, 0x8000),        // s_min_f16
        (&[0xa600_0402], 0x8000, 0, !0, 0),             // s_max_f16
        (&[0xa700_0402], TWO, TWO, 0xffff_3c00, 0x4500), // s_fmac_f16: 2 * 2 + 1
        (&[0xbe80_6b02], 0x3e00, 0, !0, TWO),           // s_ceil_f16 of 1.5
        (&[0xbe80_6c02], 0x3e00, 0, !0, ONE),           // s_floor_f16
        (&[0xbe80_6d02], 0xbe00, 0, !0, 0xbc00),        // s_trunc_f16 of -1.5
        (&[0xbe80_6e02], 0x4100, 0, !0, TWO),           // s_rndne_f16 of 2.5
    ] {
        let mut m = machine();
        for (reg, value) in [(0, old), (2, a), (4, b)] {
            m.wave.set_s32(reg, value);
        }
        m.wave.scc = true;
        assert_eq!(m.run(words), Stop::End);
        assert_eq!(m.wave.s32(0), want, "{:#010x} of {a:#x}, {b:#x}", words[0]);
        assert!(m.wave.scc, "only compares set SCC");
    }
}

#[test]
fn compares_tell_nan_apart_as_their_names_say() {
    let (less, equal, greater, nan) =
        ((f(1.0), f(2.0)), (f(2.0), f(2.0)), (f(3.0), f(2.0)), (QUIET, f(2.0)));
    // Opcode, and the answers for less, equal, greater, unordered.
    for (op, want) in [
        (0x41, [true, false, false, false]), // s_cmp_lt_f32
        (0x42, [false, true, false, false]), // eq
        (0x43, [true, true, false, false]),  // le
        (0x44, [false, false, true, false]), // gt
        (0x45, [true, false, true, false]),  // lg
        (0x46, [false, true, true, false]),  // ge
        (0x47, [true, true, true, false]),   // o
        (0x48, [false, false, false, true]), // u
        (0x49, [true, false, false, true]),  // nge
        (0x4a, [false, true, false, true]),  // nlg
        (0x4b, [true, true, false, true]),   // ngt
        (0x4c, [false, false, true, true]),  // nle
        (0x4d, [true, false, true, true]),   // neq
        (0x4e, [false, true, true, true]),   // nlt
    ] {
        let mut m = machine();
        for ((a, b), want) in [less, equal, greater, nan].into_iter().zip(want) {
            m.wave.set_s32(2, a);
            m.wave.set_s32(4, b);
            m.run(&[0xbf00_0402 | op << 16]);
            assert_eq!(m.wave.scc, want, "{op:#x} of {a:#x}");
            // The half-precision compares follow, 16 up; the same values as halves.
            let half =
                |x: u32| if x == QUIET { 0x7e00 } else { (f32::from_bits(x) as u32 + 14) << 10 };
            m.wave.set_s32(2, half(a) | 0xabcd_0000);
            m.wave.set_s32(4, half(b));
            m.run(&[0xbf00_0402 | (op + 0x10) << 16]);
            assert_eq!(m.wave.scc, want, "{:#x} of {a:#x}", op + 0x10);
        }
    }
}

#[test]
fn mode_rounds_and_flushes_scalar_results() {
    let third = |mode: u32, words: &[u32], a: u32, b: u32| {
        let mut m = machine();
        m.wave.mode = mode;
        m.wave.set_s32(2, a);
        m.wave.set_s32(4, b);
        m.run(words);
        m.wave.s32(0)
    };
    // 1 + 2^-24 up, to nearest even, down.
    let tiny = 0x3380_0000;
    assert_eq!(
        [0x3f0, 0x3f1, 0x3f2].map(|mode| third(mode, &[0xa000_0402], f(1.0), tiny)),
        [f(1.0), 0x3f80_0001, f(1.0)]
    );
    // Denormal sources are zero without bit 0 of the field, results without bit 1.
    assert_eq!(third(0x3f0, &[0xa000_0402], DENORMAL, DENORMAL), 6);
    assert_eq!(third(0x3e0, &[0xa000_0402], DENORMAL, DENORMAL), 0);
    assert_eq!(third(0x3d0, &[0xa200_0402], f(f32::MIN_POSITIVE), f(0.5)), 0);
    assert_eq!(third(0x3f0, &[0xa200_0402], f(f32::MIN_POSITIVE), f(0.5)), 0x0040_0000);
    // Halves have fields of their own: rounding 3:2, denormals 7:6.
    assert_eq!(third(0x3f4, &[0xa480_0402], ONE, 0x1000), 0x3c01); // 1 + 2^-11, up
    assert_eq!(third(0x3f1, &[0xa480_0402], ONE, 0x1000), 0x3c00);
    assert_eq!(third(0x330, &[0xa480_0402], 1, 1), 0);
    assert_eq!(third(0x3f0, &[0xa480_0402], 1, 1), 2);
}
