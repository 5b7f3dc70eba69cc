//! The state a wave starts with, as the shader processor input (SPI) sets it up from the launch.
//!
//! Source: LLVM "User Guide for AMDGPU Backend", initial kernel execution state. docs/ABI.md
//! §Launch state.

use super::context::Env;
use super::gws::Waiting;
use super::launch::{Launch, Part, ScratchSetup};
use super::observe::undefined;
use super::status;
use super::wave::{Wave, hidden};
use crate::Target;
use crate::isa::ir::sgpr;

/// What the launch registers say, decoded once per launch.
#[derive(Clone, Debug)]
pub struct Setup {
    /// What instructions may ask.
    pub env: Env,
    /// Workgroups per dimension, of all XCCs.
    pub groups: [u32; 3],
    /// Workgroup in work-items.
    pub group: [u32; 3],
    /// Grid in work-items.
    pub grid: [u32; 3],
    /// LDS bytes of a workgroup.
    pub lds_bytes: u32,
    /// Waves of a full workgroup.
    pub waves: u32,
    wave_size: u32,
    /// Whether each wave takes a scratch slot.
    pub scratch: bool,
    scratch_buffer: ScratchSetup,
    /// XCCs that share the workgroups.
    xccs: u32,
    part: Part,
    entry: u64,
    user_sgprs: Vec<u32>,
    user_count: usize,
    rsrc2: u32,
    mode: u32,
    status: u32,
    vgprs: u16,
    accum_offset: u16,
    dispatch_index: u64,
}

impl Setup {
    /// Decodes a launch.
    pub fn new(launch: &Launch) -> Self {
        let target = launch.target;
        let size = launch.wave_size;
        let [rsrc1, rsrc2] = [launch.rsrc1, launch.rsrc2];
        let items = launch.group.iter().product::<u32>();
        let scratch = rsrc2 & 1 != 0 && launch.scratch.wave_bytes != 0;
        let architected = target.has_architected_flat_scratch();
        let trap_bits = if launch.trap_enabled { status::TRAP_EN } else { status::PRIV };
        Self {
            env: Env {
                target,
                flat_scratch: if architected { sgpr::FLAT_SCRATCH } else { 102 },
                private_bytes: if scratch { launch.private_bytes.next_multiple_of(4) } else { 0 },
                apertures: launch.apertures,
                trap: launch.trap.filter(|_| launch.trap_enabled),
                doorbell_id: launch.doorbell_id,
            },
            groups: std::array::from_fn(|d| {
                let end = launch.grid[d].div_ceil(launch.group[d].max(1));
                end.saturating_sub(launch.part.start[d])
            }),
            group: launch.group,
            grid: launch.grid,
            lds_bytes: launch.lds_bytes,
            waves: items.div_ceil(size),
            wave_size: size,
            scratch,
            scratch_buffer: launch.scratch,
            xccs: launch.xccs.max(1),
            part: launch.part,
            entry: launch.entry,
            user_sgprs: launch.user_sgprs.clone(),
            user_count: (rsrc2 >> 1 & 31) as usize,
            rsrc2,
            mode: mode(rsrc1, rsrc2),
            status: status::VALID | trap_bits | ((rsrc1 >> 20 & 1) * status::PRIV),
            vgprs: vgprs(target, size, rsrc1),
            accum_offset: if target.has_unified_vgprs() {
                ((launch.rsrc3 & 63) as u16 + 1) * 4
            } else {
                256
            },
            dispatch_index: launch.dispatch_index,
        }
    }

    /// Number of workgroups that run.
    pub fn total(&self) -> u64 {
        let counts = self.groups.iter().map(|&count| u64::from(count));
        let all = counts.fold(1, u64::saturating_mul);
        match self.part.only {
            Some(xcc) => all.saturating_sub(xcc.into()).div_ceil(self.xccs.into()),
            None => all,
        }
    }

    /// The workgroup with a number: x fastest.
    pub fn place(&self, number: u64) -> [u32; 3] {
        let number = match self.part.only {
            Some(xcc) => number * u64::from(self.xccs) + u64::from(xcc),
            None => number,
        };
        let [x, y] = [u64::from(self.groups[0]), u64::from(self.groups[1])];
        let [sx, sy, sz] = self.part.start;
        [(number % x) as u32 + sx, (number / x % y) as u32 + sy, (number / x / y) as u32 + sz]
    }

    /// The XCC on which the workgroup with a number runs: one by one in turn
    /// (COMPUTE_TG_CHUNK_SIZE 1, docs/ABI.md §Launch).
    pub fn xcc(&self, number: u64) -> u32 {
        self.part.only.unwrap_or((number % u64::from(self.xccs)) as u32)
    }

    /// Waves of the workgroup with a number: fewer at the grid's far ends.
    pub fn waves_of(&self, number: u64) -> u32 {
        self.size(self.place(number)).iter().product::<u32>().div_ceil(self.wave_size)
    }

    /// Work-items of a workgroup per dimension: fewer at the grid's far ends.
    pub fn size(&self, place: [u32; 3]) -> [u32; 3] {
        std::array::from_fn(|d| self.group[d].min(self.grid[d] - place[d] * self.group[d]))
    }

