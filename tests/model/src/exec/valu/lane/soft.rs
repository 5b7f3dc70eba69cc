//! Binary floating point in integers, for every format and rounding mode.
//!
//! The fast paths use the host's arithmetic, which rounds to nearest even. Everything that must
//! round otherwise, or in a format the host lacks, comes here.

/// Rounding, numbered as the fields of MODE.FP_ROUND.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Round {
    /// To nearest, ties to even.
    Nearest,
    /// Toward plus infinity.
    Up,
    /// Toward minus infinity.
    Down,
    /// Toward zero.
    Zero,
}

impl Round {
    /// Of a two-bit MODE field.
    pub const fn from_field(bits: u32) -> Self {
        match bits & 3 {
            0 => Self::Nearest,
            1 => Self::Up,
            2 => Self::Down,
            _ => Self::Zero,
        }
    }
}

/// An IEEE-like interchange format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// Bits of the stored significand.
    pub mantissa: u32,
    /// Bits of the exponent.
    pub exponent: u32,
}

/// IEEE half.
pub const F16: Format = Format { mantissa: 10, exponent: 5 };
/// bfloat16.
#[cfg(test)]
pub const BF16: Format = Format { mantissa: 7, exponent: 8 };
/// IEEE single.
pub const F32: Format = Format { mantissa: 23, exponent: 8 };
/// IEEE double.
pub const F64: Format = Format { mantissa: 52, exponent: 11 };

impl Format {
    const fn sign(self) -> u64 {
        1 << (self.mantissa + self.exponent)
    }

    /// Bits of infinity.
    pub const fn infinity(self) -> u64 {
        ((1 << self.exponent) - 1) << self.mantissa
    }

    const fn quiet(self) -> u64 {
        1 << (self.mantissa - 1)
    }

    const fn bias(self) -> i32 {
        (1 << (self.exponent - 1)) - 1
    }

    const fn nan(self) -> u64 {
        self.infinity() | self.quiet()
    }

    /// Whether the bits are a NaN.
    pub const fn is_nan(self, bits: u64) -> bool {
        bits & (self.sign() - 1) > self.infinity()
    }
}

/// A value taken apart. Finite: (-1)^negative * significand * 2^exponent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Parts {
    Nan,
    Infinity { negative: bool },
    Finite { negative: bool, exponent: i32, significand: u64 },
}

fn unpack(bits: u64, format: Format) -> Parts {
    let negative = bits & format.sign() != 0;
    let mantissa = bits & ((1 << format.mantissa) - 1);
    let exponent = (bits >> format.mantissa & ((1 << format.exponent) - 1)) as i32;
    let lowest = 1 - format.bias() - format.mantissa as i32;
    if exponent == (1 << format.exponent) - 1 {
        if mantissa == 0 { Parts::Infinity { negative } } else { Parts::Nan }
    } else if exponent == 0 {
        Parts::Finite { negative, exponent: lowest, significand: mantissa }
    } else {
        let significand = mantissa | 1 << format.mantissa;
        Parts::Finite { negative, exponent: lowest + exponent - 1, significand }
    }
}

/// Shifts right, ORing what falls out into the lowest bit.
fn shift_jam(value: u128, by: u32) -> u128 {
    match by {
        0 => value,
        1..128 => value >> by | u128::from(value << (128 - by) != 0),
        _ => u128::from(value != 0),
    }
}

