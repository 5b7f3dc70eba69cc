//! What can be wrong with a managed variable.

/// What is wrong with a managed variable `X` and its first value `X.managed`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ManagedProblem {
    /// Its first value has no bytes.
    #[error("its first value has no bytes")]
    Empty,
    /// There is no object `X` for the pointer.
    #[error("there is no object of its name for the pointer")]
    NoPointer,
    /// The object `X` is no pointer.
    #[error("its pointer has {bytes} bytes, not 8")]
    PointerSize {
        /// st_size.
        bytes: u64,
    },
    /// The pointer is not in a writable segment, or lies on a kernel descriptor.
    #[error("its pointer at {vaddr:#x} is not in writable memory of its own")]
    PointerPlace {
        /// st_value.
        vaddr: u64,
    },
}
