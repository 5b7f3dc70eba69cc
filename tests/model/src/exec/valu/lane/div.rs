//! The three helper operations of the division sequence. docs/ABI.md §Division.
//!
//! The compiler's sequence of v_div_scale, v_rcp, v_fma, v_div_fmas and v_div_fixup gives the IEEE
//! quotient with these rules; the published pseudo-code does not (it scales the wrong way in one
//! case, by the wrong amount in another, and rounds twice in a third).

use super::half::Half;
use super::soft::{self, F32, F64, Round};

fn exponent32(x: f32) -> i32 {
    (x.to_bits() >> 23 & 0xff) as i32
}

fn exponent64(x: f64) -> i32 {
    (x.to_bits() >> 52 & 0x7ff) as i32
}

/// v_div_scale_f32: the scaled `s0`, and whether v_div_fmas must scale its result. `s1` is the
/// denominator, `s2` the numerator, and `s0` is one of them.
pub fn div_scale_f32(s0: f32, s1: f32, s2: f32) -> (f32, bool) {
    const UP: f32 = (1u64 << 63) as f32 * 2.0; // 2^64
    const DOWN: f32 = 1.0 / UP;
    let is = |x: f32| s0.to_bits() == x.to_bits();
    if s1 == 0.0 || s2 == 0.0 {
        return (f32::NAN, false);
    }
    let quotient = s2 / s1;
    let tiny_quotient = quotient.abs() < f32::MIN_POSITIVE;
    let tiny_reciprocal = (1.0 / f64::from(s1)).abs() < f64::from(f32::MIN_POSITIVE);
    if exponent32(s2) - exponent32(s1) >= 96 {
        (if is(s1) { s0 * UP } else { s0 }, true)
    } else if s1.is_subnormal() {
        (s0 * UP, false)
    } else if tiny_reciprocal && tiny_quotient {
        (if is(s1) { s0 * DOWN } else { s0 }, true)
    } else if tiny_reciprocal {
        (s0 * DOWN, false)
    } else if tiny_quotient {
        (if is(s2) { s0 * UP } else { s0 }, true)
    } else if exponent32(s2) <= 23 {
        (s0 * UP, false)
    } else {
        (s0, false)
    }
}

/// v_div_scale_f64.
pub fn div_scale_f64(s0: f64, s1: f64, s2: f64) -> (f64, bool) {
    const UP: f64 = (1u64 << 63) as f64 * (1u64 << 63) as f64 * 4.0; // 2^128
    const DOWN: f64 = 1.0 / UP;
    let is = |x: f64| s0.to_bits() == x.to_bits();
    if s1 == 0.0 || s2 == 0.0 {
        return (f64::NAN, false);
    }
    let tiny = |x: f64| x.abs() < f64::MIN_POSITIVE;
    let tiny_quotient = tiny(s2 / s1);
    let tiny_reciprocal = tiny(1.0 / s1);
    if exponent64(s2) - exponent64(s1) >= 768 {
        (if is(s1) { s0 * UP } else { s0 }, true)
    } else if s1.is_subnormal() {
        (s0 * UP, false)
    } else if tiny_reciprocal && tiny_quotient {
        (if is(s1) { s0 * DOWN } else { s0 }, true)
    } else if tiny_reciprocal {
        (s0 * DOWN, false)
    } else if tiny_quotient {
        (if is(s2) { s0 * UP } else { s0 }, true)
    } else if exponent64(s2) <= 53 {
        (s0 * UP, false)
    } else {
        (s0, false)
    }
}

/// v_div_fmas_f32 where VCC is set: the fused result times 2^64 or 2^-64, rounded once.
pub fn div_fmas_scaled_f32(a: f32, b: f32, c: f32, round: Round) -> f32 {
    let by = if exponent32(c) > 127 { 64 } else { -64 };
    let [a, b, c] = [a, b, c].map(|x| u64::from(x.to_bits()));
    f32::from_bits(soft::fma_scaled(a, b, c, by, F32, round) as u32)
}

/// v_div_fmas_f64 where VCC is set: times 2^128 or 2^-128.
pub fn div_fmas_scaled_f64(a: f64, b: f64, c: f64, round: Round) -> f64 {
    let by = if exponent64(c) > 1023 { 128 } else { -128 };
    f64::from_bits(soft::fma_scaled(a.to_bits(), b.to_bits(), c.to_bits(), by, F64, round))
}

