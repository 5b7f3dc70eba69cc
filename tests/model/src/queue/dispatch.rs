//! A kernel dispatch packet becomes a launch (docs/ABI.md §Launch).

use std::sync::Arc;

use super::aql::{Outcomes, Step};
use super::descriptor::Descriptor;
use super::error::PacketError;
use super::listener::DispatchListener;
use super::packet::{Head, Packet};
use super::signal::field;
use super::{APERTURES, Flight, Halt, Queue, Runner, State};
use crate::Target;
use crate::exec::{Launch, LaunchError, Part, ScratchSetup};
use crate::memory::AccessError;

/// Work-items of a workgroup, at most.
const MAX_GROUP: u32 = 1024;

/// User SGPRs, at most.
const MAX_USER_SGPRS: usize = 16;

/// Requests of scratch in the inactive signal, for wave64 and wave32.
const NEED_SCRATCH: i64 = 0x1;
const NEED_SCRATCH_WAVE32: i64 = 0x401;

/// Sizes of a dispatch, checked.
struct Shape {
    grid: [u32; 3],
    group: [u32; 3],
}

impl Shape {
    fn read(head: Head, packet: &Packet) -> Result<Self, PacketError> {
        let dimensions = head.setup() & 3;
        let grid = [12, 16, 20].map(|at| packet.u32(at));
        let group = [4, 6, 8].map(|at| packet.u16(at));
        if dimensions == 0 || grid.contains(&0) || group.contains(&0) {
            return Err(PacketError::DIMENSION);
        }
        let items = group.iter().try_fold(1_u32, |product, size| product.checked_mul(*size));
        if items.is_none_or(|items| items > MAX_GROUP) {
            return Err(PacketError::GROUP_SIZE);
        }
        Ok(Self { grid, group })
    }
}

impl Queue {
    /// Checks the packet and starts it.
    pub(super) fn dispatch(
        &self,
        runner: &Runner,
        state: &mut State,
        head: Head,
        packet: &Packet,
        slot: u64,
    ) -> Outcomes {
        let device = &self.setup.device;
        let Some(target) = device.info.target else {
            let version = device.info.gfx_version;
            runner.say(self, format!("no executor for gfx_target_version {version}"));
            state.halt = Halt::Dead;
            return Ok(Step::Wait);
        };
        let shape = match Shape::read(head, packet) {
            Ok(shape) => shape,
            Err(error) => return Ok(Step::Refuse(error)),
        };
        let lds_bytes = packet.u32(28);
        if u64::from(lds_bytes) > device.info.lds_bytes {
            return Ok(Step::Refuse(PacketError::GROUP_SEGMENT));
        }
        let object = packet.u64(32);
        if object == 0 || !object.is_multiple_of(64) {
            return Ok(Step::Refuse(PacketError::CODE));
        }
        let mut bytes = [0; Descriptor::BYTES];
        device.space.read(object, &mut bytes)?;
        let descriptor = Descriptor::parse(bytes);
        let entry = object.wrapping_add(descriptor.entry_offset);
        if !entry.is_multiple_of(256) {
            return Ok(Step::Refuse(PacketError::CODE));
        }
        let file = if target.has_unified_vgprs() { 512 } else { 256 };
        if descriptor.vgprs(target) > file {
            return Ok(Step::Refuse(PacketError::REGISTERS));
        }
        let wave_size = descriptor.wave_size(target);
        let private_bytes = packet.u32(24);
        let mut scratch = ScratchSetup::default();
        if private_bytes > 0 {
            match self.scratch(runner, state, target, private_bytes, wave_size)? {
                Some(found) => scratch = found,
                None => return Ok(Step::Wait),
            }
        }
        let Some((user_sgprs, preloads)) =
            self.user_sgprs(target, &descriptor, packet, slot, state.next, &scratch)?
        else {
            return Ok(Step::Refuse(PacketError::REGISTERS));
        };
        let launch = Launch {
            target,
            memory: Arc::clone(&device.space),
            // Where arguments are preloaded, the code before loads them itself: it is skipped.
            entry: if preloads { entry.wrapping_add(256) } else { entry },
            rsrc1: descriptor.rsrc1,
            rsrc2: descriptor.rsrc2,
            rsrc3: descriptor.rsrc3,
            wave_size,
            user_sgprs,
            grid: shape.grid,
            group: shape.group,
            lds_bytes,
            private_bytes,
            xccs: u32::try_from(device.info.xccs).unwrap_or(1),
            part: Part::default(),
            scratch,
            apertures: APERTURES,
            trap: device.trap_handler(),
            trap_enabled: device.traps_enabled(),
            dispatch_index: state.next,
            gws: state.gws.clone(),
            doorbell_id: self.setup.doorbell,
        };
        self.start(runner, state, packet, launch)
    }

