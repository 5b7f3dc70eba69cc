//! Matrix multiply-accumulate of gfx908, gfx90a and gfx942 (v_mfma): D = A * B + C over one wave,
//! whatever EXEC says.
//!
//! How a lane's registers map to matrix elements: docs/ABI.md §Matrix layouts. Sums run in
//! ascending k, one fused step per product; silicon's order and intermediate rounding are not
//! published.

use super::lane::fp8::Eight;
use super::lane::half::{Half, bf16_to_f32};
use super::operands::{Lanes, Source};
use crate::isa::Op;

/// Type of A and B.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    F32,
    /// Single precision cut to ten bits of significand.
    Xf32,
    F16,
    Bf16,
    I8,
    F64,
    /// 8-bit floats: A's format and B's.
    Eight(Eight, Eight),
}

impl Element {
    /// Bits of an element of A or B.
    #[cfg(test)]
    pub const fn bits(self) -> usize {
        match self {
            Self::I8 | Self::Eight(..) => 8,
            Self::F16 | Self::Bf16 => 16,
            Self::F32 | Self::Xf32 => 32,
            Self::F64 => 64,
        }
    }
}

pub(super) const FP8_FP8: Element = Element::Eight(Eight::Fp8, Eight::Fp8);
pub(super) const FP8_BF8: Element = Element::Eight(Eight::Fp8, Eight::Bf8);
pub(super) const BF8_FP8: Element = Element::Eight(Eight::Bf8, Eight::Fp8);
pub(super) const BF8_BF8: Element = Element::Eight(Eight::Bf8, Eight::Bf8);

/// Shape of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Rows of A and columns of B.
    pub side: usize,
    /// Columns of A and rows of B.
    pub depth: usize,
    /// Independent products.
    pub blocks: usize,
    pub element: Element,
}

impl Shape {
    /// Elements of A (and of B) that a lane holds.
    pub const fn per_lane(self) -> usize {
        self.side * self.depth * self.blocks / 64
    }

    /// Elements of D that a lane holds.
    pub const fn results(self) -> usize {
        self.side * self.side * self.blocks / 64
    }

    /// Of a v_mfma operation.
    pub const fn of(op: Op) -> Option<Self> {
        use Element::{Bf16, F16, F32, F64, I8, Xf32};
        use Op::*;
        let (side, depth, blocks, element) = match op {
            VMfmaF3232x32x12bF32 => (32, 1, 2, F32),
            VMfmaF3216x16x14bF32 => (16, 1, 4, F32),
            VMfmaF324x4x116bF32 => (4, 1, 16, F32),
            VMfmaF3232x32x2F32 => (32, 2, 1, F32),
            VMfmaF3216x16x4F32 => (16, 4, 1, F32),
            VMfmaF3232x32x4Xf32 => (32, 4, 1, Xf32),
            VMfmaF3216x16x8Xf32 => (16, 8, 1, Xf32),
            VMfmaF3232x32x42bF16 => (32, 4, 2, F16),
            VMfmaF3216x16x44bF16 => (16, 4, 4, F16),
            VMfmaF324x4x416bF16 => (4, 4, 16, F16),
            VMfmaF3232x32x8F16 => (32, 8, 1, F16),
            VMfmaF3216x16x16F16 => (16, 16, 1, F16),
            VMfmaF3232x32x2bf16 => (32, 2, 2, Bf16),
            VMfmaF3216x16x2bf16 => (16, 2, 4, Bf16),
            VMfmaF324x4x2bf16 => (4, 2, 16, Bf16),
            VMfmaF3232x32x4bf16 => (32, 4, 1, Bf16),
            VMfmaF3216x16x8bf16 => (16, 8, 1, Bf16),
            VMfmaF3232x32x42bBf16 => (32, 4, 2, Bf16),
            VMfmaF3216x16x44bBf16 => (16, 4, 4, Bf16),
            VMfmaF324x4x416bBf16 => (4, 4, 16, Bf16),
            VMfmaF3232x32x8Bf16 => (32, 8, 1, Bf16),
            VMfmaF3216x16x16Bf16 => (16, 16, 1, Bf16),
            VMfmaI3232x32x42bI8 => (32, 4, 2, I8),
            VMfmaI3216x16x44bI8 => (16, 4, 4, I8),
            VMfmaI324x4x416bI8 => (4, 4, 16, I8),
            VMfmaI3232x32x8i8 => (32, 8, 1, I8),
            VMfmaI3216x16x16i8 => (16, 16, 1, I8),
            VMfmaI3232x32x16I8 => (32, 16, 1, I8),
            VMfmaI3216x16x32I8 => (16, 32, 1, I8),
            VMfmaF3216x16x32Fp8Fp8 => (16, 32, 1, FP8_FP8),
            VMfmaF3232x32x16Fp8Fp8 => (32, 16, 1, FP8_FP8),
            VMfmaF3216x16x32Fp8Bf8 => (16, 32, 1, FP8_BF8),
            VMfmaF3232x32x16Fp8Bf8 => (32, 16, 1, FP8_BF8),
            VMfmaF3216x16x32Bf8Fp8 => (16, 32, 1, BF8_FP8),
            VMfmaF3232x32x16Bf8Fp8 => (32, 16, 1, BF8_FP8),
            VMfmaF3216x16x32Bf8Bf8 => (16, 32, 1, BF8_BF8),
            VMfmaF3232x32x16Bf8Bf8 => (32, 16, 1, BF8_BF8),
            VMfmaF6416x16x4F64 => (16, 4, 1, F64),
            VMfmaF644x4x44bF64 => (4, 4, 4, F64),
            _ => return None,
        };
        Some(Self { side, depth, blocks, element })
    }

