//! MAP_MEMORY_TO_GPU and UNMAP_MEMORY_FROM_GPU.
#![allow(unsafe_code)] // hands host addresses to the GPU's page table

use kfd::abi::{AllocFlags, MapMemoryToGpuArgs, UnmapMemoryFromGpuArgs};
use kfd::sys::Errno;

use super::super::process::{Buffer, Mapping, Memory, Process, ProcessDevice};
use super::super::user;
use super::{Context, split_handle};
use crate::gpu::PAGE;
use crate::memory::Access;

/// GPU virtual addresses have 48 bits.
const VM_BYTES: u64 = 1 << 48;

/// Reads the array of GPU ids.
fn device_ids(pointer: u64, count: u32, done: u32) -> Result<Vec<u32>, Errno> {
    if count == 0 || done > count {
        return Err(Errno::INVAL);
    }
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    // kmalloc_array gives no more than this.
    let bytes = count.checked_mul(4).filter(|bytes| *bytes <= 4 << 20).ok_or(Errno::NOMEM)?;
    let mut raw = vec![0; bytes];
    user::read_bytes(pointer, &mut raw)?;
    let words = raw.chunks_exact(4).filter_map(|word| word.try_into().ok());
    Ok(words.map(u32::from_le_bytes).collect())
}

/// The places of a buffer: two for doubled queue memory.
fn places(buffer: &Buffer) -> impl Iterator<Item = (u64, u64)> + use<> {
    let (va, bytes) = (buffer.va, buffer.bytes);
    (0..if buffer.double { 2 } else { 1 }).map(move |i| (va.wrapping_add(i * bytes), bytes))
}

/// Whether another GPU may reach the buffer: never over PCIe, since Debian's kernels have no
/// `CONFIG_HSA_AMD_P2P`.
fn reachable(owner: &ProcessDevice, peer: &ProcessDevice, buffer: &Buffer) -> bool {
    let vram = owner.is_video(buffer);
    let io = buffer.flags.intersects(AllocFlags::DOORBELL | AllocFlags::MMIO_REMAP);
    let (a, b) = (&owner.device.info, &peer.device.info);
    owner.gpu == peer.gpu || !(vram || io) || vram && a.hive != 0 && a.hive == b.hive
}

fn map(process: &mut Process, owner: usize, number: u32, gpu_id: u32) -> Result<(), Errno> {
    let peer = process.device_index(gpu_id).ok_or(Errno::INVAL)?;
    let device = process.devices.get(peer).ok_or(Errno::INVAL)?;
    device.bound()?;
    let owning = process.devices.get(owner).ok_or(Errno::INVAL)?;
    let buffer = owning.buffers.get(&number).ok_or(Errno::NOMEM)?.clone();
    let mine = |mapping: &Mapping| mapping.owner == owner && mapping.number == number;
    if device.mappings.values().any(mine) {
        return Ok(());
    }
    if buffer.va == 0 || !reachable(owning, device, &buffer) {
        return Err(Errno::INVAL);
    }
    for (va, bytes) in places(&buffer) {
        let end = va.checked_add(bytes).ok_or(Errno::INVAL)?;
        if !va.is_multiple_of(PAGE) || end > VM_BYTES || device.overlaps(va, bytes) {
            return Err(Errno::INVAL);
        }
    }
    let access = Access {
        write: buffer.flags.contains(AllocFlags::WRITABLE),
        execute: buffer.flags.contains(AllocFlags::EXECUTABLE),
    };
    let host = match &buffer.memory {
        Memory::Region(region) => region.base(),
        Memory::User(address) => {
            let address = usize::try_from(*address).map_err(|_| Errno::FAULT)?;
            std::ptr::with_exposed_provenance_mut(address)
        }
    };
    let device = process.devices.get_mut(peer).ok_or(Errno::INVAL)?;
    for (va, bytes) in places(&buffer) {
        // SAFETY:
        // - A region is `bytes` long, mapped readable and writable, and kept by the buffer, which
        //   cannot be freed while it is mapped; `Model::drop` stops the waves first.
        // - User memory was found mapped, and writable if the GPU may write, when the buffer was
        //   made. The caller of the ioctl keeps it until the buffer is freed (contract of
        //   `Kernel::ioctl`); unmapping it through the model takes it off this table.
        // - The model accesses regions through atomics and raw pointers only.
        let mapped = unsafe { device.device.space.map(va, bytes, host, access) };
        mapped.map_err(|_| Errno::INVAL)?;
        device.mappings.insert(va, Mapping { bytes, owner, number, queues: 0 });
    }
    Ok(())
}

fn unmap(
    process: &mut Process,
    owner: usize,
    number: u32,
    gpu_id: u32,
    check_queues: bool,
) -> Result<(), Errno> {
    let device = process.device(gpu_id)?;
    let mine = |mapping: &Mapping| mapping.owner == owner && mapping.number == number;
    let places: Vec<(u64, Mapping)> =
        device.mappings.iter().filter(|(_, m)| mine(m)).map(|(va, m)| (*va, *m)).collect();
    if places.is_empty() {
        return Err(Errno::INVAL);
    }
    if check_queues && places.iter().any(|(_, mapping)| mapping.queues > 0) {
        return Err(Errno::BUSY);
    }
    for (va, mapping) in places {
        device.mappings.remove(&va);
        device.device.space.unmap(va, mapping.bytes);
    }
    Ok(())
}

impl Context<'_> {
    pub(super) fn map_memory_to_gpu(&mut self, args: &mut MapMemoryToGpuArgs) -> Result<(), Errno> {
        let ids = device_ids(args.device_ids_array_ptr, args.n_devices, args.n_success)?;
        let process = self.process()?;
        let (gpu_id, number) = split_handle(args.handle.0);
        let owner = process.device_index(gpu_id).ok_or(Errno::INVAL)?;
        let device = process.devices.get(owner).ok_or(Errno::INVAL)?;
        device.bound()?;
        if !device.buffers.contains_key(&number) {
            return Err(Errno::NOMEM);
        }
        for (id, done) in ids.iter().zip(1..).skip(usize::try_from(args.n_success).unwrap_or(0)) {
            map(process, owner, number, *id)?;
            args.n_success = done;
        }
        Ok(())
    }

    pub(super) fn unmap_memory_from_gpu(
        &mut self,
        args: &mut UnmapMemoryFromGpuArgs,
    ) -> Result<(), Errno> {
        let check_queues = self.model.config.profile.checks_queue_buffers();
        let ids = device_ids(args.device_ids_array_ptr, args.n_devices, args.n_success)?;
        let process = self.process()?;
        let (gpu_id, number) = split_handle(args.handle.0);
        let owner = process.device_index(gpu_id).ok_or(Errno::INVAL)?;
        let device = process.devices.get(owner).ok_or(Errno::INVAL)?;
        if !device.buffers.contains_key(&number) {
            return Err(Errno::NOMEM);
        }
        for (id, done) in ids.iter().zip(1..).skip(usize::try_from(args.n_success).unwrap_or(0)) {
            unmap(process, owner, number, *id, check_queues)?;
            args.n_success = done;
        }
        Ok(())
    }
}
