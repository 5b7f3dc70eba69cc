//! Minimum, maximum, median and the compare predicates of floats.
//!
//! With MODE.IEEE a signalling NaN wins and is quieted; otherwise a number wins over a NaN.
//! -0 is below +0.

use super::half::Half;

macro_rules! min_max {
    ($module:ident, $float:ty, $bits:ty, $signed:ty, $to:expr, $from:expr, $quiet:expr, $inf:expr) => {
        /// For one width.
        pub mod $module {
            #[allow(unused_imports)]
            use super::Half;

            const SIGN: $bits = 1 << (<$bits>::BITS - 1);

            #[inline(always)]
            fn is_nan(bits: $bits) -> bool {
                // Signed: the host has no unsigned vector compare.
                (bits & !SIGN) as $signed > $inf
            }

            #[inline(always)]
            fn is_signalling(bits: $bits) -> bool {
                is_nan(bits) & (bits & $quiet == 0)
            }

            /// Integer order of the floats: a total order with -0 below +0.
            #[inline(always)]
            fn key(bits: $bits) -> $signed {
                let bits = bits as $signed;
                bits ^ ((bits >> (<$bits>::BITS - 1)) & <$signed>::MAX)
            }

            #[inline(always)]
            fn pick(
                a: $float,
                b: $float,
                ieee: bool,
                a_wins: impl Fn($signed, $signed) -> bool,
            ) -> $float {
                let (x, y): ($bits, $bits) = ($to(a), $to(b));
                let mut r = if a_wins(key(x), key(y)) { x } else { y };
                r = if is_nan(x) { y } else { r };
                r = if is_nan(y) { x } else { r };
                // Not a number, not quiet, and IEEE: one test against a word that is the same in
                // every lane.
                let never = if ieee { 0 } else { $quiet };
                let wins = |bits: $bits| is_nan(bits) & (bits & $quiet | never == 0);
                r = if wins(y) { y | $quiet } else { r };
                r = if wins(x) { x | $quiet } else { r };
                $from(r)
            }

            /// v_min.
            #[inline(always)]
            pub fn min(a: $float, b: $float, ieee: bool) -> $float {
                pick(a, b, ieee, |x, y| x < y)
            }

            /// v_max.
            #[inline(always)]
            pub fn max(a: $float, b: $float, ieee: bool) -> $float {
                pick(a, b, ieee, |x, y| x >= y)
            }

            /// v_min3.
            #[inline(always)]
            #[allow(dead_code)] // no operation has it in every type
            pub fn min3(a: $float, b: $float, c: $float, ieee: bool) -> $float {
                min(min(a, b, ieee), c, ieee)
            }

            /// v_max3.
            #[inline(always)]
            #[allow(dead_code)] // no operation has it in every type
            pub fn max3(a: $float, b: $float, c: $float, ieee: bool) -> $float {
                max(max(a, b, ieee), c, ieee)
            }

            /// v_med3: with a NaN, v_min3.
            #[inline(always)]
            #[allow(dead_code)] // no operation has it in every type
            pub fn med3(a: $float, b: $float, c: $float, ieee: bool) -> $float {
                let (x, y, z): ($bits, $bits, $bits) = ($to(a), $to(b), $to(c));
                if is_nan(x) || is_nan(y) || is_nan(z) {
                    return min3(a, b, c, ieee);
                }
                let (i, j, k) = (key(x), key(y), key(z));
                let top = i.max(j).max(k);
                if top == i {
                    max(b, c, ieee)
                } else if top == j {
                    max(a, c, ieee)
                } else {
                    max(a, b, ieee)
                }
            }

            /// v_cmp_class: bit set of 0 signalling NaN, 1 quiet NaN, 2 -inf, 3 -normal,
            /// 4 -denormal, 5 -0, 6 +0, 7 +denormal, 8 +normal, 9 +inf.
            #[inline(always)]
            pub fn class(a: $float, wanted: u32) -> bool {
                let bits: $bits = $to(a);
                let magnitude = bits & !SIGN;
                let negative = bits & SIGN != 0;
                let class = if is_signalling(bits) {
                    0
                } else if is_nan(bits) {
                    1
                } else {
                    let size = if magnitude == $inf {
                        3
                    } else if magnitude & $inf != 0 {
                        2
                    } else if magnitude != 0 {
                        1
                    } else {
                        0
                    };
                    if negative { 5 - size } else { 6 + size }
                };
                wanted >> class & 1 == 1
            }
        }
    };
}

