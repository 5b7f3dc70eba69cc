//! The state of one wave, and the accessors that instruction semantics are written with.

use std::mem::MaybeUninit;

use super::gws::Waiting;
use crate::isa::Pools;
use crate::isa::ir::{Inst, Mods, Special, Src, SrcKind, sgpr};

/// Decoded instructions with the tables they index. One per worker and target.
#[derive(Clone, Debug, Default)]
pub struct Code {
    /// Instructions; runs are consecutive.
    pub insts: Vec<Inst>,
    /// Constants and modifiers.
    pub pools: Pools,
}

impl Code {
    /// A pool constant.
    #[inline(always)]
    pub fn constant(&self, index: u32) -> u64 {
        self.pools.consts.get(index as usize).copied().unwrap_or(0)
    }

    /// The modifiers of an instruction that has [`crate::isa::ir::flag::MODS`].
    #[inline(always)]
    pub fn mods_of(&self, inst: &Inst) -> Mods {
        self.pools.mods.get(usize::from(inst.mods)).copied().unwrap_or_default()
    }
}

/// Slots of the scalar file that the executor keeps hidden state in.
pub mod hidden {
    use crate::isa::ir::sgpr;

    /// Two words each: SHARED_BASE, SHARED_LIMIT, PRIVATE_BASE, PRIVATE_LIMIT.
    pub const APERTURES: u8 = sgpr::PRIVATE;
    /// XNACK_MASK where it is no ordinary SGPR.
    pub const XNACK_MASK: u8 = sgpr::PRIVATE + 8;
}

/// Registers and flags of one wave of `N` lanes (32 or 64).
#[derive(Debug)]
pub struct Wave<const N: usize> {
    /// Vector registers by physical number; AccVGPRs start at [`Wave::accum_offset`].
    pub v: Box<[[u32; N]; 512]>,
    /// Scalar registers in the canonical numbering of [`sgpr`].
    pub s: [u32; 256],
    /// EXEC expanded: all ones or zero per lane. Rebuilt after an instruction that writes EXEC.
    pub mask: [u32; N],
    /// Scalar condition code.
    pub scc: bool,
    /// Address of the instruction being executed.
    pub pc: u64,
    /// MODE register.
    pub mode: u32,
    /// STATUS register, without the bits that are computed on read.
    pub status: u32,
    /// TRAPSTS register.
    pub trapsts: u32,
    /// Architected and accumulation VGPRs allocated, granule included.
    pub vgprs: u16,
    /// Physical number of acc0.
    pub accum_offset: u16,
    /// Instructions executed so far: the wave's clock.
    pub clock: u64,
    /// HW_ID (gfx9) or HW_ID1 (gfx11).
    pub hw_id: u32,
    /// What the wave waits for at a global wave sync resource.
    pub gws: Waiting,
    /// XCC_ID (gfx942).
    pub xcc: u32,
}

impl<const N: usize> Wave<N> {
    /// A wave with all registers zero.
    pub fn new() -> Self {
        Self {
            v: zeroed_registers(),
            s: [0; 256],
            mask: [0; N],
            scc: false,
            pc: 0,
            mode: 0,
            status: 0,
            trapsts: 0,
            vgprs: 0,
            accum_offset: 256,
            clock: 0,
            hw_id: 0,
            gws: Waiting::No,
            xcc: 0,
        }
    }

    /// EXEC as a lane mask: bits above the wave size are zero.
    #[inline(always)]
    pub fn exec(&self) -> u64 {
        self.lane_mask(sgpr::EXEC_LO)
    }

    /// Writes EXEC and rebuilds the expanded mask.
    #[inline(always)]
    pub fn set_exec(&mut self, mask: u64) {
        self.set_lane_mask(sgpr::EXEC_LO, mask);
        self.rebuild_mask();
    }

    /// Expands EXEC into [`Wave::mask`].
    #[inline(always)]
    pub fn rebuild_mask(&mut self) {
        let exec = self.exec();
        let mut mask = [0; N];
        for half in 0..N / 32 {
            let exec = (exec >> (32 * half)) as u32;
            for k in 0..32 {
                mask[32 * half + k] = if exec & 1 << k != 0 { !0 } else { 0 };
            }
        }
        self.mask = mask;
    }

    /// VCC as a lane mask.
    #[inline(always)]
    pub fn vcc(&self) -> u64 {
        self.lane_mask(sgpr::VCC_LO)
    }

