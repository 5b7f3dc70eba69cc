//! What the generated tables say of an opcode: its operation and the shape of its operands.

use super::Op;
use super::generated::sigs::SIGS;
use super::generated::{memory, scalar, vector, vop3};
use crate::Target;

/// How an inline constant or a literal becomes bits. docs/ABI.md §Constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ty {
    /// No operand.
    None,
    /// 32 bits, and wider register groups of 32-bit elements: floats as f32.
    W32,
    /// 16-bit float: floats as f16 in the low half.
    F16,
    /// 16-bit integer: floats as f32, like hardware.
    I16,
    /// bfloat16.
    Bf16,
    /// Pair of f16: floats as f16 in the low half.
    Pf16,
    /// Pair of bfloat16.
    Pbf16,
    /// f16 where `op_sel_hi` of the source is set, else f32.
    Mix,
    /// 64-bit float: a literal is the high word.
    F64,
    /// 64-bit signed integer: literals are sign-extended.
    I64,
    /// Other 64-bit: literals are zero-extended.
    U64,
    /// One bit per lane.
    Mask,
}

/// Bits of [`Operand::class`].
pub(crate) mod class {
    /// Takes a VGPR.
    pub(crate) const VGPR: u8 = 1;
    /// Takes a scalar register or a special value.
    pub(crate) const SGPR: u8 = 2;
    /// Takes an inline constant.
    pub(crate) const CONST: u8 = 4;
    /// Takes a literal.
    pub(crate) const LITERAL: u8 = 8;
    /// VGPR number of 7 bits; the eighth selects the high half (gfx11, 16-bit operands).
    pub(crate) const HALF: u8 = 16;
}

/// Bits of [`Sig::flags`].
pub(crate) mod flag {
    /// A DPP16 form exists.
    pub(crate) const DPP: u32 = 1 << 0;
    /// A DPP8 form exists.
    pub(crate) const DPP8: u32 = 1 << 1;
    /// An SDWA form exists.
    pub(crate) const SDWA: u32 = 1 << 2;
    /// SDWA: sources may be sign-extended (integer operation).
    pub(crate) const SEXT: u32 = 1 << 3;
    /// VOP3: bits 14:8 are a scalar destination. VOP2: VCC is one.
    pub(crate) const SDST: u32 = 1 << 4;
    /// The destination is a source too, in slot 2.
    pub(crate) const TIED: u32 = 1 << 5;
    /// A literal is source 1 and the second register field is source 2. SOPK: it is source 0.
    pub(crate) const LITERAL_1: u32 = 1 << 6;
    /// A literal is source 2.
    pub(crate) const LITERAL_2: u32 = 1 << 7;
    /// The 16-bit destination is a half (gfx11 VOP1, VOP2).
    pub(crate) const DST_HALF: u32 = 1 << 8;
    /// Matrix operation: AccVGPR bits and cbsz, abid, blgp.
    pub(crate) const MFMA: u32 = 1 << 9;
    /// The destination is an AccVGPR.
    pub(crate) const ACC_DST: u32 = 1 << 10;
    /// Source 0 is an AccVGPR.
    pub(crate) const ACC_SRC: u32 = 1 << 11;
    /// Parameter interpolation: never in compute.
    pub(crate) const GRAPHICS: u32 = 1 << 12;
    /// SOPK: the immediate is unsigned.
    pub(crate) const UNSIGNED: u32 = 1 << 13;
    /// The immediate is a branch distance in dwords.
    pub(crate) const BRANCH: u32 = 1 << 14;
    /// Memory atomic: writes its destination only with glc (sc0).
    pub(crate) const ATOMIC: u32 = 1 << 15;
    /// Atomic that always returns.
    pub(crate) const RETURNS: u32 = 1 << 16;
    /// Loads into LDS.
    pub(crate) const LDS: u32 = 1 << 17;
    /// DS: two 8-bit offsets.
    pub(crate) const OFFSET2: u32 = 1 << 18;
    /// DS: exists only with the GDS bit.
    pub(crate) const GDS_ONLY: u32 = 1 << 19;
    /// Writes EXEC without naming it.
    pub(crate) const EXEC: u32 = 1 << 20;
    /// LLVM appends `_e32` or `_e64` to the mnemonic, because both forms exist.
    pub(crate) const SUFFIX: u32 = 1 << 22;
    /// Ends a straight run.
    pub(crate) const END: u32 = 1 << 21;
}

/// Shape of one source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Operand {
    /// Width in dwords; [`Sig::MASK`] for one bit per lane; 0 for none.
    pub(crate) width: u8,
    /// Bits of [`class`].
    pub(crate) class: u8,
    /// Constant rule.
    pub(crate) ty: Ty,
}

impl Operand {
    /// No operand.
    pub(crate) const NONE: Self = Self::new(0, 0, Ty::None);

    /// A source shape.
    pub(crate) const fn new(width: u8, class: u8, ty: Ty) -> Self {
        Self { width, class, ty }
    }

    /// Whether there is an operand at all.
    pub(crate) const fn exists(self) -> bool {
        self.width != 0
    }
}

/// Shape of an instruction's operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sig {
    dst: u8,
    /// Width of the scalar destination beside `dst`: 0 or [`Sig::MASK`].
    pub(crate) sdst: u8,
    /// Sources.
    pub(crate) src: [Operand; 3],
    /// Modifier bits that mean something: 0..=2 abs (VOP3P neg_hi), 3..=6 op_sel (VOP3P bit 6:
    /// op_sel_hi of source 2), 7 clamp, 8..=9 omod (VOP3P op_sel_hi), 10..=12 neg.
    pub(crate) mods: u16,
    /// Bits of [`flag`].
    pub(crate) flags: u32,
}

