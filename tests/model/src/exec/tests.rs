//! Instructions by class, on waves without a launch around them.

use std::sync::atomic::AtomicU64;

use super::code::CodeCache;
use super::context::{Context, Env};
use super::control::Stop;
use super::launch::Apertures;
use super::lds::Lds;
use super::run;
use super::status;
use super::wave::Wave;
use crate::Target;
use crate::isa::ir::sgpr;
use crate::memory::{Access, AddressSpace};

const CODE: u64 = 0x1_0000;
const DATA: u64 = 0x2_0000;
const SCRATCH: u64 = 0x4_0000;

/// A machine with one code page, one data page and scratch.
struct Machine<const N: usize> {
    wave: Wave<N>,
    env: Env,
    space: AddressSpace,
    lds: Lds,
    memory: Vec<u64>,
    interrupts: Vec<(u32, bool)>,
}

#[allow(unsafe_code)]
impl<const N: usize> Machine<N> {
    fn new(target: Target) -> Self {
        let architected = target.has_architected_flat_scratch();
        let env = Env {
            target,
            flat_scratch: if architected { sgpr::FLAT_SCRATCH } else { 102 },
            private_bytes: 64,
            apertures: Apertures {
                lds_base: 1 << 48,
                lds_limit: (1 << 48) + 0xffff_ffff,
                scratch_base: 2 << 48,
                scratch_limit: (2 << 48) + 0xffff_ffff,
            },
            trap: None,
            doorbell_id: 0x155,
        };
        let mut lds = Lds::default();
        lds.reset(1024);
        let mut wave = Wave::new();
        wave.vgprs = 256;
        wave.status = status::VALID | status::TRAP_EN;
        wave.set_exec(!0);
        wave.set_s64(env.flat_scratch, SCRATCH);
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
        Self { wave, env, space, lds, memory, interrupts: Vec::new() }
    }

    /// Runs words, then `s_endpgm`.
    fn run(&mut self, words: &[u32]) -> Stop {
        let end = if self.env.target.is_gfx9() { 0xbf81_0000 } else { 0xbfb0_0000 };
        let bytes: Vec<u8> =
            words.iter().chain([&end]).flat_map(|word| word.to_le_bytes()).collect();
        self.space.write(CODE, &bytes).unwrap();
        self.wave.pc = CODE;
        self.resume()
    }

    fn resume(&mut self) -> Stop {
        let acquires = AtomicU64::new(0);
        let mut cache = CodeCache::new(self.env.target, N as u32);
        let mut cx = Context {
            env: &self.env,
            view: self.space.view(),
            lds: std::mem::take(&mut self.lds),
            cache: &mut cache,
            slot: 0,
            interrupts: Vec::new(),
            acquires: &acquires,
        };
        let stop = run::run(&mut self.wave, &mut cx, 10_000);
        self.lds = cx.lds;
        self.interrupts = cx.interrupts;
        stop
    }

    fn data(&self, index: u64) -> u32 {
        let mut bytes = [0; 4];
        self.space.read(DATA + 4 * index, &mut bytes).unwrap();
        u32::from_le_bytes(bytes)
    }
}

#[test]
#[ignore = "needs the DS signatures"]
fn lds_keeps_what_was_stored() {
    let mut m = Machine::<32>::new(Target::Gfx1100);
    for lane in 0..32 {
        m.wave.v[1][lane] = 4 * lane as u32;
        m.wave.v[0][lane] = 100 + lane as u32;
    }
    // ds_store_b32 v1, v0; ds_load_b32 v2, v1
    let stop = m.run(&[0xd834_0000, 0x0000_0001, 0xd8d8_0000, 0x0200_0001]);
    assert_eq!(stop, Stop::End);
    assert_eq!(m.lds.read_u32(8), 102);
    assert_eq!(m.wave.v[2][31], 131);
    assert_eq!(m.data(0), 0);
    assert_eq!(m.memory.len(), 0x600);
}
