//! The 8-bit floats of gfx942: no infinity, no negative zero; 0x80 is the only NaN.

/// An 8-bit format: mantissa bits; the exponent bias is one above IEEE's for its width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Eight {
    /// fp8: 4 bits of exponent, 3 of mantissa.
    Fp8,
    /// bf8: 5 bits of exponent, 2 of mantissa.
    Bf8,
}

const NAN: u8 = 0x80;

impl Eight {
    const fn mantissa(self) -> u32 {
        match self {
            Self::Fp8 => 3,
            Self::Bf8 => 2,
        }
    }

    /// Exponent of the lowest denormal bit.
    const fn lowest(self) -> i32 {
        match self {
            Self::Fp8 => -7 - 3,
            Self::Bf8 => -15 - 2,
        }
    }

    /// The value, exact.
    pub fn to_f32(self, bits: u8) -> f32 {
        if bits == NAN {
            return f32::NAN;
        }
        let mantissa = u32::from(bits) & ((1 << self.mantissa()) - 1);
        let exponent = i32::from(bits & 0x7f) >> self.mantissa();
        let (significand, shift) = if exponent == 0 {
            (mantissa, 0)
        } else {
            (mantissa | 1 << self.mantissa(), exponent - 1)
        };
        let magnitude = significand as f32 * 2f32.powi(self.lowest() + shift);
        if bits & 0x80 != 0 { -magnitude } else { magnitude }
    }

    /// To nearest even. Beyond the range: the largest value where `saturate`, else NaN.
    pub fn narrow(self, value: f32, saturate: bool) -> u8 {
        if value.is_nan() || value.is_infinite() && !saturate {
            return NAN;
        }
        let sign = if value.is_sign_negative() { 0x80 } else { 0 };
        // The unit at the value's exponent, never below the lowest denormal bit.
        let exponent = (value.to_bits() >> 23 & 0xff) as i32 - 127;
        let unit = (exponent - self.mantissa() as i32).max(self.lowest());
        let units = (f64::from(value.abs()) * 2f64.powi(-unit)).round_ties_even();
        // A carry out of the significand walks into the exponent by itself.
        let magnitude = units + f64::from((unit - self.lowest()) << self.mantissa());
        if magnitude > 127.0 {
            return if saturate { sign | 0x7f } else { NAN };
        }
        if magnitude == 0.0 { 0 } else { sign | magnitude as u8 }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::tests_rng::Rng;
    use super::*;

    #[test]
    fn every_value_comes_back() {
        for format in [Eight::Fp8, Eight::Bf8] {
            for bits in (0..=0xff).filter(|&bits| bits != NAN) {
                assert_eq!(format.narrow(format.to_f32(bits), false), bits);
            }
            assert!(format.to_f32(NAN).is_nan());
            assert_eq!(format.narrow(f32::NAN, true), NAN);
            assert_eq!(format.narrow(-0.0, false), 0);
        }
        assert_eq!((Eight::Fp8.to_f32(0x7f), Eight::Bf8.to_f32(0x7f)), (240.0, 57344.0));
        assert_eq!((Eight::Fp8.to_f32(1), Eight::Bf8.to_f32(1)), (2f32.powi(-10), 2f32.powi(-17)));
    }

    #[test]
    fn narrowing_picks_the_nearest_value_and_the_even_one_of_two() {
        let mut rng = Rng::new(70);
        for format in [Eight::Fp8, Eight::Bf8] {
            let largest = format.to_f32(0x7f);
            for _ in 0..20_000 {
                let value = f32::from_bits(rng.u32() & 0x807f_ffff | (100 + rng.below(45)) << 23);
                let got = format.narrow(value, true);
                if value.abs() > largest {
                    assert_eq!(got & 0x7f, 0x7f);
                    continue;
                }
                let distance = |bits: u8| (f64::from(format.to_f32(bits)) - f64::from(value)).abs();
                for bits in (0..=0xff).filter(|&bits| bits != NAN && bits != got) {
                    let closer = distance(got) < distance(bits);
                    assert!(
                        closer || distance(got) == distance(bits) && got & 1 == 0,
                        "{value:e} to {got:x}, {bits:x}"
                    );
                }
            }
            assert_eq!(format.narrow(largest * 2.0, false), NAN);
            assert_eq!(format.narrow(f32::NEG_INFINITY, true), 0xff);
        }
    }
}
