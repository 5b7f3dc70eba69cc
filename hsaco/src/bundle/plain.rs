//! The uncompressed bundle.

use std::collections::BTreeSet;
use std::ops::Range;

use super::{EntryRange, Fields};
use crate::error::ContainerProblem;

/// First bytes of an uncompressed bundle. Source: docs/ABI.md §Offload bundle.
pub(crate) const MAGIC: [u8; 24] = *b"__CLANG_OFFLOAD_BUNDLE__";

/// Offset of the entry count.
pub(super) const COUNT: u64 = 24;
/// Offset of the first entry.
pub(super) const ENTRIES: u64 = 32;
/// Bytes of an entry before its id: offset, size, id length.
pub(super) const ENTRY_BYTES: u64 = 24;

/// Characters of a malformed id that an error shows.
const SHOWN: usize = 64;

/// An entry as its description says, unchecked.
pub(super) struct Description<'a> {
    pub offset: u64,
    pub bytes: u64,
    pub id: &'a [u8],
    /// Where the next description starts.
    pub end: u64,
}

/// The description at `at`.
pub(super) fn description(
    fields: Fields<'_>,
    at: u64,
) -> Result<Description<'_>, ContainerProblem> {
    const WHAT: &str = "an entry of the bundle";
    // `at` is at most the input's length, so these sums cannot overflow.
    let offset = fields.u64(WHAT, at)?;
    let bytes = fields.u64(WHAT, at + 8)?;
    let id_bytes = fields.u64(WHAT, at + 16)?;
    let id = fields.range("the id of an entry", at + ENTRY_BYTES, id_bytes)?;
    Ok(Description { offset, bytes, id, end: at + ENTRY_BYTES + id_bytes })
}

/// The entries of the bundle at the start of `bytes`, and where it ends.
pub(super) fn read(bytes: &[u8]) -> Result<(Vec<EntryRange>, usize), ContainerProblem> {
    let fields = Fields(bytes);
    let count = fields.u64("the bundle's header", COUNT)?;
    if count == 0 {
        return Err(ContainerProblem::NoEntries);
    }
    let limit = (bytes.len() as u64).saturating_sub(ENTRIES) / ENTRY_BYTES;
    if count > limit {
        return Err(ContainerProblem::TooManyEntries { count, limit });
    }
    let mut places = Vec::new();
    let mut entries = Vec::new();
    let mut at = ENTRIES;
    for index in 0..usize::try_from(count).unwrap_or(usize::MAX) {
        let entry = description(fields, at)?;
        let id = id(index, entry.id)?;
        at = entry.end;
        places.push((entry.offset, entry.bytes));
        entries.push(EntryRange { id: Some(id), content: 0..0 });
    }
    let mut seen = BTreeSet::new();
    if let Some(twice) = entries.iter().find(|entry| !seen.insert(&entry.id)) {
        return Err(ContainerProblem::DuplicateEntry { id: twice.id.clone().unwrap_or_default() });
    }
    let header_end = at;
    let mut end = usize::try_from(header_end).unwrap_or(bytes.len());
    for (index, (entry, &(offset, size))) in entries.iter_mut().zip(&places).enumerate() {
        entry.content = content(index, offset, size, header_end, bytes.len())?;
        end = end.max(entry.content.end);
    }
    refuse_overlap(&entries)?;
    Ok((entries, end))
}

fn id(index: usize, bytes: &[u8]) -> Result<String, ContainerProblem> {
    let printable = bytes.iter().all(u8::is_ascii_graphic);
    let text = core::str::from_utf8(bytes).ok().filter(|_| printable);
    let named = text.filter(|text| text.split_once('-').is_some_and(|(kind, _)| !kind.is_empty()));
    named.map(str::to_owned).ok_or_else(|| {
        let shown = bytes.get(..SHOWN).unwrap_or(bytes);
        ContainerProblem::EntryId { index, id: String::from_utf8_lossy(shown).into_owned() }
    })
}

/// Where an entry's bytes are. An empty entry, as the host's, may point anywhere.
fn content(
    index: usize,
    offset: u64,
    bytes: u64,
    header_end: u64,
    len: usize,
) -> Result<Range<usize>, ContainerProblem> {
    if bytes == 0 {
        return Ok(0..0);
    }
    let to = len as u64;
    let end = offset.checked_add(bytes).filter(|&end| offset >= header_end && end <= to);
    let range = end.and_then(|end| Some(usize::try_from(offset).ok()?..usize::try_from(end).ok()?));
    range.ok_or(ContainerProblem::EntryOutside { index, offset, bytes, from: header_end, to })
}

fn refuse_overlap(entries: &[EntryRange]) -> Result<(), ContainerProblem> {
    let mut ranges: Vec<(usize, usize, usize)> = (entries.iter().enumerate())
        .filter(|(_, entry)| !entry.content.is_empty())
        .map(|(index, entry)| (entry.content.start, entry.content.end, index))
        .collect();
    ranges.sort_unstable();
    for pair in ranges.windows(2) {
        if let [(_, end, other), (start, _, index)] = *pair
            && start < end
        {
            return Err(ContainerProblem::EntryOverlap { index, other });
        }
    }
    Ok(())
}
