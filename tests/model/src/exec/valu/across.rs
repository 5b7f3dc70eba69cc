//! Operations between lanes and between register files.

use super::lane::bits::msad_u8;
use super::lane::convert::pk_u8_f32;
use super::operands::{Lanes, Source};
use super::types::{F32, Ty, U32};
use crate::exec::{Code, Wave};
use crate::isa::ir::{Inst, Src, SrcKind};

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
pub fn readfirstlane<const N: usize>(wave: &mut Wave<N>, inst: &Inst, code: &Code) {
    let exec = wave.exec();
    let lane = if exec == 0 { 0 } else { exec.trailing_zeros() as usize };
    let value = lane_of(wave, inst.src[0], code, lane & (N - 1));
    wave.set_s32(inst.dst as u8, value);
}

/// v_readlane_b32: EXEC does not matter.
#[inline(always)]
pub fn readlane<const N: usize>(wave: &mut Wave<N>, inst: &Inst, code: &Code) {
    let lane = wave.s_src32(inst.src[1], code) as usize & (N - 1);
    let value = lane_of(wave, inst.src[0], code, lane);
    wave.set_s32(inst.dst as u8, value);
}

/// v_writelane_b32: EXEC does not matter.
#[inline(always)]
pub fn writelane<const N: usize>(wave: &mut Wave<N>, inst: &Inst, code: &Code) {
    let value = wave.s_src32(inst.src[0], code);
    let lane = wave.s_src32(inst.src[1], code) as usize & (N - 1);
    wave.v[usize::from(inst.dst) & 511][lane] = value;
}

/// v_accvgpr_read, v_accvgpr_write, v_accvgpr_mov: moves between the halves of the vector file.
#[inline(always)]
pub fn accvgpr<const N: usize>(wave: &mut Wave<N>, inst: &Inst, code: &Code) {
    let value = match inst.src[0].kind() {
        SrcKind::V(n) => wave.v[wave.physical(n)],
        _ => [wave.s_src32(inst.src[0], code); N],
    };
    let dst = wave.physical(inst.dst) as u16;
    wave.write_v(dst, &value);
}

/// v_permlane16_b32 and v_permlanex16_b32: any lane of the same row, or of the row beside it.
/// opsel bit 0: inactive sources are read; bit 1: they read as zero instead of leaving the lane.
pub fn permlane16(lanes: &mut Lanes<'_>, other_row: bool) {
    let (fetch_inactive, bound_control) = (lanes.mods.opsel & 1 != 0, lanes.mods.opsel & 2 != 0);
    let select = u64::from(lanes.scalar_source(1)) | u64::from(lanes.scalar_source(2)) << 32;
    let source = lanes.raw(0, 0);
    for lane in 0..lanes.count {
        let place = (select >> (4 * (lane & 15)) & 15) as usize;
        let from = (lane & !15) ^ if other_row { 16 } else { 0 } | place;
        let value = if fetch_inactive || lanes.exec >> from & 1 != 0 {
            source[from]
        } else if bound_control {
            0
        } else {
            continue;
        };
        if lanes.exec >> lane & 1 != 0 {
            lanes.row_mut(lanes.dst)[lane] = value;
        }
    }
}

/// v_permlane64_b32: swaps the halves of a wave64; nothing in a wave32.
pub fn permlane64(lanes: &mut Lanes<'_>) {
    if lanes.count == 32 {
        return;
    }
    let source = lanes.raw(0, 0);
    let swapped = std::array::from_fn(|lane| source[lane ^ 32]);
    write(lanes, lanes.dst, &swapped);
}

/// Writes a register in the active lanes.
fn write(lanes: &mut Lanes<'_>, reg: usize, values: &[u32; 64]) {
    let exec = lanes.exec;
    for (lane, word) in lanes.row_mut(reg).iter_mut().enumerate() {
        if exec >> lane & 1 != 0 {
            *word = values[lane];
        }
    }
}

/// v_swap_b32 and v_swaprel_b32: register numbers offset by `(source, destination)`. Registers
/// beyond the wave's allocation are left alone.
pub fn swap(lanes: &mut Lanes<'_>, (from, to): (usize, usize)) {
    let Source::Row(a) = lanes.sources[0] else { return };
    let (a, b) = (a + from, lanes.dst + to);
    if a.max(b) >= lanes.allocated {
        return;
    }
    for lane in 0..lanes.count {
        if lanes.exec >> lane & 1 != 0 {
            let (x, y) = (lanes.row(a)[lane], lanes.row(b)[lane]);
            lanes.row_mut(a)[lane] = y;
            lanes.row_mut(b)[lane] = x;
        }
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

/// How M0 offsets the register numbers of a v_movrel operation: (source, destination).
pub fn relative(m0: u32, op: Relative) -> (usize, usize) {
    let (all, low, high) = (m0 as usize, m0 as usize & 0x3ff, m0 as usize >> 16 & 0x3ff);
    match op {
        Relative::Source => (all, 0),
        Relative::Destination => (0, all),
        Relative::Both => (all, all),
        Relative::Two => (low, high),
    }
}

/// v_movrel*: a register number beyond the wave's allocation leaves the destination alone.
pub fn movrel(lanes: &mut Lanes<'_>, op: Relative) {
    let (from, to) = relative(lanes.m0, op);
    let to = lanes.dst.saturating_add(to);
    if let Source::Row(reg) = &mut lanes.sources[0] {
        *reg = reg.saturating_add(from);
        if *reg >= lanes.allocated {
            return;
        }
    }
    if to < lanes.allocated {
        let values = lanes.raw(0, 0);
        write(lanes, to, &values);
    }
}

/// v_mqsad_u32_u8: four masked sums into four registers.
pub fn mqsad_u32_u8(lanes: &mut Lanes<'_>) {
    let data = [lanes.raw(0, 0), lanes.raw(0, 1)];
    let reference = lanes.raw(1, 0);
    let sums: [[u32; 64]; 4] = std::array::from_fn(|k| {
        let addend = match lanes.sources[2] {
            Source::Row(reg) => {
                let mut words = [0; 64];
                words[..lanes.count].copy_from_slice(lanes.row(reg + k));
                words
            }
            Source::Same(value) => [if k < 2 { (value >> (32 * k)) as u32 } else { 0 }; 64],
        };
        std::array::from_fn(|lane| {
            let bytes = u64::from(data[0][lane]) | u64::from(data[1][lane]) << 32;
            msad_u8((bytes >> (8 * k)) as u32, reference[lane], addend[lane])
        })
    });
    for (k, row) in sums.iter().enumerate() {
        write(lanes, lanes.dst + k, row);
    }
}

/// v_cvt_pkaccum_u8_f32: replaces one byte of the destination.
pub fn pkaccum(lanes: &mut Lanes<'_>) {
    let (value, at) = (lanes.fetch(0, &F32::KIND), lanes.raw(1, 0));
    let old = lanes.row(lanes.dst);
    let mut out = [0; 64];
    for lane in 0..lanes.count {
        out[lane] = u64::from(pk_u8_f32(F32::get(value[lane]), at[lane], old[lane]));
    }
    lanes.store(&U32::KIND, &out);
}
