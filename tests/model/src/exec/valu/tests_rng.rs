//! Random and edge-case operands for the tests of the vector ALU.

/// xorshift64*: the tests must not depend on a run's seed.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Self {
        Self(seed | 1)
    }

    pub fn u64(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn u32(&mut self) -> u32 {
        (self.u64() >> 32) as u32
    }

    /// Below `n`.
    pub fn below(&mut self, n: u32) -> u32 {
        ((u64::from(self.u32()) * u64::from(n)) >> 32) as u32
    }

    /// Bits of a float with `mantissa` and `exponent` bits: any pattern, but special exponents
    /// (zero, denormal, infinity, NaN, near one, extreme) and sparse significands far more often.
    pub fn float(&mut self, mantissa: u32, exponent: u32) -> u64 {
        let max = (1u64 << exponent) - 1;
        let e = match self.below(12) {
            0 => 0,
            1 => max,
            2 | 3 => max / 2 + u64::from(self.below(8)) - 4,
            4 => 1 + u64::from(self.below(3)),
            5 => max - 1 - u64::from(self.below(3)),
            _ => self.u64() & max,
        };
        let full = (1u64 << mantissa) - 1;
        let m = match self.below(6) {
            0 => 0,
            1 => full,
            2 => 1 << self.below(mantissa),
            3 => full & !(self.u64() & self.u64() & self.u64()),
            _ => self.u64() & full,
        };
        (self.u64() & 1) << (mantissa + exponent) | e << mantissa | m
    }

    pub fn f32(&mut self) -> f32 {
        f32::from_bits(self.float(23, 8) as u32)
    }

    pub fn f64(&mut self) -> f64 {
        f64::from_bits(self.float(52, 11))
    }

    /// A 32-bit integer, often with few or nearly all bits set, or small.
    pub fn int(&mut self) -> u32 {
        match self.below(6) {
            0 => self.below(40),
            1 => !self.below(40),
            2 => 1 << self.below(32),
            3 => i32::MAX as u32 + self.below(3),
            _ => self.u32(),
        }
    }
}
