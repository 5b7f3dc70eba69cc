//! Where packets are read from: the ring, round its end, or a buffer.

use pm4::{Error, Header, Opcode};
use zerocopy::IntoBytes;

use super::super::turn::Reason;
use super::super::{Queue, State};
use super::Processor;
use crate::memory::AccessError;

impl Queue {
    /// Reads the next packet. The payload of a NOP stays where it is.
    pub(super) fn fetch(
        &self,
        state: &State,
        processor: &Processor,
        words: &mut Vec<u32>,
    ) -> Result<Result<(), Reason>, AccessError> {
        let space = &self.setup.device.space;
        let left = left(state, processor);
        let first = space.load_u32(self.address(state, processor))?;
        let Some(header) = Header::from_word(first) else {
            return Ok(Err(Reason::unsupported(Error::NotType3 { word: first })));
        };
        let dwords = header.dwords();
        if dwords as u64 > left {
            let opcode = header.opcode();
            let text = format!("{opcode} has {dwords} dwords, of which {left} are there");
            return Ok(Err(Reason::invalid(text)));
        }
        let wanted = if header.opcode() == Opcode::NOP { 1 } else { dwords };
        words.resize(wanted, 0);
        self.read_words(state, processor, words)?;
        // What the length was read from.
        if let Some(word) = words.first_mut() {
            *word = first;
        }
        Ok(Ok(()))
    }

    /// Address of the current packet.
    fn address(&self, state: &State, processor: &Processor) -> u64 {
        match processor.frames.last() {
            Some(frame) => frame.base.wrapping_add(frame.at * 4),
            None => {
                let room = (state.tunables.ring_bytes / 4).max(1);
                state.tunables.ring.wrapping_add(state.next % room * 4)
            }
        }
    }

    /// Reads dwords from the current packet's start on, round the ring's end.
    fn read_words(
        &self,
        state: &State,
        processor: &Processor,
        words: &mut [u32],
    ) -> Result<(), AccessError> {
        let space = &self.setup.device.space;
        let start = self.address(state, processor);
        let before_end = match processor.frames.last() {
            Some(_) => words.len(),
            None => {
                let end = state.tunables.ring.wrapping_add(state.tunables.ring_bytes);
                usize::try_from(end.wrapping_sub(start) / 4).unwrap_or(usize::MAX)
            }
        };
        let (front, back) = words.split_at_mut(before_end.min(words.len()));
        space.read(start, front.as_mut_bytes())?;
        if !back.is_empty() {
            space.read(state.tunables.ring, back.as_mut_bytes())?;
        }
        Ok(())
    }
}

/// Dwords from the current packet's start to the end of the buffer, or of what was rung.
pub(super) fn left(state: &State, processor: &Processor) -> u64 {
    match processor.frames.last() {
        Some(frame) => frame.dwords.saturating_sub(frame.at),
        None => state.fetch_limit.saturating_sub(state.next),
    }
}
