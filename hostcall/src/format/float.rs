//! Doubles: `%f`, `%e`, `%g`, `%a`, exactly as glibc prints them.
//!
//! Digits come from `core`, whose fixed-precision output is exact and rounds half to even, as glibc
//! does in round-to-nearest. A double has at most 1074 digits after the point and 767 significant
//! ones, so that whatever a precision asks for beyond is zeros.

use std::fmt::Write;

use super::Field;
use super::integer::Prefix;
use super::output::Output;

/// Digits after the point of the smallest double, 2^-1074.
const MAX_FRACTION: u64 = 1074;

/// Significant digits of the longest double.
const MAX_SIGNIFICANT: u64 = 767;

/// 309 digits, point, 1074 digits, and some for an exponent.
const BUFFER: usize = 1400;

/// Bits of the stored significand.
const FRACTION_BITS: u32 = 52;

/// How a double is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Style {
    kind: Kind,
    upper: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Fixed,
    Exponent,
    General,
    Hex,
}

impl Style {
    pub fn new(byte: u8) -> Option<Self> {
        let kind = match byte.to_ascii_lowercase() {
            b'f' => Kind::Fixed,
            b'e' => Kind::Exponent,
            b'g' => Kind::General,
            b'a' => Kind::Hex,
            _ => return None,
        };
        Some(Self { kind, upper: byte.is_ascii_uppercase() })
    }

    fn pick(self, lower: &'static [u8], upper: &'static [u8]) -> &'static [u8] {
        if self.upper { upper } else { lower }
    }
}

/// A finite number in pieces: `head`, zeros, exponent.
struct Number<'a> {
    head: &'a [u8],
    zeros: u64,
    exponent: Option<i32>,
}

pub(super) fn print(out: &mut Output<'_>, field: &Field, style: Style, value: f64) {
    let sign = if value.is_sign_negative() { Some(b'-') } else { field.sign };
    let prefix = Prefix { sign, base: None };
    if !value.is_finite() {
        let name =
            if value.is_nan() { style.pick(b"nan", b"NAN") } else { style.pick(b"inf", b"INF") };
        let plain = Field { zero: false, ..*field };
        let number = Number { head: name, zeros: 0, exponent: None };
        return number.print(out, &plain, prefix, style);
    }
    let magnitude = value.abs();
    let mut buffer = Buffer { bytes: [0; BUFFER], used: 0 };
    match style.kind {
        Kind::Fixed => fixed(&mut buffer, magnitude, field).print(out, field, prefix, style),
        Kind::Exponent => exponent(&mut buffer, magnitude, field).print(out, field, prefix, style),
        Kind::General => general(&mut buffer, magnitude, field).print(out, field, prefix, style),
        Kind::Hex => {
            let mark = style.pick(b"x", b"X").first().copied();
            let prefix = Prefix { base: mark, ..prefix };
            hex(&mut buffer, magnitude, field, style).print(out, field, prefix, style);
        }
    }
}

impl Number<'_> {
    fn print(&self, out: &mut Output<'_>, field: &Field, prefix: Prefix, style: Style) {
        let mut tail = Buffer { bytes: [0; 8], used: 0 };
        if let Some(exponent) = self.exponent {
            let (mark, least) = match style.kind {
                Kind::Hex => (style.pick(b"p", b"P"), 1),
                _ => (style.pick(b"e", b"E"), 2),
            };
            tail.push(mark);
            tail.push(if exponent < 0 { b"-" } else { b"+" });
            // Cannot fail: at most four digits, into six bytes.
            let _ = write!(tail, "{:0least$}", exponent.unsigned_abs());
        }
        let tail = tail.text();
        let length = |bytes: &[u8]| u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        let content = prefix.len() + length(self.head) + self.zeros + length(tail);
        let padding = field.width.saturating_sub(content);
        if !field.left && !field.zero {
            out.padding(b' ', padding);
        }
        prefix.print(out);
        if field.zero {
            out.padding(b'0', padding);
        }
        out.bytes(self.head);
        out.zeros(self.zeros);
        out.bytes(tail);
        if field.left {
            out.padding(b' ', padding);
        }
    }
}

/// Text on the stack. What does not fit is left out; the sizes above make it fit.
struct Buffer<const N: usize> {
    bytes: [u8; N],
    used: usize,
}

impl<const N: usize> Buffer<N> {
    fn push(&mut self, text: &[u8]) {
        if let Some(room) = self.bytes.get_mut(self.used..self.used + text.len()) {
            room.copy_from_slice(text);
            self.used += text.len();
        }
    }

    fn text(&self) -> &[u8] {
        self.bytes.get(..self.used).unwrap_or_default()
    }
}

impl<const N: usize> Write for Buffer<N> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.push(text.as_bytes());
        Ok(())
    }
}

/// `asked`, as far as digits differ from 0, and the zeros beyond.
fn split(asked: u64, most: u64) -> (usize, u64) {
    let shown = asked.min(most);
    (usize::try_from(shown).unwrap_or_default(), asked - shown)
}

fn fixed<'a>(buffer: &'a mut Buffer<BUFFER>, value: f64, field: &Field) -> Number<'a> {
    let (digits, zeros) = split(field.precision.unwrap_or(6), MAX_FRACTION);
    // Cannot fail: `Buffer` takes everything.
    let _ = write!(buffer, "{value:.digits$}");
    if digits == 0 && field.alternate {
        buffer.push(b".");
    }
    Number { head: buffer.text(), zeros, exponent: None }
}

