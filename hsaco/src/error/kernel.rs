//! Why a kernel, its descriptor or its arguments cannot be used.

use crate::target::Processor;

/// Why arguments cannot be packed for a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ArgumentError {
    /// The number of arguments is not what the kernel takes.
    #[error("{given} arguments given, the kernel takes {expected}")]
    Count {
        /// Arguments given.
        given: usize,
        /// Explicit arguments of the kernel.
        expected: usize,
    },
    /// An argument of the wrong size.
    #[error("argument {index} has {given} bytes, the kernel takes {expected}")]
    Size {
        /// Index among the explicit arguments.
        index: usize,
        /// Bytes given.
        given: usize,
        /// Bytes the kernel takes.
        expected: u32,
    },
    /// An argument of a kind this crate cannot pass.
    #[error("argument {index} has a kind this version cannot pass")]
    Kind {
        /// Index among the explicit arguments.
        index: usize,
    },
    /// The place for the kernarg segment is too small.
    #[error("the kernarg segment takes {needed} bytes, {found} are there")]
    Space {
        /// Bytes needed.
        needed: usize,
        /// Bytes there.
        found: usize,
    },
    /// Packed arguments of the wrong total size.
    #[error("{given} bytes of packed arguments, the kernel takes {expected}")]
    PackedSize {
        /// Bytes given.
        given: usize,
        /// End of the last explicit argument.
        expected: usize,
    },
    /// A grid or group with a dimension of 0, or a group of more than 65535 in one.
    #[error("grid {grid:?} by workgroup {group:?} is not a launch: each dimension is at least 1")]
    Geometry {
        /// Grid in work-items.
        grid: [u32; 3],
        /// Workgroup in work-items.
        group: [u32; 3],
    },
}

/// Why a kernel cannot be launched.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DescriptorProblem {
    /// `.symbol` names nothing in the symbol tables.
    #[error("its descriptor symbol {symbol:?} is not defined")]
    NoSymbol {
        /// `.symbol`.
        symbol: String,
    },
    /// The descriptor's symbol is not a 64-byte object.
    #[error(
        "descriptor symbol {symbol:?} is not an object of 64 bytes (type {kind}, {bytes} bytes)"
    )]
    SymbolKind {
        /// `.symbol`.
        symbol: String,
        /// st_type.
        kind: u8,
        /// st_size.
        bytes: u64,
    },
    /// The descriptor is not 64-byte aligned inside the file's loaded bytes.
    #[error("descriptor address {vaddr:#x} is not 64-byte aligned inside the loaded bytes")]
    Address {
        /// st_value.
        vaddr: u64,
    },
    /// The code entry is not 256-byte aligned inside an executable segment.
    #[error("code entry offset {offset:#x} is not 256-byte aligned inside executable bytes")]
    Entry {
        /// kernel_code_entry_byte_offset.
        offset: i64,
    },
    /// A field that exceeds what the target allows.
    #[error("{field} is {value}, the limit is {limit}")]
    Limit {
        /// The field.
        field: &'static str,
        /// Its value.
        value: u64,
        /// The largest legal value.
        limit: u64,
    },
    /// Two sources in the object disagree.
    #[error("descriptor has {field} {descriptor}, metadata says {metadata}")]
    Contradiction {
        /// The field.
        field: &'static str,
        /// Value in the descriptor.
        descriptor: u64,
        /// Value in metadata.
        metadata: u64,
    },
    /// USER_SGPR_COUNT is smaller than what the property bits and preload length need.
    #[error("{count} user SGPRs, its enabled fields need {needed}")]
    UserSgprs {
        /// USER_SGPR_COUNT.
        count: u32,
        /// SGPRs needed.
        needed: u32,
    },
    /// Wave32 on a target without it.
    #[error("wave32 is set, {processor} has only wave64")]
    Wave32 {
        /// The target's processor.
        processor: Processor,
    },
}
