//! Arithmetic under MODE: the host's where MODE is as compilers set it, else integers.

use super::lane::half::{self, Half};
use super::lane::soft::{self, Format, Round};

/// MODE bits. Source: "MODE register" of the instruction set documents; docs/ABI.md §MODE.
pub mod mode {
    /// FP_ROUND: two bits for f32, two for f16 and f64; 0 is to nearest even.
    pub const ROUND: u32 = 0xf;
    /// FP_DENORM: two bits for f32, two for f16 and f64; 3 keeps denormals in and out.
    pub const DENORM: u32 = 0xf << 4;
    /// A NaN clamps to zero.
    pub const DX10_CLAMP: u32 = 1 << 8;
    /// Signalling NaNs are quieted by min, max and the like.
    pub const IEEE: u32 = 1 << 9;
    /// FP16_OVFL: results of half and 8-bit conversions saturate instead of overflowing.
    pub const FP16_OVFL: u32 = 1 << 23;
    /// gfx9, GPR_IDX_EN: M0 offsets register numbers.
    pub const GPR_IDX_EN: u32 = 1 << 27;
    /// gfx9: vector instructions are not issued.
    pub const VSKIP: u32 = 1 << 28;
    /// gfx9: depth of the stack of pending branch paths, three bits up from here.
    pub const CSP_SHIFT: u32 = 29;
    /// The setting under which the host's arithmetic is exact: to nearest, no flushing.
    pub const USUAL: u32 = DENORM;
}

/// Arithmetic of one instruction.
pub trait Fp: Copy {
    /// MODE.IEEE.
    fn ieee(self) -> bool;
    /// MODE.FP16_OVFL.
    fn saturates(self) -> bool;
    /// Rounding of single precision.
    fn round32(self) -> Round;
    /// Rounding of half and double precision.
    fn round64(self) -> Round;

    /// `a + b`.
    #[inline(always)]
    fn add32(self, a: f32, b: f32) -> f32 {
        match self.round32() {
            Round::Nearest => a + b,
            round => single(soft::add(bits32(a), bits32(b), soft::F32, round)),
        }
    }

    /// `a * b`.
    #[inline(always)]
    fn mul32(self, a: f32, b: f32) -> f32 {
        match self.round32() {
            Round::Nearest => a * b,
            round => single(soft::mul(bits32(a), bits32(b), soft::F32, round)),
        }
    }

    /// `a * b + c`, fused.
    #[inline(always)]
    fn fma32(self, a: f32, b: f32, c: f32) -> f32 {
        match self.round32() {
            Round::Nearest => a.mul_add(b, c),
            round => single(soft::fma(bits32(a), bits32(b), bits32(c), soft::F32, round)),
        }
    }

    /// `a + b`.
    #[inline(always)]
    fn add64(self, a: f64, b: f64) -> f64 {
        match self.round64() {
            Round::Nearest => a + b,
            round => f64::from_bits(soft::add(a.to_bits(), b.to_bits(), soft::F64, round)),
        }
    }

    /// `a * b`.
    #[inline(always)]
    fn mul64(self, a: f64, b: f64) -> f64 {
        match self.round64() {
            Round::Nearest => a * b,
            round => f64::from_bits(soft::mul(a.to_bits(), b.to_bits(), soft::F64, round)),
        }
    }

    /// `a * b + c`, fused.
    #[inline(always)]
    fn fma64(self, a: f64, b: f64, c: f64) -> f64 {
        match self.round64() {
            Round::Nearest => a.mul_add(b, c),
            round => {
                f64::from_bits(soft::fma(a.to_bits(), b.to_bits(), c.to_bits(), soft::F64, round))
            }
        }
    }

    /// `a + b`.
    #[inline(always)]
    fn add16(self, a: Half, b: Half) -> Half {
        match self.round64() {
            // Single precision has more than twice the bits of half: rounding again is harmless.
            Round::Nearest => Half::from_f32(a.to_f32() + b.to_f32()),
            round => Half(soft::add(u64::from(a.0), u64::from(b.0), soft::F16, round) as u16),
        }
    }

