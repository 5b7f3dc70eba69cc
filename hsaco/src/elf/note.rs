//! The AMDGPU metadata note.

use object::LittleEndian as LE;
use object::elf;

use super::{File, ProgramHeader};
use crate::error::{Error, Result};

/// n_type of the note named `AMDGPU` that holds MessagePack metadata.
const NT_AMDGPU_METADATA: u32 = 32;
const NAME: &[u8] = b"AMDGPU";
const NOTE_HEADER_BYTES: usize = 12;

/// The descriptor of the one metadata note.
pub(crate) fn metadata_note<'data>(
    file: File<'data>,
    headers: &[ProgramHeader],
) -> Result<&'data [u8]> {
    let mut found = None;
    for header in headers.iter().filter(|header| header.p_type.get(LE) == elf::PT_NOTE) {
        let bytes = file.range("notes", header.p_offset.get(LE), header.p_filesz.get(LE))?;
        let mut rest = bytes;
        while rest.len() >= NOTE_HEADER_BYTES {
            let (note, after) = next_note(rest).ok_or(Error::Truncated {
                what: "a note",
                offset: header.p_offset.get(LE) + (bytes.len() - rest.len()) as u64,
                end: u64::MAX,
                found: file.len(),
            })?;
            if note.kind == NT_AMDGPU_METADATA
                && note.name.strip_suffix(&[0]).unwrap_or(note.name) == NAME
                && found.replace(note.content).is_some()
            {
                return Err(Error::DuplicateMetadata);
            }
            rest = after;
        }
    }
    found.ok_or(Error::NoMetadata)
}

struct Note<'data> {
    kind: u32,
    name: &'data [u8],
    content: &'data [u8],
}

/// Splits off the first note. The padding after the last one may be missing.
fn next_note(bytes: &[u8]) -> Option<(Note<'_>, &[u8])> {
    let (header, rest) = bytes.split_at_checked(NOTE_HEADER_BYTES)?;
    let word = |index: usize| -> Option<u32> {
        Some(u32::from_le_bytes(header.get(index * 4..index * 4 + 4)?.try_into().ok()?))
    };
    let name_bytes = usize::try_from(word(0)?).ok()?;
    let content_bytes = usize::try_from(word(1)?).ok()?;
    let (name, rest) = rest.split_at_checked(name_bytes)?;
    let rest = rest.get(padding(name_bytes)..)?;
    let (content, rest) = rest.split_at_checked(content_bytes)?;
    let rest = rest.get(padding(content_bytes)..).unwrap_or(&[]);
    Some((Note { kind: word(2)?, name, content }, rest))
}

const fn padding(bytes: usize) -> usize {
    bytes.wrapping_neg() & 3
}
