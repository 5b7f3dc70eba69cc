//! The packets, by topic. What differs between generations lives in [`gfx9`] and [`gfx11`].

mod memory;
mod range;
mod state;
mod sync;

pub mod gfx11;
pub mod gfx9;

pub use memory::{CachePolicy, DataDst, IndirectBuffer, WriteBlock, WriteData};
pub use state::Nop;
pub use sync::{DataSel, DstSel, EventType, IntSel, ReleaseMem};

use crate::{Error, Header, Opcode};

/// The dwords of a packet after its header, once header and length are those expected.
pub(crate) fn body<const N: usize>(words: &[u32], expected: Opcode) -> Result<[u32; N], Error> {
    let (header, rest) = split(words)?;
    if header.opcode() != expected {
        return Err(Error::WrongOpcode { expected, found: header.opcode() });
    }
    match <[u32; N]>::try_from(rest) {
        Ok(body) => Ok(body),
        Err(_) => Err(Error::Length { opcode: expected, expected: N + 1, found: header.dwords() }),
    }
}

/// Header and body of the packet at the start of `words`.
pub(crate) fn split(words: &[u32]) -> Result<(Header, &[u32]), Error> {
    let word = *words.first().ok_or(Error::Truncated { needed: 1, found: 0 })?;
    let header = Header::from_word(word).ok_or(Error::NotType3 { word })?;
    let needed = header.dwords();
    let body = words.get(1..needed).ok_or(Error::Truncated { needed, found: words.len() })?;
    Ok((header, body))
}

/// Refuses `word` if it has a bit outside `defined`.
pub(crate) const fn only(
    opcode: Opcode,
    dword: usize,
    word: u32,
    defined: u32,
) -> Result<(), Error> {
    match word & !defined {
        0 => Ok(()),
        bits => Err(Error::Reserved { opcode, dword, word, bits }),
    }
}
