//! VOP3 and VOP3P.

use super::super::ir::{Src, flag, sgpr};
use super::super::sig::{Format, Operand, Sig, Ty, flag as shape};
use super::valu::modbit;
use super::{DecodeError, Decoder, low8};
use crate::Target;

/// The modifier bits of both words in the order of [`Sig::mods`].
fn mod_bits(word: u32, high: u32) -> u16 {
    u16::from(low8(word >> 8)) | u16::from(low8(high >> 27)) << 8
}

fn bits3(bits: u16, first: u16) -> u8 {
    low8(u32::from(bits >> first & 7))
}

impl Decoder<'_> {
    pub(super) fn vop3(&mut self, word: u32) -> Result<&'static Sig, DecodeError> {
        let sig = self.begin(Format::Vop3, word >> 16 & 0x3ff, 2)?;
        if sig.has(shape::GRAPHICS) {
            return Err(DecodeError::Graphics { format: Format::Vinterp, words: 2 });
        }
        let high = self.word(1)?;
        let bits = mod_bits(word, high) & sig.mods;
        self.mods.abs = bits3(bits, modbit::ABS);
        self.mods.opsel = bits3(bits, modbit::OPSEL) | bits3(bits, modbit::OPSEL + 3) << 3 & 8;
        self.mods.clamp = bits >> modbit::CLAMP & 1 != 0;
        self.mods.omod = bits3(bits, modbit::OMOD) & 3;
        self.mods.neg = bits3(bits, modbit::NEG);
        if self.mods.opsel != 0 && self.target.is_gfx11() {
            self.inst.flags |= flag::TRUE16;
        }
        self.three_sources(high, sig, [false; 3], 0)?;

        let vdst = word & 0xff;
        self.vector_dst(vdst, sig)?;
        if sig.sdst != 0 {
            let width = self.width(sig.sdst);
            self.inst.sdst = if sig.has(shape::SDST) {
                self.scalar_destination("sdst", word >> 8 & 0x7f, width)?
            } else if sig.has(shape::EXEC) && self.target.is_gfx11() {
                sgpr::EXEC_LO
            } else {
                self.scalar_destination("sdst", vdst, width)?
            };
        }
        if sig.has(shape::TIED) {
            self.inst.src[2] = Src::v(self.inst.dst);
        }
        self.store_mods()?;
        Ok(sig)
    }

    /// Reads the source fields that the operation has; the others are ignored.
    fn three_sources(
        &mut self,
        high: u32,
        sig: &Sig,
        acc: [bool; 3],
        half: u8,
    ) -> Result<(), DecodeError> {
        let mut codes = [high & 0x1ff, high >> 9 & 0x1ff, high >> 18 & 0x1ff];
        let dpp = self.target.is_gfx11() && matches!(codes[0], 233 | 234 | 250);
        if dpp && sig.src[0].exists() {
            codes[0] = 256 + self.dpp_in_vop3(codes[0], sig)?;
        }
        let names = ["src0", "src1", "src2"];
        for (slot, ((code, name), operand)) in codes.into_iter().zip(names).zip(sig.src).enumerate()
        {
            if !operand.exists() {
                continue;
            }
            let is_acc = code >= 256 && acc.get(slot).copied().unwrap_or(false);
            let source = if is_acc {
                Src::v(self.acc_vgpr(name, code - 256, operand.width)?)
            } else {
                let ty = match operand.ty {
                    Ty::Mix if half >> slot & 1 != 0 => Ty::F16,
                    ty => ty,
                };
                self.source(name, code, Operand::new(operand.width, operand.class, ty))?
            };
            if let Some(place) = self.inst.src.get_mut(slot) {
                *place = source;
            }
        }
        Ok(())
    }

    /// DPP in a VOP3 form: neg and abs are in the VOP3 words, so those of the DPP word are unused.
    fn dpp_in_vop3(&mut self, code: u32, sig: &Sig) -> Result<u32, DecodeError> {
        let (neg, abs) = (self.mods.neg, self.mods.abs);
        let number = self.dpp(code, sig)?;
        self.mods.neg = neg;
        self.mods.abs = abs;
        Ok(number)
    }

    pub(super) fn vop3p(&mut self, word: u32) -> Result<&'static Sig, DecodeError> {
        let sig = self.begin(Format::Vop3p, word >> 16 & 0x7f, 2)?;
        let high = self.word(1)?;
        if sig.has(shape::MFMA) {
            return self.matrix(word, high, sig);
        }
        let bits = mod_bits(word, high) & sig.mods;
        let opsel_hi_of = |bits: u16| bits3(bits, 8) & 3 | bits3(bits, 6) << 2 & 4;
        let opsel_hi = opsel_hi_of(bits);
        let mix = sig.src[0].ty == Ty::Mix;
        self.mods.neg_hi = bits3(bits, modbit::ABS);
        self.mods.opsel = bits3(bits, modbit::OPSEL);
        self.mods.clamp = bits >> modbit::CLAMP & 1 != 0;
        self.mods.neg = bits3(bits, modbit::NEG);
        // op_sel_hi is all ones in a plain packed instruction, and zero in a plain mix.
        let plain_hi = if mix { 0 } else { opsel_hi_of(sig.mods) };
        let plain = opsel_hi == plain_hi;
        self.mods.opsel_hi = opsel_hi;
        let acc = [sig.has(shape::ACC_SRC), false, false];
        self.three_sources(high, sig, acc, opsel_hi)?;
        self.vector_dst(word & 0xff, sig)?;
        if sig.has(shape::TIED) {
            self.inst.src[2] = Src::v(self.inst.dst);
        }
        if plain {
            let mut rest = self.mods;
            rest.opsel_hi = 0;
            if rest == super::Mods::default() {
                return Ok(sig);
            }
        }
        if !mix {
            // Sources that have no bit of their own count as selected.
            self.mods.opsel_hi |= 7 & !opsel_hi_of(sig.mods);
        }
        self.keep_mods = true;
        self.store_mods()?;
        Ok(sig)
    }

    /// MFMA and SMFMAC.
    fn matrix(
        &mut self,
        word: u32,
        high: u32,
        sig: &'static Sig,
    ) -> Result<&'static Sig, DecodeError> {
        // gfx908 accumulates in AccVGPRs only.
        let acc_cd = self.target == Target::Gfx908 || word >> 15 & 1 != 0;
        // Sparse operations have an index register in source 2, never an AccVGPR.
        let sparse = sig.src[2].width == 1;
        let acc = [high >> 27 & 1 != 0, high >> 28 & 1 != 0, acc_cd && !sparse];
        self.three_sources(high, sig, acc, 0)?;
        self.inst.dst = self.any_vgpr("vdst", word & 0xff, sig.dst_width(), acc_cd)?;
        self.mods.matrix = [low8(word >> 8 & 7), low8(word >> 11 & 0xf), low8(high >> 29)];
        self.store_mods()?;
        Ok(sig)
    }
}