    /// A lane mask held in scalar registers: two in wave64, one in wave32.
    #[inline(always)]
    pub fn lane_mask(&self, reg: u8) -> u64 {
        if N == 64 { self.s64(reg) } else { u64::from(self.s[usize::from(reg)]) }
    }

    /// Writes a lane mask. In wave32 only one register is written.
    #[inline(always)]
    pub fn set_lane_mask(&mut self, reg: u8, mask: u64) {
        self.s[usize::from(reg)] = mask as u32;
        if N == 64 {
            self.s[usize::from(reg.wrapping_add(1))] = (mask >> 32) as u32;
        }
    }

    /// A lane mask as a source operand (carry-in, v_cndmask): register or constant.
    #[inline(always)]
    pub fn src_lane_mask(&self, src: Src, code: &Code) -> u64 {
        let mask = self.s_src64(src, code);
        if N == 64 { mask } else { mask & 0xffff_ffff }
    }

    /// Packs the low bit of each lane into a mask, lanes outside EXEC zero: what compares and
    /// carry-outs write.
    #[inline(always)]
    pub fn pack_active(&self, bits: &[u32; N]) -> u64 {
        let mut mask = 0;
        for (i, bit) in bits.iter().enumerate() {
            mask |= u64::from(bit & self.mask[i] & 1) << i;
        }
        mask
    }

    /// A scalar register.
    #[inline(always)]
    pub fn s32(&self, reg: u8) -> u32 {
        self.s[usize::from(reg)]
    }

    /// A pair of scalar registers.
    #[inline(always)]
    pub fn s64(&self, reg: u8) -> u64 {
        u64::from(self.s[usize::from(reg)])
            | u64::from(self.s[usize::from(reg.wrapping_add(1))]) << 32
    }

    /// Writes a scalar register.
    #[inline(always)]
    pub fn set_s32(&mut self, reg: u8, value: u32) {
        self.s[usize::from(reg)] = value;
    }

    /// Writes a pair of scalar registers.
    #[inline(always)]
    pub fn set_s64(&mut self, reg: u8, value: u64) {
        self.s[usize::from(reg)] = value as u32;
        self.s[usize::from(reg.wrapping_add(1))] = (value >> 32) as u32;
    }

    /// A 32-bit source of a scalar instruction.
    #[inline(always)]
    pub fn s_src32(&self, src: Src, code: &Code) -> u32 {
        match src.kind() {
            SrcKind::S(n) => self.s[usize::from(n)],
            SrcKind::K(k) => code.constant(k) as u32,
            SrcKind::Special(special) => self.special(special) as u32,
            SrcKind::V(_) => 0,
        }
    }

    /// A 64-bit source of a scalar instruction.
    #[inline(always)]
    pub fn s_src64(&self, src: Src, code: &Code) -> u64 {
        match src.kind() {
            SrcKind::S(n) => self.s64(n),
            SrcKind::K(k) => code.constant(k),
            SrcKind::Special(special) => self.special(special),
            SrcKind::V(_) => 0,
        }
    }

    /// A state value as an operand.
    #[cold]
    pub fn special(&self, special: Special) -> u64 {
        match special {
            Special::SharedBase => self.s64(hidden::APERTURES),
            Special::SharedLimit => self.s64(hidden::APERTURES + 2),
            Special::PrivateBase => self.s64(hidden::APERTURES + 4),
            Special::PrivateLimit => self.s64(hidden::APERTURES + 6),
            Special::Vccz => u64::from(self.vcc() == 0),
            Special::Execz => u64::from(self.exec() == 0),
            Special::Scc => u64::from(self.scc),
            Special::PopsExitingWaveId | Special::LdsDirect => 0,
        }
    }

