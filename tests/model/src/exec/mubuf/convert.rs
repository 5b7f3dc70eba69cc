//! Buffer data formats: elements in memory to components in registers, and back.
//!
//! docs/ABI.md §Buffer formats.

use crate::exec::valu::lane::half;
use crate::exec::valu::lane::soft::{self, F16, F32, Format as Float, Round};

/// How the bits of a component are a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Number {
    /// 0 to 1.
    Unorm,
    /// -1 to 1.
    Snorm,
    /// An unsigned integer, as a float in registers.
    Uscaled,
    /// A signed integer, as a float in registers.
    Sscaled,
    /// An unsigned integer.
    Uint,
    /// A signed integer.
    Sint,
    /// A float of the component's width.
    Float,
}

/// An element format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Format {
    /// Widths of the components in bits, the lowest bits first.
    pub(super) widths: &'static [u8],
    /// What each of them is.
    pub(super) number: Number,
}

const W8: &[u8] = &[8];
const W16: &[u8] = &[16];
const W8X2: &[u8] = &[8, 8];
const W32: &[u8] = &[32];
const W16X2: &[u8] = &[16, 16];
const W10_11_11: &[u8] = &[11, 11, 10];
const W11_11_10: &[u8] = &[10, 11, 11];
const W10_10_10_2: &[u8] = &[2, 10, 10, 10];
const W2_10_10_10: &[u8] = &[10, 10, 10, 2];
const W8X4: &[u8] = &[8, 8, 8, 8];
const W32X2: &[u8] = &[32, 32];
const W16X4: &[u8] = &[16, 16, 16, 16];
const W32X3: &[u8] = &[32, 32, 32];
const W32X4: &[u8] = &[32, 32, 32, 32];

impl Format {
    /// Of gfx9's data format and number format. `None`: invalid or reserved.
    pub(super) fn gfx9(data: u32, number: u32) -> Option<Self> {
        const WIDTHS: [&[u8]; 16] = [
            &[],
            W8,
            W16,
            W8X2,
            W32,
            W16X2,
            W10_11_11,
            W11_11_10,
            W10_10_10_2,
            W2_10_10_10,
            W8X4,
            W32X2,
            W16X4,
            W32X3,
            W32X4,
            &[],
        ];
        let number = match number {
            0 => Number::Unorm,
            1 => Number::Snorm,
            2 => Number::Uscaled,
            3 => Number::Sscaled,
            4 => Number::Uint,
            5 => Number::Sint,
            7 => Number::Float,
            _ => return None,
        };
        let widths = WIDTHS.get(data as usize).copied().filter(|widths| !widths.is_empty())?;
        // There are floats of 10, 11, 16 and 32 bits.
        let odd = widths.iter().any(|&width| matches!(width, 2 | 8)) && number == Number::Float;
        (!odd).then_some(Self { widths, number })
    }

    /// Of gfx11's unified format. `None`: invalid or reserved.
    pub(super) fn gfx11(format: u32) -> Option<Self> {
        use Number::{Float, Sint, Snorm, Sscaled, Uint, Unorm, Uscaled};
        const SIX: [Number; 6] = [Unorm, Snorm, Uscaled, Sscaled, Uint, Sint];
        const SEVEN: [Number; 7] = [Unorm, Snorm, Uscaled, Sscaled, Uint, Sint, Float];
        const FOUR: [Number; 4] = [Unorm, Snorm, Uint, Sint];
        const THREE: [Number; 3] = [Uint, Sint, Float];
        const ONE: [Number; 1] = [Float];
        // Consecutive numbers from 1.
        const TABLE: [(&[u8], &[Number]); 14] = [
            (W8, &SIX),
            (W16, &SEVEN),
            (W8X2, &SIX),
            (W32, &THREE),
            (W16X2, &SEVEN),
            (W10_11_11, &ONE),
            (W11_11_10, &ONE),
            (W10_10_10_2, &FOUR),
            (W2_10_10_10, &SIX),
            (W8X4, &SIX),
            (W32X2, &THREE),
            (W16X4, &SEVEN),
            (W32X3, &THREE),
            (W32X4, &THREE),
        ];
        let mut index = (format as usize).checked_sub(1)?;
        for (widths, numbers) in TABLE {
            match numbers.get(index) {
                Some(&number) => return Some(Self { widths, number }),
                None => index -= numbers.len(),
            }
        }
        None
    }

    /// Bytes of an element.
    pub(super) fn bytes(self) -> u32 {
        self.widths.iter().map(|&width| u32::from(width)).sum::<u32>() / 8
    }

    /// Whether registers hold integers.
    pub(super) fn is_integer(self) -> bool {
        matches!(self.number, Number::Uint | Number::Sint)
    }

