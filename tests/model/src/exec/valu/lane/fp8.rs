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
        self.round(value, saturate, f64::round_ties_even)
    }

    /// Bits of a single, rounded up with the probability of what is cut off, if `random` is random:
    /// as many of its high bits as a normal result loses are added there first.
    pub fn narrow_stochastic(self, value: u32, random: u32, saturate: bool) -> u8 {
        let special = value & 0x7f80_0000 == 0x7f80_0000;
        let added = value.wrapping_add(random >> (9 + self.mantissa()));
        let value = f32::from_bits(if special { value } else { added });
        self.round(value, saturate, f64::trunc)
    }

    fn round(self, value: f32, saturate: bool, rounded: impl Fn(f64) -> f64) -> u8 {
        if value.is_nan() || value.is_infinite() && !saturate {
            return NAN;
        }
        let sign = if value.is_sign_negative() { 0x80 } else { 0 };
        // The unit at the value's exponent, never below the lowest denormal bit.
        let exponent = (value.to_bits() >> 23 & 0xff) as i32 - 127;
        let unit = (exponent - self.mantissa() as i32).max(self.lowest());
        let units = rounded(f64::from(value.abs()) * 2f64.powi(-unit));
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
    fn stochastic_rounding_adds_below_the_last_place() {
        // 1.0625 is half of the step from 1.0 (0x40) to 1.125 (0x41) of fp8.
        let half_way = 1.0625f32.to_bits();
        let fp8 = |random| Eight::Fp8.narrow_stochastic(half_way, random, false);
        assert_eq!([0, 0x7fff_ffff, 0x8000_0000, !0].map(fp8), [0x40, 0x40, 0x41, 0x41]);
        // A carry goes into the exponent: 1.9375 is half a step below 2.0.
        assert_eq!(Eight::Fp8.narrow_stochastic(1.9375f32.to_bits(), 1 << 31, false), 0x48);
        // bf8 keeps a bit less: the step from 1.0 is 0.25.
        let bf8 = |random| Eight::Bf8.narrow_stochastic(1.125f32.to_bits(), random, false);
        assert_eq!([0x7fff_ffff, 0x8000_0000].map(bf8), [0x40, 0x41]);
        assert_eq!(Eight::Fp8.narrow_stochastic(f32::INFINITY.to_bits(), 0, true), 0x7f);
        assert_eq!(Eight::Fp8.narrow_stochastic(f32::INFINITY.to_bits(), 0, false), NAN);
        assert_eq!(Eight::Fp8.narrow_stochastic(240f32.to_bits(), !0, true), 0x7f);
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
