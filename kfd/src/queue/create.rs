//! Making a queue of any kind, in the order that lets every step be undone.

use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::{Arc, Mutex, OnceLock};

use aql::{AmdQueueV2, AmdSignal, QueueProperties, SignalWords};
use zerocopy::IntoBytes;

use super::cwsr::{SaveArea, Shape, eop_bytes};
use super::doorbell::Doorbell;
use super::live::{INACTIVE, PAYLOAD, QueueCore};
use super::scratch::{Scratch, ScratchShape, describe};
use super::{QueueKind, SdmaEngine};
use crate::abi;
use crate::context::Context;
use crate::core::{Core, GpuCore};
use crate::error::{Error, Object, QueueSizes, Result};
use crate::event::Events;
use crate::gpu::Gpu;
use crate::ids::QueueId;
use crate::memory::{Allocation, MemoryRequest};
use crate::sys::Errno;

/// How often the waves that can have scratch at once are halved before there is too little memory.
const SHRINKS: u32 = 8;

impl Gpu {
    /// Waves that one queue can have at once, those included that are switched out to its save area.
    /// Whatever each wave of a queue needs one of, there must be so many of.
    ///
    /// # Errors
    /// [`Error::MissingProperty`] when the topology does not say how large the GPU is.
    ///
    /// # Source
    /// The number of waves that `kfd_queue_ctx_save_restore_size` reckons with, of all XCCs;
    /// docs/ABI.md §Save area.
    pub fn queue_waves(&self) -> Result<u64> {
        let node = self.node();
        let shape = Shape::of(node)
            .map_err(|property| Error::MissingProperty { gpu: self.id(), property })?;
        Ok(shape.waves())
    }
}

/// What queue to make; checked by whoever fills it.
#[derive(Debug)]
pub(super) struct Recipe {
    pub kind: QueueKind,
    pub ring_bytes: u64,
    pub priority: u32,
    pub private_bytes: u32,
    pub profiling: bool,
    /// See [`QueueCore`].
    pub percentage_bits: u32,
}

/// Memory of a queue before there is one.
#[derive(Debug)]
pub(super) struct Parts {
    pub ring: Arc<Allocation>,
    pub page: Arc<Allocation>,
    /// What belongs at the start of the page. SDMA queues have none.
    pub descriptor: AmdQueueV2,
    save_area: Option<(Arc<Allocation>, SaveArea)>,
    eop: Option<Arc<Allocation>>,
}

impl Parts {
    fn all(&self) -> impl Iterator<Item = &Arc<Allocation>> {
        let save_area = self.save_area.as_ref().map(|(memory, _)| memory);
        [&self.ring, &self.page].into_iter().chain(save_area).chain(&self.eop)
    }
}

/// Makes a queue. `view` gives the ring its first content, before the device knows the queue.
/// Returns the scratch as well.
pub(super) fn create<V>(
    context: &Arc<Context>,
    index: usize,
    recipe: &Recipe,
    view: impl Fn(&Parts) -> Result<V>,
) -> Result<(QueueCore, V, Option<Scratch>)> {
    context.acquire(index)?;
    let gpu = context.core.gpu(index)?;
    let shape = match recipe.kind.is_compute() {
        false => None,
        true => Some(
            Shape::of(&gpu.node)
                .map_err(|property| Error::MissingProperty { gpu: gpu.id(), property })?,
        ),
    };
    match create_with(context, index, recipe, shape, &view) {
        Err(Error::CreateQueue { errno: Errno::INVAL, .. })
            if shape.is_some_and(|shape| shape.older().is_some()) =>
        {
            create_with(context, index, recipe, shape.and_then(Shape::older), &view)
        }
        result => result,
    }
}

