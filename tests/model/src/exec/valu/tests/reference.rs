//! Operations on lanes against a formulation in wide arithmetic: every lane, partial EXEC.

use super::super::lane::soft::{self, F16, F32, F64, Format, Round};
use super::super::step;
use super::super::tests_rng::Rng;
use super::harness::{GFX1100, inst, wave};
use crate::exec::Code;
use crate::isa::Op;

/// Widths of sources and destination in registers, and the result.
type Case = (Op, [usize; 3], usize, fn(i128, i128, i128) -> i128);

/// A float format whose NaNs count as equal.
fn equal(got: u64, want: u64, nan: Option<Format>) -> bool {
    got == want || nan.is_some_and(|format| format.is_nan(got) && format.is_nan(want))
}

fn check<const N: usize>(
    op: Op,
    sources: [usize; 3],
    dst: usize,
    nan: Option<Format>,
    mut want: impl FnMut([u64; 3], u64) -> u64,
) {
    let mut rng = Rng::new(op as u64 + 1);
    for _ in 0..60 {
        let mut w = wave::<N>(&mut rng);
        let before = w.v.clone();
        let inst = inst(op);
        assert!(step::<_, true>(&mut w, &inst, &Code::default(), &GFX1100), "{op:?}");
        for lane in 0..N {
            let read = |reg: usize, width: usize| {
                let high = if width == 2 { before[reg + 1][lane] } else { 0 };
                u64::from(before[reg][lane]) | u64::from(high) << 32
            };
            let args = [0, 1, 2].map(|k| read(2 + 2 * k, sources[k]));
            let old = read(20, dst);
            let got = u64::from(w.v[20][lane])
                | if dst == 2 { u64::from(w.v[21][lane]) << 32 } else { 0 };
            let active = w.exec() >> lane & 1 == 1;
            let wanted = if active { want(args, old) } else { old };
            assert!(equal(got, wanted, nan), "{op:?} {args:x?} gave {got:x}, want {wanted:x}");
        }
        for (reg, row) in before.iter().enumerate() {
            let written = (20..20 + dst).contains(&reg);
            assert!(written || w.v[reg] == *row, "{op:?} touched v{reg}");
        }
    }
}

const fn u(x: i128) -> i128 {
    x
}

/// The low 32 bits as a signed number.
const fn s(x: i128) -> i128 {
    (x as i32) as i128
}

/// The low 64 bits as a signed number.
const fn s64(x: i128) -> i128 {
    (x as i64) as i128
}

const fn low24(x: i128) -> i128 {
    x % (1 << 24)
}

const fn signed24(x: i128) -> i128 {
    (low24(x) + (1 << 23)) % (1 << 24) - (1 << 23)
}

const fn power(x: i128) -> i128 {
    1 << x
}

