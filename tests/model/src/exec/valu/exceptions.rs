//! Arithmetic exceptions of an instruction about to be executed: what it adds to TRAPSTS\[6:0\].
//!
//! Waves that nobody asks for them do not come here. What raises which follows IEEE 754 and the
//! "Vega", "CDNA3" and "RDNA3" instruction set documents; docs/ABI.md §Arithmetic exceptions.

use super::fp::{ByMode, Fp};
use super::lane::soft::{self, F16, F32, F64, Format, Round};
use super::operands::Lanes;
use super::types::{self, Kind, Ty};
use crate::exec::{Code, Env, Wave};
use crate::isa::Op;
use crate::isa::ir::Inst;

/// TRAPSTS and MODE.EXCP_EN, counted from their first bit.
mod bit {
    pub(super) const INVALID: u32 = 1 << 0;
    pub(super) const DENORMAL: u32 = 1 << 1;
    pub(super) const DIVISION: u32 = 1 << 2;
    pub(super) const OVERFLOW: u32 = 1 << 3;
    pub(super) const UNDERFLOW: u32 = 1 << 4;
    pub(super) const INEXACT: u32 = 1 << 5;
    pub(super) const INTEGER_DIVISION: u32 = 1 << 6;
}

/// What an operation does with its sources.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Does {
    Add,
    Subtract,
    SubtractReversed,
    Multiply,
    Fuse,
    /// Product and sum, each rounded.
    MultiplyThenAdd,
    /// The reciprocal.
    Reciprocal,
    /// The same, for the division of integers.
    IntegerReciprocal,
    ReciprocalRoot,
    Root,
    Logarithm,
    /// The quotient's last step: division by zero is known here.
    Fixup,
    /// Times a power of two.
    Scale,
    /// To another float.
    Convert(Format),
    /// To an integer between these.
    ToInteger(i64, i64),
    /// One of so many sources: exact; a signalling NaN is invalid all the same.
    Choose(usize),
    /// To an integer of the same format.
    RoundToInteger,
}

fn does(op: Op) -> Option<(Does, Format)> {
    use Does::*;
    use Op::*;
    let i32s = ToInteger(i32::MIN as i64, i32::MAX as i64);
    let u32s = ToInteger(0, u32::MAX as i64);
    Some(match op {
        VAddF32 => (Add, F32),
        VSubF32 => (Subtract, F32),
        VSubrevF32 => (SubtractReversed, F32),
        VMulF32 => (Multiply, F32),
        VFmaF32 | VFmacF32 | VFmaakF32 | VFmamkF32 => (Fuse, F32),
        VMadF32 | VMacF32 | VMadakF32 | VMadmkF32 => (MultiplyThenAdd, F32),
        VAddF16 => (Add, F16),
        VSubF16 => (Subtract, F16),
        VSubrevF16 => (SubtractReversed, F16),
        VMulF16 => (Multiply, F16),
        VFmaF16 | VFmacF16 | VFmaakF16 | VFmamkF16 => (Fuse, F16),
        VAddF64 => (Add, F64),
        VMulF64 => (Multiply, F64),
        VFmaF64 | VFmacF64 => (Fuse, F64),
        VRcpF16 => (Reciprocal, F16),
        VRcpF32 => (Reciprocal, F32),
        VRcpF64 => (Reciprocal, F64),
        VRcpIflagF32 => (IntegerReciprocal, F32),
        VRsqF16 => (ReciprocalRoot, F16),
        VRsqF32 => (ReciprocalRoot, F32),
        VRsqF64 => (ReciprocalRoot, F64),
        VSqrtF16 => (Root, F16),
        VSqrtF32 => (Root, F32),
        VSqrtF64 => (Root, F64),
        VLogF16 => (Logarithm, F16),
        VLogF32 => (Logarithm, F32),
        VDivFixupF16 => (Fixup, F16),
        VDivFixupF32 => (Fixup, F32),
        VDivFixupF64 => (Fixup, F64),
        VLdexpF16 => (Scale, F16),
        VLdexpF32 => (Scale, F32),
        VLdexpF64 => (Scale, F64),
        VCvtF16F32 => (Convert(F16), F32),
        VCvtF32F16 => (Convert(F32), F16),
        VCvtF32F64 => (Convert(F32), F64),
        VCvtF64F32 => (Convert(F64), F32),
        VCvtI32F32 => (i32s, F32),
        VCvtU32F32 => (u32s, F32),
        VCvtI32F64 => (i32s, F64),
        VCvtU32F64 => (u32s, F64),
        VMinF16 | VMaxF16 => (Choose(2), F16),
        VMinF32 | VMaxF32 => (Choose(2), F32),
        VMin3F32 | VMax3F32 | VMed3F32 => (Choose(3), F32),
        VMinF64 | VMaxF64 => (Choose(2), F64),
        VFloorF32 | VCeilF32 | VTruncF32 | VRndneF32 => (RoundToInteger, F32),
        VFloorF64 | VCeilF64 | VTruncF64 | VRndneF64 => (RoundToInteger, F64),
        _ => return None,
    })
}

