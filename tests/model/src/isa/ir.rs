//! The decoded instruction: what the decoder produces and the executor runs.
//!
//! Register numbers are canonical, the same for every target: see [`sgpr`]. Constants are resolved
//! to bits per operand type at decode and live in a pool, so that a source is four bytes.

/// Numbers of the scalar file as the executor keeps it (256 entries, so a `u8` index needs no
/// check). 0..=105 are the ordinary SGPRs (102..=105 are FLAT_SCRATCH and XNACK_MASK on gfx9).
pub mod sgpr {
    /// Low half of the vector condition code.
    pub const VCC_LO: u8 = 106;
    /// High half.
    pub const VCC_HI: u8 = 107;
    /// First of 16 trap temporaries.
    pub const TTMP0: u8 = 108;
    /// M0, on every target (gfx11 encodes it as 125; the decoder renumbers).
    pub const M0: u8 = 124;
    /// Low half of the execution mask.
    pub const EXEC_LO: u8 = 126;
    /// High half. Meaningless to lanes in wave32, but still a register.
    pub const EXEC_HI: u8 = 127;
    /// Reads as zero; never written. gfx11's NULL as a source (and the word after it).
    pub const NULL: u8 = 128;
    /// Swallows writes; never read. gfx11's NULL as a destination, 16 words for wide loads.
    pub const SINK: u8 = 132;
    /// Flat scratch base where it is architected (gfx942, gfx11): two words set at launch.
    pub const FLAT_SCRATCH: u8 = 148;
    /// XNACK_MASK-like hidden state may live from here up; the executor owns these.
    pub const PRIVATE: u8 = 160;
}

/// A source operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Src(u32);

/// A [`Src`], unpacked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SrcKind {
    /// Scalar register, canonical number.
    S(u8),
    /// Vector register; on targets with AccVGPRs, 256.. is the accumulation file (gfx908) or is
    /// resolved at run time by adding ACCUM_OFFSET (gfx90a, gfx942).
    V(u16),
    /// Index into the constant pool of the code run.
    K(u32),
    /// A value the executor computes on read.
    Special(Special),
}

/// Sources whose value is state rather than a register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
#[allow(missing_docs)] // AMD's operand names
pub enum Special {
    SharedBase,
    SharedLimit,
    PrivateBase,
    PrivateLimit,
    PopsExitingWaveId,
    Vccz,
    Execz,
    Scc,
    LdsDirect,
}

impl Src {
    const TAG: u32 = 30;

    /// A scalar register.
    pub const fn s(n: u8) -> Self {
        Self(n as u32)
    }

    /// A vector register.
    pub const fn v(n: u16) -> Self {
        Self(1 << Self::TAG | n as u32)
    }

    /// A pool constant.
    pub const fn k(index: u32) -> Self {
        Self(2 << Self::TAG | index & ((1 << Self::TAG) - 1))
    }

    /// A special value.
    pub const fn special(special: Special) -> Self {
        Self(3 << Self::TAG | special as u32)
    }

    /// Unpacks.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // the tag says which width was stored
    pub const fn kind(self) -> SrcKind {
        match self.0 >> Self::TAG {
            0 => SrcKind::S(self.0 as u8),
            1 => SrcKind::V(self.0 as u16),
            2 => SrcKind::K(self.0 & ((1 << Self::TAG) - 1)),
            _ => SrcKind::Special(match self.0 as u8 {
                0 => Special::SharedBase,
                1 => Special::SharedLimit,
                2 => Special::PrivateBase,
                3 => Special::PrivateLimit,
                4 => Special::PopsExitingWaveId,
                5 => Special::Vccz,
                6 => Special::Execz,
                7 => Special::Scc,
                _ => Special::LdsDirect,
            }),
        }
    }
}

/// Bits of [`Inst::flags`].
pub mod flag {
    /// Has an entry in the modifier table ([`super::Inst::mods`]): take the slow path.
    pub const MODS: u16 = 1 << 0;
    /// Writes EXEC: the executor rebuilds its lane mask afterwards.
    pub const WRITES_EXEC: u16 = 1 << 1;
    /// Ends a block: branch, s_endpgm, s_setpc, s_trap and the like.
    pub const BLOCK_END: u16 = 1 << 2;
    /// `dst` is a scalar register (SOPx, SMEM, v_readlane, VOPC in e64 form uses `sdst`).
    pub const DST_SGPR: u16 = 1 << 3;
    /// Memory: coherent beyond the CU (glc, slc, dlc, sc0, sc1, nt). Atomics: returns the old value.
    pub const GLC: u16 = 1 << 4;
    /// Memory: further cache bits (slc, dlc, sc1, nt) set; only the fences care.
    pub const CACHE: u16 = 1 << 5;
    /// FLAT and GLOBAL: an SGPR base is present (in `src[2]`). SCRATCH: likewise.
    pub const SADDR: u16 = 1 << 6;
    /// SCRATCH and FLAT: a VGPR address is present (in `src[0]`).
    pub const VADDR: u16 = 1 << 7;
    /// DS: GDS bit.
    pub const GDS: u16 = 1 << 8;
    /// MUBUF/MTBUF: idxen.
    pub const IDXEN: u16 = 1 << 9;
    /// MUBUF/MTBUF: offen.
    pub const OFFEN: u16 = 1 << 10;
    /// MUBUF: lds bit; FLAT lds bit.
    pub const LDS: u16 = 1 << 11;
    /// The data operand (`dst` of a load, `src[1]` of a store) is an AccVGPR (gfx90a, gfx942).
    pub const ACC: u16 = 1 << 12;
    /// SMEM: the offset comes from an SGPR (`src[1]`) on top of `imm`.
    pub const SOFFSET: u16 = 1 << 13;
    /// VOPD: this instruction is the X half; the Y half is the next entry in the run and has zero
    /// words.
    pub const VOPD_X: u16 = 1 << 14;
    /// Source operands are 16-bit true16 halves described in the modifiers' opsel (gfx11).
    pub const TRUE16: u16 = 1 << 15;
}

