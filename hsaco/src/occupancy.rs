//! How many waves of a kernel a compute unit holds at once.
//!
//! The registers are the device's, so that generic code is counted for the GPU it runs on. Numbers and
//! rounding: docs/ABI.md §Occupancy.

use crate::target::Processor;

/// What a wave or workgroup of a kernel takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resources {
    /// Lanes of a wave: 32 or 64.
    pub wave_size: u32,
    /// VGPRs of a wave, AccVGPRs included, as its descriptor asks.
    pub vgprs: u32,
    /// SGPRs of a wave, as its descriptor asks.
    pub sgprs: u32,
    /// LDS of a workgroup, static and dynamic, bytes.
    pub lds_bytes: u32,
    /// Whether workgroups may spread over the two compute units of a pair (gfx10 and later).
    pub is_wgp_mode: bool,
}

/// What the compute unit of a processor has. See docs/ABI.md §Occupancy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnitLimits {
    /// Waves that a SIMD holds.
    pub waves_per_simd: u32,
    /// SIMDs of a compute unit.
    pub simds_per_cu: u32,
    /// VGPRs that a SIMD has for waves of this size, counted per lane.
    pub vgprs_per_simd: u32,
    /// VGPRs are given in multiples of this.
    pub vgpr_granule: u32,
    /// SGPRs that a SIMD has; `None` where each wave has its own (gfx10 and later).
    pub sgprs_per_simd: Option<u32>,
    /// LDS of a compute unit, bytes.
    pub lds_per_cu: u32,
    /// LDS is given in multiples of this, bytes.
    pub lds_granule: u32,
    /// Workgroups of more than one wave that a compute unit can synchronise.
    pub barriers_per_cu: u32,
}

/// SGPRs are given in multiples of this (gfx9).
const SGPR_GRANULE: u32 = 16;
/// SGPRs that each wave has for the trap handler (gfx9). KFD installs one on every queue.
const TRAP_SGPRS: u32 = 16;
/// Work-items of a workgroup.
const MAX_GROUP: u32 = 1024;

impl UnitLimits {
    /// The limits of `processor` for waves of `wave_size` lanes; `None` for a generic processor and
    /// for one whose limits this crate does not know.
    pub fn of(processor: Processor, wave_size: u32) -> Option<Self> {
        let (major, minor, step) = processor.version()?;
        let is_wave32 = wave_size == 32;
        let by_wave = |wave32, wave64| if is_wave32 { wave32 } else { wave64 };
        if major == 9 {
            let unified = processor.has_unified_vgprs();
            let is_gfx950 = (minor, step) == (5, 0);
            return Some(Self {
                waves_per_simd: if unified { 8 } else { 10 },
                simds_per_cu: 4,
                vgprs_per_simd: if unified { 512 } else { 256 },
                vgpr_granule: if unified { 8 } else { 4 },
                sgprs_per_simd: Some(800),
                lds_per_cu: if is_gfx950 { 160 << 10 } else { 64 << 10 },
                lds_granule: if is_gfx950 { 1280 } else { 512 },
                barriers_per_cu: 16,
            });
        }
        // Register files 1.5 times as large.
        let is_large = matches!((major, minor, step), (11, 0, 0 | 1) | (11, 5, 1) | (12, 0, 0 | 1));
        let is_gfx10_1 = (major, minor) == (10, 1);
        let known = matches!((major, minor), (10, 1 | 3) | (11, 0 | 5) | (12, 0));
        known.then(|| Self {
            waves_per_simd: if is_gfx10_1 { 20 } else { 16 },
            simds_per_cu: 2,
            vgprs_per_simd: if is_large { by_wave(1536, 768) } else { by_wave(1024, 512) },
            vgpr_granule: match (is_large, is_gfx10_1) {
                (true, _) => by_wave(24, 12),
                (false, true) => by_wave(8, 4),
                (false, false) => by_wave(16, 8),
            },
            sgprs_per_simd: None,
            lds_per_cu: 64 << 10,
            lds_granule: if is_gfx10_1 { 512 } else { 1024 },
            barriers_per_cu: 16,
        })
    }
}