const fn kind(format: Format) -> Kind {
    match format.mantissa {
        10 => types::F16::KIND,
        23 => types::F32::KIND,
        _ => types::F64::KIND,
    }
}

/// Whether somebody enabled traps for some of these exceptions.
pub(in crate::exec) fn traps(mode: u32, raised: u32) -> bool {
    mode >> 12 & 0x7f & raised != 0
}

/// The exceptions that an instruction raises in the lanes that it writes.
pub(in crate::exec) fn raised<const N: usize>(
    wave: &mut Wave<N>,
    inst: &Inst,
    code: &Code,
    env: &Env,
) -> u32 {
    let Some((does, format)) = does(inst.op) else { return 0 };
    let word = wave.mode;
    let lanes = Lanes::new(wave, inst, code, env);
    let kind = kind(format);
    // How denormals are treated: a bit each for sources and for results.
    let keeps = word >> if format == F32 { 4 } else { 6 } & 3;
    let count = match does {
        Does::Fuse | Does::MultiplyThenAdd | Does::Fixup => 3,
        Does::Choose(count) => count,
        Does::Add | Does::Subtract | Does::SubtractReversed | Does::Multiply => 2,
        _ => 1,
    };
    let sources: Vec<_> = (0..count).map(|k| lanes.fetch(k, &kind)).collect();
    let exponents = lanes.raw(1, 0);
    let fp = ByMode(word);
    let round = if format == F32 { fp.round32() } else { fp.round64() };
    let mut raised = 0;
    for lane in (0..N).filter(|lane| lanes.written >> lane & 1 != 0) {
        let values = [0, 1, 2].map(|k| sources.get(k).map_or(0, |source| source[lane]));
        let used = values.get(..count).unwrap_or(&values);
        for &value in used {
            if is_signalling(value, format) {
                raised |= bit::INVALID;
            }
            if is_denormal(value, format) && keeps & 1 != 0 {
                raised |= bit::DENORMAL;
            }
        }
        if used.iter().any(|&value| format.is_nan(value)) {
            continue;
        }
        raised |= of(does, values, exponents[lane], format, round, keeps & 2 != 0);
    }
    raised
}

/// Of numbers that are no NaN.
fn of(
    does: Does,
    [a, b, c]: [u64; 3],
    exponent: u32,
    format: Format,
    round: Round,
    keeps: bool,
) -> u32 {
    let sign = format.infinity() + (1 << format.mantissa);
    let one = ((1 << (format.exponent - 1)) - 1) << format.mantissa;
    let zero = |value: u64| value & !sign == 0;
    let infinite = |value: u64| value & !sign == format.infinity();
    let negative = |value: u64| value & sign != 0 && !zero(value);
    let fused = |a, b, c| {
        rounded(
            |round| soft::fma(a, b, c, format, round),
            format,
            round,
            keeps,
            infinite(a) || infinite(b) || infinite(c),
        )
    };
    match does {
        Does::Add => fused(a, one, b),
        Does::Subtract => fused(a, one, b ^ sign),
        Does::SubtractReversed => fused(b, one, a ^ sign),
        Does::Multiply => fused(a, b, (a ^ b) & sign),
        Does::Fuse => fused(a, b, c),
        Does::MultiplyThenAdd => {
            let product = soft::mul(a, b, format, round);
            let first = fused(a, b, (a ^ b) & sign);
            if format.is_nan(product) { first } else { first | fused(product, one, c) }
        }
        Does::Reciprocal | Does::IntegerReciprocal if zero(a) => match does {
            Does::Reciprocal => bit::DIVISION,
            _ => bit::INTEGER_DIVISION,
        },
        Does::ReciprocalRoot | Does::Logarithm if zero(a) => bit::DIVISION,
        Does::ReciprocalRoot | Does::Root | Does::Logarithm if negative(a) => bit::INVALID,
        Does::Reciprocal | Does::IntegerReciprocal => {
            let power = a & ((1 << format.mantissa) - 1) == 0;
            if infinite(a) || power && !is_denormal(a, format) { 0 } else { bit::INEXACT }
        }
        // Roots and logarithms are rarely exact, and which are is not published.
        Does::Root | Does::ReciprocalRoot | Does::Logarithm => {
            if zero(a) || infinite(a) || a == one { 0 } else { bit::INEXACT }
        }
        // The numerator is the third source, the denominator the second.
        Does::Fixup => {
            if zero(b) && zero(c) || infinite(b) && infinite(c) {
                bit::INVALID
            } else if zero(b) && !infinite(c) {
                bit::DIVISION
            } else if infinite(a) && !infinite(c) {
                bit::OVERFLOW | bit::INEXACT
            } else {
                0
            }
        }
        Does::Scale => {
            let by = if format == F16 { i32::from(exponent as i16) } else { exponent as i32 };
            rounded(|round| soft::scale(a, by, format, round), format, round, keeps, infinite(a))
        }
        Does::Convert(to) => {
            rounded(|round| soft::convert(a, format, to, round), to, round, true, infinite(a))
        }
        Does::ToInteger(low, high) => {
            let value = f64::from_bits(soft::convert(a, format, F64, Round::Nearest));
            if value.trunc() < low as f64 || value.trunc() > high as f64 {
                bit::INVALID
            } else if value.fract() != 0.0 {
                bit::INEXACT
            } else {
                0
            }
        }
        Does::RoundToInteger => {
            let value = f64::from_bits(soft::convert(a, format, F64, Round::Nearest));
            if value.is_finite() && value.fract() != 0.0 { bit::INEXACT } else { 0 }
        }
        Does::Choose(_) => 0,
    }
}