    /// Prepares wave `number` of `waves` of the workgroup at `place`, of `size` work-items. `slot` is
    /// its scratch slot on its XCC.
    #[allow(clippy::too_many_arguments)] // what tells a wave from the others
    pub fn start<const N: usize>(
        &self,
        w: &mut Wave<N>,
        place: [u32; 3],
        size: [u32; 3],
        number: u32,
        waves: u32,
        xcc: u32,
        slot: Option<u32>,
    ) {
        if cfg!(debug_assertions) {
            w.s[..usize::from(sgpr::VCC_LO)].fill(undefined::SCALAR);
            for row in w.v.iter_mut().take(usize::from(self.vgprs)) {
                row.fill(undefined::VECTOR);
            }
        }
        w.s[usize::from(sgpr::VCC_LO)..].fill(0);
        w.scc = false;
        w.pc = self.entry;
        w.mode = self.mode;
        w.status = self.status | (u32::from(waves > 1) * status::IN_TG);
        w.trapsts = 0;
        w.vgprs = self.vgprs;
        w.accum_offset = self.accum_offset;
        w.clock = 0;
        // Wave, SIMD and compute unit fields, which hardware makes distinct.
        w.gws = Waiting::No;
        w.hw_id = number & 15 | (number >> 4 & 3) << 4 | (place[0] & 15) << 8;

        w.xcc = self.part.first_xcc + xcc;
        let offset = u64::from(slot.unwrap_or(0)) * self.scratch_buffer.wave_bytes
            + u64::from(xcc) * self.scratch_buffer.xcc_bytes;
        self.scalars(w, place, number, waves, offset);
        let a = &self.env.apertures;
        for (k, value) in
            [a.lds_base, a.lds_limit, a.scratch_base, a.scratch_limit].into_iter().enumerate()
        {
            w.set_s64(hidden::APERTURES + 2 * k as u8, value);
        }
        if self.scratch && self.env.target.has_architected_flat_scratch() {
            w.set_s64(sgpr::FLAT_SCRATCH, self.scratch_buffer.base.wrapping_add(offset));
        }
        self.lanes(w, size, number);
    }

    /// User SGPRs, then what SPI adds, in its order.
    fn scalars<const N: usize>(
        &self,
        w: &mut Wave<N>,
        place: [u32; 3],
        number: u32,
        waves: u32,
        offset: u64,
    ) {
        let mut next = 0;
        let mut push = |w: &mut Wave<N>, value: u32| {
            w.s[next & 127] = value;
            next += 1;
        };
        for k in 0..self.user_count {
            push(w, self.user_sgprs.get(k).copied().unwrap_or(0));
        }
        for (d, &id) in place.iter().enumerate() {
            if self.rsrc2 >> (7 + d) & 1 != 0 {
                push(w, id);
            }
        }
        if self.rsrc2 >> 10 & 1 != 0 {
            push(w, u32::from(number == 0) << 31 | waves & 63);
        }
        if self.rsrc2 & 1 != 0 && !self.env.target.has_architected_flat_scratch() {
            push(w, offset as u32);
        }
        let ttmp = usize::from(sgpr::TTMP0);
        w.s[ttmp + 6] = self.dispatch_index as u32 & 0x1ff_ffff;
        w.s[ttmp + 8..ttmp + 11].copy_from_slice(&place);
        w.s[ttmp + 11] = number & 63;
    }

    /// EXEC and the work-item ids.
    fn lanes<const N: usize>(&self, w: &mut Wave<N>, size: [u32; 3], number: u32) {
        let items = size.iter().product::<u32>();
        let first = number * N as u32;
        let count = (items - first).min(N as u32);
        w.set_exec(if count == 64 { !0 } else { (1 << count) - 1 });
        let ids = self.rsrc2 >> 11 & 3;
        let packed = self.env.target.has_packed_workitem_ids();
        let [sx, sy] = [size[0].max(1), size[1].max(1)];
        if sx >= items {
            // One row: the usual case, without divisions.
            for lane in 0..N {
                w.v[0][lane] = first + lane as u32;
            }
            if !packed && ids > 0 {
                w.v[1] = [0; N];
            }
            if !packed && ids > 1 {
                w.v[2] = [0; N];
            }
            return;
        }
        for lane in 0..N {
            let item = first + lane as u32;
            let x = item % sx;
            let y = if ids > 0 { item / sx % sy } else { 0 };
            let z = if ids > 1 { item / sx / sy } else { 0 };
            if packed {
                w.v[0][lane] = x | (y & 0x3ff) << 10 | (z & 0x3ff) << 20;
                continue;
            }
            w.v[0][lane] = x;
            // What was not asked for is not set.
            if ids > 0 {
                w.v[1][lane] = y;
            }
            if ids > 1 {
                w.v[2][lane] = z;
            }
        }
    }
}

/// MODE from the launch registers: float mode, DX10_CLAMP, IEEE, exception enables, FP16_OVFL.
fn mode(rsrc1: u32, rsrc2: u32) -> u32 {
    rsrc1 >> 12 & 0xff
        | (rsrc1 >> 21 & 1) << 8
        | (rsrc1 >> 23 & 1) << 9
        | (rsrc2 >> 24 & 0x7f) << 12
        | (rsrc2 >> 13 & 3) << 19
        | (rsrc1 >> 26 & 1) << 23
}

/// Vector registers allocated, from the granule count of RSRC1.
fn vgprs(target: Target, wave_size: u32, rsrc1: u32) -> u16 {
    let granules = (rsrc1 & 63) as u16 + 1;
    let granule =
        if target.has_unified_vgprs() || target.is_gfx11() && wave_size == 32 { 8 } else { 4 };
    granules * granule
}