    fn start(
        &self,
        runner: &Runner,
        state: &mut State,
        packet: &Packet,
        launch: Launch,
    ) -> Outcomes {
        let index = state.next;
        let signal = packet.completion_signal();
        let profiled = signal != 0 && self.profiling()?;
        let Some(queue) = self.own.upgrade() else { return Ok(Step::Wait) };
        let pm4 = false;
        let listener = Arc::new(DispatchListener { runner: runner.own(), queue, index, pm4 });
        let start = self.setup.device.clock();
        match runner.engine().launch(launch, listener) {
            Ok(job) => {
                let job = Some(job);
                let flight = Flight { index, done: false, signal, start, profiled, job };
                state.flights.push_back(flight);
                Ok(Step::Next)
            }
            Err(error) => {
                runner.say(self, format!("packet {index}: {error}"));
                Ok(Step::Refuse(match error {
                    LaunchError::Group(_) => PacketError::GROUP_SIZE,
                    LaunchError::Lds(_) => PacketError::GROUP_SEGMENT,
                    LaunchError::WaveSize(_) => PacketError::CODE,
                    _ => PacketError::REGISTERS,
                }))
            }
        }
    }

    /// The queue's scratch, if it is enough; otherwise asks the host for more.
    fn scratch(
        &self,
        runner: &Runner,
        state: &mut State,
        target: Target,
        private_bytes: u32,
        wave_size: u32,
    ) -> Result<Option<ScratchSetup>, AccessError> {
        let space = &self.setup.device.space;
        let queue = self.descriptor()?;
        let lane_bytes = space.load_u32(queue + field::SCRATCH_LANE_BYTES)?;
        // The field counts lanes of a wave64.
        let needed = u64::from(private_bytes) * u64::from(wave_size) / 64;
        if needed > u64::from(lane_bytes) {
            let signal = space.load_u64(queue + field::INACTIVE_SIGNAL)?;
            let index = state.next;
            if signal == 0 {
                let text =
                    format!("packet {index} needs scratch and the queue has no signal to ask");
                runner.say(self, text);
                state.halt = Halt::Dead;
                return Ok(None);
            }
            let request = if wave_size == 32 { NEED_SCRATCH_WAVE32 } else { NEED_SCRATCH };
            state.halt = Halt::Scratch { signal };
            runner.change_signal(self, signal, |_| request)?;
            return Ok(None);
        }
        let ring = space.load_u32(queue + field::TMPRING_SIZE)?;
        let mut resource = [0; 4];
        for (word, offset) in resource.iter_mut().zip((0..).step_by(4)) {
            *word = space.load_u32(queue + field::SCRATCH_RESOURCE + offset)?;
        }
        let (wave_bytes, waves) = self.scratch_ring(target, ring);
        let base = space.load_u64(queue + field::SCRATCH_BASE)?;
        // The descriptor's size is one XCC's share.
        let [_, _, bytes, _] = resource;
        Ok(Some(ScratchSetup { base, wave_bytes, waves, xcc_bytes: bytes.into(), resource }))
    }

    /// Bytes of a wave's slot and the number of slots, from COMPUTE_TMPRING_SIZE.
    pub(super) fn scratch_ring(&self, target: Target, ring: u32) -> (u64, u32) {
        let (waves, size) = (ring & 0xfff, ring >> 12);
        let engines = u32::try_from(self.setup.device.info.engines).unwrap_or(1);
        if target.is_gfx9() {
            (u64::from(size & 0x1fff) * 1024, waves)
        } else {
            // gfx11 counts waves per shader engine; gfx942 counts them per XCC.
            (u64::from(size & 0x7fff) * 256, waves.saturating_mul(engines))
        }
    }

    /// User SGPRs in the order of the ABI, and whether arguments are preloaded. `None` when there
    /// are more than fit.
    fn user_sgprs(
        &self,
        target: Target,
        descriptor: &Descriptor,
        packet: &Packet,
        slot: u64,
        index: u64,
        scratch: &ScratchSetup,
    ) -> Result<Option<(Vec<u32>, bool)>, AccessError> {
        let wanted = descriptor.user_sgprs();
        let mut sgprs: Vec<u32> = Vec::with_capacity(MAX_USER_SGPRS);
        let push = |sgprs: &mut Vec<u32>, value: u64| {
            sgprs.extend(
                [value & 0xffff_ffff, value >> 32].map(|word| u32::try_from(word).unwrap_or(0)),
            );
        };
        let kernarg = packet.u64(40);
        let absolute_scratch = !target.has_architected_flat_scratch();
        if wanted.private_segment_buffer && absolute_scratch {
            sgprs.extend(scratch.resource);
        }
        if wanted.dispatch_ptr {
            push(&mut sgprs, slot);
        }
        if wanted.queue_ptr {
            push(&mut sgprs, self.descriptor()?);
        }
        if wanted.kernarg_ptr {
            push(&mut sgprs, kernarg);
        }
        if wanted.dispatch_id {
            push(&mut sgprs, index);
        }
        if wanted.flat_scratch_init && absolute_scratch {
            push(&mut sgprs, scratch.base);
        }
        if wanted.private_segment_size {
            sgprs.push(packet.u32(24).next_multiple_of(4));
        }
        let preload = descriptor.preload(target);
        if let Some((count, first)) = preload {
            for dword in first..first.saturating_add(count) {
                let at = kernarg.wrapping_add(u64::from(dword) * 4);
                sgprs.push(self.setup.device.space.load_u32(at)?);
            }
        }
        // The compiler may ask for more than it named: the rest is padding.
        let count = usize::try_from(descriptor.rsrc2 >> 1 & 0x1f).unwrap_or(0);
        if sgprs.len() > MAX_USER_SGPRS || count > MAX_USER_SGPRS || sgprs.len() > count {
            return Ok(None);
        }
        sgprs.resize(count, 0);
        Ok(Some((sgprs, preload.is_some())))
    }
}
