//! The baseline: the two loops of the prototype that the model's speed is measured against,
//! decoded by hand, with nothing around them. It checks addresses, but neither permissions nor
//! registers, and knows only these instructions.
#![allow(unsafe_code)] // the prototype reads and writes host memory by address
#![allow(missing_docs, clippy::undocumented_unsafe_blocks, clippy::multiple_unsafe_ops_per_block)] // kept as it was measured

use std::time::{Duration, Instant};

#[derive(Clone, Copy)]
enum Src {
    V(u8),
    S(u8),
    K(u32),
}

#[derive(Clone, Copy)]
enum Op {
    GLoad { d: u8, a: u8 },
    GStore { a: u8, d: u8 },
    SLoad { d: u8, b: u8, off: i32, n: u8 },
    SAdd { d: u8, a: Src, b: Src },
    SAddc { d: u8, a: Src, b: Src },
    SCmpEq { a: Src, b: Src },
    SLshl { d: u8, a: Src, b: Src },
    SMov { d: u8, a: Src },
    SAshr { d: u8, a: Src, b: Src },
    Nop,
    VAddCo { d: u8, a: Src, b: Src, sd: u8 },
    VAddCi { d: u8, a: Src, b: Src, sd: u8, ci: u8 },
    VFmac { d: u8, a: Src, b: Src },
    VAddF { d: u8, a: Src, b: Src },
    VAddNc { d: u8, a: Src, b: Src },
    VLshl { d: u8, a: Src, b: Src },
    VLshl64 { d: u8, sh: u8, a: u8 },
    VAshr { d: u8, a: Src, b: Src },
    VMov { d: u8, a: Src },
    VLshlOr { d: u8, a: Src, b: u8, c: Src },
    Cbr0(i32),
    End,
}
use Op::*;
use Src::*;

#[repr(C, align(64))]
struct Wave<const N: usize> {
    v: [[u32; N]; 32],
    s: [u32; 128],
    mask: [u32; N],
    exec: u64,
    full: bool,
    scc: u32,
    pc: u32,
    lo: u64,
    hi: u64,
    ranges: *const (u64, u64),
    nr: usize,
    fault: u64,
}

