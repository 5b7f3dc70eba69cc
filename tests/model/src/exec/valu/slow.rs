//! Instructions with modifiers, under any MODE, one lane at a time.

use super::fp::ByMode;
use super::operands::{Lanes, PerLane};
use super::types::{Ty, U32, U64};
use super::visit::Visit;

/// Runs one instruction.
pub struct Slow<'a, 'b>(pub &'a mut Lanes<'b>);

impl Slow<'_, '_> {
    fn fetch<T: Ty>(&self, k: usize) -> PerLane<u64> {
        self.0.fetch(k, &T::KIND)
    }

    /// Runs `f` on each lane and stores what it gives.
    fn store<D: Ty>(self, mut f: impl FnMut(usize) -> D::V) {
        let mut out = [0; 64];
        for lane in 0..self.0.count {
            out[lane] = D::put(f(lane));
        }
        self.0.store(&D::KIND, &out);
    }
}

impl Visit for Slow<'_, '_> {
    type Fp = ByMode;

    fn fp(&self) -> ByMode {
        self.0.fp
    }

    fn clamp(&self) -> bool {
        self.0.mods.clamp
    }

    fn map1<A: Ty, D: Ty>(self, f: impl Fn(A::V) -> D::V) {
        let x = self.fetch::<A>(0);
        self.store::<D>(|k| f(A::get(x[k])));
    }

    fn map2<A: Ty, B: Ty, D: Ty>(self, f: impl Fn(A::V, B::V) -> D::V) {
        let (x, y) = (self.fetch::<A>(0), self.fetch::<B>(1));
        self.store::<D>(|k| f(A::get(x[k]), B::get(y[k])));
    }

    fn map2_lane<A: Ty, B: Ty, D: Ty>(self, f: impl Fn(usize, A::V, B::V) -> D::V) {
        let (x, y) = (self.fetch::<A>(0), self.fetch::<B>(1));
        self.store::<D>(|k| f(k, A::get(x[k]), B::get(y[k])));
    }

    fn map3<A: Ty, B: Ty, C: Ty, D: Ty>(self, f: impl Fn(A::V, B::V, C::V) -> D::V) {
        let (x, y, z) = (self.fetch::<A>(0), self.fetch::<B>(1), self.fetch::<C>(2));
        self.store::<D>(|k| f(A::get(x[k]), B::get(y[k]), C::get(z[k])));
    }

    fn map3_out<A: Ty, B: Ty, C: Ty, D: Ty>(self, f: impl Fn(A::V, B::V, C::V) -> (D::V, bool)) {
        let (x, y, z) = (self.fetch::<A>(0), self.fetch::<B>(1), self.fetch::<C>(2));
        let mut bits = 0;
        for k in 0..self.0.count {
            let (_, bit) = f(A::get(x[k]), B::get(y[k]), C::get(z[k]));
            bits |= u64::from(bit) << k;
        }
        self.0.set_sdst(bits);
        self.store::<D>(|k| f(A::get(x[k]), B::get(y[k]), C::get(z[k])).0);
    }

    fn map3_vcc<A: Ty, B: Ty, C: Ty, D: Ty>(self, f: impl Fn(A::V, B::V, C::V, bool) -> D::V) {
        let vcc = self.0.vcc;
        let (x, y, z) = (self.fetch::<A>(0), self.fetch::<B>(1), self.fetch::<C>(2));
        self.store::<D>(|k| f(A::get(x[k]), B::get(y[k]), C::get(z[k]), vcc >> k & 1 != 0));
    }

    fn map2_in<A: Ty, B: Ty, D: Ty>(self, f: impl Fn(A::V, B::V, bool) -> D::V) {
        let mask = self.0.mask_source();
        self.map2_lane::<A, B, D>(|k, a, b| f(a, b, mask >> k & 1 != 0));
    }

    fn carry(self, f: impl Fn(u32, u32) -> (u32, bool)) {
        carry(self, |_, a, b| f(a, b));
    }

    fn carry_in(self, f: impl Fn(u32, u32, bool) -> (u32, bool)) {
        let mask = self.0.mask_source();
        carry(self, |k, a, b| f(a, b, mask >> k & 1 != 0));
    }

    fn compare<A: Ty, B: Ty>(self, exec: bool, f: impl Fn(A::V, B::V) -> bool) {
        let (x, y) = (self.fetch::<A>(0), self.fetch::<B>(1));
        let mut bits = 0;
        for k in 0..self.0.count {
            bits |= u64::from(f(A::get(x[k]), B::get(y[k]))) << k;
        }
        let mask = self.0.set_sdst(bits);
        if exec {
            self.0.set_exec(mask);
        }
    }

    fn compare_equal64(self, exec: bool, equal: bool) {
        self.compare::<U64, U64>(exec, |a, b| (a == b) == equal);
    }

    fn whole(self, f: impl FnOnce(&mut Lanes<'_>)) {
        f(self.0);
    }
}

fn carry(slow: Slow<'_, '_>, f: impl Fn(usize, u32, u32) -> (u32, bool)) {
    let (x, y) = (slow.fetch::<U32>(0), slow.fetch::<U32>(1));
    let (mut out, mut bits) = ([0; 64], 0);
    for k in 0..slow.0.count {
        let (d, bit) = f(k, x[k] as u32, y[k] as u32);
        out[k] = u64::from(d);
        bits |= u64::from(bit) << k;
    }
    // The carry goes last: a scalar source is read before it.
    slow.0.store(&U32::KIND, &out);
    slow.0.set_sdst(bits);
}
