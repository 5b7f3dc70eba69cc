//! Targets: what an object was compiled for, what a device is, and whether the two fit.
//!
//! The processor and features of an object come from `e_flags`, never from a string.
//! Numbers: docs/ABI.md §Code object targets.

mod compatibility;
mod processor;

use core::fmt;

pub use compatibility::{Mismatch, MismatchReason};
pub use processor::{Generic, Processor};

use crate::CodeObjectVersion;
use crate::error::TargetProblem;

/// A target feature in an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FeatureState {
    /// The processor has no such feature, or the code does not care how it is set.
    Unsupported,
    /// Runs with the feature on or off.
    Any,
    /// Only with the feature off.
    Off,
    /// Only with the feature on.
    On,
}

impl FeatureState {
    /// The state a device must have, if the object needs one.
    pub const fn required(self) -> Option<bool> {
        match self {
            Self::Unsupported | Self::Any => None,
            Self::Off => Some(false),
            Self::On => Some(true),
        }
    }

    const fn from_bits(bits: u32) -> Self {
        match bits {
            1 => Self::Any,
            2 => Self::Off,
            3 => Self::On,
            _ => Self::Unsupported,
        }
    }

    /// Version 3 has one bit, clear for off, and no "any".
    const fn from_v3(set: bool, supported: bool) -> Self {
        match (set, supported) {
            (true, _) => Self::On,
            (false, true) => Self::Off,
            (false, false) => Self::Unsupported,
        }
    }
}

/// What an object was compiled for. Displays as a target id: `gfx90a:sramecc+:xnack-`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ObjectTarget {
    processor: Processor,
    sramecc: FeatureState,
    xnack: FeatureState,
    generic_version: u8,
}

const MACH: u32 = 0x0ff;
const V3_XNACK: u32 = 0x100;
const V3_SRAMECC: u32 = 0x200;
const V4_XNACK_SHIFT: u32 = 8;
const V4_SRAMECC_SHIFT: u32 = 10;
const V4_FEATURES: u32 = 0xf00;
const GENERIC_VERSION_SHIFT: u32 = 24;

impl ObjectTarget {
    /// Reads `e_flags`. Source: EF_AMDGPU_* in LLVM's BinaryFormat/ELF.h; docs/ABI.md §Code object targets.
    pub(crate) fn from_flags(
        flags: u32,
        version: CodeObjectVersion,
    ) -> Result<Self, TargetProblem> {
        let [mach, _, _, generic_version] = (flags & !(0xff << 8)).to_le_bytes();
        let processor =
            Processor::from_mach(mach).ok_or(TargetProblem::UnknownProcessor { mach })?;
        let (known, sramecc, xnack) = if version == CodeObjectVersion::V3 {
            let sramecc =
                FeatureState::from_v3(flags & V3_SRAMECC != 0, processor.supports_sramecc());
            let xnack = FeatureState::from_v3(flags & V3_XNACK != 0, processor.supports_xnack());
            (MACH | V3_XNACK | V3_SRAMECC, sramecc, xnack)
        } else {
            let sramecc = FeatureState::from_bits(flags >> V4_SRAMECC_SHIFT & 3);
            let xnack = FeatureState::from_bits(flags >> V4_XNACK_SHIFT & 3);
            (MACH | V4_FEATURES, sramecc, xnack)
        };
        let known = known | 0xff << GENERIC_VERSION_SHIFT;
        if flags & !known != 0 {
            return Err(TargetProblem::UndefinedFlags { bits: flags & !known });
        }
        if processor.generic().is_some() {
            if version < CodeObjectVersion::V6 || generic_version == 0 {
                return Err(TargetProblem::GenericWithoutVersion { processor });
            }
        } else if generic_version != 0 {
            return Err(TargetProblem::UnexpectedGenericVersion {
                processor,
                version: generic_version,
            });
        }
        for (feature, state, supported) in [
            ("sramecc", sramecc, processor.supports_sramecc()),
            ("xnack", xnack, processor.supports_xnack()),
        ] {
            if !supported && state.required() == Some(true) {
                return Err(TargetProblem::UnexpectedFeature { processor, feature });
            }
        }
        Ok(Self { processor, sramecc, xnack, generic_version })
    }

    /// Processor, which may be a generic one.
    pub const fn processor(&self) -> Processor {
        self.processor
    }

    /// ECC of on-chip memories.
    pub const fn sramecc(&self) -> FeatureState {
        self.sramecc
    }

    /// Retry of page faults.
    pub const fn xnack(&self) -> FeatureState {
        self.xnack
    }

    /// Version of a generic target, 1 to 255; 0 for an ordinary processor.
    pub const fn generic_version(&self) -> u8 {
        self.generic_version
    }

