//! Offload bundles: several code objects, one for each target, in one piece.
//!
//! Clang writes them plain (`__CLANG_OFFLOAD_BUNDLE__`) or compressed (`CCOB`, versions 1 to 3), and
//! links them one after another into a section of the host file. [`crate::Container`] finds them;
//! here one is read. Layouts: docs/ABI.md §Offload bundle, §Compressed bundle.

mod ccob;
mod extent;
#[cfg(feature = "compression")]
mod inflate;
mod plain;

use std::borrow::Cow;
use std::ops::Range;

pub use ccob::{CompressedHeader, CompressionMethod};
pub use extent::{Extent, MAX_ENTRIES_UNSIZED, extent};

pub(crate) use ccob::CompressedBundle;

use crate::error::ContainerProblem;

/// Most bytes that [`crate::Container::read`] decompresses from one file: as many as fit in the memory of
/// one image ([`crate::load::MAX_LOAD_BYTES`]).
pub const MAX_DECOMPRESSED_BYTES: u64 = 4 << 30;

/// How a bundle is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Encoding {
    /// One code object by itself, in a file of its own or in a section of a host object.
    Bare,
    /// An uncompressed bundle.
    Plain,
    /// A compressed bundle.
    Compressed(CompressedHeader),
}

/// A bundle: its entries and their bytes, borrowed from the file or decompressed from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bundle<'data> {
    offset: u64,
    encoding: Encoding,
    data: Cow<'data, [u8]>,
    entries: Vec<EntryRange>,
}

/// An entry by its places in the bundle's data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EntryRange {
    /// `None` for a code object by itself.
    id: Option<String>,
    content: Range<usize>,
}

/// An entry of a bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BundleEntry<'a> {
    /// `KIND-TRIPLE-TARGET`, as in `hipv4-amdgcn-amd-amdhsa--gfx90a`; `None` for a code object by
    /// itself. Text for messages: what the code is for is in the code.
    pub id: Option<&'a str>,
    /// The code object. May be anything else: nothing is checked before it is parsed.
    pub bytes: &'a [u8],
}

impl<'a> BundleEntry<'a> {
    /// Whether this is the host's entry, which holds nothing.
    pub fn is_host(&self) -> bool {
        self.kind() == Some("host")
    }

    /// The part of the id before the triple: `host`, `hip`, `hipv4`, `hcc`, `openmp`.
    pub fn kind(&self) -> Option<&'a str> {
        Some(self.id?.split_once('-')?.0)
    }

    /// The target id at the end of the id, if there is one: `gfx90a:xnack+`.
    pub fn target_text(&self) -> Option<&'a str> {
        let id = self.id?;
        id.get(id.rfind("-gfx")? + 1..)
    }
}

impl<'data> Bundle<'data> {
    /// A code object by itself.
    pub(crate) fn bare(offset: u64, id: Option<String>, bytes: &'data [u8]) -> Self {
        let entries = vec![EntryRange { id, content: 0..bytes.len() }];
        Self { offset, encoding: Encoding::Bare, data: Cow::Borrowed(bytes), entries }
    }

    /// The bundle at the start of `bytes`, and how many of them it takes.
    ///
    /// `offset` is where `bytes` start in the file; at most `limit` bytes are decompressed.
    pub(crate) fn read(
        offset: u64,
        bytes: &'data [u8],
        limit: u64,
    ) -> Result<(Self, usize), ContainerProblem> {
        if bytes.starts_with(&plain::MAGIC) {
            let (entries, end) = plain::read(bytes)?;
            let data = bytes.get(..end).unwrap_or(bytes);
            let encoding = Encoding::Plain;
            return Ok((Self { offset, encoding, data: Cow::Borrowed(data), entries }, end));
        }
        if bytes.starts_with(&ccob::MAGIC) {
            let compressed = CompressedBundle::read(bytes)?;
            let (content, end) = compressed.content(limit)?;
            if !content.starts_with(&plain::MAGIC) {
                return Err(ContainerProblem::NotABundle { start: start_of(&content) });
            }
            let (entries, content_end) = plain::read(&content)?;
            // Only padding may follow, as in the file that was compressed.
            if let Some(at) = content.get(content_end..).and_then(first_not_zero) {
                let rest = content.get(content_end + at..).unwrap_or(&[]);
                return Err(ContainerProblem::Trailing { start: start_of(rest) });
            }
            let encoding = Encoding::Compressed(compressed.header);
            return Ok((Self { offset, encoding, data: Cow::Owned(content), entries }, end));
        }
        Err(ContainerProblem::Unknown { start: start_of(bytes) })
    }

    /// Where it starts in the file, bytes.
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    /// How it is stored.
    pub const fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// Its size, decompressed, bytes.
    pub fn content_bytes(&self) -> usize {
        self.data.len()
    }

    /// Its entries in file order, the host's included.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = BundleEntry<'_>> {
        self.entries.iter().map(|entry| BundleEntry {
            id: entry.id.as_deref(),
            // The ranges were checked against this data.
            bytes: self.data.get(entry.content.clone()).unwrap_or(&[]),
        })
    }

    /// Its entries for devices, in file order.
    pub fn images(&self) -> impl Iterator<Item = BundleEntry<'_>> {
        self.entries().filter(|entry| !entry.is_host())
    }
}

/// The first bytes of something that is not what was expected.
pub(crate) fn start_of(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().copied().take(8).collect()
}

/// Where padding ends.
pub(crate) fn first_not_zero(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|&byte| byte != 0)
}

/// Checked little-endian reads at byte offsets.
#[derive(Clone, Copy)]
pub(crate) struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    pub fn range(
        self,
        what: &'static str,
        offset: u64,
        bytes: u64,
    ) -> Result<&'a [u8], ContainerProblem> {
        let end = offset.checked_add(bytes);
        let found = end
            .and_then(|end| self.0.get(usize::try_from(offset).ok()?..usize::try_from(end).ok()?));
        found.ok_or(ContainerProblem::Truncated {
            what,
            offset,
            end: end.unwrap_or(u64::MAX),
            found: self.0.len() as u64,
        })
    }

    fn array<const N: usize>(
        self,
        what: &'static str,
        offset: u64,
    ) -> Result<[u8; N], ContainerProblem> {
        let bytes = self.range(what, offset, N as u64)?;
        Ok(bytes.try_into().unwrap_or([0; N]))
    }

    pub fn u16(self, what: &'static str, offset: u64) -> Result<u16, ContainerProblem> {
        self.array(what, offset).map(u16::from_le_bytes)
    }

    pub fn u32(self, what: &'static str, offset: u64) -> Result<u32, ContainerProblem> {
        self.array(what, offset).map(u32::from_le_bytes)
    }

    pub fn u64(self, what: &'static str, offset: u64) -> Result<u64, ContainerProblem> {
        self.array(what, offset).map(u64::from_le_bytes)
    }
}
