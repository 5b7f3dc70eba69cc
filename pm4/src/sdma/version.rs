//! Versions of the engine, and what differs between them.

use core::fmt;

use crate::Target;

/// Version of an SDMA engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Version {
    /// 4.0: gfx900.
    V4_0,
    /// 4.2: gfx906 and gfx908.
    V4_2,
    /// 4.4.0: gfx90a.
    V4_4_0,
    /// 4.4.2: gfx942.
    V4_4_2,
    /// 6.0 and 6.1: gfx11.
    V6,
}

impl Version {
    /// Every version.
    pub const ALL: [Self; 5] = [Self::V4_0, Self::V4_2, Self::V4_4_0, Self::V4_4_2, Self::V6];

    /// The version that `target` has.
    pub const fn of(target: Target) -> Self {
        match target {
            Target::Gfx900 => Self::V4_0,
            Target::Gfx906 | Target::Gfx908 => Self::V4_2,
            Target::Gfx90a => Self::V4_4_0,
            Target::Gfx942 => Self::V4_4_2,
            Target::Gfx11 => Self::V6,
        }
    }

    /// Whether packets have the fields of the sixth generation: cache policies, memory types, GCR.
    pub const fn is_v6(self) -> bool {
        matches!(self, Self::V6)
    }

    /// Most bytes of one linear copy: 4 MiB, or 1 GiB where the count has 30 bits.
    pub const fn max_copy_bytes(self) -> u64 {
        match self {
            Self::V4_4_0 | Self::V6 => 1 << 30,
            Self::V4_0 | Self::V4_2 | Self::V4_4_2 => 1 << 22,
        }
    }

    /// Most bytes of one fill: 4 MiB, or 1 GiB on version 6. For 4.4.0 no source has the wider
    /// count in fills, so it is not used.
    pub const fn max_fill_bytes(self) -> u64 {
        if self.is_v6() { 1 << 30 } else { 1 << 22 }
    }

    /// Most planes of a sub-window, and one more than the largest z.
    pub const fn max_planes(self) -> u32 {
        if self.is_v6() { 1 << 13 } else { 1 << 11 }
    }

    /// Fewest dwords that may be submitted at a time; shorter submissions are padded with a NOP.
    pub const fn min_submission_dwords(self) -> usize {
        match self {
            Self::V4_0 => 64,
            _ => 0,
        }
    }

    /// How often a poll must be repeated: on 4.0 and 4.2 it may end early.
    pub const fn poll_repeats(self) -> usize {
        match self {
            Self::V4_0 | Self::V4_2 => 2,
            _ => 1,
        }
    }

    /// Whether a copy must be put between cache operations ([`GcrReq`](super::GcrReq)): the engine
    /// reaches memory through the L2.
    pub const fn needs_gcr(self) -> bool {
        self.is_v6()
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V4_0 => "SDMA 4.0",
            Self::V4_2 => "SDMA 4.2",
            Self::V4_4_0 => "SDMA 4.4.0",
            Self::V4_4_2 => "SDMA 4.4.2",
            Self::V6 => "SDMA 6",
        })
    }
}
