use super::super::super::tests_rng::Rng;
use super::{F16, F32, F64, Format, Round, add, convert, div, fma, from_int, mul, scale, sqrt};

const CASES: usize = 300_000;

fn same32(got: u64, want: f32) -> bool {
    let got = f32::from_bits(got as u32);
    got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan()
}

fn same64(got: u64, want: f64) -> bool {
    got == want.to_bits() || f64::from_bits(got).is_nan() && want.is_nan()
}

#[test]
fn single_precision_to_nearest_equals_the_host() {
    let mut rng = Rng::new(1);
    for _ in 0..CASES {
        let (a, b, c) = (rng.f32(), rng.f32(), rng.f32());
        let [x, y, z] = [a, b, c].map(|v| u64::from(v.to_bits()));
        assert!(same32(add(x, y, F32, Round::Nearest), a + b), "{a:e} + {b:e}");
        assert!(same32(mul(x, y, F32, Round::Nearest), a * b), "{a:e} * {b:e}");
        assert!(same32(div(x, y, F32, Round::Nearest), a / b), "{a:e} / {b:e}");
        assert!(same32(sqrt(x, F32, Round::Nearest), a.sqrt()), "sqrt {a:e}");
        assert!(same32(fma(x, y, z, F32, Round::Nearest), a.mul_add(b, c)), "{a:e} {b:e} {c:e}");
    }
}

#[test]
fn double_precision_to_nearest_equals_the_host() {
    let mut rng = Rng::new(2);
    for _ in 0..CASES {
        let (a, b, c) = (rng.f64(), rng.f64(), rng.f64());
        let [x, y, z] = [a, b, c].map(f64::to_bits);
        assert!(same64(add(x, y, F64, Round::Nearest), a + b), "{a:e} + {b:e}");
        assert!(same64(mul(x, y, F64, Round::Nearest), a * b), "{a:e} * {b:e}");
        assert!(same64(div(x, y, F64, Round::Nearest), a / b), "{a:e} / {b:e}");
        assert!(same64(sqrt(x, F64, Round::Nearest), a.sqrt()), "sqrt {a:e}");
        assert!(same64(fma(x, y, z, F64, Round::Nearest), a.mul_add(b, c)), "{a:e} {b:e} {c:e}");
    }
}

#[test]
fn fma_near_cancellation_equals_the_host() {
    let mut rng = Rng::new(3);
    for _ in 0..CASES {
        let (a, b) = (rng.f64(), rng.f64());
        let c = f64::from_bits(
            (-(a * b)).to_bits().wrapping_add(u64::from(rng.below(5))).wrapping_sub(2),
        );
        let got = fma(a.to_bits(), b.to_bits(), c.to_bits(), F64, Round::Nearest);
        assert!(same64(got, a.mul_add(b, c)), "{a:e} {b:e} {c:e}");
    }
}

#[test]
fn conversions_to_nearest_equal_the_host() {
    let mut rng = Rng::new(4);
    for _ in 0..CASES {
        let (a, b, i) = (rng.f64(), rng.f32(), rng.u64() >> rng.below(64));
        assert!(same32(convert(a.to_bits(), F64, F32, Round::Nearest), a as f32), "{a:e}");
        assert!(
            same64(convert(u64::from(b.to_bits()), F32, F64, Round::Nearest), f64::from(b)),
            "{b:e}"
        );
        assert_eq!(from_int(false, i, F32, Round::Nearest), u64::from((i as f32).to_bits()), "{i}");
        assert_eq!(
            from_int(true, i >> 1, F64, Round::Nearest),
            (-((i >> 1) as i64) as f64).to_bits(),
            "{i}"
        );
    }
}

/// The value, and the next one above it in the order of the reals (zeros count as one).
fn adjacent_or_equal(low: f32, high: f32) -> bool {
    low == high || low.next_up() == high
}

#[test]
fn directed_modes_bracket_the_exact_result() {
    let mut rng = Rng::new(5);
    for _ in 0..CASES {
        let (a, b, c) = (rng.f32(), rng.f32(), rng.f32());
        let [x, y, z] = [a, b, c].map(|v| u64::from(v.to_bits()));
        let of = |round| f32::from_bits(fma(x, y, z, F32, round) as u32);
        let [near, up, down, zero] = [Round::Nearest, Round::Up, Round::Down, Round::Zero].map(of);
        if near.is_nan() {
            assert!(up.is_nan() && down.is_nan() && zero.is_nan());
            continue;
        }
        assert!(adjacent_or_equal(down, up), "{a:e} * {b:e} + {c:e}: {down:e} .. {up:e}");
        assert!(near == down || near == up, "{a:e} * {b:e} + {c:e}");
        assert_eq!(zero, if near.is_sign_negative() { up } else { down }, "{a:e} * {b:e} + {c:e}");
        // A product of singles is exact in double: compare it without a third operand.
        let product = f64::from(a) * f64::from(b);
        let low = f32::from_bits(mul(x, y, F32, Round::Down) as u32);
        let high = f32::from_bits(mul(x, y, F32, Round::Up) as u32);
        if !product.is_nan() {
            assert!(f64::from(low) <= product && product <= f64::from(high), "{a:e} * {b:e}");
        }
    }
}

#[test]
fn exact_cancellation_is_negative_zero_only_when_rounding_down() {
    let one = u64::from(1f32.to_bits());
    let minus = u64::from((-1f32).to_bits());
    for round in [Round::Nearest, Round::Up, Round::Zero] {
        assert_eq!(add(one, minus, F32, round), 0);
    }
    assert_eq!(add(one, minus, F32, Round::Down), 1 << 31);
}

#[test]
fn scaling_equals_multiplication_by_a_power_of_two() {
    let mut rng = Rng::new(6);
    for _ in 0..CASES {
        let a = rng.f64();
        let by = rng.below(2000) as i32 - 1000;
        let got = scale(a.to_bits(), by, F64, Round::Nearest);
        assert!(same64(got, a * 2f64.powi(by)), "{a:e} * 2^{by}");
    }
    assert_eq!(scale(1f64.to_bits(), i32::MAX, F64, Round::Nearest), f64::INFINITY.to_bits());
    assert_eq!(scale(1f64.to_bits(), i32::MIN, F64, Round::Nearest), 0);
}

#[test]
fn half_results_follow_from_double_arithmetic() {
    // Every pair of a stride through all halves: sum and product are exact in double.
    fn value(bits: u64) -> f64 {
        f64::from_bits(convert(bits, F16, F64, Round::Nearest))
    }
    fn check(format: Format) {
        for a in (0..0x10000u64).step_by(37) {
            for b in (0..0x10000u64).step_by(1021) {
                let sum = convert((value(a) + value(b)).to_bits(), F64, format, Round::Nearest);
                let product = convert((value(a) * value(b)).to_bits(), F64, format, Round::Nearest);
                let (got_sum, got_product) =
                    (add(a, b, format, Round::Nearest), mul(a, b, format, Round::Nearest));
                assert!(
                    got_sum == sum || format.is_nan(got_sum) && format.is_nan(sum),
                    "{a:04x} + {b:04x}"
                );
                assert!(
                    got_product == product || format.is_nan(got_product) && format.is_nan(product),
                    "{a:04x} * {b:04x}"
                );
            }
        }
    }
    check(F16);
}
