//! The decoder: instruction words to [`Inst`].
//!
//! Keyed by target, because opcode numbers mean different things on different ones. Fields that the
//! hardware ignores are ignored here too (a current LLVM fills unused VOP3 sources with 0x80);
//! codes that the hardware reserves are an error, which in a wave is an illegal instruction.
//! docs/ABI.md §Instruction encodings.

mod memory;
mod operand;
pub(super) use operand::inline_constant;
mod scalar;
mod valu;
mod vop3;

use super::ir::{Inst, Mods, Src, flag};
use super::sig::{self, Format, Sig};
use super::{Op, ir::sgpr};
use crate::Target;

/// Constants and modifiers that decoded instructions index. Entries are not repeated.
#[derive(Clone, Debug, Default)]
pub struct Pools {
    /// Constants, indexed by [`super::ir::SrcKind::K`]. A 32-bit constant is in the low word.
    pub consts: Vec<u64>,
    /// Modifiers, indexed by [`Inst::mods`].
    pub mods: Vec<Mods>,
}

impl Pools {
    fn constant(&mut self, bits: u64) -> Result<Src, DecodeError> {
        let found = self.consts.iter().position(|&old| old == bits);
        let index = found.unwrap_or_else(|| {
            self.consts.push(bits);
            self.consts.len() - 1
        });
        u32::try_from(index)
            .ok()
            .filter(|&index| index < 1 << 30)
            .map(Src::k)
            .ok_or(DecodeError::PoolFull)
    }

    fn modifiers(&mut self, mods: Mods) -> Result<u16, DecodeError> {
        let found = self.mods.iter().position(|&old| old == mods);
        let index = found.unwrap_or_else(|| {
            self.mods.push(mods);
            self.mods.len() - 1
        });
        u16::try_from(index).map_err(|_| DecodeError::PoolFull)
    }
}

/// A decoded instruction, or a pair of them.
#[derive(Clone, Copy, Debug)]
pub struct Decoded {
    /// The instruction; the X half of a dual-issue pair.
    pub inst: Inst,
    /// The Y half of a dual-issue pair (VOPD), with zero words.
    pub pair: Option<Inst>,
    pub(super) shape: Shape,
}

/// What the printer needs to know beside the instruction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) format: Format,
    pub(super) sig: &'static Sig,
    /// Signature of the Y half.
    pub(super) pair: Option<&'static Sig>,
}

/// Why words are not an instruction that can run. `words` is the length to skip, in dwords.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The code ends inside the instruction.
    #[error("the code ends {missing} words before the instruction does")]
    Truncated {
        /// Words missing.
        missing: usize,
    },
    /// No format has these leading bits.
    #[error("no instruction format starts with {word:#010x}")]
    UnknownFormat {
        /// First word.
        word: u32,
    },
    /// The format has no such opcode on this target.
    #[error("{format} has no opcode {opcode:#x}", format = .format.name())]
    UnknownOpcode {
        /// Format.
        format: Format,
        /// Opcode number.
        opcode: u16,
        /// Length in dwords.
        words: u8,
    },
    /// An operand or control field holds a reserved code.
    #[error("{op}: reserved code {code:#x} in field {field}", op = .op.name())]
    ReservedCode {
        /// Operation.
        op: Op,
        /// Field, in AMD's spelling.
        field: &'static str,
        /// What it held.
        code: u32,
        /// Length in dwords.
        words: u8,
    },
    /// A graphics instruction: image, export, interpolation.
    #[error("{format} instructions are not compute", format = .format.name())]
    Graphics {
        /// Format.
        format: Format,
        /// Length in dwords.
        words: u8,
    },
    /// More distinct constants or modifiers than a pool can index.
    #[error("the pool of constants or modifiers is full")]
    PoolFull,
}

