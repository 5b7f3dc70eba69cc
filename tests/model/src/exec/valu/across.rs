//! Operations between lanes and between register files.

use std::mem::MaybeUninit;

use crate::exec::{Code, Env, Wave};
use crate::isa::ir::{Inst, Mods, Src, SrcKind, flag};

fn mods(inst: &Inst, code: &Code) -> Mods {
    if inst.flags & flag::MODS != 0 { code.mods_of(inst) } else { Mods::default() }
}

/// One lane of a source: of a register the lane's word, of anything else the value.
#[inline(always)]
fn lane_of<const N: usize>(wave: &Wave<N>, src: Src, code: &Code, lane: usize) -> u32 {
    match src.kind() {
        SrcKind::V(n) => wave.v[usize::from(n) & 511][lane],
        _ => wave.s_src32(src, code),
    }
}

/// v_readfirstlane_b32: the lowest active lane, lane 0 where none is.
#[inline(always)]
pub fn readfirstlane<const N: usize>(wave: &mut Wave<N>, inst: &Inst, code: &Code, _: &Env) {
    let exec = wave.exec();
    let lane = if exec == 0 { 0 } else { exec.trailing_zeros() as usize };
    let value = lane_of(wave, inst.src[0], code, lane & (N - 1));
    wave.set_s32(inst.dst as u8, value);
}

/// v_readlane_b32: EXEC does not matter.
#[inline(always)]
pub fn readlane<const N: usize>(wave: &mut Wave<N>, inst: &Inst, code: &Code, _: &Env) {
    let lane = wave.s_src32(inst.src[1], code) as usize & (N - 1);
    let value = lane_of(wave, inst.src[0], code, lane);
    wave.set_s32(inst.dst as u8, value);
}

/// v_writelane_b32: EXEC does not matter.
#[inline(always)]
pub fn writelane<const N: usize>(wave: &mut Wave<N>, inst: &Inst, code: &Code, _: &Env) {
    let value = wave.s_src32(inst.src[0], code);
    let lane = wave.s_src32(inst.src[1], code) as usize & (N - 1);
    wave.v[usize::from(inst.dst) & 511][lane] = value;
}

/// v_accvgpr_read, v_accvgpr_write, v_accvgpr_mov: moves between the halves of the vector file.
#[inline(always)]
pub fn accvgpr<const N: usize>(wave: &mut Wave<N>, inst: &Inst, code: &Code, _: &Env) {
    let value = match inst.src[0].kind() {
        SrcKind::V(n) => wave.v[wave.physical(n)],
        _ => [wave.s_src32(inst.src[0], code); N],
    };
    let dst = wave.physical(inst.dst) as u16;
    wave.write_v(dst, &value);
}

/// v_permlane16_b32 and v_permlanex16_b32: any lane of the same row, or of the row beside it.
/// opsel bit 0: inactive sources are read; bit 1: they read as zero instead of leaving the lane.
pub fn permlane16<const N: usize>(wave: &mut Wave<N>, inst: &Inst, code: &Code, other_row: bool) {
    let mods = mods(inst, code);
    let (fetch_inactive, bound_control) = (mods.opsel & 1 != 0, mods.opsel & 2 != 0);
    let select = u64::from(wave.s_src32(inst.src[1], code))
        | u64::from(wave.s_src32(inst.src[2], code)) << 32;
    let mut buffer = MaybeUninit::uninit();
    let source = *wave.src_u32(inst.src[0], code, &mut buffer);
    let row = &mut wave.v[usize::from(inst.dst) & 511];
    for lane in 0..N {
        let from = (select >> (4 * (lane & 15)) & 15) as usize;
        let from = lane & !15 ^ if other_row { 16 } else { 0 } | from;
        let value = if fetch_inactive || wave.mask[from] != 0 {
            source[from]
        } else if bound_control {
            0
        } else {
            continue;
        };
        if wave.mask[lane] != 0 {
            row[lane] = value;
        }
    }
}

