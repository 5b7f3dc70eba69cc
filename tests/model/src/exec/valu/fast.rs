//! Instructions without modifiers under the usual MODE: loops over whole registers that the
//! compiler turns into vector code.

use std::mem::MaybeUninit;

use super::fp::{Usual, mode};
use super::operands::Lanes;
use super::types::{Ty, U64};
use super::visit::Visit;
use crate::exec::{Code, Env, Wave};
use crate::isa::ir::{Inst, Src, sgpr};

/// Runs one instruction.
pub struct Fast<'a, const N: usize> {
    pub wave: &'a mut Wave<N>,
    pub inst: &'a Inst,
    pub code: &'a Code,
    pub env: &'a Env,
}

type Buffers<const N: usize> = [MaybeUninit<[u32; N]>; 2];

#[inline(always)]
const fn buffers<const N: usize>() -> Buffers<N> {
    [MaybeUninit::uninit(), MaybeUninit::uninit()]
}

/// A source's registers, the second one only where the type has it.
#[inline(always)]
fn words<'a, const N: usize, T: Ty>(
    wave: &'a Wave<N>,
    src: Src,
    code: &Code,
    buffers: &'a mut Buffers<N>,
) -> (&'a [u32; N], &'a [u32; N]) {
    if T::WIDE {
        wave.src_u64(src, code, buffers)
    } else {
        let low = wave.src_u32(src, code, &mut buffers[0]);
        (low, low)
    }
}

#[inline(always)]
fn value<const N: usize, T: Ty>((low, high): (&[u32; N], &[u32; N]), lane: usize) -> T::V {
    T::get(if T::WIDE {
        u64::from(low[lane]) | u64::from(high[lane]) << 32
    } else {
        u64::from(low[lane])
    })
}

/// Results before they are written.
struct Out<const N: usize> {
    low: [u32; N],
    high: [u32; N],
}

impl<const N: usize> Out<N> {
    #[inline(always)]
    fn new() -> Self {
        Self { low: [0; N], high: [0; N] }
    }

    #[inline(always)]
    fn put<D: Ty>(&mut self, lane: usize, value: D::V) {
        let bits = D::put(value);
        self.low[lane] = bits as u32;
        if D::WIDE {
            self.high[lane] = (bits >> 32) as u32;
        }
    }

    #[inline(always)]
    fn write<D: Ty>(mut self, wave: &mut Wave<N>, dst: u16, env: &Env) {
        if D::HALF && !(D::CLEARS && env.target.is_gfx9()) {
            let old = &wave.v[usize::from(dst) & 511];
            for k in 0..N {
                self.low[k] |= old[k] & 0xffff_0000;
            }
        }
        wave.write_v(dst, &self.low);
        if D::WIDE {
            wave.write_v(dst + 1, &self.high);
        }
    }
}

/// A lane mask, one word per lane: 0 or 1.
#[inline(always)]
fn expand<const N: usize>(mask: u64) -> [u32; N] {
    let mut bits = [0; N];
    for half in 0..N / 32 {
        let mask = (mask >> (32 * half)) as u32;
        for k in 0..32 {
            bits[32 * half + k] = u32::from(mask & 1 << k != 0);
        }
    }
    bits
}

/// A truth value as all ones or zero, which is what the host's vector compares give.
#[inline(always)]
fn ones(truth: bool) -> u32 {
    0u32.wrapping_sub(u32::from(truth))
}

/// Words that are all ones or zero as a mask, a bit of each. 32 lanes at a time: 32-bit words
/// stay vector code.
#[inline(always)]
fn pack<const N: usize>(active: &[u32; N], words: &[u32; N]) -> u64 {
    let mut mask = 0;
    for half in 0..N / 32 {
        let mut packed = 0;
        for k in 0..32 {
            packed |= active[32 * half + k] & words[32 * half + k] & 1 << k;
        }
        mask |= u64::from(packed) << (32 * half);
    }
    mask
}

