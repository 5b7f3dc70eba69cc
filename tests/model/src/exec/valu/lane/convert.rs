//! Conversions. Float to integer saturates and takes NaN to 0, which is what Rust's `as` does.

use super::half::Half;

/// v_cvt_rpi_i32_f32, v_cvt_nearest_i32_f32: the addition rounds in single precision.
#[inline(always)]
pub fn nearest_i32(x: f32) -> i32 {
    (x + 0.5).floor() as i32
}

/// v_cvt_flr_i32_f32, v_cvt_floor_i32_f32.
#[inline(always)]
pub fn floor_i32(x: f32) -> i32 {
    x.floor() as i32
}

/// v_cvt_off_f32_i4: sixteenths.
#[inline(always)]
pub fn off_f32_i4(x: u32) -> f32 {
    ((x as i32) << 28 >> 28) as f32 / 16.0
}

/// Signed normalised: [-1, 1] to [-32767, 32767], to nearest even.
#[inline(always)]
pub fn snorm16(x: f32) -> i16 {
    (x.clamp(-1.0, 1.0) * 32767.0).round_ties_even() as i16
}

/// Unsigned normalised: [0, 1] to [0, 65535], to nearest even.
#[inline(always)]
pub fn unorm16(x: f32) -> u16 {
    (x.clamp(0.0, 1.0) * 65535.0).round_ties_even() as u16
}

/// Two halves of a word.
#[inline(always)]
pub const fn pack(low: u16, high: u16) -> u32 {
    low as u32 | (high as u32) << 16
}

/// v_cvt_pk_u8_f32: puts a byte into `c`.
#[inline(always)]
pub const fn pk_u8_f32(value: f32, at: u32, c: u32) -> u32 {
    let shift = (at & 3) * 8;
    c & !(0xff << shift) | (value as u8 as u32) << shift
}

/// v_frexp_exp_i32_f32: 0 for zero, infinity and NaN; else the significand lies in [0.5, 1).
pub fn frexp_exp_f32(x: f32) -> i32 {
    frexp_exp_f64(f64::from(x))
}

/// v_frexp_exp_i32_f64.
pub fn frexp_exp_f64(x: f64) -> i32 {
    if x == 0.0 || !x.is_finite() {
        return 0;
    }
    let exponent = (x.to_bits() >> 52 & 0x7ff) as i32;
    if exponent != 0 {
        return exponent - 1022;
    }
    let bits = 64 - (x.to_bits() & ((1 << 52) - 1)).leading_zeros();
    bits as i32 - 1074
}

/// v_frexp_mant_f32: the significand with the sign; zero, infinity and NaN are themselves.
pub fn frexp_mant_f32(x: f32) -> f32 {
    frexp_mant_f64(f64::from(x)) as f32
}

/// v_frexp_mant_f64.
pub fn frexp_mant_f64(x: f64) -> f64 {
    if x == 0.0 || !x.is_finite() {
        return x;
    }
    let normal = if x.is_subnormal() { x * 2f64.powi(64) } else { x };
    f64::from_bits(normal.to_bits() & !(0x7ff << 52) | 1022 << 52)
}

/// v_frexp_mant_f16.
pub fn frexp_mant_f16(x: Half) -> Half {
    Half::from_f32(frexp_mant_f32(x.to_f32()))
}

/// v_fract_f32: below one even where the subtraction rounds up to it.
#[inline(always)]
pub fn fract_f32(x: f32) -> f32 {
    let part = x - x.floor();
    if part >= 1.0 { f32::from_bits(0x3f7f_ffff) } else { part }
}

/// v_fract_f64.
#[inline(always)]
pub fn fract_f64(x: f64) -> f64 {
    let part = x - x.floor();
    if part >= 1.0 { f64::from_bits(0x3fef_ffff_ffff_ffff) } else { part }
}

/// v_fract_f16.
pub fn fract_f16(x: Half) -> Half {
    let part = Half::from_f32(x.to_f32() - x.to_f32().floor());
    if part.0 == 0x3c00 { Half(0x3bff) } else { part }
}

#[cfg(test)]
mod tests {
    use super::super::super::tests_rng::Rng;
    use super::*;

    #[test]
    fn frexp_parts_multiply_back() {
        let mut rng = Rng::new(50);
        for _ in 0..300_000 {
            let (x, y) = (rng.f64(), rng.f32());
            if x.is_finite() && x != 0.0 {
                let (m, e) = (frexp_mant_f64(x), frexp_exp_f64(x));
                assert!((0.5..1.0).contains(&m.abs()));
                // Two steps: 2^e alone may not be representable.
                assert_eq!(m * 2f64.powi(e / 2) * 2f64.powi(e - e / 2), x);
            }
            if y.is_finite() && y != 0.0 {
                let (m, e) = (frexp_mant_f32(y), frexp_exp_f32(y));
                assert!((0.5..1.0).contains(&m.abs()));
                assert_eq!(f64::from(m) * 2f64.powi(e), f64::from(y));
            }
        }
        assert_eq!(
            (frexp_exp_f32(f32::INFINITY), frexp_exp_f32(f32::NAN), frexp_exp_f64(-0.0)),
            (0, 0, 0)
        );
        assert_eq!(frexp_mant_f32(f32::NEG_INFINITY), f32::NEG_INFINITY);
        assert!(frexp_mant_f32(-0.0).is_sign_negative());
    }

    #[test]
    fn fractions_lie_in_zero_to_one() {
        let mut rng = Rng::new(51);
        for _ in 0..300_000 {
            let x = rng.f32();
            if x.is_finite() {
                assert!((0.0..1.0).contains(&fract_f32(x)), "{x:e}");
            }
            let h = Half(rng.float(10, 5) as u16);
            if h.to_f32().is_finite() {
                assert!((0.0..1.0).contains(&fract_f16(h).to_f32()), "{h:x?}");
            }
        }
        assert_eq!(fract_f32(-1.25), 0.75);
        assert!(fract_f64(f64::INFINITY).is_nan());
    }

    #[test]
    fn integer_conversions_saturate() {
        assert_eq!((nearest_i32(2.5), nearest_i32(-2.5), nearest_i32(1e20)), (3, -2, i32::MAX));
        assert_eq!(
            (floor_i32(-0.5), floor_i32(f32::NAN), floor_i32(f32::NEG_INFINITY)),
            (-1, 0, i32::MIN)
        );
        assert_eq!(
            (snorm16(2.0), snorm16(-1.0), snorm16(f32::NAN), unorm16(-3.0), unorm16(1.0)),
            (32767, -32767, 0, 0, 65535)
        );
        assert_eq!(pk_u8_f32(300.0, 2, 0x1122_3344), 0x11ff_3344);
        assert_eq!((off_f32_i4(7), off_f32_i4(8), off_f32_i4(0xff)), (0.4375, -0.5, -0.0625));
    }
}
