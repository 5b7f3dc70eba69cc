//! Queue ioctls.

use std::sync::Arc;

use kfd::abi::{
    AllocQueueGwsArgs, CreateQueueArgs, DestroyQueueArgs, GetQueueWaveStateArgs, MmapType,
    QueueType, SetCuMaskArgs, UpdateQueueArgs,
};
use kfd::sys::Errno;
use kfd::{GpuId, QueueId};

use super::super::process::{ProcessDevice, QueueRecord};
use super::super::user;
use super::{Context, doorbell};
use crate::gpu::PAGE;
use crate::profile::Profile;
use crate::queue::{Format, Queue, Setup, Tunables};

/// Raw errno of an unknown queue type (`ENOTSUPP`, not part of the user's header).
const NOT_SUPPORTED: i32 = 524;

const MAX_PERCENTAGE: u32 = 100;
const MAX_PRIORITY: u32 = 15;
const MIN_RING_BYTES: u32 = 1024;

/// Queue ids of a process, and doorbells of a process on a GPU.
pub(super) const MAX_QUEUES: u32 = 1024;

fn not_supported() -> Errno {
    Errno::from_raw_os_error(NOT_SUPPORTED)
}

/// The part of the checks that CREATE_QUEUE and UPDATE_QUEUE share; gives the ring size in force.
fn check_ring(
    profile: Profile,
    percentage: u32,
    priority: u32,
    ring: u64,
    bytes: u32,
) -> Result<u32, Errno> {
    // Bits 15:8 are the XCC of a PM4 queue; older kernels take them for a percentage.
    let percentage = if profile == Profile::V6_1 { percentage } else { percentage & 0xff };
    if percentage > MAX_PERCENTAGE || priority > MAX_PRIORITY {
        return Err(Errno::INVAL);
    }
    if ring != 0 && !user::access_ok(ring, 8) {
        return Err(Errno::FAULT);
    }
    if bytes != 0 && !bytes.is_power_of_two() {
        return Err(Errno::INVAL);
    }
    Ok(if profile.clamps_ring() { bytes.max(MIN_RING_BYTES) } else { bytes })
}

/// What a queue type is.
struct Kind {
    format: Format,
    /// The engine, of an SDMA queue that names it.
    engine: Option<u32>,
    xgmi: bool,
}

fn kind(profile: Profile, args: &CreateQueueArgs) -> Result<Kind, Errno> {
    let (format, engine, xgmi) = match args.queue_type {
        QueueType::COMPUTE => (Format::Pm4, None, false),
        QueueType::COMPUTE_AQL => (Format::Aql, None, false),
        QueueType::SDMA => (Format::Sdma, None, false),
        QueueType::SDMA_XGMI => (Format::Sdma, None, true),
        QueueType::SDMA_BY_ENG_ID if profile != Profile::V6_1 => {
            (Format::Sdma, Some(args.sdma_engine_id), false)
        }
        _ => return Err(not_supported()),
    };
    Ok(Kind { format, engine, xgmi })
}

/// `kfd_queue_buffer_get`: a mapping that starts at `address` and, unless `bytes` is less than a
/// page, ends with it.
fn buffer(device: &ProcessDevice, address: u64, bytes: u64) -> Result<u64, Errno> {
    let page = address - address % PAGE;
    let (start, mapping) = device.mapping_at(page).ok_or(Errno::INVAL)?;
    let pages = bytes / PAGE;
    if start != page || pages != 0 && mapping.bytes != pages * PAGE {
        return Err(Errno::INVAL);
    }
    Ok(start)
}

/// What a queue holds.
#[derive(Default)]
struct Held {
    /// Starts of mappings. The ring comes third.
    mappings: Vec<u64>,
    /// First page and pages of a save area in SVM ranges.
    svm_save: Option<(u64, u64)>,
}