/// Rounds (-1)^negative * significand * 2^exponent into the format. The significand's lowest bit
/// may stand for "and something more" provided that it is not among the bits kept.
pub fn round_pack(
    negative: bool,
    exponent: i32,
    significand: u128,
    format: Format,
    round: Round,
) -> u64 {
    let sign = if negative { format.sign() } else { 0 };
    if significand == 0 {
        return sign;
    }
    let lowest = 1 - format.bias() - format.mantissa as i32;
    let top = exponent + 127 - significand.leading_zeros() as i32;
    let unit = (top - format.mantissa as i32).max(lowest);
    let shift = unit - exponent;
    let (kept, inexact, above_half, half) = if shift <= 0 {
        (significand << -shift, false, false, false)
    } else if shift >= 128 {
        (0, true, false, shift == 128 && significand == 1 << 127)
    } else {
        let rest = significand & ((1 << shift) - 1);
        let middle = 1u128 << (shift - 1);
        (significand >> shift, rest != 0, rest > middle, rest == middle)
    };
    let above_half = above_half || shift == 128 && significand > 1 << 127;
    let increment = match round {
        Round::Nearest => above_half || half && kept & 1 == 1,
        Round::Up => inexact && !negative,
        Round::Down => inexact && negative,
        Round::Zero => false,
    };
    let kept = kept as u64 + u64::from(increment);
    // A carry out of the significand walks into the exponent by itself.
    let magnitude =
        ((unit - lowest) as u64).saturating_mul(1 << format.mantissa).saturating_add(kept);
    if magnitude < format.infinity() {
        return sign | magnitude;
    }
    let to_infinity = match round {
        Round::Nearest => true,
        Round::Up => !negative,
        Round::Down => negative,
        Round::Zero => false,
    };
    sign | if to_infinity { format.infinity() } else { format.infinity() - 1 }
}

/// `a * b + c` with one rounding.
pub fn fma(a: u64, b: u64, c: u64, format: Format, round: Round) -> u64 {
    fma_scaled(a, b, c, 0, format, round)
}

/// `(a * b + c) * 2^by` with one rounding.
pub fn fma_scaled(a: u64, b: u64, c: u64, by: i32, format: Format, round: Round) -> u64 {
    use Parts::{Finite, Infinity, Nan};
    let (x, y, z) = (unpack(a, format), unpack(b, format), unpack(c, format));
    for (bits, parts) in [(a, x), (b, y), (c, z)] {
        if parts == Nan {
            return bits | format.quiet();
        }
    }
    let product_sign = (a ^ b) & format.sign() != 0;
    let product_infinite = matches!(x, Infinity { .. }) || matches!(y, Infinity { .. });
    if product_infinite {
        let zero = |p| matches!(p, Finite { significand: 0, .. });
        if zero(x) || zero(y) {
            return format.nan();
        }
        if let Infinity { negative } = z
            && negative != product_sign
        {
            return format.nan();
        }
        return format.infinity() | if product_sign { format.sign() } else { 0 };
    }
    let (
        Finite { exponent: ea, significand: sa, .. },
        Finite { exponent: eb, significand: sb, .. },
        Finite { negative: nc, exponent: ec, significand: sc },
    ) = (x, y, z)
    else {
        return c; // the addend is the only infinity
    };
    let product = u128::from(sa) * u128::from(sb);
    let addend = u128::from(sc);
    if product == 0 && addend == 0 {
        let negative = if product_sign == nc { nc } else { round == Round::Down };
        return if negative { format.sign() } else { 0 };
    }
    if addend == 0 {
        return round_pack(product_sign, ea + eb + by, product, format, round);
    }
    if product == 0 {
        return round_pack(nc, ec + by, addend, format, round);
    }
    add_parts((product_sign, ea + eb + by, product), (nc, ec + by, addend), format, round)
}

/// Adds two finite values that are not zero, each of at most 106 significant bits.
fn add_parts(
    (na, ea, sa): (bool, i32, u128),
    (nb, eb, sb): (bool, i32, u128),
    format: Format,
    round: Round,
) -> u64 {
    // Both with the top bit at 126: one bit of headroom for the sum.
    let normalize = |exponent: i32, value: u128| {
        let up = value.leading_zeros() as i32 - 1;
        (exponent - up, value << up)
    };
    let (ea, sa) = normalize(ea, sa);
    let (eb, sb) = normalize(eb, sb);
    let exponent = ea.max(eb);
    let sa = shift_jam(sa, exponent.abs_diff(ea));
    let sb = shift_jam(sb, exponent.abs_diff(eb));
    if na == nb {
        return round_pack(na, exponent, sa + sb, format, round);
    }
    let (negative, difference) = if sa >= sb { (na, sa - sb) } else { (nb, sb - sa) };
    if difference == 0 {
        return if round == Round::Down { format.sign() } else { 0 };
    }
    round_pack(negative, exponent, difference, format, round)
}

/// `a + b`.
pub fn add(a: u64, b: u64, format: Format, round: Round) -> u64 {
    let one = (format.bias() as u64) << format.mantissa;
    fma(a, one, b, format, round)
}

