//! The best image of a bundle for a device.

use core::cmp::Reverse;
use core::fmt;

use crate::bundle::{Bundle, BundleEntry};
use crate::code_object::{CodeObject, Identity};
use crate::elf::CodeObjectVersion;
use crate::error::Error;
use crate::target::{DeviceTarget, Mismatch, ObjectTarget};

/// The image that runs on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice<'a> {
    /// The image.
    pub entry: BundleEntry<'a>,
    /// What it was compiled for, by its e_flags.
    pub target: ObjectTarget,
}

/// Why an image does not run on a device.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Misfit {
    /// It was compiled for something else.
    Target(Mismatch),
    /// It is no code object that can be loaded.
    Unreadable(Error),
    /// It is empty.
    Empty,
    /// The entry's id names another target than the code's e_flags.
    Contradiction {
        /// Target id at the end of the entry's id.
        id: String,
        /// Target of the code.
        target: ObjectTarget,
    },
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Target(mismatch) => write!(f, "{}", mismatch.reason),
            Self::Unreadable(error) => {
                write!(f, "{error}")?;
                let mut cause = core::error::Error::source(error);
                while let Some(inner) = cause {
                    write!(f, ": {inner}")?;
                    cause = inner.source();
                }
                Ok(())
            }
            Self::Empty => f.write_str("it is empty"),
            Self::Contradiction { id, target } => {
                write!(f, "the bundle calls it {id}, its e_flags say {target}")
            }
        }
    }
}

/// No image runs on the device: what the device is, and why not, for each image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoFit {
    /// The device.
    pub device: DeviceTarget,
    /// The images in file order: the id (or target, for a code object by itself) and the reason.
    pub images: Vec<(String, Misfit)>,
}

impl core::error::Error for NoFit {}

impl fmt::Display for NoFit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.images.is_empty() {
            return write!(f, "no code for {}: the file holds no device code", self.device);
        }
        write!(f, "no code for {}: ", self.device)?;
        for (index, (name, misfit)) in self.images.iter().enumerate() {
            let separator = if index == 0 { "" } else { "; " };
            write!(f, "{separator}{name}: {misfit}")?;
        }
        Ok(())
    }
}

impl BundleEntry<'_> {
    /// Whether this image runs on `device`, by its e_flags.
    ///
    /// Only the ELF header is read. An image whose entry id names another target than its e_flags is
    /// refused: one of the two is wrong.
    ///
    /// # Errors
    /// [`Misfit`].
    pub fn fits(&self, device: &DeviceTarget) -> Result<ObjectTarget, Misfit> {
        if self.bytes.is_empty() {
            return Err(Misfit::Empty);
        }
        let identity = CodeObject::identify(self.bytes).map_err(Misfit::Unreadable)?;
        if let Some(id) = self.target_text()
            && !self.agrees(id, &identity)
        {
            let target = identity.target;
            return Err(Misfit::Contradiction { id: id.to_owned(), target });
        }
        identity.target.fits(device).map_err(Misfit::Target)?;
        Ok(identity.target)
    }

    /// Whether the target id in this entry's id agrees with the code.
    fn agrees(&self, id: &str, identity: &Identity) -> bool {
        if self.kind() == Some("hipv4") && identity.version > CodeObjectVersion::V3 {
            return id == identity.target.to_string();
        }
        // Older ids name no features, or in another spelling (`gfx906+xnack`).
        let processor = identity.target.processor().name();
        id.strip_prefix(processor)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with([':', '+']))
    }
}

/// Greater is better: a processor's own code before generic code, then as many features named as
/// possible.
fn rank(target: &ObjectTarget) -> (bool, usize) {
    let features = [target.sramecc(), target.xnack()];
    let named = features.iter().filter(|feature| feature.required().is_some()).count();
    (target.processor().generic().is_none(), named)
}

impl Bundle<'_> {
    /// The best image for `device`.
    ///
    /// Of those that run, a processor's own code comes before generic code, then the one that names
    /// more features, then the first in the file.
    ///
    /// # Errors
    /// [`NoFit`] with the reason for each image.
    pub fn choose(&self, device: &DeviceTarget) -> Result<Choice<'_>, NoFit> {
        let mut best: Option<(Reverse<(bool, usize)>, Choice<'_>)> = None;
        let mut images = Vec::new();
        for entry in self.images() {
            match entry.fits(device) {
                Ok(target) => {
                    let key = Reverse(rank(&target));
                    if best.as_ref().is_none_or(|(found, _)| key < *found) {
                        best = Some((key, Choice { entry, target }));
                    }
                }
                Err(misfit) => images.push((entry.name(), misfit)),
            }
        }
        match best {
            Some((_, choice)) => Ok(choice),
            None => Err(NoFit { device: *device, images }),
        }
    }
}

impl BundleEntry<'_> {
    /// What to call it: its id, else its target, else that it is unknown.
    pub fn name(&self) -> String {
        match self.id {
            Some(id) => id.to_owned(),
            None => match CodeObject::identify(self.bytes) {
                Ok(identity) => identity.target.to_string(),
                Err(_) => "the code object".to_owned(),
            },
        }
    }
}
