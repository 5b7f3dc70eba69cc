//! What KFD keeps for a process: memory, address spaces, queues, events.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use kfd::GpuId;
use kfd::abi::{AllocFlags, DOORBELL_PAGE_BYTES, MmapType, QueueType};
use kfd::sys::{Errno, FileId};

use super::arena::{Arena, Region};
use super::debug::Debug;
use super::svm::Ranges;
use crate::event::Events;
use crate::gpu::{GpuInfo, PAGE};
use crate::queue::{DOORBELL_SILENT, Device, Queue, Runner};

/// Where a buffer's bytes are.
#[derive(Clone, Debug)]
pub(crate) enum Memory {
    /// In the model's memory.
    Region(Arc<Region>),
    /// In the driver's, at this address.
    User(u64),
}

/// A buffer object.
#[derive(Clone, Debug)]
pub(crate) struct Buffer {
    pub(crate) memory: Memory,
    pub(crate) va: u64,
    /// Rounded up to pages.
    pub(crate) bytes: u64,
    pub(crate) flags: AllocFlags,
    /// Offset for `mmap` of the render node; 0 when there is none.
    pub(crate) mmap_offset: u64,
    /// Mapped twice, back to back (AQL_QUEUE_MEM).
    pub(crate) double: bool,
    /// Came as a dma-buf: another buffer's memory.
    pub(crate) imported: bool,
}

/// A buffer's place in the address space of a GPU.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mapping {
    pub(crate) bytes: u64,
    /// Index of the GPU that owns the buffer, and the buffer's number there.
    pub(crate) owner: usize,
    pub(crate) number: u32,
    /// Queues that need it.
    pub(crate) queues: u32,
}

/// A process's view of one GPU.
#[derive(Debug)]
pub(crate) struct ProcessDevice {
    /// Index into the model's GPUs.
    pub(crate) gpu: usize,
    /// Render node file given to ACQUIRE_VM.
    pub(crate) drm_file: Option<FileId>,
    /// What the packet processors see.
    pub(crate) device: Arc<Device>,
    /// Buffers by number; numbers are reused lowest first.
    pub(crate) buffers: BTreeMap<u32, Buffer>,
    /// What is mapped, by address.
    pub(crate) mappings: BTreeMap<u64, Mapping>,
    /// The doorbell page.
    pub(crate) doorbells: Option<Arc<Region>>,
    /// The page of HDP flush registers.
    pub(crate) mmio: Option<Arc<Region>>,
    /// Bytes of video memory allocated.
    pub(crate) vram_bytes: u64,
}

impl ProcessDevice {
    pub(crate) fn new(gpu: usize, info: &Arc<GpuInfo>) -> Self {
        Self {
            gpu,
            drm_file: None,
            device: Arc::new(Device::new(Arc::clone(info))),
            buffers: BTreeMap::new(),
            mappings: BTreeMap::new(),
            doorbells: None,
            mmio: None,
            vram_bytes: 0,
        }
    }

    /// `kfd_bind_process_to_device`.
    pub(crate) fn bound(&self) -> Result<(), Errno> {
        if self.drm_file.is_some() { Ok(()) } else { Err(Errno::NODEV) }
    }

    /// Stores a buffer under the lowest free number.
    pub(crate) fn insert(&mut self, buffer: Buffer) -> u32 {
        let number = (0..u32::MAX).find(|n| !self.buffers.contains_key(n)).unwrap_or(u32::MAX);
        self.buffers.insert(number, buffer);
        number
    }

    /// Whether a buffer is in video memory: an APU's never is.
    pub(crate) fn is_video(&self, buffer: &Buffer) -> bool {
        buffer.flags.contains(AllocFlags::VRAM) && !self.device.info.unified
    }

    /// Bytes of system memory in buffers.
    pub(crate) fn system_bytes(&self) -> u64 {
        let system = self.buffers.values().filter(|buffer| !self.is_video(buffer));
        system.map(|buffer| buffer.bytes).sum()
    }

    /// The mapping that covers `address`, with its start.
    pub(crate) fn mapping_at(&self, address: u64) -> Option<(u64, Mapping)> {
        let (start, mapping) = self.mappings.range(..=address).next_back()?;
        (address - start < mapping.bytes).then_some((*start, *mapping))
    }

    /// Whether a mapping overlaps the range.
    pub(crate) fn overlaps(&self, start: u64, bytes: u64) -> bool {
        let before = self.mappings.range(..start.saturating_add(bytes)).next_back();
        before.is_some_and(|(at, mapping)| at + mapping.bytes > start)
    }

    /// The doorbell page, made on first use: every doorbell silent.
    pub(crate) fn doorbell_page(&mut self, arena: &Arc<Arena>) -> io::Result<Arc<Region>> {
        if let Some(page) = &self.doorbells {
            return Ok(Arc::clone(page));
        }
        let page = arena.doorbell_region(DOORBELL_PAGE_BYTES)?;
        page.fill(DOORBELL_SILENT);
        self.doorbells = Some(Arc::clone(&page));
        Ok(page)
    }

