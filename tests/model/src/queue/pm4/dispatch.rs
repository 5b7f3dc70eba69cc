//! A DISPATCH packet and the registers become a launch (docs/ABI.md §Launch on a PM4 queue).

use std::sync::Arc;

use pm4::reg::DispatchInitiator as Initiator;
use pm4::reg::gfx9::{
    COMPUTE_DISPATCH_SCRATCH_BASE_HI, COMPUTE_DISPATCH_SCRATCH_BASE_LO, COMPUTE_NUM_THREAD_X,
    COMPUTE_PGM_HI, COMPUTE_PGM_LO, COMPUTE_PGM_RSRC1, COMPUTE_PGM_RSRC2, COMPUTE_START_X,
    COMPUTE_TMPRING_SIZE, COMPUTE_USER_DATA_0, ComputeNumThread, ComputePgmRsrc2,
};
use pm4::reg::{Reg, gfx9};

use super::super::listener::DispatchListener;
use super::super::turn::Reason;
use super::super::{APERTURES, Format, Queue, Runner, State};
use super::register::Registers;
use super::{Done, NEXT, Processor};
use crate::Target;
use crate::exec::{Launch, LaunchError, Part, ScratchSetup};
use crate::memory::AccessError;

/// Work-items of a workgroup, at most.
const MAX_GROUP: u64 = 1024;

const LDS_GRANULE: u32 = 512;

/// KFD's codes for what a dispatch asks for too much of.
const GROUP_SEGMENT: u32 = 17;
const CODE: u32 = 18;
const GROUP_SIZE: u32 = 21;
const REGISTERS: u32 = 22;
const DIMENSION: u32 = 16;

fn stop(code: u32, text: String) -> Reason {
    Reason { code, text }
}

/// Sizes of a dispatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shape {
    /// Work-items, counted from group 0 on.
    grid: [u32; 3],
    group: [u32; 3],
    /// The first group that runs.
    start: [u32; 3],
}

impl Shape {
    /// `None` for a dispatch without a group.
    fn read(
        registers: &Registers,
        dims: [u32; 3],
        initiator: Initiator,
    ) -> Result<Option<Self>, Reason> {
        let words = |first: Reg| [0, 1, 2].map(|n| registers.shader(first.plus(n)));
        let sizes = words(COMPUTE_NUM_THREAD_X).map(ComputeNumThread);
        let group = sizes.map(ComputeNumThread::num_thread_full);
        let items: u64 = group.map(u64::from).iter().product();
        if items == 0 || items > MAX_GROUP {
            return Err(stop(GROUP_SIZE, format!("a dispatch of groups of {group:?} work-items")));
        }
        let from_zero = initiator.contains(Initiator::FORCE_START_AT_000);
        let start = if from_zero { [0; 3] } else { words(COMPUTE_START_X) };
        let in_items = initiator.contains(Initiator::USE_THREAD_DIMENSIONS);
        let is_partial = initiator.contains(Initiator::PARTIAL_TG_EN);
        if in_items && start != [0; 3] {
            let text = "a dispatch in work-items that starts at a group other than 0";
            return Err(Reason::unsupported(text));
        }
        let mut grid = [0; 3];
        for ((((grid, dim), size), full), start) in
            grid.iter_mut().zip(dims).zip(sizes).zip(group).zip(start)
        {
            // The dimensions are where the ids end, not how many there are.
            if dim <= start {
                return Ok(None);
            }
            let last = if is_partial { size.num_thread_partial() } else { full };
            if last == 0 || last > full {
                let text = format!("a dispatch with last groups of {last} of {full} work-items");
                return Err(stop(DIMENSION, text));
            }
            let items = match in_items {
                true => u64::from(dim),
                false => u64::from(dim - 1) * u64::from(full) + u64::from(last),
            };
            *grid = u32::try_from(items).map_err(|_| {
                stop(DIMENSION, format!("a dispatch of {items} work-items along one axis"))
            })?;
        }
        Ok(Some(Self { grid, group, start }))
    }
}

/// Bits of the initiator that only graphics or a restore after preemption use.
fn unusual(target: Target) -> Initiator {
    let graphics = Initiator::ORDERED_APPEND_ENBL
        | Initiator::ORDERED_APPEND_MODE
        | Initiator::RESTORE
        | Initiator::TUNNEL_ENABLE
        | Initiator::AMP_SHADER_EN;
    let newer = Initiator::CS_W32_EN | Initiator::DISABLE_DISP_PREMPT_EN;
    if target.is_gfx9() { graphics | newer } else { graphics }
}

fn vgprs(target: Target, wave_size: u32, rsrc1: u32) -> u32 {
    let eight = target.has_unified_vgprs() || wave_size == 32;
    ((rsrc1 & 0x3f) + 1) * if eight { 8 } else { 4 }
}

impl Queue {
    /// Launches what the registers say.
    pub(super) fn dispatch_pm4(
        &self,
        runner: &Runner,
        state: &mut State,
        processor: &Processor,
        aql: Option<u64>,
        dims: [u32; 3],
        initiator: Initiator,
    ) -> Result<Done, AccessError> {
        let Some(number) = state.work.number() else { return Ok(Done::Blocked) };
        let launch = match self.launch_of(state, processor, dims, initiator, number) {
            Ok(Some(launch)) => launch,
            Ok(None) => return Ok(NEXT),
            Err(reason) => return Ok(Done::Stop(reason)),
        };
        let Some(queue) = self.own.upgrade() else { return Ok(Done::Wait) };
        let listener = DispatchListener { runner: runner.own(), queue, index: number, pm4: true };
        Ok(match runner.engine().launch(launch, Arc::new(listener)) {
            Ok(job) => {
                state.work.started(aql.unwrap_or(u64::MAX), processor.xcc, job);
                NEXT
            }
            Err(error) => {
                let code = match error {
                    LaunchError::Group(_) => GROUP_SIZE,
                    LaunchError::Lds(_) => GROUP_SEGMENT,
                    LaunchError::WaveSize(_) => CODE,
                    _ => REGISTERS,
                };
                Done::Stop(stop(code, format!("a dispatch: {error}")))
            }
        })
    }

