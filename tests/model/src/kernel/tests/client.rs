//! A client of KFD that checks nothing for itself.
#![allow(unsafe_code)] // calls the trait's unsafe methods

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64};

use kfd::abi::request::find;
use kfd::abi::{
    AcquireVmArgs, AllocFlags, AllocMemoryOfGpuArgs, CreateEventArgs, CreateQueueArgs, EventData,
    EventType, FreeMemoryOfGpuArgs, MapMemoryToGpuArgs, QueueType, UnmapMemoryFromGpuArgs,
    WaitEventsArgs, WaitResult,
};
use kfd::sys::{Backing, Errno, FileId, Kernel, MapRequest, OpenFlags, Protection};
use kfd::{GpuId, MemHandle};
use zerocopy::IntoBytes;

use crate::kernel::Model;
use crate::{Preset, Profile};

/// A client with one or more GPUs, each with its address space.
pub(in crate::kernel) struct Client {
    pub(in crate::kernel) model: Arc<Model>,
    pub(in crate::kernel) kfd: FileId,
    pub(in crate::kernel) render: Vec<FileId>,
    pub(in crate::kernel) gpus: Vec<u32>,
}

/// Memory of the client's, seen by CPU and GPU at the same address.
#[derive(Clone, Copy, Debug)]
pub(in crate::kernel) struct Page {
    pub(in crate::kernel) at: NonNull<u8>,
    pub(in crate::kernel) bytes: usize,
    pub(in crate::kernel) handle: u64,
}

impl Page {
    pub(in crate::kernel) fn address(&self) -> u64 {
        self.at.as_ptr().addr() as u64
    }

    pub(in crate::kernel) fn u64(&self, at: usize) -> &AtomicU64 {
        assert!(at + 8 <= self.bytes && at.is_multiple_of(8));
        // SAFETY: inside the page by the check above.
        let word = unsafe { self.at.as_ptr().add(at).cast::<u64>() };
        // SAFETY: aligned, mapped for the test's life, accessed atomically by everyone.
        unsafe { AtomicU64::from_ptr(word) }
    }

    pub(in crate::kernel) fn u32(&self, at: usize) -> &AtomicU32 {
        assert!(at + 4 <= self.bytes && at.is_multiple_of(4));
        // SAFETY: inside the page by the check above.
        let word = unsafe { self.at.as_ptr().add(at).cast::<u32>() };
        // SAFETY: aligned, mapped for the test's life, accessed atomically by everyone.
        unsafe { AtomicU32::from_ptr(word) }
    }
}

pub(in crate::kernel) const GTT: AllocFlags = AllocFlags::GTT
    .union(AllocFlags::WRITABLE)
    .union(AllocFlags::EXECUTABLE)
    .union(AllocFlags::COHERENT)
    .union(AllocFlags::UNCACHED);

impl Client {
    pub(in crate::kernel) fn new(model: &Arc<Model>) -> Self {
        let client = Self::without_vm(model);
        for (render, gpu) in client.render.iter().zip(&client.gpus) {
            let drm_fd = render.0.unsigned_abs();
            let mut args = AcquireVmArgs { drm_fd, gpu_id: GpuId(*gpu) };
            assert_eq!(client.call(0x15, &mut args), Ok(0));
        }
        client
    }

    pub(in crate::kernel) fn without_vm(model: &Arc<Model>) -> Self {
        let open = |path: &str| model.open(path, OpenFlags::READ_WRITE).unwrap();
        let minors = model.gpus.iter().map(|gpu| gpu.render_minor);
        Self {
            model: Arc::clone(model),
            kfd: open("/dev/kfd"),
            render: minors.map(|minor| open(&format!("/dev/dri/renderD{minor}"))).collect(),
            gpus: model.gpus.iter().map(|gpu| gpu.id).collect(),
        }
    }

    /// A stepped client of a preset.
    pub(in crate::kernel) fn stepped(preset: Preset, profile: Profile) -> Self {
        Self::new(&Model::builder().gpu(preset).profile(profile).stepped(true).build())
    }

    pub(in crate::kernel) fn gpu(&self) -> GpuId {
        GpuId(self.gpus[0])
    }

    pub(in crate::kernel) fn raw(&self, request: u32, arg: &mut [u8]) -> Result<u32, Errno> {
        // SAFETY: the tests pass the argument that the number wants, or one that must fail.
        unsafe { self.model.ioctl(self.kfd, request, arg) }
    }

    pub(in crate::kernel) fn call<T: IntoBytes + zerocopy::FromBytes>(
        &self,
        number: u8,
        args: &mut T,
    ) -> Result<u32, Errno> {
        self.raw(find(number).unwrap().request(), args.as_mut_bytes())
    }

    pub(in crate::kernel) fn map(
        &self,
        at: Option<NonNull<u8>>,
        bytes: usize,
        backing: Backing,
    ) -> Result<NonNull<u8>, Errno> {
        let protection = match backing {
            Backing::Reserve => Protection::empty(),
            _ => Protection::READ | Protection::WRITE,
        };
        // SAFETY: `at` is a range that the test reserved.
        unsafe { self.model.mmap(&MapRequest { at, bytes, protection, backing }) }
    }

