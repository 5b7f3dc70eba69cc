//! How long something is that was given by its address only.
//!
//! `hipModuleLoadData` and fat binaries pass a pointer without a size. [`extent`] tells from the bytes
//! known so far whether more must be looked at, and never asks for more than the bytes before prove
//! to be there.

use object::LittleEndian as LE;
use object::elf;
use object::pod;

use super::ccob::{self, CompressedHeader};
use super::{Fields, plain, start_of};
use crate::error::ContainerProblem;
use crate::load::MAX_LOAD_BYTES;

/// What is known of the length of an image in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// At least this many bytes belong to it; look at them and ask again.
    AtLeast(usize),
    /// It has exactly this many bytes.
    Exactly(usize),
}

/// Entries of a bundle that are read before its size is known.
pub const MAX_ENTRIES_UNSIZED: u64 = 1024;

/// Bytes of an id that are read before the bundle's size is known.
const MAX_ID_BYTES: u64 = 1024;

const ELF_HEADER_BYTES: u64 = 64;
/// Bytes that tell an ELF file from a bundle: the shortest that both have.
const FIRST_BYTES: u64 = 32;

/// How far the code object or bundle that starts with `known` reaches.
///
/// Start with an empty slice and lengthen it as [`Extent::AtLeast`] says; each answer is longer than
/// the slice. An ELF file ends with the last of its tables, segments and sections.
///
/// # Errors
/// [`ContainerProblem`] for bytes that start nothing known, a size that overflows or exceeds
/// [`MAX_LOAD_BYTES`], and compressed bundles of version 1 ([`ContainerProblem::NoLength`]).
pub fn extent(known: &[u8]) -> Result<Extent, ContainerProblem> {
    if (known.len() as u64) < FIRST_BYTES {
        return at_least(FIRST_BYTES);
    }
    if known.starts_with(&plain::MAGIC) {
        return bundle(known);
    }
    if known.starts_with(&ccob::MAGIC) {
        return match CompressedHeader::read(known)?.total_bytes {
            Some(bytes) => exactly(bytes),
            None => Err(ContainerProblem::NoLength),
        };
    }
    if known.starts_with(&elf::ELFMAG) {
        return elf_file(known);
    }
    Err(ContainerProblem::Unknown { start: start_of(known) })
}

fn checked(bytes: u64) -> Result<usize, ContainerProblem> {
    let limit = MAX_LOAD_BYTES;
    usize::try_from(bytes).ok().filter(|_| bytes <= limit).ok_or(ContainerProblem::Truncated {
        what: "an image without a given size",
        offset: 0,
        end: bytes,
        found: limit,
    })
}

fn at_least(bytes: u64) -> Result<Extent, ContainerProblem> {
    checked(bytes).map(Extent::AtLeast)
}

fn exactly(bytes: u64) -> Result<Extent, ContainerProblem> {
    checked(bytes).map(Extent::Exactly)
}

fn bundle(known: &[u8]) -> Result<Extent, ContainerProblem> {
    let fields = Fields(known);
    let len = known.len() as u64;
    let count = fields.u64("the bundle's header", plain::COUNT)?;
    let limit = MAX_ENTRIES_UNSIZED;
    match count {
        0 => return Err(ContainerProblem::NoEntries),
        _ if count > limit => return Err(ContainerProblem::TooManyEntries { count, limit }),
        _ => {}
    }
    let mut at = plain::ENTRIES;
    let mut end = at;
    for index in 0..usize::try_from(count).unwrap_or(usize::MAX) {
        if len < at + plain::ENTRY_BYTES {
            return at_least(at + plain::ENTRY_BYTES);
        }
        let id_bytes = fields.u64("an entry of the bundle", at + 16)?;
        if id_bytes > MAX_ID_BYTES {
            return Err(ContainerProblem::EntryId { index, id: String::new() });
        }
        if len < at + plain::ENTRY_BYTES + id_bytes {
            return at_least(at + plain::ENTRY_BYTES + id_bytes);
        }
        let entry = plain::description(fields, at)?;
        at = entry.end;
        end = end.max(at);
        if entry.bytes != 0 {
            let last = entry.offset.checked_add(entry.bytes);
            end = end.max(last.unwrap_or(u64::MAX));
        }
    }
    exactly(end)
}

fn elf_file(known: &[u8]) -> Result<Extent, ContainerProblem> {
    if (known.len() as u64) < ELF_HEADER_BYTES {
        return at_least(ELF_HEADER_BYTES);
    }
    let unreadable = ContainerProblem::HostFile { what: "ELF header" };
    let (header, _) =
        pod::from_bytes::<elf::FileHeader64<LE>>(known).map_err(|()| unreadable.clone())?;
    let (ident, machine) = (&header.e_ident, header.e_machine.get(LE));
    if ident.class.0 != 2 || ident.data.0 != 1 || machine.0 != elf::EM_AMDGPU.0 {
        return Err(unreadable);
    }
    let table = |offset: u64, count: u16, bytes: u64| {
        let size = u64::from(count) * bytes;
        if size == 0 { Some(0) } else { offset.checked_add(size) }
    };
    let (segments, sections) = (header.e_phnum.get(LE), header.e_shnum.get(LE));
    let (segment_offset, section_offset) = (header.e_phoff.get(LE), header.e_shoff.get(LE));
    let program_end = table(segment_offset, segments, 56).ok_or(unreadable.clone())?;
    let section_end = table(section_offset, sections, 64).ok_or(unreadable.clone())?;
    let tables = ELF_HEADER_BYTES.max(program_end).max(section_end);
    if (known.len() as u64) < tables {
        return at_least(tables);
    }
    let fields = Fields(known);
    let mut end = tables;
    let mut reach = |offset: u64, bytes: u64| {
        let last = if bytes == 0 { Some(0) } else { offset.checked_add(bytes) };
        end = end.max(last.unwrap_or(u64::MAX));
    };
    for index in 0..u64::from(segments) {
        let at = segment_offset + index * 56;
        reach(fields.u64("a program header", at + 8)?, fields.u64("a program header", at + 32)?);
    }
    for index in 0..u64::from(sections) {
        let at = section_offset + index * 64;
        // SHT_NULL and SHT_NOBITS have no bytes in the file.
        if !matches!(fields.u32("a section header", at + 4)?, 0 | 8) {
            reach(
                fields.u64("a section header", at + 24)?,
                fields.u64("a section header", at + 32)?,
            );
        }
    }
    exactly(end)
}
