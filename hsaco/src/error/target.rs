//! What can be wrong with a target.

use crate::target::Processor;

/// What is wrong with a target in e_flags.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TargetProblem {
    /// EF_AMDGPU_MACH is not a processor this crate knows.
    #[error("unknown processor number {mach:#x}")]
    UnknownProcessor {
        /// EF_AMDGPU_MACH.
        mach: u8,
    },
    /// A generic processor in a code object older than version 6, or without a version.
    #[error("{processor} needs code object version 6 and a generic version above 0")]
    GenericWithoutVersion {
        /// The processor.
        processor: Processor,
    },
    /// A generic version on an ordinary processor.
    #[error("{processor} is not generic but has generic version {version}")]
    UnexpectedGenericVersion {
        /// The processor.
        processor: Processor,
        /// The version found.
        version: u8,
    },
    /// A feature on a processor that does not have it.
    #[error("{processor} has no {feature}")]
    UnexpectedFeature {
        /// The processor.
        processor: Processor,
        /// `xnack` or `sramecc`.
        feature: &'static str,
    },
    /// `amdhsa.target` names another target than e_flags.
    #[error("metadata says {metadata:?}, e_flags say {flags}")]
    Contradiction {
        /// `amdhsa.target`.
        metadata: String,
        /// Target id from e_flags.
        flags: String,
    },
    /// Flag bits that no code object version defines.
    #[error("undefined flag bits {bits:#x}")]
    UndefinedFlags {
        /// The bits.
        bits: u32,
    },
}
