//! PT_DYNAMIC: where the symbol, string and relocation tables are.

use object::LittleEndian as LE;
use object::elf;

use super::{File, ProgramHeader, RawSymbol, Rela, Segments, structures};
use crate::error::{Error, Result};

type Entry = elf::Dyn64<LE>;

/// The tables that PT_DYNAMIC names; empty ones when it does not.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Dynamic<'data> {
    pub symbols: &'data [RawSymbol],
    pub strings: &'data [u8],
    pub relocations: &'data [Rela],
}

#[derive(Default)]
struct Tags {
    symtab: Option<u64>,
    syment: Option<u64>,
    strtab: Option<u64>,
    strsz: Option<u64>,
    hash: Option<u64>,
    gnu_hash: Option<u64>,
    rela: Option<u64>,
    relasz: Option<u64>,
    relaent: Option<u64>,
}

impl Tags {
    fn read(entries: &[Entry]) -> Result<Self> {
        let mut tags = Self::default();
        for entry in entries {
            let (slot, tag) = match entry.d_tag.get(LE) {
                elf::DT_NULL => return Ok(tags),
                elf::DT_SYMTAB => (&mut tags.symtab, "DT_SYMTAB"),
                elf::DT_SYMENT => (&mut tags.syment, "DT_SYMENT"),
                elf::DT_STRTAB => (&mut tags.strtab, "DT_STRTAB"),
                elf::DT_STRSZ => (&mut tags.strsz, "DT_STRSZ"),
                elf::DT_HASH => (&mut tags.hash, "DT_HASH"),
                elf::DT_GNU_HASH => (&mut tags.gnu_hash, "DT_GNU_HASH"),
                elf::DT_RELA => (&mut tags.rela, "DT_RELA"),
                elf::DT_RELASZ => (&mut tags.relasz, "DT_RELASZ"),
                elf::DT_RELAENT => (&mut tags.relaent, "DT_RELAENT"),
                elf::DT_REL | elf::DT_JMPREL | elf::DT_RELR => {
                    return Err(Error::Dynamic {
                        tag: "DT_REL, DT_RELR or DT_JMPREL",
                        problem: "not used by code objects",
                    });
                }
                _ => continue,
            };
            if slot.replace(entry.d_val.get(LE)).is_some() {
                return Err(Error::Dynamic { tag, problem: "given twice" });
            }
        }
        Err(Error::Dynamic { tag: "DT_NULL", problem: "missing" })
    }
}

fn table<'data>(
    segments: &Segments<'data>,
    table: &'static str,
    vaddr: u64,
    bytes: u64,
) -> Result<&'data [u8]> {
    segments.file_bytes(vaddr, bytes).ok_or(Error::TableOutside { table, vaddr, bytes })
}

/// `found`, which must be `expected` if it is given at all.
fn entry_size(tag: &'static str, found: Option<u64>, expected: u64) -> Result<()> {
    match found {
        Some(found) if found != expected => {
            Err(Error::Dynamic { tag, problem: "not the size of an entry (24)" })
        }
        _ => Ok(()),
    }
}

impl<'data> Dynamic<'data> {
    pub fn read(
        file: File<'data>,
        headers: &[ProgramHeader],
        segments: &Segments<'data>,
    ) -> Result<Self> {
        let mut found = headers.iter().filter(|header| header.p_type.get(LE) == elf::PT_DYNAMIC);
        let Some(header) = found.next() else {
            return Ok(Self::default());
        };
        if found.next().is_some() {
            return Err(Error::Dynamic { tag: "PT_DYNAMIC", problem: "given twice" });
        }
        let bytes =
            file.range("dynamic segment", header.p_offset.get(LE), header.p_filesz.get(LE))?;
        let tags = Tags::read(structures(bytes))?;
        Ok(Self {
            symbols: symbols(segments, &tags)?,
            strings: strings(segments, &tags)?,
            relocations: relocations(segments, &tags)?,
        })
    }
}

