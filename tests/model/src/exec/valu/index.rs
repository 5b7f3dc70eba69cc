//! VGPR indexing of gfx9 (s_set_gpr_idx_on): while MODE.GPR_IDX_EN is set, M0 adds its low byte to
//! the register numbers that its bits 15:12 select.
//!
//! "Vega" and "CDNA3" instruction set documents, VGPR indexing.

use crate::exec::Wave;
use crate::isa::Op;
use crate::isa::ir::{Inst, Src, SrcKind, flag, sgpr};

/// M0\[15:12\]: sources 0 to 2, and the destination.
const DST: u32 = 8;

/// The instruction with the registers it really uses. `None`: it would write a register the wave
/// does not have, so it writes nothing.
pub(super) fn indexed<const N: usize>(wave: &Wave<N>, inst: &Inst) -> Option<Inst> {
    let m0 = wave.s32(sgpr::M0);
    let (by, enabled) = (m0 as u16 & 0xff, m0 >> 12 & 15);
    let mut new = *inst;
    for (k, src) in new.src.iter_mut().enumerate() {
        let bit = if k == 2 && is_accumulating(inst.op) { DST } else { 1 << k };
        if let SrcKind::V(number) = src.kind()
            && enabled & bit != 0
        {
            // A source that the wave does not have reads v0.
            *src = Src::v(offset(wave, number, by).unwrap_or(number & 0x100));
        }
    }
    let scalar = inst.flags & flag::DST_SGPR != 0 || is_compare(inst.op);
    if enabled & DST != 0 && !scalar {
        new.dst = offset(wave, inst.dst, by)?;
    }
    Some(new)
}

/// Register `number` plus `by`, in the same file.
fn offset<const N: usize>(wave: &Wave<N>, number: u16, by: u16) -> Option<u16> {
    let sum = (number & 0xff) + by;
    (sum < wave.vgprs.min(256)).then_some(number & 0x100 | sum)
}

/// Source 2 is the destination: its bit is the destination's.
fn is_accumulating(op: Op) -> bool {
    use Op::*;
    matches!(
        op,
        VFmacF16
            | VFmacF32
            | VFmacF64
            | VMacF16
            | VMacF32
            | VPkFmacF16
            | VDot2cI32I16
            | VDot4cI32I8
            | VDot8cI32I4
            | VDot2accF32F16
    )
}

fn is_compare(op: Op) -> bool {
    op.name().starts_with("v_cmp")
}
