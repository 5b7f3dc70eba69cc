//! The registers of one dispatch.

use super::{Axis, Error, Launch, MAX_USER_SGPRS, Program, Properties};
use crate::emit::{Encode, Pm4Packet};
use crate::packet::{DispatchDirect, SetReg};
use crate::reg::gfx9::{ComputePgmRsrc2, gfx90a};
use crate::reg::{DispatchInitiator, Reg, gfx9, gfx11};
use crate::{GpuAddr, Target};

/// Work-items of a group, at most.
const MAX_GROUP: u32 = 1024;
/// LDS of a group, at most, bytes.
const MAX_LDS_BYTES: u32 = 64 << 10;
/// What `COMPUTE_PGM_RSRC2.LDS_SIZE` counts in, bytes.
const LDS_GRANULE: u32 = 512;

/// Registers and user SGPRs of one dispatch, and the packet that starts it.
///
/// It is pushed like a packet: register writes, then `DISPATCH_DIRECT`. Caches, completion and the
/// life of the memory it names are the caller's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct LaunchState {
    target: Target,
    pgm: [u32; 6],
    rsrc: [u32; 2],
    rsrc3: u32,
    tmpring_size: u32,
    num_thread: [u32; 3],
    user_data: [u32; MAX_USER_SGPRS as usize],
    user_sgprs: u32,
    keeps_scratch: bool,
    dispatch: DispatchDirect,
}

pub(super) fn compute(program: &Program, launch: &Launch) -> Result<LaunchState, Error> {
    let (num_thread, dims, partial) = geometry(launch.grid, launch.group)?;
    let rsrc2 = ComputePgmRsrc2(program.rsrc2);
    let lds = lds_granules(launch.lds_bytes)?;
    let rsrc2 = rsrc2.set_lds_size(lds).unwrap_or(rsrc2);
    scratch(program, launch, rsrc2.scratch_en())?;
    let mut initiator =
        DispatchInitiator::COMPUTE_SHADER_EN | DispatchInitiator::FORCE_START_AT_000;
    initiator.set(DispatchInitiator::PARTIAL_TG_EN, partial);
    initiator.set(DispatchInitiator::CS_W32_EN, program.wave_size() == 32);
    let [code, scratch_base] =
        [program.code, launch.scratch.base].map(|addr| GpuAddr::new(addr.get() >> 8));
    Ok(LaunchState {
        target: program.target,
        pgm: [code.lo(), code.hi(), 0, 0, scratch_base.lo(), scratch_base.hi()],
        rsrc: [program.rsrc1, rsrc2.0],
        rsrc3: program.rsrc3,
        // The queue's, also for a kernel without scratch: earlier waves may still use it.
        tmpring_size: launch.scratch.tmpring_size,
        num_thread,
        user_data: user_data(program, launch)?,
        user_sgprs: program.user_sgprs,
        keeps_scratch: false,
        dispatch: DispatchDirect::new(dims, initiator),
    })
}

/// What `COMPUTE_PGM_RSRC2` has of the LDS of a group.
#[inline]
pub(super) fn lds_granules(bytes: u32) -> Result<u32, Error> {
    if bytes > MAX_LDS_BYTES {
        return Err(Error::Lds { bytes, max: MAX_LDS_BYTES });
    }
    Ok(bytes.div_ceil(LDS_GRANULE))
}

/// `COMPUTE_NUM_THREAD_*`, the number of groups, and whether the last of a row is partial.
#[inline]
pub(super) fn geometry(
    grid: [u32; 3],
    group: [u32; 3],
) -> Result<([u32; 3], [u32; 3], bool), Error> {
    for ((items, size), axis) in grid.iter().zip(group).zip([Axis::X, Axis::Y, Axis::Z]) {
        if *items == 0 || size == 0 {
            return Err(Error::Empty { axis });
        }
    }
    let items = group.iter().fold(1_u64, |items, size| items.saturating_mul((*size).into()));
    if items > MAX_GROUP.into() {
        return Err(Error::Group { items, max: MAX_GROUP });
    }
    let [gx, gy, gz] = grid;
    let [x, y, z] = group;
    let rest = [gx % x, gy % y, gz % z];
    let partial = rest != [0; 3];
    // Along an axis without a rest, the last group is a whole one.
    let size = |full: u32, rest: u32| {
        let last = if rest == 0 { full } else { rest };
        full | if partial { last << 16 } else { 0 }
    };
    let [rx, ry, rz] = rest;
    let num_thread = [size(x, rx), size(y, ry), size(z, rz)];
    Ok((num_thread, [gx.div_ceil(x), gy.div_ceil(y), gz.div_ceil(z)], partial))
}

