//! Packets that only change the state of the command processor.

use core::fmt;

use crate::Header;

/// PM4 `NOP`: its payload is skipped.
#[doc(alias = "PACKET3_NOP")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Nop<'a> {
    payload: &'a [u32],
}

impl<'a> Nop<'a> {
    pub(crate) const fn from_payload(payload: &'a [u32]) -> Self {
        Self { payload }
    }

    /// A NOP of one dword, for padding.
    pub const fn one_dword() -> u32 {
        Header::ONE_DWORD_NOP.word()
    }

    /// Header of a NOP that skips itself and what follows, `dwords` in all.
    ///
    /// `None` for zero or more than [`Header::MAX_DWORDS`].
    pub const fn header(dwords: usize) -> Option<u32> {
        match dwords {
            0 => None,
            1 => Some(Self::one_dword()),
            2..=Header::MAX_DWORDS => Some(Header::new(crate::Opcode::NOP, dwords).word()),
            _ => None,
        }
    }

    /// The dwords it skips.
    pub const fn payload(self) -> &'a [u32] {
        self.payload
    }
}

impl fmt::Display for Nop<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NOP skips {} dwords", self.payload.len())
    }
}
