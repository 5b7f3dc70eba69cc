//! VOP1, VOP2, VOPC, VOP3, VOP3P, VOPD.

use super::super::Op;
use super::super::ir::{Dpp, Sdwa, SrcKind, flag};
use super::super::sig::{Format, Operand, Ty, class, flag as shape};
use super::Printer;
use crate::Target;

impl Printer<'_> {
    pub(super) fn vector(&mut self) {
        self.suffix();
        self.destinations();
        let packed = self.format == Format::Vop3p;
        let mix = self.sig.src[0].ty == Ty::Mix;
        let literal = self.sig.has(shape::LITERAL_1 | shape::LITERAL_2);
        let e32_mask = !matches!(self.format, Format::VopdX | Format::VopdY);
        let mut sources = 0;
        for slot in 0..3 {
            let (_, mut operand) = self.slot(slot);
            if slot == 2 && literal {
                operand = self.sig.src[1];
            }
            let literal_slot = if self.sig.has(shape::LITERAL_1) { 1 } else { 2 };
            if literal && slot == literal_slot {
                operand.ty = Ty::W32; // LLVM prints all its bits
            }
            if !operand.exists() || operand.ty == Ty::Mask && !e32_mask {
                continue;
            }
            sources += 1;
            let name = self.vector_source(slot, operand);
            let (neg, abs, sext) = self.source_mods(slot, packed && !mix);
            let name = if abs { format!("|{name}|") } else { name };
            // "-1.0" is a constant of its own.
            let constant = matches!(self.slot(slot).0.kind(), SrcKind::K(_));
            let name = match (neg, constant && !abs) {
                (true, true) => format!("neg({name})"),
                (true, false) => format!("-{name}"),
                (false, _) => name,
            };
            let name = if sext { format!("sext({name})") } else { name };
            self.operand(&name);
        }
        if packed {
            self.packed_modifiers(sources, mix);
        } else {
            self.plain_modifiers(sources);
        }
        if let Some(dpp) = self.mods.dpp {
            self.dpp(dpp);
        }
        if let Some(sdwa) = self.mods.sdwa {
            self.sdwa(sdwa, sources);
        }
    }

    fn suffix(&mut self) {
        let vop3 = self.format == Format::Vop3;
        if self.mods.sdwa.is_some() {
            self.text.push_str("_sdwa");
            return;
        }
        if self.sig.has(shape::SUFFIX) {
            let dpp = self.mods.dpp.is_some();
            self.text.push_str(match (vop3, dpp) {
                (true, _) => "_e64",
                (false, true) => "",
                (false, false) => "_e32",
            });
        } else if (vop3 || self.format == Format::Vop3p) && self.mods.dpp.is_some() {
            self.text.push_str("_e64");
        }
        // LLVM 19 marks DPP in the name of every format but VOPC.
        if self.mods.dpp.is_some() && self.format != Format::Vopc {
            self.text.push_str("_dpp");
        }
    }

    fn destinations(&mut self) {
        let width = u16::from(self.sig.dst_width());
        if width != 0 {
            let name = if self.inst.flags & flag::DST_SGPR != 0 {
                self.sgpr_name(u8::try_from(self.inst.dst).unwrap_or(u8::MAX), width)
            } else {
                let name = Self::vgpr_name(self.inst.dst, width);
                self.half_name(name, 3, self.sig.has(shape::DST_HALF))
            };
            self.operand(&name);
        }
        // gfx11's v_cmpx has no destination in its text.
        let hidden = self.sig.has(shape::EXEC) && self.target.is_gfx11();
        if self.sig.sdst != 0 && !hidden {
            let width = self.width(self.sig.sdst);
            let name = self.sgpr_name(self.inst.sdst, width);
            self.operand(&name);
        }
    }

    /// A half register gets `.h`; LLVM 19 prints no `.l`, and neither do we.
    fn half_name(&self, name: String, bit: u8, is_half: bool) -> String {
        if is_half && self.mods.opsel >> bit & 1 != 0 { name + ".h" } else { name }
    }

    fn vector_source(&self, slot: usize, mut operand: Operand) -> String {
        let half = operand.class & class::HALF != 0;
        if operand.ty == Ty::Mix && self.mods.opsel_hi >> slot & 1 != 0 {
            operand.ty = Ty::F16;
        }
        let (source, _) = self.slot(slot);
        let name = self.source_name(source, operand);
        self.half_name(name, u8::try_from(slot).unwrap_or(0), half)
    }

    fn source_mods(&self, slot: usize, packed: bool) -> (bool, bool, bool) {
        if packed {
            return (false, false, false);
        }
        let mix = self.format == Format::Vop3p;
        let abs = if mix { self.mods.neg_hi } else { self.mods.abs };
        let sext = self.mods.sdwa.and_then(|sdwa| sdwa.sext.get(slot).copied()).unwrap_or(false);
        (self.mods.neg >> slot & 1 != 0, abs >> slot & 1 != 0, sext)
    }

    fn packed_modifiers(&mut self, sources: usize, mix: bool) {
        if self.sig.has(shape::MFMA) {
            let [cbsz, abid, blgp] = self.mods.matrix;
            self.modifier_if(cbsz != 0, &format!("cbsz:{cbsz}"));
            self.modifier_if(abid != 0, &format!("abid:{abid}"));
            // gfx942's double precision has no lane permutation: the bits negate.
            if self.target == Target::Gfx942 && self.sig.src[0].ty == Ty::F64 {
                if blgp != 0 {
                    self.bit_list("neg", blgp, 3);
                }
            } else {
                self.modifier_if(blgp != 0, &format!("blgp:{blgp}"));
            }
            return;
        }
        if self.inst.flags & flag::MODS == 0 {
            return;
        }
        let all = (1u8 << sources) - 1;
        if self.mods.opsel & all != 0 {
            self.bit_list("op_sel", self.mods.opsel, sources);
        }
        let plain_hi = if mix { 0 } else { all };
        if self.mods.opsel_hi & all != plain_hi {
            self.bit_list("op_sel_hi", self.mods.opsel_hi, sources);
        }
        if !mix {
            if self.mods.neg & all != 0 {
                self.bit_list("neg_lo", self.mods.neg, sources);
            }
            if self.mods.neg_hi & all != 0 {
                self.bit_list("neg_hi", self.mods.neg_hi, sources);
            }
        }
        self.modifier_if(self.mods.clamp, "clamp");
    }

    fn plain_modifiers(&mut self, sources: usize) {
        if self.format == Format::Vop3 && self.mods.opsel != 0 {
            let sources_only = self.sig.mods >> 6 & 1 == 0;
            let bits = self.mods.opsel & ((1 << sources) - 1) | (self.mods.opsel >> 3) << sources;
            self.bit_list("op_sel", bits, sources + usize::from(!sources_only));
        }
        self.modifier_if(self.mods.clamp, "clamp");
        match self.mods.omod {
            1 => self.modifier("mul:2"),
            2 => self.modifier("mul:4"),
            3 => self.modifier("div:2"),
            _ => {}
        }
    }

    fn dpp(&mut self, dpp: Dpp) {
        match dpp {
            Dpp::Row { ctrl, row_mask, bank_mask, bound_ctrl, fi } => {
                let control = self.dpp_control(ctrl);
                self.modifier(&control);
                self.modifier(&format!("row_mask:{row_mask:#x} bank_mask:{bank_mask:#x}"));
                self.modifier_if(bound_ctrl, "bound_ctrl:1");
                self.modifier_if(fi, "fi:1");
            }
            Dpp::Eight { select, fi } => {
                let lanes: Vec<String> =
                    (0..8).map(|i| (select >> (3 * i) & 7).to_string()).collect();
                self.modifier(&format!("dpp8:[{}]", lanes.join(",")));
                self.modifier_if(fi, "fi:1");
            }
        }
    }

    fn dpp_control(&self, ctrl: u16) -> String {
        let low = ctrl & 0xf;
        match ctrl {
            0..=0xff => {
                let lane = |i: u16| ctrl >> (2 * i) & 3;
                format!("quad_perm:[{},{},{},{}]", lane(0), lane(1), lane(2), lane(3))
            }
            0x101..=0x10f => format!("row_shl:{low}"),
            0x111..=0x11f => format!("row_shr:{low}"),
            0x121..=0x12f => format!("row_ror:{low}"),
            0x130 => "wave_shl:1".to_owned(),
            0x134 => "wave_rol:1".to_owned(),
            0x138 => "wave_shr:1".to_owned(),
            0x13c => "wave_ror:1".to_owned(),
            0x140 => "row_mirror".to_owned(),
            0x141 => "row_half_mirror".to_owned(),
            0x142 => "row_bcast:15".to_owned(),
            0x143 => "row_bcast:31".to_owned(),
            0x150..=0x15f if self.target.is_gfx9() => format!("row_newbcast:{low}"),
            0x150..=0x15f => format!("row_share:{low}"),
            _ => format!("row_xmask:{low}"),
        }
    }

    fn sdwa(&mut self, sdwa: Sdwa, sources: usize) {
        const SELECT: [&str; 7] =
            ["BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3", "WORD_0", "WORD_1", "DWORD"];
        const UNUSED: [&str; 3] = ["UNUSED_PAD", "UNUSED_SEXT", "UNUSED_PRESERVE"];
        let select = |value: u8| SELECT.get(usize::from(value)).copied().unwrap_or("?");
        let whole = matches!(self.inst.op, Op::VCvtPkF32Fp8 | Op::VCvtPkF32Bf8);
        if self.format != Format::Vopc && !whole {
            self.modifier(&format!("dst_sel:{}", select(sdwa.dst_sel)));
            let unused = UNUSED.get(usize::from(sdwa.dst_unused)).copied().unwrap_or("?");
            self.modifier(&format!("dst_unused:{unused}"));
        }
        self.modifier(&format!("src0_sel:{}", select(sdwa.src_sel[0])));
        if sources > 1 {
            self.modifier(&format!("src1_sel:{}", select(sdwa.src_sel[1])));
        }
    }
}