/// Checks that the queue's scratch suffices.
fn scratch(program: &Program, launch: &Launch, enabled: bool) -> Result<(), Error> {
    let base = launch.scratch.base;
    if !base.is_aligned(256) || base.hi() > 0xFFFF {
        return Err(Error::ScratchBase { base });
    }
    if launch.private_bytes == 0 {
        return Ok(());
    }
    if !enabled {
        return Err(Error::ScratchDisabled { bytes: launch.private_bytes });
    }
    let ring = launch.scratch.tmpring_size;
    let found = match program.target {
        Target::Gfx11 => u64::from(gfx11::ComputeTmpringSize(ring).wavesize()) * 256,
        _ => u64::from(gfx9::ComputeTmpringSize(ring).wavesize()) * 1024,
    };
    let needed =
        u64::from(launch.private_bytes.next_multiple_of(4)) * u64::from(program.wave_size());
    if needed > found { Err(Error::Scratch { needed, found }) } else { Ok(()) }
}

/// The user SGPRs, in the order of the ABI.
fn user_data(program: &Program, launch: &Launch) -> Result<[u32; MAX_USER_SGPRS as usize], Error> {
    use Properties as P;
    let mut sgprs = [0; MAX_USER_SGPRS as usize];
    let mut rest = sgprs.iter_mut();
    // `Program::new` counted that they fit: what is left over has no place and cannot occur.
    let mut push = |words: &[u32]| rest.by_ref().zip(words).for_each(|(to, from)| *to = *from);
    let wants = |property| program.properties.contains(property);
    let given = |what, addr: Option<GpuAddr>| addr.ok_or(Error::Missing { what });
    if wants(P::PRIVATE_SEGMENT_BUFFER) {
        push(&launch.scratch.resource);
    }
    if wants(P::DISPATCH_PTR) {
        let packet = given("dispatch packet", launch.packet)?;
        push(&[packet.lo(), packet.hi()]);
    }
    if wants(P::QUEUE_PTR) {
        let queue = given("queue descriptor", launch.queue)?;
        push(&[queue.lo(), queue.hi()]);
    }
    if wants(P::KERNARG_SEGMENT_PTR) {
        push(&[launch.kernarg.lo(), launch.kernarg.hi()]);
    }
    if wants(P::DISPATCH_ID) {
        let id = GpuAddr::new(launch.id);
        push(&[id.lo(), id.hi()]);
    }
    if wants(P::FLAT_SCRATCH_INIT) {
        push(&[launch.scratch.base.lo(), launch.scratch.base.hi()]);
    }
    if wants(P::PRIVATE_SEGMENT_SIZE) {
        push(&[launch.private_bytes.next_multiple_of(4)]);
    }
    let (_, needed) = program.preload;
    let found = launch.preload.len();
    push(launch.preload.get(..usize::from(needed)).ok_or(Error::Preload { needed, found })?);
    Ok(sgprs)
}

impl LaunchState {
    /// The user SGPRs.
    pub fn user_data(&self) -> &[u32] {
        self.user_data.get(..self.user_sgprs as usize).unwrap_or_default()
    }

    /// The packet that starts the dispatch.
    pub const fn dispatch(&self) -> DispatchDirect {
        self.dispatch
    }

    /// The same launch, which leaves the queue's scratch registers as they are: for kernels without
    /// scratch, where the queue's memory is not known or may change.
    pub const fn keeping_scratch(mut self) -> Self {
        self.keeps_scratch = true;
        self
    }

    /// Hands runs of consecutive registers and their values to `set`, in the order they are written.
    pub fn registers(&self, mut set: impl FnMut(Reg, &[u32])) {
        let [lo, hi, ..] = self.pgm;
        match self.target.has_architected_scratch() && !self.keeps_scratch {
            true => set(gfx9::COMPUTE_PGM_LO, &self.pgm),
            false => set(gfx9::COMPUTE_PGM_LO, &[lo, hi]),
        }
        set(gfx9::COMPUTE_PGM_RSRC1, &self.rsrc);
        match self.target {
            Target::Gfx90a | Target::Gfx942 => set(gfx90a::COMPUTE_PGM_RSRC3, &[self.rsrc3]),
            Target::Gfx11 => set(gfx11::COMPUTE_PGM_RSRC3, &[self.rsrc3]),
            Target::Gfx900 | Target::Gfx906 | Target::Gfx908 => {}
        }
        if !self.keeps_scratch {
            set(gfx9::COMPUTE_TMPRING_SIZE, &[self.tmpring_size]);
        }
        set(gfx9::COMPUTE_RESTART_X, &[0; 3]);
        set(gfx9::COMPUTE_RESOURCE_LIMITS, &[0]);
        let [x, y, z] = self.num_thread;
        set(gfx9::COMPUTE_START_X, &[0, 0, 0, x, y, z, 0, 0]);
        if !self.user_data().is_empty() {
            set(gfx9::COMPUTE_USER_DATA_0, self.user_data());
        }
    }
}

impl Encode for LaunchState {
    fn dwords(&self) -> usize {
        let mut dwords = DispatchDirect::DWORDS;
        self.registers(|_, values| dwords += 2 + values.len());
        dwords
    }

    fn emit(&self, mut put: impl FnMut(&[u32])) {
        self.registers(|first, values| {
            // All of them are shader registers.
            if let Ok(packet) = SetReg::sh(first, values) {
                packet.emit(&mut put);
            }
        });
        put(&self.dispatch.encode());
    }
}

impl Pm4Packet for LaunchState {}
