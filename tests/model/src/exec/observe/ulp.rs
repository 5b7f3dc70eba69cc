//! Results that hardware rounds in its own way, moved by at most one in the last place.
//!
//! Code that is right for any hardware within the published tolerance is right for these too; code
//! that relies on the model's better accuracy is not.

use crate::exec::wave::Wave;
use crate::isa::ir::{Inst, flag};
use crate::isa::{Effects, Op};

/// The format of an operation's results, if they are moved.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    F16,
    F32,
    F64,
}

fn format(op: Op) -> Option<Format> {
    use Op::*;
    Some(match op {
        VRcpF32 | VRcpIflagF32 | VRsqF32 | VSqrtF32 | VExpF32 | VExpLegacyF32 | VLogF32
        | VLogLegacyF32 | VSinF32 | VCosF32 => Format::F32,
        VRcpF16 | VRsqF16 | VSqrtF16 | VExpF16 | VLogF16 | VSinF16 | VCosF16 => Format::F16,
        VRcpF64 | VRsqF64 | VSqrtF64 => Format::F64,
        _ => return None,
    })
}

/// A number from others, evenly spread.
pub(super) fn mix(mut x: u64) -> u64 {
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

/// One step up or down among the finite numbers of a format, zero and denormals left alone: hardware
/// is exact there or flushes.
fn moved(bits: u64, by: i64, mantissa: u32, exponent: u32) -> u64 {
    let top = (1 << exponent) - 1;
    let of = |bits: u64| bits >> mantissa & top;
    let next = bits.wrapping_add_signed(by);
    let usual = |bits: u64| of(bits) != 0 && of(bits) != top;
    if usual(bits) && usual(next) { next } else { bits }
}

/// Moves the results of the instruction just executed.
pub(super) fn perturb<const N: usize>(
    w: &mut Wave<N>,
    i: &Inst,
    effects: &Effects,
    seed: u64,
    exec: u64,
) {
    let Some(format) = format(i.op) else { return };
    // Halves in part of a register are left alone.
    if format == Format::F16 && i.flags & (flag::MODS | flag::TRUE16) != 0 {
        return;
    }
    let Some(span) = effects.writes().first().filter(|span| span.vector) else { return };
    let low = w.physical(span.first);
    let high = w.physical(span.first + 1);
    for lane in (0..N).filter(|lane| exec >> lane & 1 != 0) {
        let bits = u64::from(w.v[low][lane]);
        let random = mix(seed ^ mix(bits ^ (lane as u64) << 40 ^ w.clock << 8 ^ w.pc));
        let by = [-1, 0, 1][(random % 3) as usize];
        match format {
            Format::F16 => {
                w.v[low][lane] = (bits & !0xffff | moved(bits & 0xffff, by, 10, 5)) as u32;
            }
            Format::F32 => w.v[low][lane] = moved(bits, by, 23, 8) as u32,
            Format::F64 => {
                let wide = bits | u64::from(w.v[high][lane]) << 32;
                let wide = moved(wide, by, 52, 11);
                w.v[low][lane] = wide as u32;
                w.v[high][lane] = (wide >> 32) as u32;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_usual_numbers_move_and_by_one_step() {
        let f = |x: f32, by| f32::from_bits(moved(x.to_bits().into(), by, 23, 8) as u32);
        assert_eq!(f(1.0, 1), 1.0 + f32::EPSILON);
        assert_eq!(f(-1.0, -1), -1.0 + f32::EPSILON / 2.0);
        for still in [0.0, -0.0, f32::INFINITY, f32::MAX, f32::MIN_POSITIVE / 2.0] {
            assert_eq!(f(still, 1).to_bits(), still.to_bits());
        }
        assert_eq!(f(f32::MIN_POSITIVE, -1), f32::MIN_POSITIVE);
    }
}
