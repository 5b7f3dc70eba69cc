//! gfx11's matrix operations against plain products of small integers.

use super::super::lane::half;
use super::super::step;
use super::super::tests_rng::Rng;
use super::super::wmma::Wmma;
use super::harness::{GFX1100, MODE, with};
use crate::exec::Wave;
use crate::isa::Op;
use crate::isa::ir::{Mods, Src};

fn check<const N: usize>(op: Op, kind: Wmma, high: bool) {
    let mut rng = Rng::new(600);
    let mut small = |n: i32| rng.below(n as u32 * 2) as i32 - n;
    let a: [[i32; 16]; 16] = std::array::from_fn(|_| std::array::from_fn(|_| small(4)));
    let b: [[i32; 16]; 16] = std::array::from_fn(|_| std::array::from_fn(|_| small(4)));
    let c: [[i32; 16]; 16] = std::array::from_fn(|_| std::array::from_fn(|_| small(100)));
    let mut w = Wave::<N>::new();
    w.mode = MODE;
    let (bits, sums_are_halves) = match kind {
        Wmma::I32Iu8 => (8, false),
        Wmma::I32Iu4 => (4, false),
        Wmma::F16F16 | Wmma::Bf16Bf16 => (16, true),
        Wmma::F32F16 | Wmma::F32Bf16 => (16, false),
    };
    let element = |x: i32| match kind {
        Wmma::I32Iu8 | Wmma::I32Iu4 => x as u32 & ((1 << bits) - 1),
        Wmma::F32F16 | Wmma::F16F16 => half::from_f32(x as f32).into(),
        Wmma::F32Bf16 | Wmma::Bf16Bf16 => half::bf16_from_f32(x as f32).into(),
    };
    let sum = |x: i32| match kind {
        Wmma::F32F16 | Wmma::F32Bf16 => (x as f32).to_bits(),
        Wmma::I32Iu8 | Wmma::I32Iu4 => x as u32,
        _ => element(x),
    };
    let shift = if high { 16 } else { 0 };
    for lane in 0..N {
        for k in 0..16 {
            let at = k * bits;
            w.v[10 + at / 32][lane] |= element(a[lane % 16][k]) << (at % 32);
            w.v[20 + at / 32][lane] |= element(b[k][lane % 16]) << (at % 32);
        }
        for r in 0..16 / (N / 16) {
            w.v[30 + r][lane] = sum(c[N / 16 * r + lane / 16][lane % 16]) << shift;
            w.v[40 + r][lane] = 0x5555_5555;
        }
    }
    // The negate bits make integers signed.
    let integers = matches!(kind, Wmma::I32Iu8 | Wmma::I32Iu4);
    let mods = Mods {
        neg: if integers { 3 } else { 0 },
        opsel: if high { 4 } else { 0 },
        opsel_hi: 7,
        ..Mods::default()
    };
    let (mut inst, code) = with(op, mods);
    (inst.dst, inst.src) = (40, [Src::v(10), Src::v(20), Src::v(30)]);
    assert!(step::<_, true>(&mut w, &inst, &code, &GFX1100), "{op:?}");
    for (i, row) in c.iter().enumerate() {
        for (j, &addend) in row.iter().enumerate() {
            let want = addend + (0..16).map(|k| a[i][k] * b[k][j]).sum::<i32>();
            let (lane, reg) = (i % (N / 16) * 16 + j, i / (N / 16));
            let got = w.v[40 + reg][lane];
            let wanted = if sums_are_halves {
                0x5555_5555 & !(0xffff << shift) | sum(want) << shift
            } else {
                sum(want)
            };
            assert_eq!(got, wanted, "{op:?} row {i} column {j}");
        }
    }
}

#[test]
fn products_equal_the_definition() {
    let mut seen = 0;
    for &op in Op::all() {
        let Some(kind) = Wmma::of(op) else { continue };
        seen += 1;
        check::<32>(op, kind, false);
        check::<64>(op, kind, false);
        if matches!(kind, Wmma::F16F16 | Wmma::Bf16Bf16) {
            check::<32>(op, kind, true);
        }
    }
    assert_eq!(seen, 6);
}
