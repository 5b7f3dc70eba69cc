//! Negation, absolute value, half selects, SDWA, clamping, scaling, and MODE.

use super::super::step;
use super::super::tests_rng::Rng;
use super::harness::{GFX90A, GFX1100, MODE, wave, with};
use crate::exec::{Env, Wave};
use crate::isa::Op;
use crate::isa::ir::{Mods, Sdwa};

/// Runs one lane: `v2`, `v4`, `v6` to `v20`.
fn lane(op: Op, mods: Mods, sources: [u32; 3], mode: u32, env: &Env) -> u32 {
    let mut w = Wave::<32>::new();
    w.mode = mode;
    w.set_exec(1);
    for (k, value) in sources.into_iter().enumerate() {
        w.v[2 + 2 * k][0] = value;
    }
    w.v[20] = [0xaaaa_bbbb; 32];
    let (inst, code) = with(op, mods);
    assert!(step::<_, true>(&mut w, &inst, &code, env), "{op:?}");
    assert_eq!(w.v[20][1..], [0xaaaa_bbbb; 31]);
    w.v[20][0]
}

fn f(x: f32) -> u32 {
    x.to_bits()
}

#[test]
fn absolute_value_comes_before_negation() {
    let mods = Mods { neg: 0b001, abs: 0b011, ..Mods::default() };
    let got = lane(Op::VFmaF32, mods, [f(-2.0), f(-3.0), f(-1.0)], MODE, &GFX1100);
    assert_eq!(got, f(-2.0f32 * 3.0 - 1.0));
    // Moves and selects take them too; integers do not.
    let neg = Mods { neg: 1, ..Mods::default() };
    assert_eq!(lane(Op::VMovB32, neg, [f(1.5), 0, 0], MODE, &GFX1100), f(-1.5));
    assert_eq!(lane(Op::VNotB32, neg, [0, 0, 0], MODE, &GFX1100), u32::MAX);
}

#[test]
fn clamping_keeps_floats_in_zero_to_one_and_saturates_integers() {
    let clamp = Mods { clamp: true, ..Mods::default() };
    assert_eq!(lane(Op::VAddF32, clamp, [f(0.75), f(0.5), 0], MODE, &GFX1100), f(1.0));
    assert_eq!(lane(Op::VAddF32, clamp, [f(-0.75), f(0.5), 0], MODE, &GFX1100), 0);
    assert_eq!(lane(Op::VAddF32, clamp, [f(f32::NAN), f(0.5), 0], MODE, &GFX1100), 0);
    assert!(
        f32::from_bits(lane(Op::VAddF32, clamp, [f(f32::NAN), f(0.5), 0], MODE & !0x100, &GFX1100))
            .is_nan()
    );
    assert_eq!(lane(Op::VAddNcU32, clamp, [u32::MAX, 2, 0], MODE, &GFX90A), u32::MAX);
    assert_eq!(lane(Op::VSubNcU32, clamp, [1, 2, 0], MODE, &GFX90A), 0);
    assert_eq!(
        lane(Op::VAddNcI32, clamp, [i32::MIN as u32, u32::MAX, 0], MODE, &GFX90A),
        i32::MIN as u32
    );
}

#[test]
fn scaling_works_only_where_denormals_are_flushed() {
    let double = Mods { omod: 1, ..Mods::default() };
    let half = Mods { omod: 3, ..Mods::default() };
    let flush = MODE & !0x30;
    assert_eq!(lane(Op::VAddF32, double, [f(1.0), f(0.5), 0], MODE, &GFX1100), f(1.5));
    assert_eq!(lane(Op::VAddF32, double, [f(1.0), f(0.5), 0], flush, &GFX1100), f(3.0));
    assert_eq!(lane(Op::VAddF32, half, [f(1.0), f(0.5), 0], flush, &GFX1100), f(0.75));
}

