//! VOP1, VOP2, VOPC, with DPP and SDWA; VOPD.

use super::super::ir::{Dpp, Mods, Sdwa, Src, flag, sgpr};
use super::super::sig::{Format, Operand, Sig, Ty, class, flag as shape};
use super::operand::literal_constant;
use super::{DecodeError, Decoded, Decoder, Shape, low8};

/// Bits of [`Sig::mods`].
pub(super) mod modbit {
    pub(in super::super) const ABS: u16 = 0;
    pub(in super::super) const OPSEL: u16 = 3;
    pub(in super::super) const CLAMP: u16 = 7;
    pub(in super::super) const OMOD: u16 = 8;
    pub(in super::super) const NEG: u16 = 10;
}

const DPP16: u32 = 250;
const SDWA: u32 = 249;
const DPP8: u32 = 233;
const DPP8_FI: u32 = 234;

impl Decoder<'_> {
    pub(super) fn vop_e32(
        &mut self,
        format: Format,
        word: u32,
    ) -> Result<&'static Sig, DecodeError> {
        let opcode = match format {
            Format::Vop1 => word >> 9 & 0xff,
            Format::Vop2 => word >> 25 & 0x3f,
            _ => word >> 17 & 0xff,
        };
        let sig = self.begin(format, opcode, 1)?;
        let code = word & 0x1ff;
        let mut src0 = code;
        let mut scalar_src1 = false;
        let mut sdst = None;
        match code {
            DPP16 | DPP8 | DPP8_FI => src0 = 256 + self.dpp(code, sig)?,
            SDWA if sig.has(shape::SDWA) => {
                (src0, scalar_src1, sdst) = self.sdwa(format, sig)?;
            }
            _ => {}
        }
        if sig.src[0].exists() {
            self.inst.src[0] = self.vector_source(0, "src0", src0, sig)?;
        }
        if format != Format::Vop1 {
            self.second_source(word >> 9 & 0xff, scalar_src1, sig)?;
        }
        if format != Format::Vopc {
            self.vector_dst(word >> 17 & 0xff, sig)?;
        }
        if sig.sdst != 0 {
            self.inst.sdst = sdst.unwrap_or_else(|| self.compare_destination(format, sig));
        }
        self.last_source(sig);
        self.store_mods()?;
        Ok(sig)
    }

    /// Where a compare or carry without a field for it goes.
    fn compare_destination(&self, format: Format, sig: &Sig) -> u8 {
        let exec = format == Format::Vopc && sig.has(shape::EXEC) && self.target.is_gfx11();
        if exec { sgpr::EXEC_LO } else { Self::VCC }
    }

    fn second_source(&mut self, code: u32, scalar: bool, sig: &Sig) -> Result<(), DecodeError> {
        let operand = sig.src[1];
        if !operand.exists() {
            return Ok(());
        }
        let source = if scalar {
            let any = Operand::new(operand.width, class::SGPR | class::CONST, operand.ty);
            self.source("vsrc1", code, any)?
        } else {
            self.vector_source(1, "vsrc1", 256 + code, sig)?
        };
        if sig.has(shape::LITERAL_1) {
            let literal = self.literal()?;
            self.inst.src[1] = self.pools.constant(literal_constant(literal, operand.ty))?;
            self.inst.src[2] = source;
        } else {
            self.inst.src[1] = source;
        }
        if sig.has(shape::LITERAL_2) {
            let literal = self.literal()?;
            self.inst.src[2] = self.pools.constant(literal_constant(literal, operand.ty))?;
        }
        Ok(())
    }

    /// Source 2 of a form that has no field for it.
    fn last_source(&mut self, sig: &Sig) {
        if sig.has(shape::TIED) {
            self.inst.src[2] = Src::v(self.inst.dst);
        } else if sig.src[2].ty == Ty::Mask {
            self.inst.src[2] = Src::s(Self::VCC);
        }
    }

    /// A source of VOP1, VOP2, VOPC: on gfx11 a 16-bit VGPR is a half.
    fn vector_source(
        &mut self,
        slot: usize,
        field: &'static str,
        code: u32,
        sig: &Sig,
    ) -> Result<Src, DecodeError> {
        let Some(&operand) = sig.src.get(slot) else { return Err(self.reserved(field, code)) };
        if code >= 256 && operand.class & class::HALF != 0 && code & 0x80 != 0 {
            self.mods.opsel |= 1 << slot;
            self.inst.flags |= flag::TRUE16;
            return self.source(field, code & !0x80, operand);
        }
        if sig.has(shape::ACC_SRC) && slot == 0 && code >= 256 {
            return Ok(Src::v(self.acc_vgpr(field, code - 256, 1)?));
        }
        self.source(field, code, operand)
    }

    /// `vdst`, if the operation has a destination.
    pub(super) fn vector_dst(&mut self, code: u32, sig: &Sig) -> Result<(), DecodeError> {
        let width = sig.dst_width();
        if width == 0 {
            return Ok(());
        }
        if sig.dst_is_scalar() {
            self.inst.dst = u16::from(self.scalar_destination("vdst", code, width)?);
            self.inst.flags |= flag::DST_SGPR;
            return Ok(());
        }
        let mut number = code;
        if sig.has(shape::DST_HALF) && code & 0x80 != 0 {
            self.mods.opsel |= 1 << 3;
            self.inst.flags |= flag::TRUE16;
            number &= 0x7f;
        }
        self.inst.dst = self.any_vgpr("vdst", number, width, sig.has(shape::ACC_DST))?;
        Ok(())
    }

    /// Reads the DPP word of either kind; returns the VGPR that replaces source 0.
    pub(super) fn dpp(&mut self, code: u32, sig: &Sig) -> Result<u32, DecodeError> {
        let eight = code != DPP16;
        let exists = if eight {
            self.target.is_gfx11() && sig.has(shape::DPP8)
        } else {
            sig.has(shape::DPP)
        };
        if !exists {
            return Err(self.reserved("src0", code));
        }
        let word = self.extra_word()?;
        if eight {
            self.mods.dpp = Some(Dpp::Eight { select: word >> 8, fi: code == DPP8_FI });
            return Ok(word & 0xff);
        }
        let bit = |n: u32| u8::from(word >> n & 1 != 0);
        let ctrl = word >> 8 & 0x1ff;
        let wide = sig.dst_width() == 2 || sig.src.iter().any(|operand| operand.width == 2);
        let only_newbcast = wide && !(0x150..=0x15f).contains(&ctrl);
        if !self.dpp_ctrl_exists(ctrl) || only_newbcast {
            return Err(self.reserved("dpp_ctrl", ctrl));
        }
        let allowed = |slot: u16, first: u16| u8::from(sig.mods >> (first + slot) & 1 != 0);
        self.mods.dpp = Some(Dpp::Row {
            ctrl: u16::from(low8(ctrl)) | u16::from(low8(ctrl >> 8)) << 8,
            row_mask: low8(word >> 28),
            bank_mask: low8(word >> 24 & 0xf),
            bound_ctrl: bit(19) != 0,
            fi: self.target.is_gfx11() && bit(18) != 0,
        });
        self.mods.neg |=
            bit(20) & allowed(0, modbit::NEG) | (bit(22) & allowed(1, modbit::NEG)) << 1;
        self.mods.abs |=
            bit(21) & allowed(0, modbit::ABS) | (bit(23) & allowed(1, modbit::ABS)) << 1;
        Ok(word & 0xff)
    }

    /// Which `dpp_ctrl` values the target has.
    fn dpp_ctrl_exists(&self, ctrl: u32) -> bool {
        match ctrl {
            0x000..=0x0ff | 0x101..=0x10f | 0x111..=0x11f | 0x121..=0x12f | 0x140 | 0x141 => true,
            0x130 | 0x134 | 0x138 | 0x13c | 0x142 | 0x143 => self.target.is_gfx9(),
            0x150..=0x15f => self.target.is_gfx11() || self.target.has_unified_vgprs(),
            0x160..=0x16f => self.target.is_gfx11(),
            _ => false,
        }
    }

    /// Reads the SDWA word; returns source 0's code, whether source 1 is scalar, and the scalar
    /// destination that a compare names.
    fn sdwa(&mut self, format: Format, sig: &Sig) -> Result<(u32, bool, Option<u8>), DecodeError> {
        let word = self.extra_word()?;
        let bit = |n: u32| word >> n & 1 != 0;
        let sext = sig.has(shape::SEXT);
        let allowed = |slot: u16, first: u16| sig.mods >> (first + slot) & 1 != 0;
        let mut sdwa = Sdwa {
            src_sel: [low8(word >> 16 & 7), low8(word >> 24 & 7)],
            sext: [sext && bit(19), sext && bit(27)],
            dst_sel: 6,
            dst_unused: 0,
        };
        let mods = &mut self.mods;
        mods.neg = u8::from(bit(20) && allowed(0, modbit::NEG))
            | u8::from(bit(28) && allowed(1, modbit::NEG)) << 1;
        mods.abs = u8::from(bit(21) && allowed(0, modbit::ABS))
            | u8::from(bit(29) && allowed(1, modbit::ABS)) << 1;
        let mut sdst = None;
        if format == Format::Vopc {
            if bit(15) {
                let code = word >> 8 & 0x7f;
                sdst = Some(self.scalar_destination("sdst", code, 2)?);
            }
        } else {
            sdwa.dst_sel = low8(word >> 8 & 7);
            sdwa.dst_unused = low8(word >> 11 & 3);
            mods.clamp = bit(13) && sig.mods >> modbit::CLAMP & 1 != 0;
            if sig.mods >> modbit::OMOD & 1 != 0 {
                mods.omod = low8(word >> 14 & 3);
            }
        }
        let unary = !sig.src[1].exists();
        if unary {
            sdwa.src_sel[1] = 6;
            sdwa.sext[1] = false;
        }
        if sdwa.src_sel.contains(&7) || sdwa.dst_sel == 7 || sdwa.dst_unused == 3 {
            return Err(self.reserved("sdwa", word));
        }
        self.mods.sdwa = Some(sdwa);
        let src0 = word & 0xff | if bit(23) { 0 } else { 256 };
        Ok((src0, bit(31), sdst))
    }

    /// Dual issue: two VOP2-like halves.
    pub(super) fn vopd(mut self, word: u32) -> Result<Decoded, DecodeError> {
        let sig_x = self.begin(Format::VopdX, word >> 22 & 0xf, 2)?;
        let high = self.word(1)?;
        let vdst_x = high >> 24;
        self.dual_half(sig_x, word & 0x1ff, word >> 9 & 0xff, vdst_x)?;
        let mut first = self.inst;

        self.inst.vgprs = 0;
        self.inst.src = [Src::default(); 3];
        let length = self.inst.words;
        let sig_y = self.begin(Format::VopdY, word >> 17 & 0x1f, length)?;
        let vdst_y = (high >> 17 & 0x7f) << 1 | (!vdst_x & 1);
        self.dual_half(sig_y, high & 0x1ff, high >> 9 & 0xff, vdst_y)?;
        let mut second = self.inst;

        first.words = second.words;
        first.flags |= flag::VOPD_X;
        first.vgprs = first.vgprs.max(second.vgprs);
        second.words = 0;
        let shape = Shape { format: Format::VopdX, sig: sig_x, pair: Some(sig_y) };
        Ok(Decoded { inst: first, pair: Some(second), shape })
    }

    fn dual_half(&mut self, sig: &Sig, src0: u32, src1: u32, dst: u32) -> Result<(), DecodeError> {
        self.mods = Mods::default();
        self.inst.src[0] = self.source("src0", src0, sig.src[0])?;
        self.second_source(src1, false, sig)?;
        self.vector_dst(dst, sig)?;
        self.last_source(sig);
        Ok(())
    }
}