#[rustfmt::skip] // a table
const INTEGERS: &[Case] = &[
    (Op::VMovB32, [1, 1, 1], 1, |a, _, _| a),
    (Op::VAddNcU32, [1, 1, 1], 1, |a, b, _| a + b),
    (Op::VSubNcU32, [1, 1, 1], 1, |a, b, _| a - b),
    (Op::VSubrevNcU32, [1, 1, 1], 1, |a, b, _| b - a),
    (Op::VAddNcI32, [1, 1, 1], 1, |a, b, _| s(a) + s(b)),
    (Op::VSubNcI32, [1, 1, 1], 1, |a, b, _| s(a) - s(b)),
    (Op::VLshlrevB32, [1, 1, 1], 1, |a, b, _| b * power(a % 32)),
    (Op::VLshrrevB32, [1, 1, 1], 1, |a, b, _| b / power(a % 32)),
    (Op::VAshrrevI32, [1, 1, 1], 1, |a, b, _| s(b).div_euclid(power(a % 32))),
    (Op::VLshlrevB64, [1, 2, 1], 2, |a, b, _| b * power(a % 64)),
    (Op::VLshrrevB64, [1, 2, 1], 2, |a, b, _| b / power(a % 64)),
    (Op::VAshrrevI64, [1, 2, 1], 2, |a, b, _| s64(b).div_euclid(power(a % 64))),
    (Op::VAndB32, [1, 1, 1], 1, |a, b, _| a + b - (a | b)),
    (Op::VOrB32, [1, 1, 1], 1, |a, b, _| a + b - (a & b)),
    (Op::VXorB32, [1, 1, 1], 1, |a, b, _| (a | b) - (a & b)),
    (Op::VXnorB32, [1, 1, 1], 1, |a, b, _| !((a | b) - (a & b))),
    (Op::VNotB32, [1, 1, 1], 1, |a, _, _| -1 - a),
    (Op::VAndOrB32, [1, 1, 1], 1, |a, b, c| c | (a & b)),
    (Op::VOr3B32, [1, 1, 1], 1, |a, b, c| a | b | c),
    (Op::VXor3B32, [1, 1, 1], 1, |a, b, c| a ^ b ^ c),
    (Op::VAdd3U32, [1, 1, 1], 1, |a, b, c| a + b + c),
    (Op::VLshlAddU32, [1, 1, 1], 1, |a, b, c| a * power(b % 32) + c),
    (Op::VAddLshlU32, [1, 1, 1], 1, |a, b, c| (a + b) * power(c % 32)),
    (Op::VLshlOrB32, [1, 1, 1], 1, |a, b, c| (a * power(b % 32)) | c),
    (Op::VXadU32, [1, 1, 1], 1, |a, b, c| (a ^ b) + c),
    (Op::VLshlAddU64, [2, 1, 2], 2, |a, b, c| a * power(b % 8) + c),
    (Op::VBfeU32, [1, 1, 1], 1, |a, b, c| a / power(b % 32) % power(c % 32)),
    (Op::VBfiB32, [1, 1, 1], 1, |a, b, c| (a & b) + (c - (a & c))),
    (Op::VBfmB32, [1, 1, 1], 1, |a, b, _| (power(a % 32) - 1) * power(b % 32)),
    (Op::VAlignbitB32, [1, 1, 1], 1, |a, b, c| (a * power(32) + b) / power(c % 32)),
    (Op::VAlignbyteB32, [1, 1, 1], 1, |a, b, c| (a * power(32) + b) / power(c % 4 * 8)),
    (Op::VMulLoU32, [1, 1, 1], 1, |a, b, _| a * b),
    (Op::VMulHiU32, [1, 1, 1], 1, |a, b, _| a * b / power(32)),
    (Op::VMulHiI32, [1, 1, 1], 1, |a, b, _| (s(a) * s(b)).div_euclid(power(32))),
    (Op::VMulU32U24, [1, 1, 1], 1, |a, b, _| low24(a) * low24(b)),
    (Op::VMulHiU32U24, [1, 1, 1], 1, |a, b, _| low24(a) * low24(b) / power(32)),
    (Op::VMulI32I24, [1, 1, 1], 1, |a, b, _| signed24(a) * signed24(b)),
    (Op::VMulHiI32I24, [1, 1, 1], 1, |a, b, _| (signed24(a) * signed24(b)).div_euclid(power(32))),
    (Op::VMadU32U24, [1, 1, 1], 1, |a, b, c| low24(a) * low24(b) + c),
    (Op::VMadI32I24, [1, 1, 1], 1, |a, b, c| signed24(a) * signed24(b) + c),
    (Op::VMadU32U16, [1, 1, 1], 1, |a, b, c| (a % 65536) * (b % 65536) + c),
    (Op::VMadI32I16, [1, 1, 1], 1, |a, b, c| (a as i16 as i128) * (b as i16 as i128) + c),
    (Op::VMinU32, [1, 1, 1], 1, |a, b, _| if a < b { a } else { b }),
    (Op::VMaxU32, [1, 1, 1], 1, |a, b, _| if a > b { a } else { b }),
    (Op::VMinI32, [1, 1, 1], 1, |a, b, _| if s(a) < s(b) { a } else { b }),
    (Op::VMaxI32, [1, 1, 1], 1, |a, b, _| if s(a) > s(b) { a } else { b }),
    (Op::VMin3U32, [1, 1, 1], 1, |a, b, c| *[a, b, c].iter().min().unwrap()),
    (Op::VMax3U32, [1, 1, 1], 1, |a, b, c| *[a, b, c].iter().max().unwrap()),
    (Op::VMin3I32, [1, 1, 1], 1, |a, b, c| *[s(a), s(b), s(c)].iter().min().unwrap()),
    (Op::VMax3I32, [1, 1, 1], 1, |a, b, c| *[s(a), s(b), s(c)].iter().max().unwrap()),
    (Op::VMaxminU32, [1, 1, 1], 1, |a, b, c| if a < c && b < c { a.max(b) } else { c }),
    (Op::VMinmaxU32, [1, 1, 1], 1, |a, b, c| if a > c && b > c { a.min(b) } else { c }),
    (Op::VMaxminI32, [1, 1, 1], 1, |a, b, c| if s(a) < s(c) && s(b) < s(c) { s(a).max(s(b)) } else { c }),
    (Op::VMinmaxI32, [1, 1, 1], 1, |a, b, c| if s(a) > s(c) && s(b) > s(c) { s(a).min(s(b)) } else { c }),
    (Op::VBcntU32B32, [1, 1, 1], 1, |a, b, _| b + (0..32).map(|k| a / power(k) % 2).sum::<i128>()),
    (Op::VBfrevB32, [1, 1, 1], 1, |a, _, _| (0..32).map(|k| a / power(k) % 2 * power(31 - k)).sum()),
    (Op::VSadU32, [1, 1, 1], 1, |a, b, c| (a - b).abs() + c),
    (Op::VSadHiU8, [1, 1, 1], 1, |a, b, c| (0..4).map(|k| (a / power(8 * k) % 256 - b / power(8 * k) % 256).abs()).sum::<i128>() * 65536 + c),
    (Op::VMovB64, [2, 1, 1], 2, |a, _, _| a),
    (Op::VCvtF32U32, [1, 1, 1], 1, |a, _, _| i128::from((u(a) as f32).to_bits())),
    (Op::VCvtF32I32, [1, 1, 1], 1, |a, _, _| i128::from((s(a) as f64 as f32).to_bits())),
    (Op::VCvtF64U32, [1, 1, 1], 2, |a, _, _| i128::from((u(a) as f64).to_bits())),
    (Op::VCvtF64I32, [1, 1, 1], 2, |a, _, _| i128::from((s(a) as f64).to_bits())),
    (Op::VCvtF32Ubyte0, [1, 1, 1], 1, |a, _, _| i128::from(f32::from(a.to_le_bytes()[0]).to_bits())),
    (Op::VCvtF32Ubyte1, [1, 1, 1], 1, |a, _, _| i128::from(f32::from(a.to_le_bytes()[1]).to_bits())),
    (Op::VCvtF32Ubyte2, [1, 1, 1], 1, |a, _, _| i128::from(f32::from(a.to_le_bytes()[2]).to_bits())),
    (Op::VCvtF32Ubyte3, [1, 1, 1], 1, |a, _, _| i128::from(f32::from(a.to_le_bytes()[3]).to_bits())),
    (Op::VCvtPkI16I32, [1, 1, 1], 1, |a, b, _| s(a).clamp(-32768, 32767).rem_euclid(65536) + s(b).clamp(-32768, 32767).rem_euclid(65536) * 65536),
    (Op::VCvtPkU16U32, [1, 1, 1], 1, |a, b, _| a.min(65535) + b.min(65535) * 65536),
    (Op::VPackB32F16, [1, 1, 1], 1, |a, b, _| a % 65536 + b % 65536 * 65536),
];

