//! Dwords to SDMA packets.

use core::fmt;

use super::{
    Atomic, CondExe, ConstFill, CopyBroadcast, CopyLinear, CopySubWindow, Error, Fence, GcrReq,
    HdpFlush, Indirect, Nop, Op, PollMem, Timestamp, Trap, Version, WriteUntiled,
};
use crate::emit::Encode;

macro_rules! packets {
    ($($(#[$doc:meta])* $name:ident($type:ty);)*) => {
        /// One packet of a dword buffer.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum Packet<'a> {
            $($(#[$doc])* $name($type),)*
        }

        impl Encode for Packet<'_> {
            fn dwords(&self) -> usize {
                match self {
                    $(Self::$name(packet) => Encode::dwords(packet),)*
                }
            }

            fn emit(&self, put: impl FnMut(&[u32])) {
                match self {
                    $(Self::$name(packet) => packet.emit(put),)*
                }
            }
        }

        impl crate::SdmaPacket for Packet<'_> {}

        impl fmt::Display for Packet<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Self::$name(packet) => packet.fmt(f),)*
                }
            }
        }
    };
}

packets! {
    /// Skipped.
    Nop(Nop<'a>);
    /// Copies bytes.
    CopyLinear(CopyLinear);
    /// Copies bytes to two places.
    CopyBroadcast(CopyBroadcast);
    /// Copies a part of a plane or volume.
    CopySubWindow(CopySubWindow);
    /// Stores dwords.
    WriteUntiled(WriteUntiled<'a>);
    /// Runs another buffer.
    Indirect(Indirect);
    /// Stores a dword after earlier work.
    Fence(Fence);
    /// Interrupts.
    Trap(Trap);
    /// Waits for a dword in memory.
    PollMem(PollMem);
    /// Flushes the host data path.
    HdpFlush(HdpFlush);
    /// Skips dwords unless a dword has a value.
    CondExe(CondExe);
    /// Atomic operation on memory.
    Atomic(Atomic);
    /// Fills memory.
    ConstFill(ConstFill);
    /// Stores a clock.
    Timestamp(Timestamp);
    /// Caches.
    GcrReq(GcrReq);
}

impl<'a> Packet<'a> {
    /// Reads the packet at the start of `words`, as an engine of `version` does.
    ///
    /// # Errors
    /// What is wrong with it; [`Error::Unknown`] for an operation without a type here.
    pub fn decode(words: &'a [u32], version: Version) -> Result<Self, Error> {
        let word = *words.first().ok_or(Error::Truncated { needed: 1, found: 0 })?;
        Ok(match Op::of(word) {
            Op::NOP => Self::Nop(Nop::decode(words, version)?),
            Op::COPY_LINEAR if CopyBroadcast::is_at(word) => {
                Self::CopyBroadcast(CopyBroadcast::decode(words, version)?)
            }
            Op::COPY_LINEAR => Self::CopyLinear(CopyLinear::decode(words, version)?),
            Op::COPY_LINEAR_SUBWIN => Self::CopySubWindow(CopySubWindow::decode(words, version)?),
            Op::WRITE_UNTILED => Self::WriteUntiled(WriteUntiled::decode(words, version)?),
            Op::INDIRECT => Self::Indirect(Indirect::decode(words, version)?),
            Op::FENCE => Self::Fence(Fence::decode(words, version)?),
            Op::TRAP => Self::Trap(Trap::decode(words, version)?),
            Op::POLL_REGMEM if HdpFlush::is_at(words) => Self::HdpFlush(HdpFlush),
            Op::POLL_REGMEM => Self::PollMem(PollMem::decode(words, version)?),
            Op::COND_EXE => Self::CondExe(CondExe::decode(words, version)?),
            Op::ATOMIC => Self::Atomic(Atomic::decode(words, version)?),
            Op::CONSTANT_FILL => Self::ConstFill(ConstFill::decode(words, version)?),
            Op::TIMESTAMP_GET | Op::TIMESTAMP_GET_GLOBAL => {
                Self::Timestamp(Timestamp::decode(words, version)?)
            }
            Op::GCR_REQ => Self::GcrReq(GcrReq::decode(words, version)?),
            op => return Err(Error::Unknown { op, word }),
        })
    }
}

/// Length of the packet at the start of `words`, malformed or not; `None` where it is unknown.
fn length(words: &[u32]) -> Option<usize> {
    let first = *words.first()?;
    Some(match Op::of(first) {
        Op::NOP => 1 + super::flow::nop::COUNT.get(first) as usize,
        Op::COPY_LINEAR if CopyBroadcast::is_at(first) => CopyBroadcast::DWORDS,
        Op::COPY_LINEAR => CopyLinear::DWORDS,
        Op::COPY_LINEAR_SUBWIN => CopySubWindow::DWORDS,
        Op::WRITE_UNTILED => 5 + super::fill::write_untiled::COUNT.get(*words.get(3)?) as usize,
        Op::INDIRECT => Indirect::DWORDS,
        Op::FENCE => Fence::DWORDS,
        Op::TRAP => Trap::DWORDS,
        Op::POLL_REGMEM => PollMem::DWORDS,
        Op::COND_EXE => CondExe::DWORDS,
        Op::ATOMIC => Atomic::DWORDS,
        Op::CONSTANT_FILL => ConstFill::DWORDS,
        Op::TIMESTAMP_GET | Op::TIMESTAMP_GET_GLOBAL => Timestamp::DWORDS,
        Op::GCR_REQ => GcrReq::DWORDS,
        _ => return None,
    })
}

/// Walks a buffer packet by packet.
///
/// After a malformed packet it goes on at the next one; after [`Error::Truncated`] or
/// [`Error::Unknown`] there is no next one and it ends. Every step takes at least one dword.
#[derive(Clone, Debug)]
pub struct Packets<'a> {
    rest: &'a [u32],
    version: Version,
    offset: usize,
}

impl<'a> Packets<'a> {
    /// Starts at the first dword of `words`.
    pub const fn new(words: &'a [u32], version: Version) -> Self {
        Self { rest: words, version, offset: 0 }
    }

    /// Dwords taken so far: where the next packet is.
    pub const fn offset(&self) -> usize {
        self.offset
    }

    /// The dwords not taken yet.
    pub const fn rest(&self) -> &'a [u32] {
        self.rest
    }
}

impl<'a> Iterator for Packets<'a> {
    type Item = Result<Packet<'a>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let words = core::mem::take(&mut self.rest);
        words.first()?;
        self.rest = length(words).and_then(|length| words.get(length..)).unwrap_or_default();
        self.offset += words.len() - self.rest.len();
        Some(Packet::decode(words, self.version))
    }
}
