//! The packets, by topic. What differs between generations lives in [`gfx9`] and [`gfx11`].

pub(crate) mod atomic;
pub(crate) mod copy;
pub(crate) mod dispatch;
pub(crate) mod dma;
pub(crate) mod event;
pub(crate) mod indirect;
pub(crate) mod memory;
pub(crate) mod range;
pub(crate) mod state;
pub(crate) mod sync;
pub(crate) mod wait;

pub mod gfx11;
pub mod gfx9;

pub use atomic::{AtomicCommand, AtomicMem, AtomicOp};
pub use copy::{CopyData, CopySource, CopyTarget};
pub use dispatch::{CondExec, DispatchDirect, DispatchIndirect, PredExec};
pub use dma::{DmaData, DmaSource};
pub use event::{EventType, EventWrite};
pub use indirect::IndirectBuffer;
pub use memory::{CachePolicy, DataDst, WriteBlock, WriteData};
pub use state::{Nop, SetReg, ShRegIndex};
pub use sync::{DataSel, DstSel, IntSel, ReleaseMem};
pub use wait::{Compare, WaitOn, WaitRegMem, WaitRegMem64};

use crate::bits::{Field, undefined};
use crate::reg::{Reg, Space};
use crate::{Error, GpuAddr, Header, Opcode};

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

/// As [`body`], and refuses every bit that `fields` does not define.
pub(crate) fn strict<const N: usize>(
    words: &[u32],
    expected: Opcode,
    fields: &[Field],
) -> Result<[u32; N], Error> {
    let body = body(words, expected)?;
    match undefined(&[fields], 1, &body) {
        Some((dword, word, bits)) => Err(Error::Reserved { opcode: expected, dword, word, bits }),
        None => Ok(body),
    }
}

/// Refuses an address that is not a multiple of `align` bytes.
pub(crate) const fn aligned(opcode: Opcode, addr: GpuAddr, align: u64) -> Result<(), Error> {
    if addr.is_aligned(align) { Ok(()) } else { Err(Error::Misaligned { opcode, addr, align }) }
}

/// Offset of `first` in `space`, if `count` registers from there on are inside.
pub(crate) fn range_check(
    opcode: Opcode,
    space: Space,
    first: Reg,
    count: usize,
) -> Result<u32, Error> {
    let room = space.last.wrapping_sub(first.0) as usize;
    let reg = if !(space.first..=space.last).contains(&first.0) {
        first.0
    } else if count > room + 1 {
        space.last + 1
    } else {
        return Ok(first.0 - space.first);
    };
    Err(Error::RegisterOutOfRange { opcode, reg, first: space.first, last: space.last })
}
