//! The arithmetic of atomic operations, shared by global memory, LDS and buffers.

/// What an atomic does with the old value and its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Atomic {
    /// Stores the data.
    Swap,
    /// Stores the data if the old value equals the comparand.
    Cmpswap,
    /// Float compare: stores the data if the old value equals the comparand as numbers.
    Fcmpswap,
    /// Adds.
    Add,
    /// Subtracts the data.
    Sub,
    /// Subtracts from the data.
    Rsub,
    /// Subtracts the data unless that borrows.
    Csub,
    /// Signed minimum.
    Smin,
    /// Unsigned minimum.
    Umin,
    /// Signed maximum.
    Smax,
    /// Unsigned maximum.
    Umax,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
    /// Increments, wrapping to zero above the data.
    Inc,
    /// Decrements, wrapping to the data at zero or above it.
    Dec,
    /// Clears the bits of the comparand slot's mask, then sets the data's.
    Mskor,
    /// Adds the data unless it exceeds the old value, else adds the second data: DS_WRAP_RTN.
    Wrap,
    /// Floating-point addition.
    Fadd,
    /// Floating-point minimum.
    Fmin,
    /// Floating-point maximum.
    Fmax,
    /// Addition of two packed f16.
    PkAddF16,
    /// Addition of two packed bf16.
    PkAddBf16,
}

impl Atomic {
    /// Whether the operation takes a second data operand (comparand or mask).
    pub const fn has_second(self) -> bool {
        matches!(self, Self::Cmpswap | Self::Fcmpswap | Self::Mskor | Self::Wrap)
    }

    /// The new 32-bit value. `second` is the comparand (Cmpswap), or as the variant says.
    #[inline]
    pub fn apply32(self, old: u32, data: u32, second: u32) -> u32 {
        let (f_old, f_data) = (f32::from_bits(old), f32::from_bits(data));
        match self {
            Self::Swap => data,
            Self::Cmpswap => {
                if old == second {
                    data
                } else {
                    old
                }
            }
            Self::Fcmpswap => {
                if f_old == f32::from_bits(second) {
                    data
                } else {
                    old
                }
            }
            Self::Add => old.wrapping_add(data),
            Self::Sub => old.wrapping_sub(data),
            Self::Rsub => data.wrapping_sub(old),
            Self::Csub => old.checked_sub(data).unwrap_or(old),
            Self::Smin => (old as i32).min(data as i32) as u32,
            Self::Umin => old.min(data),
            Self::Smax => (old as i32).max(data as i32) as u32,
            Self::Umax => old.max(data),
            Self::And => old & data,
            Self::Or => old | data,
            Self::Xor => old ^ data,
            Self::Inc => {
                if old >= data {
                    0
                } else {
                    old + 1
                }
            }
            Self::Dec => {
                if old == 0 || old > data {
                    data
                } else {
                    old - 1
                }
            }
            Self::Mskor => old & !data | second,
            Self::Wrap => {
                if old >= data {
                    old - data
                } else {
                    old.wrapping_add(second)
                }
            }
            Self::Fadd => (f_old + f_data).to_bits(),
            Self::Fmin => {
                if f_data < f_old || f_old.is_nan() {
                    data
                } else {
                    old
                }
            }
            Self::Fmax => {
                if f_data > f_old || f_old.is_nan() {
                    data
                } else {
                    old
                }
            }
            Self::PkAddF16 => {
                halves(old, data, |a, b| half_from_f32(half_to_f32(a) + half_to_f32(b)))
            }
            Self::PkAddBf16 => halves(old, data, |a, b| {
                let widen = |h: u16| f32::from_bits(u32::from(h) << 16);
                bfloat_from_f32(widen(a) + widen(b))
            }),
        }
    }

