//! Matrix operations against plain matrix products of small integers, which every order and
//! rounding gives exactly.

use super::super::lane::fp8::Eight;
use super::super::lane::half;
use super::super::matrix::{Element, Shape};
use super::super::sparse::Sparse;
use super::super::step;
use super::super::tests_rng::Rng;
use super::harness::{GFX90A, GFX942, inst, wave, with};
use crate::exec::Code;
use crate::isa::Op;
use crate::isa::ir::{Mods, Src};

/// Bits of a small integer as an element of A (side 0) or B (side 1).
fn bits(element: Element, side: usize, value: i32) -> u64 {
    match element {
        Element::F32 | Element::Xf32 => u64::from((value as f32).to_bits()),
        Element::F16 => u64::from(half::from_f32(value as f32)),
        Element::Bf16 => u64::from(half::bf16_from_f32(value as f32)),
        Element::I8 => u64::from(value as u8),
        Element::F64 => f64::from(value).to_bits(),
        Element::Eight(a, b) => {
            let format = [a, b][side];
            // Written down here, not computed: -4 to 4 in fp8 and bf8.
            let [fp8, bf8] = match value.unsigned_abs() {
                0 => [0, 0],
                1 => [0x40, 0x40],
                2 => [0x48, 0x44],
                3 => [0x4c, 0x46],
                _ => [0x50, 0x48],
            };
            let magnitude = if format == Eight::Fp8 { fp8 } else { bf8 };
            if value < 0 { magnitude | 0x80 } else { magnitude }
        }
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
                    put(40, element.bits(), shape.source(block, i, k), bits(element, 0, a[at]));
                    put(50, element.bits(), shape.source(block, i, k), bits(element, 1, b[at]));
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

/// Where AMD's matrix instruction calculator puts the elements of a sparse product (architecture
/// CDNA3): registers and lanes of A, its indices, B and D.
struct Places {
    /// Rows of A, and depth in k of a lane's elements of B.
    side: usize,
    chunk: usize,
    bits: usize,
}

impl Places {
    /// Lane, register and lowest bit of the pair that A stores for k..k+4.
    fn a(&self, i: usize, k: usize) -> (usize, usize, usize) {
        let pair = k % self.chunk / 4;
        let at = 2 * self.bits * pair;
        (self.side * (k / self.chunk) + i, at / 32, at % 32)
    }

    /// Lane and lowest bit of that pair's two indices.
    fn index(&self, i: usize, k: usize) -> (usize, usize) {
        (self.side * (k / self.chunk) + i, 4 * (k % self.chunk / 4))
    }

    fn b(&self, j: usize, k: usize) -> (usize, usize, usize) {
        let at = self.bits * (k % self.chunk);
        (self.side * (k / self.chunk) + j, at / 32, at % 32)
    }

    fn d(&self, i: usize, j: usize) -> (usize, usize) {
        if self.side == 16 {
            (16 * (i / 4) + j, i % 4)
        } else {
            (32 * (i / 4) % 64 + j, 4 * (i / 8) + i % 4)
        }
    }
}

#[test]
fn sparse_products_equal_the_definition() {
    let mut rng = Rng::new(510);
    let mut seen = 0;
    for &op in Op::all() {
        let Some(Sparse { side, depth, element }) = Sparse::of(op) else { continue };
        seen += 1;
        let (cbsz, abid) = [(0, 0), (0, 1), (1, 1), (0, 3)][rng.below(4) as usize];
        // 16-bit elements: four sets of 8 bits; 8-bit ones: two of 16.
        let (bits_per, sets) = if element.bits() == 16 { (8, 4) } else { (16, 2) };
        let set = if cbsz != 0 { 0 } else { usize::from(abid) % sets };
        let places = Places { side, chunk: side * depth / 64, bits: element.bits() };
        let mut w = wave::<64>(&mut rng);
        w.vgprs = 128;
        w.set_exec(1); // does not matter
        let mut a = vec![vec![0i32; depth]; side];
        let mut b = vec![vec![0i32; side]; depth];
        let mut d = vec![vec![0i32; side]; side];
        for row in b.iter_mut().chain(&mut d) {
            row.fill_with(|| rng.below(9) as i32 - 4);
        }
        w.v[30] = std::array::from_fn(|_| rng.u32());
        for i in 0..side {
            for k in (0..depth).step_by(4) {
                let first = rng.below(3) as usize;
                let second = first + 1 + rng.below(3 - first as u32) as usize;
                let (lane, at) = places.index(i, k);
                let word = &mut w.v[30][lane];
                let at = at + bits_per * set;
                *word = *word & !(15 << at) | (first as u32 | (second as u32) << 2) << at;
                let (lane, reg, at) = places.a(i, k);
                let mut pair = 0;
                for (half, k) in [k + first, k + second].into_iter().enumerate() {
                    a[i][k] = rng.below(9) as i32 - 4;
                    pair |= bits(element, 0, a[i][k]) << (element.bits() * half);
                }
                let mask = (1u64 << (2 * element.bits())) - 1;
                let word = &mut w.v[40 + reg][lane];
                *word = (u64::from(*word) & !(mask << at) | pair << at) as u32;
            }
        }
        for (k, row) in b.iter().enumerate() {
            for (j, &value) in row.iter().enumerate() {
                let (lane, reg, at) = places.b(j, k);
                let mask = ((1u64 << element.bits()) - 1) << at;
                let word = &mut w.v[50 + reg][lane];
                *word = (u64::from(*word) & !mask | bits(element, 1, value) << at) as u32;
            }
        }
        let integer = element == Element::I8;
        for (i, row) in d.iter().enumerate() {
            for (j, &value) in row.iter().enumerate() {
                let (lane, reg) = places.d(i, j);
                w.v[60 + reg][lane] = if integer { value as u32 } else { (value as f32).to_bits() };
            }
        }
        let mods = Mods { matrix: [cbsz, abid, 0], ..Mods::default() };
        let (mut inst, code) = with(op, mods);
        (inst.dst, inst.src) = (60, [Src::v(40), Src::v(50), Src::v(30)]);
        assert!(step::<64, true>(&mut w, &inst, &code, &GFX942));
        for i in 0..side {
            for j in 0..side {
                let want = d[i][j] + (0..depth).map(|k| a[i][k] * b[k][j]).sum::<i32>();
                let (lane, reg) = places.d(i, j);
                let got = w.v[60 + reg][lane];
                let got = if integer { got as i32 } else { f32::from_bits(got) as i32 };
                assert_eq!(got, want, "{} row {i} column {j}", op.name());
            }
        }
    }
    assert_eq!(seen, 14);
}

#[test]
fn stochastic_conversions_replace_one_byte() {
    let mut rng = Rng::new(511);
    for (op, place, random, want) in [
        (Op::VCvtSrFp8F32, 0, 0, 0x1122_3340),
        (Op::VCvtSrFp8F32, 2, 1 << 31, 0x1141_3344),
        (Op::VCvtSrBf8F32, 1, 0, 0x1122_4044),
        (Op::VCvtSrBf8F32, 3, !0, 0x4122_3344),
    ] {
        let mut w = wave::<64>(&mut rng);
        let (inst, code) = with(op, Mods { opsel: place << 2, ..Mods::default() });
        // Half a step above 1: of fp8's 1/8, of bf8's 1/4.
        let half_step = if op == Op::VCvtSrFp8F32 { 1.0625f32 } else { 1.125 };
        w.v[2] = [half_step.to_bits(); 64];
        w.v[4] = [random; 64];
        w.v[20] = [0x1122_3344; 64];
        w.set_exec(2);
        assert!(step::<64, true>(&mut w, &inst, &code, &GFX942));
        assert_eq!([w.v[20][0], w.v[20][1]], [0x1122_3344, want], "{}", op.name());
    }
}
