//! The questions of DBG_TRAP: exceptions, queues, GPUs.
//!
//! Source: Linux 6.12.117, kfd_debug.c, kfd_process_queue_manager.c (docs/ABI.md §Model, Debugging).

use kfd::abi::{
    DbgDeviceInfoEntry, DbgTrapArgs, DbgTrapOp, EXCEPTION_MASK_DEVICE, EXCEPTION_MASK_PROCESS,
    EXCEPTION_MASK_QUEUE, ExceptionCode, QueueSnapshotEntry,
};
use kfd::sys::Errno;
use kfd::{GpuId, QueueId};
use zerocopy::IntoBytes;

use super::super::debug::{Debug, bit};
use super::super::process::{Process, ProcessDevice, QueueRecord};
use super::super::user;
use super::Context;

/// The queues in the kernel's order.
fn in_order(process: &Process) -> Vec<(u32, &QueueRecord)> {
    let mut queues: Vec<_> = process.queues.iter().map(|(id, record)| (*id, record)).collect();
    queues.sort_unstable_by_key(|(_, record)| record.order);
    queues
}

/// The first `size` bytes of a record, for `user`.
fn copy_out(address: u64, record: &[u8], size: u32) -> Result<(), Errno> {
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    user::write_bytes(address, record.get(..size).unwrap_or(record))
}

fn size_of_record<T>(given: u32) -> u32 {
    given.min(u32::try_from(size_of::<T>()).unwrap_or(u32::MAX))
}

impl Context<'_> {
    pub(super) fn debug_query(
        &mut self,
        debug: &Debug,
        args: &mut DbgTrapArgs,
    ) -> Result<(), Errno> {
        match args.op {
            DbgTrapOp::QUERY_DEBUG_EVENT => self.query_debug_event(debug, args),
            DbgTrapOp::QUERY_EXCEPTION_INFO => self.query_exception_info(debug, args),
            DbgTrapOp::GET_QUEUE_SNAPSHOT => self.queue_snapshot(debug, args),
            DbgTrapOp::GET_DEVICE_SNAPSHOT => self.device_snapshot(debug, args),
            _ => Err(Errno::INVAL),
        }
    }

    /// `kfd_dbg_ev_query_debug_event`: queues first, then GPUs, then the process.
    fn query_debug_event(&mut self, debug: &Debug, args: &mut DbgTrapArgs) -> Result<(), Errno> {
        let mut event = args.query_debug_event();
        let clear = event.exception_mask;
        event.exception_mask = 0;
        event.queue_id = QueueId(0);
        event.gpu_id = GpuId(0);
        let process = self.process()?;
        let mut state = debug.lock();
        let wanted = state.wanted;
        let mut take = |raised: &mut u64| {
            event.exception_mask = *raised;
            *raised &= !clear;
        };
        let queue = in_order(process).into_iter().find_map(|(id, record)| {
            let raised = state.queues.get(&id)?;
            (raised & wanted != 0).then(|| (id, record.queue.gpu_id()))
        });
        let gpu = process
            .devices
            .iter()
            .map(|device| device.device.info.id)
            .find(|id| state.devices.get(id).is_some_and(|raised| raised & wanted != 0));
        if let Some((id, gpu_id)) = queue {
            state.queues.get_mut(&id).into_iter().for_each(&mut take);
            event.queue_id = QueueId(id);
            event.gpu_id = GpuId(gpu_id);
        } else if let Some(gpu_id) = gpu {
            state.devices.get_mut(&gpu_id).into_iter().for_each(&mut take);
            event.gpu_id = GpuId(gpu_id);
        } else if state.process & wanted != 0 {
            take(&mut state.process);
        }
        args.set_query_debug_event(event);
        if event.exception_mask == 0 { Err(Errno::AGAIN) } else { Ok(()) }
    }

    /// `kfd_dbg_trap_query_exception_info`.
    fn query_exception_info(&mut self, debug: &Debug, args: &mut DbgTrapArgs) -> Result<(), Errno> {
        let mut query = args.query_exception_info();
        if query.info_ptr == 0 {
            return Err(Errno::INVAL);
        }
        let code = bit(query.exception_code);
        let process = self.process()?;
        let mut state = debug.lock();
        let mut needed = 0;
        if code & EXCEPTION_MASK_QUEUE != 0 {
            if !process.queues.contains_key(&query.source_id) {
                return Err(Errno::INVAL);
            }
            let raised = state.queues.get(&query.source_id).copied().unwrap_or(0);
            if raised & code == 0 {
                return Err(Errno::NODATA);
            }
        } else if code & EXCEPTION_MASK_DEVICE != 0 {
            process.device_index(query.source_id).ok_or(Errno::INVAL)?;
            let raised = state.devices.get(&query.source_id).copied().unwrap_or(0);
            if raised & code == 0 {
                return Err(Errno::NODATA);
            }
            // The kernel keeps a violation's data and never notes its size: 0 bytes are copied.
            if query.exception_code == ExceptionCode::DEVICE_MEMORY_VIOLATION
                && query.clear_exception != 0
            {
                state.violations.remove(&query.source_id);
            }
        } else if code & EXCEPTION_MASK_PROCESS != 0 {
            if state.process & code == 0 {
                return Err(Errno::NODATA);
            }
            if query.exception_code == ExceptionCode::PROCESS_RUNTIME {
                let info = state.runtime;
                copy_out(query.info_ptr, info.as_bytes(), query.info_size)?;
                needed = u32::try_from(size_of_val(&info)).unwrap_or(0);
            }
        } else {
            return Err(Errno::INVAL);
        }
        query.info_size = needed;
        if query.clear_exception != 0 {
            let clear = |raised: &mut u64| *raised &= !code;
            if code & EXCEPTION_MASK_QUEUE != 0 {
                state.queues.get_mut(&query.source_id).into_iter().for_each(clear);
            } else if code & EXCEPTION_MASK_DEVICE != 0 {
                state.devices.get_mut(&query.source_id).into_iter().for_each(clear);
            } else {
                state.process &= !code;
            }
        }
        args.set_query_exception_info(query);
        Ok(())
    }

    /// `pqm_get_queue_snapshot`.
    fn queue_snapshot(&mut self, debug: &Debug, args: &mut DbgTrapArgs) -> Result<(), Errno> {
        let mut wanted = args.queue_snapshot();
        let (room, stride) = (wanted.num_queues, wanted.entry_size);
        wanted.num_queues = 0;
        args.set_queue_snapshot(wanted);
        if stride == 0 {
            return Err(Errno::INVAL);
        }
        wanted.entry_size = size_of_record::<QueueSnapshotEntry>(stride);
        let queues = in_order(self.process()?);
        let entries: Vec<_> = queues.into_iter().map(|(id, q)| (id, snapshot(id, q))).collect();
        // After the last look at a queue: whoever holds one may raise an exception.
        let mut state = debug.lock();
        let mut to = wanted.snapshot_buf_ptr;
        let mut result = Ok(());
        for (id, mut entry) in entries {
            if wanted.num_queues < room {
                let raised = state.queues.entry(id).or_default();
                entry.exception_status = *raised;
                *raised &= !wanted.exception_mask;
                result = copy_out(to, entry.as_bytes(), wanted.entry_size);
                if result.is_err() {
                    break;
                }
                to = to.wrapping_add(stride.into());
            }
            wanted.num_queues += 1;
        }
        args.set_queue_snapshot(wanted);
        result
    }

    /// `kfd_dbg_trap_device_snapshot`.
    fn device_snapshot(&mut self, debug: &Debug, args: &mut DbgTrapArgs) -> Result<(), Errno> {
        let mut wanted = args.device_snapshot();
        if wanted.snapshot_buf_ptr == 0 {
            return Err(Errno::INVAL);
        }
        let gpuvm_base = self.model.config.profile.gpuvm_base();
        let process = self.process()?;
        let (room, stride) = (wanted.num_devices, wanted.entry_size);
        wanted.num_devices = u32::try_from(process.devices.len()).unwrap_or(u32::MAX);
        wanted.entry_size = size_of_record::<DbgDeviceInfoEntry>(stride);
        args.set_device_snapshot(wanted);
        let mut state = debug.lock();
        let room = usize::try_from(room).unwrap_or(usize::MAX);
        let mut to = wanted.snapshot_buf_ptr;
        for device in process.devices.iter().take(room) {
            let raised = state.devices.entry(device.device.info.id).or_default();
            let entry = device_entry(device, gpuvm_base, *raised);
            *raised &= !wanted.exception_mask;
            copy_out(to, entry.as_bytes(), wanted.entry_size)?;
            to = to.wrapping_add(stride.into());
        }
        Ok(())
    }
}

