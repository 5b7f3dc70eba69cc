//! printf in Rust: the text that C's `printf` makes of a format and of arguments that a device wrote.
//!
//! No device text ever reaches a format function of C. The output is glibc's byte for byte (C locale,
//! round to nearest) wherever C defines it; where C does not, it is defined here:
//!
//! | format | output |
//! | --- | --- |
//! | `%n` | consumes its argument, writes nothing, follows no pointer |
//! | arguments run out | numbers print as 0, texts as empty; the rest of the format is printed |
//! | `%ls`, `%1$d`, anything else outside the grammar | the specifier as it stands; consumes what the compiler stored for it |
//! | `%lc` | the code point as UTF-8, U+FFFD if it is none |
//! | `%Lf` | a double: `long double` is one on the device |
//! | no conversion character after `%` | the rest of the format as it stands |
//! | `%v4hld` | the lanes, separated by commas (OpenCL records only) |
//!
//! Each of these but the last three is counted in the [`Outcome`]. A conversion runs from `%` to the first of
//! `diouxXfFeEgGaAcspn`, because that is how the compiler finds the arguments which it stores.
//!
//! Time and memory are linear in the format, the arguments and the bytes written; [`Limits`] bounds
//! these. Nothing is allocated but the caller's `Vec`.
//!
//! # Source
//! docs/ABI.md §printf conversions

mod arguments;
mod float;
mod integer;
mod output;
mod spec;
#[cfg(test)]
mod tests;

pub use arguments::{Arguments, Fault, Lanes, Scalar, Text, Words};
pub use spec::Needs;

use integer::Prefix;
use output::Output;
use spec::{Conversion, Count, Length, Parsed, Spec};

/// Padding that one width may add, in bytes, unless [`Limits`] says otherwise.
pub const MAX_WIDTH: u32 = 16 << 20;

/// Zeros that one precision may add, unless [`Limits`] says otherwise.
pub const MAX_PRECISION: u32 = 16 << 20;

/// Length of one message in bytes, unless [`Limits`] says otherwise.
pub const MAX_MESSAGE_BYTES: u32 = 16 << 20;

/// What one message may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of padding that the width of one conversion may add.
    pub width: u32,
    /// Zeros that the precision of one conversion may add.
    pub precision: u32,
    /// Bytes of the whole message.
    pub message_bytes: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { width: MAX_WIDTH, precision: MAX_PRECISION, message_bytes: MAX_MESSAGE_BYTES }
    }
}

/// Which limits left bytes out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    /// [`Limits::width`].
    pub width: bool,
    /// [`Limits::precision`].
    pub precision: bool,
    /// [`Limits::message_bytes`].
    pub message: bool,
}

impl Cut {
    /// Whether anything is missing from the output.
    #[must_use]
    pub const fn any(self) -> bool {
        self.width || self.precision || self.message
    }
}

/// What became of one message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Outcome {
    /// Bytes that the message has without limits.
    pub needed: u64,
    /// What the limits left out.
    pub cut: Cut,
    /// Arguments that were not there.
    pub missing: u32,
    /// Arguments whose stored size fits no value of their conversion.
    pub mismatched: u32,
    /// Conversions outside the grammar.
    pub unknown: u32,
    /// Texts that ended with the record instead of a NUL.
    pub unterminated: u32,
}

impl Outcome {
    /// What C's `printf` returns: the length in bytes, or -1 when it exceeds an `int` or was cut.
    #[must_use]
    pub fn result(&self) -> i32 {
        if self.cut.any() { -1 } else { i32::try_from(self.needed).unwrap_or(-1) }
    }

    /// Whether the format and its arguments went together.
    #[must_use]
    pub const fn is_clean(&self) -> bool {
        self.missing == 0 && self.mismatched == 0 && self.unknown == 0 && self.unterminated == 0
    }
}

/// Arguments that `format` takes, by the scan that the compiler uses to store them.
#[must_use]
pub fn needs(format: &[u8]) -> Needs {
    spec::needs(format)
}

