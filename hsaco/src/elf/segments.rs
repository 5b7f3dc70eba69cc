//! PT_LOAD segments: the map from the object's addresses to file bytes.

use object::LittleEndian as LE;
use object::elf;

use super::{File, ProgramHeader};
use crate::error::{Error, Result};
use crate::load::{MAX_LOAD_BYTES, PAGE_BYTES, Permissions, Segment};

/// All PT_LOAD segments, ascending and disjoint, each with its file bytes.
#[derive(Clone, Debug)]
pub(crate) struct Segments<'data> {
    /// p_vaddr of the first, rounded down to a page, as a loader maps it.
    base: u64,
    /// From `base` to the end of the last.
    load_bytes: u64,
    list: Vec<(Segment, &'data [u8])>,
}

impl<'data> Segments<'data> {
    pub fn read(file: File<'data>, headers: &[ProgramHeader]) -> Result<Self> {
        let mut list: Vec<(Segment, &'data [u8])> = Vec::new();
        let mut file_total = 0_u64;
        for (index, header) in headers.iter().enumerate() {
            if header.p_type.get(LE) != elf::PT_LOAD {
                continue;
            }
            let (segment, bytes) = read_one(file, index, header)?;
            if let Some((previous, _)) = list.last() {
                let previous_end = previous.vaddr + previous.memory_bytes;
                if segment.vaddr < previous_end {
                    return Err(Error::SegmentOrder { index, vaddr: segment.vaddr, previous_end });
                }
            }
            // Segments of a real file share no content, so together they are no larger than it. This
            // bounds the image by the input.
            file_total += segment.file_bytes;
            if file_total > file.len() {
                return Err(Error::TooLarge { bytes: file_total, limit: file.len() });
            }
            list.push((segment, bytes));
        }
        let (Some((first, _)), Some((last, _))) = (list.first(), list.last()) else {
            return Err(Error::NoSegments);
        };
        let base = first.vaddr & !(PAGE_BYTES - 1);
        let load_bytes = last.vaddr + last.memory_bytes - base;
        if load_bytes > MAX_LOAD_BYTES {
            return Err(Error::TooLarge { bytes: load_bytes, limit: MAX_LOAD_BYTES });
        }
        Ok(Self { base, load_bytes, list })
    }

    pub fn base(&self) -> u64 {
        self.base
    }

    pub fn load_bytes(&self) -> u64 {
        self.load_bytes
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &(Segment, &'data [u8])> {
        self.list.iter()
    }

    /// Whether the whole range lies between the first byte and the last.
    pub fn contains(&self, vaddr: u64, bytes: u64) -> bool {
        vaddr
            .checked_sub(self.base)
            .and_then(|offset| offset.checked_add(bytes))
            .is_some_and(|end| end <= self.load_bytes)
    }

    /// The segment that holds the whole range, and the range's offset in it.
    pub fn find(&self, vaddr: u64, bytes: u64) -> Option<(&Segment, &'data [u8], u64)> {
        let after = self.list.partition_point(|(segment, _)| segment.vaddr <= vaddr);
        let (segment, content) = self.list.get(after.checked_sub(1)?)?;
        let offset = vaddr - segment.vaddr;
        let end = offset.checked_add(bytes)?;
        (end <= segment.memory_bytes).then_some((segment, *content, offset))
    }

    /// File bytes of a range that is wholly inside the file part of one segment.
    pub fn file_bytes(&self, vaddr: u64, bytes: u64) -> Option<&'data [u8]> {
        let (_, content, offset) = self.find(vaddr, bytes)?;
        let start = usize::try_from(offset).ok()?;
        content.get(start..start.checked_add(usize::try_from(bytes).ok()?)?)
    }

    /// File bytes from `vaddr` to the end of its segment's file part.
    pub fn file_bytes_from(&self, vaddr: u64) -> Option<&'data [u8]> {
        let (_, content, offset) = self.find(vaddr, 0)?;
        content.get(usize::try_from(offset).ok()?..)
    }
}

fn read_one<'data>(
    file: File<'data>,
    index: usize,
    header: &ProgramHeader,
) -> Result<(Segment, &'data [u8])> {
    let vaddr = header.p_vaddr.get(LE);
    let file_bytes = header.p_filesz.get(LE);
    let memory_bytes = header.p_memsz.get(LE);
    if file_bytes > memory_bytes {
        return Err(Error::SegmentSizes { index, file_bytes, memory_bytes });
    }
    if memory_bytes > MAX_LOAD_BYTES {
        return Err(Error::TooLarge { bytes: memory_bytes, limit: MAX_LOAD_BYTES });
    }
    if vaddr.checked_add(memory_bytes).is_none() {
        return Err(Error::Header { field: "p_vaddr", value: vaddr });
    }
    let content = file.range("segment", header.p_offset.get(LE), file_bytes)?;
    let flags = header.p_flags.get(LE).0;
    let permissions = Permissions::from_bits_truncate(flags);
    Ok((Segment { vaddr, file_bytes, memory_bytes, permissions }, content))
}
