//! Matrix operations against plain matrix products of small integers, which every order and
//! rounding gives exactly.

use super::super::lane::half;
use super::super::matrix::{Element, Shape};
use super::super::step;
use super::super::tests_rng::Rng;
use super::harness::{GFX90A, inst, wave};
use crate::exec::Code;
use crate::isa::Op;
use crate::isa::ir::Src;

/// Bits of a small integer as an element.
fn bits(element: Element, value: i32) -> u64 {
    match element {
        Element::F32 | Element::Xf32 => u64::from((value as f32).to_bits()),
        Element::F16 => u64::from(half::from_f32(value as f32)),
        Element::Bf16 => u64::from(half::bf16_from_f32(value as f32)),
        Element::I8 => u64::from(value as u8),
        Element::F64 => f64::from(value).to_bits(),
    }
}

fn width(element: Element) -> usize {
    match element {
        Element::I8 => 8,
        Element::F16 | Element::Bf16 => 16,
        Element::F32 | Element::Xf32 => 32,
        Element::F64 => 64,
    }
}

#[test]
fn products_equal_the_definition() {
    let mut rng = Rng::new(500);
    for &op in Op::all() {
        let Some(shape) = Shape::of(op) else { continue };
        let Shape { side, depth, blocks, element } = shape;
        let mut w = wave::<64>(&mut rng);
        w.vgprs = 128;
        w.set_exec(1); // does not matter
        let mut small = || rng.below(9) as i32 - 4;
        let a: Vec<i32> = (0..blocks * side * depth).map(|_| small()).collect();
        let b: Vec<i32> = (0..blocks * side * depth).map(|_| small()).collect();
        let c: Vec<i32> = (0..blocks * side * side).map(|_| small()).collect();
        // A in v40.., B in v50.., C and D in v60..
        let accumulates = if element == Element::I8 {
            32
        } else if element == Element::F64 {
            64
        } else {
            32
        };
        let mut put = |base: usize, bits: usize, (lane, place): (usize, usize), value: u64| {
            for bit in 0..bits {
                let at = place * bits + bit;
                let word = &mut w.v[base + at / 32][lane];
                *word = *word & !(1 << (at % 32)) | ((value >> bit & 1) as u32) << (at % 32);
            }
        };
        for block in 0..blocks {
            for i in 0..side {
                for k in 0..depth {
                    let at = (block * side + i) * depth + k;
                    put(40, width(element), shape.source(block, i, k), bits(element, a[at]));
                    put(50, width(element), shape.source(block, i, k), bits(element, b[at]));
                }
                for j in 0..side {
                    let value = c[(block * side + i) * side + j];
                    let sum = match element {
                        Element::I8 => u64::from(value as u32),
                        Element::F64 => f64::from(value).to_bits(),
                        _ => u64::from((value as f32).to_bits()),
                    };
                    put(60, accumulates, shape.result(block, i, j), sum);
                }
            }
        }
        let mut inst = inst(op);
        (inst.dst, inst.src) = (60, [Src::v(40), Src::v(50), Src::v(60)]);
        assert!(step::<_, true>(&mut w, &inst, &Code::default(), &GFX90A));
        for block in 0..blocks {
            for (i, j) in (0..side).flat_map(|i| (0..side).map(move |j| (i, j))) {
                let row = &a[(block * side + i) * depth..][..depth];
                let column = &b[(block * side + j) * depth..][..depth];
                let want = c[(block * side + i) * side + j]
                    + row.iter().zip(column).map(|(x, y)| x * y).sum::<i32>();
                let (lane, place) = shape.result(block, i, j);
                let got = match element {
                    Element::I8 => f64::from(w.v[60 + place][lane] as i32),
                    Element::F64 => f64::from_bits(
                        u64::from(w.v[60 + 2 * place][lane])
                            | u64::from(w.v[61 + 2 * place][lane]) << 32,
                    ),
                    _ => f32::from_bits(w.v[60 + place][lane]).into(),
                };
                assert_eq!(got, f64::from(want), "{} block {block} row {i} column {j}", op.name());
            }
        }
    }
}
