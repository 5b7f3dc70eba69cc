//! Buffered printf: the records of a drained FIFO.
//!
//! The caller reads the FIFO's first word once, turns it into a length with [`used`], copies so many
//! bytes of records and hands the copy over. The second word, the size, is never read back.

use super::blocking::split_format;
use super::opencl::Sized;
use super::table::{FormatTable, Lookup, Numbered, RecordKind};
use super::{Stream, reset};
use crate::format::{self, Limits, Needs, Outcome, Words};

/// Bytes before the records: the offset and the size.
///
/// docs/ABI.md §printf FIFO
pub const FIFO_HEADER_BYTES: usize = 8;

/// The two words of an empty FIFO of `fifo_bytes`, header included: nothing used, and a size that keeps
/// both kinds of allocators inside.
///
/// docs/ABI.md §printf FIFO
#[must_use]
pub const fn fifo_header(fifo_bytes: u32) -> [u32; 2] {
    [0, fifo_bytes.saturating_sub(8)]
}

/// Size of a HIP record's control word, and of an OpenCL record's id.
const WORD: usize = 4;

/// Bit of the control word: to standard error.
const CONTROL_STDERR: u32 = 1 << 0;
/// Bit of the control word: a hash follows, no format.
const CONTROL_HASHED: u32 = 1 << 1;
/// The rest of the control word is the size.
const CONTROL_SIZE_SHIFT: u32 = 2;

/// How much of a FIFO holds records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Used {
    /// Bytes of records, after the header.
    pub bytes: usize,
    /// Bytes by which the offset is past the end: an allocator that adds first and checks then leaves
    /// there what it refused. Otherwise a device wrote nonsense.
    pub excess: u64,
}

/// What the offset word means in a FIFO of `fifo_bytes`, header included. `fifo_bytes` is what the host
/// allocated, not what the FIFO says.
#[must_use]
pub fn used(offset: u32, fifo_bytes: usize) -> Used {
    let capacity = fifo_bytes.saturating_sub(FIFO_HEADER_BYTES);
    let offset = usize::try_from(offset).unwrap_or(usize::MAX);
    let excess = u64::try_from(offset.saturating_sub(capacity)).unwrap_or(u64::MAX);
    Used { bytes: offset.min(capacity), excess }
}

/// Why the rest of a FIFO cannot be read. `at` is an offset into the records, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// Less is left than any record has.
    #[error("{left} bytes at {at} are no record")]
    Truncated {
        /// Offset.
        at: usize,
        /// Bytes left.
        left: usize,
    },
    /// The record's size is less than its head, more than is left, or no multiple of 4.
    #[error("record at {at} claims {size} bytes of {left}")]
    Size {
        /// Offset.
        at: usize,
        /// As the record has it.
        size: u32,
        /// Bytes left.
        left: usize,
    },
    /// The record's id is none of the module's, so nothing says how long it is.
    #[error("record at {at} has the unknown id {id}")]
    UnknownId {
        /// Offset.
        at: usize,
        /// As the record has it.
        id: u32,
    },
}

#[derive(Clone, Copy, Debug)]
enum Body<'a> {
    Hip { format: &'a [u8], arguments: &'a [u8], needs: Needs },
    OpenCl { format: &'a Numbered, arguments: &'a [u8] },
    Unknown { hash: u64 },
    Ambiguous { hash: u64 },
}

/// One call of printf.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// Where it goes.
    pub stream: Stream,
    /// Offset of the record, in bytes.
    pub at: usize,
    body: Body<'a>,
}

impl Record<'_> {
    /// The hash, if no format belongs to it or more than one.
    #[must_use]
    pub const fn unresolved_hash(&self) -> Option<u64> {
        match self.body {
            Body::Unknown { hash } | Body::Ambiguous { hash } => Some(hash),
            Body::Hip { .. } | Body::OpenCl { .. } => None,
        }
    }

    /// Appends the text; a line with the hash if it has no format.
    pub fn print(&self, out: &mut Vec<u8>, limits: &Limits) -> Outcome {
        match self.body {
            Body::Hip { format, arguments, needs } => {
                let mut words = Words::with_absent_texts(arguments, needs.words);
                format::format(out, format, &mut words, limits)
            }
            Body::OpenCl { format, arguments } => {
                let mut arguments = Sized::new(arguments, &format.sizes);
                format::format(out, &format.format, &mut arguments, limits)
            }
            Body::Unknown { hash } => {
                marker(out, b"[printf: unknown format %#018lx]\n", hash, limits)
            }
            Body::Ambiguous { hash } => {
                marker(out, b"[printf: ambiguous format %#018lx]\n", hash, limits)
            }
        }
    }
}

fn marker(out: &mut Vec<u8>, text: &[u8], hash: u64, limits: &Limits) -> Outcome {
    format::format(out, text, &mut Words::new(&hash.to_le_bytes()), limits)
}

/// The records of a copied FIFO, in the order in which lanes reserved them. Ends after the first error:
/// there is no telling where the next record begins.
#[derive(Clone)]
pub struct Records<'a> {
    table: &'a FormatTable,
    rest: &'a [u8],
    at: usize,
}

