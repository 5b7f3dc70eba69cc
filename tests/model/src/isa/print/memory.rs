//! DS, FLAT, GLOBAL, SCRATCH, MUBUF, MTBUF.

use super::super::ir::{SrcKind, flag};
use super::super::sig::{Format, Operand, Ty, class, flag as shape};
use super::Printer;
use crate::Target;

impl Printer<'_> {
    fn has(&self, bit: u16) -> bool {
        self.inst.flags & bit != 0
    }

    fn vgpr_source(&mut self, slot: usize, width: u16) {
        if let SrcKind::V(number) = self.slot(slot).0.kind() {
            self.operand(&Self::vgpr_name(number, width));
        }
    }

    fn destination(&mut self) {
        let name = Self::vgpr_name(self.inst.dst, u16::from(self.sig.dst_width()));
        self.operand(&name);
    }

    pub(super) fn ds(&mut self) {
        if self.sig.dst_width() != 0 {
            self.destination();
        }
        for slot in 0..3 {
            let width = self.slot(slot).1.width;
            if width != 0 {
                self.vgpr_source(slot, u16::from(width));
            }
        }
        let imm = self.inst.imm;
        if self.sig.has(shape::OFFSET2) {
            let (first, second) = (imm & 0xff, imm >> 8 & 0xff);
            self.modifier_if(first != 0, &format!("offset0:{first}"));
            self.modifier_if(second != 0, &format!("offset1:{second}"));
        } else {
            self.modifier_if(imm != 0, &format!("offset:{imm}"));
        }
        self.modifier_if(self.has(flag::GDS), "gds");
    }

    /// Cache bits as the target names them: (glc, slc, dlc, scc).
    fn cache_names(&mut self, glc: bool, slc: bool, dlc: bool, scc: bool) {
        if self.target == Target::Gfx942 {
            self.modifier_if(glc, "sc0");
            self.modifier_if(slc, "nt");
            self.modifier_if(scc, "sc1");
        } else {
            self.modifier_if(glc, "glc");
            self.modifier_if(slc, "slc");
            self.modifier_if(dlc, "dlc");
            self.modifier_if(scc, "scc");
        }
    }

    pub(super) fn flat(&mut self) {
        let atomic = self.sig.has(shape::ATOMIC);
        let lds = self.has(flag::LDS);
        if self.sig.dst_width() != 0 && !lds && (!atomic || self.has(flag::GLC)) {
            self.destination();
        }
        let wide =
            self.format == Format::Flat || self.format == Format::Global && !self.has(flag::SADDR);
        let address = |printer: &mut Self| {
            if printer.has(flag::VADDR) {
                printer.vgpr_source(0, if wide { 2 } else { 1 });
            } else if printer.format == Format::Scratch {
                printer.operand("off");
            }
        };
        address(self);
        if self.sig.src[1].exists() {
            self.vgpr_source(1, u16::from(self.sig.src[1].width));
        }
        if self.format != Format::Flat {
            if let (true, SrcKind::S(number)) = (self.has(flag::SADDR), self.inst.src[2].kind()) {
                let width = if self.format == Format::Scratch { 1 } else { 2 };
                let name = self.sgpr_name(number, width);
                self.operand(&name);
            } else {
                self.operand("off");
            }
        }
        self.modifier_if(self.inst.imm != 0, &format!("offset:{}", self.inst.imm));
        let bit = |n: u32| self.words[0] >> n & 1 != 0;
        if self.target.is_gfx9() {
            let scc = self.target.has_unified_vgprs() && bit(25);
            self.cache_names(bit(16), bit(17), false, scc);
            self.modifier_if(lds && !self.sig.has(shape::LDS), "lds");
        } else {
            self.cache_names(bit(14), bit(15), bit(13), false);
        }
    }

    pub(super) fn buffer(&mut self) {
        if !self.sig.src[1].exists() {
            self.buffer_cache_bits();
            return;
        }
        let lds = self.has(flag::LDS);
        let tfe = self.mods.matrix[1];
        if self.sig.dst_width() != 0 && !lds {
            let width = u16::from(self.sig.dst_width() + tfe);
            self.operand(&Self::vgpr_name(self.inst.dst, width));
        }
        let addresses = u16::from(self.has(flag::IDXEN)) + u16::from(self.has(flag::OFFEN));
        if addresses == 0 {
            self.operand("off");
        } else {
            self.vgpr_source(0, addresses);
        }
        let resource = Operand::new(4, class::SGPR, Ty::W32);
        let name = self.source_name(self.inst.src[1], resource);
        self.operand(&name);
        let offset = Operand::new(1, class::SGPR, Ty::W32);
        let name = self.source_name(self.inst.src[2], offset);
        self.operand(&name);
        // Format 1 is what an assembler takes when none is given.
        if self.format == Format::Mtbuf && self.mods.matrix[0] != 1 {
            self.modifier(&format!("format:{}", self.mods.matrix[0]));
        }
        self.modifier_if(self.has(flag::IDXEN), "idxen");
        self.modifier_if(self.has(flag::OFFEN), "offen");
        self.modifier_if(self.inst.imm != 0, &format!("offset:{}", self.inst.imm));
        self.buffer_cache_bits();
        self.modifier_if(tfe != 0, "tfe");
        self.modifier_if(lds && !self.sig.has(shape::LDS), "lds");
    }

    fn buffer_cache_bits(&mut self) {
        let [low, high] = self.words;
        let typed = self.format == Format::Mtbuf;
        let bit = |word: u32, n: u32| word >> n & 1 != 0;
        if self.target.is_gfx9() {
            let slc = if typed { bit(high, 22) } else { bit(low, 17) };
            let scc = if typed { bit(high, 21) } else { bit(low, 15) };
            self.cache_names(bit(low, 14), slc, false, scc && self.target.has_unified_vgprs());
        } else {
            self.cache_names(bit(low, 14), bit(low, 12), bit(low, 13), false);
        }
    }
}
