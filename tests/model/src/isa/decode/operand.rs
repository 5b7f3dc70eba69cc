//! Operand codes to sources and destinations.

use super::super::ir::{Special, Src, flag, sgpr};
use super::super::sig::{Operand, Sig, Ty, class};
use super::{DecodeError, Decoder, low8};

/// Inline float constants 240..=248: 0.5, -0.5, 1, -1, 2, -2, 4, -4, 1/(2 pi).
const F16: [u16; 9] = [0x3800, 0xb800, 0x3c00, 0xbc00, 0x4000, 0xc000, 0x4400, 0xc400, 0x3118];
const F32: [u32; 9] = [
    0x3f00_0000,
    0xbf00_0000,
    0x3f80_0000,
    0xbf80_0000,
    0x4000_0000,
    0xc000_0000,
    0x4080_0000,
    0xc080_0000,
    0x3e22_f983,
];
const F64: [u64; 9] = [
    0x3fe0_0000_0000_0000,
    0xbfe0_0000_0000_0000,
    0x3ff0_0000_0000_0000,
    0xbff0_0000_0000_0000,
    0x4000_0000_0000_0000,
    0xc000_0000_0000_0000,
    0x4010_0000_0000_0000,
    0xc010_0000_0000_0000,
    0x3fc4_5f30_6dc9_c882,
];

/// The bits that inline constant `code` has in an operand of type `ty`; `None` if it is not one.
pub(in crate::isa) fn inline_constant(code: u32, ty: Ty) -> Option<u64> {
    let wide = matches!(ty, Ty::F64 | Ty::I64 | Ty::U64);
    let integer = match code {
        128..=192 => Some(i64::from(code) - 128),
        193..=208 => Some(192 - i64::from(code)),
        _ => None,
    };
    if let Some(value) = integer {
        let bits = value.cast_unsigned();
        return Some(if wide { bits } else { bits & 0xffff_ffff });
    }
    let index = usize::try_from(code.checked_sub(240)?).ok()?;
    Some(match ty {
        Ty::F64 | Ty::I64 | Ty::U64 => *F64.get(index)?,
        Ty::F16 | Ty::Pf16 => u64::from(*F16.get(index)?),
        Ty::Bf16 | Ty::Pbf16 => u64::from(F32.get(index)? >> 16),
        Ty::W32 | Ty::I16 | Ty::Mix | Ty::Mask | Ty::None => u64::from(*F32.get(index)?),
    })
}

/// The bits that a literal has in an operand of type `ty`.
pub(super) fn literal_constant(literal: u32, ty: Ty) -> u64 {
    match ty {
        Ty::F64 => u64::from(literal) << 32,
        Ty::I64 => i64::from(literal.cast_signed()).cast_unsigned(),
        _ => u64::from(literal),
    }
}