    /// Component `k` of an element as a 32-bit register has it.
    pub(super) fn read(self, element: [u32; 4], k: usize) -> u32 {
        let (bits, width) = self.component(element, k);
        let signed = i64::from(bits as i32) << (32 - width) << 32 >> 32 >> (32 - width);
        let float = |value: f64| (value as f32).to_bits();
        match self.number {
            Number::Unorm => float(f64::from(bits) / f64::from(ones(width))),
            Number::Snorm => float((signed as f64 / f64::from(ones(width - 1))).max(-1.0)),
            Number::Uscaled => float(f64::from(bits)),
            Number::Sscaled => float(signed as f64),
            Number::Uint => bits,
            Number::Sint => signed as u32,
            Number::Float => widen(bits, width),
        }
    }

    /// Component `k` of an element as a 16-bit register half has it.
    pub(super) fn read_half(self, element: [u32; 4], k: usize) -> u16 {
        let value = self.read(element, k);
        if self.is_integer() {
            return value as u16;
        }
        // Single precision is cut off; everything else is rounded.
        let round = match (self.number, self.widths.get(k)) {
            (Number::Float, Some(32)) => Round::Zero,
            _ => Round::Nearest,
        };
        soft::convert(u64::from(value), F32, F16, round) as u16
    }

    /// Puts a 32-bit register's value into component `k` of an element.
    pub(super) fn write(self, element: &mut [u32; 4], k: usize, value: u32) {
        let Some(&width) = self.widths.get(k) else { return };
        let width = u32::from(width);
        let single = f64::from(f32::from_bits(value));
        let limit = i64::from(ones(width - 1));
        let bits = match self.number {
            Number::Unorm => {
                (single.clamp(0.0, 1.0) * f64::from(ones(width))).round_ties_even() as u32
            }
            Number::Snorm => (single.clamp(-1.0, 1.0) * f64::from(ones(width - 1)))
                .round_ties_even() as i32 as u32,
            Number::Uscaled => (single as u32).min(ones(width)),
            Number::Sscaled => i64::from(single as i32).clamp(-limit - 1, limit) as u32,
            Number::Uint => value.min(ones(width)),
            Number::Sint => i64::from(value as i32).clamp(-limit - 1, limit) as u32,
            Number::Float => narrow(value, width),
        };
        let at: u32 = self.widths.iter().take(k).map(|&width| u32::from(width)).sum();
        if let Some(word) = element.get_mut(at as usize / 32) {
            *word |= (bits & ones(width)) << (at % 32);
        }
    }

    /// A register half as the 32-bit value that [`Format::write`] takes.
    pub(super) fn of_half(self, half: u16) -> u32 {
        match self.number {
            Number::Uint => u32::from(half),
            Number::Sint => half as i16 as u32,
            _ => half::to_f32(half).to_bits(),
        }
    }

    /// Bits and width of a component; no component crosses a dword.
    fn component(self, element: [u32; 4], k: usize) -> (u32, u32) {
        let width = self.widths.get(k).map_or(32, |&width| u32::from(width));
        let at: u32 = self.widths.iter().take(k).map(|&width| u32::from(width)).sum();
        let word = element.get(at as usize / 32).copied().unwrap_or(0);
        (word >> (at % 32) & ones(width), width)
    }
}

/// The largest value of `width` bits.
const fn ones(width: u32) -> u32 {
    if width >= 32 { !0 } else { (1 << width) - 1 }
}

/// The small floats have no sign: as a signed format they are one bit wider.
const fn small(width: u32) -> Float {
    Float { mantissa: width - 5, exponent: 5 }
}

fn widen(bits: u32, width: u32) -> u32 {
    let from = match width {
        32 => return bits,
        16 => F16,
        _ => small(width),
    };
    soft::convert(u64::from(bits), from, F32, Round::Nearest) as u32
}

