//! SOP1, SOP2, SOPC, SOPK, SOPP, SMEM.

use super::super::ir::{Src, flag};
use super::super::sig::{Format, Sig, flag as shape};
use super::operand::literal_constant;
use super::{DecodeError, Decoder, low8, signed};

impl Decoder<'_> {
    fn scalar_dst(&mut self, code: u32, sig: &Sig) -> Result<(), DecodeError> {
        if sig.dst_width() != 0 {
            let width = self.width(sig.dst_width());
            self.inst.dst = u16::from(self.scalar_destination("sdst", code, width)?);
            self.inst.flags |= flag::DST_SGPR;
        }
        Ok(())
    }

    pub(super) fn sop1(&mut self, word: u32) -> Result<&'static Sig, DecodeError> {
        let sig = self.begin(Format::Sop1, word >> 8 & 0xff, 1)?;
        self.scalar_dst(word >> 16 & 0x7f, sig)?;
        if sig.src[0].exists() {
            self.inst.src[0] = self.source("ssrc0", word & 0xff, sig.src[0])?;
        } else {
            // s_sendmsg_rtn_*: the field is the message.
            self.inst.imm = i32::from(low8(word));
        }
        Ok(sig)
    }

    pub(super) fn sop2(&mut self, word: u32) -> Result<&'static Sig, DecodeError> {
        let sig = self.begin(Format::Sop2, word >> 23 & 0x7f, 1)?;
        self.scalar_dst(word >> 16 & 0x7f, sig)?;
        let [first, second, _] = sig.src;
        self.inst.src[0] = self.source("ssrc0", word & 0xff, first)?;
        let code = word >> 8 & 0xff;
        if sig.has(shape::LITERAL_1) {
            let literal = self.literal()?;
            self.inst.src[1] = self.pools.constant(literal_constant(literal, second.ty))?;
            self.inst.src[2] = self.source("ssrc1", code, second)?;
        } else {
            self.inst.src[1] = self.source("ssrc1", code, second)?;
        }
        if sig.has(shape::LITERAL_2) {
            let literal = self.literal()?;
            self.inst.src[2] = self.pools.constant(literal_constant(literal, second.ty))?;
        }
        if sig.has(shape::TIED) {
            self.inst.src[2] = Src::s(low8(u32::from(self.inst.dst)));
        }
        Ok(sig)
    }

    pub(super) fn sopc(&mut self, word: u32) -> Result<&'static Sig, DecodeError> {
        let sig = self.begin(Format::Sopc, word >> 16 & 0x7f, 1)?;
        self.inst.src[0] = self.source("ssrc0", word & 0xff, sig.src[0])?;
        let code = word >> 8 & 0xff;
        if sig.src[1].exists() {
            self.inst.src[1] = self.source("ssrc1", code, sig.src[1])?;
        } else {
            // s_set_gpr_idx_on: the field is the mode.
            self.inst.imm = i32::from(low8(code));
        }
        Ok(sig)
    }

    pub(super) fn sopk(&mut self, word: u32) -> Result<&'static Sig, DecodeError> {
        let sig = self.begin(Format::Sopk, word >> 23 & 0x1f, 1)?;
        let code = word >> 16 & 0x7f;
        self.scalar_dst(code, sig)?;
        if sig.src[0].exists() {
            self.inst.src[0] = self.source("sdst", code, sig.src[0])?;
        }
        self.inst.imm = self.simm16(word, sig);
        if sig.has(shape::LITERAL_1) {
            let literal = self.literal()?;
            self.inst.src[0] = self.pools.constant(u64::from(literal))?;
        }
        Ok(sig)
    }

    pub(super) fn sopp(&mut self, word: u32) -> Result<&'static Sig, DecodeError> {
        let sig = self.begin(Format::Sopp, word >> 16 & 0x7f, 1)?;
        self.inst.imm = self.simm16(word, sig);
        Ok(sig)
    }

    fn simm16(&self, word: u32, sig: &Sig) -> i32 {
        if sig.has(shape::UNSIGNED) {
            signed(word & 0xffff, 32)
        } else if sig.has(shape::BRANCH) {
            signed(word, 16) * 4
        } else {
            signed(word, 16)
        }
    }

    pub(super) fn smem(&mut self, word: u32) -> Result<&'static Sig, DecodeError> {
        let sig = self.begin(Format::Smem, word >> 18 & 0xff, 2)?;
        let high = self.word(1)?;
        let glc = if self.target.is_gfx9() { word >> 16 & 1 } else { word >> 14 & 1 };
        let data = word >> 6 & 0x7f;
        if glc != 0 {
            self.inst.flags |= flag::GLC;
        }
        if self.target.is_gfx11() && word >> 13 & 1 != 0 {
            self.inst.flags |= flag::CACHE | flag::GLC;
        }
        self.scalar_dst(data, sig)?;
        if self.inst.flags & flag::WRITES_EXEC != 0 {
            return Err(self.reserved("sdata", data)); // loads cannot write EXEC
        }
        if sig.src[2].exists() {
            self.inst.src[2] = self.source("sdata", data, sig.src[2])?;
        }
        if !sig.src[0].exists() {
            return Ok(sig);
        }
        self.inst.src[0] = self.source("sbase", (word & 0x3f) << 1, sig.src[0])?;
        let offset = signed(high, 21);
        let soffset = if self.target.is_gfx11() {
            self.inst.imm = offset;
            Some(high >> 25).filter(|&code| code != 124)
        } else {
            let (imm, soffset_en) = (word >> 17 & 1 != 0, word >> 14 & 1 != 0);
            if imm {
                self.inst.imm = offset;
            }
            match (imm, soffset_en) {
                (_, true) => Some(high >> 25),
                (true, false) => None,
                (false, false) => Some(high & 0x7f),
            }
        };
        if let Some(code) = soffset {
            let register = self.scalar_register(code, 1);
            let register = register.ok_or_else(|| self.reserved("soffset", code))?;
            self.inst.src[1] = Src::s(register);
            self.inst.flags |= flag::SOFFSET;
        }
        Ok(sig)
    }
}