    pub(in crate::kernel) fn unmap(&self, at: NonNull<u8>, bytes: usize) -> Result<(), Errno> {
        // SAFETY: the test mapped the range and does not use it any more.
        unsafe { self.model.munmap(at, bytes) }
    }

    pub(in crate::kernel) fn alloc(
        &self,
        gpu: usize,
        flags: AllocFlags,
        va: u64,
        size: u64,
    ) -> Result<AllocMemoryOfGpuArgs, Errno> {
        let gpu_id = GpuId(self.gpus[gpu]);
        let mut args =
            AllocMemoryOfGpuArgs { va_addr: va, size, flags, gpu_id, ..Default::default() };
        self.call(0x16, &mut args).map(|_| args)
    }

    pub(in crate::kernel) fn map_to(&self, handle: u64, gpus: &[u32]) -> Result<u32, Errno> {
        let mut args = MapMemoryToGpuArgs {
            handle: MemHandle(handle),
            device_ids_array_ptr: gpus.as_ptr().addr() as u64,
            n_devices: u32::try_from(gpus.len()).unwrap(),
            n_success: 0,
        };
        self.call(0x18, &mut args)
    }

    pub(in crate::kernel) fn unmap_from(&self, handle: u64, gpus: &[u32]) -> Result<u32, Errno> {
        let mut args = UnmapMemoryFromGpuArgs {
            handle: MemHandle(handle),
            device_ids_array_ptr: gpus.as_ptr().addr() as u64,
            n_devices: u32::try_from(gpus.len()).unwrap(),
            n_success: 0,
        };
        self.call(0x19, &mut args)
    }

    pub(in crate::kernel) fn free(&self, handle: u64) -> Result<u32, Errno> {
        self.call(0x17, &mut FreeMemoryOfGpuArgs { handle: MemHandle(handle) })
    }

    /// Memory that CPU and GPUs share, at one address.
    pub(in crate::kernel) fn page(&self, flags: AllocFlags, bytes: usize) -> Page {
        let at = self.map(None, bytes, Backing::Reserve).unwrap();
        let va = at.as_ptr().addr() as u64;
        let args = self.alloc(0, flags, va, bytes as u64).unwrap();
        let offset = args.mmap_offset;
        let backing = Backing::File { file: self.render[0], offset };
        let video = flags.contains(AllocFlags::VRAM) && !self.model.gpus[0].unified;
        if !video || flags.contains(AllocFlags::PUBLIC) {
            assert_eq!(self.map(Some(at), bytes, backing), Ok(at));
        }
        self.map_to(args.handle.0, &self.gpus[..1]).unwrap();
        Page { at, bytes, handle: args.handle.0 }
    }

    pub(in crate::kernel) fn event(&self, kind: EventType) -> CreateEventArgs {
        let mut args = CreateEventArgs { event_type: kind, auto_reset: 1, ..Default::default() };
        assert_eq!(self.call(0x08, &mut args), Ok(0));
        args
    }

    pub(in crate::kernel) fn wait(
        &self,
        events: &mut [EventData],
        all: bool,
        timeout: u32,
    ) -> Result<WaitResult, Errno> {
        let mut args = WaitEventsArgs {
            events_ptr: events.as_mut_ptr().addr() as u64,
            num_events: u32::try_from(events.len()).unwrap(),
            wait_for_all: all.into(),
            timeout,
            wait_result: WaitResult(99),
        };
        self.call(0x0c, &mut args).map(|_| args.wait_result)
    }

    /// Arguments of a queue that the kernel accepts, with its buffers.
    pub(in crate::kernel) fn queue_args(&self, ring_bytes: usize) -> (CreateQueueArgs, [Page; 4]) {
        let info = &self.model.gpus[0];
        let ring = self.page(GTT, ring_bytes);
        let pointers = self.page(GTT, 4096);
        let eop = self.page(GTT, 4096);
        let bytes = info.save_area_bytes(info.save_area.cwsr);
        let save = self.page(GTT, usize::try_from(bytes).unwrap());
        for slot in 0..ring_bytes / 64 {
            ring.u32(slot * 64).store(1, std::sync::atomic::Ordering::Release);
        }
        pointers.u32(136).store(128, std::sync::atomic::Ordering::Release);
        let args = CreateQueueArgs {
            ring_base_address: ring.address(),
            write_pointer_address: pointers.address() + 56,
            read_pointer_address: pointers.address() + 128,
            ring_size: u32::try_from(ring_bytes).unwrap(),
            gpu_id: self.gpu(),
            queue_type: QueueType::COMPUTE_AQL,
            queue_percentage: 100,
            queue_priority: 7,
            eop_buffer_address: eop.address(),
            eop_buffer_size: 4096,
            ctx_save_restore_address: save.address(),
            ctx_save_restore_size: u32::try_from(info.save_area.cwsr).unwrap(),
            ctl_stack_size: u32::try_from(info.save_area.control_stack).unwrap(),
            ..Default::default()
        };
        (args, [ring, pointers, eop, save])
    }
}