/// v_permlane64_b32: swaps the halves of a wave64; nothing in a wave32.
pub fn permlane64<const N: usize>(wave: &mut Wave<N>, inst: &Inst, code: &Code, _: &Env) {
    if N == 32 {
        return;
    }
    let mut buffer = MaybeUninit::uninit();
    let source = *wave.src_u32(inst.src[0], code, &mut buffer);
    let swapped = std::array::from_fn(|lane| source[lane ^ 32]);
    wave.write_v(inst.dst, &swapped);
}

/// v_swap_b32, with register numbers offset for v_swaprel_b32.
pub fn swap<const N: usize>(wave: &mut Wave<N>, a: usize, b: usize) {
    let (a, b) = (a & 511, b & 511);
    for lane in 0..N {
        if wave.mask[lane] != 0 {
            let value = wave.v[a][lane];
            wave.v[a][lane] = wave.v[b][lane];
            wave.v[b][lane] = value;
        }
    }
}

/// How M0 offsets the registers of a v_movrel operation: (source, destination).
pub fn relative(m0: u32, op: Relative) -> (usize, usize) {
    let (all, low, high) = (m0 as usize, m0 as usize & 0x3ff, m0 as usize >> 16 & 0x3ff);
    match op {
        Relative::Source => (all, 0),
        Relative::Destination => (0, all),
        Relative::Both => (all, all),
        Relative::Two => (low, high),
    }
}

/// The v_movrel operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relative {
    /// v_movrels_b32.
    Source,
    /// v_movreld_b32.
    Destination,
    /// v_movrelsd_b32.
    Both,
    /// v_movrelsd_2_b32, v_swaprel_b32.
    Two,
}

/// v_movrel*: a register number beyond the wave's allocation leaves the destination alone.
pub fn movrel<const N: usize>(wave: &mut Wave<N>, inst: &Inst, code: &Code, op: Relative) {
    let (from, to) = relative(wave.s32(crate::isa::ir::sgpr::M0), op);
    let limit = usize::from(wave.vgprs);
    let value = match inst.src[0].kind() {
        SrcKind::V(n) if usize::from(n) + from < limit => wave.v[(usize::from(n) + from) & 511],
        SrcKind::V(_) => return,
        _ => [wave.s_src32(inst.src[0], code); N],
    };
    let to = usize::from(inst.dst) + to;
    if to < limit {
        wave.write_v(to as u16, &value);
    }
}

/// v_swaprel_b32.
pub fn swaprel<const N: usize>(wave: &mut Wave<N>, inst: &Inst, _: &Code, _: &Env) {
    let (from, to) = relative(wave.s32(crate::isa::ir::sgpr::M0), Relative::Two);
    let SrcKind::V(n) = inst.src[0].kind() else { return };
    let (a, b) = (usize::from(n) + from, usize::from(inst.dst) + to);
    if a.max(b) < usize::from(wave.vgprs) {
        swap(wave, a, b);
    }
}

/// v_mqsad_u32_u8: four masked sums into four registers.
pub fn mqsad_u32_u8<const N: usize>(wave: &mut Wave<N>, inst: &Inst, code: &Code, _: &Env) {
    let mut buffers = [MaybeUninit::uninit(), MaybeUninit::uninit()];
    let (low, high) = wave.src_u64(inst.src[0], code, &mut buffers);
    let mut buffer = MaybeUninit::uninit();
    let reference = wave.src_u32(inst.src[1], code, &mut buffer);
    let addend = |k: usize, lane: usize| match inst.src[2].kind() {
        SrcKind::V(n) => wave.v[(usize::from(n) + k) & 511][lane],
        _ => wave.s_src32(inst.src[2], code),
    };
    let out: [[u32; N]; 4] = std::array::from_fn(|k| {
        std::array::from_fn(|lane| {
            let data = u64::from(low[lane]) | u64::from(high[lane]) << 32;
            super::lane::bits::msad_u8((data >> (8 * k)) as u32, reference[lane], addend(k, lane))
        })
    });
    for (k, row) in (0u16..).zip(&out) {
        wave.write_v(inst.dst + k, row);
    }
}
