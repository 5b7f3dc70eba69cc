//! SDMA packets: typed builders, the decoder that undoes them, splitting, and the rules of rings.
//!
//! In the style of the PM4 packets: `new` takes what a packet needs and checks it, chained methods
//! what it may have, `encode` gives the dwords. What differs between engines hangs on [`Version`].
//! An SDMA header does not tell the packet's length, so a decoder that meets an unknown packet
//! cannot go on. Numbers: docs/ABI.md §SDMA.

mod atomic;
mod broadcast;
mod cache;
mod copy;
mod decode;
mod error;
mod fill;
mod flow;
mod ring;
mod split;
mod sync;
mod version;
mod window;

/// The layouts, for the comparison with Linux's headers.
#[cfg(test)]
pub(crate) mod layouts {
    pub(crate) use super::atomic::{atomic, atomic_v6, poll_regmem, poll_regmem_v6};
    pub(crate) use super::broadcast::copy_broadcast;
    pub(crate) use super::cache::gcr_req;
    pub(crate) use super::copy::{copy_linear, copy_linear_v6};
    pub(crate) use super::fill::{
        constant_fill, constant_fill_v6, write_untiled, write_untiled_v6,
    };
    pub(crate) use super::flow::{cond_exe, cond_exe_v6, indirect, nop};
    pub(crate) use super::sync::{fence, fence_v6, timestamp, trap};
    pub(crate) use super::window::{subwin, subwin_v6};
}
#[cfg(test)]
mod tests;

pub use atomic::{Atomic, PollMem};
pub use broadcast::CopyBroadcast;
pub use cache::{GcrReq, HdpFlush};
pub use copy::CopyLinear;
pub use decode::{Packet, Packets};
pub use error::{Error, Op};
pub use fill::{ConstFill, FillData, WriteUntiled};
pub use flow::{CondExe, Indirect, Nop};
pub use ring::{Builder, Placement, indirect_padding, place};
pub use split::{Surface, copies, fills, windows};
pub use sync::{Fence, Timestamp, Trap};
pub use version::Version;
pub use window::{CopySubWindow, Side};

use crate::bits::{Bits, Field, layout, undefined};

layout! {
    header { OP = 0 [7:0]; SUB_OP = 0 [15:8]; }
}

/// Dword 0 of a packet without further header fields.
const fn head(op: Op) -> u32 {
    header::OP.put(op.op as u32) | header::SUB_OP.put(op.sub_op as u32)
}

/// The packet `op` of `N` dwords at the start of `words`, once only bits are set that `fields`
/// define, or on engines of the sixth generation `v6`.
fn strict<const N: usize>(
    words: &[u32],
    op: Op,
    version: Version,
    fields: &[Field],
    v6: &[Field],
) -> Result<[u32; N], Error> {
    let (found, needed) = (words.len(), N);
    let first = words.first().ok_or(Error::Truncated { needed, found })?;
    if Op::of(*first) != op {
        return Err(Error::WrongPacket { expected: op, found: Op::of(*first) });
    }
    let packet = words.first_chunk::<N>().ok_or(Error::Truncated { needed, found })?;
    let v6 = if version.is_v6() { v6 } else { &[] };
    match undefined(&[header::FIELDS, fields, v6], 0, packet) {
        Some((dword, word, bits)) => Err(Error::Reserved { packet: op, dword, word, bits }),
        None => Ok(*packet),
    }
}

/// Refuses an address that is not a multiple of `align` bytes.
const fn aligned(packet: Op, addr: crate::GpuAddr, align: u64) -> Result<(), Error> {
    if addr.is_aligned(align) { Ok(()) } else { Err(Error::Misaligned { packet, addr, align }) }
}

/// Refuses `value` outside `min..=max`.
const fn in_range(
    packet: Op,
    field: &'static str,
    value: u64,
    min: u64,
    max: u64,
) -> Result<(), Error> {
    if value < min || value > max {
        return Err(Error::OutOfRange { packet, field, value, min, max });
    }
    Ok(())
}

/// A three-bit cache policy, which engines before the sixth generation do not have.
const fn policy(packet: Op, version: Version, policy: u8) -> Result<u8, Error> {
    let max = if version.is_v6() { 7 } else { 0 };
    match in_range(packet, "cache policy", policy as u64, 0, max) {
        Ok(()) => Ok(policy),
        Err(error) => Err(error),
    }
}

/// The low 32 bits, after a check that there are no others.
#[allow(clippy::cast_possible_truncation)] // the check is `in_range`'s, the mask the field's
const fn narrow(value: u64, bits: Bits) -> u32 {
    bits.put((value & u32::MAX as u64) as u32)
}