impl<const N: usize> Wave<N> {
    #[inline(always)]
    fn sv(&self, a: Src) -> u32 {
        match a {
            S(i) => self.s[i as usize],
            K(k) => k,
            V(_) => 0,
        }
    }
    #[inline(always)]
    fn vv(&self, a: Src) -> [u32; N] {
        match a {
            V(i) => self.v[i as usize],
            S(i) => [self.s[i as usize]; N],
            K(k) => [k; N],
        }
    }
    #[inline(always)]
    fn wr(&mut self, d: u8, r: &[u32; N]) {
        let o = &mut self.v[d as usize];
        if self.full {
            *o = *r;
        } else {
            for i in 0..N {
                o[i] = (r[i] & self.mask[i]) | (o[i] & !self.mask[i]);
            }
        }
    }
    #[inline(always)]
    fn op2(&mut self, d: u8, a: Src, b: Src, f: impl Fn(u32, u32) -> u32) {
        let x = self.vv(a);
        let y = self.vv(b);
        let mut r = [0u32; N];
        for i in 0..N {
            r[i] = f(x[i], y[i]);
        }
        self.wr(d, &r);
    }
    #[cold]
    fn lookup(&mut self, a: u64, n: u64) -> bool {
        let r = unsafe { std::slice::from_raw_parts(self.ranges, self.nr) };
        let i = r.partition_point(|x| x.0 <= a);
        if i > 0 && a + n <= r[i - 1].1 {
            self.lo = r[i - 1].0;
            self.hi = r[i - 1].1;
            true
        } else {
            self.fault = a;
            false
        }
    }
    #[inline(always)]
    fn ok(&mut self, a: u64, n: u64) -> bool {
        if a >= self.lo && a.wrapping_add(n) <= self.hi { true } else { self.lookup(a, n) }
    }
    #[inline(always)]
    fn addr(&self, a: u8, i: usize) -> u64 {
        u64::from(self.v[a as usize][i]) | (u64::from(self.v[a as usize + 1][i]) << 32)
    }
    #[inline(always)]
    fn setmask(&mut self, sd: u8, c: &[u32; N]) {
        let mut m = 0u64;
        for i in 0..N {
            m |= u64::from(c[i] & 1) << i;
        }
        m &= self.exec;
        self.s[sd as usize] = m as u32;
        if N > 32 {
            self.s[sd as usize + 1] = (m >> 32) as u32;
        }
    }
    #[inline(always)]
    fn getmask(&self, sd: u8) -> u64 {
        let l = u64::from(self.s[sd as usize]);
        if N > 32 { l | (u64::from(self.s[sd as usize + 1]) << 32) } else { l }
    }
    #[inline(always)]
    fn load(&mut self, d: u8, a: u8) -> bool {
        let mut r = self.v[d as usize];
        let (mut mn, mut mx) = (u64::MAX, 0u64);
        if self.full {
            for i in 0..N {
                let x = self.addr(a, i);
                mn = mn.min(x);
                mx = mx.max(x);
            }
            if mn >= self.lo && mx.wrapping_add(4) <= self.hi {
                let cont = (0..N).all(|i| self.addr(a, i) == mn + 4 * i as u64);
                if cont {
                    unsafe { std::ptr::copy_nonoverlapping(mn as *const u32, r.as_mut_ptr(), N) }
                } else {
                    for i in 0..N {
                        r[i] = unsafe { *(self.addr(a, i) as *const u32) }
                    }
                }
                self.v[d as usize] = r;
                return true;
            }
        }
        for i in 0..N {
            if self.exec >> i & 1 == 0 {
                continue;
            }
            let x = self.addr(a, i);
            if !self.ok(x, 4) {
                return false;
            }
            r[i] = unsafe { *(x as *const u32) }
        }
        self.v[d as usize] = r;
        true
    }
    #[inline(always)]
    fn store(&mut self, a: u8, d: u8) -> bool {
        for i in 0..N {
            if self.exec >> i & 1 == 0 {
                continue;
            }
            let x = self.addr(a, i);
            if !self.ok(x, 4) {
                return false;
            }
            unsafe { *(x as *mut u32) = self.v[d as usize][i] }
        }
        true
    }
    #[inline(always)]
    fn step(&mut self, o: &Op) -> bool {
        match *o {
            GLoad { d, a } => {
                if !self.load(d, a) {
                    return false;
                }
            }
            GStore { a, d } => {
                if !self.store(a, d) {
                    return false;
                }
            }
            SLoad { d, b, off, n } => {
                let x = (u64::from(self.s[b as usize]) | (u64::from(self.s[b as usize + 1]) << 32))
                    .wrapping_add(i64::from(off) as u64);
                if !self.ok(x, 4 * u64::from(n)) {
                    return false;
                }
                for k in 0..n as usize {
                    self.s[d as usize + k] = unsafe { *((x + 4 * k as u64) as *const u32) }
                }
            }
            SAdd { d, a, b } => {
                let (x, c) = self.sv(a).overflowing_add(self.sv(b));
                self.s[d as usize] = x;
                self.scc = u32::from(c);
            }
            SAddc { d, a, b } => {
                let t = u64::from(self.sv(a)) + u64::from(self.sv(b)) + u64::from(self.scc);
                self.s[d as usize] = t as u32;
                self.scc = (t >> 32) as u32;
            }
            SCmpEq { a, b } => self.scc = u32::from(self.sv(a) == self.sv(b)),
            SLshl { d, a, b } => {
                let x = self.sv(a) << (self.sv(b) & 31);
                self.s[d as usize] = x;
                self.scc = u32::from(x != 0);
            }
            SAshr { d, a, b } => {
                let x = ((self.sv(a) as i32) >> (self.sv(b) & 31)) as u32;
                self.s[d as usize] = x;
                self.scc = u32::from(x != 0);
            }
            SMov { d, a } => self.s[d as usize] = self.sv(a),
            Nop => {}
            VAddCo { d, a, b, sd } => {
                let x = self.vv(a);
                let y = self.vv(b);
                let mut r = [0; N];
                let mut c = [0; N];
                for i in 0..N {
                    r[i] = x[i].wrapping_add(y[i]);
                    c[i] = u32::from(r[i] < x[i]);
                }
                self.wr(d, &r);
                self.setmask(sd, &c);
            }
            VAddCi { d, a, b, sd, ci } => {
                let x = self.vv(a);
                let y = self.vv(b);
                let m = self.getmask(ci);
                let mut r = [0; N];
                let mut c = [0; N];
                for i in 0..N {
                    let k = (m >> i) as u32 & 1;
                    let t = x[i].wrapping_add(y[i]);
                    let u = t.wrapping_add(k);
                    c[i] = u32::from(t < x[i]) | u32::from(u < t);
                    r[i] = u;
                }
                self.wr(d, &r);
                self.setmask(sd, &c);
            }
            VFmac { d, a, b } => {
                let x = self.vv(a);
                let y = self.vv(b);
                let z = self.v[d as usize];
                let mut r = [0; N];
                for i in 0..N {
                    r[i] = f32::from_bits(x[i])
                        .mul_add(f32::from_bits(y[i]), f32::from_bits(z[i]))
                        .to_bits();
                }
                self.wr(d, &r);
            }
            VAddF { d, a, b } => {
                self.op2(d, a, b, |x, y| (f32::from_bits(x) + f32::from_bits(y)).to_bits());
            }
            VAddNc { d, a, b } => self.op2(d, a, b, u32::wrapping_add),
            VLshl { d, a, b } => self.op2(d, a, b, |x, y| y << (x & 31)),
            VAshr { d, a, b } => self.op2(d, a, b, |x, y| ((y as i32) >> (x & 31)) as u32),
            VLshlOr { d, a, b, c } => {
                let x = self.vv(a);
                let z = self.vv(c);
                let mut r = [0; N];
                for i in 0..N {
                    r[i] = (x[i] << b) | z[i];
                }
                self.wr(d, &r);
            }
            VLshl64 { d, sh, a } => {
                let l = self.v[a as usize];
                let h = self.v[a as usize + 1];
                let mut r = [0; N];
                let mut q = [0; N];
                for i in 0..N {
                    let t = (u64::from(l[i]) | (u64::from(h[i]) << 32)) << sh;
                    r[i] = t as u32;
                    q[i] = (t >> 32) as u32;
                }
                self.wr(d, &r);
                self.wr(d + 1, &q);
            }
            VMov { d, a } => {
                let x = self.vv(a);
                self.wr(d, &x);
            }
            Cbr0(o) => {
                if self.scc == 0 {
                    self.pc = (self.pc as i32 + o) as u32;
                }
            }
            End => return false,
        }
        true
    }
    #[inline(always)]
    fn run(&mut self, p: &[Op]) -> u64 {
        let mut n = 0;
        loop {
            let o = unsafe { p.get_unchecked(self.pc as usize) };
            self.pc += 1;
            n += 1;
            if !self.step(o) {
                return n;
            }
        }
    }
}

