//! Where conversions take their arguments from.

use super::spec::Conversion;

/// Why an argument has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The arguments ran out.
    Missing,
    /// Its stored size fits no value of the conversion.
    Mismatched,
}

/// A text argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Text<'a> {
    /// A null pointer, printed as `(null)`.
    Null,
    /// The bytes before the NUL, or all there are.
    Bytes {
        /// Without the NUL.
        bytes: &'a [u8],
        /// Whether they ended where a text of this record has to end.
        terminated: bool,
    },
}

/// A cursor over the arguments of one call, in order. The bytes behind it are a device's: any may be
/// missing or have the wrong size, and a cursor reads none twice.
pub trait Arguments {
    /// Whether formats may have OpenCL's `v` modifier.
    const VECTORS: bool = false;

    /// The next argument as an integer of 64 bits; shorter ones are extended, by the sign if `signed`.
    ///
    /// # Errors
    /// [`Fault`], with the argument consumed if there was one. The same goes for the others.
    fn integer(&mut self, signed: bool) -> Result<u64, Fault>;

    /// The next argument as a double.
    ///
    /// # Errors
    /// [`Fault`].
    fn float(&mut self) -> Result<f64, Fault>;

    /// The next argument as a text.
    ///
    /// # Errors
    /// [`Fault`].
    fn text(&mut self) -> Result<Text<'_>, Fault>;

    /// The next argument, whatever it is.
    ///
    /// # Errors
    /// [`Fault::Missing`].
    fn skip(&mut self) -> Result<(), Fault>;

    /// The next argument as a vector of `lanes` elements.
    ///
    /// # Errors
    /// [`Fault`]; always, unless [`Self::VECTORS`].
    fn vector(&mut self, lanes: u8) -> Result<Lanes, Fault> {
        let _ = lanes;
        self.skip()?;
        Err(Fault::Mismatched)
    }
}

/// The arguments of HIP's printf, hostcall and buffered: 8 bytes each, texts inline with their NUL and
/// padded to 8 bytes.
///
/// # Source
/// docs/ABI.md §printf arguments
#[derive(Clone, Debug)]
pub struct Words<'a> {
    rest: &'a [u8],
    /// Bytes at the end that no text may take: those of the words that come after it.
    reserved: usize,
    /// Whether a text may take no bytes at all.
    absent: bool,
}

impl<'a> Words<'a> {
    /// Arguments in `bytes`, every text of which is there, be it empty.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, reserved: 0, absent: false }
    }

    /// Arguments in `bytes`, where a null text took no bytes at all, of a format that takes `words`
    /// arguments which are not texts. A text gets only bytes that none of these needs.
    #[must_use]
    pub fn with_absent_texts(bytes: &'a [u8], words: u32) -> Self {
        let words = usize::try_from(words).unwrap_or(usize::MAX);
        Self { rest: bytes, reserved: words.saturating_mul(8), absent: true }
    }

    #[inline]
    fn word(&mut self) -> Result<u64, Fault> {
        self.reserved = self.reserved.saturating_sub(8);
        let Some((word, rest)) = self.rest.split_first_chunk() else {
            self.rest = &[];
            return Err(Fault::Missing);
        };
        self.rest = rest;
        Ok(u64::from_le_bytes(*word))
    }
}

impl Arguments for Words<'_> {
    #[inline]
    fn integer(&mut self, _signed: bool) -> Result<u64, Fault> {
        self.word()
    }

    fn float(&mut self) -> Result<f64, Fault> {
        self.word().map(f64::from_bits)
    }

    #[inline]
    fn text(&mut self) -> Result<Text<'_>, Fault> {
        let most = self.rest.len().saturating_sub(self.reserved);
        let bytes = self.rest.get(..most).unwrap_or_default();
        if bytes.is_empty() {
            let absent = Text::Bytes { bytes: &[], terminated: true };
            return if self.absent { Ok(absent) } else { Err(Fault::Missing) };
        }
        let end = bytes.iter().position(|&byte| byte == 0);
        // With the NUL, in whole words.
        let stored = end.map_or(most, |end| (end + 1).next_multiple_of(8).min(most));
        self.rest = self.rest.get(stored..).unwrap_or_default();
        let bytes = bytes.get(..end.unwrap_or(most)).unwrap_or_default();
        Ok(Text::Bytes { bytes, terminated: end.is_some() })
    }

    fn skip(&mut self) -> Result<(), Fault> {
        self.word().map(|_| ())
    }
}