/// Appends to `out` what `printf(format, arguments...)` prints. `format` ends at its first NUL.
///
/// ```
/// # use hostcall::format::{Limits, Words, format};
/// let mut out = Vec::new();
/// let arguments = [7u64.to_le_bytes(), *b"lanes\0\0\0"].concat();
/// let outcome = format(&mut out, b"%03d %s\n", &mut Words::new(&arguments), &Limits::default());
/// assert_eq!(out, b"007 lanes\n");
/// assert_eq!(outcome.result(), 10);
/// ```
pub fn format<A: Arguments>(
    out: &mut Vec<u8>,
    format: &[u8],
    arguments: &mut A,
    limits: &Limits,
) -> Outcome {
    let mut printer =
        Printer { out: Output::new(out, limits), arguments, outcome: Outcome::default() };
    let mut rest = until_nul(format);
    while !rest.is_empty() {
        let literal = rest.iter().position(|&byte| byte == b'%').unwrap_or(rest.len());
        let (text, after) = rest.split_at(literal);
        printer.out.bytes(text);
        let Some(after) = after.strip_prefix(b"%") else { break };
        rest = match spec::parse(after, A::VECTORS) {
            Parsed::Percent(left) => {
                printer.out.byte(b'%');
                left
            }
            Parsed::Conversion(spec, left) => {
                let end = after.len() - left.len();
                printer.conversion(&spec, after.get(..end).unwrap_or_default());
                left
            }
            Parsed::Unknown { stars, conversion, text, left } => {
                printer.unknown(stars, conversion, text);
                left
            }
            Parsed::Unended => {
                printer.outcome.unknown += 1;
                printer.out.byte(b'%');
                printer.out.bytes(after);
                break;
            }
        };
    }
    printer.out.finish(printer.outcome)
}

/// `bytes` up to its first NUL.
pub(crate) fn until_nul(bytes: &[u8]) -> &[u8] {
    bytes.split(|&byte| byte == 0).next().unwrap_or_default()
}

/// Width and precision of one conversion, stars resolved.
#[derive(Clone, Copy)]
struct Field {
    left: bool,
    zero: bool,
    alternate: bool,
    sign: Option<u8>,
    width: u64,
    precision: Option<u64>,
}

struct Printer<'out, 'arguments, A> {
    out: Output<'out>,
    arguments: &'arguments mut A,
    outcome: Outcome,
}

impl<A: Arguments> Printer<'_, '_, A> {
    /// Prints one conversion; `text` is its specifier after the `%`.
    fn conversion(&mut self, spec: &Spec, text: &[u8]) {
        let field = self.field(spec);
        if spec.lanes != 0 {
            return self.vector(spec, &field, text);
        }
        match spec.conversion {
            Conversion::Signed => {
                let value = self.integer(true);
                self.signed(spec.length, value, &field);
            }
            Conversion::Unsigned(base) => {
                let value = self.integer(false);
                self.unsigned(spec.length, value, base, &field);
            }
            Conversion::Float(style) => {
                let fetched = self.arguments.float();
                let value = self.or_zero(fetched);
                float::print(&mut self.out, &field, style, value);
            }
            Conversion::Character => {
                let fetched = self.arguments.integer(false);
                let present = fetched.is_ok();
                let value = self.or_zero(fetched);
                self.character(spec.length, present.then_some(value), &field);
            }
            Conversion::Text => self.text(&field),
            Conversion::Pointer => {
                let value = self.integer(false);
                if value == 0 {
                    self.out.field(b"(nil)", field.width, field.left);
                } else {
                    let prefix = Prefix { sign: field.sign, base: Some(b'x') };
                    integer::print(&mut self.out, &field, prefix, value, integer::Base::Hex);
                }
            }
            Conversion::Nothing => {
                let fetched = self.arguments.skip();
                self.or_zero(fetched);
            }
        }
    }

    /// Resolves stars: low 32 bits as `int`; a negative width is a `-` flag, a negative precision none.
    fn field(&mut self, spec: &Spec) -> Field {
        let mut left = spec.left;
        let width = match spec.width {
            Count::None => 0,
            Count::Fixed(width) => u64::from(width),
            Count::Star => {
                let width = self.star();
                left |= width < 0;
                u64::from(width.unsigned_abs())
            }
        };
        let precision = match spec.precision {
            Count::None => None,
            Count::Fixed(precision) => Some(u64::from(precision)),
            Count::Star => u64::try_from(self.star()).ok(),
        };
        let sign = match (spec.plus, spec.space) {
            (true, _) => Some(b'+'),
            (false, true) => Some(b' '),
            (false, false) => None,
        };
        let zero = spec.zero && !left;
        Field { left, zero, alternate: spec.alternate, sign, width, precision }
    }