impl DecodeError {
    /// How many dwords a linear sweep should skip.
    pub fn words(&self) -> usize {
        match *self {
            Self::UnknownOpcode { words, .. }
            | Self::ReservedCode { words, .. }
            | Self::Graphics { words, .. } => usize::from(words),
            Self::Truncated { .. } | Self::UnknownFormat { .. } | Self::PoolFull => 1,
        }
    }
}

/// Decodes the instruction at the start of `words` as `target` does in waves of `wave_size` lanes.
///
/// # Errors
/// Any [`DecodeError`]; in a wave each is an illegal instruction, but for `Truncated`, where the
/// fetch of the next word may fault first.
pub fn decode(
    target: Target,
    wave_size: u32,
    words: &[u32],
    pools: &mut Pools,
) -> Result<Decoded, DecodeError> {
    let &first = words.first().ok_or(DecodeError::Truncated { missing: 1 })?;
    let format = format_of(target, first).ok_or(DecodeError::UnknownFormat { word: first })?;
    let mut decoder = Decoder::new(target, wave_size, words, pools);
    let sig = match format {
        Format::Sop1 => decoder.sop1(first),
        Format::Sop2 => decoder.sop2(first),
        Format::Sopc => decoder.sopc(first),
        Format::Sopk => decoder.sopk(first),
        Format::Sopp => decoder.sopp(first),
        Format::Smem => decoder.smem(first),
        Format::Vop1 | Format::Vop2 | Format::Vopc => decoder.vop_e32(format, first),
        Format::Vop3 => decoder.vop3(first),
        Format::Vop3p => decoder.vop3p(first),
        Format::VopdX | Format::VopdY => return decoder.vopd(first),
        Format::Ds => decoder.ds(first),
        Format::Flat | Format::Scratch | Format::Global => decoder.flat(format, first),
        Format::Mubuf | Format::Mtbuf => decoder.buffer(format, first),
        Format::Mimg => {
            // gfx11: bit 0 says that a third word holds more addresses.
            let words = if target.is_gfx11() && first & 1 != 0 { 3 } else { 2 };
            Err(DecodeError::Graphics { format, words })
        }
        Format::Exp => Err(DecodeError::Graphics { format, words: 2 }),
        Format::Vinterp => {
            Err(DecodeError::Graphics { format, words: if target.is_gfx9() { 1 } else { 2 } })
        }
        Format::Ldsdir => Err(DecodeError::Graphics { format, words: 1 }),
    }?;
    Ok(Decoded { inst: decoder.inst, pair: None, shape: Shape { format, sig, pair: None } })
}

/// The format that the leading bits of an instruction select.
pub(super) fn format_of(target: Target, word: u32) -> Option<Format> {
    if word >> 31 == 0 {
        return Some(match word >> 25 {
            0x3f => Format::Vop1,
            0x3e => Format::Vopc,
            _ => Format::Vop2,
        });
    }
    if word >> 30 == 0b10 {
        return Some(match (word >> 23, word >> 28) {
            (0x17d, _) => Format::Sop1,
            (0x17e, _) => Format::Sopc,
            (0x17f, _) => Format::Sopp,
            (_, 0b1011) => Format::Sopk,
            _ => Format::Sop2,
        });
    }
    let gfx9 = target.is_gfx9();
    Some(match word >> 26 {
        0x30 if gfx9 => Format::Smem,
        0x31 if gfx9 => Format::Exp,
        0x34 if gfx9 && word >> 23 == 0x1a7 => Format::Vop3p,
        0x34 if gfx9 => Format::Vop3,
        0x35 if gfx9 => Format::Vinterp,
        0x32 if !gfx9 => Format::VopdX,
        0x33 if !gfx9 => match word >> 24 {
            0xcc if word & 1 << 23 == 0 => Format::Vop3p,
            0xcd => Format::Vinterp,
            0xce => Format::Ldsdir,
            _ => return None,
        },
        0x35 => Format::Vop3,
        0x36 => Format::Ds,
        0x37 => {
            let segment = if gfx9 { word >> 14 } else { word >> 16 };
            match segment & 3 {
                0 => Format::Flat,
                1 => Format::Scratch,
                2 => Format::Global,
                _ => return None,
            }
        }
        0x38 => Format::Mubuf,
        0x3a => Format::Mtbuf,
        0x3c => Format::Mimg,
        0x3d if !gfx9 => Format::Smem,
        0x3e if !gfx9 => Format::Exp,
        _ => return None,
    })
}