impl Decoder<'_> {
    /// Width in dwords of an operand of this wave.
    pub(super) fn width(&self, width: u8) -> u8 {
        if width != Sig::MASK {
            return width;
        }
        if self.wave_size == 64 { 2 } else { 1 }
    }

    /// A scalar register code (0..=127) as its canonical number, `width` dwords from it. `None` if
    /// reserved: misaligned, or running past its group.
    pub(super) fn scalar_register(&self, code: u32, width: u8) -> Option<u8> {
        let code = low8(code);
        let align = match width {
            0 | 1 => 1,
            2 => 2,
            _ => 4,
        };
        if self.target.is_gfx11() && code == 124 {
            return Some(sgpr::NULL);
        }
        if !code.is_multiple_of(align) {
            return None;
        }
        let last = code.checked_add(width.max(1) - 1)?;
        // gfx9 keeps FLAT_SCRATCH and XNACK_MASK at 102..=105: no group of SGPRs runs into them.
        // (Quads may, for LLVM: s[100:103].)
        let highest = match (self.target.is_gfx9(), width) {
            (true, 0..=3) => 101,
            (true, _) => 103,
            (false, _) => 105,
        };
        match code {
            0..=105 if last <= highest => Some(code),
            102 | 104 if width == 2 => Some(code),
            102..=105 if width <= 1 => Some(code),
            106 | 107 if last <= 107 => Some(code),
            108..=123 if last <= 123 => Some(code),
            124 if width <= 1 => Some(sgpr::M0),
            125 if width <= 1 && self.target.is_gfx11() => Some(sgpr::M0),
            126 | 127 if last <= 127 => Some(code),
            _ => None,
        }
    }

    /// A scalar destination; sets WRITES_EXEC when it covers EXEC.
    pub(super) fn scalar_destination(
        &mut self,
        field: &'static str,
        code: u32,
        width: u8,
    ) -> Result<u8, DecodeError> {
        let number = if code > 127 { None } else { self.scalar_register(code, width) };
        let number = number.ok_or_else(|| self.reserved(field, code))?;
        if number == sgpr::EXEC_LO || number == sgpr::EXEC_HI {
            self.inst.flags |= flag::WRITES_EXEC;
        }
        Ok(if number == sgpr::NULL { sgpr::SINK } else { number })
    }

    /// Notes that VGPRs `first..first + width` are touched; `None` past the file's end.
    pub(super) fn touch(&mut self, first: u32, width: u8) -> Option<u16> {
        let end = u16::try_from(first + u32::from(width)).ok().filter(|&end| end <= 256)?;
        self.inst.vgprs = self.inst.vgprs.max(end);
        u16::try_from(first).ok()
    }

    /// A VGPR source of `width` dwords.
    pub(super) fn vgpr(
        &mut self,
        field: &'static str,
        number: u32,
        width: u8,
    ) -> Result<Src, DecodeError> {
        let first = self.touch(number, width).ok_or_else(|| self.reserved(field, number))?;
        Ok(Src::v(first))
    }

    /// An AccVGPR: its number in sources and destinations.
    pub(super) fn acc_vgpr(
        &mut self,
        field: &'static str,
        number: u32,
        width: u8,
    ) -> Result<u16, DecodeError> {
        u16::try_from(number)
            .ok()
            .filter(|&first| first + u16::from(width) <= 256)
            .map(|first| first + 256)
            .ok_or_else(|| self.reserved(field, number))
    }

    /// A VGPR or AccVGPR: its number.
    pub(super) fn any_vgpr(
        &mut self,
        field: &'static str,
        number: u32,
        width: u8,
        acc: bool,
    ) -> Result<u16, DecodeError> {
        if acc {
            return self.acc_vgpr(field, number, width);
        }
        self.touch(number, width).ok_or_else(|| self.reserved(field, number))
    }

    /// A source from its operand code (8 bits scalar, 9 bits vector).
    pub(super) fn source(
        &mut self,
        field: &'static str,
        code: u32,
        operand: Operand,
    ) -> Result<Src, DecodeError> {
        let takes = |bit: u8| operand.class & bit != 0;
        let width = self.width(operand.width);
        match code {
            256..=511 if takes(class::VGPR) => self.vgpr(field, code - 256, width),
            0..=127 if takes(class::SGPR) => self
                .scalar_register(code, width)
                .map(Src::s)
                .ok_or_else(|| self.reserved(field, code)),
            255 if takes(class::LITERAL) => {
                let literal = self.literal()?;
                self.pools.constant(literal_constant(literal, operand.ty))
            }
            128..=208 | 240..=248 if takes(class::CONST) => {
                let bits = inline_constant(code, operand.ty);
                let bits = bits.ok_or_else(|| self.reserved(field, code))?;
                self.pools.constant(bits)
            }
            235..=239 | 251..=254 if takes(class::SGPR) && takes(class::CONST) => {
                self.special(code, operand).ok_or_else(|| self.reserved(field, code))
            }
            _ => Err(self.reserved(field, code)),
        }
    }

    fn special(&self, code: u32, operand: Operand) -> Option<Src> {
        let vector = operand.class & class::VGPR != 0;
        let special = match code {
            235 => Special::SharedBase,
            236 => Special::SharedLimit,
            237 => Special::PrivateBase,
            238 => Special::PrivateLimit,
            239 => Special::PopsExitingWaveId,
            251 => Special::Vccz,
            252 => Special::Execz,
            253 => Special::Scc,
            254 if vector && self.target.is_gfx9() && !self.target.has_unified_vgprs() => {
                Special::LdsDirect
            }
            _ => return None,
        };
        Some(Src::special(special))
    }
}