const VCC: u8 = 106;

fn mm() -> Vec<Op> {
    vec![
        Nop,
        SLoad { d: 6, b: 0, off: 16, n: 2 },
        SLoad { d: 0, b: 0, off: 0, n: 4 },
        VLshl { d: 1, a: K(2), b: V(0) },
        SLshl { d: 4, a: S(15), b: K(8) },
        VMov { d: 3, a: K(0) },
        SAshr { d: 5, a: S(4), b: K(31) },
        Nop,
        SLshl { d: 8, a: S(4), b: K(2) },
        Nop,
        VAddCo { d: 1, a: S(6), b: V(1), sd: 5 },
        VAddCi { d: 2, a: S(7), b: K(0), sd: 124, ci: 5 },
        SAdd { d: 5, a: S(2), b: S(8) },
        SAddc { d: 6, a: S(3), b: K(0) },
        SMov { d: 2, a: K(0) },
        SMov { d: 3, a: K(0) },
        GLoad { d: 4, a: 1 },
        SAdd { d: 8, a: S(5), b: S(2) },
        SAddc { d: 9, a: S(6), b: S(3) },
        VAddCo { d: 1, a: K(0x400), b: V(1), sd: VCC },
        SLoad { d: 7, b: 8, off: 0, n: 1 },
        VAddCi { d: 2, a: K(0), b: V(2), sd: VCC, ci: VCC },
        SAdd { d: 2, a: S(2), b: K(4) },
        SAddc { d: 3, a: S(3), b: K(0) },
        SCmpEq { a: S(2), b: K(0x400) },
        Nop,
        VFmac { d: 3, a: S(7), b: V(4) },
        Cbr0(-12),
        VAddNc { d: 0, a: S(4), b: V(0) },
        Nop,
        VAshr { d: 1, a: K(31), b: V(0) },
        VLshl64 { d: 0, sh: 2, a: 0 },
        Nop,
        VAddCo { d: 0, a: S(0), b: V(0), sd: VCC },
        VAddCi { d: 1, a: S(1), b: V(1), sd: VCC, ci: VCC },
        GStore { a: 0, d: 3 },
        Nop,
        Nop,
        End,
    ]
}