fn create_with<V>(
    context: &Arc<Context>,
    index: usize,
    recipe: &Recipe,
    shape: Option<Shape>,
    view: impl Fn(&Parts) -> Result<V>,
) -> Result<(QueueCore, V, Option<Scratch>)> {
    let core = &context.core;
    let events = context.events(index)?;
    let handler = match recipe.kind.is_compute() {
        true => context.trap_handler(index)?,
        false => None,
    };
    let scratch = match recipe.private_bytes {
        0 => None,
        bytes => Some(allocate_scratch(core, index, bytes)?),
    };
    let mut parts = allocate(core, index, recipe, shape)?;
    if let (Some((scratch, memory)), Some(shape)) = (&scratch, shape) {
        describe(&mut parts.descriptor, scratch, shape.gfx, memory);
    }
    let view = view(&parts)?;
    prepare_reports(&parts, &events)?;

    let (id, doorbell_offset) = create_queue(context, index, recipe, &parts, shape)?;
    let undo = |error| {
        let mut args = abi::DestroyQueueArgs { queue_id: id, pad: 0 };
        match core.call(&mut args, Object::Queue(id)) {
            Ok(_) | Err(Error::Ioctl { errno: Errno::TIME | Errno::IO, .. }) => {}
            Err(why) => {
                let bytes = parts.all().map(|memory| memory.info().bytes).sum();
                core.leak(format!("queue {id}"), bytes, why);
                let scratch = scratch.as_ref().map(|(_, memory)| memory);
                let owned = parts.all().chain(scratch);
                owned.for_each(|memory| std::mem::forget(Arc::clone(memory)));
            }
        }
        error
    };
    let page = context.doorbells(index, doorbell_offset).map_err(undo)?;
    let doorbell =
        Doorbell::new(page, doorbell_offset & (abi::DOORBELL_PAGE_BYTES - 1)).map_err(undo)?;
    if let Some(handler) = handler {
        let signal = pm4::GpuAddr::new(parts.page.addr().get() + INACTIVE);
        handler.set_signal(doorbell_offset, signal).map_err(undo)?;
    }
    let (scratch, scratch_memory) = scratch.unzip();
    let queue = QueueCore {
        core: Arc::clone(core),
        gpu: index,
        id,
        kind: recipe.kind,
        doorbell,
        doorbell_offset,
        ring: parts.ring,
        page: parts.page,
        save_area: parts.save_area.map(|(memory, _)| memory),
        eop: parts.eop,
        scratch: Mutex::new(scratch_memory),
        scratch_lane_bytes: AtomicU32::new(scratch.map_or(0, |scratch| scratch.lane_bytes)),
        priority: AtomicU32::new(recipe.priority),
        percentage_bits: recipe.percentage_bits,
        suspended: AtomicBool::new(false),
        stopped: AtomicBool::new(false),
        fault: OnceLock::new(),
        oldest: Mutex::new(None),
    };
    Ok((queue, view, scratch))
}

fn allocate(
    core: &Arc<Core>,
    index: usize,
    recipe: &Recipe,
    shape: Option<Shape>,
) -> Result<Parts> {
    let allocate = |request: MemoryRequest| Allocation::new(core, index, &request);
    let ring = MemoryRequest::gtt(recipe.ring_bytes).coherent().uncached().label("queue ring");
    let ring = allocate(if shape.is_some() { ring.executable() } else { ring })?;
    let page =
        allocate(MemoryRequest::gtt(0x1000).coherent().uncached().label("queue descriptor"))?;
    let Some(shape) = shape else {
        let descriptor = AmdQueueV2::new();
        return Ok(Parts { ring, page, descriptor, save_area: None, eop: None });
    };
    let area = SaveArea::new(shape).ok_or(Error::Nonsense {
        call: "topology",
        what: "the number of SIMDs",
        value: u64::from(shape.simd_count),
    })?;
    let save_area =
        allocate(MemoryRequest::gtt(area.total_bytes()).coherent().label("queue save area"))?;
    let eop = match eop_bytes(recipe.kind, shape.gfx) {
        0 => None,
        bytes => Some(allocate(MemoryRequest::vram(bytes).label("queue end-of-pipe buffer"))?),
    };
    let descriptor = descriptor(core.gpu(index)?, recipe, &ring, &page);
    Ok(Parts { ring, page, descriptor, save_area: Some((save_area, area)), eop })
}

