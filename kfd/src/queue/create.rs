//! Making a queue, in the order that lets every step be undone.

use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::{Arc, Mutex, OnceLock};

use aql::{AmdQueueV2, AmdSignal, QueueProperties, SignalWords};
use zerocopy::IntoBytes;

use super::cwsr::{SaveArea, Shape, eop_bytes};
use super::doorbell::{Doorbell, QueueMemory};
use super::live::{INACTIVE, PAYLOAD, QueueCore};
use super::scratch::{Scratch, ScratchShape};
use super::{Queue, QueueRequest};
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
    /// Makes an AQL queue.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for what no queue can be; [`Error::CreateQueue`] when the kernel
    /// refuses, with the sizes; [`Error::Ioctl`] when memory or events are refused;
    /// [`Error::DeviceLost`].
    pub fn create_queue(&self, request: &QueueRequest) -> Result<Queue> {
        create(&self.context, self.index, request)
    }

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

fn create(context: &Arc<Context>, index: usize, request: &QueueRequest) -> Result<Queue> {
    request.check()?;
    context.acquire(index)?;
    let gpu = context.core.gpu(index)?;
    let shape = Shape::of(&gpu.node)
        .map_err(|property| Error::MissingProperty { gpu: gpu.id(), property })?;
    match create_with(context, index, request, shape) {
        Err(Error::CreateQueue { errno: Errno::INVAL, .. }) if shape.older().is_some() => {
            create_with(context, index, request, shape.older().unwrap_or(shape))
        }
        result => result,
    }
}

