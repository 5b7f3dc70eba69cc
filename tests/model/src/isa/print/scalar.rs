//! SOP1, SOP2, SOPC, SOPK, SOPP, SMEM.

use super::super::Op;
use super::super::ir::{SrcKind, flag, sgpr};
use super::super::sig::{Format, Operand, Ty, flag as shape};
use super::Printer;

impl Printer<'_> {
    fn scalar_dst(&mut self) {
        if self.inst.flags & flag::DST_SGPR != 0 {
            let number = u8::try_from(self.inst.dst).unwrap_or(u8::MAX);
            let name = self.sgpr_name(number, u16::from(self.sig.dst_width()));
            self.operand(&name);
        }
    }

    fn scalar_src(&mut self, slot: usize) {
        let (source, operand) = self.slot(slot);
        if operand.exists() {
            let name = self.source_name(source, operand);
            self.operand(&name);
        }
    }

    pub(super) fn scalar(&mut self) {
        match self.format {
            Format::Sop1 => {
                self.scalar_dst();
                self.scalar_src(0);
                if matches!(self.inst.op, Op::SSendmsgRtnB32 | Op::SSendmsgRtnB64) {
                    self.operand(&format!("{:#x}", self.inst.imm));
                }
            }
            Format::Sop2 => {
                self.scalar_dst();
                self.scalar_src(0);
                self.scalar_src(1);
                if self.sig.has(shape::LITERAL_1 | shape::LITERAL_2) {
                    let name = self.source_name(self.inst.src[2], self.sig.src[1]);
                    self.operand(&name);
                }
            }
            Format::Sopc => {
                self.scalar_src(0);
                self.scalar_src(1);
                if !self.sig.src[1].exists() {
                    self.operand(&format!("{:#x}", self.inst.imm));
                }
            }
            Format::Sopk => self.sopk(),
            _ => self.sopp(),
        }
    }

    fn target_address(&self) -> String {
        let next = self.pc.wrapping_add(u64::from(self.inst.words) * 4);
        format!("{:#x}", next.wrapping_add_signed(i64::from(self.inst.imm)))
    }

    fn sopk(&mut self) {
        let imm = self.inst.imm & 0xffff;
        if matches!(self.inst.op, Op::SSetregB32 | Op::SSetregImm32B32) {
            let name = self.source_name(self.inst.src[0], Operand::new(1, 0, Ty::W32));
            self.operand(&hwreg(imm));
            self.operand(&name);
            return;
        }
        self.scalar_dst();
        if self.inst.flags & flag::DST_SGPR == 0 {
            self.scalar_src(0);
        }
        match self.inst.op {
            Op::SGetregB32 => self.operand(&hwreg(imm)),
            Op::SCallB64 | Op::SSubvectorLoopBegin | Op::SSubvectorLoopEnd | Op::SCbranchIFork => {
                let address = self.target_address();
                self.operand(&address);
            }
            _ => self.operand(&format!("{imm:#x}")),
        }
    }

    fn sopp(&mut self) {
        let imm = self.inst.imm & 0xffff;
        if self.sig.has(shape::BRANCH) {
            let address = self.target_address();
            self.operand(&address);
            return;
        }
        match self.inst.op {
            Op::SWaitcnt => self.waitcnt(imm),
            Op::SEndpgm if imm == 0 => {}
            Op::SBarrier
            | Op::SWakeup
            | Op::SIcacheInv
            | Op::SCodeEnd
            | Op::STtracedata
            | Op::SEndpgmSaved
            | Op::SEndpgmOrderedPsDone
            | Op::SSetGprIdxOff
            | Op::SWaitIdle => {}
            Op::SWaitEvent | Op::SRoundMode | Op::SSingleuseVdst => {
                self.operand(&format!("{imm:#x}"));
            }
            Op::SEndpgm => self.operand(&imm.to_string()),
            _ if imm <= 64 => self.operand(&imm.to_string()),
            _ => self.operand(&format!("{imm:#x}")),
        }
    }

    /// Counters that the immediate does not leave at their maximum.
    fn waitcnt(&mut self, imm: i32) {
        let (vm, exp, lgkm, vm_max, lgkm_max) = if self.target.is_gfx9() {
            (imm & 0xf | imm >> 10 & 0x30, imm >> 4 & 7, imm >> 8 & 0xf, 63, 15)
        } else {
            (imm >> 10 & 0x3f, imm & 7, imm >> 4 & 0x3f, 63, 63)
        };
        let all = vm == vm_max && exp == 7 && lgkm == lgkm_max;
        for (name, value, max) in
            [("vmcnt", vm, vm_max), ("expcnt", exp, 7), ("lgkmcnt", lgkm, lgkm_max)]
        {
            if value != max || all {
                self.modifier(&format!("{name}({value})"));
            }
        }
    }

    pub(super) fn smem(&mut self) {
        self.scalar_dst();
        if self.sig.src[2].exists() && self.inst.flags & flag::DST_SGPR == 0 {
            self.scalar_src(2);
        }
        self.scalar_src(0);
        if self.sig.src[0].exists() {
            if self.inst.flags & flag::SOFFSET == 0 {
                let imm = self.inst.imm;
                let sign = if imm < 0 { "-" } else { "" };
                self.operand(&format!("{sign}{:#x}", imm.unsigned_abs()));
            } else {
                let number = match self.inst.src[1].kind() {
                    SrcKind::S(number) => number,
                    _ => sgpr::NULL,
                };
                let name = self.sgpr_name(number, 1);
                self.operand(&name);
                if self.inst.imm != 0 {
                    self.modifier(&format!("offset:{:#x}", self.inst.imm));
                }
            }
        }
        let gfx9 = self.target.is_gfx9();
        let bit = |n: u32| self.words[0] >> n & 1 != 0;
        let (glc, dlc) = (if gfx9 { bit(16) } else { bit(14) }, !gfx9 && bit(13));
        self.modifier_if(glc, "glc");
        self.modifier_if(dlc, "dlc");
    }
}

/// A hardware register field: number, first bit, bits.
fn hwreg(imm: i32) -> String {
    format!("hwreg({}, {}, {})", imm & 0x3f, imm >> 6 & 0x1f, (imm >> 11 & 0x1f) + 1)
}
