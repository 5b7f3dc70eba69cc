//! What can be wrong in a metadata note.

/// What is wrong in a metadata note.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MetadataProblem {
    /// The note ends inside a value.
    #[error("the MessagePack data ends inside a value")]
    Truncated,
    /// A value of the wrong type.
    #[error("{key} is not {expected}")]
    Type {
        /// The key whose value it is.
        key: &'static str,
        /// What it should be.
        expected: &'static str,
    },
    /// A number out of the range its key allows.
    #[error("{key} is {value}, which is out of range")]
    Range {
        /// The key.
        key: &'static str,
        /// The value.
        value: i128,
    },
    /// A string that is not UTF-8.
    #[error("a string is not UTF-8")]
    NotUtf8,
    /// A byte that starts no MessagePack value.
    #[error("byte 0xc1 starts no MessagePack value")]
    Reserved,
    /// A key given twice.
    #[error("{key} is given twice")]
    Duplicate {
        /// The key.
        key: &'static str,
    },
    /// A required key is missing.
    #[error("{key} is missing")]
    Missing {
        /// The key.
        key: &'static str,
    },
    /// Bytes after the top-level map.
    #[error("{bytes} bytes follow the top-level map")]
    Trailing {
        /// How many.
        bytes: usize,
    },
    /// A metadata version that this crate does not know.
    #[error("amdhsa.version is {major}.{minor}, known are 1.0 to 1.2")]
    Version {
        /// Major number.
        major: u32,
        /// Minor number.
        minor: u32,
    },
    /// An argument that does not lie inside the kernarg segment, or has no bytes.
    #[error("argument {index} takes bytes {offset}..+{size}, the kernarg segment has {segment}")]
    ArgumentOutside {
        /// Index in `.args`.
        index: usize,
        /// Its offset.
        offset: u32,
        /// Its size.
        size: u32,
        /// `.kernarg_segment_size`.
        segment: u32,
    },
    /// A hidden argument that is too small for its value.
    #[error("argument {index} has {size} bytes, its value takes {needed}")]
    HiddenSize {
        /// Index in `.args`.
        index: usize,
        /// Its size.
        size: u32,
        /// Bytes of the value.
        needed: u32,
    },
    /// Two arguments share bytes.
    #[error("argument {index} overlaps argument {other}")]
    ArgumentOverlap {
        /// Index in `.args`.
        index: usize,
        /// Index of the other.
        other: usize,
    },
    /// A format of buffered printf that cannot be read.
    #[error("string {index} of amdhsa.printf: {problem}")]
    Printf {
        /// Index in `amdhsa.printf`.
        index: usize,
        /// What is wrong with it.
        problem: PrintfProblem,
    },
}

/// What is wrong with a string of `amdhsa.printf`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PrintfProblem {
    /// A field that is missing or no decimal number of 32 bits.
    #[error("{what} is not a number")]
    Field {
        /// The field.
        what: &'static str,
    },
    /// More argument sizes than arguments.
    #[error("{sizes} argument sizes for {arguments} arguments")]
    Sizes {
        /// Sizes named.
        sizes: usize,
        /// Arguments counted.
        arguments: u32,
    },
    /// Id 0 with arguments: ids count from 1.
    #[error("its id is 0")]
    Ordinal,
    /// The hashed form without a hexadecimal hash of 64 bits and a comma.
    #[error("it has no hash before a comma")]
    Hash,
    /// Its id already stands for another format.
    #[error("its id is that of another format")]
    Duplicate,
}
