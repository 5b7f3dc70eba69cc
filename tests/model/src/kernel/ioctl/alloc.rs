//! ALLOC_MEMORY_OF_GPU, FREE_MEMORY_OF_GPU, AVAILABLE_MEMORY.

use std::sync::Arc;

use kfd::abi::{
    AllocFlags, AllocMemoryOfGpuArgs, DOORBELL_PAGE_BYTES, FreeMemoryOfGpuArgs,
    GetAvailableMemoryArgs, MmapType,
};
use kfd::sys::Errno;
use kfd::{GpuId, MemHandle};

use super::super::process::{Buffer, Memory};
use super::super::user;
use super::{Context, join_handle, split_handle};
use crate::gpu::{GpuInfo, PAGE};

/// Video memory is handed out in pieces of this size.
const VRAM_GRANULE: u64 = 2 << 20;

/// `AMDGPU_VM_RESERVED_VRAM`.
const RESERVED_VRAM: u64 = 8 << 20;

/// Bytes of video memory that buffers may take: the kernel keeps some for page tables
/// (`ESTIMATE_PT_SIZE`).
fn usable_vram(info: &GpuInfo) -> u64 {
    info.vram_bytes.saturating_sub((info.vram_bytes >> 14).max(RESERVED_VRAM))
}

fn granules(bytes: u64) -> u64 {
    bytes.checked_next_multiple_of(VRAM_GRANULE).unwrap_or(u64::MAX)
}