#[test]
fn integer_operations_equal_wide_arithmetic() {
    for &(op, sources, dst, f) in INTEGERS {
        let mask = if dst == 2 { u64::MAX } else { u64::from(u32::MAX) };
        let want = |[a, b, c]: [u64; 3], _| f(a.into(), b.into(), c.into()) as u64 & mask;
        check::<32>(op, sources, dst, None, want);
        check::<64>(op, sources, dst, None, want);
    }
}

/// An operation on sign-extended halves.
type HalfCase = (Op, fn(i32, i32, i32) -> i32);

/// 16-bit results keep the other half on gfx11.
#[rustfmt::skip] // a table
const HALVES: &[HalfCase] = &[
    (Op::VAddNcU16, |a, b, _| a + b),
    (Op::VSubNcU16, |a, b, _| a - b),
    (Op::VAddNcI16, |a, b, _| a + b),
    (Op::VSubNcI16, |a, b, _| a - b),
    (Op::VMulLoU16, |a, b, _| a.wrapping_mul(b)),
    (Op::VMadU16, |a, b, c| a.wrapping_mul(b).wrapping_add(c)),
    (Op::VMadI16, |a, b, c| a.wrapping_mul(b).wrapping_add(c)),
    (Op::VMinI16, |a, b, _| a.min(b)),
    (Op::VMaxI16, |a, b, _| a.max(b)),
    (Op::VMin3I16, |a, b, c| a.min(b).min(c)),
    (Op::VMax3I16, |a, b, c| a.max(b).max(c)),
    (Op::VMinU16, |a, b, _| (a as u16).min(b as u16).into()),
    (Op::VMaxU16, |a, b, _| (a as u16).max(b as u16).into()),
    (Op::VLshlrevB16, |a, b, _| b << (a & 15)),
    (Op::VLshrrevB16, |a, b, _| i32::from(b as u16) >> (a & 15)),
    (Op::VAshrrevI16, |a, b, _| b >> (a & 15)),
    (Op::VAndB16, |a, b, _| a & b),
    (Op::VOrB16, |a, b, _| a | b),
    (Op::VXorB16, |a, b, _| a ^ b),
    (Op::VNotB16, |a, _, _| !a),
    (Op::VMovB16, |a, _, _| a),
];

