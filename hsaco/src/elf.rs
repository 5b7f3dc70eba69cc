//! The ELF container: header, segments, dynamic tables, symbols, the metadata note.
//!
//! Layouts and generic constants are `object`'s; this file has AMDGPU's.
//! docs/ABI.md §Code object container. All tables are found through program headers and PT_DYNAMIC; section headers are
//! used only to find `.symtab`, and may be absent.

mod dynamic;
mod note;
mod segments;
mod symbols;

use object::LittleEndian as LE;
use object::elf;
use object::pod::{self, Pod};

pub(crate) use dynamic::Dynamic;
pub(crate) use note::metadata_note;
pub(crate) use segments::Segments;
pub(crate) use symbols::{STT_OBJECT, Symbol, SymbolTable, dynamic_symbols, section_symbols};

use crate::error::{Error, Result};

pub(crate) type Header = elf::FileHeader64<LE>;
pub(crate) type ProgramHeader = elf::ProgramHeader64<LE>;
pub(crate) type SectionHeader = elf::SectionHeader64<LE>;
pub(crate) type RawSymbol = elf::Sym64<LE>;
pub(crate) type Rela = elf::Rela64<LE>;

const EM_AMDGPU: u16 = 224;
const ELFOSABI_AMDGPU_HSA: u8 = 64;
const HEADER_BYTES: u64 = 64;
const PROGRAM_HEADER_BYTES: u16 = 56;
const SECTION_HEADER_BYTES: u16 = 64;

/// Version of the code object ABI, from EI_ABIVERSION.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CodeObjectVersion {
    /// EI_ABIVERSION 1, metadata 1.0.
    V3,
    /// EI_ABIVERSION 2, metadata 1.1.
    V4,
    /// EI_ABIVERSION 3, metadata 1.2.
    V5,
    /// EI_ABIVERSION 4, metadata 1.2.
    V6,
}

impl CodeObjectVersion {
    /// The number in `-mcode-object-version=`.
    pub const fn number(self) -> u8 {
        match self {
            Self::V3 => 3,
            Self::V4 => 4,
            Self::V5 => 5,
            Self::V6 => 6,
        }
    }
}

/// A whole file with checked access.
#[derive(Clone, Copy, Debug)]
pub(crate) struct File<'data> {
    pub bytes: &'data [u8],
}

impl<'data> File<'data> {
    pub fn len(self) -> u64 {
        // A usize fits in 64 bits on every platform of this project.
        self.bytes.len() as u64
    }