/// v_div_fixup_f32: `q` is the quotient, `s1` the denominator, `s2` the numerator.
pub fn div_fixup_f32(q: f32, s1: f32, s2: f32) -> f32 {
    let sign = (s1.to_bits() ^ s2.to_bits()) & 1 << 31;
    let signed = |magnitude: f32| f32::from_bits(magnitude.to_bits() & !(1 << 31) | sign);
    if s2.is_nan() {
        f32::from_bits(s2.to_bits() | 0x0040_0000)
    } else if s1.is_nan() {
        f32::from_bits(s1.to_bits() | 0x0040_0000)
    } else if s1 == 0.0 && s2 == 0.0 || s1.is_infinite() && s2.is_infinite() {
        f32::from_bits(0xffc0_0000)
    } else if s1 == 0.0 || s2.is_infinite() {
        signed(f32::INFINITY)
    } else if s1.is_infinite() || s2 == 0.0 || exponent32(s2) - exponent32(s1) < -150 {
        signed(0.0)
    } else if exponent32(q) == 255 {
        signed(f32::INFINITY)
    } else {
        signed(q)
    }
}

/// v_div_fixup_f64.
pub fn div_fixup_f64(q: f64, s1: f64, s2: f64) -> f64 {
    let sign = (s1.to_bits() ^ s2.to_bits()) & 1 << 63;
    let signed = |magnitude: f64| f64::from_bits(magnitude.to_bits() & !(1 << 63) | sign);
    if s2.is_nan() {
        f64::from_bits(s2.to_bits() | 1 << 51)
    } else if s1.is_nan() {
        f64::from_bits(s1.to_bits() | 1 << 51)
    } else if s1 == 0.0 && s2 == 0.0 || s1.is_infinite() && s2.is_infinite() {
        f64::from_bits(0xfff8 << 48)
    } else if s1 == 0.0 || s2.is_infinite() {
        signed(f64::INFINITY)
    } else if s1.is_infinite() || s2 == 0.0 || exponent64(s2) - exponent64(s1) < -1075 {
        signed(0.0)
    } else if exponent64(q) == 2047 {
        signed(f64::INFINITY)
    } else {
        signed(q)
    }
}

/// v_div_fixup_f16.
pub fn div_fixup_f16(q: Half, s1: Half, s2: Half) -> Half {
    let sign = (s1.0 ^ s2.0) & 0x8000;
    let (d, n) = (s1.0 & 0x7fff, s2.0 & 0x7fff);
    Half(if s2.is_nan() {
        s2.0 | 0x200
    } else if s1.is_nan() {
        s1.0 | 0x200
    } else if d == 0 && n == 0 || d == 0x7c00 && n == 0x7c00 {
        0xfe00
    } else if d == 0 || n == 0x7c00 {
        sign | 0x7c00
    } else if d == 0x7c00 || n == 0 {
        sign
    } else {
        sign | q.0 & 0x7fff
    })
}

#[cfg(test)]
mod tests {
    use super::super::super::tests_rng::Rng;
    use super::*;

    /// The compiler's expansion of a single-precision division; `ulps` is the error of v_rcp_f32.
    fn divide32(n: f32, d: f32, ulps: i32) -> f32 {
        let (ds, _) = div_scale_f32(d, d, n);
        let (ns, scaled) = div_scale_f32(n, d, n);
        let r = 1.0 / ds;
        let r =
            if r.is_normal() { f32::from_bits(r.to_bits().wrapping_add_signed(ulps)) } else { r };
        let f0 = (-ds).mul_add(r, 1.0);
        let f1 = f0.mul_add(r, r);
        let m = ns * f1;
        let f2 = (-ds).mul_add(m, ns);
        let f3 = f2.mul_add(f1, m);
        let f4 = (-ds).mul_add(f3, ns);
        let fmas = if scaled {
            div_fmas_scaled_f32(f4, f1, f3, Round::Nearest)
        } else {
            f4.mul_add(f1, f3)
        };
        div_fixup_f32(fmas, d, n)
    }

