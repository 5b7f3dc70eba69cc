//! Ioctls as safe calls: arguments without host addresses, and those whose addresses are borrows
//! that outlive the call.

use super::{IoctlError, KfdIoctl, call, call_svm};
use crate::abi;
use crate::core::Core;
use crate::error::{Error, Object, Result};
use crate::ids::{GpuId, MemHandle, QueueId};
use crate::memory::{Lease, Mapping};
use crate::sys::Errno;

/// Arguments that hold no host address the kernel would read or write, or only addresses of device
/// memory, which this process accesses as shared memory anyway.
///
/// # Safety
/// As said.
pub(crate) unsafe trait NoHostAddress: KfdIoctl {}

macro_rules! no_host_address {
    ($($args:ident),+ $(,)?) => {
        $(
            // SAFETY: its fields are ids, sizes, flags and device addresses (docs/ABI.md §ioctl).
            unsafe impl NoHostAddress for abi::$args {}
        )+
    };
}

no_host_address! {
    GetVersionArgs, CreateQueueArgs, DestroyQueueArgs, UpdateQueueArgs, SetMemoryPolicyArgs,
    GetClockCountersArgs, GetProcessAperturesArgs, CreateEventArgs, DestroyEventArgs, SetEventArgs,
    ResetEventArgs, SetScratchBackingVaArgs, SetTrapHandlerArgs, AcquireVmArgs, FreeMemoryOfGpuArgs,
    ImportDmabufArgs, ExportDmabufArgs, AllocQueueGwsArgs, SmiEventsArgs, SetXnackModeArgs,
    GetAvailableMemoryArgs, RuntimeEnableArgs,
}

fn on(object: Object) -> impl FnOnce(IoctlError) -> Error {
    move |IoctlError { name, errno }| Error::Ioctl { name, on: object, errno }
}

/// The number of entries in an array, as KFD counts them.
fn count<T>(slice: &[T], name: &'static str) -> Result<u32, IoctlError> {
    u32::try_from(slice.len()).map_err(|_| IoctlError { name, errno: Errno::TOOBIG })
}

/// The address of an array, as KFD takes it.
fn address<T>(slice: &mut [T]) -> u64 {
    slice.as_mut_ptr().expose_provenance() as u64
}

/// The address of an array that KFD only reads.
fn const_address<T>(slice: &[T]) -> u64 {
    slice.as_ptr().expose_provenance() as u64
}

impl Core {
    /// Issues an ioctl whose argument holds no host address.
    pub fn call<A: NoHostAddress>(&self, args: &mut A, object: Object) -> Result<u32> {
        // SAFETY: `NoHostAddress`.
        unsafe { call(&*self.kernel, self.file, args) }.map_err(on(object))
    }

    /// ALLOC_MEMORY_OF_GPU at the addresses of `lease`. With `userptr`, which must be mapped there,
    /// of this process's pages. Returns the handle and the offset to map the memory at.
    pub fn alloc_memory(
        &self,
        gpu_id: GpuId,
        lease: &Lease,
        userptr: Option<&Mapping>,
        flags: abi::AllocFlags,
    ) -> Result<(MemHandle, u64)> {
        let mut args = abi::AllocMemoryOfGpuArgs {
            va_addr: lease.start(),
            size: lease.bytes(),
            mmap_offset: userptr
                .map_or(0, |mapping| mapping.start().as_ptr().expose_provenance() as u64),
            gpu_id,
            flags,
            ..Default::default()
        };
        let object = Object::Memory {
            handle: MemHandle(0),
            addr: lease.start().into(),
            bytes: lease.bytes(),
        };
        // SAFETY: the only host address is that of a mapping of `lease.bytes()` bytes, which this
        // process accesses as memory shared with devices and keeps until KFD has forgotten it.
        unsafe { call(&*self.kernel, self.file, &mut args) }.map_err(on(object))?;
        Ok((args.handle, args.mmap_offset))
    }

    /// MAP_MEMORY_TO_GPU. Returns how many of `gpus` have the memory, also on failure.
    pub fn map_memory(
        &self,
        handle: MemHandle,
        gpus: &[GpuId],
        object: Object,
    ) -> (usize, Result<()>) {
        let mut args = abi::MapMemoryToGpuArgs {
            handle,
            device_ids_array_ptr: const_address(gpus),
            n_devices: u32::try_from(gpus.len()).unwrap_or(u32::MAX),
            n_success: 0,
        };
        // SAFETY: KFD reads `n_devices` ids; the slice is borrowed for the call.
        let result = unsafe { call(&*self.kernel, self.file, &mut args) };
        let done = if result.is_ok() { gpus.len() } else { done(args.n_success, gpus) };
        (done, result.map(drop).map_err(on(object)))
    }