min_max!(f16, Half, u16, i16, |h: Half| h.0, Half, 0x200, 0x7c00);
min_max!(f32, f32, u32, i32, f32::to_bits, f32::from_bits, 0x0040_0000, 0x7f80_0000);
min_max!(f64, f64, u64, i64, f64::to_bits, f64::from_bits, 1 << 51, 0x7ff << 52);

#[cfg(test)]
mod tests {
    use super::super::super::tests_rng::Rng;
    use super::f32 as single;

    fn signalling(x: f32) -> bool {
        x.is_nan() && x.to_bits() & 0x0040_0000 == 0
    }

    /// The rules in the order the documents state them, on the host's comparisons.
    fn want(a: f32, b: f32, ieee: bool, max: bool) -> u32 {
        let quiet = |x: f32| x.to_bits() | 0x0040_0000;
        if ieee && signalling(a) {
            quiet(a)
        } else if ieee && signalling(b) {
            quiet(b)
        } else if b.is_nan() {
            a.to_bits()
        } else if a.is_nan() {
            b.to_bits()
        } else if a == 0.0 && b == 0.0 {
            let negative = if max {
                a.is_sign_negative() && b.is_sign_negative()
            } else {
                a.is_sign_negative() || b.is_sign_negative()
            };
            u32::from(negative) << 31
        } else if (a < b) != max {
            a.to_bits()
        } else {
            b.to_bits()
        }
    }

    #[test]
    fn min_and_max_follow_the_documented_rules() {
        let mut rng = Rng::new(20);
        for _ in 0..1_000_000 {
            let (a, b, ieee) = (rng.f32(), rng.f32(), rng.below(2) == 1);
            assert_eq!(
                single::min(a, b, ieee).to_bits(),
                want(a, b, ieee, false),
                "min {a:e} {b:e}"
            );
            assert_eq!(
                single::max(a, b, ieee).to_bits(),
                want(a, b, ieee, true),
                "max {a:e} {b:e}"
            );
        }
    }

    #[test]
    fn the_median_is_the_middle_of_three_numbers() {
        let mut rng = Rng::new(21);
        for _ in 0..300_000 {
            let mut v = [rng.f32(), rng.f32(), rng.f32()];
            let got = single::med3(v[0], v[1], v[2], true);
            if v.iter().any(|x| x.is_nan()) {
                assert_eq!(
                    got.to_bits(),
                    want(f32::from_bits(want(v[0], v[1], true, false)), v[2], true, false)
                );
            } else {
                v.sort_by(f32::total_cmp);
                assert_eq!(got.to_bits(), v[1].to_bits());
            }
        }
    }

    #[test]
    fn each_value_is_in_exactly_one_class() {
        let mut rng = Rng::new(22);
        for _ in 0..300_000 {
            let a = rng.f32();
            let class = (0..10).filter(|&bit| single::class(a, 1 << bit)).collect::<Vec<_>>();
            use std::num::FpCategory as C;
            let want = match (a.classify(), a.is_sign_negative()) {
                (C::Nan, _) => u32::from(!signalling(a)),
                (C::Infinite, true) => 2,
                (C::Normal, true) => 3,
                (C::Subnormal, true) => 4,
                (C::Zero, true) => 5,
                (C::Zero, false) => 6,
                (C::Subnormal, false) => 7,
                (C::Normal, false) => 8,
                (C::Infinite, false) => 9,
            };
            assert_eq!(class, [want], "{a:e}");
        }
    }
}