    fn divide64(n: f64, d: f64, error: f64) -> f64 {
        let (ds, _) = div_scale_f64(d, d, n);
        let (ns, scaled) = div_scale_f64(n, d, n);
        let r = (1.0 / ds) * (1.0 + error);
        let f0 = (-ds).mul_add(r, 1.0);
        let f1 = r.mul_add(f0, r);
        let f2 = (-ds).mul_add(f1, 1.0);
        let f3 = f1.mul_add(f2, f1);
        let m = ns * f3;
        let f4 = (-ds).mul_add(m, ns);
        let fmas =
            if scaled { div_fmas_scaled_f64(f4, f3, m, Round::Nearest) } else { f4.mul_add(f3, m) };
        div_fixup_f64(fmas, d, n)
    }

    #[test]
    fn the_single_precision_sequence_is_ieee_division() {
        let mut rng = Rng::new(30);
        for case in 0..1_500_000 {
            let (mut a, mut b) = (rng.u32(), rng.u32());
            match case & 7 {
                1 => a &= 0x807f_ffff,
                2 => b &= 0x807f_ffff,
                3 => b = b & 0x807f_ffff | (250 + rng.below(5)) << 23,
                4 => a &= 0x80ff_ffff,
                5 => {
                    (a, b) = (
                        a & 0x807f_ffff | (120 + rng.below(16)) << 23,
                        b & 0x807f_ffff | (120 + rng.below(16)) << 23,
                    )
                }
                6 => (a, b) = (rng.float(23, 8) as u32, rng.float(23, 8) as u32),
                _ => {}
            }
            let (n, d) = (f32::from_bits(a), f32::from_bits(b));
            let want = n / d;
            // With significands of all ones (only the sixth case makes them often) the sequence
            // needs the reciprocal rounded to nearest, which is what the model's v_rcp gives.
            let errors = if case & 7 == 6 { 0..=0 } else { -1..=1 };
            for ulps in errors {
                let got = divide32(n, d, ulps);
                assert!(
                    got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan(),
                    "{n:e} / {d:e} = {got:e}, want {want:e}"
                );
            }
        }
    }

    #[test]
    fn the_double_precision_sequence_is_ieee_division() {
        let mut rng = Rng::new(31);
        const KEEP: u64 = !(0x7ff << 52);
        for case in 0..1_200_000 {
            let (mut a, mut b) = (rng.u64(), rng.u64());
            let mut with = |bits: u64, first: u64, count: u32| {
                bits & KEEP | (first + u64::from(rng.below(count))) << 52
            };
            match case & 7 {
                1 => a &= KEEP,
                2 => b &= KEEP,
                3 => b = with(b, 2030, 17),
                4 => a = with(a, 0, 64),
                5 => (a, b) = (with(a, 1016, 16), with(b, 1016, 16)),
                6 => (a, b) = (with(a, 0, 300), with(b, 1000, 300)),
                7 => (a, b) = (rng.float(52, 11), rng.float(52, 11)),
                _ => {}
            }
            let (n, d) = (f64::from_bits(a), f64::from_bits(b));
            let want = n / d;
            // As in single precision: significands of all ones need the exact reciprocal.
            let errors = [0.0, 2f64.powi(-29), -(2f64.powi(-28)), 2f64.powi(-26)];
            for error in errors.into_iter().take(if case & 7 == 7 { 1 } else { 4 }) {
                let got = divide64(n, d, error);
                assert!(
                    got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan(),
                    "{n:e} / {d:e} = {got:e}, want {want:e}"
                );
            }
        }
    }

    #[test]
    fn the_half_fixup_gives_ieee_specials() {
        for a in (0..0x10000u32).step_by(31) {
            for b in (0..0x10000u32).step_by(257).chain([0, 0x8000, 0x7c00, 0xfc00, 0x7e00]) {
                let (n, d) = (Half(a as u16), Half(b as u16));
                let quotient = n.to_f32() / d.to_f32();
                let got = div_fixup_f16(Half::from_f32(quotient), d, n);
                assert!(
                    got == Half::from_f32(quotient) || got.is_nan() && quotient.is_nan(),
                    "{a:04x} / {b:04x}"
                );
            }
        }
    }
}