/// `set_queue_snapshot_entry`, without the exceptions.
fn snapshot(id: u32, record: &QueueRecord) -> QueueSnapshotEntry {
    let queue = &record.queue;
    let (read_pointer, write_pointer) = queue.pointers();
    QueueSnapshotEntry {
        exception_status: 0,
        ring_base_address: queue.ring(),
        write_pointer_address: write_pointer,
        read_pointer_address: read_pointer,
        ctx_save_restore_address: queue.save_area(),
        queue_id: QueueId(id),
        gpu_id: GpuId(queue.gpu_id()),
        ring_size: u32::try_from(queue.ring_bytes()).unwrap_or(u32::MAX),
        queue_type: record.kind,
        ctx_save_restore_area_size: record.save_bytes,
        reserved: 0,
    }
}

/// What the topology says of a GPU. It has no PCI revision and no subsystem: 0.
fn device_entry(device: &ProcessDevice, gpuvm_base: u64, exceptions: u64) -> DbgDeviceInfoEntry {
    let info = &device.device.info;
    let property = |name| {
        let value = info.properties.get(name).unwrap_or(0);
        u32::try_from(value).unwrap_or(u32::MAX)
    };
    let apertures = crate::queue::APERTURES;
    DbgDeviceInfoEntry {
        exception_status: exceptions,
        lds_base: apertures.lds_base,
        lds_limit: apertures.lds_limit,
        scratch_base: apertures.scratch_base,
        scratch_limit: apertures.scratch_limit,
        gpuvm_base,
        gpuvm_limit: super::info::GPUVM_LIMIT,
        gpu_id: GpuId(info.id),
        location_id: property("location_id"),
        vendor_id: property("vendor_id"),
        device_id: property("device_id"),
        fw_version: property("fw_version"),
        gfx_target_version: property("gfx_target_version"),
        simd_count: property("simd_count"),
        max_waves_per_simd: property("max_waves_per_simd"),
        array_count: property("array_count"),
        simd_arrays_per_engine: property("simd_arrays_per_engine"),
        num_xcc: u32::try_from(info.xccs).unwrap_or(u32::MAX),
        capability: property("capability"),
        debug_prop: property("debug_prop"),
        ..DbgDeviceInfoEntry::default()
    }
}
