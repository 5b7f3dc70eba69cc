//! The grammar: from the bytes after a `%` to what is to be converted and how.

use super::float::Style;
use super::integer::Base;

/// One conversion specification.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spec {
    pub left: bool,
    pub plus: bool,
    pub space: bool,
    pub alternate: bool,
    pub zero: bool,
    pub width: Count,
    pub precision: Count,
    /// Lanes of an OpenCL vector, 0 for a scalar.
    pub lanes: u8,
    pub length: Length,
    pub conversion: Conversion,
}

/// No flags, no width, no precision, no length.
const PLAIN: Spec = Spec {
    left: false,
    plus: false,
    space: false,
    alternate: false,
    zero: false,
    width: Count::None,
    precision: Count::None,
    lanes: 0,
    length: Length::Int,
    conversion: Conversion::Nothing,
};

/// A width or a precision. Digits beyond an `u32` count as its maximum, which no limit lets through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Count {
    None,
    Star,
    Fixed(u32),
}

/// Length modifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Length {
    /// `hh`: 8 bits.
    Char,
    /// `h`: 16 bits.
    Short,
    /// None: 32 bits. `hl` of OpenCL is the same.
    Int,
    /// `l`, `ll`, `j`, `z`, `t`, `L`: 64 bits.
    Long,
}

impl Length {
    /// `value` cut to the type and sign-extended.
    pub fn signed(self, value: u64) -> i64 {
        let shift = 64 - self.bits();
        (value << shift).cast_signed() >> shift
    }

    /// `value` cut to the type.
    pub fn unsigned(self, value: u64) -> u64 {
        let shift = 64 - self.bits();
        (value << shift) >> shift
    }