#[test]
fn mode_flushes_sources_and_results_each_by_its_bit() {
    let tiny = f32::from_bits(3);
    let none = Mods::default();
    let add = |mode: u32| lane(Op::VAddF32, none, [f(tiny), f(tiny), 0], mode, &GFX1100);
    assert_eq!(add(MODE), 6);
    assert_eq!(add(MODE & !0x30), 0);
    assert_eq!(add(MODE & !0x30 | 0x10), 0, "result flushed");
    assert_eq!(add(MODE & !0x30 | 0x20), 0, "sources flushed");
    let small = f32::MIN_POSITIVE;
    let difference =
        |mode: u32| lane(Op::VSubF32, none, [f(small * 1.5), f(small), 0], mode, &GFX1100);
    assert_eq!(difference(MODE & !0x30 | 0x20), f(small * 0.5), "a denormal result is kept");
    assert_eq!(difference(MODE & !0x30 | 0x10), 0);
    // The field of single precision does not touch half precision, moves or integers.
    assert_eq!(lane(Op::VAddF16, none, [3, 3, 0], MODE & !0x30, &GFX90A), 6);
    assert_eq!(lane(Op::VAddF16, none, [3, 3, 0], MODE & !0xc0, &GFX90A), 0);
    assert_eq!(lane(Op::VMovB32, none, [3, 0, 0], MODE & !0xf0, &GFX1100), 3);
}

#[test]
fn mode_rounds_each_precision_by_its_field() {
    let none = Mods::default();
    let third = |mode: u32| lane(Op::VMulF32, none, [f(1.0 / 3.0), f(1.1), 0], mode, &GFX1100);
    let exact = f64::from(1.0f32 / 3.0) * f64::from(1.1f32);
    let (up, down, zero) = (third(MODE | 1), third(MODE | 2), third(MODE | 3));
    assert_eq!(f32::from_bits(down).next_up().to_bits(), up);
    assert!(f64::from(f32::from_bits(down)) < exact && exact < f64::from(f32::from_bits(up)));
    assert_eq!(zero, down);
    assert_eq!(third(MODE | 4), third(MODE), "the other field is for half and double");
    // 2049 lies between the halves 2048 and 2050.
    let narrow = |mode: u32| lane(Op::VCvtF16F32, none, [f(2049.0), 0, 0], mode, &GFX90A);
    assert_eq!([narrow(MODE), narrow(MODE | 4), narrow(MODE | 8)], [0x6800, 0x6801, 0x6800]);
}

#[test]
fn sixteen_bit_results_clear_the_other_half_on_gfx9_only() {
    let none = Mods::default();
    let add = |env: &Env| lane(Op::VAddNcU16, none, [0x1_0001, 0x2_0002, 0], MODE, env);
    assert_eq!((add(&GFX90A), add(&GFX1100)), (3, 0xaaaa_0003));
    // v_mad_u16 is one of those that keep it on gfx9 as well.
    assert_eq!(lane(Op::VMadU16, none, [2, 3, 4], MODE, &GFX90A), 0xaaaa_000a);
    assert_eq!(lane(Op::VMadLegacyU16, none, [2, 3, 4], MODE, &GFX90A), 10);
}

#[test]
fn half_selects_choose_source_and_destination_halves() {
    let mods = Mods { opsel: 0b1010, ..Mods::default() };
    let got = lane(Op::VAddNcU16, mods, [0x0100_0001, 0x0002_0300, 0], MODE, &GFX1100);
    assert_eq!(got, 0x0003_bbbb);
}

#[test]
fn sdwa_selects_extends_and_deposits() {
    let sdwa = Sdwa { src_sel: [1, 5], sext: [true, false], dst_sel: 4, dst_unused: 2 };
    let mods = Mods { sdwa: Some(sdwa), ..Mods::default() };
    let got = lane(Op::VAddNcU32, mods, [0x0000_ff00, 0x0010_0000, 0], MODE, &GFX90A);
    assert_eq!(got, 0xaaaa_000f);
}

#[test]
fn packed_operations_take_halves_as_selected() {
    let plain = Mods { opsel_hi: 7, ..Mods::default() };
    let (a, b) = (0x0005_0003, 0x0007_ffff);
    assert_eq!(lane(Op::VPkAddU16, plain, [a, b, 0], MODE, &GFX1100), 0x000c_0002);
    // Low: a.hi + b.lo; high: a.lo + b.lo.
    let crossed = Mods { opsel: 0b01, opsel_hi: 0b00, ..Mods::default() };
    assert_eq!(lane(Op::VPkAddU16, crossed, [a, b, 0], MODE, &GFX1100), 0x0002_0004);
    let saturating = Mods { clamp: true, ..plain };
    assert_eq!(lane(Op::VPkAddU16, saturating, [a, b, 0], MODE, &GFX1100), 0x000c_ffff);
    // 1.0 and 2.0 in halves; the high one of source 0 negated.
    let negated = Mods { neg_hi: 1, ..plain };
    assert_eq!(
        lane(Op::VPkAddF16, negated, [0x4000_3c00, 0x3c00_3c00, 0], MODE, &GFX1100),
        0xbc00_4000
    );
    assert_eq!(
        lane(Op::VPkFmaF16, plain, [0x4000_4000, 0x4200_4200, 0x3c00_0000], MODE, &GFX1100),
        0x4700_4600
    );
}