/// `kfd_queue_acquire_buffers`: the mappings that the queue holds. A save
/// area that is no buffer has to be in SVM ranges.
fn buffers(
    profile: Profile,
    device: &ProcessDevice,
    args: &CreateQueueArgs,
    ring_bytes: u32,
    compute: bool,
) -> Result<Held, Errno> {
    let info = &device.device.info;
    let mut held = vec![
        buffer(device, args.write_pointer_address, PAGE)?,
        buffer(device, args.read_pointer_address, PAGE)?,
        buffer(device, args.ring_base_address, ring_bytes.into())?,
    ];
    if !compute {
        return Ok(Held { mappings: held, svm_save: None });
    }
    let exact = profile.wants_exact_sizes();
    let fits = |given: u64, needed| if exact { given == needed } else { given >= needed };
    if args.eop_buffer_address != 0 {
        if !fits(args.eop_buffer_size, PAGE) {
            return Err(Errno::INVAL);
        }
        let bytes = args.eop_buffer_size.checked_next_multiple_of(PAGE).ok_or(Errno::INVAL)?;
        held.push(buffer(device, args.eop_buffer_address, bytes)?);
    }
    if u64::from(args.ctl_stack_size) != info.save_area.control_stack {
        return Err(Errno::INVAL);
    }
    if !fits(args.ctx_save_restore_size.into(), info.save_area.cwsr) {
        return Err(Errno::INVAL);
    }
    let bytes = info.save_area_bytes(args.ctx_save_restore_size.into());
    let save = buffer(device, args.ctx_save_restore_address, bytes);
    held.extend(save.ok());
    let pages = (args.ctx_save_restore_address / PAGE, bytes / PAGE);
    Ok(Held { mappings: held, svm_save: save.is_err().then_some(pages) })
}

/// Before 6.12 only MES chips looked at a buffer: the write pointer's.
fn check_write_pointer(device: &ProcessDevice, address: u64) -> Result<(), Errno> {
    let (_, mapping) = device.mapping_at(address).ok_or(Errno::INVAL)?;
    if mapping.bytes > PAGE || mapping.owner != device.gpu {
        return Err(Errno::INVAL);
    }
    Ok(())
}