/// Writes what a compare found.
#[inline(always)]
fn set_compared<const N: usize>(wave: &mut Wave<N>, inst: &Inst, exec: bool, words: &[u32; N]) {
    let mask = pack(&wave.mask, words);
    wave.set_lane_mask(inst.sdst, mask);
    if exec {
        wave.set_lane_mask(sgpr::EXEC_LO, mask);
        for k in 0..N {
            wave.mask[k] &= words[k];
        }
    }
}

impl<const N: usize> Visit for Fast<'_, N> {
    type Fp = Usual;

    #[inline(always)]
    fn fp(&self) -> Usual {
        Usual { ieee: self.wave.mode & mode::IEEE != 0 }
    }

    #[inline(always)]
    fn clamp(&self) -> bool {
        false
    }

    #[inline(always)]
    fn map1<A: Ty, D: Ty>(self, f: impl Fn(A::V) -> D::V) {
        let mut b0 = buffers();
        let x = words::<N, A>(self.wave, self.inst.src[0], self.code, &mut b0);
        let mut out = Out::new();
        for k in 0..N {
            out.put::<D>(k, f(value::<N, A>(x, k)));
        }
        out.write::<D>(self.wave, self.inst.dst, self.env);
    }

    #[inline(always)]
    fn map2<A: Ty, B: Ty, D: Ty>(self, f: impl Fn(A::V, B::V) -> D::V) {
        self.map2_lane::<A, B, D>(|_, a, b| f(a, b));
    }

    #[inline(always)]
    fn map2_lane<A: Ty, B: Ty, D: Ty>(self, f: impl Fn(usize, A::V, B::V) -> D::V) {
        let (mut b0, mut b1) = (buffers(), buffers());
        let x = words::<N, A>(self.wave, self.inst.src[0], self.code, &mut b0);
        let y = words::<N, B>(self.wave, self.inst.src[1], self.code, &mut b1);
        let mut out = Out::new();
        for k in 0..N {
            out.put::<D>(k, f(k, value::<N, A>(x, k), value::<N, B>(y, k)));
        }
        out.write::<D>(self.wave, self.inst.dst, self.env);
    }

    #[inline(always)]
    fn map3<A: Ty, B: Ty, C: Ty, D: Ty>(self, f: impl Fn(A::V, B::V, C::V) -> D::V) {
        let (mut b0, mut b1, mut b2) = (buffers(), buffers(), buffers());
        let x = words::<N, A>(self.wave, self.inst.src[0], self.code, &mut b0);
        let y = words::<N, B>(self.wave, self.inst.src[1], self.code, &mut b1);
        let z = words::<N, C>(self.wave, self.inst.src[2], self.code, &mut b2);
        let mut out = Out::new();
        for k in 0..N {
            out.put::<D>(k, f(value::<N, A>(x, k), value::<N, B>(y, k), value::<N, C>(z, k)));
        }
        out.write::<D>(self.wave, self.inst.dst, self.env);
    }

    #[inline(always)]
    fn map3_out<A: Ty, B: Ty, C: Ty, D: Ty>(self, f: impl Fn(A::V, B::V, C::V) -> (D::V, bool)) {
        let (mut b0, mut b1, mut b2) = (buffers(), buffers(), buffers());
        let x = words::<N, A>(self.wave, self.inst.src[0], self.code, &mut b0);
        let y = words::<N, B>(self.wave, self.inst.src[1], self.code, &mut b1);
        let z = words::<N, C>(self.wave, self.inst.src[2], self.code, &mut b2);
        let mut out = Out::new();
        let mut bits = [0; N];
        for k in 0..N {
            let (d, bit) = f(value::<N, A>(x, k), value::<N, B>(y, k), value::<N, C>(z, k));
            out.put::<D>(k, d);
            bits[k] = ones(bit);
        }
        let mask = pack(&self.wave.mask, &bits);
        out.write::<D>(self.wave, self.inst.dst, self.env);
        self.wave.set_lane_mask(self.inst.sdst, mask);
    }

    #[inline(always)]
    fn map3_vcc<A: Ty, B: Ty, C: Ty, D: Ty>(self, f: impl Fn(A::V, B::V, C::V, bool) -> D::V) {
        let vcc = expand::<N>(self.wave.vcc());
        let (mut b0, mut b1, mut b2) = (buffers(), buffers(), buffers());
        let x = words::<N, A>(self.wave, self.inst.src[0], self.code, &mut b0);
        let y = words::<N, B>(self.wave, self.inst.src[1], self.code, &mut b1);
        let z = words::<N, C>(self.wave, self.inst.src[2], self.code, &mut b2);
        let mut out = Out::new();
        for k in 0..N {
            let d = f(value::<N, A>(x, k), value::<N, B>(y, k), value::<N, C>(z, k), vcc[k] != 0);
            out.put::<D>(k, d);
        }
        out.write::<D>(self.wave, self.inst.dst, self.env);
    }

    #[inline(always)]
    fn map2_in<A: Ty, B: Ty, D: Ty>(self, f: impl Fn(A::V, B::V, bool) -> D::V) {
        let mask = expand::<N>(self.wave.src_lane_mask(self.inst.src[2], self.code));
        self.map2_lane::<A, B, D>(|k, a, b| f(a, b, mask[k] != 0));
    }

    #[inline(always)]
    fn carry(self, f: impl Fn(u32, u32) -> (u32, bool)) {
        carry(self, |_, a, b| f(a, b));
    }

    #[inline(always)]
    fn carry_in(self, f: impl Fn(u32, u32, bool) -> (u32, bool)) {
        let mask = expand::<N>(self.wave.src_lane_mask(self.inst.src[2], self.code));
        carry(self, |k, a, b| f(a, b, mask[k] != 0));
    }

    #[inline(always)]
    fn compare<A: Ty, B: Ty>(self, exec: bool, f: impl Fn(A::V, B::V) -> bool) {
        let (mut b0, mut b1) = (buffers(), buffers());
        let x = words::<N, A>(self.wave, self.inst.src[0], self.code, &mut b0);
        let y = words::<N, B>(self.wave, self.inst.src[1], self.code, &mut b1);
        let mut bits = [0; N];
        for k in 0..N {
            bits[k] = ones(f(value::<N, A>(x, k), value::<N, B>(y, k)));
        }
        set_compared(self.wave, self.inst, exec, &bits);
    }

    #[inline(always)]
    fn compare_equal64(self, exec: bool, equal: bool) {
        let (mut b0, mut b1) = (buffers(), buffers());
        let x = words::<N, U64>(self.wave, self.inst.src[0], self.code, &mut b0);
        let y = words::<N, U64>(self.wave, self.inst.src[1], self.code, &mut b1);
        let mut bits = [0; N];
        for k in 0..N {
            let differs = (x.0[k] ^ y.0[k]) | (x.1[k] ^ y.1[k]);
            bits[k] = ones((differs == 0) == equal);
        }
        set_compared(self.wave, self.inst, exec, &bits);
    }

    #[inline(always)]
    fn whole(self, _: impl FnOnce(&mut Lanes<'_>)) {
        debug_assert!(false, "the hot table has only operations on lanes");
    }
}

#[inline(always)]
fn carry<const N: usize>(fast: Fast<'_, N>, f: impl Fn(usize, u32, u32) -> (u32, bool)) {
    let (mut b0, mut b1) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    let x = fast.wave.src_u32(fast.inst.src[0], fast.code, &mut b0);
    let y = fast.wave.src_u32(fast.inst.src[1], fast.code, &mut b1);
    let (mut out, mut bits) = ([0; N], [0; N]);
    for k in 0..N {
        let (d, carry) = f(k, x[k], y[k]);
        out[k] = d;
        bits[k] = ones(carry);
    }
    let mask = pack(&fast.wave.mask, &bits);
    fast.wave.write_v(fast.inst.dst, &out);
    fast.wave.set_lane_mask(fast.inst.sdst, mask);
}
