//! The table of processors.

use core::fmt;

/// An AMD GPU processor by its EF_AMDGPU_MACH number.
///
/// Only numbers of the table exist as values: [`Processor::from_mach`] refuses others.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Processor(u8);

/// A family of processors that runs the same generic code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // the variants are the names
pub enum Generic {
    Gfx9,
    Gfx9_4,
    Gfx10_1,
    Gfx10_3,
    Gfx11,
    Gfx12,
}

struct Entry {
    mach: u8,
    name: &'static str,
    /// As KFD's gfx_target_version; 0 for a generic processor.
    version: u32,
    /// The family whose generic code it runs; for a generic processor the family it is.
    family: Option<Generic>,
    sramecc: bool,
    xnack: bool,
}

const fn entry(
    mach: u8,
    name: &'static str,
    version: u32,
    family: Option<Generic>,
    sramecc: bool,
    xnack: bool,
) -> Entry {
    Entry { mach, name, version, family, sramecc, xnack }
}

/// Source: EF_AMDGPU_MACH_* in LLVM 22's BinaryFormat/ELF.h, feature and generic tables of LLVM's
/// AMDGPU usage guide; docs/ABI.md §Code object targets.
#[rustfmt::skip]
static PROCESSORS: [Entry; 44] = {
    use Generic::*;
    const NO: bool = false;
    const YES: bool = true;
    [
        entry(0x2c, "gfx900",  90000, Some(Gfx9), NO, YES),
        entry(0x2d, "gfx902",  90002, Some(Gfx9), NO, YES),
        entry(0x2e, "gfx904",  90004, Some(Gfx9), NO, YES),
        entry(0x2f, "gfx906",  90006, Some(Gfx9), YES, YES),
        entry(0x30, "gfx908",  90008, None, YES, YES),
        entry(0x31, "gfx909",  90009, Some(Gfx9), NO, YES),
        entry(0x32, "gfx90c",  90012, Some(Gfx9), NO, YES),
        entry(0x3f, "gfx90a",  90010, None, YES, YES),
        entry(0x40, "gfx940",  90400, Some(Gfx9_4), YES, YES),
        entry(0x4b, "gfx941",  90401, Some(Gfx9_4), YES, YES),
        entry(0x4c, "gfx942",  90402, Some(Gfx9_4), YES, YES),
        entry(0x4f, "gfx950",  90500, Some(Gfx9_4), YES, YES),
        entry(0x33, "gfx1010", 100100, Some(Gfx10_1), NO, YES),
        entry(0x34, "gfx1011", 100101, Some(Gfx10_1), NO, YES),
        entry(0x35, "gfx1012", 100102, Some(Gfx10_1), NO, YES),
        entry(0x42, "gfx1013", 100103, Some(Gfx10_1), NO, YES),
        entry(0x36, "gfx1030", 100300, Some(Gfx10_3), NO, NO),
        entry(0x37, "gfx1031", 100301, Some(Gfx10_3), NO, NO),
        entry(0x38, "gfx1032", 100302, Some(Gfx10_3), NO, NO),
        entry(0x39, "gfx1033", 100303, Some(Gfx10_3), NO, NO),
        entry(0x3e, "gfx1034", 100304, Some(Gfx10_3), NO, NO),
        entry(0x3d, "gfx1035", 100305, Some(Gfx10_3), NO, NO),
        entry(0x45, "gfx1036", 100306, Some(Gfx10_3), NO, NO),
        entry(0x41, "gfx1100", 110000, Some(Gfx11), NO, NO),
        entry(0x46, "gfx1101", 110001, Some(Gfx11), NO, NO),
        entry(0x47, "gfx1102", 110002, Some(Gfx11), NO, NO),
        entry(0x44, "gfx1103", 110003, Some(Gfx11), NO, NO),
        entry(0x43, "gfx1150", 110500, Some(Gfx11), NO, NO),
        entry(0x4a, "gfx1151", 110501, Some(Gfx11), NO, NO),
        entry(0x55, "gfx1152", 110502, Some(Gfx11), NO, NO),
        entry(0x58, "gfx1153", 110503, Some(Gfx11), NO, NO),
        entry(0x5d, "gfx1170", 110700, None, NO, NO),
        entry(0x5e, "gfx1171", 110701, None, NO, NO),
        entry(0x5c, "gfx1172", 110702, None, NO, NO),
        entry(0x48, "gfx1200", 120000, Some(Gfx12), NO, NO),
        entry(0x4e, "gfx1201", 120001, Some(Gfx12), NO, NO),
        entry(0x49, "gfx1250", 120500, None, YES, YES),
        entry(0x5a, "gfx1251", 120501, None, YES, YES),
        entry(0x51, "gfx9-generic",    0, Some(Gfx9), NO, YES),
        entry(0x5f, "gfx9-4-generic",  0, Some(Gfx9_4), YES, YES),
        entry(0x52, "gfx10-1-generic", 0, Some(Gfx10_1), NO, YES),
        entry(0x53, "gfx10-3-generic", 0, Some(Gfx10_3), NO, NO),
        entry(0x54, "gfx11-generic",   0, Some(Gfx11), NO, NO),
        entry(0x59, "gfx12-generic",   0, Some(Gfx12), NO, NO),
    ]
};