/// Most bytes of a vector: 16 lanes of 8.
const VECTOR_BYTES: usize = 128;

/// The elements of a vector, copied.
#[derive(Clone, Debug)]
pub struct Lanes {
    bytes: [u8; VECTOR_BYTES],
    lane_bytes: usize,
    left: usize,
    at: usize,
}

impl Lanes {
    /// `lanes` elements from `stored`, which holds them one after another, three of them as four.
    ///
    /// # Errors
    /// [`Fault::Mismatched`] unless elements have 1, 2, 4 or 8 bytes each.
    pub fn new(stored: &[u8], lanes: u8) -> Result<Self, Fault> {
        let lanes = usize::from(lanes);
        let slots = if lanes == 3 { 4 } else { lanes };
        let lane_bytes = stored.len().checked_div(slots).ok_or(Fault::Mismatched)?;
        if lane_bytes * slots != stored.len() || !matches!(lane_bytes, 1 | 2 | 4 | 8) {
            return Err(Fault::Mismatched);
        }
        let mut bytes = [0; VECTOR_BYTES];
        let room = bytes.get_mut(..stored.len()).ok_or(Fault::Mismatched)?;
        room.copy_from_slice(stored);
        Ok(Self { bytes, lane_bytes, left: lanes, at: 0 })
    }

    /// Whether the elements can be numbers of this conversion.
    pub(super) fn fits(&self, conversion: Conversion) -> bool {
        !matches!(conversion, Conversion::Float(_)) || self.lane_bytes > 1
    }
}

impl Iterator for Lanes {
    type Item = Scalar;

    fn next(&mut self) -> Option<Scalar> {
        self.left = self.left.checked_sub(1)?;
        let lane = self.bytes.get(self.at..self.at + self.lane_bytes)?;
        self.at += self.lane_bytes;
        Scalar::new(lane)
    }
}

/// One number of 1, 2, 4 or 8 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scalar {
    bits: u64,
    bytes: u32,
}

impl Scalar {
    /// `None` for other sizes.
    #[must_use]
    pub fn new(stored: &[u8]) -> Option<Self> {
        let mut word = [0; 8];
        word.get_mut(..stored.len())?.copy_from_slice(stored);
        let bytes = u32::try_from(stored.len()).ok()?;
        matches!(bytes, 1 | 2 | 4 | 8).then_some(Self { bits: u64::from_le_bytes(word), bytes })
    }

    /// Extended by zeros.
    #[must_use]
    pub const fn unsigned(self) -> u64 {
        self.bits
    }

    /// Extended by the sign.
    #[must_use]
    pub const fn signed(self) -> u64 {
        let shift = 64 - 8 * self.bytes;
        ((self.bits << shift).cast_signed() >> shift).cast_unsigned()
    }

    /// A half, a float or a double; `None` for one byte.
    #[must_use]
    pub fn float(self) -> Option<f64> {
        let [a, b, c, d, ..] = self.bits.to_le_bytes();
        match self.bytes {
            2 => Some(half(u16::from_le_bytes([a, b]))),
            4 => Some(f64::from(f32::from_le_bytes([a, b, c, d]))),
            8 => Some(f64::from_bits(self.bits)),
            _ => None,
        }
    }
}

/// IEEE binary16 as a double, which holds every one of them.
fn half(bits: u16) -> f64 {
    let sign = u64::from(bits >> 15) << 63;
    let fraction = u64::from(bits & 0x3ff);
    let magnitude = match bits >> 10 & 0x1f {
        0 => return f64::from(bits & 0x3ff) * 2f64.powi(-24) * if sign == 0 { 1.0 } else { -1.0 },
        0x1f => 0x7ff << 52 | fraction << 42,
        biased => (u64::from(biased) + 1023 - 15) << 52 | fraction << 42,
    };
    f64::from_bits(sign | magnitude)
}
