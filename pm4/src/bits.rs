//! Bit ranges of dwords: packets and registers are declared with them, decoders check against them.

/// Bits `[high:low]` of a dword.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bits {
    low: u32,
    width: u32,
}

impl Bits {
    /// Bits `[high:low]`; `low <= high <= 31`.
    pub(crate) const fn new(high: u32, low: u32) -> Self {
        Self { low, width: high - low + 1 }
    }

    /// Lowest bit.
    pub const fn low(self) -> u32 {
        self.low
    }

    /// Highest bit.
    pub const fn high(self) -> u32 {
        self.low + self.width - 1
    }

    /// Largest value that fits.
    pub const fn max(self) -> u32 {
        u32::MAX >> (32 - self.width)
    }

    /// The bits, set.
    pub const fn mask(self) -> u32 {
        self.max() << self.low
    }

    /// The value in `word`.
    pub const fn get(self, word: u32) -> u32 {
        word >> self.low & self.max()
    }

    /// `value` in place; bits that do not fit are lost.
    pub(crate) const fn put(self, value: u32) -> u32 {
        (value & self.max()) << self.low
    }

    /// One bit, set if `value`.
    pub(crate) const fn flag(self, value: bool) -> u32 {
        self.put(value as u32)
    }

    /// Whether any of the bits is set in `word`.
    pub(crate) const fn is_set(self, word: u32) -> bool {
        word & self.mask() != 0
    }

    /// The value in `word` of a field of eight bits or fewer.
    #[allow(clippy::cast_possible_truncation)] // masked to eight bits
    pub(crate) const fn byte(self, word: u32) -> u8 {
        (self.get(word) & 0xFF) as u8
    }

    /// `word` with the bits replaced by `value`; `None` if it does not fit.
    pub(crate) const fn replace(self, word: u32, value: u32) -> Option<u32> {
        if value > self.max() { None } else { Some(word & !self.mask() | self.put(value)) }
    }
}

/// Bits of one dword of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    /// Index of the dword, 0 being the header.
    pub(crate) dword: usize,
    pub(crate) bits: Bits,
}

/// The first dword of `body` that has a bit outside all `tables`: its index, its value, those bits.
///
/// `body` begins with dword `first` of the packet.
pub(crate) fn undefined(
    tables: &[&[Field]],
    first: usize,
    body: &[u32],
) -> Option<(usize, u32, u32)> {
    body.iter().zip(first..).find_map(|(word, dword)| {
        let fields = tables.iter().copied().flatten();
        let here = fields.filter(|field| field.dword == dword);
        let defined = here.fold(0, |all, field| all | field.bits.mask());
        (word & !defined != 0).then_some((dword, *word, word & !defined))
    })
}

/// Declares a packet's fields: `NAME = dword [high:low];`. Each becomes a [`Bits`] constant in the
/// module `$packet`, and all of them its `FIELDS`, which the decoder and the comparison with AMD's
/// headers read.
macro_rules! layout {
    ($($(#[$doc:meta])* $packet:ident { $($name:ident = $dword:literal [$high:literal : $low:literal];)* })*) => {
        $(
            $(#[$doc])*
            #[allow(dead_code)] // whole-dword fields are read by position
            pub(crate) mod $packet {
                use $crate::bits::{Bits, Field};
                $(pub(crate) const $name: Bits = Bits::new($high, $low);)*
                pub(crate) const FIELDS: &[Field] = &[
                    $(Field { name: stringify!($name), dword: $dword, bits: $name },)*
                ];
            }
        )*
    };
}
pub(crate) use layout;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_take_what_fits_and_nothing_else() {
        let bits = Bits::new(11, 8);
        assert_eq!((bits.mask(), bits.max(), bits.low(), bits.high()), (0xF00, 15, 8, 11));
        assert_eq!(bits.get(0x1A55), 0xA);
        assert_eq!(bits.replace(0xFFFF_FFFF, 0), Some(0xFFFF_F0FF));
        assert_eq!(bits.replace(0, 16), None);
        assert_eq!(Bits::new(31, 0).mask(), u32::MAX);
    }

    #[test]
    fn undefined_names_the_first_offending_dword() {
        let fields = [
            Field { name: "A", dword: 1, bits: Bits::new(3, 0) },
            Field { name: "B", dword: 2, bits: Bits::new(31, 0) },
        ];
        assert_eq!(undefined(&[&fields], 1, &[0xF, u32::MAX]), None);
        assert_eq!(undefined(&[&fields], 1, &[0x1F, 0]), Some((1, 0x1F, 0x10)));
        assert_eq!(undefined(&[&fields], 1, &[0, 0, 4]), Some((3, 4, 4)));
    }
}