impl<'a> Records<'a> {
    /// `records` is a private copy of the used bytes, without the header.
    #[must_use]
    pub const fn new(records: &'a [u8], table: &'a FormatTable) -> Self {
        Self { table, rest: records, at: 0 }
    }

    /// Bytes not gone through.
    #[must_use]
    pub const fn left(&self) -> usize {
        self.rest.len()
    }

    fn record(&self) -> Result<(Record<'a>, usize), RecordError> {
        let (at, left) = (self.at, self.rest.len());
        let (word, after) =
            self.rest.split_first_chunk::<WORD>().ok_or(RecordError::Truncated { at, left })?;
        let word = u32::from_le_bytes(*word);
        let (stream, body, size) = match self.table.kind() {
            RecordKind::Hip => {
                let size = word >> CONTROL_SIZE_SHIFT;
                let bad = RecordError::Size { at, size, left };
                let stream =
                    if word & CONTROL_STDERR != 0 { Stream::Stderr } else { Stream::Stdout };
                let (body, size) = self.hip(word, size, after).ok_or(bad)?;
                (stream, body, size)
            }
            RecordKind::OpenCl => {
                let format = self.table.id(word).ok_or(RecordError::UnknownId { at, id: word })?;
                let size = format.arguments_bytes;
                let arguments = usize::try_from(size).ok().and_then(|size| after.get(..size));
                let bad = RecordError::Size { at, size: size.saturating_add(4), left };
                let arguments = arguments.ok_or(bad)?;
                (Stream::Stdout, Body::OpenCl { format, arguments }, WORD + arguments.len())
            }
        };
        Ok((Record { stream, at, body }, size))
    }

    fn hip(&self, control: u32, size: u32, after: &'a [u8]) -> Option<(Body<'a>, usize)> {
        let size = usize::try_from(size).ok().filter(|size| size % WORD == 0)?;
        let payload = after.get(..size.checked_sub(WORD)?)?;
        let body = if control & CONTROL_HASHED == 0 {
            let (format, arguments) = split_format(payload);
            Body::Hip { format, arguments, needs: format::needs(format) }
        } else {
            let (hash, arguments) = payload.split_first_chunk()?;
            let hash = u64::from_le_bytes(*hash);
            match self.table.hash(hash) {
                Lookup::Format { format, needs } => Body::Hip { format, arguments, needs },
                Lookup::Unknown => Body::Unknown { hash },
                Lookup::Ambiguous => Body::Ambiguous { hash },
            }
        };
        Some((body, size))
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Record<'a>, RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        match self.record() {
            Ok((record, size)) => {
                // At least the 4 bytes of its head: the iteration ends.
                self.rest = self.rest.get(size..).unwrap_or_default();
                self.at += size;
                Some(Ok(record))
            }
            Err(error) => {
                self.at += self.rest.len();
                self.rest = &[];
                Some(Err(error))
            }
        }
    }
}

/// What one drain may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrainLimits {
    /// Of each message.
    pub message: Limits,
    /// Bytes of text of all messages, those over their limit included. A record of a few bytes can name a
    /// long format, so that the FIFO's size alone bounds the output badly.
    pub output_bytes: u64,
}

impl Default for DrainLimits {
    /// 1 GiB.
    fn default() -> Self {
        Self { message: Limits::default(), output_bytes: 1 << 30 }
    }
}

/// What came out of a FIFO.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drained {
    /// Messages printed, markers included.
    pub printed: u64,
    /// Of these, messages whose format and arguments did not go together.
    pub odd: u64,
    /// Of these, markers of hashes without a format, or with several.
    pub unresolved: u64,
    /// Messages not printed because a limit would have cut them.
    pub over_limit: u64,
    /// Bytes of records that were not printed, for an error or for [`DrainLimits::output_bytes`].
    pub lost_bytes: usize,
    /// Why the records end before the FIFO does.
    pub error: Option<RecordError>,
}

/// Prints all of a FIFO. Each message goes to `sink`, whole, in one call; `scratch` is for its text.
pub fn drain(
    records: Records<'_>,
    limits: &DrainLimits,
    scratch: &mut Vec<u8>,
    mut sink: impl FnMut(Stream, &[u8]),
) -> Drained {
    let mut drained = Drained::default();
    let mut records = records;
    let mut room = limits.output_bytes;
    loop {
        let left = records.left();
        if room == 0 {
            drained.lost_bytes = left;
            break;
        }
        let record = match records.next() {
            None => break,
            Some(Ok(record)) => record,
            Some(Err(error)) => {
                drained.error = Some(error);
                drained.lost_bytes = left;
                break;
            }
        };
        reset(scratch);
        let outcome = record.print(scratch, &limits.message);
        // At least 1, so that records without text end too.
        room = room.saturating_sub(u64::try_from(scratch.len()).unwrap_or(u64::MAX).max(1));
        if outcome.cut.any() {
            drained.over_limit += 1;
            continue;
        }
        drained.printed += 1;
        drained.odd += u64::from(!outcome.is_clean());
        drained.unresolved += u64::from(record.unresolved_hash().is_some());
        sink(record.stream, scratch);
    }
    drained
}
