//! Why a file is not a code object that this crate can load.

mod container;
mod kernel;
mod managed;
mod metadata;
mod target;

pub use container::ContainerProblem;
pub use kernel::{ArgumentError, DescriptorProblem};
pub use managed::ManagedProblem;
pub use metadata::{MetadataProblem, PrintfProblem};
pub use target::TargetProblem;

/// Shorthand for results of this crate.
pub type Result<T, E = Error> = core::result::Result<T, E>;

/// Why a code object was refused. Offsets are bytes from the start of the file, addresses are the
/// object's own (`vaddr`), sizes are bytes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The input ends inside something that must be whole.
    #[error("file is cut short: {what} needs bytes {offset:#x}..{end:#x}, the file has {found:#x}")]
    Truncated {
        /// What was to be read.
        what: &'static str,
        /// Its first byte.
        offset: u64,
        /// The byte after its last.
        end: u64,
        /// Length of the file.
        found: u64,
    },
    /// The file is no ELF file at all.
    #[error("not an ELF file: it starts with {start:02x?}")]
    NotElf {
        /// Up to four first bytes.
        start: Vec<u8>,
    },
    /// An uncompressed clang offload bundle, which holds code objects but is none.
    #[error("an offload bundle, not a code object: unbundle it first")]
    OffloadBundle,
    /// A compressed clang offload bundle (`CCOB`).
    #[error("a compressed offload bundle (CCOB), not a code object: unbundle it first")]
    CompressedBundle,
    /// A bundle or host file that cannot be read.
    #[error("container at byte {offset:#x} of the file")]
    Container {
        /// Where the bundle starts in the file.
        offset: u64,
        /// What is wrong with it.
        #[source]
        problem: ContainerProblem,
    },
    /// EI_CLASS is not ELFCLASS64.
    #[error("ELF class {found}, code objects are 64-bit (2)")]
    NotElf64 {
        /// EI_CLASS.
        found: u8,
    },
    /// EI_DATA is not ELFDATA2LSB.
    #[error("ELF byte order {found}, code objects are little-endian (1)")]
    NotLittleEndian {
        /// EI_DATA.
        found: u8,
    },
    /// EI_VERSION or e_version is not 1.
    #[error("ELF version {found}, expected 1")]
    ElfVersion {
        /// The version found.
        found: u32,
    },
    /// An ELF file for another processor, such as the host's.
    #[error("ELF file for machine {machine}, code objects are for AMDGPU (224)")]
    NotAmdgpu {
        /// e_machine.
        machine: u16,
    },
    /// A relocatable object (ET_REL): it was never linked.
    #[error("a relocatable object (ET_REL): link it with ld.lld -shared first")]
    Relocatable,
    /// Any other e_type.
    #[error("ELF type {found}, code objects are shared objects (3)")]
    NotSharedObject {
        /// e_type.
        found: u16,
    },
    /// EI_OSABI is not ELFOSABI_AMDGPU_HSA, as for graphics shaders.
    #[error("ELF OS ABI {found}, only HSA (64) can be loaded")]
    NotHsa {
        /// EI_OSABI.
        found: u8,
    },
    /// Code object version 2 or older.
    #[error(
        "code object version 2 or older, which is obsolete: rebuild with -mcode-object-version=5"
    )]
    ObsoleteVersion,
    /// A code object version that is newer than this crate.
    #[error("ELF ABI version {found}, known are 1 to 4 (code object versions 3 to 6)")]
    UnknownVersion {
        /// EI_ABIVERSION.
        found: u8,
    },
    /// The target in e_flags cannot be loaded.
    #[error("target in e_flags {flags:#x} cannot be loaded")]
    Target {
        /// e_flags.
        flags: u32,
        /// What is wrong with it.
        #[source]
        problem: TargetProblem,
    },
    /// An ELF header field with a value that no loader can follow.
    #[error("ELF field {field} is {value:#x}, which is not valid")]
    Header {
        /// Name of the field.
        field: &'static str,
        /// Its value.
        value: u64,
    },
    /// No PT_LOAD segment.
    #[error("no loadable segment")]
    NoSegments,
    /// A segment whose file part is larger than its memory part.
    #[error("segment {index}: {file_bytes:#x} bytes in the file, only {memory_bytes:#x} in memory")]
    SegmentSizes {
        /// Index among the program headers.
        index: usize,
        /// p_filesz.
        file_bytes: u64,
        /// p_memsz.
        memory_bytes: u64,
    },
    /// PT_LOAD segments that overlap or do not ascend.
    #[error(
        "segment {index} starts at {vaddr:#x}, below {previous_end:#x} where the one before it ends"
    )]
    SegmentOrder {
        /// Index among the program headers.
        index: usize,
        /// p_vaddr.
        vaddr: u64,
        /// End of the previous segment.
        previous_end: u64,
    },
    /// Segments span more memory than [`crate::load::MAX_LOAD_BYTES`].
    #[error("the object needs {bytes:#x} bytes of memory, more than {limit:#x}")]
    TooLarge {
        /// Bytes asked for.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// A table of the dynamic segment is not inside a loaded, file-backed range.
    #[error("{table} at {vaddr:#x} (+{bytes:#x}) is outside the file's loaded bytes")]
    TableOutside {
        /// Name of the table.
        table: &'static str,
        /// Its address.
        vaddr: u64,
        /// Its size.
        bytes: u64,
    },
    /// A dynamic tag with a value that is not valid, missing or given twice.
    #[error("dynamic tag {tag} is {problem}")]
    Dynamic {
        /// Name of the tag.
        tag: &'static str,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A symbol name that is not inside its string table, or not terminated.
    #[error("symbol {index} of {table}: name offset {offset:#x} is not a string of its table")]
    SymbolName {
        /// `.dynsym` or `.symtab`.
        table: &'static str,
        /// Index of the symbol.
        index: u64,
        /// st_name.
        offset: u32,
    },
    /// One global name defined twice.
    #[error("symbol {name:?} is defined twice")]
    DuplicateSymbol {
        /// The name.
        name: String,
    },
    /// A symbol whose range is not inside the image.
    #[error("symbol {name:?} at {vaddr:#x} (+{bytes:#x}) is outside the image")]
    SymbolOutside {
        /// The name.
        name: String,
        /// st_value.
        vaddr: u64,
        /// st_size.
        bytes: u64,
    },
    /// No AMDGPU metadata note.
    #[error("no AMDGPU metadata note")]
    NoMetadata,
    /// More than one AMDGPU metadata note.
    #[error("more than one AMDGPU metadata note")]
    DuplicateMetadata,
    /// The metadata note is not valid.
    #[error("metadata at note offset {offset:#x}{}", in_kernel(.kernel))]
    Metadata {
        /// Kernel being read, if any.
        kernel: Option<String>,
        /// Byte inside the note's descriptor where reading stopped.
        offset: usize,
        /// What is wrong there.
        #[source]
        problem: MetadataProblem,
    },
    /// A kernel whose descriptor is missing or not valid.
    #[error("kernel {kernel:?} cannot be launched")]
    Kernel {
        /// `.name` of the kernel.
        kernel: String,
        /// What is wrong with it.
        #[source]
        problem: DescriptorProblem,
    },
    /// A managed variable that cannot be set up.
    #[error("managed variable {variable:?} cannot be set up")]
    Managed {
        /// Its name.
        variable: String,
        /// What is wrong with it.
        #[source]
        problem: ManagedProblem,
    },
    /// Two kernels with the same name or descriptor.
    #[error("kernel {kernel:?} is listed twice")]
    DuplicateKernel {
        /// `.name` or `.symbol`.
        kernel: String,
    },
    /// A relocation whose place is not inside a writable segment.
    #[error("relocation {index} at {vaddr:#x} (+{bytes}) is not inside a writable segment")]
    RelocationOutside {
        /// Index in the table.
        index: usize,
        /// r_offset.
        vaddr: u64,
        /// Bytes it writes.
        bytes: u64,
    },
    /// A relocation type that does not occur in linked objects.
    #[error("relocation {index} has type {kind}, which a linked object cannot have")]
    RelocationType {
        /// Index in the table.
        index: usize,
        /// r_type.
        kind: u32,
    },
    /// A relocation against a symbol that is not in the table, or of a type without an address.
    #[error("relocation {index} names symbol {symbol}, which cannot be its target")]
    RelocationSymbol {
        /// Index in the table.
        index: usize,
        /// Symbol index.
        symbol: u32,
    },
    /// A relocation against a symbol that nobody defines.
    #[error("symbol {name:?} is undefined")]
    UndefinedSymbol {
        /// The name.
        name: String,
    },
    /// A relocation that would change a kernel descriptor, which was checked without it.
    #[error("relocation {index} at {vaddr:#x} changes a kernel descriptor")]
    RelocationInDescriptor {
        /// Index in the table.
        index: usize,
        /// r_offset.
        vaddr: u64,
    },
    /// The base address is not a multiple of the page size, or too high for the image.
    #[error("an image of {bytes:#x} bytes cannot be placed at {base:#x}: pages are 4096 bytes")]
    Base {
        /// The base address.
        base: u64,
        /// Size of the image.
        bytes: u64,
    },
}

fn in_kernel(kernel: &Option<String>) -> String {
    kernel.as_ref().map(|name| format!(", kernel {name:?}")).unwrap_or_default()
}