    /// The launch; `None` when nothing is to run on this XCC.
    fn launch_of(
        &self,
        state: &State,
        processor: &Processor,
        dims: [u32; 3],
        initiator: Initiator,
        number: u64,
    ) -> Result<Option<Launch>, Reason> {
        let device = &self.setup.device;
        let registers = &processor.registers;
        let Some(target) = device.info.target else {
            return Err(Reason::unsupported("a dispatch on a chip without executor"));
        };
        if initiator.intersects(unusual(target)) {
            return Err(Reason::unsupported(format!("a dispatch with initiator {initiator}")));
        }
        let chunk = registers.named("COMPUTE_TG_CHUNK_SIZE");
        if chunk > 1 {
            let text = format!("a dispatch in chunks of {chunk} groups to an XCC");
            return Err(Reason::unsupported(text));
        }
        let shape = Shape::read(registers, dims, initiator)?;
        let Some(shape) = shape.filter(|_| initiator.contains(Initiator::COMPUTE_SHADER_EN)) else {
            return Ok(None);
        };
        let [rsrc1, rsrc2] =
            [COMPUTE_PGM_RSRC1, COMPUTE_PGM_RSRC2].map(|reg| registers.shader(reg));
        let fields = ComputePgmRsrc2(rsrc2);
        let wave_size = if initiator.contains(Initiator::CS_W32_EN) { 32 } else { 64 };
        let count = fields.user_sgpr();
        let file = if target.has_unified_vgprs() { 512 } else { 256 };
        if count > 16 || fields.skip_usgpr0() || vgprs(target, wave_size, rsrc1) > file {
            let text = format!("a dispatch with RSRC1 {rsrc1:#x} and RSRC2 {rsrc2:#x}");
            return Err(stop(REGISTERS, text));
        }
        let lds_bytes = fields.lds_size() * LDS_GRANULE;
        if u64::from(lds_bytes) > device.info.lds_bytes {
            return Err(stop(GROUP_SEGMENT, format!("a dispatch with {lds_bytes} bytes of LDS")));
        }
        let scratch = self.scratch_of(target, registers);
        let entry = address(registers, COMPUTE_PGM_LO, COMPUTE_PGM_HI) & 0xffff_ffff_ffff;
        let (xccs, part) = self.part(processor, &shape);
        let groups = shape.grid.iter().zip(shape.group).zip(shape.start);
        let groups = groups.map(|((items, size), start)| items.div_ceil(size) - start);
        let groups = groups.map(u64::from).fold(1, u64::saturating_mul);
        if part.only.is_some_and(|xcc| groups <= xcc.into()) {
            return Ok(None);
        }
        let has_scratch = fields.scratch_en();
        Ok(Some(Launch {
            target,
            memory: Arc::clone(&device.space),
            entry,
            rsrc1,
            rsrc2,
            rsrc3: registers.named("COMPUTE_PGM_RSRC3"),
            wave_size,
            user_sgprs: (0..count).map(|n| registers.shader(COMPUTE_USER_DATA_0.plus(n))).collect(),
            grid: shape.grid,
            group: shape.group,
            lds_bytes,
            private_bytes: match has_scratch {
                true => u32::try_from(scratch.wave_bytes).unwrap_or(0) / wave_size,
                false => 0,
            },
            xccs,
            part,
            scratch,
            apertures: APERTURES,
            trap: device.trap_handler().filter(|_| fields.trap_present()),
            trap_enabled: device.traps_enabled(),
            dispatch_index: number,
            gws: state.gws.clone(),
            doorbell_id: self.setup.doorbell,
        }))
    }

    /// A PM4 queue runs on one XCC. In an AQL queue each XCC launches its share of the groups.
    fn part(&self, processor: &Processor, shape: &Shape) -> (u32, Part) {
        let xccs = u32::try_from(self.setup.device.info.xccs).unwrap_or(1);
        let start = shape.start;
        if self.setup.format == Format::Pm4 || xccs == 1 {
            return (1, Part { start, only: None, first_xcc: self.setup.xcc });
        }
        (xccs, Part { start, only: Some(processor.xcc), first_xcc: 0 })
    }

    /// Scratch by TMPRING_SIZE; its base in a register, or by the descriptor in the user data.
    fn scratch_of(&self, target: Target, registers: &Registers) -> ScratchSetup {
        let ring = registers.shader(COMPUTE_TMPRING_SIZE);
        let (wave_bytes, waves) = self.scratch_ring(target, ring);
        let resource = [0, 1, 2, 3].map(|n| registers.shader(COMPUTE_USER_DATA_0.plus(n)));
        let base = if target.has_architected_flat_scratch() {
            let (low, high) = (COMPUTE_DISPATCH_SCRATCH_BASE_LO, COMPUTE_DISPATCH_SCRATCH_BASE_HI);
            address(registers, low, high)
        } else {
            let [low, high, ..] = resource;
            u64::from(high & 0xffff) << 32 | u64::from(low)
        };
        ScratchSetup { base, wave_bytes, waves, xcc_bytes: 0, resource }
    }
}

/// An address from two registers that hold it divided by 256.
fn address(registers: &Registers, low: Reg, high: Reg) -> u64 {
    let high = gfx9::AddressHigh(registers.shader(high)).data();
    (u64::from(high) << 32 | u64::from(registers.shader(low))) << 8
}
