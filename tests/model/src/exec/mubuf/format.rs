//! Loads and stores that convert: the format is the descriptor's (MUBUF) or the instruction's
//! (MTBUF).

use super::address::{Buffer, accessed};
use super::convert::Format;
use super::{data_register, fetch, put_in_lds};
use crate::exec::context::{Context, Trouble};
use crate::exec::flat::Part;
use crate::exec::wave::Wave;
use crate::isa::ir::{Inst, SrcKind, flag};

/// How components lie in registers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Data {
    /// One per register.
    Words,
    /// Two per register, the first in the low half.
    Halves,
    /// One, in the high half.
    HighHalf,
}

/// What a component of a register comes from: AMD's SQ_SEL numbers.
mod select {
    pub(super) const ONE: u32 = 1;
    pub(super) const FIRST: u32 = 4;
}

/// The format of an access, and for each of X, Y, Z, W where it comes from.
struct Access {
    format: Option<Format>,
    select: [u32; 4],
}

impl Access {
    fn new<const N: usize>(w: &Wave<N>, i: &Inst, cx: &Context<'_>) -> Result<Self, Trouble> {
        let SrcKind::S(v) = i.src[1].kind() else { return Err(Trouble::Illegal) };
        let word3 = w.s32(v.wrapping_add(3));
        let gfx9 = cx.env.target.is_gfx9();
        let typed = i.op.name().starts_with("tbuffer");
        if !typed {
            let format = if gfx9 {
                Format::gfx9(word3 >> 15 & 15, word3 >> 12 & 7)
            } else {
                Format::gfx11(word3 >> 12 & 63)
            };
            return Ok(Self { format, select: [0, 3, 6, 9].map(|at| word3 >> at & 7) });
        }
        let code = u32::from(cx.cache.code.mods_of(i).matrix[0]);
        let format =
            if gfx9 { Format::gfx9(code & 15, code >> 4 & 7) } else { Format::gfx11(code) };
        // Identity as far as the format has components.
        let count = format.map_or(0, |format| format.widths.len());
        let identity = |k: usize| if k < count { select::FIRST + k as u32 } else { 0 };
        Ok(Self { format, select: [0, 1, 2, 3].map(identity) })
    }

    /// The descriptor, and the element it is accessed by. `None`: the format is invalid, as in the
    /// descriptor of nothing; loads give zero, stores are dropped.
    fn buffer<const N: usize>(
        &self,
        w: &Wave<N>,
        i: &Inst,
        cx: &Context<'_>,
    ) -> Result<Option<(Format, Buffer)>, Trouble> {
        let Some(format) = self.format else { return Ok(None) };
        Ok(Some((format, Buffer::new(w, i, cx, format.bytes(), true)?)))
    }
}

/// The parts an element of `bytes` bytes is moved in: which, and how many.
const fn parts(bytes: u32) -> (Part, u32) {
    match bytes {
        1 => (Part::U8, 1),
        2 => (Part::U16, 1),
        bytes => (Part::B32, bytes / 4),
    }
}

/// Loads `count` components per lane. Lanes out of range read zero, and one where the descriptor
/// selects it.
#[inline(never)]
pub(super) fn load<const N: usize>(
    w: &mut Wave<N>,
    i: &Inst,
    cx: &mut Context<'_>,
    count: usize,
    data: Data,
) -> Result<(), Trouble> {
    let to_lds = i.flags & flag::LDS != 0;
    if to_lds && (count != 1 || data != Data::Words) {
        return Err(Trouble::Illegal);
    }
    let access = Access::new(w, i, cx)?;
    let found = access.buffer(w, i, cx)?;
    let mut raw = [[0; N]; 4];
    if let Some((format, buffer)) = found {
        let (part, words) = parts(format.bytes());
        for k in 0..words {
            fetch(w, i, cx, &buffer, part, k, &mut raw[k as usize])?;
        }
    }
    let half = data != Data::Words;
    let component = |lane: usize, k: usize| -> u32 {
        let element = [0, 1, 2, 3].map(|k: usize| raw[k][lane]);
        let is_integer = found.is_some_and(|(format, _)| format.is_integer());
        match (access.select[k], found) {
            (select::ONE, _) if is_integer => 1,
            (select::ONE, _) if half => 0x3c00,
            (select::ONE, _) => 1f32.to_bits(),
            (from @ select::FIRST.., Some((format, _))) => {
                let channel = (from - select::FIRST) as usize;
                if channel >= format.widths.len() {
                    0
                } else if half {
                    u32::from(format.read_half(element, channel))
                } else {
                    format.read(element, channel)
                }
            }
            _ => 0,
        }
    };
    if to_lds {
        let row = std::array::from_fn(|lane| component(lane, 0));
        put_in_lds(w, i, cx, &row);
        return Ok(());
    }
    let dst = data_register(w, i);
    let registers = if data == Data::Halves { count.div_ceil(2) } else { count };
    for register in 0..registers {
        let reg = dst.wrapping_add(register as u16);
        let old = w.v[usize::from(reg) & 511];
        let row = std::array::from_fn(|lane| match data {
            Data::Words => component(lane, register),
            Data::HighHalf => old[lane] & 0xffff | component(lane, 0) << 16,
            Data::Halves => {
                let low = component(lane, 2 * register);
                let high = if 2 * register + 1 < count {
                    component(lane, 2 * register + 1) << 16
                } else {
                    old[lane] & 0xffff_0000
                };
                low | high
            }
        });
        w.write_v(reg, &row);
    }
    Ok(())
}

/// Stores `count` components per lane; what the format has beyond them gets the first.
#[inline(never)]
pub(super) fn store<const N: usize>(
    w: &Wave<N>,
    i: &Inst,
    cx: &mut Context<'_>,
    count: usize,
    data: Data,
) -> Result<(), Trouble> {
    let access = Access::new(w, i, cx)?;
    let Some((format, buffer)) = access.buffer(w, i, cx)? else { return Ok(()) };
    let first = usize::from(data_register(w, i));
    let component = |lane: usize, k: usize| {
        let k = if k < count { k } else { 0 };
        let word = |register: usize| w.v[(first + register) & 511][lane];
        match data {
            Data::Words => word(k),
            Data::Halves => format.of_half((word(k / 2) >> (16 * (k % 2))) as u16),
            Data::HighHalf => format.of_half((word(0) >> 16) as u16),
        }
    };
    // Channel c of memory gets the component that a load would take from it.
    let source = |channel: usize| {
        access.select.iter().position(|&from| from == select::FIRST + channel as u32)
    };
    let mut raw = [[0; N]; 4];
    for lane in (0..N).filter(|&lane| w.mask[lane] != 0) {
        let mut element = [0; 4];
        for channel in 0..format.widths.len() {
            if let Some(k) = source(channel) {
                format.write(&mut element, channel, component(lane, k));
            }
        }
        for (row, word) in raw.iter_mut().zip(element) {
            row[lane] = word;
        }
    }
    let (part, words) = parts(format.bytes());
    for k in 0..words {
        let accessed = accessed(w, i, &buffer, k);
        if accessed.exec == 0 {
            continue;
        }
        let lanes = accessed.lanes(&buffer);
        let row = &raw[k as usize];
        match part {
            Part::U8 | Part::I8 => cx.view.scatter::<N, u8>(cx.slot, lanes, row),
            Part::U16 | Part::I16 => cx.view.scatter::<N, u16>(cx.slot, lanes, row),
            Part::B32 => cx.view.scatter::<N, u32>(cx.slot, lanes, row),
        }?;
    }
    Ok(())
}