impl Sig {
    /// Width that stands for one bit per lane: one dword in wave32, two in wave64.
    pub(crate) const MASK: u8 = 0x7f;
    const SCALAR: u8 = 0x80;

    /// A signature. `dst` is the width of the destination in dwords, with bit 7 when scalar.
    pub(crate) const fn new(dst: u8, sdst: u8, src: [Operand; 3], mods: u16, flags: u32) -> Self {
        Self { dst, sdst, src, mods, flags }
    }

    /// Width of the destination in dwords, 0 when none.
    pub(crate) const fn dst_width(&self) -> u8 {
        self.dst & !Self::SCALAR
    }

    /// Whether the destination is scalar.
    pub(crate) const fn dst_is_scalar(&self) -> bool {
        self.dst & Self::SCALAR != 0
    }

    /// Whether a bit of [`flag`] is set.
    pub(crate) const fn has(&self, bit: u32) -> bool {
        self.flags & bit != 0
    }
}

/// One opcode number: what it is on which targets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    opcode: u16,
    targets: u16,
    op: Op,
    sig: u16,
}

impl Row {
    /// `targets` has bit i for `Target::ALL[i]`; `sig` indexes the signatures.
    pub(crate) const fn new(opcode: u16, targets: u16, op: Op, sig: u16) -> Self {
        Self { opcode, targets, op, sig }
    }
}

/// Instruction formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)] // AMD's names
pub enum Format {
    Sop1,
    Sop2,
    Sopc,
    Sopk,
    Sopp,
    Smem,
    Vop1,
    Vop2,
    Vopc,
    Vop3,
    Vop3p,
    /// Dual issue, first half.
    VopdX,
    /// Dual issue, second half.
    VopdY,
    Ds,
    Flat,
    Scratch,
    Global,
    Mubuf,
    Mtbuf,
    /// Image; not compute here.
    Mimg,
    /// Export; graphics.
    Exp,
    /// Interpolation (VINTRP, VINTERP); graphics.
    Vinterp,
    /// LDS parameter load; graphics.
    Ldsdir,
}

impl Format {
    /// The formats with compute operations, in the order of the instruction set documents.
    pub const COMPUTE: [Self; 19] = [
        Self::Sop1,
        Self::Sop2,
        Self::Sopc,
        Self::Sopk,
        Self::Sopp,
        Self::Smem,
        Self::Vop1,
        Self::Vop2,
        Self::Vopc,
        Self::Vop3,
        Self::Vop3p,
        Self::VopdX,
        Self::VopdY,
        Self::Ds,
        Self::Flat,
        Self::Scratch,
        Self::Global,
        Self::Mubuf,
        Self::Mtbuf,
    ];

    /// AMD's name of the format.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sop1 => "SOP1",
            Self::Sop2 => "SOP2",
            Self::Sopc => "SOPC",
            Self::Sopk => "SOPK",
            Self::Sopp => "SOPP",
            Self::Smem => "SMEM",
            Self::Vop1 => "VOP1",
            Self::Vop2 => "VOP2",
            Self::Vopc => "VOPC",
            Self::Vop3 => "VOP3",
            Self::Vop3p => "VOP3P",
            Self::VopdX => "VOPDX",
            Self::VopdY => "VOPDY",
            Self::Ds => "DS",
            Self::Flat => "FLAT",
            Self::Scratch => "SCRATCH",
            Self::Global => "GLOBAL",
            Self::Mubuf => "MUBUF",
            Self::Mtbuf => "MTBUF",
            Self::Mimg => "MIMG",
            Self::Exp => "EXP",
            Self::Vinterp => "VINTERP",
            Self::Ldsdir => "LDSDIR",
        }
    }

    fn rows(self) -> &'static [Row] {
        match self {
            Self::Sop1 => &scalar::SOP1,
            Self::Sop2 => &scalar::SOP2,
            Self::Sopc => &scalar::SOPC,
            Self::Sopk => &scalar::SOPK,
            Self::Sopp => &scalar::SOPP,
            Self::Smem => &scalar::SMEM,
            Self::Vop1 => &vector::VOP1,
            Self::Vop2 => &vector::VOP2,
            Self::Vopc => &vector::VOPC,
            Self::Vop3 => &vop3::VOP3,
            Self::Vop3p => &vector::VOP3P,
            Self::VopdX => &vector::VOPDX,
            Self::VopdY => &vector::VOPDY,
            Self::Ds => &memory::DS,
            Self::Flat => &memory::FLAT,
            Self::Scratch => &memory::SCRATCH,
            Self::Global => &memory::GLOBAL,
            Self::Mubuf => &memory::MUBUF,
            Self::Mtbuf => &memory::MTBUF,
            Self::Mimg | Self::Exp | Self::Vinterp | Self::Ldsdir => &[],
        }
    }

    /// Finds an opcode number.
    pub(crate) fn lookup(self, target: Target, opcode: u16) -> Option<(Op, &'static Sig)> {
        let rows = self.rows();
        let start = rows.partition_point(|row| row.opcode < opcode);
        let row = rows
            .get(start..)?
            .iter()
            .take_while(|row| row.opcode == opcode)
            .find(|row| row.targets & 1 << target as u16 != 0)?;
        Some((row.op, SIGS.get(usize::from(row.sig))?))
    }

    /// Every opcode number of this format on `target`, in order.
    pub fn opcodes(self, target: Target) -> impl Iterator<Item = (u16, Op)> {
        self.rows()
            .iter()
            .filter(move |row| row.targets & 1 << target as u16 != 0)
            .map(|row| (row.opcode, row.op))
    }
}