/// `a * b`.
pub fn mul(a: u64, b: u64, format: Format, round: Round) -> u64 {
    // A zero of the product's own sign changes nothing.
    fma(a, b, (a ^ b) & format.sign(), format, round)
}

/// Square root.
#[cfg(test)] // a reference for those of the host
pub fn sqrt(a: u64, format: Format, round: Round) -> u64 {
    match unpack(a, format) {
        Parts::Nan => a | format.quiet(),
        Parts::Infinity { negative: false } => a,
        Parts::Finite { significand: 0, .. } => a,
        Parts::Infinity { .. } | Parts::Finite { negative: true, .. } => format.nan(),
        Parts::Finite { exponent, significand, .. } => {
            // An even exponent and 120 bits or so: a root of 60 bits, more than any format keeps.
            let up = significand.leading_zeros() + 56;
            let up = up + ((exponent - up as i32) & 1) as u32;
            let value = u128::from(significand) << up;
            let root = value.isqrt();
            let sticky = u128::from(root * root != value);
            round_pack(false, (exponent - up as i32) / 2 - 1, root << 1 | sticky, format, round)
        }
    }
}

/// Quotient.
#[cfg(test)] // a reference for those of the host
pub fn div(a: u64, b: u64, format: Format, round: Round) -> u64 {
    use Parts::{Finite, Infinity, Nan};
    let sign = (a ^ b) & format.sign();
    match (unpack(a, format), unpack(b, format)) {
        (Nan, _) => a | format.quiet(),
        (_, Nan) => b | format.quiet(),
        (Infinity { .. }, Infinity { .. })
        | (Finite { significand: 0, .. }, Finite { significand: 0, .. }) => format.nan(),
        (Infinity { .. }, _) | (_, Finite { significand: 0, .. }) => sign | format.infinity(),
        (_, Infinity { .. }) | (Finite { significand: 0, .. }, _) => sign,
        (
            Finite { exponent: ea, significand: sa, .. },
            Finite { exponent: eb, significand: sb, .. },
        ) => {
            let (up, down) = (sa.leading_zeros() + 63, sb.leading_zeros());
            let (n, d) = (u128::from(sa) << up, u128::from(sb) << down);
            let (quotient, rest) = (n / d, n % d);
            let exponent = ea - up as i32 - eb + down as i32;
            round_pack(
                sign != 0,
                exponent - 1,
                quotient << 1 | u128::from(rest != 0),
                format,
                round,
            )
        }
    }
}

/// `a * 2^by` with one rounding.
pub fn scale(a: u64, by: i32, format: Format, round: Round) -> u64 {
    match unpack(a, format) {
        Parts::Nan => a | format.quiet(),
        Parts::Infinity { .. } => a,
        Parts::Finite { negative, exponent, significand } => {
            // Far beyond every format's range, and no overflow of the sum.
            let by = by.clamp(-10_000, 10_000);
            round_pack(negative, exponent + by, u128::from(significand), format, round)
        }
    }
}

/// Converts between formats.
pub fn convert(a: u64, from: Format, to: Format, round: Round) -> u64 {
    let sign = if a & from.sign() != 0 { to.sign() } else { 0 };
    match unpack(a, from) {
        Parts::Nan => {
            let mantissa = a & ((1 << from.mantissa) - 1);
            let payload = if from.mantissa >= to.mantissa {
                mantissa >> (from.mantissa - to.mantissa)
            } else {
                mantissa << (to.mantissa - from.mantissa)
            };
            sign | to.nan() | payload
        }
        Parts::Infinity { .. } => sign | to.infinity(),
        Parts::Finite { negative, exponent, significand } => {
            round_pack(negative, exponent, u128::from(significand), to, round)
        }
    }
}

/// An integer, rounded into the format.
pub fn from_int(negative: bool, magnitude: u64, format: Format, round: Round) -> u64 {
    if magnitude == 0 { 0 } else { round_pack(negative, 0, u128::from(magnitude), format, round) }
}

/// Flushes a denormal to zero of its sign.
pub const fn flush(a: u64, format: Format) -> u64 {
    if a & format.infinity() == 0 { a & format.sign() } else { a }
}

#[cfg(test)]
mod tests;