impl Context<'_> {
    pub(super) fn alloc_memory_of_gpu(
        &mut self,
        args: &mut AllocMemoryOfGpuArgs,
    ) -> Result<(), Errno> {
        let flags = args.flags;
        if args.size == 0 {
            return Err(Errno::INVAL);
        }
        let system_limit = self.model.config.system_bytes;
        let process = self.process()?;
        let is_svm = |address: u64| {
            let last = address.saturating_add(args.size - 1);
            process.svm.overlaps(address / PAGE, last / PAGE)
        };
        // Video memory without an address has none to be taken.
        let placed = args.va_addr != 0 || !flags.contains(AllocFlags::VRAM);
        if placed && is_svm(args.va_addr)
            || flags.contains(AllocFlags::USERPTR) && is_svm(args.mmap_offset)
        {
            return Err(Errno::ADDRINUSE);
        }
        let system_used = process.system_bytes();
        let arena = Arc::clone(&process.arena);
        let mmap_offset = process.next_mmap_offset;
        let device = process.device(args.gpu_id.0)?;
        let info = Arc::clone(&device.device.info);
        let vram = flags.contains(AllocFlags::VRAM);
        if vram && flags.contains(AllocFlags::PUBLIC) && !info.large_bar {
            return Err(Errno::INVAL);
        }
        device.bound()?;
        if flags.contains(AllocFlags::DOORBELL) {
            if args.size != DOORBELL_PAGE_BYTES {
                return Err(Errno::INVAL);
            }
        } else if flags.contains(AllocFlags::MMIO_REMAP) && args.size != PAGE {
            return Err(Errno::INVAL);
        }
        let double = flags.contains(AllocFlags::AQL_QUEUE_MEM);
        let bytes = if double { args.size / 2 } else { args.size };
        let bytes = bytes.checked_next_multiple_of(PAGE).ok_or(Errno::NOMEM)?;
        if bytes == 0 {
            return Err(Errno::INVAL);
        }
        let over = |used: u64, limit| used.checked_add(bytes).is_none_or(|sum| sum > limit);
        let region = || arena.region(bytes).map_err(|_| Errno::NOMEM);
        // The first type that is set counts.
        let (memory, kfd_offset) = if vram {
            let used = if info.unified { device.vram_bytes } else { granules(device.vram_bytes) };
            if over(used, usable_vram(&info)) || info.unified && over(system_used, system_limit) {
                return Err(Errno::NOMEM);
            }
            device.vram_bytes += bytes;
            (Memory::Region(region()?), None)
        } else if flags.contains(AllocFlags::GTT) {
            if over(system_used, system_limit) {
                return Err(Errno::NOMEM);
            }
            (Memory::Region(region()?), None)
        } else if flags.contains(AllocFlags::USERPTR) {
            let address = args.mmap_offset;
            if address == 0 || !address.is_multiple_of(PAGE) {
                return Err(Errno::INVAL);
            }
            if over(system_used, system_limit) {
                return Err(Errno::NOMEM);
            }
            let writable = flags.contains(AllocFlags::WRITABLE);
            if !user::is_ordinary_memory(address, bytes, writable) {
                return Err(Errno::FAULT);
            }
            (Memory::User(address), None)
        } else if flags.contains(AllocFlags::DOORBELL) {
            let page = device.doorbell_page(&arena).map_err(|_| Errno::NOMEM)?;
            (Memory::Region(page), None)
        } else if flags.contains(AllocFlags::MMIO_REMAP) {
            let page = device.mmio_page(&arena).map_err(|_| Errno::NOMEM)?;
            let offset = page.mmap_offset(MmapType::MMIO, GpuId(info.id));
            (Memory::Region(page), Some(offset))
        } else {
            return Err(Errno::INVAL);
        };
        let mmap_offset = match &memory {
            Memory::Region(region) if arena.is_plain() => region.backing().1,
            _ => mmap_offset,
        };
        let number = device.insert(Buffer {
            memory,
            va: args.va_addr,
            bytes,
            flags,
            mmap_offset,
            double,
            imported: false,
        });
        process.next_mmap_offset += bytes;
        args.handle = MemHandle(join_handle(info.id, number));
        args.mmap_offset = kfd_offset.unwrap_or(mmap_offset);
        Ok(())
    }

    pub(super) fn free_memory_of_gpu(
        &mut self,
        args: &mut FreeMemoryOfGpuArgs,
    ) -> Result<(), Errno> {
        let process = self.process()?;
        if process.events.page_handle() == Some(args.handle.0) {
            return Err(Errno::PERM);
        }
        let (gpu_id, number) = split_handle(args.handle.0);
        let index = process.device_index(gpu_id).ok_or(Errno::INVAL)?;
        let is_this = |mapping: &super::super::process::Mapping| {
            mapping.owner == index && mapping.number == number
        };
        let mapped = process.devices.iter().any(|d| d.mappings.values().any(is_this));
        let device = process.devices.get_mut(index).ok_or(Errno::INVAL)?;
        if !device.buffers.contains_key(&number) {
            return Err(Errno::INVAL);
        }
        if mapped {
            return Err(Errno::BUSY);
        }
        if let Some(buffer) = device.buffers.remove(&number)
            && buffer.flags.contains(AllocFlags::VRAM)
            && !buffer.imported
        {
            device.vram_bytes = device.vram_bytes.saturating_sub(buffer.bytes);
        }
        Ok(())
    }

    pub(super) fn available_memory(
        &mut self,
        args: &mut GetAvailableMemoryArgs,
    ) -> Result<(), Errno> {
        let system_limit = self.model.config.system_bytes;
        let process = self.process()?;
        let system_used = process.system_bytes();
        let device = process.device(args.gpu_id.0)?;
        let info = &device.device.info;
        let vram = |buffer: &&Buffer| buffer.flags.contains(AllocFlags::VRAM) && !buffer.imported;
        let sizes = device.buffers.values().filter(vram).map(|buffer| buffer.bytes);
        if info.unified {
            let free = usable_vram(info).saturating_sub(sizes.sum());
            let available = free.min(system_limit.saturating_sub(system_used));
            args.available = available - available % PAGE;
        } else {
            // Each allocation counts in whole granules here.
            let free = usable_vram(info).saturating_sub(sizes.map(granules).sum());
            args.available = free - free % VRAM_GRANULE;
        }
        Ok(())
    }
}