impl Processor {
    /// The processor with this EF_AMDGPU_MACH number; `None` when it is not in the table.
    pub fn from_mach(mach: u8) -> Option<Self> {
        PROCESSORS.iter().any(|entry| entry.mach == mach).then_some(Self(mach))
    }

    /// The processor with this name, as in `gfx90a` or `gfx11-generic`.
    pub fn from_name(name: &str) -> Option<Self> {
        PROCESSORS.iter().find(|entry| entry.name == name).map(|entry| Self(entry.mach))
    }

    /// The processor with this KFD number: 90010 is gfx90a.
    pub fn from_gfx_target_version(version: u32) -> Option<Self> {
        let found = PROCESSORS.iter().find(|entry| entry.version == version && version != 0);
        found.map(|entry| Self(entry.mach))
    }

    /// All processors of the table, generic ones last.
    pub fn all() -> impl Iterator<Item = Self> {
        PROCESSORS.iter().map(|entry| Self(entry.mach))
    }

    fn entry(self) -> &'static Entry {
        // Values are only made from table rows, so the search succeeds; the first row is a harmless
        // answer for the type checker.
        let [first, ..] = &PROCESSORS;
        PROCESSORS.iter().find(|entry| entry.mach == self.0).unwrap_or(first)
    }

    /// EF_AMDGPU_MACH.
    pub const fn mach(self) -> u8 {
        self.0
    }

    /// LLVM's name.
    pub fn name(self) -> &'static str {
        self.entry().name
    }

    /// Major, minor and step: (9, 0, 10) is gfx90a. `None` for a generic processor.
    pub fn version(self) -> Option<(u32, u32, u32)> {
        let version = self.entry().version;
        (version != 0).then_some((version / 10000, version / 100 % 100, version % 100))
    }

    /// Major version: 9, 10, 11 or 12, for generic processors too.
    pub fn major(self) -> u32 {
        match (self.version(), self.entry().family) {
            (Some((major, ..)), _) => major,
            (None, Some(Generic::Gfx10_1 | Generic::Gfx10_3)) => 10,
            (None, Some(Generic::Gfx11)) => 11,
            (None, Some(Generic::Gfx12)) => 12,
            (None, _) => 9,
        }
    }

    /// The family this processor is the generic target of.
    pub fn generic(self) -> Option<Generic> {
        let entry = self.entry();
        if entry.version == 0 { entry.family } else { None }
    }

    /// The family whose generic code runs on this processor.
    pub fn family(self) -> Option<Generic> {
        self.entry().family
    }

    /// Whether sramecc can be on or off here.
    pub fn supports_sramecc(self) -> bool {
        self.entry().sramecc
    }

    /// Whether xnack can be on or off here.
    pub fn supports_xnack(self) -> bool {
        self.entry().xnack
    }

    /// Whether VGPRs and AccVGPRs are one file of 512 (gfx90a, gfx94x, gfx950).
    pub fn has_unified_vgprs(self) -> bool {
        self.entry().name == "gfx90a" || self.entry().family == Some(Generic::Gfx9_4)
    }

    /// Whether scratch needs no SGPRs (gfx94x, gfx950, gfx11 and later).
    pub fn has_architected_flat_scratch(self) -> bool {
        self.major() >= 11 || self.entry().family == Some(Generic::Gfx9_4)
    }

    /// Whether kernels may be wave32 (gfx10 and later).
    pub fn has_wave32(self) -> bool {
        self.major() >= 10
    }
}

impl Generic {
    /// Name of the generic processor of this family.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gfx9 => "gfx9-generic",
            Self::Gfx9_4 => "gfx9-4-generic",
            Self::Gfx10_1 => "gfx10-1-generic",
            Self::Gfx10_3 => "gfx10-3-generic",
            Self::Gfx11 => "gfx11-generic",
            Self::Gfx12 => "gfx12-generic",
        }
    }
}

impl fmt::Display for Processor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Debug for Processor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Processor({})", self.name())
    }
}
