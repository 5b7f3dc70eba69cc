//! DS, FLAT, GLOBAL, SCRATCH, MUBUF, MTBUF.

use super::super::ir::{Src, flag, sgpr};
use super::super::sig::{Format, Operand, Sig, Ty, class, flag as shape};
use super::{DecodeError, Decoder, low8, signed};
use crate::Target;

/// A buffer's scalar offset: register or inline constant.
const SOFFSET: Operand = Operand::new(1, class::SGPR | class::CONST, Ty::W32);

impl Decoder<'_> {
    fn set_if(&mut self, condition: bool, bit: u16) {
        if condition {
            self.inst.flags |= bit;
        }
    }

    /// Flags of the cache bits: `first` is glc (sc0), `further` the others.
    fn cache_bits(&mut self, sig: &Sig, first: bool, further: bool) {
        self.set_if(first || further && !sig.has(shape::ATOMIC), flag::GLC);
        self.set_if(further, flag::CACHE);
        self.set_if(sig.has(shape::RETURNS), flag::GLC);
    }

    pub(super) fn ds(&mut self, word: u32) -> Result<&'static Sig, DecodeError> {
        let gfx9 = self.target.is_gfx9();
        let opcode = if gfx9 { word >> 17 } else { word >> 18 } & 0xff;
        let sig = self.begin(Format::Ds, opcode, 2)?;
        let high = self.word(1)?;
        let gds = if gfx9 { word >> 16 } else { word >> 17 } & 1 != 0;
        if sig.has(shape::GDS_ONLY) && !gds {
            return Err(self.reserved("gds", 0));
        }
        if gds && !sig.has(shape::GDS_ONLY) && self.target.has_unified_vgprs() {
            return Err(self.reserved("gds", 1)); // no global data share there, only its barriers
        }
        self.set_if(gds, flag::GDS);
        let acc = self.target.has_unified_vgprs() && word >> 25 & 1 != 0;
        self.set_if(acc, flag::ACC);
        let [addr, data0, data1] = sig.src;
        if addr.exists() {
            self.inst.src[0] = self.vgpr("addr", high & 0xff, addr.width)?;
        }
        if data0.exists() {
            self.inst.src[1] =
                Src::v(self.any_vgpr("data0", high >> 8 & 0xff, data0.width, acc)?);
        }
        if data1.exists() {
            self.inst.src[2] =
                Src::v(self.any_vgpr("data1", high >> 16 & 0xff, data1.width, acc)?);
        }
        if sig.dst_width() != 0 {
            self.inst.dst = self.any_vgpr("vdst", high >> 24, sig.dst_width(), acc)?;
        }
        self.inst.imm = signed(word & 0xffff, 32);
        Ok(sig)
    }

    pub(super) fn flat(&mut self, format: Format, word: u32) -> Result<&'static Sig, DecodeError> {
        let gfx9 = self.target.is_gfx9();
        let sig = self.begin(format, word >> 18 & 0x7f, 2)?;
        let high = self.word(1)?;
        let bit = |n: u32| word >> n & 1 != 0;
        let (glc, further) = if gfx9 {
            (bit(16), bit(17) || self.target.has_unified_vgprs() && bit(25))
        } else {
            (bit(14), bit(15) || bit(13))
        };
        self.cache_bits(sig, glc, further);
        let acc = self.target.has_unified_vgprs() && high >> 23 & 1 != 0;
        self.set_if(acc, flag::ACC);
        let lds = sig.has(shape::LDS) || gfx9 && self.target != Target::Gfx942 && bit(13);
        self.set_if(lds, flag::LDS);
        let loads = sig.dst_width() != 0 && !sig.has(shape::ATOMIC) && !sig.src[1].exists();
        if lds && !sig.has(shape::LDS) && !loads {
            return Err(self.reserved("lds", 1));
        }

        self.inst.imm = match format {
            Format::Flat => signed(word & 0xfff, 32),
            _ => signed(word, 13),
        };
        self.flat_address(format, sig, word, high)?;
        if sig.src[1].exists() {
            let number = high >> 8 & 0xff;
            self.inst.src[1] = Src::v(self.any_vgpr("data", number, sig.src[1].width, acc)?);
        }
        let returns = !sig.has(shape::ATOMIC) || self.inst.flags & flag::GLC != 0;
        if sig.dst_width() != 0 && returns && !lds {
            self.inst.dst = self.any_vgpr("vdst", high >> 24, sig.dst_width(), acc)?;
        }
        Ok(sig)
    }

    /// vaddr and saddr.
    fn flat_address(
        &mut self,
        format: Format,
        sig: &Sig,
        word: u32,
        high: u32,
    ) -> Result<(), DecodeError> {
        let gfx9 = self.target.is_gfx9();
        let code = high >> 16 & 0x7f;
        let off = if gfx9 { 0x7f } else { 124 };
        let has_saddr = format != Format::Flat && code != off;
        if has_saddr {
            let width = if format == Format::Scratch { 1 } else { 2 };
            let register = self.scalar_register(code, width).filter(|_| code != 127);
            let register = register.ok_or_else(|| self.reserved("saddr", code))?;
            self.inst.src[2] = Src::s(register);
            self.inst.flags |= flag::SADDR;
        } else {
            self.inst.src[2] = Src::s(sgpr::NULL);
        }
        let has_vaddr = match format {
            Format::Scratch => match self.target {
                Target::Gfx942 => word >> 13 & 1 != 0,
                _ if gfx9 => !has_saddr,
                _ => high >> 23 & 1 != 0,
            },
            _ => sig.src[0].exists(),
        };
        if has_vaddr {
            let width = match format {
                Format::Flat => 2,
                Format::Global if !has_saddr => 2,
                _ => 1,
            };
            self.inst.src[0] = self.vgpr("addr", high & 0xff, width)?;
            self.inst.flags |= flag::VADDR;
        }
        Ok(())
    }

    pub(super) fn buffer(
        &mut self,
        format: Format,
        word: u32,
    ) -> Result<&'static Sig, DecodeError> {
        let gfx9 = self.target.is_gfx9();
        let unified = self.target.has_unified_vgprs();
        let typed = format == Format::Mtbuf;
        let opcode = match (typed, gfx9) {
            (true, _) => word >> 15 & 0xf,
            (false, true) => word >> 18 & 0x7f,
            (false, false) => word >> 18 & 0xff,
        };
        let sig = self.begin(format, opcode, 2)?;
        let high = self.word(1)?;
        let (low_bit, high_bit) = (|n: u32| word >> n & 1 != 0, |n: u32| high >> n & 1 != 0);
        let (offen, idxen, further, tfe, lds) = if gfx9 {
            let slc = if typed { high_bit(22) } else { low_bit(17) };
            let scc = unified && if typed { high_bit(21) } else { low_bit(15) };
            let tfe = !unified && high_bit(23);
            (low_bit(12), low_bit(13), slc || scc, tfe, !typed && low_bit(16))
        } else {
            let further = low_bit(12) || low_bit(13);
            (high_bit(22), high_bit(23), further, high_bit(21), sig.has(shape::LDS))
        };
        self.cache_bits(sig, low_bit(14), further);
        if !sig.src[1].exists() {
            return Ok(sig); // cache maintenance: no operands
        }
        self.set_if(offen, flag::OFFEN);
        self.set_if(idxen, flag::IDXEN);
        self.set_if(lds, flag::LDS);
        if lds && !sig.has(shape::LDS) && sig.has(shape::ATOMIC) {
            return Err(self.reserved("lds", 1));
        }
        let acc = unified && high_bit(23);
        self.set_if(acc, flag::ACC);

        let addresses = u8::from(offen) + u8::from(idxen);
        if addresses != 0 {
            self.inst.src[0] = self.vgpr("vaddr", high & 0xff, addresses)?;
            self.inst.flags |= flag::VADDR;
        }
        let code = (high >> 16 & 0x1f) << 2;
        let register = self.scalar_register(code, 4);
        self.inst.src[1] = Src::s(register.ok_or_else(|| self.reserved("srsrc", code))?);
        self.inst.src[2] = self.source("soffset", high >> 24, SOFFSET)?;
        if sig.dst_width() != 0 && !lds {
            let width = sig.dst_width() + u8::from(tfe);
            self.inst.dst = self.any_vgpr("vdata", high >> 8 & 0xff, width, acc)?;
        }
        self.inst.imm = signed(word & 0xfff, 32);
        if typed {
            // gfx9: dfmt in the low four bits, nfmt above. gfx11: one 7-bit format.
            self.mods.matrix[0] = low8(word >> 19 & 0x7f);
            self.keep_mods = true;
        }
        self.mods.matrix[1] = u8::from(tfe);
        self.store_mods()?;
        Ok(sig)
    }
}