/// State of one instruction's decoding.
struct Decoder<'a> {
    target: Target,
    wave_size: u32,
    words: &'a [u32],
    pools: &'a mut Pools,
    inst: Inst,
    mods: Mods,
    /// Modifiers must be stored even if they equal the default.
    keep_mods: bool,
    literal: Option<u32>,
}

impl<'a> Decoder<'a> {
    fn new(target: Target, wave_size: u32, words: &'a [u32], pools: &'a mut Pools) -> Self {
        let inst = Inst {
            op: Op::SNop,
            flags: 0,
            dst: 0,
            sdst: 0,
            words: 1,
            mods: 0,
            vgprs: 0,
            src: [Src::default(); 3],
            imm: 0,
        };
        let mods = Mods::default();
        Self { target, wave_size, words, pools, inst, mods, keep_mods: false, literal: None }
    }

    /// Starts an instruction of `length` words without literal, DPP or SDWA word.
    fn begin(
        &mut self,
        format: Format,
        opcode: u32,
        length: u8,
    ) -> Result<&'static Sig, DecodeError> {
        self.inst.words = length;
        let opcode = u16::try_from(opcode).unwrap_or(u16::MAX);
        let unknown = DecodeError::UnknownOpcode { format, opcode, words: length };
        let (op, sig) = format.lookup(self.target, opcode).ok_or(unknown)?;
        self.inst.op = op;
        if sig.has(sig::flag::END) {
            self.inst.flags |= flag::BLOCK_END;
        }
        if sig.has(sig::flag::EXEC) {
            self.inst.flags |= flag::WRITES_EXEC;
        }
        Ok(sig)
    }

    /// Word `index` of the instruction.
    fn word(&self, index: usize) -> Result<u32, DecodeError> {
        let missing = (index + 1).saturating_sub(self.words.len());
        self.words.get(index).copied().ok_or(DecodeError::Truncated { missing })
    }

    /// Takes one more word: DPP, SDWA or literal.
    fn extra_word(&mut self) -> Result<u32, DecodeError> {
        let word = self.word(usize::from(self.inst.words))?;
        self.inst.words += 1;
        Ok(word)
    }

    /// The literal, which all operands share.
    fn literal(&mut self) -> Result<u32, DecodeError> {
        if let Some(literal) = self.literal {
            return Ok(literal);
        }
        let literal = self.extra_word()?;
        self.literal = Some(literal);
        Ok(literal)
    }

    fn reserved(&self, field: &'static str, code: u32) -> DecodeError {
        DecodeError::ReservedCode { op: self.inst.op, field, code, words: self.inst.words }
    }

    /// Stores the modifiers, if there are any.
    fn store_mods(&mut self) -> Result<(), DecodeError> {
        if self.keep_mods || self.mods != Mods::default() {
            self.inst.mods = self.pools.modifiers(self.mods)?;
            self.inst.flags |= flag::MODS;
        }
        Ok(())
    }

    /// VCC as a source or a destination.
    const VCC: u8 = sgpr::VCC_LO;
}

/// The low eight bits.
#[allow(clippy::cast_possible_truncation)] // masked
const fn low8(value: u32) -> u8 {
    (value & 0xff) as u8
}

/// Sign-extends the low `bits` bits.
#[allow(clippy::cast_possible_wrap)] // reinterprets a field as signed
const fn signed(value: u32, bits: u32) -> i32 {
    ((value << (32 - bits)) as i32) >> (32 - bits)
}

#[cfg(test)]
mod tests;
