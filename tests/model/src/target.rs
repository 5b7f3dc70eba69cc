//! The targets the model knows.

use std::fmt;
use std::str::FromStr;

/// A GPU target by its LLVM name. Opcode tables, launch state and presets are keyed by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)] // the variants are the names
pub enum Target {
    Gfx900,
    Gfx906,
    Gfx908,
    Gfx90a,
    Gfx942,
    Gfx1100,
    Gfx1101,
    Gfx1102,
    Gfx1103,
    Gfx1150,
    Gfx1151,
}

impl Target {
    /// All targets, oldest first.
    pub const ALL: [Self; 11] = [
        Self::Gfx900,
        Self::Gfx906,
        Self::Gfx908,
        Self::Gfx90a,
        Self::Gfx942,
        Self::Gfx1100,
        Self::Gfx1101,
        Self::Gfx1102,
        Self::Gfx1103,
        Self::Gfx1150,
        Self::Gfx1151,
    ];

    /// LLVM's name, as `-mcpu` takes it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gfx900 => "gfx900",
            Self::Gfx906 => "gfx906",
            Self::Gfx908 => "gfx908",
            Self::Gfx90a => "gfx90a",
            Self::Gfx942 => "gfx942",
            Self::Gfx1100 => "gfx1100",
            Self::Gfx1101 => "gfx1101",
            Self::Gfx1102 => "gfx1102",
            Self::Gfx1103 => "gfx1103",
            Self::Gfx1150 => "gfx1150",
            Self::Gfx1151 => "gfx1151",
        }
    }

    /// Whether this is a gfx9 (GCN/CDNA) target. The others are gfx11 (RDNA3).
    pub const fn is_gfx9(self) -> bool {
        matches!(self, Self::Gfx900 | Self::Gfx906 | Self::Gfx908 | Self::Gfx90a | Self::Gfx942)
    }

    /// Whether this is a gfx11 (RDNA3, RDNA3.5) target.
    pub const fn is_gfx11(self) -> bool {
        !self.is_gfx9()
    }

    /// Whether VGPRs and AccVGPRs are one file of up to 512 (gfx90a, gfx942).
    pub const fn has_unified_vgprs(self) -> bool {
        matches!(self, Self::Gfx90a | Self::Gfx942)
    }

    /// Whether scratch is set up by hardware instead of through SGPRs (gfx942, gfx11).
    pub const fn has_architected_flat_scratch(self) -> bool {
        matches!(self, Self::Gfx942) || self.is_gfx11()
    }

    /// Whether v0 holds x | y<<10 | z<<20 at launch (gfx90a, gfx942, gfx11).
    pub const fn has_packed_workitem_ids(self) -> bool {
        self.has_unified_vgprs() || self.is_gfx11()
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The name is not one of [`Target::ALL`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown target {0:?}")]
pub struct UnknownTarget(pub String);

impl FromStr for Target {
    type Err = UnknownTarget;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|target| target.name() == name)
            .ok_or_else(|| UnknownTarget(name.to_owned()))
    }
}
