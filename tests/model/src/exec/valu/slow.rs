//! Instructions with modifiers, under any MODE, one lane at a time.

use super::fp::ByMode;
use super::operands::Operands;
use super::types::{Ty, U32};
use super::visit::Visit;
use crate::exec::{Code, Env, Wave};
use crate::isa::ir::Inst;

/// Runs one instruction.
pub struct Slow<'a, const N: usize>(pub Operands<'a, N>);

impl<const N: usize> Visit<N> for Slow<'_, N> {
    type Fp = ByMode;

    fn fp(&self) -> ByMode {
        self.0.fp
    }

    fn clamp(&self) -> bool {
        self.0.mods.clamp
    }

    fn map1<A: Ty, D: Ty>(mut self, f: impl Fn(A::V) -> D::V) {
        let x = self.0.fetch::<A>(0);
        self.0.store::<D>(&x.map(|x| D::put(f(A::get(x)))));
    }

    fn map2<A: Ty, B: Ty, D: Ty>(self, f: impl Fn(A::V, B::V) -> D::V) {
        self.map2_lane::<A, B, D>(|_, a, b| f(a, b));
    }

    fn map2_lane<A: Ty, B: Ty, D: Ty>(mut self, f: impl Fn(usize, A::V, B::V) -> D::V) {
        let (x, y) = (self.0.fetch::<A>(0), self.0.fetch::<B>(1));
        let out = std::array::from_fn(|k| D::put(f(k, A::get(x[k]), B::get(y[k]))));
        self.0.store::<D>(&out);
    }

    fn map3<A: Ty, B: Ty, C: Ty, D: Ty>(mut self, f: impl Fn(A::V, B::V, C::V) -> D::V) {
        let (x, y, z) = (self.0.fetch::<A>(0), self.0.fetch::<B>(1), self.0.fetch::<C>(2));
        let out = std::array::from_fn(|k| D::put(f(A::get(x[k]), B::get(y[k]), C::get(z[k]))));
        self.0.store::<D>(&out);
    }

    fn map3_out<A: Ty, B: Ty, C: Ty, D: Ty>(
        mut self,
        f: impl Fn(A::V, B::V, C::V) -> (D::V, bool),
    ) {
        let (x, y, z) = (self.0.fetch::<A>(0), self.0.fetch::<B>(1), self.0.fetch::<C>(2));
        let mut bits = [false; N];
        let out = std::array::from_fn(|k| {
            let (d, bit) = f(A::get(x[k]), B::get(y[k]), C::get(z[k]));
            bits[k] = bit;
            D::put(d)
        });
        let mask = self.0.pack(&bits);
        self.0.store::<D>(&out);
        self.0.wave.set_lane_mask(self.0.inst.sdst, mask);
    }

    fn map3_vcc<A: Ty, B: Ty, C: Ty, D: Ty>(mut self, f: impl Fn(A::V, B::V, C::V, bool) -> D::V) {
        let vcc = self.0.wave.vcc();
        let (x, y, z) = (self.0.fetch::<A>(0), self.0.fetch::<B>(1), self.0.fetch::<C>(2));
        let out = std::array::from_fn(|k| {
            D::put(f(A::get(x[k]), B::get(y[k]), C::get(z[k]), vcc >> k & 1 != 0))
        });
        self.0.store::<D>(&out);
    }

    fn map2_in<A: Ty, B: Ty, D: Ty>(self, f: impl Fn(A::V, B::V, bool) -> D::V) {
        let mask = self.0.wave.src_lane_mask(self.0.inst.src[2], self.0.code);
        self.map2_lane::<A, B, D>(|k, a, b| f(a, b, mask >> k & 1 != 0));
    }

    fn carry(self, f: impl Fn(u32, u32) -> (u32, bool)) {
        carry(self, |_, a, b| f(a, b));
    }

    fn carry_in(self, f: impl Fn(u32, u32, bool) -> (u32, bool)) {
        let mask = self.0.wave.src_lane_mask(self.0.inst.src[2], self.0.code);
        carry(self, |k, a, b| f(a, b, mask >> k & 1 != 0));
    }

    fn compare<A: Ty, B: Ty>(self, exec: bool, f: impl Fn(A::V, B::V) -> bool) {
        let (x, y) = (self.0.fetch::<A>(0), self.0.fetch::<B>(1));
        let bits = std::array::from_fn(|k| f(A::get(x[k]), B::get(y[k])));
        let mask = self.0.pack(&bits);
        self.0.wave.set_lane_mask(self.0.inst.sdst, mask);
        if exec {
            self.0.wave.set_exec(mask);
        }
    }

    fn whole(self, f: impl FnOnce(&mut Wave<N>, &Inst, &Code, &Env)) {
        f(self.0.wave, self.0.inst, self.0.code, self.0.env);
    }
}

fn carry<const N: usize>(mut slow: Slow<'_, N>, f: impl Fn(usize, u32, u32) -> (u32, bool)) {
    let (x, y) = (slow.0.fetch::<U32>(0), slow.0.fetch::<U32>(1));
    let mut bits = [false; N];
    let out = std::array::from_fn(|k| {
        let (d, bit) = f(k, x[k] as u32, y[k] as u32);
        bits[k] = bit;
        u64::from(d)
    });
    let mask = slow.0.pack(&bits);
    slow.0.store::<U32>(&out);
    slow.0.wave.set_lane_mask(slow.0.inst.sdst, mask);
}