    fn star(&mut self) -> i32 {
        integer::low_i32(self.integer(true))
    }

    fn integer(&mut self, signed: bool) -> u64 {
        let fetched = self.arguments.integer(signed);
        self.or_zero(fetched)
    }

    /// Counts a fault, whose value is 0.
    fn or_zero<T: Default>(&mut self, fetched: Result<T, Fault>) -> T {
        fetched.unwrap_or_else(|fault| {
            self.count(fault);
            T::default()
        })
    }

    fn count(&mut self, fault: Fault) {
        match fault {
            Fault::Missing => self.outcome.missing += 1,
            Fault::Mismatched => self.outcome.mismatched += 1,
        }
    }

    fn signed(&mut self, length: Length, value: u64, field: &Field) {
        let value = length.signed(value);
        let sign = if value < 0 { Some(b'-') } else { field.sign };
        let prefix = Prefix { sign, base: None };
        integer::print(&mut self.out, field, prefix, value.unsigned_abs(), integer::Base::Decimal);
    }

    fn unsigned(&mut self, length: Length, value: u64, base: integer::Base, field: &Field) {
        let value = length.unsigned(value);
        let mark = (field.alternate && value != 0).then(|| base.mark()).flatten();
        integer::print(&mut self.out, field, Prefix { sign: None, base: mark }, value, base);
    }

    fn character(&mut self, length: Length, value: Option<u64>, field: &Field) {
        let Some(value) = value else { return self.out.field(b"", field.width, field.left) };
        let [byte, ..] = value.to_le_bytes();
        if length == Length::Long {
            let point = integer::low_u32(value);
            let point = char::from_u32(point).unwrap_or(char::REPLACEMENT_CHARACTER);
            let mut utf8 = [0; 4];
            self.out.field(point.encode_utf8(&mut utf8).as_bytes(), field.width, field.left);
        } else {
            self.out.field(&[byte], field.width, field.left);
        }
    }

    fn text(&mut self, field: &Field) {
        let precision = field.precision.and_then(|precision| usize::try_from(precision).ok());
        match self.arguments.text() {
            Ok(Text::Null) => {
                // glibc: all of it or nothing.
                let text: &[u8] =
                    if precision.is_none_or(|most| most >= 6) { b"(null)" } else { b"" };
                self.out.field(text, field.width, field.left);
            }
            Ok(Text::Bytes { bytes, terminated }) => {
                self.outcome.unterminated += u32::from(!terminated);
                let shown = precision.and_then(|most| bytes.get(..most)).unwrap_or(bytes);
                self.out.field(shown, field.width, field.left);
            }
            Err(fault) => {
                self.count(fault);
                self.out.field(b"", field.width, field.left);
            }
        }
    }

    fn vector(&mut self, spec: &Spec, field: &Field, text: &[u8]) {
        let lanes = match self.arguments.vector(spec.lanes) {
            Ok(lanes) if lanes.fits(spec.conversion) => lanes,
            fetched => {
                self.count(fetched.err().unwrap_or(Fault::Mismatched));
                self.out.byte(b'%');
                return self.out.bytes(text);
            }
        };
        // Copied, so that the arguments can be borrowed again; 16 lanes of 8 bytes at most.
        let mut separator = false;
        for lane in lanes {
            if std::mem::replace(&mut separator, true) {
                self.out.byte(b',');
            }
            match spec.conversion {
                Conversion::Signed => self.signed(spec.length, lane.signed(), field),
                Conversion::Unsigned(base) => {
                    self.unsigned(spec.length, lane.unsigned(), base, field);
                }
                Conversion::Float(style) => {
                    float::print(&mut self.out, field, style, lane.float().unwrap_or_default());
                }
                _ => {}
            }
        }
    }

    /// Prints a specifier outside the grammar and consumes what was stored for it.
    fn unknown(&mut self, stars: usize, conversion: u8, text: &[u8]) {
        self.outcome.unknown += 1;
        for _ in 0..stars {
            if let Err(fault) = self.arguments.skip() {
                self.count(fault);
                break; // no other is there: at most one round per argument
            }
        }
        let consumed = if conversion == b's' {
            self.arguments.text().map(|_| ())
        } else {
            self.arguments.skip()
        };
        self.or_zero(consumed);
        self.out.byte(b'%');
        self.out.bytes(text);
    }
}