/// What keeps more workgroups from a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Limiter {
    /// Waves that a SIMD holds.
    Waves,
    /// Vector registers.
    Vgprs,
    /// Scalar registers.
    Sgprs,
    /// LDS.
    Lds,
    /// Workgroups that a unit can synchronise.
    Barriers,
    /// A workgroup of more work-items than any unit takes, or of none.
    GroupSize,
}

impl Limiter {
    /// Lower-case name, for reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Waves => "waves",
            Self::Vgprs => "vgprs",
            Self::Sgprs => "sgprs",
            Self::Lds => "lds",
            Self::Barriers => "barriers",
            Self::GroupSize => "group size",
        }
    }
}

/// How much of a kernel runs at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occupancy {
    /// Workgroups that a unit holds; 0: the kernel cannot run with this workgroup and LDS.
    pub groups_per_unit: u32,
    /// Compute units that share a workgroup: 2 in WGP mode, else 1. A device has
    /// `compute units / cus_per_unit` units.
    pub cus_per_unit: u32,
    /// Waves that the fullest SIMD of a unit holds then.
    pub waves_per_simd: u32,
    /// Waves that a SIMD could hold of any kernel.
    pub max_waves_per_simd: u32,
    /// What keeps it from more.
    pub limiter: Limiter,
}

/// How many workgroups of `group_items` work-items a unit of `processor` holds at once.
///
/// Exact as far as the kernel itself goes: other work on the device, and scratch memory that is
/// missing, can only lower it. `None` for a processor whose limits are not known.
pub fn occupancy(
    processor: Processor,
    resources: &Resources,
    group_items: u32,
) -> Option<Occupancy> {
    let limits = UnitLimits::of(processor, resources.wave_size)?;
    let cus_per_unit = if resources.is_wgp_mode && processor.has_wave32() { 2 } else { 1 };
    let simds = limits.simds_per_cu * cus_per_unit;
    let max = limits.waves_per_simd;
    let result = |groups, waves_per_simd, limiter| {
        Some(Occupancy {
            groups_per_unit: groups,
            cus_per_unit,
            waves_per_simd,
            max_waves_per_simd: max,
            limiter,
        })
    };
    if group_items == 0 || group_items > MAX_GROUP {
        return result(0, 0, Limiter::GroupSize);
    }
    let waves = group_items.div_ceil(resources.wave_size.max(1));
    let of_simd = |registers: u32, taken: u32| registers.checked_div(taken).unwrap_or(max).min(max);
    let vgprs = resources.vgprs.max(1).checked_next_multiple_of(limits.vgpr_granule);
    let by_vgprs = vgprs.map_or(0, |taken| of_simd(limits.vgprs_per_simd, taken));
    let by_sgprs = limits.sgprs_per_simd.map_or(max, |registers| {
        let taken = resources.sgprs.checked_next_multiple_of(SGPR_GRANULE);
        taken.map_or(0, |taken| of_simd(registers, taken.saturating_add(TRAP_SGPRS)))
    });
    let lds = resources.lds_bytes.checked_next_multiple_of(limits.lds_granule);
    let by_lds = match lds {
        Some(0) => u32::MAX,
        // A workgroup cannot have more than one compute unit's LDS, in WGP mode neither.
        Some(taken) if taken <= limits.lds_per_cu => limits.lds_per_cu * cus_per_unit / taken,
        _ => 0,
    };
    // A workgroup of one wave needs no barrier.
    let by_barriers = if waves == 1 { u32::MAX } else { limits.barriers_per_cu * cus_per_unit };
    // Waves go to any SIMD of the unit with room, so only their sum matters.
    let candidates = [
        (max * simds / waves, Limiter::Waves),
        (by_vgprs * simds / waves, Limiter::Vgprs),
        (by_sgprs * simds / waves, Limiter::Sgprs),
        (by_lds, Limiter::Lds),
        (by_barriers, Limiter::Barriers),
    ];
    // The first of equals: waves are the limit that no kernel can avoid.
    let least = candidates.into_iter().min_by_key(|&(groups, _)| groups);
    let (groups, limiter) = least.unwrap_or((0, Limiter::Waves));
    result(groups, (groups * waves).div_ceil(simds), limiter)
}

#[cfg(test)]
mod tests;