    /// The new 64-bit value.
    #[inline]
    pub fn apply64(self, old: u64, data: u64, second: u64) -> u64 {
        let (f_old, f_data) = (f64::from_bits(old), f64::from_bits(data));
        match self {
            Self::Swap => data,
            Self::Cmpswap => {
                if old == second {
                    data
                } else {
                    old
                }
            }
            Self::Fcmpswap => {
                if f_old == f64::from_bits(second) {
                    data
                } else {
                    old
                }
            }
            Self::Add => old.wrapping_add(data),
            Self::Sub => old.wrapping_sub(data),
            Self::Rsub => data.wrapping_sub(old),
            Self::Csub => old.checked_sub(data).unwrap_or(old),
            Self::Smin => (old as i64).min(data as i64) as u64,
            Self::Umin => old.min(data),
            Self::Smax => (old as i64).max(data as i64) as u64,
            Self::Umax => old.max(data),
            Self::And => old & data,
            Self::Or => old | data,
            Self::Xor => old ^ data,
            Self::Inc => {
                if old >= data {
                    0
                } else {
                    old + 1
                }
            }
            Self::Dec => {
                if old == 0 || old > data {
                    data
                } else {
                    old - 1
                }
            }
            Self::Mskor => old & !data | second,
            Self::Wrap => {
                if old >= data {
                    old - data
                } else {
                    old.wrapping_add(second)
                }
            }
            Self::Fadd => (f_old + f_data).to_bits(),
            Self::Fmin => {
                if f_data < f_old || f_old.is_nan() {
                    data
                } else {
                    old
                }
            }
            Self::Fmax => {
                if f_data > f_old || f_old.is_nan() {
                    data
                } else {
                    old
                }
            }
            // No 64-bit packed form exists; the decoder cannot produce one.
            Self::PkAddF16 | Self::PkAddBf16 => old,
        }
    }
}

fn halves(a: u32, b: u32, f: impl Fn(u16, u16) -> u16) -> u32 {
    u32::from(f(a as u16, b as u16)) | u32::from(f((a >> 16) as u16, (b >> 16) as u16)) << 16
}

/// Exact.
fn half_to_f32(half: u16) -> f32 {
    let sign = u32::from(half & 0x8000) << 16;
    let magnitude = u32::from(half & 0x7fff);
    let bits = match magnitude >> 10 {
        // Zero and denormals: the value is magnitude times 2^-24.
        0 => {
            return f32::from_bits(
                (magnitude as f32 * f32::from_bits(0x3380_0000)).to_bits() | sign,
            );
        }
        31 => magnitude << 13 | 0x7f80_0000,
        _ => (magnitude << 13) + (112 << 23),
    };
    f32::from_bits(bits | sign)
}

/// Rounds to nearest even.
fn half_from_f32(value: f32) -> u16 {
    let bits = value.to_bits();
    let sign = (bits >> 16) as u16 & 0x8000;
    let magnitude = bits & 0x7fff_ffff;
    if magnitude > 0x7f80_0000 {
        return sign | 0x7e00 | (magnitude >> 13) as u16 & 0x3ff;
    }
    if magnitude < 0x3880_0000 {
        // Below the smallest normal half: adding 0.5 lines the last place up with 2^-24.
        let rounded = f32::from_bits(magnitude) + 0.5;
        return sign | (rounded.to_bits() - 0x3f00_0000) as u16;
    }
    let rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
    let half = (rounded >> 13).saturating_sub(112 << 10);
    sign | half.min(0x7c00) as u16
}

/// Rounds to nearest even.
fn bfloat_from_f32(value: f32) -> u16 {
    let bits = value.to_bits();
    if value.is_nan() {
        return (bits >> 16) as u16 | 0x40;
    }
    ((bits + 0x7fff + (bits >> 16 & 1)) >> 16) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_survives_a_round_trip_through_f32() {
        for half in 0..=u16::MAX {
            let wide = half_to_f32(half);
            if wide.is_nan() {
                assert!(half_to_f32(half_from_f32(wide)).is_nan());
            } else {
                assert_eq!(half_from_f32(wide), half);
            }
        }
    }

    #[test]
    fn halves_round_to_nearest_even() {
        assert_eq!(half_from_f32(1.0 + f32::powi(2.0, -11)), 0x3c00);
        assert_eq!(half_from_f32(1.0 + 3.0 * f32::powi(2.0, -11)), 0x3c02);
        assert_eq!(half_from_f32(65520.0), 0x7c00);
        assert_eq!(half_from_f32(f32::powi(2.0, -25)), 0);
        assert_eq!(half_from_f32(3.0 * f32::powi(2.0, -25)), 2);
    }

    #[test]
    fn increments_and_decrements_wrap_at_the_data() {
        assert_eq!(Atomic::Inc.apply32(4, 5, 0), 5);
        assert_eq!(Atomic::Inc.apply32(5, 5, 0), 0);
        assert_eq!(Atomic::Dec.apply32(0, 5, 0), 5);
        assert_eq!(Atomic::Dec.apply32(9, 5, 0), 5);
        assert_eq!(Atomic::Dec.apply64(3, 5, 0), 2);
    }

    #[test]
    fn mskor_clears_the_mask_and_sets_the_value() {
        assert_eq!(Atomic::Mskor.apply32(0xff, 0x0f, 0x05), 0xf5);
    }
}