    /// Bytes `offset .. offset + size`.
    pub fn range(self, what: &'static str, offset: u64, size: u64) -> Result<&'data [u8]> {
        let end = offset.checked_add(size);
        let range = end.and_then(|end| {
            self.bytes.get(usize::try_from(offset).ok()?..usize::try_from(end).ok()?)
        });
        range.ok_or(Error::Truncated {
            what,
            offset,
            end: end.unwrap_or(u64::MAX),
            found: self.len(),
        })
    }

    /// `count` structures at `offset`.
    pub fn table<T: Pod>(self, what: &'static str, offset: u64, count: u64) -> Result<&'data [T]> {
        let size = count.saturating_mul(size_of::<T>() as u64);
        let bytes = self.range(what, offset, size)?;
        Ok(structures(bytes))
    }
}

/// As many whole structures as `bytes` holds.
pub(crate) fn structures<T: Pod>(bytes: &[u8]) -> &[T] {
    // All structures used here are byte-aligned (object's feature `unaligned`), so this succeeds.
    pod::slice_from_bytes(bytes, bytes.len() / size_of::<T>()).map_or(&[], |(table, _)| table)
}

/// The parts of the ELF header that matter, checked.
pub(crate) struct Identity<'data> {
    pub version: CodeObjectVersion,
    pub flags: u32,
    pub program_headers: &'data [ProgramHeader],
    pub section_headers: &'data [SectionHeader],
}

fn refuse_foreign(bytes: &[u8]) -> Result<()> {
    if bytes.starts_with(b"__CLANG_OFFLOAD_BUNDLE__") {
        return Err(Error::OffloadBundle);
    }
    if bytes.starts_with(b"CCOB") {
        return Err(Error::CompressedBundle);
    }
    let start: Vec<u8> = bytes.iter().copied().take(4).collect();
    if !elf::ELFMAG.starts_with(&start) {
        return Err(Error::NotElf { start });
    }
    Ok(())
}

/// Checks the ELF header and finds the two header tables.
pub(crate) fn identify(file: File<'_>) -> Result<Identity<'_>> {
    refuse_foreign(file.bytes)?;
    let bytes = file.range("ELF header", 0, HEADER_BYTES)?;
    let (header, _) = pod::from_bytes::<Header>(bytes)
        .map_err(|()| Error::Header { field: "e_ident", value: 0 })?;
    let ident = &header.e_ident;
    if ident.class.0 != 2 {
        return Err(Error::NotElf64 { found: ident.class.0 });
    }
    if ident.data.0 != 1 {
        return Err(Error::NotLittleEndian { found: ident.data.0 });
    }
    for found in [u32::from(ident.version.0), header.e_version.get(LE)] {
        if found != 1 {
            return Err(Error::ElfVersion { found });
        }
    }
    let machine = header.e_machine.get(LE).0;
    if machine != EM_AMDGPU {
        return Err(Error::NotAmdgpu { machine });
    }
    match header.e_type.get(LE) {
        elf::ET_DYN => {}
        elf::ET_REL => return Err(Error::Relocatable),
        other => return Err(Error::NotSharedObject { found: other.0 }),
    }
    if ident.os_abi.0 != ELFOSABI_AMDGPU_HSA {
        return Err(Error::NotHsa { found: ident.os_abi.0 });
    }
    let version = match ident.abi_version {
        0 => return Err(Error::ObsoleteVersion),
        1 => CodeObjectVersion::V3,
        2 => CodeObjectVersion::V4,
        3 => CodeObjectVersion::V5,
        4 => CodeObjectVersion::V6,
        found => return Err(Error::UnknownVersion { found }),
    };
    Ok(Identity {
        version,
        flags: header.e_flags.get(LE).0,
        program_headers: program_headers(file, header)?,
        section_headers: section_headers(file, header)?,
    })
}

fn program_headers<'data>(file: File<'data>, header: &Header) -> Result<&'data [ProgramHeader]> {
    let count = header.e_phnum.get(LE);
    if count == 0 {
        return Err(Error::NoSegments);
    }
    // PN_XNUM moves the count into section 0; no code object has that many segments.
    if count == elf::PN_XNUM {
        return Err(Error::Header { field: "e_phnum", value: count.into() });
    }
    let entry_bytes = header.e_phentsize.get(LE);
    if entry_bytes != PROGRAM_HEADER_BYTES {
        return Err(Error::Header { field: "e_phentsize", value: entry_bytes.into() });
    }
    let offset = header.e_phoff.get(LE);
    if offset < HEADER_BYTES {
        return Err(Error::Header { field: "e_phoff", value: offset });
    }
    file.table("program headers", offset, count.into())
}

fn section_headers<'data>(file: File<'data>, header: &Header) -> Result<&'data [SectionHeader]> {
    let offset = header.e_shoff.get(LE);
    let count = header.e_shnum.get(LE);
    // 0 also stands for a count that is kept in section 0 (0xff00 sections and more). Sections are
    // optional here, so such a file is read without them.
    if offset == 0 || count == 0 {
        return Ok(&[]);
    }
    let entry_bytes = header.e_shentsize.get(LE);
    if entry_bytes != SECTION_HEADER_BYTES {
        return Err(Error::Header { field: "e_shentsize", value: entry_bytes.into() });
    }
    if offset < HEADER_BYTES {
        return Err(Error::Header { field: "e_shoff", value: offset });
    }
    file.table("section headers", offset, count.into())
}
