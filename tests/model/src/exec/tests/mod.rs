//! Instructions by class, on waves without a launch around them. Words are LLVM 19's.
#![allow(unsafe_code)] // mapping buffers for the waves

mod buffer_format;
mod control;
mod gws;
mod indexing;
mod launch;
mod lds;
mod lds_rare;
mod memory;
mod paths;
mod scalar;
mod scalar_float;
mod scalar_memory;
mod scratch;
mod trap;

use std::sync::atomic::AtomicU64;

use super::code::CodeCache;
use super::context::{Context, Env};
use super::control::Stop;
use super::gws::Gws;
use super::launch::{Apertures, TrapSetup};
use super::lds::Lds;
use super::wave::Wave;
use super::{hidden, run, status};
use crate::Target;
use crate::isa::ir::sgpr;
use crate::memory::{Access, AddressSpace};

const CODE: u64 = 0x1_0000;
const DATA: u64 = 0x2_0000;
const SCRATCH: u64 = 0x4_0000;
const HANDLER: u64 = CODE + 0x800;
const LDS_BASE: u64 = 1 << 48;
const PRIVATE_BASE: u64 = 2 << 48;

/// A wave with a page of code, a page of data, and scratch.
struct Machine<const N: usize> {
    wave: Wave<N>,
    env: Env,
    space: AddressSpace,
    lds: Lds,
    interrupts: Vec<(u32, bool)>,
    gws: Option<Gws>,
    cache: CodeCache,
    acquires: AtomicU64,
    /// Backs the address space.
    _memory: Vec<u64>,
}

impl<const N: usize> Machine<N> {
    fn new(target: Target) -> Self {
        let architected = target.has_architected_flat_scratch();
        let env = Env {
            target,
            flat_scratch: if architected { sgpr::FLAT_SCRATCH } else { 102 },
            private_bytes: 32,
            apertures: Apertures {
                lds_base: LDS_BASE,
                lds_limit: LDS_BASE + 0xffff_ffff,
                scratch_base: PRIVATE_BASE,
                scratch_limit: PRIVATE_BASE + 0xffff_ffff,
            },
            trap: None,
            doorbell_id: 0x155,
        };
        let mut lds = Lds::default();
        lds.reset(1024);
        let mut wave = Wave::new();
        wave.vgprs = 128;
        wave.accum_offset = 64;
        wave.status = status::VALID | status::TRAP_EN;
        wave.set_exec(!0);
        wave.set_s64(env.flat_scratch, SCRATCH);
        wave.set_s64(hidden::APERTURES, LDS_BASE);
        wave.set_s64(hidden::APERTURES + 4, PRIVATE_BASE);
        let mut memory = vec![0u64; 0x3000 / 8];
        let space = AddressSpace::new();
        let host = memory.as_mut_ptr().cast::<u8>();
        let rw = Access { write: true, execute: false };
        // SAFETY: `memory` lives in the machine and is touched through the space only.
        unsafe { space.map(CODE, 0x1000, host, Access { write: true, execute: true }) }.unwrap();
        // SAFETY: as above; the second page of the buffer.
        unsafe { space.map(DATA, 0x1000, host.wrapping_add(0x1000), rw) }.unwrap();
        // SAFETY: as above; the third page of the buffer.
        unsafe { space.map(SCRATCH, 0x1000, host.wrapping_add(0x2000), rw) }.unwrap();
        let cache = CodeCache::new(target, N as u32);
        let acquires = AtomicU64::new(0);
        Self {
            wave,
            env,
            space,
            lds,
            interrupts: Vec::new(),
            gws: None,
            cache,
            acquires,
            _memory: memory,
        }
    }

    fn put(&self, at: u64, words: &[u32]) {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.space.write(at, &bytes).unwrap();
    }

    /// Runs words, then `s_endpgm`, as code that was not seen before.
    fn run(&mut self, words: &[u32]) -> Stop {
        let end = if self.env.target.is_gfx9() { 0xbf81_0000 } else { 0xbfb0_0000 };
        self.put(CODE, words);
        self.put(CODE + 4 * words.len() as u64, &[end]);
        self.cache.invalidate();
        self.wave.pc = CODE;
        self.resume(10_000)
    }

    fn resume(&mut self, budget: u64) -> Stop {
        let mut cx = Context {
            env: &self.env,
            view: self.space.view(),
            lds: std::mem::take(&mut self.lds),
            cache: &mut self.cache,
            slot: 0,
            interrupts: Vec::new(),
            gws: self.gws.as_ref(),
            acquires: &self.acquires,
        };
        let stop = run::run::<N, true>(&mut self.wave, &mut cx, budget);
        self.lds = cx.lds;
        self.interrupts.append(&mut cx.interrupts);
        stop
    }

    /// Installs a trap handler.
    fn handler(&mut self, words: &[u32]) {
        self.put(HANDLER, words);
        self.env.trap = Some(TrapSetup { tba: HANDLER, tma: 0x1234_5678_9abc });
    }

    fn word(&self, at: u64) -> u32 {
        let mut bytes = [0; 4];
        self.space.read(at, &mut bytes).unwrap();
        u32::from_le_bytes(bytes)
    }

    /// Sets v\[reg:reg+1\] to an address per lane.
    fn addresses(&mut self, reg: usize, address: impl Fn(u64) -> u64) {
        for lane in 0..N {
            let at = address(lane as u64);
            self.wave.v[reg][lane] = at as u32;
            self.wave.v[reg + 1][lane] = (at >> 32) as u32;
        }
    }

    fn fill(&mut self, reg: usize, value: impl Fn(u32) -> u32) {
        for lane in 0..N {
            self.wave.v[reg][lane] = value(lane as u32);
        }
    }
}

fn gfx11() -> Machine<32> {
    Machine::new(Target::Gfx1100)
}

fn gfx90a() -> Machine<64> {
    Machine::new(Target::Gfx90a)
}

/// What `set_lane_mask` stores for a mask in wave32: the low half only.
#[test]
fn lane_masks_are_one_register_in_wave32_and_two_in_wave64() {
    let mut narrow = Wave::<32>::new();
    narrow.set_s64(sgpr::VCC_LO, !0);
    narrow.set_lane_mask(sgpr::VCC_LO, 5);
    assert_eq!((narrow.vcc(), narrow.s64(sgpr::VCC_LO)), (5, 0xffff_ffff_0000_0005));
    let mut wide = Wave::<64>::new();
    wide.set_lane_mask(sgpr::VCC_LO, 5 << 32);
    assert_eq!(wide.vcc(), 5 << 32);
}