/// Writes `value` with `digits` after the point and cuts the exponent off, which it returns.
fn scientific(buffer: &mut Buffer<BUFFER>, value: f64, digits: usize) -> i32 {
    // Cannot fail: `Buffer` takes everything.
    let _ = write!(buffer, "{value:.digits$e}");
    let text = buffer.text();
    let mark = text.iter().rposition(|&byte| byte == b'e').unwrap_or(text.len());
    let power = text.get(mark + 1..).and_then(|power| std::str::from_utf8(power).ok());
    let power = power.and_then(|power| power.parse().ok()).unwrap_or(0);
    buffer.used = mark;
    power
}

fn exponent<'a>(buffer: &'a mut Buffer<BUFFER>, value: f64, field: &Field) -> Number<'a> {
    let (digits, zeros) = split(field.precision.unwrap_or(6), MAX_SIGNIFICANT - 1);
    let power = scientific(buffer, value, digits);
    if digits == 0 && field.alternate {
        buffer.push(b".");
    }
    Number { head: buffer.text(), zeros, exponent: Some(power) }
}

fn general<'a>(buffer: &'a mut Buffer<BUFFER>, value: f64, field: &Field) -> Number<'a> {
    let precision = field.precision.unwrap_or(6).max(1);
    let (significant, extra) = split(precision, MAX_SIGNIFICANT);
    let mut digits = Buffer::<BUFFER> { bytes: [0; BUFFER], used: 0 };
    let power = scientific(&mut digits, value, significant - 1);
    let (first, rest) = digits.text().split_first().unwrap_or((&b'0', &[]));
    let mut rest: &[u8] = rest.strip_prefix(b".").unwrap_or(rest);
    let mut zeros = extra;
    if !field.alternate {
        let kept = rest.iter().rposition(|&digit| digit != b'0').map_or(0, |last| last + 1);
        rest = rest.get(..kept).unwrap_or_default();
        zeros = 0;
    }
    let beyond = u64::try_from(power).is_ok_and(|power| power >= precision);
    if power < -4 || beyond {
        // glibc (2.36) leaves out the zeros that `#` asks for when it was rounding that made the
        // exponent reach the precision: `%#.2g` of 99.5 is 1.e+02. Only numbers below 2^53 can do
        // that, and powers of ten up to 22 are exact.
        let reached = u64::try_from(power) == Ok(precision) && power <= 22;
        if reached && value < 10f64.powi(power) {
            (rest, zeros) = (&[], 0);
        }
        buffer.push(&[*first]);
        point(buffer, rest, field.alternate);
        return Number { head: buffer.text(), zeros, exponent: Some(power) };
    }
    if let Ok(whole) = usize::try_from(power) {
        // `whole` digits after the first stand before the point; cut zeros come back there.
        buffer.push(&[*first]);
        let (before, after) = rest.split_at(whole.min(rest.len()));
        buffer.push(before);
        for _ in before.len()..whole {
            buffer.push(b"0");
        }
        point(buffer, after, field.alternate);
    } else {
        buffer.push(b"0.");
        for _ in power..-1 {
            buffer.push(b"0");
        }
        buffer.push(&[*first]);
        buffer.push(rest);
    }
    Number { head: buffer.text(), zeros, exponent: None }
}

/// The point and the digits after it; without digits only if `always`.
fn point<const N: usize>(buffer: &mut Buffer<N>, digits: &[u8], always: bool) {
    if always || !digits.is_empty() {
        buffer.push(b".");
        buffer.push(digits);
    }
}

fn hex<'a>(buffer: &'a mut Buffer<BUFFER>, value: f64, field: &Field, style: Style) -> Number<'a> {
    const FRACTION: u64 = (1 << FRACTION_BITS) - 1;
    let bits = value.to_bits();
    let biased = i32::try_from(bits >> FRACTION_BITS).unwrap_or_default();
    // Subnormal numbers keep the exponent of the smallest normal one; glibc does not shift them.
    let (mut lead, power) = match (biased, bits & FRACTION) {
        (0, 0) => (0, 0),
        (0, _) => (0, -1022),
        _ => (1, biased - 1023),
    };
    let mut fraction = bits & FRACTION;
    let all = FRACTION_BITS / 4;
    let least = all - (fraction.trailing_zeros() / 4).min(all);
    let asked = field.precision.unwrap_or(u64::from(least));
    let (shown, zeros) = split(asked, u64::from(all));
    let shown = u32::try_from(shown).unwrap_or(all);
    if shown < all {
        // Half to even, on the significand with its leading digit.
        let dropped = 4 * (all - shown);
        let whole = lead << FRACTION_BITS | fraction;
        let rest = whole & ((1 << dropped) - 1);
        let half = 1 << (dropped - 1);
        let kept = whole >> dropped;
        let up = rest > half || rest == half && kept & 1 == 1;
        let rounded = (kept + u64::from(up)) << dropped;
        lead = rounded >> FRACTION_BITS;
        fraction = rounded & FRACTION;
    }
    // Cannot fail: `Buffer` takes everything.
    let _ = write!(buffer, "{lead}");
    if shown > 0 || zeros > 0 || field.alternate {
        buffer.push(b".");
    }
    let mut digits = Buffer::<16> { bytes: [0; 16], used: 0 };
    let _ = if style.upper {
        write!(digits, "{fraction:013X}")
    } else {
        write!(digits, "{fraction:013x}")
    };
    let shown = usize::try_from(shown).unwrap_or_default();
    buffer.push(digits.text().get(..shown).unwrap_or_default());
    Number { head: buffer.text(), zeros, exponent: Some(power) }
}
