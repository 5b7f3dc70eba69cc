//! Integers: digits, signs, prefixes, leading zeros.

use super::Field;
use super::output::Output;

/// Most digits of a `u64`: 22 octal ones, and one for the octal mark.
const MAX_DIGITS: usize = 23;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Base {
    Decimal,
    Octal,
    Hex,
    HexUpper,
}

impl Base {
    /// What the `#` flag puts after a 0.
    pub fn mark(self) -> Option<u8> {
        match self {
            Self::Hex => Some(b'x'),
            Self::HexUpper => Some(b'X'),
            Self::Decimal | Self::Octal => None,
        }
    }
}

/// What stands before the digits.
#[derive(Clone, Copy)]
pub(super) struct Prefix {
    pub sign: Option<u8>,
    /// `0` and this.
    pub base: Option<u8>,
}

impl Prefix {
    pub fn len(self) -> u64 {
        u64::from(self.sign.is_some()) + if self.base.is_some() { 2 } else { 0 }
    }

    #[inline]
    pub fn print(self, out: &mut Output<'_>) {
        if let Some(sign) = self.sign {
            out.byte(sign);
        }
        if let Some(base) = self.base {
            out.bytes(&[b'0', base]);
        }
    }
}

pub(super) fn low_u32(value: u64) -> u32 {
    let [a, b, c, d, ..] = value.to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}

pub(super) fn low_i32(value: u64) -> i32 {
    low_u32(value).cast_signed()
}

pub(super) fn print(out: &mut Output<'_>, field: &Field, prefix: Prefix, value: u64, base: Base) {
    let mut buffer = [0; MAX_DIGITS];
    let mut digits = digits(&mut buffer, value, base);
    if value == 0 && field.precision == Some(0) {
        digits = &[];
    }
    let count = u64::try_from(digits.len()).unwrap_or_default();
    let mut zeros = field.precision.unwrap_or(0).saturating_sub(count);
    // The octal mark is one more digit, unless a zero leads already.
    if base == Base::Octal && field.alternate && zeros == 0 && digits.first() != Some(&b'0') {
        zeros = 1;
    }
    if field.width == 0 && zeros == 0 {
        prefix.print(out);
        return out.bytes(digits);
    }
    let padding = field.width.saturating_sub(prefix.len() + zeros + count);
    let fill_zeros = field.zero && field.precision.is_none();
    if !field.left && !fill_zeros {
        out.padding(b' ', padding);
    }
    prefix.print(out);
    if fill_zeros {
        out.padding(b'0', padding);
    }
    out.zeros(zeros);
    out.bytes(digits);
    if field.left {
        out.padding(b' ', padding);
    }
}

/// Digits of `value` in the end of `buffer`; one for 0.
fn digits(buffer: &mut [u8; MAX_DIGITS], value: u64, base: Base) -> &[u8] {
    let used = match base {
        Base::Decimal => decimal(buffer, value),
        Base::Octal => powers(buffer, value, 3, b"01234567"),
        Base::Hex => powers(buffer, value, 4, b"0123456789abcdef"),
        Base::HexUpper => powers(buffer, value, 4, b"0123456789ABCDEF"),
    };
    buffer.get(MAX_DIGITS - used..).unwrap_or_default()
}

fn decimal(buffer: &mut [u8; MAX_DIGITS], mut value: u64) -> usize {
    let mut used = 0;
    for digit in buffer.iter_mut().rev() {
        let [low, ..] = (value % 10).to_le_bytes();
        *digit = b'0' + low;
        used += 1;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    used
}

fn powers(buffer: &mut [u8; MAX_DIGITS], mut value: u64, bits: u32, table: &[u8]) -> usize {
    let mask = table.len() - 1;
    let mut used = 0;
    for digit in buffer.iter_mut().rev() {
        let [low, ..] = value.to_le_bytes();
        *digit = table.get(usize::from(low) & mask).copied().unwrap_or_default();
        used += 1;
        value >>= bits;
        if value == 0 {
            break;
        }
    }
    used
}