fn create_with(
    context: &Arc<Context>,
    index: usize,
    request: &QueueRequest,
    shape: Shape,
) -> Result<Queue> {
    let core = &context.core;
    let gpu = core.gpu(index)?;
    let area = SaveArea::new(shape).ok_or(Error::Nonsense {
        call: "topology",
        what: "the number of SIMDs",
        value: u64::from(shape.simd_count),
    })?;
    let events = context.events(index)?;
    let handler = context.trap_handler(index)?;

    let scratch = match request.private_bytes {
        0 => None,
        bytes => Some(allocate_scratch(core, index, bytes)?),
    };
    let ring_bytes = u64::from(request.packets) * 64;
    let allocate = |request: MemoryRequest| Allocation::new(core, index, &request);
    let ring = allocate(
        MemoryRequest::gtt(ring_bytes).executable().coherent().uncached().label("queue ring"),
    )?;
    let page =
        allocate(MemoryRequest::gtt(0x1000).coherent().uncached().label("queue descriptor"))?;
    let save_area =
        allocate(MemoryRequest::gtt(area.total_bytes()).coherent().label("queue save area"))?;
    let eop = match eop_bytes(shape.gfx) {
        0 => None,
        bytes => Some(allocate(MemoryRequest::vram(bytes).label("queue end-of-pipe buffer"))?),
    };

    let mut descriptor = descriptor(gpu, request, &ring, &page);
    if let Some((scratch, memory)) = &scratch {
        describe_scratch(&mut descriptor, scratch, shape.gfx, memory);
    }
    let memory = QueueMemory::new(ring, page, |words| words.init(&descriptor))?;
    prepare_reports(&memory, &save_area, area, &events)?;

    let (id, doorbell_offset) =
        create_queue(core, gpu, request, &memory, &save_area, area, eop.as_deref(), shape)?;
    let owned: Vec<Arc<Allocation>> = [memory.ring_memory(), memory.page(), &save_area]
        .into_iter()
        .chain(&eop)
        .cloned()
        .collect();
    let undo = |error| {
        let mut args = abi::DestroyQueueArgs { queue_id: id, pad: 0 };
        match core.call(&mut args, Object::Queue(id)) {
            Ok(_) | Err(Error::Ioctl { errno: Errno::TIME | Errno::IO, .. }) => {}
            Err(why) => {
                let bytes = owned.iter().map(|memory| memory.info().bytes).sum();
                core.leak(format!("queue {id}"), bytes, why);
                owned.iter().for_each(|memory| std::mem::forget(Arc::clone(memory)));
            }
        }
        error
    };
    let page = context.doorbells(index, doorbell_offset).map_err(undo)?;
    let doorbell =
        Doorbell::new(page, doorbell_offset & (abi::DOORBELL_PAGE_BYTES - 1)).map_err(undo)?;

    let lane_bytes = scratch.as_ref().map_or(0, |(scratch, _)| scratch.lane_bytes);
    let queue = Arc::new(QueueCore {
        core: Arc::clone(core),
        gpu: index,
        id,
        doorbell,
        doorbell_offset,
        memory,
        save_area,
        _eop: eop,
        scratch: Mutex::new(scratch.map(|(_, memory)| memory)),
        scratch_lane_bytes: AtomicU32::new(lane_bytes),
        labels: (0..request.packets).map(|_| AtomicU32::new(0)).collect(),
        priority: AtomicU32::new(request.priority),
        stopped: AtomicBool::new(false),
        fault: OnceLock::new(),
    });
    if let Some(handler) = handler {
        handler.set_signal(doorbell_offset, queue.inactive_signal()).map_err(undo)?;
    }
    context.add_queue(Arc::clone(&queue));
    Ok(Queue::new(Arc::clone(context), queue))
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

/// Writes the scratch fields of a descriptor.
pub(super) fn describe_scratch(
    queue: &mut AmdQueueV2,
    scratch: &Scratch,
    gfx: crate::topology::GfxVersion,
    memory: &Allocation,
) {
    queue.compute_tmpring_size = scratch.tmpring_size;
    queue.scratch_resource_descriptor = scratch.resource_descriptor(gfx, memory.addr().get());
    queue.scratch_backing_memory_location = memory.addr().get();
    queue.scratch_backing_memory_byte_size = scratch.xcc_bytes;
    queue.scratch_wave64_lane_byte_size = scratch.lane_bytes;
}

fn descriptor(
    gpu: &GpuCore,
    request: &QueueRequest,
    ring: &Allocation,
    page: &Allocation,
) -> AmdQueueV2 {
    let node = &gpu.node;
    let high = |aperture: (u64, u64)| pm4::GpuAddr::new(aperture.0).hi();
    let waves = node.properties.max_waves_per_simd.unwrap_or(0);
    let simds = node.properties.simd_per_cu.unwrap_or(0);
    let mut properties = QueueProperties::IS_PTR64;
    properties.set(QueueProperties::ENABLE_PROFILING, request.profiling);
    AmdQueueV2 {
        features: 1, // kernel dispatch
        base_address: ring.addr().get(),
        size: request.packets,
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
fn prepare_reports(
    memory: &QueueMemory,
    save_area: &Allocation,
    area: SaveArea,
    events: &Events,
) -> Result<()> {
    let page = memory.page();
    let signal = AmdSignal::user(0).with_event(events.alert.mailbox, events.alert.id.0);
    let misaligned = |_| Error::Misaligned { offset: INACTIVE, align: 64 };
    SignalWords::new(page.mapping()?.shared(INACTIVE, 64)?)
        .and_then(|words| words.init(&signal))
        .map_err(misaligned)?;
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

#[allow(clippy::too_many_arguments)] // all parts of one ioctl's argument
fn create_queue(
    core: &Core,
    gpu: &GpuCore,
    request: &QueueRequest,
    memory: &QueueMemory,
    save_area: &Allocation,
    area: SaveArea,
    eop: Option<&Allocation>,
    shape: Shape,
) -> Result<(QueueId, u64)> {
    let page = memory.page().addr().get();
    let ring_bytes = u64::from(request.packets) * 64;
    let eop_bytes = eop.map_or(0, |eop| eop.info().bytes);
    let mut args = abi::CreateQueueArgs {
        ring_base_address: memory.ring_memory().addr().get(),
        write_pointer_address: page + AmdQueueV2::WRITE_DISPATCH_ID as u64,
        read_pointer_address: page + AmdQueueV2::READ_DISPATCH_ID as u64,
        ring_size: u32::try_from(ring_bytes).unwrap_or(u32::MAX),
        gpu_id: gpu.id(),
        queue_type: abi::QueueType::COMPUTE_AQL,
        queue_percentage: abi::MAX_QUEUE_PERCENTAGE,
        queue_priority: request.priority,
        eop_buffer_address: eop.map_or(0, |eop| eop.addr().get()),
        eop_buffer_size: eop_bytes,
        ctx_save_restore_address: save_area.addr().get(),
        ctx_save_restore_size: area.save_bytes,
        ctl_stack_size: area.ctl_stack_bytes,
        ..Default::default()
    };
    match core.call(&mut args, Object::Gpu(gpu.id())) {
        Ok(_) => Ok((args.queue_id, args.doorbell_offset)),
        Err(Error::Ioctl { errno, .. }) => Err(Error::CreateQueue {
            gpu: gpu.id(),
            sizes: QueueSizes {
                ring_bytes,
                eop_bytes,
                save_bytes: area.save_bytes,
                ctl_stack_bytes: area.ctl_stack_bytes,
                save_area_bytes: area.total_bytes(),
                published: shape.published.is_some(),
            },
            errno,
        }),
        Err(error) => Err(error),
    }
}