/// Allocates scratch for `private_bytes` a work-item: for as many waves as can run, or for fewer
/// where memory is short.
pub(super) fn allocate_scratch(
    core: &Arc<Core>,
    index: usize,
    private_bytes: u32,
) -> Result<(Scratch, Arc<Allocation>)> {
    let gpu = core.gpu(index)?;
    let shape = ScratchShape::of(&gpu.node)
        .map_err(|property| Error::MissingProperty { gpu: gpu.id(), property })?;
    let mut refusal = Error::InvalidArgument {
        call: "create_queue",
        what: "the private memory of a work-item, in bytes,",
        value: u64::from(private_bytes),
    };
    for shrink in 0..SHRINKS {
        let Some(scratch) = Scratch::new(shape, private_bytes, shrink) else { break };
        let request = MemoryRequest::vram(scratch.total_bytes).label("queue scratch");
        match Allocation::new(core, index, &request) {
            Ok(memory) => return Ok((scratch, memory)),
            Err(error @ Error::Ioctl { errno: Errno::NOMEM, .. }) => refusal = error,
            Err(error) => return Err(error),
        }
    }
    Err(refusal)
}

/// The descriptor, without scratch.
fn descriptor(gpu: &GpuCore, recipe: &Recipe, ring: &Allocation, page: &Allocation) -> AmdQueueV2 {
    let node = &gpu.node;
    let high = |aperture: (u64, u64)| pm4::GpuAddr::new(aperture.0).hi();
    let waves = node.properties.max_waves_per_simd.unwrap_or(0);
    let simds = node.properties.simd_per_cu.unwrap_or(0);
    let mut properties = QueueProperties::IS_PTR64;
    properties.set(QueueProperties::ENABLE_PROFILING, recipe.profiling);
    AmdQueueV2 {
        features: 1, // kernel dispatch
        base_address: ring.addr().get(),
        size: u32::try_from(recipe.ring_bytes / 64).unwrap_or(u32::MAX),
        group_segment_aperture_base_hi: high(gpu.apertures.lds),
        private_segment_aperture_base_hi: high(gpu.apertures.scratch),
        max_cu_id: node.compute_units().unwrap_or(0).saturating_sub(1),
        max_wave_id: waves.saturating_mul(simds).saturating_sub(1),
        queue_properties: properties.bits(),
        queue_inactive_signal: page.addr().get() + INACTIVE,
        ..AmdQueueV2::new()
    }
}

/// Fills what tells KFD and the device where to report: the inactive signal, and the header of
/// every XCC's save area. The payload word is zero as the page is.
fn prepare_reports(parts: &Parts, events: &Events) -> Result<()> {
    let page = &parts.page;
    let signal = AmdSignal::user(0).with_event(events.alert.mailbox, events.alert.id.0);
    let misaligned = |_| Error::Misaligned { offset: INACTIVE, align: 64 };
    SignalWords::new(page.mapping()?.shared(INACTIVE, 64)?)
        .and_then(|words| words.init(&signal))
        .map_err(misaligned)?;
    let Some((save_area, area)) = &parts.save_area else { return Ok(()) };
    for xcc in 0..area.num_xcc {
        let too_large =
            |value| Error::Nonsense { call: "topology", what: "the size of the save area", value };
        let debug_offset = area.debug_offset(xcc);
        let debug_size = area.debug_total_bytes();
        let header = abi::ContextSaveAreaHeader {
            debug_offset: u32::try_from(debug_offset).map_err(|_| too_large(debug_offset))?,
            debug_size: u32::try_from(debug_size).map_err(|_| too_large(debug_size))?,
            err_payload_addr: page.addr().get() + PAYLOAD,
            err_event_id: events.alert.id,
            ..Default::default()
        };
        save_area.mapping()?.write(area.header_offset(xcc), header.as_bytes())?;
    }
    Ok(())
}

/// Type and engine of CREATE_QUEUE.
fn queue_type(kind: QueueKind) -> (abi::QueueType, u32) {
    match kind {
        QueueKind::Aql => (abi::QueueType::COMPUTE_AQL, 0),
        QueueKind::Pm4 => (abi::QueueType::COMPUTE, 0),
        QueueKind::Sdma(SdmaEngine::Any) => (abi::QueueType::SDMA, 0),
        QueueKind::Sdma(SdmaEngine::Xgmi) => (abi::QueueType::SDMA_XGMI, 0),
        QueueKind::Sdma(SdmaEngine::Index(engine)) => (abi::QueueType::SDMA_BY_ENG_ID, engine),
    }
}

