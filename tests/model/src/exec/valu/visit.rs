//! How a table of operations is used: run fast, run with modifiers, or only looked up.
//!
//! The tables (`table/*.rs`) name each operation once and say, through [`Visit`], what its operands
//! are and what it does to a lane. So the plain path, the path with modifiers and the answer to "is
//! it implemented" cannot disagree.

use super::fp::{Fp, Usual};
use super::operands::Lanes;
use super::types::Ty;

/// What an operation of a table is turned into.
pub trait Visit: Sized {
    /// Arithmetic under this instruction's MODE.
    type Fp: Fp;

    /// The arithmetic.
    fn fp(&self) -> Self::Fp;

    /// The clamp bit, for integer operations that saturate. Float results are clamped by the visitor.
    fn clamp(&self) -> bool;

    /// `dst = f(src0)`.
    fn map1<A: Ty, D: Ty>(self, f: impl Fn(A::V) -> D::V);

    /// `dst = f(src0, src1)`.
    fn map2<A: Ty, B: Ty, D: Ty>(self, f: impl Fn(A::V, B::V) -> D::V);

    /// `dst = f(lane, src0, src1)`.
    fn map2_lane<A: Ty, B: Ty, D: Ty>(self, f: impl Fn(usize, A::V, B::V) -> D::V);

    /// `dst = f(src0, src1, src2)`.
    fn map3<A: Ty, B: Ty, C: Ty, D: Ty>(self, f: impl Fn(A::V, B::V, C::V) -> D::V);

    /// `dst, sdst = f(src0, src1, src2)`.
    fn map3_out<A: Ty, B: Ty, C: Ty, D: Ty>(self, f: impl Fn(A::V, B::V, C::V) -> (D::V, bool));

    /// `dst = f(src0, src1, src2, VCC)`.
    fn map3_vcc<A: Ty, B: Ty, C: Ty, D: Ty>(self, f: impl Fn(A::V, B::V, C::V, bool) -> D::V);

    /// `dst = f(src0, src1, mask in src2)`.
    fn map2_in<A: Ty, B: Ty, D: Ty>(self, f: impl Fn(A::V, B::V, bool) -> D::V);

    /// `dst, sdst = f(src0, src1)`.
    fn carry(self, f: impl Fn(u32, u32) -> (u32, bool));

    /// `dst, sdst = f(src0, src1, mask in src2)`.
    fn carry_in(self, f: impl Fn(u32, u32, bool) -> (u32, bool));

    /// `sdst = f(src0, src1)`, and EXEC as well where `exec`.
    fn compare<A: Ty, B: Ty>(self, exec: bool, f: impl Fn(A::V, B::V) -> bool);

    /// `sdst = src0 == src1` (or unequal) of two registers each, and EXEC as well where `exec`.
    fn compare_equal64(self, exec: bool, equal: bool);

    /// Anything else: the operation reads its own operands. Not in the hot table.
    fn whole(self, f: impl FnOnce(&mut Lanes<'_>));
}

/// Finds out whether a table has an operation, and does nothing.
pub struct Probe;

impl Visit for Probe {
    type Fp = Usual;

    fn fp(&self) -> Usual {
        Usual { ieee: false }
    }
    fn clamp(&self) -> bool {
        false
    }
    fn map1<A: Ty, D: Ty>(self, _: impl Fn(A::V) -> D::V) {}
    fn map2<A: Ty, B: Ty, D: Ty>(self, _: impl Fn(A::V, B::V) -> D::V) {}
    fn map2_lane<A: Ty, B: Ty, D: Ty>(self, _: impl Fn(usize, A::V, B::V) -> D::V) {}
    fn map3<A: Ty, B: Ty, C: Ty, D: Ty>(self, _: impl Fn(A::V, B::V, C::V) -> D::V) {}
    fn map3_out<A: Ty, B: Ty, C: Ty, D: Ty>(self, _: impl Fn(A::V, B::V, C::V) -> (D::V, bool)) {}
    fn map3_vcc<A: Ty, B: Ty, C: Ty, D: Ty>(self, _: impl Fn(A::V, B::V, C::V, bool) -> D::V) {}
    fn map2_in<A: Ty, B: Ty, D: Ty>(self, _: impl Fn(A::V, B::V, bool) -> D::V) {}
    fn carry(self, _: impl Fn(u32, u32) -> (u32, bool)) {}
    fn carry_in(self, _: impl Fn(u32, u32, bool) -> (u32, bool)) {}
    fn compare<A: Ty, B: Ty>(self, _: bool, _: impl Fn(A::V, B::V) -> bool) {}
    fn compare_equal64(self, _: bool, _: bool) {}
    fn whole(self, _: impl FnOnce(&mut Lanes<'_>)) {}
}
