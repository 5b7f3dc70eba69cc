//! What a fill repeats.

/// A value of 1, 2, 4, 8 or 16 bytes that fills repeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pattern {
    /// Repeated over all 16 bytes.
    bytes: [u8; 16],
    size: u8,
}

impl Pattern {
    fn new<const N: usize>(value: [u8; N], size: u8) -> Self {
        let mut bytes = [0; 16];
        for (byte, from) in bytes.iter_mut().zip(value.iter().cycle()) {
            *byte = *from;
        }
        Self { bytes, size }
    }

    /// Bytes of the value: 1, 2, 4, 8 or 16.
    pub const fn bytes(self) -> u64 {
        self.size as u64
    }

    /// The repetition, 16 bytes of it, from its byte `start` on.
    pub(crate) fn rotated(self, start: u64) -> [u8; 16] {
        let mut bytes = self.bytes;
        bytes.rotate_left(usize::try_from(start % 16).unwrap_or(0));
        bytes
    }

    /// The one byte it is made of.
    pub(crate) fn as_byte(self) -> Option<u8> {
        let [first, rest @ ..] = self.bytes;
        rest.iter().all(|byte| *byte == first).then_some(first)
    }

    /// The one dword that the repetition is made of, from its byte `start` on.
    pub(crate) fn as_dword(self, start: u64) -> Option<u32> {
        let bytes = self.rotated(start);
        let (dwords, _) = bytes.as_chunks::<4>();
        let first = dwords.first()?;
        dwords.iter().all(|dword| dword == first).then_some(u32::from_le_bytes(*first))
    }
}

macro_rules! from {
    ($($int:ty),*) => {$(
        impl From<$int> for Pattern {
            /// Little-endian, as the device stores it.
            fn from(value: $int) -> Self {
                let bytes = value.to_le_bytes();
                let size = const { <$int>::BITS.to_le_bytes()[0] / 8 };
                Self::new(bytes, size)
            }
        }
    )*};
}
from!(u8, u16, u32, u64, u128);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_repeat_in_memory_order() {
        let pattern = Pattern::from(0x1122_u16);
        assert_eq!(pattern.bytes(), 2);
        assert_eq!(pattern.rotated(0)[..4], [0x22, 0x11, 0x22, 0x11]);
        assert_eq!(pattern.rotated(17)[..2], [0x11, 0x22]);
        assert_eq!(pattern.as_byte(), None);
        assert_eq!(pattern.as_dword(0), Some(0x1122_1122));
        assert_eq!(pattern.as_dword(1), Some(0x2211_2211));
    }

    #[test]
    fn wide_values_are_a_byte_or_a_dword_only_if_they_repeat_one() {
        assert_eq!(Pattern::from(0_u128).as_byte(), Some(0));
        assert_eq!(Pattern::from(u64::MAX).as_byte(), Some(0xFF));
        assert_eq!(Pattern::from(0x0000_0001_0000_0001_u64).as_dword(0), Some(1));
        assert_eq!(Pattern::from(0x0000_0002_0000_0001_u64).as_dword(0), None);
        let wide = Pattern::from(0x0F0E_0D0C_0B0A_0908_0706_0504_0302_0100_u128);
        assert_eq!(wide.rotated(5)[0], 5);
        assert_eq!(wide.bytes(), 16);
    }
}