    /// `a * b`.
    #[inline(always)]
    fn mul16(self, a: Half, b: Half) -> Half {
        match self.round64() {
            Round::Nearest => Half::from_f32(a.to_f32() * b.to_f32()),
            round => Half(soft::mul(u64::from(a.0), u64::from(b.0), soft::F16, round) as u16),
        }
    }

    /// `a * b + c`, fused.
    #[inline(always)]
    fn fma16(self, a: Half, b: Half, c: Half) -> Half {
        match self.round64() {
            Round::Nearest => half::fma(a, b, c),
            round => {
                Half(soft::fma(u64::from(a.0), u64::from(b.0), u64::from(c.0), soft::F16, round)
                    as u16)
            }
        }
    }

    /// Single to half.
    #[inline(always)]
    fn narrow16(self, a: f32) -> Half {
        match self.round64() {
            Round::Nearest => Half::from_f32(a),
            round => Half(soft::convert(bits32(a), soft::F32, soft::F16, round) as u16),
        }
    }

    /// Double to single.
    #[inline(always)]
    fn narrow32(self, a: f64) -> f32 {
        match self.round32() {
            Round::Nearest => a as f32,
            round => single(soft::convert(a.to_bits(), soft::F64, soft::F32, round)),
        }
    }

    /// A signed integer to single precision.
    #[inline(always)]
    fn int32(self, a: i64) -> f32 {
        match self.round32() {
            Round::Nearest => a as f32,
            round => single(soft::from_int(a < 0, a.unsigned_abs(), soft::F32, round)),
        }
    }

    /// A signed integer to half precision.
    #[inline(always)]
    fn int16(self, a: i32) -> Half {
        Half(soft::from_int(a < 0, u64::from(a.unsigned_abs()), soft::F16, self.round64()) as u16)
    }
}

fn bits32(a: f32) -> u64 {
    u64::from(a.to_bits())
}

fn single(bits: u64) -> f32 {
    f32::from_bits(bits as u32)
}

/// To nearest even, denormals kept.
#[derive(Clone, Copy, Debug)]
pub struct Usual {
    /// MODE.IEEE.
    pub ieee: bool,
}

impl Fp for Usual {
    #[inline(always)]
    fn ieee(self) -> bool {
        self.ieee
    }
    #[inline(always)]
    fn saturates(self) -> bool {
        false
    }
    #[inline(always)]
    fn round32(self) -> Round {
        Round::Nearest
    }
    #[inline(always)]
    fn round64(self) -> Round {
        Round::Nearest
    }
}

/// Whatever MODE says.
#[derive(Clone, Copy, Debug)]
pub struct ByMode(pub u32);

impl Fp for ByMode {
    fn ieee(self) -> bool {
        self.0 & mode::IEEE != 0
    }
    fn saturates(self) -> bool {
        self.0 & mode::FP16_OVFL != 0
    }
    fn round32(self) -> Round {
        Round::from_field(self.0)
    }
    fn round64(self) -> Round {
        Round::from_field(self.0 >> 2)
    }
}

impl ByMode {
    /// Rounding of results in `format`.
    pub fn round(self, format: Format) -> Round {
        if format == soft::F32 { self.round32() } else { self.round64() }
    }

    fn denorm(self, format: Format) -> u32 {
        self.0 >> if format == soft::F32 { 4 } else { 6 } & 3
    }

    /// Flushes a denormal source where MODE says so: bit 0 of the field keeps it.
    pub fn flush_source(self, bits: u64, format: Format) -> u64 {
        if self.denorm(format) & 1 == 0 { soft::flush(bits, format) } else { bits }
    }

    /// Whether denormal results become zero: bit 1 of the field keeps them.
    pub fn flushes_results(self, format: Format) -> bool {
        self.denorm(format) & 2 == 0
    }
}
