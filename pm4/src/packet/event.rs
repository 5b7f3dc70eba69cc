//! Pipeline events, and the packet that raises one.

use core::fmt;

use crate::bits::layout;
use crate::emit::fixed;
use crate::{Error, Header, Opcode};

layout! {
    event_write { EVENT_TYPE = 1 [5:0]; EVENT_INDEX = 1 [11:8]; }
}

/// Pipeline event of an [`EventWrite`] or a [`ReleaseMem`](super::ReleaseMem).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct EventType(pub u8);

impl EventType {
    /// All earlier compute waves have ended.
    pub const CS_PARTIAL_FLUSH: Self = Self(0x07);
    /// All earlier work has finished and its caches are flushed.
    pub const CACHE_FLUSH_AND_INV_TS: Self = Self(0x14);
    /// Counters start.
    pub const PERFCOUNTER_START: Self = Self(0x17);
    /// Counters stop.
    pub const PERFCOUNTER_STOP: Self = Self(0x18);
    /// Counters are sampled.
    pub const PERFCOUNTER_SAMPLE: Self = Self(0x1B);
    /// All earlier work has left the pipeline.
    pub const BOTTOM_OF_PIPE_TS: Self = Self(0x28);
    /// A dispatch's waves have ended.
    pub const CS_DONE: Self = Self(0x2F);

    /// AMD's name, if this crate knows the event.
    pub const fn name(self) -> Option<&'static str> {
        match self {
            Self::CS_PARTIAL_FLUSH => Some("CS_PARTIAL_FLUSH"),
            Self::CACHE_FLUSH_AND_INV_TS => Some("CACHE_FLUSH_AND_INV_TS_EVENT"),
            Self::PERFCOUNTER_START => Some("PERFCOUNTER_START"),
            Self::PERFCOUNTER_STOP => Some("PERFCOUNTER_STOP"),
            Self::PERFCOUNTER_SAMPLE => Some("PERFCOUNTER_SAMPLE"),
            Self::BOTTOM_OF_PIPE_TS => Some("BOTTOM_OF_PIPE_TS"),
            Self::CS_DONE => Some("CS_DONE"),
            _ => None,
        }
    }
}

impl fmt::Display for EventType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "{:#x}", self.0),
        }
    }
}

/// PM4 `EVENT_WRITE`: raises a pipeline event that stores nothing.
#[doc(alias = "PACKET3_EVENT_WRITE")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct EventWrite {
    event: EventType,
    index: u8,
}

impl EventWrite {
    /// Length of the packet.
    pub const DWORDS: usize = 2;
    /// Waits until all earlier compute waves have ended.
    ///
    /// Preemption with global wave sync confuses it: use a `RELEASE_MEM` and a wait there.
    pub const CS_PARTIAL_FLUSH: Self = Self::new(EventType::CS_PARTIAL_FLUSH, 4);

    /// Raises `event`. `index` is the kind of event: 4 for partial flushes, else 0.
    pub const fn new(event: EventType, index: u8) -> Self {
        Self { event: EventType(event.0 & 0x3F), index: index & 0xF }
    }

    /// The event, and its index.
    pub const fn event(self) -> (EventType, u8) {
        (self.event, self.index)
    }

    /// The packet.
    pub const fn encode(self) -> [u32; Self::DWORDS] {
        let event = event_write::EVENT_TYPE.put(self.event.0 as u32)
            | event_write::EVENT_INDEX.put(self.index as u32);
        [Header::new(Opcode::EVENT_WRITE, Self::DWORDS).word(), event]
    }

    /// Reads the packet at the start of `words`.
    ///
    /// # Errors
    /// What is wrong with it. The form of four dwords, which samples counters to memory, has the
    /// wrong length.
    pub fn decode(words: &[u32]) -> Result<Self, Error> {
        let [event] = super::strict(words, Opcode::EVENT_WRITE, event_write::FIELDS)?;
        let index = event_write::EVENT_INDEX.byte(event);
        Ok(Self::new(EventType(event_write::EVENT_TYPE.byte(event)), index))
    }
}

impl fmt::Display for EventWrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EVENT_WRITE event={} index={}", self.event, self.index)
    }
}

fixed!(Pm4Packet: EventWrite);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_write_matches_the_worked_example() {
        // docs/ABI.md §PM4 worked examples, E6.
        let words = [0xc000_4600, 0x407];
        assert_eq!(EventWrite::CS_PARTIAL_FLUSH.encode(), words);
        assert_eq!(EventWrite::decode(&words), Ok(EventWrite::CS_PARTIAL_FLUSH));
    }

    #[test]
    fn event_write_refuses_the_form_that_samples() {
        let error = EventWrite::decode(&[0xc002_4600, 0x21E, 0x1000, 0]).unwrap_err();
        assert_eq!(error, Error::Length { opcode: Opcode::EVENT_WRITE, expected: 2, found: 4 });
    }
}
