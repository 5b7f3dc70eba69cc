//! Where the lanes of a memory instruction go.

use crate::exec::context::Context;
use crate::exec::flat::{self, Space};
use crate::exec::wave::Wave;
use crate::exec::{mubuf, scratch, smem};
use crate::isa::ir::{Inst, SrcKind, flag};
use crate::isa::{Counter, Effects, Memory};

/// What one lane accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Access {
    pub(super) lane: u8,
    pub(super) lds: bool,
    /// Address, or offset in LDS.
    pub(super) at: u64,
    pub(super) bytes: u32,
    /// The first word of the data that it moves.
    pub(super) word: u8,
}

/// The accesses of an instruction about to be executed to global memory and LDS, and, where asked for,
/// to scratch. LDS instructions that address by M0, and loads into LDS, are left out as well.
pub(super) fn accesses<const N: usize>(
    w: &Wave<N>,
    i: &Inst,
    effects: &Effects,
    cx: &Context<'_>,
    scratch: bool,
    out: &mut Vec<Access>,
) {
    out.clear();
    if !matches!(effects.memory, Memory::Load | Memory::Store | Memory::Atomic) {
        return;
    }
    let name = i.op.name();
    let bytes = effects.bytes;
    match effects.counter {
        Counter::Lds => lds(w, i, effects, out),
        Counter::Scalar if name.starts_with("s_load") || name.starts_with("s_store") => {
            let at = smem::place(w, i, &cx.cache.code);
            out.push(Access { lane: 0, lds: false, at, bytes, word: 0 });
        }
        Counter::Scalar => {}
        _ if name.contains("addtid") => {}
        _ if name.contains("buffer") => {
            // What formats move depends on the descriptor.
            if !name.contains("format") {
                mubuf::places(w, i, cx, bytes, |lane, word, at| {
                    let bytes = bytes.min(4);
                    out.push(Access { lane: lane as u8, lds: false, at, bytes, word });
                });
                // Scratch of older targets goes through buffers: private to the lane.
                if !scratch && is_scratch(w, i) {
                    out.clear();
                }
            }
        }
        _ => flat::places(w, i, cx, |lane, space, at| match space {
            Space::Private if scratch => {
                for k in 0..bytes.div_ceil(4) {
                    let offset = (at as u32).wrapping_add(4 * k);
                    if let Ok(at) = scratch::address(w, cx, offset, lane, bytes.min(4)) {
                        let bytes = bytes.min(4);
                        out.push(Access { lane: lane as u8, lds: false, at, bytes, word: k as u8 });
                    }
                }
            }
            Space::Private => {}
            _ => {
                out.push(Access { lane: lane as u8, lds: space == Space::Lds, at, bytes, word: 0 })
            }
        }),
    }
}

/// Whether a buffer descriptor is one that adds the lane: scratch.
fn is_scratch<const N: usize>(w: &Wave<N>, i: &Inst) -> bool {
    match i.src[1].kind() {
        SrcKind::S(v) => w.s32(v.wrapping_add(3)) >> 23 & 1 != 0,
        _ => false,
    }
}

fn lds<const N: usize>(w: &Wave<N>, i: &Inst, effects: &Effects, out: &mut Vec<Access>) {
    let name = i.op.name();
    if i.flags & flag::GDS != 0 || name.contains("addtid") || name.contains("src2") {
        return;
    }
    let SrcKind::V(row) = i.src[0].kind() else { return };
    if matches!(name, "ds_append" | "ds_consume" | "ds_condxchg32_rtn_b64") {
        return;
    }
    let addresses = &w.v[usize::from(row) & 511];
    let imm = i.imm as u32;
    let words = (effects.bytes / 4) as u8;
    w.for_active(|lane| {
        let lane = lane & (N - 1);
        let mut push = |offset: u32, word| {
            let at = u64::from(addresses[lane].wrapping_add(offset));
            out.push(Access { lane: lane as u8, lds: true, at, bytes: effects.bytes, word });
        };
        match effects.pair {
            Some(unit) => {
                push((imm & 0xff) * unit, 0);
                push((imm >> 8 & 0xff) * unit, words);
            }
            None => push(imm & 0xffff, 0),
        }
    });
}