    /// The page of HDP flush registers, made on first use.
    pub(crate) fn mmio_page(&mut self, arena: &Arc<Arena>) -> io::Result<Arc<Region>> {
        if let Some(page) = &self.mmio {
            return Ok(Arc::clone(page));
        }
        let page = arena.region(PAGE)?;
        self.mmio = Some(Arc::clone(&page));
        Ok(page)
    }
}

/// A queue and what it holds.
#[derive(Debug)]
pub(crate) struct QueueRecord {
    pub(crate) queue: Arc<Queue>,
    /// Index of its device in [`Process::devices`].
    pub(crate) device: usize,
    /// Starts of the mappings it needs.
    pub(crate) buffers: Vec<u64>,
    /// The ring is one of them.
    pub(crate) ring: Option<u64>,
    pub(crate) doorbell: u32,
    /// Position in the kernel's list, which is that of creation.
    pub(crate) order: u64,
    pub(crate) kind: QueueType,
    /// Bytes of the save area of one XCC.
    pub(crate) save_bytes: u32,
    /// First page and pages of a save area in SVM ranges.
    pub(crate) svm_save: Option<(u64, u64)>,
    /// The process chose compute units.
    pub(crate) has_cu_mask: bool,
    /// The debugger chose them, on chips with the workaround.
    pub(crate) debug_workaround: bool,
    /// DESTROY_QUEUE waits for the debugger to let it go.
    pub(crate) dying: bool,
    /// The user's number for the type: 0 compute, 1 SDMA, 4 SDMA xGMI, as sysfs shows it.
    pub(crate) sysfs_type: u32,
    pub(crate) has_gws: bool,
}

/// A process that has opened KFD.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    pub(crate) arena: Arc<Arena>,
    pub(crate) devices: Vec<ProcessDevice>,
    pub(crate) queues: BTreeMap<u32, QueueRecord>,
    /// Queues made so far.
    pub(crate) next_queue: u64,
    /// Shared virtual memory.
    pub(super) svm: Ranges,
    /// What a debugger sees and does.
    pub(crate) debug: Arc<Debug>,
    pub(crate) events: Arc<Events>,
    pub(crate) runner: Arc<Runner>,
    /// Next offset for `mmap` of a render node; DRM counts from 4 GiB.
    pub(crate) next_mmap_offset: u64,
}

/// First offset that DRM gives out.
pub(crate) const FIRST_MMAP_OFFSET: u64 = 1 << 32;

impl Process {
    /// The device with KFD's id `gpu_id`; 0 is none.
    pub(crate) fn device_index(&self, gpu_id: u32) -> Option<usize> {
        let wanted = |device: &ProcessDevice| gpu_id != 0 && device.device.info.id == gpu_id;
        self.devices.iter().position(wanted)
    }

    /// The device with KFD's id `gpu_id`.
    ///
    /// # Errors
    /// `EINVAL`.
    pub(crate) fn device(&mut self, gpu_id: u32) -> Result<&mut ProcessDevice, Errno> {
        let index = self.device_index(gpu_id).ok_or(Errno::INVAL)?;
        self.devices.get_mut(index).ok_or(Errno::INVAL)
    }

    /// Bytes of system memory that buffers and SVM ranges keep resident.
    pub(crate) fn system_bytes(&self) -> u64 {
        let bytes: u64 = self.devices.iter().map(ProcessDevice::system_bytes).sum();
        bytes + self.svm.pages() * PAGE
    }

    /// KFD's own offset of the region that lies at a plain offset; others stay as they are.
    pub(crate) fn literal_offset(&self, offset: u64) -> u64 {
        let at = |region: &Option<Arc<Region>>| {
            region.as_ref().is_some_and(|region| region.backing().1 == offset)
        };
        if offset != 0 && self.events.mmap_offset() == offset {
            return MmapType::EVENTS.offset(GpuId(0));
        }
        for device in &self.devices {
            let id = GpuId(device.device.info.id);
            if at(&device.doorbells) {
                return MmapType::DOORBELL.offset(id);
            }
            if at(&device.mmio) {
                return MmapType::MMIO.offset(id);
            }
        }
        offset
    }

    /// Forgets a queue's claims. The queue itself must have been taken off the runner.
    pub(crate) fn release(&mut self, record: &QueueRecord) {
        if let Some((first, pages)) = record.svm_save {
            self.svm.release(first, pages);
        }
        let Some(device) = self.devices.get_mut(record.device) else { return };
        for start in &record.buffers {
            if let Some(mapping) = device.mappings.get_mut(start) {
                mapping.queues = mapping.queues.saturating_sub(1);
            }
        }
    }
}