fn va() -> Vec<Op> {
    vec![
        Nop,
        SLoad { d: 4, b: 0, off: 0, n: 4 },
        SLoad { d: 0, b: 0, off: 16, n: 2 },
        VLshlOr { d: 0, a: S(15), b: 8, c: V(0) },
        Nop,
        VAshr { d: 1, a: K(31), b: V(0) },
        VLshl64 { d: 0, sh: 2, a: 0 },
        Nop,
        Nop,
        VAddCo { d: 2, a: S(6), b: V(0), sd: VCC },
        VAddCi { d: 3, a: S(7), b: V(1), sd: VCC, ci: VCC },
        VAddCo { d: 4, a: S(0), b: V(0), sd: VCC },
        VAddCi { d: 5, a: S(1), b: V(1), sd: VCC, ci: VCC },
        VAddCo { d: 0, a: S(4), b: V(0), sd: VCC },
        GLoad { d: 2, a: 2 },
        GLoad { d: 3, a: 4 },
        VAddCi { d: 1, a: S(5), b: V(1), sd: VCC, ci: VCC },
        Nop,
        VAddF { d: 2, a: V(2), b: V(3) },
        GStore { a: 0, d: 2 },
        Nop,
        Nop,
        End,
    ]
}

fn init<const N: usize>(w: &mut Wave<N>, args: &[u64; 3], gid: u32, wv: usize, r: &[(u64, u64)]) {
    w.s = [0; 128];
    let p = args.as_ptr() as u64;
    w.s[0] = p as u32;
    w.s[1] = (p >> 32) as u32;
    w.s[15] = gid;
    for i in 0..N {
        w.v[0][i] = (wv * N + i) as u32;
        w.mask[i] = !0;
    }
    w.exec = if N == 64 { !0 } else { (1u64 << N) - 1 };
    w.full = true;
    w.pc = 0;
    w.ranges = r.as_ptr();
    w.nr = r.len();
    w.lo = 0;
    w.hi = 0;
}

#[inline(always)]
fn body<const N: usize>(
    p: &[Op],
    groups: u32,
    args: &[u64; 3],
    r: &[(u64, u64)],
) -> (u64, Duration) {
    let mut w: Box<Wave<N>> = unsafe {
        let l = std::alloc::Layout::new::<Wave<N>>();
        Box::from_raw(std::alloc::alloc_zeroed(l).cast::<Wave<N>>())
    };
    let t = Instant::now();
    let mut n = 0;
    for g in 0..groups {
        for wv in 0..256 / N {
            init(&mut w, args, g, wv, r);
            n += w.run(p);
        }
    }
    (n, t.elapsed())
}

#[target_feature(enable = "avx2,fma,bmi2")]
fn avx2<const N: usize>(p: &[Op], groups: u32, a: &[u64; 3], r: &[(u64, u64)]) -> (u64, Duration) {
    body::<N>(p, groups, a, r)
}

/// Runs a loop (`mm` or `va`) on three host arrays: instructions and time.
pub fn run(name: &str, groups: u32, c: &mut [f32], a: &[f32], b: &[f32]) -> (u64, Duration) {
    let args = [c.as_mut_ptr() as u64, a.as_ptr() as u64, b.as_ptr() as u64];
    let bytes = 4 * a.len() as u64;
    let own = args.as_ptr() as u64;
    let mut ranges: Vec<(u64, u64)> = args.iter().map(|&at| (at, at + bytes)).collect();
    ranges.push((own, own + 24));
    ranges.sort_unstable();
    let program = if name == "mm" { mm() } else { va() };
    if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
        unsafe { avx2::<32>(&program, groups, &args, &ranges) }
    } else {
        body::<32>(&program, groups, &args, &ranges)
    }
}
