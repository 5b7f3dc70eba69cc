//! Half precision and bfloat16 on the host's single and double precision.

use super::soft::{self, Round};

/// Bits of an IEEE half.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Half(pub u16);

impl Half {
    /// Exact.
    #[inline(always)]
    pub fn to_f32(self) -> f32 {
        to_f32(self.0)
    }

    /// Exact.
    #[inline(always)]
    pub fn to_f64(self) -> f64 {
        f64::from(to_f32(self.0))
    }

    /// Rounds to nearest even.
    #[inline(always)]
    pub fn from_f32(value: f32) -> Self {
        Self(from_f32(value))
    }

    pub const fn is_nan(self) -> bool {
        self.0 & 0x7fff > 0x7c00
    }
}

/// Exact conversion.
#[inline(always)]
pub fn to_f32(bits: u16) -> f32 {
    let sign = u32::from(bits & 0x8000) << 16;
    let magnitude = u32::from(bits & 0x7fff);
    let moved = magnitude << 13;
    // Denormals: the significand times 2^-24 is exact in single precision.
    let denormal = (magnitude as f32 * f32::from_bits(0x3380_0000)).to_bits();
    let rebias = if magnitude >= 0x7c00 { (255 - 31) << 23 } else { (127 - 15) << 23 };
    f32::from_bits(sign | if magnitude < 0x400 { denormal } else { moved + rebias })
}

/// Rounds to nearest even.
#[inline(always)]
pub fn from_f32(value: f32) -> u16 {
    let bits = value.to_bits();
    let sign = (bits >> 16) as u16 & 0x8000;
    let magnitude = bits & 0x7fff_ffff;
    // Adding one half puts a denormal result's unit at the sum's lowest bit: the adder rounds.
    let denormal = (f32::from_bits(magnitude) + 0.5).to_bits().wrapping_sub(0x3f00_0000);
    let normal =
        magnitude.wrapping_sub((127 - 15) << 23).wrapping_add(0xfff + (magnitude >> 13 & 1)) >> 13;
    let special = if magnitude > 0x7f80_0000 { 0x7e00 | magnitude >> 13 & 0x1ff } else { 0x7c00 };
    let result = if magnitude >= 0x4780_0000 {
        special
    } else if magnitude < 0x3880_0000 {
        denormal
    } else {
        normal
    };
    sign | result as u16
}

/// Rounds to nearest even, once.
pub fn from_f64(value: f64) -> u16 {
    from_f32(to_odd_f32(value))
}

/// Rounds to odd: a later rounding to 22 bits or fewer is then the only one.
#[inline(always)]
fn to_odd_f32(value: f64) -> f32 {
    let near = value as f32;
    let back = f64::from(near);
    let bits = near.to_bits();
    if back == value || value.is_nan() || near.is_infinite() {
        // A double beyond single precision's range is beyond half's as well.
        return near;
    }
    let toward_zero = if back.abs() > value.abs() { bits - 1 } else { bits };
    f32::from_bits(toward_zero | 1)
}

/// `a * b + c` with one rounding to nearest even.
#[inline(always)]
pub fn fma(a: Half, b: Half, c: Half) -> Half {
    // The product is exact in double; the sum is made odd where inexact (2Sum gives the error).
    let p = a.to_f64() * b.to_f64();
    let c = c.to_f64();
    let sum = p + c;
    let d = sum - p;
    let error = (p - (sum - d)) + (c - d);
    let bits = sum.to_bits();
    let odd = if error == 0.0 || !sum.is_finite() {
        bits
    } else {
        let away = (error > 0.0) == (sum > 0.0);
        if away { bits | 1 } else { (bits - 1) | 1 }
    };
    Half(from_f64(f64::from_bits(odd)))
}

/// Value of a bfloat16, exact.
#[inline(always)]
pub fn bf16_to_f32(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

/// Rounds to nearest even; a NaN stays one.
#[inline(always)]
pub fn bf16_from_f32(value: f32) -> u16 {
    let bits = value.to_bits();
    if value.is_nan() {
        return (bits >> 16) as u16 | 0x40;
    }
    (bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16) as u16
}

/// Rounds toward zero: v_cvt_pkrtz_f16_f32.
pub fn from_f32_toward_zero(value: f32) -> u16 {
    soft::convert(u64::from(value.to_bits()), soft::F32, soft::F16, Round::Zero) as u16
}

#[cfg(test)]
mod tests {
    use super::super::super::tests_rng::Rng;
    use super::super::soft::{self, BF16, F16, F32, F64, Round};
    use super::{Half, bf16_from_f32, bf16_to_f32, fma, from_f32, from_f64, to_f32};

    fn same(format: soft::Format, got: u16, want: u64) -> bool {
        u64::from(got) == want || format.is_nan(u64::from(got)) && format.is_nan(want)
    }

    #[test]
    fn every_half_widens_exactly_and_comes_back() {
        for bits in 0..=u16::MAX {
            let want = soft::convert(u64::from(bits), F16, F32, Round::Nearest);
            let got = to_f32(bits);
            assert!(
                u64::from(got.to_bits()) == want
                    || got.is_nan() && f32::from_bits(want as u32).is_nan(),
                "{bits:04x}"
            );
            if !got.is_nan() {
                assert_eq!(from_f32(got), bits);
            }
        }
    }

    #[test]
    fn narrowing_to_half_equals_integer_rounding() {
        let mut rng = Rng::new(10);
        for _ in 0..1_000_000 {
            // Exponents around half's range, so that most cases round.
            let single = f32::from_bits(rng.u32() & 0x807f_ffff | (100 + rng.below(50)) << 23);
            let want = soft::convert(u64::from(single.to_bits()), F32, F16, Round::Nearest);
            assert!(same(F16, from_f32(single), want), "{single:e}");
            let double =
                f64::from_bits(rng.u64() & !(0x7ff << 52) | u64::from(990 + rng.below(60)) << 52);
            let want = soft::convert(double.to_bits(), F64, F16, Round::Nearest);
            assert!(same(F16, from_f64(double), want), "{double:e}");
        }
        for special in [
            f32::NAN,
            f32::INFINITY,
            -f32::INFINITY,
            0.0,
            -0.0,
            f32::MAX,
            f32::MIN_POSITIVE,
            65519.996,
            65520.0,
        ] {
            let want = soft::convert(u64::from(special.to_bits()), F32, F16, Round::Nearest);
            assert!(same(F16, from_f32(special), want), "{special:e}");
        }
    }

    #[test]
    fn half_fma_rounds_once() {
        let mut rng = Rng::new(11);
        for _ in 0..1_000_000 {
            let [a, b, c] = [(); 3].map(|()| Half(rng.float(10, 5) as u16));
            let want =
                soft::fma(u64::from(a.0), u64::from(b.0), u64::from(c.0), F16, Round::Nearest);
            assert!(same(F16, fma(a, b, c).0, want), "{a:x?} * {b:x?} + {c:x?}");
        }
    }

    #[test]
    fn bfloat_rounding_equals_integer_rounding() {
        let mut rng = Rng::new(12);
        for _ in 0..300_000 {
            let single = rng.f32();
            let want = soft::convert(u64::from(single.to_bits()), F32, BF16, Round::Nearest);
            assert!(same(BF16, bf16_from_f32(single), want), "{single:e}");
            let bits = rng.u32() as u16;
            assert_eq!(u64::from(bf16_to_f32(bits).to_bits()), u64::from(bits) << 16);
        }
    }
}