impl Context<'_> {
    pub(super) fn create_queue(&mut self, args: &mut CreateQueueArgs) -> Result<(), Errno> {
        let profile = self.model.config.profile;
        args.ring_size = check_ring(
            profile,
            args.queue_percentage,
            args.queue_priority,
            args.ring_base_address,
            args.ring_size,
        )?;
        let optional = [args.eop_buffer_address, args.ctx_save_restore_address];
        if !user::access_ok(args.read_pointer_address, 4)
            || !user::access_ok(args.write_pointer_address, 4)
            || optional.iter().any(|address| *address != 0 && !user::access_ok(*address, 4))
        {
            return Err(Errno::FAULT);
        }
        let kind = kind(profile, args)?;
        let compute = kind.format != Format::Sdma;
        let process = self.process()?;
        let index = process.device_index(args.gpu_id.0).ok_or(Errno::INVAL)?;
        let arena = Arc::clone(&process.arena);
        let device = process.devices.get_mut(index).ok_or(Errno::INVAL)?;
        device.bound().map_err(|_| Errno::SRCH)?;
        let info = Arc::clone(&device.device.info);
        let engines = info.sdma_engines + info.xgmi_engines;
        if kind.engine.is_some_and(|engine| u64::from(engine) >= engines) {
            return Err(Errno::INVAL);
        }
        let doorbells = device.doorbell_page(&arena).map_err(|_| Errno::NOMEM)?;
        let doorbell_page_offset = doorbells.mmap_offset(MmapType::DOORBELL, GpuId(info.id));
        let mut held = Held::default();
        if profile.checks_queue_buffers() {
            held = buffers(profile, device, args, args.ring_size, compute)?;
        } else if info.has_mes() {
            check_write_pointer(device, args.write_pointer_address)?;
        }
        let Held { mappings: held, svm_save } = held;
        let save_ranges = match svm_save {
            Some((first, pages)) => process.svm.save_area(first, pages, index)?,
            None => Vec::new(),
        };
        let ring = held.get(2).copied();

        let own = process.queues.values().filter(|record| record.device == index);
        if own.clone().count() >= info.max_queues() {
            return Err(Errno::NOSPC);
        }
        let free = (0..MAX_QUEUES).find(|id| !process.queues.contains_key(id));
        let id = free.ok_or(Errno::NOMEM)?;
        if profile.checks_queue_buffers() && info.has_mes() {
            let device = process.devices.get(index).ok_or(Errno::INVAL)?;
            let pointer = device.mapping_at(args.write_pointer_address).ok_or(Errno::INVAL)?;
            if pointer.1.owner != index || kind.xgmi {
                return Err(Errno::INVAL);
            }
        }
        let taken: Vec<u32> = own.map(|record| record.doorbell).collect();
        let (doorbell, engine) = if compute {
            (doorbell::compute(&info, &taken).ok_or(Errno::BUSY)?, 0)
        } else {
            doorbell::sdma(&info, kind.engine, kind.xgmi, &taken)?
        };
        // A queue that named its engine becomes one of the plain types.
        let on_xgmi = u64::from(engine) >= info.sdma_engines && !compute;
        let debugged = process.debug.is_enabled();
        process.svm.hold(&save_ranges);
        let device = process.devices.get_mut(index).ok_or(Errno::INVAL)?;
        for start in &held {
            if let Some(mapping) = device.mappings.get_mut(start) {
                mapping.queues += 1;
            }
        }
        let queue = Queue::new(
            Setup {
                id,
                device: Arc::clone(&device.device),
                format: kind.format,
                doorbells,
                doorbell,
                read_pointer: args.read_pointer_address,
                write_pointer: args.write_pointer_address,
                save_area: args.ctx_save_restore_address,
                eop: args.eop_buffer_address,
                xcc: args.queue_percentage >> 8 & 0xff,
                engine,
            },
            Tunables {
                ring: args.ring_base_address,
                ring_bytes: args.ring_size.into(),
                percentage: args.queue_percentage & 0xff,
                priority: args.queue_priority,
            },
        );
        let sysfs_type = if compute {
            0
        } else if on_xgmi {
            4
        } else {
            1
        };
        let record = QueueRecord {
            queue: Arc::clone(&queue),
            order: process.next_queue,
            kind: match kind.format {
                Format::Pm4 => QueueType::COMPUTE,
                Format::Aql => QueueType::COMPUTE_AQL,
                Format::Sdma if on_xgmi => QueueType::SDMA_XGMI,
                Format::Sdma => QueueType::SDMA,
            },
            save_bytes: args.ctx_save_restore_size,
            svm_save,
            has_cu_mask: false,
            debug_workaround: debugged && info.has_debug_workaround(),
            dying: false,
            device: index,
            buffers: held,
            ring,
            doorbell,
            sysfs_type,
            has_gws: false,
        };
        process.next_queue += 1;
        process.queues.insert(id, record);
        process.debug.queue_created(id);
        process.runner.add(queue);
        args.queue_id = QueueId(id);
        args.doorbell_offset = doorbell_page_offset | (u64::from(doorbell) * 8);
        Ok(())
    }

    /// `wait_on_destroy_queue`: whether the queue must first be resumed by the debugger. `again`
    /// when this very call has waited for that.
    pub(super) fn destroy_must_wait(&mut self, id: QueueId, again: bool) -> Result<bool, Errno> {
        let process = self.process()?;
        let debugged = process.debug.is_enabled();
        let record = process.queues.get_mut(&id.0).ok_or(Errno::INVAL)?;
        if record.dying && !again {
            return Err(Errno::BUSY);
        }
        record.dying = true;
        Ok(debugged && record.queue.is_held())
    }

    pub(super) fn destroy_queue(&mut self, args: &mut DestroyQueueArgs) -> Result<(), Errno> {
        let process = self.process()?;
        let record = process.queues.remove(&args.queue_id.0).ok_or(Errno::INVAL)?;
        process.runner.remove(&record.queue);
        process.debug.queue_destroyed(args.queue_id.0, record.queue.gpu_id());
        process.release(&record);
        Ok(())
    }

    pub(super) fn update_queue(&mut self, args: &mut UpdateQueueArgs) -> Result<(), Errno> {
        let profile = self.model.config.profile;
        let bytes = check_ring(
            profile,
            args.queue_percentage,
            args.queue_priority,
            args.ring_base_address,
            args.ring_size,
        )?;
        let process = self.process()?;
        let record = process.queues.get_mut(&args.queue_id.0).ok_or(Errno::FAULT)?;
        if profile.checks_queue_buffers() && args.ring_base_address != 0 && bytes != 0 {
            let device = process.devices.get_mut(record.device).ok_or(Errno::FAULT)?;
            let start =
                buffer(device, args.ring_base_address, bytes.into()).map_err(|_| Errno::FAULT)?;
            if let Some(mapping) = device.mappings.get_mut(&start) {
                mapping.queues += 1;
            }
            if let Some(old) = record.ring.replace(start) {
                if let Some(mapping) = device.mappings.get_mut(&old) {
                    mapping.queues = mapping.queues.saturating_sub(1);
                }
                if let Some(held) = record.buffers.get_mut(2) {
                    *held = start;
                }
            }
        }
        let tunables = Tunables {
            ring: args.ring_base_address,
            ring_bytes: bytes.into(),
            percentage: args.queue_percentage & 0xff,
            priority: args.queue_priority,
        };
        process.runner.update(&record.queue, tunables);
        Ok(())
    }

    pub(super) fn set_cu_mask(&mut self, args: &mut SetCuMaskArgs) -> Result<(), Errno> {
        const MAX_BITS: u32 = 1024;
        if !args.num_cu_mask.is_multiple_of(32) || args.num_cu_mask == 0 {
            return Err(Errno::INVAL);
        }
        let words = usize::try_from(args.num_cu_mask.min(MAX_BITS) / 32).unwrap_or(0);
        let mut mask = vec![0; words * 4];
        user::read_bytes(args.cu_mask_ptr, &mut mask)?;
        let process = self.process()?;
        let record = process.queues.get_mut(&args.queue_id.0).ok_or(Errno::FAULT)?;
        if record.debug_workaround {
            return Err(Errno::BUSY);
        }
        // gfx10 and later place work on pairs of CUs.
        let paired = record.queue.device().info.gfx_version >= 10_00_00;
        let uneven = |byte: &u8| (byte ^ byte >> 1) & 0x55 != 0;
        if paired && mask.iter().any(uneven) {
            return Err(Errno::INVAL);
        }
        record.has_cu_mask = true;
        // Placement on CUs is not modelled: nothing that a program may rely on depends on it.
        Ok(())
    }

    pub(super) fn get_queue_wave_state(
        &mut self,
        args: &mut GetQueueWaveStateArgs,
    ) -> Result<(), Errno> {
        let process = self.process()?;
        let record = process.queues.get(&args.queue_id.0).ok_or(Errno::FAULT)?;
        if record.sysfs_type != 0 || record.queue.is_active() {
            return Err(Errno::INVAL);
        }
        // Waves are never saved here: an empty control stack and save area.
        user::write_bytes(args.ctl_stack_address, &[0; 16])?;
        args.ctl_stack_used_size = 0;
        args.save_area_used_size = 0;
        Ok(())
    }

    pub(super) fn alloc_queue_gws(&mut self, args: &mut AllocQueueGwsArgs) -> Result<(), Errno> {
        let process = self.process()?;
        let record = process.queues.get(&args.queue_id.0).ok_or(Errno::INVAL)?;
        let (device, held) = (record.device, record.has_gws);
        if record.queue.device().info.gws == 0 {
            return Err(Errno::NODEV);
        }
        let info = &record.queue.device().info;
        if process.debug.is_enabled() && !info.debugs_with_gws() {
            return Err(Errno::BUSY);
        }
        let mut others = process.queues.iter().filter(|(id, _)| **id != args.queue_id.0);
        let other = others.any(|(_, record)| record.device == device && record.has_gws);
        let claim = args.num_gws != 0;
        match (claim, held) {
            (true, true) | (true, false) if other => return Err(Errno::BUSY),
            (true, true) => return Err(Errno::INVAL),
            (false, false) => return Err(Errno::INVAL),
            _ => {}
        }
        if let Some(record) = process.queues.get_mut(&args.queue_id.0) {
            record.has_gws = claim;
            record.queue.set_gws(claim);
        }
        args.first_gws = 0;
        Ok(())
    }
}