fn narrow(value: u32, width: u32) -> u32 {
    let to = match width {
        32 => return value,
        16 => F16,
        _ => small(width),
    };
    let negative = value >> 31 != 0 && !f32::from_bits(value).is_nan();
    if width < 16 && negative {
        return 0;
    }
    soft::convert(u64::from(value), F32, to, Round::Zero) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unified_formats_have_the_numbers_of_llvm() {
        // LLVM 19, SIDefines.h: the last and some inner entries.
        let is = |n, widths: &[u8], number| {
            assert_eq!(
                Format::gfx11(n).map(|f| (f.widths, f.number)),
                Some((widths, number)),
                "{n}"
            );
        };
        is(1, &[8], Number::Unorm);
        is(6, &[8], Number::Sint);
        is(13, &[16], Number::Float);
        is(22, &[32], Number::Float);
        is(29, &[16, 16], Number::Float);
        is(30, &[11, 11, 10], Number::Float);
        is(31, &[10, 11, 11], Number::Float);
        is(34, &[2, 10, 10, 10], Number::Uint);
        is(36, &[10, 10, 10, 2], Number::Unorm);
        is(47, &[8, 8, 8, 8], Number::Sint);
        is(57, &[16, 16, 16, 16], Number::Float);
        is(60, &[32, 32, 32], Number::Float);
        is(63, &[32, 32, 32, 32], Number::Float);
        assert_eq!([0, 64, 127].map(Format::gfx11), [None; 3]);
    }

    #[test]
    fn gfx9_formats_combine_widths_and_numbers() {
        assert_eq!(Format::gfx9(12, 7).map(Format::bytes), Some(8));
        assert_eq!(Format::gfx9(8, 4).map(|f| f.widths), Some(&[2, 10, 10, 10][..]));
        assert_eq!([(0, 4), (15, 4), (4, 6), (1, 7)].map(|(d, n)| Format::gfx9(d, n)), [None; 4]);
    }

    #[test]
    fn normalised_components_reach_both_ends() {
        let unorm = Format { widths: W8, number: Number::Unorm };
        let read = |f: Format, bits: u32| f32::from_bits(f.read([bits, 0, 0, 0], 0));
        assert_eq!([0, 255].map(|bits| read(unorm, bits)), [0.0, 1.0]);
        assert_eq!(read(unorm, 51), 0.2);
        let snorm = Format { widths: W16, number: Number::Snorm };
        assert_eq!([0x7fff, 0x8001, 0x8000].map(|b| read(snorm, b)), [1.0, -1.0, -1.0]);
        let write = |f: Format, value: f32| {
            let mut element = [0; 4];
            f.write(&mut element, 0, value.to_bits());
            element[0]
        };
        assert_eq!([-1.0, 2.0, 0.5, f32::NAN].map(|v| write(unorm, v)), [0, 255, 128, 0]);
        assert_eq!([-2.0, 1.0].map(|v| write(snorm, v)), [0x8001, 0x7fff]);
    }

    #[test]
    fn packed_components_lie_where_their_name_says() {
        // 2_10_10_10: the name lists the highest bits first.
        let f = Format { widths: W2_10_10_10, number: Number::Sint };
        let element = [3 << 30 | 1 << 20 | 0x200 << 10 | 0x1ff, 0, 0, 0];
        assert_eq!([0, 1, 2, 3].map(|k| f.read(element, k) as i32), [511, -512, 1, -1]);
        let mut back = [0; 4];
        for (k, value) in [511, -512, 1, -1].into_iter().enumerate() {
            f.write(&mut back, k, value as u32);
        }
        assert_eq!(back, element);
        // Integers saturate.
        let mut element = [0; 4];
        f.write(&mut element, 3, 5);
        f.write(&mut element, 0, -4000i32 as u32);
        assert_eq!(element[0], 1 << 30 | 0x200);
    }

    #[test]
    fn small_floats_have_no_sign_and_keep_infinity() {
        // 11 bits: 5 of exponent, 6 of mantissa; 10 bits: 5 and 5.
        let f = Format { widths: W10_11_11, number: Number::Float };
        let element = [0x3c0 | 0x7c0 << 11 | 0x1c0 << 22, 0, 0, 0];
        let read: [f32; 3] = [0, 1, 2].map(|k| f32::from_bits(f.read(element, k)));
        assert_eq!(read, [1.0, f32::INFINITY, 0.5]);
        let mut back = [0; 4];
        for (k, value) in [1.007f32, -3.0, 1e9].into_iter().enumerate() {
            f.write(&mut back, k, value.to_bits());
        }
        // Cut off, never rounded up: 1.007 is below the next value 1.015625.
        assert_eq!(back[0], 0x3c0 | 0x3df << 22);
    }

    #[test]
    fn halves_are_cut_from_singles_and_rounded_from_the_rest() {
        let single = Format { widths: W32, number: Number::Float };
        // 1 + 2^-11 + 2^-12 is nearer to 1 + 2^-10.
        assert_eq!(single.read_half([0x3f80_1800, 0, 0, 0], 0), 0x3c00);
        let unorm = Format { widths: W16, number: Number::Unorm };
        assert_eq!(unorm.read_half([0xffff, 0, 0, 0], 0), 0x3c00);
        assert_eq!(unorm.read_half([0xfff0, 0, 0, 0], 0), 0x3c00);
        let sint = Format { widths: W32, number: Number::Sint };
        assert_eq!(sint.of_half(0xffff), !0);
    }
}
