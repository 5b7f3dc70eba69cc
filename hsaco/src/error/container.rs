//! What can be wrong with a container of code objects.

/// What is wrong with a bundle, a compressed bundle, a wrapper or a host file. Offsets are bytes
/// from the start of the bundle, sizes are bytes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ContainerProblem {
    /// Neither an ELF file nor a bundle.
    #[error("neither an ELF file nor an offload bundle: it starts with {start:02x?}")]
    Unknown {
        /// Up to eight first bytes.
        start: Vec<u8>,
    },
    /// The input ends inside something that must be whole.
    #[error("cut short: {what} needs bytes {offset:#x}..{end:#x}, there are {found:#x}")]
    Truncated {
        /// What was to be read.
        what: &'static str,
        /// Its first byte.
        offset: u64,
        /// The byte after its last.
        end: u64,
        /// Bytes there are.
        found: u64,
    },
    /// A bundle that lists nothing.
    #[error("the bundle has no entries")]
    NoEntries,
    /// More entries than the bundle has room to describe, or than are read without a known size.
    #[error("the bundle claims {count} entries, at most {limit} are possible")]
    TooManyEntries {
        /// Entries claimed.
        count: u64,
        /// Most entries possible.
        limit: u64,
    },
    /// An entry id that is no `KIND-TRIPLE-TARGET` in printable ASCII.
    #[error("entry {index} has id {id:?}, which names no kind and target")]
    EntryId {
        /// Index of the entry.
        index: usize,
        /// The id, with what is not UTF-8 replaced, at most 64 characters.
        id: String,
    },
    /// Two entries with one id.
    #[error("entry id {id:?} is given twice")]
    DuplicateEntry {
        /// The id.
        id: String,
    },
    /// An entry whose bytes are not all inside the bundle and behind its header.
    #[error(
        "entry {index} takes bytes {offset:#x} (+{bytes:#x}), the bundle has {from:#x}..{to:#x}"
    )]
    EntryOutside {
        /// Index of the entry.
        index: usize,
        /// Its offset.
        offset: u64,
        /// Its size.
        bytes: u64,
        /// End of the bundle's header.
        from: u64,
        /// End of the input.
        to: u64,
    },
    /// Two entries share bytes.
    #[error("entry {index} overlaps entry {other}")]
    EntryOverlap {
        /// Index of an entry.
        index: usize,
        /// Index of the other.
        other: usize,
    },
    /// A compressed bundle of a version that this crate does not know.
    #[error("compressed bundle (CCOB) version {found}, known are 1, 2 and 3")]
    CompressedVersion {
        /// The version found.
        found: u16,
    },
    /// A compression method that this crate does not know.
    #[error("compression method {found}, known are 0 (zlib) and 1 (zstd)")]
    CompressionMethod {
        /// The method found.
        found: u16,
    },
    /// A compressed bundle whose total size is smaller than its header.
    #[error("the compressed bundle claims {bytes} bytes, its header alone has {header}")]
    CompressedSize {
        /// Total size claimed.
        bytes: u64,
        /// Size of the header.
        header: u64,
    },
    /// A content size that the limit or the compression method excludes.
    #[error("{compressed} compressed bytes claim to hold {bytes}, at most {limit} are possible")]
    ContentTooLarge {
        /// Uncompressed size claimed.
        bytes: u64,
        /// Size of the compressed data.
        compressed: u64,
        /// The smaller of the caller's limit and what the method can reach.
        limit: u64,
    },
    /// The decompressed content is not as large as the header says.
    #[error("the content has {found} bytes{}, the header says {expected}", if *.more { " or more" } else { "" })]
    ContentSize {
        /// Size in the header.
        expected: u64,
        /// Bytes found.
        found: u64,
        /// Whether decompression stopped there, with more to come.
        more: bool,
    },
    /// The compressed stream is damaged.
    #[error("the {method} stream is damaged: {reason}")]
    Stream {
        /// `zlib` or `zstd`.
        method: &'static str,
        /// What the decoder said.
        reason: String,
    },
    /// Bytes between the end of the compressed stream and the end of the bundle.
    #[error("{bytes} bytes follow the compressed stream")]
    AfterStream {
        /// How many.
        bytes: u64,
    },
    /// The content's MD5 is not the one in the header.
    #[error("the content's hash is {found:#018x}, the header says {expected:#018x}")]
    Hash {
        /// Hash in the header.
        expected: u64,
        /// First eight bytes of the content's MD5.
        found: u64,
    },
    /// The content of a compressed bundle is not an uncompressed bundle.
    #[error("the compressed content is not a bundle: it starts with {start:02x?}")]
    NotABundle {
        /// Up to eight first bytes.
        start: Vec<u8>,
    },
    /// A compressed bundle, and this crate was built without its feature `compression`.
    #[error("the bundle is compressed, and this build has no decompression")]
    NoDecompression,
    /// Something that is neither padding nor a bundle after a bundle.
    #[error("after the bundle comes neither padding nor another bundle: {start:02x?}")]
    Trailing {
        /// Up to eight first bytes.
        start: Vec<u8>,
    },
    /// A size that cannot be told without decompressing (compressed bundle version 1).
    #[error("a version 1 compressed bundle does not say how long it is: its size must be given")]
    NoLength,
    /// A host file without device code.
    #[error("a host file without device code: it has no section .hip_fatbin")]
    NoDeviceCode,
    /// A host file whose device code is of a kind that this crate does not read.
    #[error("device code in section {section}: {advice}")]
    Unsupported {
        /// Name of the section.
        section: &'static str,
        /// What can be done.
        advice: &'static str,
    },
    /// A host file that is damaged.
    #[error("the host file's {what} cannot be read")]
    HostFile {
        /// What cannot be read.
        what: &'static str,
    },
    /// A fat-binary wrapper with a magic number that is not `HIPF`.
    #[error("fat-binary wrapper with magic {found:#010x}, expected 0x48495046 (HIPF)")]
    WrapperMagic {
        /// The number found.
        found: u32,
    },
    /// A wrapper of packed kernels (`HIPK`): the code is in another file.
    #[error("packed kernels (HIPK): the device code is in a .kpack file, which is not supported")]
    PackedKernels,
    /// A fat-binary wrapper of a version that this crate does not know.
    #[error("fat-binary wrapper of version {found}, known is 1")]
    WrapperVersion {
        /// The version found.
        found: u32,
    },
    /// A fat-binary wrapper whose bundle pointer is null.
    #[error("fat-binary wrapper without a bundle")]
    NullBundle,
    /// A fat-binary wrapper or its bundle at an address that is not 8-byte aligned.
    #[error("{what} at {address:#x} is not 8-byte aligned")]
    Misaligned {
        /// What it is.
        what: &'static str,
        /// Its address.
        address: u64,
    },
}
