//! Sparse matrix multiply-accumulate of gfx942 (v_smfmac): D += A * B, whatever EXEC says. Of every
//! four neighbours in a row of A two are stored, and an index of two bits for each says which.
//!
//! docs/ABI.md §Matrix layouts. The indices of a lane are 8 bits (16-bit elements) or 16 bits (8-bit
//! elements) of source 2; abid picks them where cbsz is zero.

use super::fp::mode;
use super::lane::fp8::Eight;
use super::matrix::{BF8_BF8, BF8_FP8, Element, FP8_BF8, FP8_FP8, Rows, Shape, Side};
use super::operands::{Lanes, Source};
use super::types::{F32, Ty, U32};
use crate::isa::Op;

/// Shape of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sparse {
    /// Rows of A and columns of B.
    pub side: usize,
    /// Columns of A before compression, rows of B.
    pub depth: usize,
    pub element: Element,
}

impl Sparse {
    /// Of a v_smfmac operation.
    pub const fn of(op: Op) -> Option<Self> {
        use Op::*;
        let (side, depth, element) = match op {
            VSmfmacF3216x16x32F16 => (16, 32, Element::F16),
            VSmfmacF3232x32x16F16 => (32, 16, Element::F16),
            VSmfmacF3216x16x32Bf16 => (16, 32, Element::Bf16),
            VSmfmacF3232x32x16Bf16 => (32, 16, Element::Bf16),
            VSmfmacI3216x16x64I8 => (16, 64, Element::I8),
            VSmfmacI3232x32x32I8 => (32, 32, Element::I8),
            VSmfmacF3216x16x64Fp8Fp8 => (16, 64, FP8_FP8),
            VSmfmacF3232x32x32Fp8Fp8 => (32, 32, FP8_FP8),
            VSmfmacF3216x16x64Fp8Bf8 => (16, 64, FP8_BF8),
            VSmfmacF3232x32x32Fp8Bf8 => (32, 32, FP8_BF8),
            VSmfmacF3216x16x64Bf8Fp8 => (16, 64, BF8_FP8),
            VSmfmacF3232x32x32Bf8Fp8 => (32, 32, BF8_FP8),
            VSmfmacF3216x16x64Bf8Bf8 => (16, 64, BF8_BF8),
            VSmfmacF3232x32x32Bf8Bf8 => (32, 32, BF8_BF8),
            _ => return None,
        };
        Some(Self { side, depth, element })
    }

    /// Elements of B that a lane holds; of A it holds half as many.
    const fn per_lane(self) -> usize {
        self.side * self.depth / 64
    }

    /// D lies as that of a dense product of the same size.
    const fn dense(self) -> Shape {
        Shape { side: self.side, depth: self.depth, blocks: 1, element: self.element }
    }
}

/// Executes the instruction.
pub fn smfmac(lanes: &mut Lanes<'_>, shape: Sparse) {
    if lanes.count != 64 {
        return; // the target has no wave32
    }
    let [cbsz, abid, _] = lanes.mods.matrix;
    let per_lane = shape.per_lane();
    // Two bits for each of the lane's elements of A.
    let width = per_lane as u32;
    let sets = 32 / width;
    let set = if cbsz & 3 == 0 { u32::from(abid) % sets } else { 0 };
    let [a, b, index] = lanes.sources.map(|source| Rows { lanes, source });
    let sum = Rows { lanes, source: Source::Row(lanes.dst) };
    let mut out = vec![[0u32; 64]; shape.dense().results()];
    for i in 0..shape.side {
        for j in 0..shape.side {
            let (to, place) = shape.dense().result(0, i, j);
            // The products in ascending k: lane, place in A, place in B.
            let products = (0..64 / shape.side).flat_map(|group| {
                let (from_a, from_b) = (group * shape.side + i, group * shape.side + j);
                let indices = index.word(from_a, 0) >> (width * set);
                (0..per_lane / 2).map(move |at_a| {
                    let at_b = at_a / 2 * 4 + (indices >> (2 * at_a) & 3) as usize;
                    ((from_a, at_a), (from_b, at_b))
                })
            });
            let start = sum.word(to, place);
            out[place][to] = if shape.element == Element::I8 {
                products.fold(start as i32, |sum, ((la, pa), (lb, pb))| {
                    sum.wrapping_add(a.byte(la, pa) * b.byte(lb, pb))
                }) as u32
            } else {
                let element = shape.element;
                let total = products.fold(f32::from_bits(start), |sum, ((la, pa), (lb, pb))| {
                    let x = a.single(element, Side::A, la, pa);
                    x.mul_add(b.single(element, Side::B, lb, pb), sum)
                });
                total.to_bits()
            };
        }
    }
    let dst = lanes.dst;
    for (k, row) in out.iter().enumerate() {
        lanes.row_mut(dst + k).copy_from_slice(row);
    }
}

/// v_cvt_sr_fp8_f32, v_cvt_sr_bf8_f32: the high bits of source 1 are added below what the result
/// keeps, then the rest is cut off. op_sel picks the byte of the destination; the others stay.
pub fn cvt_sr(lanes: &mut Lanes<'_>, format: Eight) {
    let value = lanes.fetch(0, &F32::KIND);
    let random = lanes.raw(1, 0);
    let shift = 8 * u32::from(lanes.mods.opsel >> 2 & 3);
    let saturate = lanes.fp.0 & mode::FP16_OVFL != 0;
    let mut out = [0; 64];
    for lane in 0..lanes.count {
        let byte = format.narrow_stochastic(value[lane] as u32, random[lane], saturate);
        let old = lanes.row(lanes.dst)[lane];
        out[lane] = u64::from(old & !(0xff << shift) | u32::from(byte) << shift);
    }
    lanes.store(&U32::KIND, &out);
}
