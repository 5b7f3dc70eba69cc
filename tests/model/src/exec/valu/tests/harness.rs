//! A wave with random registers, and instructions built by hand.

use super::super::tests_rng::Rng;
use crate::Target;
use crate::exec::context::Env;
use crate::exec::{Apertures, Code, Wave};
use crate::isa::Op;
use crate::isa::Pools;
use crate::isa::ir::{Inst, Mods, Src, flag, sgpr};

pub const GFX90A: Env = env(Target::Gfx90a);
pub const GFX942: Env = env(Target::Gfx942);
pub const GFX1100: Env = env(Target::Gfx1100);

const fn env(target: Target) -> Env {
    Env {
        target,
        flat_scratch: sgpr::FLAT_SCRATCH,
        private_bytes: 0,
        apertures: Apertures { lds_base: 0, lds_limit: 0, scratch_base: 0, scratch_limit: 0 },
        trap: None,
        doorbell_id: 0,
    }
}

/// To nearest, denormals kept, IEEE and DX10_CLAMP: what compilers set.
pub const MODE: u32 = 0x3f0;

/// Registers v0..v31 and s0..s31 random, EXEC random.
pub fn wave<const N: usize>(rng: &mut Rng) -> Wave<N> {
    let mut wave = Wave::new();
    for reg in 0..32 {
        for lane in 0..N {
            wave.v[reg][lane] = interesting(rng);
        }
        wave.s[reg] = interesting(rng);
    }
    wave.mode = MODE;
    wave.vgprs = 64;
    wave.set_lane_mask(sgpr::VCC_LO, rng.u64());
    wave.set_exec(rng.u64() | rng.u64());
    wave
}

/// Bits that mean something to integers, singles, halves and the words of doubles.
pub fn interesting(rng: &mut Rng) -> u32 {
    match rng.below(4) {
        0 => rng.int(),
        1 => rng.float(23, 8) as u32,
        2 => rng.float(10, 5) as u32 | (rng.float(10, 5) as u32) << 16,
        _ => (rng.float(52, 11) >> 32) as u32,
    }
}

/// `op v20, v2, v4, v6` with sdst s40.
pub fn inst(op: Op) -> Inst {
    Inst {
        op,
        flags: 0,
        dst: 20,
        sdst: 40,
        words: 1,
        mods: 0,
        vgprs: 32,
        src: [Src::v(2), Src::v(4), Src::v(6)],
        imm: 0,
    }
}

/// Tables with one constant.
pub fn constant(bits: u64) -> Code {
    Code { insts: Vec::new(), pools: Pools { consts: vec![bits], mods: Vec::new() } }
}

/// The instruction with modifiers, and the tables it refers to.
pub fn with(op: Op, mods: Mods) -> (Inst, Code) {
    let mut inst = inst(op);
    inst.flags |= flag::MODS;
    (inst, Code { insts: Vec::new(), pools: Pools { consts: Vec::new(), mods: vec![mods] } })
}