    /// UNMAP_MEMORY_FROM_GPU. Returns how many of `gpus` have lost the memory, also on failure.
    pub fn unmap_memory(
        &self,
        handle: MemHandle,
        gpus: &[GpuId],
        object: Object,
    ) -> (usize, Result<()>) {
        let mut args = abi::UnmapMemoryFromGpuArgs {
            handle,
            device_ids_array_ptr: const_address(gpus),
            n_devices: u32::try_from(gpus.len()).unwrap_or(u32::MAX),
            n_success: 0,
        };
        // SAFETY: as in `map_memory`.
        let result = unsafe { call(&*self.kernel, self.file, &mut args) };
        let done = if result.is_ok() { gpus.len() } else { done(args.n_success, gpus) };
        (done, result.map(drop).map_err(on(object)))
    }

    /// WAIT_EVENTS for any of `events`. `Ok(false)` when `timeout_ms` passed.
    pub fn wait_events(&self, events: &mut [abi::EventData], timeout_ms: u32) -> Result<bool> {
        let failed = on(Object::Process);
        let num_events = match count(events, "WAIT_EVENTS") {
            Ok(count) => count,
            Err(error) => return Err(failed(error)),
        };
        let mut args = abi::WaitEventsArgs {
            events_ptr: address(events),
            num_events,
            wait_for_all: 0,
            timeout: timeout_ms,
            wait_result: abi::WaitResult::TIMEOUT,
        };
        // SAFETY: KFD reads and writes `num_events` records; they are borrowed exclusively.
        unsafe { call(&*self.kernel, self.file, &mut args) }.map_err(failed)?;
        Ok(args.wait_result == abi::WaitResult::COMPLETE)
    }

    /// SET_CU_MASK: one bit a CU, the first in the low bit of the first word.
    pub fn set_cu_mask(&self, queue_id: QueueId, mask: &[u32]) -> Result<()> {
        let failed = on(Object::Queue(queue_id));
        let Some(num_cu_mask) = u32::try_from(mask.len()).ok().and_then(|n| n.checked_mul(32))
        else {
            return Err(failed(IoctlError { name: "SET_CU_MASK", errno: Errno::TOOBIG }));
        };
        let cu_mask_ptr = const_address(mask);
        let mut args = abi::SetCuMaskArgs { queue_id, num_cu_mask, cu_mask_ptr };
        // SAFETY: KFD reads `num_cu_mask / 32` words; the slice is borrowed for the call.
        unsafe { call(&*self.kernel, self.file, &mut args) }.map(drop).map_err(failed)
    }

    /// GET_QUEUE_WAVE_STATE into the save area of the queue. Returns the bytes used of the control
    /// stack and of the save area.
    pub fn queue_wave_state(&self, queue_id: QueueId, area: &Mapping) -> Result<(u32, u32)> {
        let mut args = abi::GetQueueWaveStateArgs {
            ctl_stack_address: area.start().as_ptr().expose_provenance() as u64,
            queue_id,
            ..Default::default()
        };
        // SAFETY: KFD writes a header and at most a control stack to the start of the queue's save
        // area, which is larger and which this process accesses as shared memory.
        unsafe { call(&*self.kernel, self.file, &mut args) }
            .map_err(on(Object::Queue(queue_id)))?;
        Ok((args.ctl_stack_used_size, args.save_area_used_size))
    }

    /// GET_TILE_CONFIG. Fills the arrays from their start.
    pub fn tile_config(
        &self,
        gpu_id: GpuId,
        tiles: &mut [u32],
        macro_tiles: &mut [u32],
    ) -> Result<abi::GetTileConfigArgs> {
        let mut args = abi::GetTileConfigArgs {
            tile_config_ptr: address(tiles),
            macro_tile_config_ptr: address(macro_tiles),
            num_tile_configs: u32::try_from(tiles.len()).unwrap_or(u32::MAX),
            num_macro_tile_configs: u32::try_from(macro_tiles.len()).unwrap_or(u32::MAX),
            gpu_id,
            ..Default::default()
        };
        // SAFETY: KFD writes at most as many words as the counts say; both are borrowed exclusively.
        unsafe { call(&*self.kernel, self.file, &mut args) }.map_err(on(Object::Gpu(gpu_id)))?;
        Ok(args)
    }

    /// GET_DMABUF_INFO. `metadata` is filled from its start. `fd` is a descriptor of the kernel
    /// behind the seam.
    pub fn dmabuf_info(&self, fd: u32, metadata: &mut [u8]) -> Result<abi::GetDmabufInfoArgs> {
        let mut args = abi::GetDmabufInfoArgs {
            metadata_ptr: address(metadata),
            metadata_size: u32::try_from(metadata.len()).unwrap_or(u32::MAX),
            dmabuf_fd: fd,
            ..Default::default()
        };
        // SAFETY: KFD writes at most `metadata_size` bytes; the slice is borrowed exclusively.
        unsafe { call(&*self.kernel, self.file, &mut args) }.map_err(on(Object::Process))?;
        Ok(args)
    }