/// Of a result that is rounded. `infinite`: a source is, and the result exact.
fn rounded(
    result: impl Fn(Round) -> u64,
    format: Format,
    round: Round,
    keeps: bool,
    infinite: bool,
) -> u32 {
    let value = result(round);
    if format.is_nan(value) {
        return bit::INVALID;
    }
    if infinite {
        return 0;
    }
    let [down, up] = [Round::Down, Round::Up].map(&result);
    let sign = format.infinity() + (1 << format.mantissa);
    // Zeros of both signs are the same number.
    let inexact = down != up && (down | up) & !sign != 0;
    let overflow = [down, up].into_iter().any(|value| value & !sign == format.infinity())
        && inexact
        && (value & !sign == format.infinity() || value & !sign == format.infinity() - 1);
    let tiny = is_denormal(value, format) || value & !sign == 0 && inexact;
    let mut raised = 0;
    if overflow {
        raised |= bit::OVERFLOW;
    }
    if tiny && (inexact || !keeps) {
        raised |= bit::UNDERFLOW;
    }
    if inexact || tiny && !keeps {
        raised |= bit::INEXACT;
    }
    raised
}

fn is_denormal(value: u64, format: Format) -> bool {
    value & format.infinity() == 0 && value & ((1 << format.mantissa) - 1) != 0
}

fn is_signalling(value: u64, format: Format) -> bool {
    format.is_nan(value) && value & 1 << (format.mantissa - 1) == 0
}

/// MODE.EXCP_EN of arithmetic exceptions.
pub(in crate::exec) const EXCP_EN: u32 = 0x7f << 12;

#[cfg(test)]
mod tests {
    use super::*;

    fn f(x: f32) -> u64 {
        x.to_bits().into()
    }

    fn single(does: Does, values: [f32; 3]) -> u32 {
        of(does, values.map(f), 0, F32, Round::Nearest, true)
    }

    #[test]
    fn each_exception_has_its_cause() {
        assert_eq!(single(Does::Add, [1.0, 2.0, 0.0]), 0);
        assert_eq!(single(Does::Add, [1.0, f32::EPSILON / 4.0, 0.0]), bit::INEXACT);
        assert_eq!(single(Does::Subtract, [f32::INFINITY, f32::INFINITY, 0.0]), bit::INVALID);
        assert_eq!(single(Does::Multiply, [f32::MAX, 2.0, 0.0]), bit::OVERFLOW | bit::INEXACT);
        assert_eq!(single(Does::Multiply, [f32::MAX, f32::INFINITY, 0.0]), 0);
        let small = f32::MIN_POSITIVE;
        assert_eq!(single(Does::Multiply, [small, small, 0.0]), bit::UNDERFLOW | bit::INEXACT);
        assert_eq!(single(Does::Multiply, [small, 0.5, 0.0]), 0, "exact, though denormal");
        assert_eq!(single(Does::Multiply, [0.0, f32::INFINITY, 0.0]), bit::INVALID);
        assert_eq!(single(Does::Reciprocal, [0.0; 3]), bit::DIVISION);
        assert_eq!(single(Does::IntegerReciprocal, [0.0; 3]), bit::INTEGER_DIVISION);
        assert_eq!(single(Does::Reciprocal, [4.0, 0.0, 0.0]), 0);
        assert_eq!(single(Does::Root, [-1.0, 0.0, 0.0]), bit::INVALID);
        assert_eq!(single(Does::Fixup, [f32::NAN, 0.0, 1.0]), bit::DIVISION);
        let i32s = Does::ToInteger(i32::MIN.into(), i32::MAX.into());
        assert_eq!(single(i32s, [3e9, 0.0, 0.0]), bit::INVALID);
        assert_eq!(single(i32s, [1.5, 0.0, 0.0]), bit::INEXACT);
        assert_eq!(single(Does::Convert(F16), [70_000.0, 0.0, 0.0]), bit::OVERFLOW | bit::INEXACT);
    }

    #[test]
    fn overflow_and_inexactness_agree_with_the_wider_format() {
        let mut state = 1u64;
        for _ in 0..20_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let [a, b] = [state as u32, (state >> 32) as u32].map(f32::from_bits);
            if !a.is_finite() || !b.is_finite() {
                continue;
            }
            let exact = f64::from(a) * f64::from(b);
            let result = a * b;
            let raised = single(Does::Multiply, [a, b, 0.0]);
            assert_eq!(raised & bit::INEXACT != 0, f64::from(result) != exact, "{a:e} {b:e}");
            assert_eq!(raised & bit::OVERFLOW != 0, result.is_infinite(), "{a:e} {b:e}");
        }
    }
}