    /// Whether `text`, an `amdhsa.target` in either spelling, names this target.
    ///
    /// `amdgcn-amd-amdhsa--gfx90a:xnack+` up to LLVM 22, `amdgpu9.0a-amd-amdhsa-unknown-gfx90a:xnack+`
    /// later. `None` when no target id can be found in it.
    pub(crate) fn is_named_by(&self, text: &str) -> Option<bool> {
        let id = text.rfind("-gfx").and_then(|at| text.get(at + 1..))?;
        Some(id == self.to_string())
    }
}

impl fmt::Display for ObjectTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.processor.name())?;
        write_features(f, self.sramecc.required(), self.xnack.required())
    }
}

fn write_features(
    f: &mut fmt::Formatter<'_>,
    sramecc: Option<bool>,
    xnack: Option<bool>,
) -> fmt::Result {
    for (name, state) in [("sramecc", sramecc), ("xnack", xnack)] {
        if let Some(on) = state {
            write!(f, ":{name}{}", if on { '+' } else { '-' })?;
        }
    }
    Ok(())
}

/// What a GPU is: its processor and how its features are set. Displays as a target id.
///
/// The one place that turns what KFD reports of a GPU into a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DeviceTarget {
    processor: Processor,
    sramecc: Option<bool>,
    xnack: Option<bool>,
}

/// A gfx_target_version that names no processor this crate knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("gfx_target_version {0} is not a GPU this version knows")]
pub struct UnknownDevice(pub u32);

/// A target id that names no GPU this crate knows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not the target id of a GPU, such as gfx1100 or gfx90a:sramecc+:xnack-")]
pub struct UnknownTargetId(pub String);

impl DeviceTarget {
    /// A device from what KFD's topology says of it.
    ///
    /// `gfx_target_version` is decimal, major × 10000 + minor × 100 + step: 90010 is gfx90a.
    /// `sramecc` and `xnack` tell whether the feature is on; they are ignored on a processor
    /// that does not have it.
    ///
    /// # Errors
    /// [`UnknownDevice`] for a number that is no known processor.
    pub fn new(gfx_target_version: u32, sramecc: bool, xnack: bool) -> Result<Self, UnknownDevice> {
        let processor = Processor::from_gfx_target_version(gfx_target_version)
            .ok_or(UnknownDevice(gfx_target_version))?;
        Ok(Self {
            processor,
            sramecc: processor.supports_sramecc().then_some(sramecc),
            xnack: processor.supports_xnack().then_some(xnack),
        })
    }

    /// A device by its target id, as in `gfx90a:sramecc+:xnack-`. A feature that is left out is set as
    /// on a machine that nobody configured: xnack off, sramecc on except on gfx906.
    ///
    /// # Errors
    /// [`UnknownTargetId`] for an id that names no GPU, or a feature that the GPU does not have.
    pub fn from_id(id: &str) -> Result<Self, UnknownTargetId> {
        let unknown = || UnknownTargetId(id.to_owned());
        let mut parts = id.split(':');
        let processor = parts.next().and_then(Processor::from_name).ok_or_else(unknown)?;
        if processor.generic().is_some() {
            return Err(unknown());
        }
        let (mut sramecc, mut xnack) = (None, None);
        for part in parts {
            let (slot, supported, on) = match part {
                "sramecc+" => (&mut sramecc, processor.supports_sramecc(), true),
                "sramecc-" => (&mut sramecc, processor.supports_sramecc(), false),
                "xnack+" => (&mut xnack, processor.supports_xnack(), true),
                "xnack-" => (&mut xnack, processor.supports_xnack(), false),
                _ => return Err(unknown()),
            };
            if !supported || slot.replace(on).is_some() {
                return Err(unknown());
            }
        }
        let usual_sramecc = processor.name() != "gfx906";
        Ok(Self {
            processor,
            sramecc: processor.supports_sramecc().then_some(sramecc.unwrap_or(usual_sramecc)),
            xnack: processor.supports_xnack().then_some(xnack.unwrap_or(false)),
        })
    }

    /// Processor; never a generic one.
    pub const fn processor(&self) -> Processor {
        self.processor
    }

    /// Whether sramecc is on; `None` when the processor has no such feature.
    pub const fn sramecc(&self) -> Option<bool> {
        self.sramecc
    }

    /// Whether xnack is on; `None` when the processor has no such feature.
    pub const fn xnack(&self) -> Option<bool> {
        self.xnack
    }
}

impl fmt::Display for DeviceTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.processor.name())?;
        write_features(f, self.sramecc, self.xnack)
    }
}

#[cfg(test)]
mod tests;