    /// DBG_TRAP GET_QUEUE_SNAPSHOT of process `pid`. Clears the exceptions in `clear`. Returns how
    /// many queues there are, which may be more than `entries` holds.
    pub fn queue_snapshot(
        &self,
        pid: u32,
        clear: u64,
        entries: &mut [abi::QueueSnapshotEntry],
    ) -> Result<u32> {
        let mut args =
            abi::DbgTrapArgs { pid, op: abi::DbgTrapOp::GET_QUEUE_SNAPSHOT, ..Default::default() };
        args.set_queue_snapshot(abi::DbgTrapQueueSnapshotArgs {
            exception_mask: clear,
            snapshot_buf_ptr: address(entries),
            num_queues: u32::try_from(entries.len()).unwrap_or(u32::MAX),
            entry_size: u32::try_from(size_of::<abi::QueueSnapshotEntry>()).unwrap_or(0),
        });
        // SAFETY: KFD writes at most `num_queues` records of `entry_size` bytes; they are borrowed
        // exclusively.
        unsafe { call(&*self.kernel, self.file, &mut args) }.map_err(on(Object::Process))?;
        Ok(args.queue_snapshot().num_queues)
    }

    /// DBG_TRAP ENABLE or DISABLE of process `pid`. KFD writes a byte to `notify` for every
    /// exception in `exceptions`.
    pub fn debug_enable(&self, pid: u32, enable: Option<(u64, u32)>) -> Result<()> {
        let op = match enable {
            Some(_) => abi::DbgTrapOp::ENABLE,
            None => abi::DbgTrapOp::DISABLE,
        };
        let mut args = abi::DbgTrapArgs { pid, op, ..Default::default() };
        let mut info = [abi::RuntimeInfo::default()];
        if let Some((exception_mask, dbg_fd)) = enable {
            args.set_enable(abi::DbgTrapEnableArgs {
                exception_mask,
                rinfo_ptr: address(&mut info),
                rinfo_size: u32::try_from(size_of::<abi::RuntimeInfo>()).unwrap_or(0),
                dbg_fd,
            });
        }
        // SAFETY: KFD writes at most `rinfo_size` bytes to `info`, which lives past the call.
        unsafe { call(&*self.kernel, self.file, &mut args) }.map(drop).map_err(on(Object::Process))
    }

    /// SVM: sets or gets attributes of a leased range.
    pub fn svm(
        &self,
        op: abi::SvmOp,
        lease: &Lease,
        attributes: &mut [abi::SvmAttribute],
    ) -> Result<()> {
        let args = abi::SvmArgs {
            start_addr: lease.start(),
            size: lease.bytes(),
            op,
            ..Default::default()
        };
        let object = Object::Memory {
            handle: MemHandle(0),
            addr: lease.start().into(),
            bytes: lease.bytes(),
        };
        // SAFETY: the lease owns the range, and what is mapped there is accessed as shared memory.
        unsafe { call_svm(&*self.kernel, self.file, args, attributes) }.map_err(on(object))
    }
}

/// GET_VERSION, before there is a [`Core`].
pub(crate) fn version(
    kernel: &dyn crate::sys::Kernel,
    file: crate::sys::FileId,
) -> Result<abi::GetVersionArgs> {
    let mut args = abi::GetVersionArgs::default();
    // SAFETY: the argument holds no address.
    unsafe { call(kernel, file, &mut args) }.map_err(on(Object::Process))?;
    Ok(args)
}

/// GET_PROCESS_APERTURES_NEW, or GET_PROCESS_APERTURES on KFD 1.0: the apertures of every GPU that
/// the process may use.
pub(crate) fn apertures(
    kernel: &dyn crate::sys::Kernel,
    file: crate::sys::FileId,
    minor: u32,
) -> Result<Vec<abi::ProcessDeviceApertures>> {
    let failed = || on(Object::Process);
    if minor == 0 {
        let mut args = abi::GetProcessAperturesArgs::default();
        // SAFETY: the argument holds no address.
        unsafe { call(kernel, file, &mut args) }.map_err(failed())?;
        let filled = usize::try_from(args.num_of_nodes).unwrap_or(usize::MAX);
        return Ok(args.process_apertures.into_iter().take(filled).collect());
    }
    let mut args = abi::GetProcessAperturesNewArgs::default();
    // SAFETY: with 0 entries KFD writes nothing but the number.
    unsafe { call(kernel, file, &mut args) }.map_err(failed())?;
    // 64 is KFD's own limit of GPUs in a process (docs/ABI.md §Limits).
    if args.num_of_nodes > 64 {
        return Err(Error::Nonsense {
            call: "GET_PROCESS_APERTURES_NEW",
            what: "the number of GPUs",
            value: u64::from(args.num_of_nodes),
        });
    }
    let length = usize::try_from(args.num_of_nodes).unwrap_or(0);
    let mut entries = vec![abi::ProcessDeviceApertures::default(); length];
    args.kfd_process_device_apertures_ptr = address(&mut entries);
    if length > 0 {
        // SAFETY: KFD writes at most `num_of_nodes` records, which `entries` holds.
        unsafe { call(kernel, file, &mut args) }.map_err(failed())?;
        entries.truncate(usize::try_from(args.num_of_nodes).unwrap_or(usize::MAX));
    }
    Ok(entries)
}

/// How many entries KFD says it has done, bounded by how many there were.
fn done(n_success: u32, gpus: &[GpuId]) -> usize {
    usize::try_from(n_success).unwrap_or(usize::MAX).min(gpus.len())
}