fn strings<'data>(segments: &Segments<'data>, tags: &Tags) -> Result<&'data [u8]> {
    match (tags.strtab, tags.strsz) {
        (Some(vaddr), Some(bytes)) => table(segments, "DT_STRTAB", vaddr, bytes),
        (Some(_), None) => Err(Error::Dynamic { tag: "DT_STRSZ", problem: "missing" }),
        (None, _) => Ok(&[]),
    }
}

fn relocations<'data>(segments: &Segments<'data>, tags: &Tags) -> Result<&'data [Rela]> {
    entry_size("DT_RELAENT", tags.relaent, size_of::<Rela>() as u64)?;
    let Some(vaddr) = tags.rela else {
        return Ok(&[]);
    };
    let Some(bytes) = tags.relasz else {
        return Err(Error::Dynamic { tag: "DT_RELASZ", problem: "missing" });
    };
    if !bytes.is_multiple_of(size_of::<Rela>() as u64) {
        return Err(Error::Dynamic { tag: "DT_RELASZ", problem: "not a whole number of entries" });
    }
    Ok(structures(table(segments, "DT_RELA", vaddr, bytes)?))
}

fn symbols<'data>(segments: &Segments<'data>, tags: &Tags) -> Result<&'data [RawSymbol]> {
    entry_size("DT_SYMENT", tags.syment, size_of::<RawSymbol>() as u64)?;
    let Some(vaddr) = tags.symtab else {
        return Ok(&[]);
    };
    let count = match (tags.hash, tags.gnu_hash) {
        (Some(hash), _) => hash_count(segments, hash)?,
        (None, Some(hash)) => gnu_hash_count(segments, hash)?,
        (None, None) => {
            return Err(Error::Dynamic { tag: "DT_HASH or DT_GNU_HASH", problem: "missing" });
        }
    };
    let bytes = count * size_of::<RawSymbol>() as u64;
    Ok(structures(table(segments, "DT_SYMTAB", vaddr, bytes)?))
}

fn word(bytes: &[u8], index: u64) -> Option<u32> {
    let start = usize::try_from(index.checked_mul(4)?).ok()?;
    let bytes = bytes.get(start..start.checked_add(4)?)?;
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
}

/// Number of symbols: nchain, the second word of DT_HASH.
fn hash_count(segments: &Segments<'_>, vaddr: u64) -> Result<u64> {
    let outside = Error::TableOutside { table: "DT_HASH", vaddr, bytes: 8 };
    let words = segments.file_bytes(vaddr, 8).ok_or(outside)?;
    Ok(word(words, 1).unwrap_or(0).into())
}

/// Number of symbols by DT_GNU_HASH: one more than the last index of the longest chain.
///
/// Words: bucket count, first hashed symbol, bloom words (of 8 bytes), shift, bloom filter,
/// buckets, chain (one word a symbol; bit 0 ends a chain). Source: the ELF hash section of GNU
/// binutils; docs/ABI.md §Code object container.
fn gnu_hash_count(segments: &Segments<'_>, vaddr: u64) -> Result<u64> {
    let outside = || Error::TableOutside { table: "DT_GNU_HASH", vaddr, bytes: 16 };
    let words = segments.file_bytes_from(vaddr).ok_or_else(outside)?;
    let count = || -> Option<u64> {
        let buckets = u64::from(word(words, 0)?);
        let first = u64::from(word(words, 1)?);
        let bucket_start = 4 + 2 * u64::from(word(words, 2)?);
        let chain_start = bucket_start + buckets;
        let mut last = 0;
        for bucket in bucket_start..chain_start {
            last = last.max(u64::from(word(words, bucket)?));
        }
        if last < first {
            return Some(first);
        }
        while word(words, chain_start + (last - first))? & 1 == 0 {
            last += 1;
        }
        Some(last + 1)
    };
    count().ok_or_else(outside)
}
