//! Whether an object runs on a device.

use core::fmt;

use super::{DeviceTarget, FeatureState, ObjectTarget};

/// Generic version that today's devices need. Every generic target is at version 1 (LLVM 22).
const NEEDED_GENERIC_VERSION: u8 = 1;

/// An object does not run on a device: what each is, why, and what would fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// What the object was compiled for.
    pub object: ObjectTarget,
    /// What the device is.
    pub device: DeviceTarget,
    /// Why the two do not fit.
    pub reason: MismatchReason,
}

/// Why an object does not run on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MismatchReason {
    /// Another processor.
    Processor,
    /// A generic target of another family.
    Family,
    /// A generic target that is older than the device needs.
    GenericVersion {
        /// Version of the object.
        found: u8,
        /// Version the device needs.
        needed: u8,
    },
    /// The object needs sramecc set the other way.
    Sramecc,
    /// The object needs xnack set the other way.
    Xnack,
}

impl fmt::Display for MismatchReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Processor => f.write_str("another processor"),
            Self::Family => f.write_str("not a member of that generic target"),
            Self::GenericVersion { found, needed } => {
                write!(f, "generic version {found} is older than {needed}")
            }
            Self::Sramecc => f.write_str("sramecc is set the other way"),
            Self::Xnack => f.write_str("xnack is set the other way"),
        }
    }
}

impl core::error::Error for Mismatch {}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { object, device, reason } = self;
        write!(f, "compiled for {object}, the GPU is {device}: ")?;
        write!(f, "{reason}")?;
        let processor = device.processor();
        write!(f, "; would fit: {processor}")?;
        if device.sramecc().is_some() || device.xnack().is_some() {
            write!(f, ", or {device} with either feature left out")?;
        }
        if let Some(family) = processor.family() {
            write!(f, ", or {}", family.name())?;
        }
        Ok(())
    }
}

fn feature_fits(object: FeatureState, device: Option<bool>) -> bool {
    match (object.required(), device) {
        (None, _) => true,
        (Some(needed), Some(actual)) => needed == actual,
        // The device has no switch: it behaves as "off".
        (Some(needed), None) => !needed,
    }
}

impl ObjectTarget {
    /// Whether this object runs on `device`.
    ///
    /// An exact target needs the same processor, a generic one a member of its family and a
    /// version that is new enough. A feature the object requires must be set that way; one that is
    /// "any" or that the object's target does not have always fits.
    ///
    /// # Errors
    /// [`Mismatch`], which names both and what would fit.
    pub fn fits(&self, device: &DeviceTarget) -> Result<(), Mismatch> {
        let mismatch = |reason| Err(Mismatch { object: *self, device: *device, reason });
        match self.processor.generic() {
            Some(family) if device.processor().family() != Some(family) => {
                return mismatch(MismatchReason::Family);
            }
            Some(_) if self.generic_version < NEEDED_GENERIC_VERSION => {
                return mismatch(MismatchReason::GenericVersion {
                    found: self.generic_version,
                    needed: NEEDED_GENERIC_VERSION,
                });
            }
            None if self.processor != device.processor() => {
                return mismatch(MismatchReason::Processor);
            }
            _ => {}
        }
        if !feature_fits(self.sramecc, device.sramecc()) {
            return mismatch(MismatchReason::Sramecc);
        }
        if !feature_fits(self.xnack, device.xnack()) {
            return mismatch(MismatchReason::Xnack);
        }
        Ok(())
    }
}

impl DeviceTarget {
    /// Whether an object for `object` runs here; see [`ObjectTarget::fits`].
    ///
    /// # Errors
    /// [`Mismatch`], which names both and what would fit.
    pub fn accepts(&self, object: &ObjectTarget) -> Result<(), Mismatch> {
        object.fits(self)
    }
}