/// Index type of [`Inst::dst`] when the destination is a VGPR: the number itself (AccVGPRs from 256).
///
/// Operand slots by format, so that executor and decoder agree:
///
/// | format | dst | sdst | src\[0\] | src\[1\] | src\[2\] | imm |
/// | --- | --- | --- | --- | --- | --- | --- |
/// | SOP1 SOP2 | sdst | | ssrc0 | ssrc1 | | |
/// | SOPC | | | ssrc0 | ssrc1 | | |
/// | SOPK | sdst | | sdst again | | | simm16, sign-extended unless the opcode says unsigned; s_setreg_imm32: src\[0\] is the literal |
/// | SOPP | | | | | | simm16 sign-extended; branches: byte offset from the next instruction |
/// | SMEM | sdata | | sbase (pair or V#) | soffset with flag SOFFSET; store data in src\[2\] | | signed byte offset |
/// | VOP1 VOP2 VOP3 VOP3P | vdst | carry-out or VOP3SD sdst (VCC in e32) | src0 | src1 | src2; carry-in (VCC in e32); v_fmac/v_mac/v_dot2c: vdst again; v_madmk/v_fmamk: src1 is K and src2 is vsrc1, v_madak/v_fmaak: src2 is K | |
/// | VOPC | | sdst (VCC in e32; EXEC for gfx11 v_cmpx; gfx9 v_cmpx writes both) | src0 | src1 | | |
/// | DS | vdst | | addr | data0 | data1 | offset0 \| offset1 << 8 (both 8 bits), or the 16-bit offset |
/// | FLAT GLOBAL SCRATCH | vdst | | vaddr | vdata | saddr | signed byte offset |
/// | MUBUF MTBUF | vdata | soffset is src\[2\] | vaddr | V# (first SGPR) | soffset | unsigned byte offset; MTBUF format in `mods` |
///
/// `v_readlane`, `v_readfirstlane`: `dst` is the SGPR, with flag DST_SGPR.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))] // an index into a run is a shift
pub struct Inst {
    /// Semantic: canonical (gfx11 spelling where names differ).
    pub op: super::Op,
    /// Bits of [`flag`].
    pub flags: u16,
    /// Destination register.
    pub dst: u16,
    /// Scalar destination beside it.
    pub sdst: u8,
    /// Length in dwords; 0 for the Y half of a VOPD pair.
    pub words: u8,
    /// Index into the modifier table, when [`flag::MODS`].
    pub mods: u16,
    /// One more than the highest architected VGPR touched, widths included; 0 when none. Checked
    /// against the wave's allocation before execution.
    pub vgprs: u16,
    /// Sources.
    pub src: [Src; 3],
    /// Immediate.
    pub imm: i32,
}

/// Rare parts of an instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mods {
    /// Negate source i: bit i. VOP3P: neg_lo.
    pub neg: u8,
    /// VOP3P: neg_hi. Mix operations: absolute value.
    pub neg_hi: u8,
    /// Absolute value of source i: bit i.
    pub abs: u8,
    /// Half select: bit i for source i, bit 3 for the destination. VOP3P: op_sel (low result).
    pub opsel: u8,
    /// VOP3P: op_sel_hi (high result). An instruction without [`flag::MODS`] has all ones here if it
    /// is packed, and zero if it is a mix operation (v_fma_mix*, v_mad_mix*).
    pub opsel_hi: u8,
    /// 0 none, 1 times 2, 2 times 4, 3 half.
    pub omod: u8,
    /// Clamp result.
    pub clamp: bool,
    /// Data-parallel primitive on source 0.
    pub dpp: Option<Dpp>,
    /// Sub-dword addressing (gfx9).
    pub sdwa: Option<Sdwa>,
    /// MFMA: cbsz, abid, blgp. MTBUF: format (gfx9: dfmt | nfmt << 4), tfe. MUBUF: 0, tfe.
    pub matrix: [u8; 3],
}

/// DPP controls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dpp {
    /// DPP16: raw 9-bit control with masks.
    Row {
        /// `dpp_ctrl`.
        ctrl: u16,
        /// Rows (of 16 lanes) that are written.
        row_mask: u8,
        /// Banks (of 4 lanes) that are written.
        bank_mask: u8,
        /// Out-of-range sources read 0 instead of leaving the lane unwritten.
        bound_ctrl: bool,
        /// Fetch inactive lanes (gfx11).
        fi: bool,
    },
    /// DPP8: eight 3-bit selectors.
    Eight {
        /// Selectors, lane 0 in the low bits.
        select: u32,
        /// Fetch inactive lanes.
        fi: bool,
    },
}

/// SDWA controls (gfx9). Selectors: 0..=3 byte, 4..=5 word, 6 dword.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sdwa {
    /// Source selectors.
    pub src_sel: [u8; 2],
    /// Sign-extend source i.
    pub sext: [bool; 2],
    /// Destination selector.
    pub dst_sel: u8,
    /// 0 pad with zero, 1 sign-extend, 2 preserve.
    pub dst_unused: u8,
}
