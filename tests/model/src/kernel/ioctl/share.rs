//! dma-buf ioctls.

use std::sync::Arc;

use kfd::abi::{AllocFlags, ExportDmabufArgs, GetDmabufInfoArgs, ImportDmabufArgs};
use kfd::sys::{Errno, FileId};
use kfd::{GpuId, MemHandle};

use super::super::files::{DmaBuf, Kind};
use super::super::process::{Buffer, Memory};
use super::{Context, join_handle, split_handle};

impl Context<'_> {
    /// The dma-buf behind a descriptor.
    fn dma_buf(&mut self, fd: u32) -> Result<DmaBuf, Errno> {
        let file = FileId(i32::try_from(fd).map_err(|_| Errno::BADF)?);
        match self.state.files.get(file)? {
            Kind::DmaBuf(buffer) => Ok(buffer.clone()),
            _ => Err(Errno::INVAL),
        }
    }

    pub(super) fn get_dmabuf_info(&mut self, args: &mut GetDmabufInfoArgs) -> Result<(), Errno> {
        if self.process()?.devices.is_empty() {
            return Err(Errno::INVAL);
        }
        let buffer = self.dma_buf(args.dmabuf_fd).map_err(|errno| {
            // A descriptor that is none gives EINVAL through amdgpu.
            if errno == Errno::BADF { Errno::INVAL } else { errno }
        })?;
        args.size = buffer.bytes;
        args.metadata_size = 0;
        args.gpu_id = GpuId(buffer.gpu_id);
        let kept = AllocFlags::VRAM | AllocFlags::GTT | AllocFlags::PUBLIC;
        args.flags = AllocFlags::from_bits_retain(buffer.flags.bits() & kept.bits());
        Ok(())
    }

    pub(super) fn import_dmabuf(&mut self, args: &mut ImportDmabufArgs) -> Result<(), Errno> {
        self.process()?.device(args.gpu_id.0)?.bound()?;
        let buffer = self.dma_buf(args.dmabuf_fd).map_err(|_| Errno::INVAL)?;
        let process = self.process()?;
        let mut mmap_offset = process.next_mmap_offset;
        process.next_mmap_offset += buffer.bytes;
        if process.arena.is_plain() {
            mmap_offset = buffer.region.backing().1;
        }
        let device = process.device(args.gpu_id.0)?;
        let number = device.insert(Buffer {
            memory: Memory::Region(buffer.region),
            va: args.va_addr,
            bytes: buffer.bytes,
            flags: buffer.flags | AllocFlags::WRITABLE | AllocFlags::EXECUTABLE,
            mmap_offset,
            double: false,
            imported: true,
        });
        args.handle = MemHandle(join_handle(args.gpu_id.0, number));
        Ok(())
    }

    pub(super) fn export_dmabuf(&mut self, args: &mut ExportDmabufArgs) -> Result<(), Errno> {
        let (gpu_id, number) = split_handle(args.handle.0);
        let device = self.process()?.device(gpu_id)?;
        let buffer = device.buffers.get(&number).ok_or(Errno::INVAL)?;
        // An APU's buffers lie in system memory, whatever was asked for.
        let flags = if device.device.info.unified && buffer.flags.contains(AllocFlags::VRAM) {
            buffer.flags.difference(AllocFlags::VRAM | AllocFlags::PUBLIC) | AllocFlags::GTT
        } else {
            buffer.flags
        };
        let exported = match &buffer.memory {
            Memory::Region(region) => {
                DmaBuf { region: Arc::clone(region), bytes: buffer.bytes, flags, gpu_id }
            }
            Memory::User(_) => return Err(Errno::PERM),
        };
        let file = self.state.files.insert(Kind::DmaBuf(exported));
        args.dmabuf_fd = u32::try_from(file.0).map_err(|_| Errno::MFILE)?;
        Ok(())
    }
}