fn create_queue(
    context: &Context,
    index: usize,
    recipe: &Recipe,
    parts: &Parts,
    shape: Option<Shape>,
) -> Result<(QueueId, u64)> {
    let core = &context.core;
    let gpu = core.gpu(index)?;
    let page = parts.page.addr().get();
    let (queue_type, sdma_engine_id) = queue_type(recipe.kind);
    let (save_address, area) = match &parts.save_area {
        Some((memory, area)) => (memory.addr().get(), Some(area)),
        None => (0, None),
    };
    let eop_bytes = parts.eop.as_ref().map_or(0, |eop| eop.info().bytes);
    let mut args = abi::CreateQueueArgs {
        ring_base_address: parts.ring.addr().get(),
        write_pointer_address: page + AmdQueueV2::WRITE_DISPATCH_ID as u64,
        read_pointer_address: page + AmdQueueV2::READ_DISPATCH_ID as u64,
        ring_size: u32::try_from(recipe.ring_bytes).unwrap_or(u32::MAX),
        gpu_id: gpu.id(),
        queue_type,
        queue_percentage: abi::MAX_QUEUE_PERCENTAGE | recipe.percentage_bits,
        queue_priority: recipe.priority,
        eop_buffer_address: parts.eop.as_ref().map_or(0, |eop| eop.addr().get()),
        eop_buffer_size: eop_bytes,
        ctx_save_restore_address: save_address,
        ctx_save_restore_size: area.map_or(0, |area| area.save_bytes),
        ctl_stack_size: area.map_or(0, |area| area.ctl_stack_bytes),
        sdma_engine_id,
        ..Default::default()
    };
    match core.call(&mut args, Object::Gpu(gpu.id())) {
        Ok(_) => Ok((args.queue_id, args.doorbell_offset)),
        Err(Error::Ioctl {
            errno: errno @ (Errno::NOSPC | Errno::NOMEM | Errno::PERM | Errno::BUSY),
            ..
        }) => {
            let same = |kind: QueueKind| match recipe.kind {
                QueueKind::Sdma(_) => kind == recipe.kind,
                _ => kind.is_compute(),
            };
            let queues = context.queues();
            let mine = queues.iter().map(|queue| queue.core());
            let mine = mine.filter(|queue| queue.gpu() == index && same(queue.kind));
            let limit = limit(gpu, recipe.kind);
            let in_use = u32::try_from(mine.count()).unwrap_or(u32::MAX);
            Err(Error::QueueLimit { gpu: gpu.id(), kind: recipe.kind, in_use, limit, errno })
        }
        Err(Error::Ioctl { errno, .. }) => Err(Error::CreateQueue {
            gpu: gpu.id(),
            kind: recipe.kind,
            sizes: QueueSizes {
                ring_bytes: recipe.ring_bytes,
                eop_bytes,
                save_bytes: area.map_or(0, |area| area.save_bytes),
                ctl_stack_bytes: area.map_or(0, |area| area.ctl_stack_bytes),
                save_area_bytes: area.map_or(0, |area| area.total_bytes()),
                published: shape.is_some_and(|shape| shape.published.is_some()),
            },
            errno,
        }),
        Err(error) => Err(error),
    }
}

/// How many queues of a kind there can be: of SDMA queues all that the engines have, whatever
/// process; of compute queues what a process may have on a GPU. Source: docs/ABI.md §Limits.
fn limit(gpu: &GpuCore, kind: QueueKind) -> Option<u32> {
    let p = &gpu.node.properties;
    let engines = match kind {
        QueueKind::Aql | QueueKind::Pm4 => {
            let gfx = gpu.node.gfx_version()?;
            let multi_xcc = (gfx.major(), gfx.minor()) == (9, 4);
            return Some(if multi_xcc { 255 } else { 127 });
        }
        QueueKind::Sdma(SdmaEngine::Any) => p.num_sdma_engines?,
        QueueKind::Sdma(SdmaEngine::Xgmi) => p.num_sdma_xgmi_engines?,
        QueueKind::Sdma(SdmaEngine::Index(_)) => 1,
    };
    Some(engines.saturating_mul(p.num_sdma_queues_per_engine?))
}
