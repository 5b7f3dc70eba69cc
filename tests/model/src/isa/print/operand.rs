//! Names of registers and constants.

use super::super::ir::{Special, Src, SrcKind, sgpr};
use super::super::sig::{Operand, Sig, Ty};
use super::Printer;

impl Printer<'_> {
    pub(super) fn width(&self, width: u8) -> u16 {
        if width == Sig::MASK {
            return if self.wave_size == 64 { 2 } else { 1 };
        }
        u16::from(width.max(1))
    }

    /// A scalar register group.
    pub(super) fn sgpr_name(&self, number: u8, width: u16) -> String {
        let gfx9 = self.target.is_gfx9();
        let named = |name: &str, first: u8| {
            if width > 1 {
                name.to_owned()
            } else {
                format!("{name}_{}", if number == first { "lo" } else { "hi" })
            }
        };
        match number {
            sgpr::NULL | sgpr::SINK => "null".to_owned(),
            sgpr::M0 => "m0".to_owned(),
            106 | 107 => named("vcc", 106),
            126 | 127 => named("exec", 126),
            102 | 103 if gfx9 && width <= 2 => named("flat_scratch", 102),
            104 | 105 if gfx9 && width <= 2 => named("xnack_mask", 104),
            108..=123 => group("ttmp", u16::from(number) - 108, width),
            _ => group("s", u16::from(number), width),
        }
    }

    /// A VGPR or AccVGPR group.
    pub(super) fn vgpr_name(number: u16, width: u16) -> String {
        match number.checked_sub(256) {
            Some(acc) => group("a", acc, width),
            None => group("v", number, width),
        }
    }

    /// A source.
    pub(super) fn source_name(&self, source: Src, operand: Operand) -> String {
        let width = self.width(operand.width);
        match source.kind() {
            SrcKind::S(number) => self.sgpr_name(number, width),
            SrcKind::V(number) => Self::vgpr_name(number, width),
            SrcKind::K(index) => {
                let bits = usize::try_from(index).ok().and_then(|i| self.pools.consts.get(i));
                constant_name(bits.copied().unwrap_or(0), operand.ty)
            }
            SrcKind::Special(special) => match special {
                Special::SharedBase => "src_shared_base",
                Special::SharedLimit => "src_shared_limit",
                Special::PrivateBase => "src_private_base",
                Special::PrivateLimit => "src_private_limit",
                Special::PopsExitingWaveId => "src_pops_exiting_wave_id",
                Special::Vccz => "src_vccz",
                Special::Execz => "src_execz",
                Special::Scc => "src_scc",
                Special::LdsDirect => "src_lds_direct",
            }
            .to_owned(),
        }
    }
}

fn group(prefix: &str, first: u16, width: u16) -> String {
    if width > 1 {
        format!("{prefix}[{first}:{}]", first + width - 1)
    } else {
        format!("{prefix}{first}")
    }
}

const FLOATS: [&str; 8] = ["0.5", "-0.5", "1.0", "-1.0", "2.0", "-2.0", "4.0", "-4.0"];

/// A constant as an assembler takes it: small integers in decimal, inline floats as such, others in
/// hexadecimal.
pub(super) fn constant_name(bits: u64, ty: Ty) -> String {
    use super::super::decode::inline_constant;
    let wide = matches!(ty, Ty::F64 | Ty::I64 | Ty::U64);
    for code in 128..=208 {
        if inline_constant(code, ty) == Some(bits) {
            let value = if code <= 192 { i64::from(code) - 128 } else { 192 - i64::from(code) };
            return value.to_string();
        }
    }
    for (code, name) in (240..).zip(FLOATS) {
        if inline_constant(code, ty) == Some(bits) {
            return name.to_owned();
        }
    }
    if inline_constant(248, ty) == Some(bits) {
        return if wide { "0.15915494309189532" } else { "0.15915494" }.to_owned();
    }
    match ty {
        Ty::F64 => format!("{:#x}", bits >> 32),
        Ty::F16 | Ty::I16 | Ty::Bf16 => format!("{:#x}", bits & 0xffff),
        _ => format!("{:#x}", bits & 0xffff_ffff),
    }
}