#[test]
fn half_register_operations_keep_the_other_half() {
    for &(op, f) in HALVES {
        let want = |args: [u64; 3], old: u64| {
            let [a, b, c] = args.map(|x| i32::from(x as i16));
            old & 0xffff_0000 | u64::from(f(a, b, c) as u16)
        };
        check::<32>(op, [1; 3], 1, None, want);
        check::<64>(op, [1; 3], 1, None, want);
    }
}

/// Float operations on bits, in integer arithmetic.
type FloatCase = (Op, Format, fn([u64; 3], Format) -> u64);

const NEAR: Round = Round::Nearest;

fn minus(x: u64, f: Format) -> u64 {
    x ^ 1 << (f.mantissa + f.exponent)
}

#[rustfmt::skip] // a table
const FLOATS: &[FloatCase] = &[
    (Op::VAddF32, F32, |[a, b, _], f| soft::add(a, b, f, NEAR)),
    (Op::VSubF32, F32, |[a, b, _], f| soft::add(a, minus(b, f), f, NEAR)),
    (Op::VSubrevF32, F32, |[a, b, _], f| soft::add(b, minus(a, f), f, NEAR)),
    (Op::VMulF32, F32, |[a, b, _], f| soft::mul(a, b, f, NEAR)),
    (Op::VFmaF32, F32, |[a, b, c], f| soft::fma(a, b, c, f, NEAR)),
    (Op::VFmacF32, F32, |[a, b, c], f| soft::fma(a, b, c, f, NEAR)),
    (Op::VRcpF32, F32, |[a, _, _], f| soft::div(0x3f80_0000, a, f, NEAR)),
    (Op::VSqrtF32, F32, |[a, _, _], f| soft::sqrt(a, f, NEAR)),
    (Op::VAddF64, F64, |[a, b, _], f| soft::add(a, b, f, NEAR)),
    (Op::VMulF64, F64, |[a, b, _], f| soft::mul(a, b, f, NEAR)),
    (Op::VFmaF64, F64, |[a, b, c], f| soft::fma(a, b, c, f, NEAR)),
    (Op::VRcpF64, F64, |[a, _, _], f| soft::div(1f64.to_bits(), a, f, NEAR)),
    (Op::VSqrtF64, F64, |[a, _, _], f| soft::sqrt(a, f, NEAR)),
    (Op::VAddF16, F16, |[a, b, _], f| soft::add(a, b, f, NEAR)),
    (Op::VSubF16, F16, |[a, b, _], f| soft::add(a, minus(b, f), f, NEAR)),
    (Op::VMulF16, F16, |[a, b, _], f| soft::mul(a, b, f, NEAR)),
    (Op::VFmaF16, F16, |[a, b, c], f| soft::fma(a, b, c, f, NEAR)),
    (Op::VRcpF16, F16, |[a, _, _], f| soft::div(0x3c00, a, f, NEAR)),
    (Op::VSqrtF16, F16, |[a, _, _], f| soft::sqrt(a, f, NEAR)),
];