    /// A 32-bit vector source, one value per lane. A register is borrowed in place; anything else
    /// is spread into `buffer`.
    #[inline(always)]
    pub fn src_u32<'a>(
        &'a self,
        src: Src,
        code: &Code,
        buffer: &'a mut MaybeUninit<[u32; N]>,
    ) -> &'a [u32; N] {
        match src.kind() {
            SrcKind::V(n) => &self.v[usize::from(n) & 511],
            _ => buffer.write([self.s_src32(src, code); N]),
        }
    }

    /// A 64-bit vector source: low and high words of each lane.
    #[inline(always)]
    pub fn src_u64<'a>(
        &'a self,
        src: Src,
        code: &Code,
        buffers: &'a mut [MaybeUninit<[u32; N]>; 2],
    ) -> (&'a [u32; N], &'a [u32; N]) {
        match src.kind() {
            SrcKind::V(n) => (&self.v[usize::from(n) & 511], &self.v[(usize::from(n) + 1) & 511]),
            _ => {
                let value = self.s_src64(src, code);
                let [low, high] = buffers;
                (low.write([value as u32; N]), high.write([(value >> 32) as u32; N]))
            }
        }
    }

    /// Physical number of a vector register operand: AccVGPRs (256..) follow the architected ones
    /// at [`Wave::accum_offset`].
    #[inline(always)]
    pub fn physical(&self, reg: u16) -> usize {
        let reg = if reg >= 256 { reg - 256 + self.accum_offset } else { reg };
        usize::from(reg) & 511
    }

    /// Writes a vector register in the active lanes.
    #[inline(always)]
    pub fn write_v(&mut self, dst: u16, value: &[u32; N]) {
        let row = &mut self.v[usize::from(dst) & 511];
        for i in 0..N {
            row[i] = value[i] & self.mask[i] | row[i] & !self.mask[i];
        }
    }

    /// Writes consecutive vector registers in the active lanes.
    #[inline(always)]
    pub fn write_rows(&mut self, dst: u16, rows: &[[u32; N]]) {
        for (k, row) in rows.iter().enumerate() {
            self.write_v(dst.wrapping_add(k as u16), row);
        }
    }

    /// `dst = f(src0)` in the active lanes, 32 bits.
    #[inline(always)]
    pub fn map1(&mut self, i: &Inst, code: &Code, f: impl Fn(u32) -> u32) {
        let mut b0 = MaybeUninit::uninit();
        let x = self.src_u32(i.src[0], code, &mut b0);
        let mut r = [0; N];
        for k in 0..N {
            r[k] = f(x[k]);
        }
        self.write_v(i.dst, &r);
    }

    /// `dst = f(src0, src1)` in the active lanes, 32 bits.
    #[inline(always)]
    pub fn map2(&mut self, i: &Inst, code: &Code, f: impl Fn(u32, u32) -> u32) {
        let (mut b0, mut b1) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        let x = self.src_u32(i.src[0], code, &mut b0);
        let y = self.src_u32(i.src[1], code, &mut b1);
        let mut r = [0; N];
        for k in 0..N {
            r[k] = f(x[k], y[k]);
        }
        self.write_v(i.dst, &r);
    }

    /// `dst = f(src0, src1, src2)` in the active lanes, 32 bits.
    #[inline(always)]
    pub fn map3(&mut self, i: &Inst, code: &Code, f: impl Fn(u32, u32, u32) -> u32) {
        let (mut b0, mut b1, mut b2) =
            (MaybeUninit::uninit(), MaybeUninit::uninit(), MaybeUninit::uninit());
        let x = self.src_u32(i.src[0], code, &mut b0);
        let y = self.src_u32(i.src[1], code, &mut b1);
        let z = self.src_u32(i.src[2], code, &mut b2);
        let mut r = [0; N];
        for k in 0..N {
            r[k] = f(x[k], y[k], z[k]);
        }
        self.write_v(i.dst, &r);
    }

    /// `sdst = f(src0, src1)` per active lane, other bits zero: a compare.
    #[inline(always)]
    pub fn compare2(&mut self, i: &Inst, code: &Code, f: impl Fn(u32, u32) -> bool) {
        let (mut b0, mut b1) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        let x = self.src_u32(i.src[0], code, &mut b0);
        let y = self.src_u32(i.src[1], code, &mut b1);
        let mut r = [0; N];
        for k in 0..N {
            r[k] = u32::from(f(x[k], y[k]));
        }
        let mask = self.pack_active(&r);
        self.set_lane_mask(i.sdst, mask);
    }

    /// Applies `f` to each active lane number, ascending.
    #[inline(always)]
    pub fn for_active(&self, mut f: impl FnMut(usize)) {
        let mut rest = self.exec();
        while rest != 0 {
            f(rest.trailing_zeros() as usize);
            rest &= rest - 1;
        }
    }
}

impl<const N: usize> Default for Wave<N> {
    fn default() -> Self {
        Self::new()
    }
}

/// Zeroed by the allocator: pages that no instruction touches are never committed.
fn zeroed_registers<const N: usize>() -> Box<[[u32; N]; 512]> {
    let rows: Box<[[u32; N]]> = vec![[0; N]; 512].into_boxed_slice();
    match rows.try_into() {
        Ok(rows) => rows,
        Err(_) => unreachable!("the vector has 512 rows"),
    }
}
