//! Builds a buffer of PM4 packets in memory that the caller gives.

use crate::emit::{Pm4Packet, Sink, Writer};
use crate::packet::{CondExec, IndirectBuffer, Nop, PredExec};
use crate::{Error, GpuAddr, Opcode};

/// Appends packets to an indirect buffer, or to a ring.
///
/// It never allocates and never fails on the way: what does not fit is counted, and
/// [`Self::finish`] reports the exact need. An empty sink therefore measures.
///
/// ```
/// use pm4::{GpuAddr, IbBuilder, WriteData};
///
/// let mut words = [0; 8];
/// let mut ib = IbBuilder::new(&mut words[..]);
/// ib.push(&WriteData::new(GpuAddr::new(0x1000), 7)?.confirm());
/// assert_eq!(ib.finish()?, 8); // five dwords, padded to the size that Linux asks for
/// # Ok::<(), pm4::Error>(())
/// ```
#[derive(Debug)]
pub struct IbBuilder<S> {
    out: Writer<S>,
    problem: Option<Error>,
}

impl<S: Sink> IbBuilder<S> {
    /// A buffer's length is a multiple of this many dwords, and its address of as many bytes times
    /// four. docs/ABI.md §PM4 INDIRECT_BUFFER.
    pub const ALIGN_DWORDS: usize = 8;

    /// Starts at the first dword of `sink`.
    pub const fn new(sink: S) -> Self {
        Self { out: Writer::new(sink), problem: None }
    }

    /// Dwords appended so far, those without room included.
    pub const fn dwords(&self) -> usize {
        self.out.dwords()
    }

    /// Appends `packet`.
    pub fn push(&mut self, packet: &impl Pm4Packet) -> &mut Self {
        self.out.push(packet);
        self
    }

    /// Appends NOPs until the length is a multiple of `dwords`; 0 and 1 append nothing.
    pub fn pad_to(&mut self, dwords: usize) -> &mut Self {
        let over = self.dwords().checked_rem(dwords).unwrap_or(0);
        if over != 0 {
            self.nop(dwords - over);
        }
        self
    }

    /// Skips `dwords` dwords, in as few packets as can be.
    fn nop(&mut self, mut dwords: usize) {
        while let Some(length) = Some(dwords.min(crate::Header::MAX_DWORDS)).filter(|n| *n > 0) {
            self.out.fill(Nop::header(length).unwrap_or_default(), length);
            dwords -= length;
        }
    }

    /// What `body` appends runs only on the XCCs in `xcc_mask`. It must be in an indirect buffer: a
    /// ring ignores it.
    pub fn pred_exec(&mut self, xcc_mask: u8, body: impl FnOnce(&mut Self)) -> &mut Self {
        self.guarded(Opcode::PRED_EXEC, &PredExec::new(xcc_mask, 0), body, |count| {
            PredExec::new(xcc_mask, count)
        })
    }

    /// What `body` appends is skipped while the dword at `condition`, which is 4-byte aligned, is
    /// zero.
    pub fn cond_exec(&mut self, condition: GpuAddr, body: impl FnOnce(&mut Self)) -> &mut Self {
        match CondExec::new(condition, 0) {
            Ok(packet) => {
                self.guarded(Opcode::COND_EXEC, &packet, body, |count| packet.count(count))
            }
            Err(error) => {
                self.problem = self.problem.or(Some(error));
                self
            }
        }
    }

    /// Appends `head`, then `body`, then puts the length of `body` into `head`.
    fn guarded<P: Pm4Packet>(
        &mut self,
        opcode: Opcode,
        head: &P,
        body: impl FnOnce(&mut Self),
        with: impl FnOnce(u16) -> P,
    ) -> &mut Self {
        let at = self.dwords();
        self.push(head);
        let start = self.dwords();
        body(self);
        let count = self.dwords() - start;
        match u16::try_from(count).ok().filter(|count| *count <= PredExec::MAX_COUNT) {
            Some(count) => {
                let mut at = at;
                with(count).emit(|words| {
                    self.out.patch(at, words);
                    at += words.len();
                });
            }
            None => {
                let max = usize::from(PredExec::MAX_COUNT);
                let error = Error::TooLong { opcode, found: count, max };
                self.problem = self.problem.or(Some(error));
            }
        }
        self
    }

    /// Ends the buffer without padding, as a ring wants it.
    ///
    /// # Errors
    /// [`Error::BufferTooSmall`] with the exact need; the first error of a guarded part.
    pub fn end(self) -> Result<usize, Error> {
        let (needed, capacity) = (self.dwords(), self.out.capacity());
        match self.problem {
            Some(error) => Err(error),
            None if needed > capacity => Err(Error::BufferTooSmall { needed, capacity }),
            None => Ok(needed),
        }
    }

    /// Pads the buffer to [`Self::ALIGN_DWORDS`] and ends it. Returns its length in dwords.
    ///
    /// # Errors
    /// As [`Self::end`]; [`Error::TooLong`] over [`IndirectBuffer::MAX_BUFFER_DWORDS`].
    pub fn finish(mut self) -> Result<usize, Error> {
        self.pad_to(Self::ALIGN_DWORDS);
        self.end().and_then(checked_length)
    }

    /// Ends the buffer with a jump to `next`, padded so that the jump's end is the buffer's end.
    /// Returns its length in dwords.
    ///
    /// # Errors
    /// As [`Self::finish`].
    pub fn finish_chained(mut self, next: IndirectBuffer) -> Result<usize, Error> {
        let end = self.dwords() + IndirectBuffer::DWORDS;
        self.nop(end.next_multiple_of(Self::ALIGN_DWORDS) - end);
        self.push(&next.chain());
        self.end().and_then(checked_length)
    }
}

fn checked_length(dwords: usize) -> Result<usize, Error> {
    let max = IndirectBuffer::MAX_BUFFER_DWORDS as usize;
    if dwords > max {
        return Err(Error::TooLong { opcode: Opcode::INDIRECT_BUFFER, found: dwords, max });
    }
    Ok(dwords)
}