    /// Lane and place within its registers of the element of A in row `i` (or of B in column `i`),
    /// at depth `k`.
    pub const fn source(self, block: usize, i: usize, k: usize) -> (usize, usize) {
        let group = k / self.per_lane() * self.blocks + block;
        (group * self.side + i, k % self.per_lane())
    }

    /// Lane and place of the element of D in row `i`, column `j`.
    pub const fn result(self, block: usize, i: usize, j: usize) -> (usize, usize) {
        match (self.element, self.side) {
            (Element::F64, 16) => (i % 4 * 16 + j, i / 4),
            (Element::F64, _) => (i * 16 + block * 4 + j, 0),
            (_, 4) => (block * 4 + j, i),
            (_, 16) => (i / 4 * 16 + j, block * 4 + i % 4),
            _ => (i / 4 % 2 * 32 + j, block * 16 + i / 8 * 4 + i % 4),
        }
    }
}

/// A side of the product.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    A,
    B,
}

/// A source of the product: registers of all lanes.
pub(super) struct Rows<'a, 'b> {
    pub(super) lanes: &'a Lanes<'b>,
    pub(super) source: Source,
}

impl Rows<'_, '_> {
    pub(super) fn word(&self, lane: usize, word: usize) -> u32 {
        match self.source {
            Source::Row(reg) => self.lanes.row(reg + word)[lane],
            Source::Same(value) => value as u32,
        }
    }

    fn double(&self, lane: usize, place: usize) -> f64 {
        f64::from_bits(match self.source {
            Source::Row(_) => {
                u64::from(self.word(lane, 2 * place))
                    | u64::from(self.word(lane, 2 * place + 1)) << 32
            }
            Source::Same(value) => value,
        })
    }

    pub(super) fn single(&self, element: Element, side: Side, lane: usize, place: usize) -> f32 {
        let half = || (self.word(lane, place / 2) >> (16 * (place % 2))) as u16;
        match element {
            Element::F16 => Half(half()).to_f32(),
            Element::Bf16 => bf16_to_f32(half()),
            Element::Xf32 => f32::from_bits(self.word(lane, place) & !0x1fff),
            Element::Eight(a, b) => {
                let format = if side == Side::A { a } else { b };
                format.to_f32(self.byte(lane, place) as u8)
            }
            _ => f32::from_bits(self.word(lane, place)),
        }
    }

    pub(super) fn byte(&self, lane: usize, place: usize) -> i32 {
        i32::from((self.word(lane, place / 4) >> (8 * (place % 4))) as i8)
    }
}

/// Lane of B that a lane reads under the lane-group pattern `blgp`.
const fn b_lane(blgp: u8, lane: usize) -> usize {
    match blgp {
        1 => lane % 32,
        2 => lane % 32 + 32,
        3 => (lane + 16) % 64,
        4..=7 => lane % 16 + 16 * (blgp as usize - 4),
        _ => lane,
    }
}

