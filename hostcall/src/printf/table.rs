//! A module's format strings, from `amdhsa.printf` of its code object.

use hsaco::PrintfProblem;
use hsaco::metadata::{PrintfFormat, PrintfId};

use crate::format::{Needs, needs};

/// Which records a module's kernels write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordKind {
    /// HIP with `-mprintf-kind=buffered`: a control word, then a hash or a format.
    Hip,
    /// OpenCL: an id, then arguments of the sizes that the metadata names.
    OpenCl,
}

/// Why an entry of `amdhsa.printf` is not used. `entry` is its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EntryError {
    /// It is no format.
    #[error("printf entry {entry}: {problem}")]
    Malformed {
        /// Index.
        entry: usize,
        /// What is wrong.
        problem: PrintfProblem,
    },
    /// Its arguments exceed any FIFO.
    #[error("printf entry {entry} has more argument bytes than a FIFO can hold")]
    TooLong {
        /// Index.
        entry: usize,
    },
    /// The entries before it are of the other kind.
    #[error("printf entry {entry} mixes HIP and OpenCL")]
    Mixed {
        /// Index.
        entry: usize,
    },
    /// Another entry has its id, with another format or other sizes.
    #[error("printf entry {entry} has the id of another")]
    DuplicateId {
        /// Index.
        entry: usize,
    },
}

/// What the table has for a hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup<'a> {
    /// One format.
    Format {
        /// As C has it, without a NUL.
        format: &'a [u8],
        /// Its arguments.
        needs: Needs,
    },
    /// Nothing.
    Unknown,
    /// Several formats.
    Ambiguous,
}

struct Hashed {
    hash: u64,
    format: Vec<u8>,
    needs: Needs,
    ambiguous: bool,
}

/// An OpenCL format.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Numbered {
    id: u32,
    /// Bytes of each argument, multiples of 4 if the compiler is honest.
    pub sizes: Vec<u32>,
    /// Sum of the sizes.
    pub arguments_bytes: u32,
    pub format: Vec<u8>,
}

enum Formats {
    Hip(Vec<Hashed>),
    OpenCl(Vec<Numbered>),
}

/// The formats of a module, by hash or id. Its memory is bounded by the metadata's.
pub struct FormatTable {
    formats: Formats,
    errors: Vec<EntryError>,
}

impl std::fmt::Debug for FormatTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FormatTable")
            .field("kind", &self.kind())
            .field("errors", &self.errors)
            .finish_non_exhaustive()
    }
}

impl FormatTable {
    /// Reads the entries. One that cannot be used is left out and listed in [`Self::errors`]; its records
    /// print as markers.
    #[must_use]
    pub fn new<'a>(entries: impl IntoIterator<Item = &'a str>) -> Self {
        let mut hashed = Vec::new();
        let mut numbered = Vec::new();
        let mut errors = Vec::new();
        for (entry, text) in entries.into_iter().enumerate() {
            match parse(entry, text) {
                Ok(Entry::Hip(_)) if !numbered.is_empty() => {
                    errors.push(EntryError::Mixed { entry })
                }
                Ok(Entry::OpenCl(_)) if !hashed.is_empty() => {
                    errors.push(EntryError::Mixed { entry });
                }
                Ok(Entry::Hip(format)) => hashed.push(format),
                Ok(Entry::OpenCl(format)) => numbered.push((entry, format)),
                Err(error) => errors.push(error),
            }
        }
        let formats = if numbered.is_empty() {
            Formats::Hip(merge(hashed))
        } else {
            Formats::OpenCl(unique(numbered, &mut errors))
        };
        Self { formats, errors }
    }

    /// Which records the module writes.
    #[must_use]
    pub const fn kind(&self) -> RecordKind {
        match self.formats {
            Formats::Hip(_) => RecordKind::Hip,
            Formats::OpenCl(_) => RecordKind::OpenCl,
        }
    }

    /// Entries that are not used.
    #[must_use]
    pub fn errors(&self) -> &[EntryError] {
        &self.errors
    }

    /// The format of a HIP record.
    #[must_use]
    pub fn hash(&self, hash: u64) -> Lookup<'_> {
        let Formats::Hip(formats) = &self.formats else { return Lookup::Unknown };
        let found = formats.binary_search_by_key(&hash, |format| format.hash);
        match found.ok().and_then(|index| formats.get(index)) {
            None => Lookup::Unknown,
            Some(format) if format.ambiguous => Lookup::Ambiguous,
            Some(format) => Lookup::Format { format: &format.format, needs: format.needs },
        }
    }

    /// The format of an OpenCL record.
    pub(super) fn id(&self, id: u32) -> Option<&Numbered> {
        let Formats::OpenCl(formats) = &self.formats else { return None };
        formats.get(formats.binary_search_by_key(&id, |format| format.id).ok()?)
    }
}

enum Entry {
    Hip(Hashed),
    OpenCl(Numbered),
}

fn parse(entry: usize, text: &str) -> Result<Entry, EntryError> {
    let parsed =
        PrintfFormat::parse(text).map_err(|problem| EntryError::Malformed { entry, problem })?;
    let id = match parsed.id {
        PrintfId::Hash(hash) => {
            let format = crate::format::until_nul(parsed.format.as_bytes()).to_vec();
            let needs = needs(&format);
            return Ok(Entry::Hip(Hashed { hash, format, needs, ambiguous: false }));
        }
        PrintfId::Ordinal(id) => id,
    };
    let sizes = parsed.argument_bytes;
    let arguments_bytes = sizes.iter().try_fold(0u32, |sum, &size| sum.checked_add(size));
    let arguments_bytes =
        arguments_bytes.filter(|&sum| sum <= u32::MAX - 4).ok_or(EntryError::TooLong { entry })?;
    let format = parsed.format.into_owned().into_bytes();
    Ok(Entry::OpenCl(Numbered { id, sizes, arguments_bytes, format }))
}

/// Sorts by hash; the same format twice is one, two formats of one hash are ambiguous.
fn merge(mut formats: Vec<Hashed>) -> Vec<Hashed> {
    formats.sort_by_key(|format| format.hash);
    formats.dedup_by(|later, kept| {
        let same_hash = later.hash == kept.hash;
        kept.ambiguous |= same_hash && later.format != kept.format;
        same_hash
    });
    formats
}

/// Sorts by id; an id with two formats has none, since nothing says how long its records are.
fn unique(mut formats: Vec<(usize, Numbered)>, errors: &mut Vec<EntryError>) -> Vec<Numbered> {
    formats.sort_by_key(|(_, format)| format.id);
    let mut ambiguous = Vec::new();
    formats.dedup_by(|(entry, later), (_, kept)| {
        let same_id = later.id == kept.id;
        if same_id && later != kept {
            ambiguous.push(kept.id);
            errors.push(EntryError::DuplicateId { entry: *entry });
        }
        same_id
    });
    formats.retain(|(_, format)| ambiguous.binary_search(&format.id).is_err());
    formats.into_iter().map(|(_, format)| format).collect()
}