    const fn bits(self) -> u32 {
        match self {
            Self::Char => 8,
            Self::Short => 16,
            Self::Int => 32,
            Self::Long => 64,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Conversion {
    Signed,
    Unsigned(Base),
    Float(Style),
    Character,
    Text,
    Pointer,
    /// `n`.
    Nothing,
}

impl Conversion {
    fn new(byte: u8) -> Option<Self> {
        Some(match byte {
            b'd' | b'i' => Self::Signed,
            b'u' => Self::Unsigned(Base::Decimal),
            b'o' => Self::Unsigned(Base::Octal),
            b'x' => Self::Unsigned(Base::Hex),
            b'X' => Self::Unsigned(Base::HexUpper),
            b'c' => Self::Character,
            b's' => Self::Text,
            b'p' => Self::Pointer,
            b'n' => Self::Nothing,
            _ => Self::Float(Style::new(byte)?),
        })
    }
}

/// What follows a `%`.
pub(super) enum Parsed<'a> {
    /// `%%`; what is left after it.
    Percent(&'a [u8]),
    /// A conversion; what is left after it.
    Conversion(Spec, &'a [u8]),
    /// Not in the grammar, but with a conversion character, at which it ends.
    Unknown { stars: usize, conversion: u8, text: &'a [u8], left: &'a [u8] },
    /// No conversion character follows.
    Unended,
}

/// Reads what follows a `%`. With `vectors`, OpenCL's `v` modifier is part of the grammar.
pub(super) fn parse(after: &[u8], vectors: bool) -> Parsed<'_> {
    if let Some(left) = after.strip_prefix(b"%") {
        return Parsed::Percent(left);
    }
    // Most conversions are only a character.
    if let Some((&byte, left)) = after.split_first()
        && let Some(conversion) = Conversion::new(byte)
    {
        return Parsed::Conversion(Spec { conversion, ..PLAIN }, left);
    }
    let mut reader = Reader { rest: after };
    if let Some(spec) = reader.spec(vectors) {
        return Parsed::Conversion(spec, reader.rest);
    }
    let Some(end) = after.iter().position(|&byte| Conversion::new(byte).is_some()) else {
        return Parsed::Unended;
    };
    let (text, left) = after.split_at(end + 1);
    let stars = text.iter().filter(|&&byte| byte == b'*').count();
    Parsed::Unknown { stars, conversion: text.last().copied().unwrap_or_default(), text, left }
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl Reader<'_> {
    fn spec(&mut self, vectors: bool) -> Option<Spec> {
        let mut spec = PLAIN;
        loop {
            match self.rest.first()? {
                b'-' => spec.left = true,
                b'+' => spec.plus = true,
                b' ' => spec.space = true,
                b'#' => spec.alternate = true,
                b'0' => spec.zero = true,
                b'\'' => {} // groups of thousands: the C locale has none
                _ => break,
            }
            self.skip();
        }
        spec.width = self.count(Count::None);
        if self.take(b'.') {
            spec.precision = self.count(Count::Fixed(0));
        }
        if vectors && self.take(b'v') {
            spec.lanes = self.lanes()?;
        }
        spec.length = self.length(spec.lanes != 0)?;
        spec.conversion = Conversion::new(*self.rest.first()?)?;
        self.skip();
        let numbers = matches!(
            spec.conversion,
            Conversion::Signed | Conversion::Unsigned(_) | Conversion::Float(_)
        );
        let wide_text = spec.conversion == Conversion::Text && spec.length == Length::Long;
        (!wide_text && (numbers || spec.lanes == 0)).then_some(spec)
    }

    fn skip(&mut self) {
        self.rest = self.rest.split_first().map_or(&[], |(_, rest)| rest);
    }

    fn take(&mut self, byte: u8) -> bool {
        let there = self.rest.first() == Some(&byte);
        if there {
            self.skip();
        }
        there
    }

    /// Digits or a star, `none` if there is neither.
    fn count(&mut self, none: Count) -> Count {
        if self.take(b'*') {
            return Count::Star;
        }
        let mut count = None;
        while let Some(digit) = self.rest.first().filter(|byte| byte.is_ascii_digit()) {
            let digit = u32::from(digit - b'0');
            count = Some(count.unwrap_or(0u32).saturating_mul(10).saturating_add(digit));
            self.skip();
        }
        count.map_or(none, Count::Fixed)
    }

    fn lanes(&mut self) -> Option<u8> {
        match self.count(Count::None) {
            Count::Fixed(lanes @ (2 | 3 | 4 | 8 | 16)) => u8::try_from(lanes).ok(),
            _ => None,
        }
    }

    fn length(&mut self, vector: bool) -> Option<Length> {
        Some(match self.rest.first()? {
            b'h' => {
                self.skip();
                if self.take(b'h') {
                    Length::Char
                } else if vector && self.take(b'l') {
                    Length::Int
                } else {
                    Length::Short
                }
            }
            b'l' => {
                self.skip();
                self.take(b'l');
                Length::Long
            }
            b'j' | b'z' | b't' | b'L' => {
                self.skip();
                Length::Long
            }
            _ => Length::Int,
        })
    }
}

/// Arguments that a format takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Numbers, characters, pointers, stars: 8 bytes each in HIP's records.
    pub words: u32,
    /// Texts.
    pub texts: u32,
}

/// Counts as the compiler does: [`parse`] agrees with it on where a conversion ends.
pub(super) fn needs(format: &[u8]) -> Needs {
    let mut needs = Needs::default();
    let mut rest = super::until_nul(format);
    while let Some(percent) = rest.iter().position(|&byte| byte == b'%') {
        let after = rest.get(percent + 1..).unwrap_or_default();
        if let Some(left) = after.strip_prefix(b"%") {
            rest = left;
            continue;
        }
        let Some(end) = after.iter().position(|&byte| Conversion::new(byte).is_some()) else {
            break;
        };
        let (text, left) = after.split_at(end + 1);
        let stars = text.iter().filter(|&&byte| byte == b'*').count();
        needs.words = needs.words.saturating_add(u32::try_from(stars).unwrap_or(u32::MAX));
        if text.ends_with(b"s") {
            needs.texts = needs.texts.saturating_add(1);
        } else {
            needs.words = needs.words.saturating_add(1);
        }
        rest = left;
    }
    needs
}
