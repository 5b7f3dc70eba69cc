//! Where each argument of a kernel goes.

use super::{Hidden, KernargBuilder, KernargTemplate, Services};
use crate::error::ArgumentError;
use crate::metadata::{KernelMetadata, ValueKind};

/// What an explicit argument holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExplicitKind {
    /// Its bytes are the value.
    ByValue,
    /// An address in GPU memory, 8 bytes.
    GlobalBuffer,
    /// An offset in LDS, behind the static LDS, of memory the launcher adds to dynamic LDS.
    DynamicSharedPointer {
        /// Alignment of the memory, bytes.
        align: u32,
    },
    /// An address of an image, sampler, pipe or queue object, 8 bytes.
    Handle,
    /// A kind this crate does not know: the kernel cannot be launched.
    Unknown,
}

/// An argument that the caller gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExplicitArg {
    /// Bytes from the start of the kernarg segment.
    pub offset: u32,
    /// Bytes.
    pub size: u32,
    /// What it holds.
    pub kind: ExplicitKind,
}

/// An argument that the launcher gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HiddenArg {
    /// Bytes from the start of the kernarg segment.
    pub offset: u32,
    /// Bytes, at least those of the value.
    pub size: u32,
    /// What it holds.
    pub kind: Hidden,
}

/// The kernarg segment of a kernel. Owns its data: it outlives the code object's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgLayout {
    segment_bytes: u32,
    segment_align: u32,
    explicit: Vec<ExplicitArg>,
    hidden: Vec<HiddenArg>,
}

impl ArgLayout {
    /// The layout of a kernel whose metadata was checked.
    pub(crate) fn new(metadata: &KernelMetadata<'_>) -> Self {
        let mut explicit = Vec::new();
        let mut hidden = Vec::new();
        for argument in metadata.args.iter().flatten() {
            let (offset, size) = (argument.offset, argument.size);
            let kind = match argument.kind {
                ValueKind::Hidden(kind) => {
                    hidden.push(HiddenArg { offset, size, kind });
                    continue;
                }
                // Stays zero, like all that nobody fills.
                ValueKind::UnknownHidden(_) => continue,
                ValueKind::ByValue => ExplicitKind::ByValue,
                ValueKind::GlobalBuffer => ExplicitKind::GlobalBuffer,
                ValueKind::DynamicSharedPointer => ExplicitKind::DynamicSharedPointer {
                    align: argument.pointee_align.unwrap_or(1),
                },
                ValueKind::Sampler | ValueKind::Image | ValueKind::Pipe | ValueKind::Queue => {
                    ExplicitKind::Handle
                }
                ValueKind::Unknown(_) => ExplicitKind::Unknown,
            };
            explicit.push(ExplicitArg { offset, size, kind });
        }
        Self {
            segment_bytes: metadata.kernarg_segment_size,
            segment_align: metadata.kernarg_segment_align,
            explicit,
            hidden,
        }
    }

    /// Size of the segment, bytes.
    pub const fn segment_bytes(&self) -> u32 {
        self.segment_bytes
    }

    /// Alignment the kernel asks for; a launcher aligns to 16 at least.
    pub const fn segment_align(&self) -> u32 {
        self.segment_align
    }

    /// The caller's arguments, in order.
    pub fn explicit(&self) -> &[ExplicitArg] {
        &self.explicit
    }

    /// The launcher's arguments that this crate can fill.
    pub fn hidden(&self) -> &[HiddenArg] {
        &self.hidden
    }

    /// Whether the kernel declares this hidden argument.
    pub fn declares(&self, kind: Hidden) -> bool {
        self.hidden.iter().any(|argument| argument.kind == kind)
    }

    /// End of the last explicit argument: the size of arguments packed by the caller.
    pub fn explicit_bytes(&self) -> u32 {
        // The arguments were checked to lie inside the segment, so this cannot overflow.
        self.explicit.iter().map(|argument| argument.offset + argument.size).max().unwrap_or(0)
    }

    /// Starts packing arguments one by one.
    ///
    /// # Errors
    /// [`ArgumentError::Kind`] if the kernel takes an argument that cannot be passed.
    pub fn builder(&self) -> Result<KernargBuilder<'_>, ArgumentError> {
        self.check_kinds()?;
        Ok(KernargBuilder::new(self))
    }

    /// Prepares launches of this kernel with the given services.
    ///
    /// # Errors
    /// [`ArgumentError::Kind`] if the kernel takes an argument that cannot be passed.
    pub fn template(&self, services: &Services) -> Result<KernargTemplate, ArgumentError> {
        self.check_kinds()?;
        Ok(KernargTemplate::new(self, services))
    }

    fn check_kinds(&self) -> Result<(), ArgumentError> {
        let unknown =
            self.explicit.iter().position(|argument| argument.kind == ExplicitKind::Unknown);
        unknown.map_or(Ok(()), |index| Err(ArgumentError::Kind { index }))
    }
}
