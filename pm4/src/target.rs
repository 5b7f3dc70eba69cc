//! Which GPU packets and registers are for.

use core::fmt;

use crate::reg::{Register, gfx9, gfx11};

/// A GPU target that this crate knows the registers and packets of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Target {
    /// Vega 10.
    Gfx900,
    /// Vega 20.
    Gfx906,
    /// MI100.
    Gfx908,
    /// MI200.
    Gfx90a,
    /// MI300.
    Gfx942,
    /// gfx1100 to gfx1103, gfx1150 and gfx1151: one set of packets and registers.
    Gfx11,
}

impl Target {
    /// Every target.
    pub const ALL: [Self; 6] =
        [Self::Gfx900, Self::Gfx906, Self::Gfx908, Self::Gfx90a, Self::Gfx942, Self::Gfx11];

    /// The target of a gfx version as KFD numbers it: major * 10000 + minor * 100 + stepping.
    pub const fn from_version(version: u32) -> Option<Self> {
        Some(match version {
            90_000 => Self::Gfx900,
            90_006 => Self::Gfx906,
            90_008 => Self::Gfx908,
            90_010 => Self::Gfx90a,
            90_402 => Self::Gfx942,
            110_000..=110_003 | 110_500 | 110_501 => Self::Gfx11,
            _ => return None,
        })
    }

    /// The target that a name such as `gfx90a` or `gfx1151` stands for.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "gfx900" => Self::Gfx900,
            "gfx906" => Self::Gfx906,
            "gfx908" => Self::Gfx908,
            "gfx90a" => Self::Gfx90a,
            "gfx942" => Self::Gfx942,
            "gfx11" | "gfx1100" | "gfx1101" | "gfx1102" | "gfx1103" | "gfx1150" | "gfx1151" => {
                Self::Gfx11
            }
            _ => return None,
        })
    }

    /// Whether it is of the gfx9 family.
    pub const fn is_gfx9(self) -> bool {
        !matches!(self, Self::Gfx11)
    }

    /// Whether scratch is set up by the hardware alone ("architected flat scratch").
    pub const fn has_architected_scratch(self) -> bool {
        matches!(self, Self::Gfx942 | Self::Gfx11)
    }

    /// Whether a wave gets all work-item ids packed into VGPR 0.
    pub const fn has_packed_work_item_ids(self) -> bool {
        matches!(self, Self::Gfx90a | Self::Gfx942 | Self::Gfx11)
    }

    /// Whether accumulation registers share one file of 512 with the other vector registers.
    pub const fn has_accumulation_vgprs_in_file(self) -> bool {
        matches!(self, Self::Gfx90a | Self::Gfx942)
    }

    /// Whether kernel arguments can be preloaded into SGPRs.
    pub const fn has_kernarg_preload(self) -> bool {
        matches!(self, Self::Gfx90a | Self::Gfx942)
    }

    /// Whether `COMPUTE_PGM_RSRC3` exists.
    pub const fn has_rsrc3(self) -> bool {
        !matches!(self, Self::Gfx900 | Self::Gfx906 | Self::Gfx908)
    }

    /// Its compute registers, in one or two tables.
    pub const fn registers(self) -> &'static [&'static [Register]] {
        match self {
            Self::Gfx900 | Self::Gfx906 => &[gfx9::REGISTERS, gfx9::gfx900::REGISTERS],
            Self::Gfx908 => &[gfx9::REGISTERS, gfx9::gfx908::REGISTERS],
            Self::Gfx90a => &[gfx9::REGISTERS, gfx9::gfx90a::REGISTERS],
            Self::Gfx942 => &[gfx9::REGISTERS, gfx9::gfx942::REGISTERS],
            Self::Gfx11 => &[gfx11::REGISTERS],
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gfx900 => "gfx900",
            Self::Gfx906 => "gfx906",
            Self::Gfx908 => "gfx908",
            Self::Gfx90a => "gfx90a",
            Self::Gfx942 => "gfx942",
            Self::Gfx11 => "gfx11",
        })
    }
}