#[test]
fn float_operations_equal_integer_arithmetic() {
    for &(op, format, f) in FLOATS {
        let wide = if format == F64 { 2 } else { 1 };
        let mask = if format == F16 { 0xffff } else { u64::MAX };
        let want = |args: [u64; 3], old: u64| f(args.map(|x| x & mask), format) | old & !mask;
        let same = |got: u64, want: u64| {
            equal(got & mask, want & mask, Some(format)) && got & !mask == want & !mask
        };
        // The kept half would hide a NaN: compare through the mask.
        let checked = |args: [u64; 3], old: u64| want(args, old);
        if format == F16 {
            check_half(op, checked, same);
        } else {
            check::<32>(op, [wide; 3], wide, Some(format), checked);
            check::<64>(op, [wide; 3], wide, Some(format), checked);
        }
    }
}

fn check_half(op: Op, want: impl Fn([u64; 3], u64) -> u64, same: impl Fn(u64, u64) -> bool) {
    let mut rng = Rng::new(7);
    for _ in 0..60 {
        let mut w = wave::<32>(&mut rng);
        let before = w.v.clone();
        assert!(step::<_, true>(&mut w, &inst(op), &Code::default(), &GFX1100));
        for lane in (0..32).filter(|&lane| w.exec() >> lane & 1 == 1) {
            let args = [2, 4, 6].map(|reg: usize| u64::from(before[reg][lane]));
            let (got, wanted) = (w.v[20][lane].into(), want(args, before[20][lane].into()));
            assert!(same(got, wanted), "{op:?} {args:x?} gave {got:x}, want {wanted:x}");
        }
    }
}

#[test]
fn float_to_integer_saturates_and_takes_nan_to_zero() {
    fn want(x: f64, low: f64, high: f64) -> f64 {
        if x.is_nan() { 0.0 } else { x.trunc().clamp(low, high) }
    }
    check::<32>(Op::VCvtI32F32, [1; 3], 1, None, |[a, ..], _| {
        let x = want(f32::from_bits(a as u32).into(), -2147483648.0, 2147483647.0);
        u64::from(x as i64 as u32)
    });
    check::<32>(Op::VCvtU32F32, [1; 3], 1, None, |[a, ..], _| {
        want(f32::from_bits(a as u32).into(), 0.0, 4294967295.0) as u64
    });
    check::<64>(Op::VCvtI32F64, [2; 3], 1, None, |[a, ..], _| {
        u64::from(want(f64::from_bits(a), -2147483648.0, 2147483647.0) as i64 as u32)
    });
    check::<64>(Op::VCvtU32F64, [2; 3], 1, None, |[a, ..], _| {
        want(f64::from_bits(a), 0.0, 4294967295.0) as u64
    });
}

#[test]
fn rounding_to_integers_keeps_the_sign_of_zero() {
    type F = fn(f64) -> f64;
    let cases: [(Op, F); 4] = [
        (Op::VFloorF32, f64::floor),
        (Op::VCeilF32, f64::ceil),
        (Op::VTruncF32, f64::trunc),
        (Op::VRndneF32, |x| {
            let (low, part) = (x.floor(), x - x.floor());
            let up = part > 0.5 || part == 0.5 && low % 2.0 != 0.0;
            (if up { low + 1.0 } else { low }).copysign(x)
        }),
    ];
    for (op, f) in cases {
        check::<32>(op, [1; 3], 1, Some(F32), |[a, ..], _| {
            u64::from((f(f32::from_bits(a as u32).into()) as f32).to_bits())
        });
    }
}