/// Executes the instruction.
pub fn mfma(lanes: &mut Lanes<'_>, shape: Shape) {
    if lanes.count != 64 {
        return; // these targets have no wave32
    }
    let [cbsz, abid, blgp] = lanes.mods.matrix;
    let double = shape.element == Element::F64;
    // For doubles the field negates A, B and C instead of moving lanes.
    let (pattern, negate) = if double { (0, blgp) } else { (blgp, 0) };
    let group = (1usize << (cbsz & 7)).min(shape.blocks);
    let [a, b, c] = lanes.sources.map(|source| Rows { lanes, source });
    let sign = |k: u8| if negate >> k & 1 != 0 { -1.0 } else { 1.0 };
    let mut out = vec![[0u32; 64]; shape.results() * if double { 2 } else { 1 }];
    for block in 0..shape.blocks {
        let a_block = block / group * group + usize::from(abid) % group;
        for i in 0..shape.side {
            for j in 0..shape.side {
                let (lane, place) = shape.result(block, i, j);
                let operands = |k: usize| {
                    let (from_a, at_a) = shape.source(a_block, i, k);
                    let (from_b, at_b) = shape.source(block, j, k);
                    ((from_a, at_a), (b_lane(pattern, from_b), at_b))
                };
                match shape.element {
                    Element::F64 => {
                        let mut sum = c.double(lane, place) * sign(2);
                        for k in 0..shape.depth {
                            let ((la, pa), (lb, pb)) = operands(k);
                            sum = (a.double(la, pa) * sign(0))
                                .mul_add(b.double(lb, pb) * sign(1), sum);
                        }
                        out[2 * place][lane] = sum.to_bits() as u32;
                        out[2 * place + 1][lane] = (sum.to_bits() >> 32) as u32;
                    }
                    Element::I8 => {
                        let mut sum = c.word(lane, place) as i32;
                        for k in 0..shape.depth {
                            let ((la, pa), (lb, pb)) = operands(k);
                            sum = sum.wrapping_add(a.byte(la, pa) * b.byte(lb, pb));
                        }
                        out[place][lane] = sum as u32;
                    }
                    element => {
                        let mut sum = f32::from_bits(c.word(lane, place));
                        for k in 0..shape.depth {
                            let ((la, pa), (lb, pb)) = operands(k);
                            let x = a.single(element, Side::A, la, pa);
                            sum = x.mul_add(b.single(element, Side::B, lb, pb), sum);
                        }
                        out[place][lane] = sum.to_bits();
                    }
                }
            }
        }
    }
    let dst = lanes.dst;
    for (k, row) in out.iter().enumerate() {
        lanes.row_mut(dst + k).copy_from_slice(row);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shapes() -> impl Iterator<Item = (Op, Shape)> {
        Op::all().iter().filter_map(|&op| Some((op, Shape::of(op)?)))
    }

    #[test]
    fn every_element_has_a_place_of_its_own() {
        for (op, shape) in shapes() {
            let mut sources = std::collections::BTreeSet::new();
            let mut results = std::collections::BTreeSet::new();
            for block in 0..shape.blocks {
                for i in 0..shape.side {
                    sources.extend((0..shape.depth).map(|k| shape.source(block, i, k)));
                    results.extend((0..shape.side).map(|j| shape.result(block, i, j)));
                }
            }
            let filled = |places: usize| {
                (0..64).flat_map(|lane| (0..places).map(move |p| (lane, p))).collect()
            };
            assert_eq!(sources, filled(shape.per_lane()), "{}", op.name());
            assert_eq!(results, filled(shape.results()), "{}", op.name());
        }
    }

    /// Rows and columns by lane and register, as the layouts are usually written down.
    #[test]
    fn results_lie_where_the_layout_puts_them() {
        for (op, shape) in shapes() {
            for lane in 0..64 {
                for place in 0..shape.results() {
                    let (block, i, j) = match (shape.element, shape.side) {
                        (Element::F64, 16) => (0, 4 * place + lane / 16, lane % 16),
                        (Element::F64, _) => (lane / 4 % 4, lane / 16, lane % 4),
                        (_, 4) => (lane / 4, place, lane % 4),
                        (_, 16) => (place / 4, 4 * (lane / 16) + place % 4, lane % 16),
                        _ => {
                            let r = place % 16;
                            (place / 16, 8 * (r / 4) + 4 * (lane / 32) + r % 4, lane % 32)
                        }
                    };
                    assert_eq!(shape.result(block, i, j), (lane, place), "{}", op.name());
                }
            }
            // Lane l holds row l mod side; with one block, depth goes by l / side.
            for lane in 0..64 {
                let group = lane / shape.side;
                let (block, first) = if shape.blocks == 1 {
                    (0, group * shape.per_lane())
                } else {
                    (group % shape.blocks, group / shape.blocks * shape.per_lane())
                };
                assert_eq!(
                    shape.source(block, lane % shape.side, first),
                    (lane, 0),
                    "{}",
                    op.name()
                );
            }
        }
    }

    #[test]
    fn names_state_the_shape() {
        for (op, shape) in shapes() {
            let name = op.name();
            let size = name.split('_').nth(3).unwrap();
            let wanted = format!("{0}x{0}x{1}", shape.side, shape.depth);
            assert!(
                size == wanted
                    || size.starts_with(&wanted)
                        && !size[wanted.len()..].starts_with(char::is_numeric),
                "{name}"
            );
        }
        assert_eq!(shapes().count(), 39);
    }
}