#[test]
fn mixed_precision_reads_each_source_as_its_bit_says() {
    let plain = Mods::default();
    let sources = [f(2.0), f(3.0), f(0.5)];
    assert_eq!(lane(Op::VFmaMixF32, plain, sources, MODE, &GFX1100), f(6.5));
    // Source 1 is the high half, made absolute and negated.
    let mods = Mods { opsel: 2, opsel_hi: 2, neg_hi: 2, neg: 2, ..plain };
    let sources = [f(2.0), 0xc200_0000, f(0.5)];
    assert_eq!(lane(Op::VFmaMixF32, mods, sources, MODE, &GFX1100), f(-5.5));
    assert_eq!(lane(Op::VFmaMixloF16, mods, sources, MODE, &GFX1100), 0xaaaa_c580);
    assert_eq!(lane(Op::VFmaMixhiF16, mods, sources, MODE, &GFX1100), 0xc580_bbbb);
}

#[test]
fn dot_products_accumulate_into_source_two() {
    let plain = Mods { opsel_hi: 7, ..Mods::default() };
    let (a, b) = (0xff02_0304, 0x0102_0304);
    assert_eq!(lane(Op::VDot4I32I8, plain, [a, b, 100], MODE, &GFX90A), 100 - 1 + 4 + 9 + 16);
    assert_eq!(lane(Op::VDot4U32U8, plain, [a, b, 100], MODE, &GFX90A), 100 + 255 + 4 + 9 + 16);
    let signed_a = Mods { neg: 1, ..plain };
    assert_eq!(lane(Op::VDot4I32Iu8, signed_a, [a, b, 100], MODE, &GFX1100), 100 - 1 + 4 + 9 + 16);
    assert_eq!(lane(Op::VDot2I32I16, plain, [0xffff_0002, 0x0003_0005, 1], MODE, &GFX90A), 8);
    assert_eq!(
        lane(Op::VDot2F32F16, plain, [0x4000_3c00, 0x4200_4400, f(0.5)], MODE, &GFX90A),
        f(10.5)
    );
    assert_eq!(
        lane(Op::VDot2F32Bf16, plain, [0x4000_3f80, 0x4040_4080, f(0.5)], MODE, &GFX1100),
        f(10.5)
    );
    let clamp = Mods { clamp: true, ..plain };
    assert_eq!(lane(Op::VDot4U32U8, clamp, [a, b, u32::MAX], MODE, &GFX90A), u32::MAX);
}

#[test]
fn two_precision_words_of_a_pair_are_selected_apart() {
    let mut rng = Rng::new(400);
    let mut w = wave::<64>(&mut rng);
    for reg in [2, 3, 4, 5] {
        w.v[reg] = std::array::from_fn(|lane| f((reg * 100 + lane) as f32));
    }
    let before = w.v.clone();
    // Low: a.high * b.low; high: a.low * b.high, negated.
    let mods = Mods { opsel: 0b01, opsel_hi: 0b10, neg_hi: 0b10, ..Mods::default() };
    let (inst, code) = with(Op::VPkMulF32, mods);
    assert!(step::<_, true>(&mut w, &inst, &code, &GFX90A));
    let value = |reg: usize, lane: usize| f32::from_bits(before[reg][lane]);
    for lane in (0..64).filter(|&lane| w.exec() >> lane & 1 == 1) {
        assert_eq!(f32::from_bits(w.v[20][lane]), value(3, lane) * value(4, lane));
        assert_eq!(f32::from_bits(w.v[21][lane]), value(2, lane) * -value(5, lane));
    }
    let (inst, code) = with(Op::VPkMovB32, Mods { opsel: 0b10, opsel_hi: 7, ..Mods::default() });
    assert!(step::<_, true>(&mut w, &inst, &code, &GFX90A));
    for lane in (0..64).filter(|&lane| w.exec() >> lane & 1 == 1) {
        assert_eq!((w.v[20][lane], w.v[21][lane]), (before[2][lane], before[5][lane]));
    }
}
