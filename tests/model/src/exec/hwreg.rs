//! Hardware registers behind `s_getreg` and `s_setreg`.
//!
//! Numbers: LLVM's AMDGPU "hwreg" operand names; layouts as in the kernel's wave-state headers.
//! docs/ABI.md §Wave state registers.

use super::context::Context;
use super::status;
use super::valu::exceptions::EXCP_EN;
use super::wave::Wave;
use crate::Target;
use crate::isa::ir::sgpr;

const MODE: u32 = 1;
const STATUS: u32 = 2;
const TRAPSTS: u32 = 3;
const HW_ID_GFX9: u32 = 4;
const GPR_ALLOC: u32 = 5;
const LDS_ALLOC: u32 = 6;
const SH_MEM_BASES: u32 = 15;
const TBA_LO_GFX9: u32 = 16;
const TBA_HI_GFX9: u32 = 17;
const TMA_LO_GFX9: u32 = 18;
const TMA_HI_GFX9: u32 = 19;
const XCC_ID_GFX942: u32 = 20;
const FLAT_SCR_LO_GFX11: u32 = 20;
const FLAT_SCR_HI_GFX11: u32 = 21;
const HW_ID1_GFX11: u32 = 23;
const HW_ID2_GFX11: u32 = 24;
const SHADER_CYCLES_GFX11: u32 = 29;

/// Bits of STATUS that `s_setreg` changes outside a trap handler: SCC and the user priority.
const STATUS_USER: u32 = status::SCC | 3 << 3;

/// The operand: register, shift, mask of the field before the shift.
fn field(imm: u32) -> (u32, u32, u32) {
    let bits = (imm >> 11 & 31) + 1;
    (imm & 63, imm >> 6 & 31, if bits == 32 { !0 } else { (1 << bits) - 1 })
}

/// Whether the operand names TRAPSTS, in its arithmetic exceptions.
pub(super) fn names_trapsts(imm: u32) -> bool {
    let (register, shift, _) = field(imm);
    register == TRAPSTS && shift < 7
}

/// Whether the operand names bits of MODE that enable traps of arithmetic exceptions.
pub(super) fn names_exception_enables(imm: u32) -> bool {
    let (register, shift, mask) = field(imm);
    register == MODE && mask << shift & EXCP_EN != 0
}

/// STATUS with the computed bits.
pub(super) fn status_word<const N: usize>(w: &Wave<N>) -> u32 {
    w.status & !(status::SCC | status::EXECZ | status::VCCZ)
        | u32::from(w.scc)
        | (u32::from(w.exec() == 0) * status::EXECZ)
        | (u32::from(w.vcc() == 0) * status::VCCZ)
}

/// Reads the field that `imm` names. Registers that the model does not have read as zero.
#[cold]
pub(super) fn read<const N: usize>(w: &Wave<N>, cx: &Context<'_>, imm: u32) -> u32 {
    let (register, shift, mask) = field(imm);
    let gfx9 = cx.env.target.is_gfx9();
    let tba = cx.env.trap.map_or(0, |trap| trap.tba >> 8);
    let tma = cx.env.trap.map_or(0, |trap| trap.tma >> 8);
    let value = match register {
        MODE => w.mode,
        STATUS => status_word(w),
        TRAPSTS => w.trapsts,
        HW_ID_GFX9 if gfx9 => w.hw_id,
        GPR_ALLOC => (u32::from(w.vgprs / 4).saturating_sub(1)) << 8,
        LDS_ALLOC => (cx.lds.len() / 512) << 12,
        SH_MEM_BASES => {
            let [private, shared] = [cx.env.apertures.scratch_base, cx.env.apertures.lds_base];
            (private >> 48) as u32 | ((shared >> 48) as u32) << 16
        }
        TBA_LO_GFX9 if gfx9 => tba as u32,
        TBA_HI_GFX9 if gfx9 => (tba >> 32) as u32,
        TMA_LO_GFX9 if gfx9 => tma as u32,
        TMA_HI_GFX9 if gfx9 => (tma >> 32) as u32,
        XCC_ID_GFX942 if cx.env.target == Target::Gfx942 => w.xcc,
        FLAT_SCR_LO_GFX11 if !gfx9 => w.s32(sgpr::FLAT_SCRATCH),
        FLAT_SCR_HI_GFX11 if !gfx9 => w.s32(sgpr::FLAT_SCRATCH + 1),
        HW_ID1_GFX11 if !gfx9 => w.hw_id,
        HW_ID2_GFX11 if !gfx9 => 0,
        SHADER_CYCLES_GFX11 if !gfx9 => w.clock as u32 & 0xf_ffff,
        _ => 0,
    };
    value >> shift & mask
}

/// Writes the field that `imm` names. Read-only registers keep their value.
#[cold]
pub(super) fn write<const N: usize>(w: &mut Wave<N>, cx: &Context<'_>, imm: u32, value: u32) {
    let (register, shift, mask) = field(imm);
    let set = |old: u32| old & !(mask << shift) | (value & mask) << shift;
    let privileged = w.status & status::PRIV != 0;
    match register {
        MODE => w.mode = set(w.mode),
        STATUS => {
            let old = status_word(w);
            // PRIV changes only on entry to a handler and by s_rfe.
            let writable = if privileged { !status::PRIV } else { STATUS_USER };
            w.status = old & !writable | set(old) & writable;
            w.scc = w.status & status::SCC != 0;
        }
        TRAPSTS => w.trapsts = set(w.trapsts),
        FLAT_SCR_LO_GFX11 if cx.env.target.is_gfx11() => {
            w.set_s32(sgpr::FLAT_SCRATCH, set(w.s32(sgpr::FLAT_SCRATCH)));
        }
        FLAT_SCR_HI_GFX11 if cx.env.target.is_gfx11() => {
            w.set_s32(sgpr::FLAT_SCRATCH + 1, set(w.s32(sgpr::FLAT_SCRATCH + 1)));
        }
        _ => {}
    }
}
