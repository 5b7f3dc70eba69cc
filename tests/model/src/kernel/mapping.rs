//! `mmap` and `munmap`: what the driver maps is the same memory that the GPU sees.
#![allow(unsafe_code)] // maps and unmaps at addresses that the driver owns

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::Arc;

use kfd::abi::{DOORBELL_PAGE_BYTES, MmapType};
use kfd::sys::{Backing, Errno, FileId, MapRequest, Protection};
use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};

use super::files::Kind;
use super::ioctl::svm;
use super::process::Memory;
use super::{Model, Region, State};
use crate::fault::Call;
use crate::gpu::PAGE;
use crate::smi;

/// Mappings of the driver's that show a region: their pages must not be given away.
#[derive(Debug, Default)]
pub(super) struct Mappings(BTreeMap<u64, (u64, Arc<Region>)>);

impl Mappings {
    /// Whether any of it lies in the range.
    pub(super) fn overlaps(&self, start: u64, bytes: u64) -> bool {
        let before = self.0.range(..start.saturating_add(bytes)).next_back();
        before.is_some_and(|(at, (len, _))| at + len > start)
    }

    /// Forgets what is mapped in the range; the rest of a mapping that is cut stays.
    fn remove(&mut self, start: u64, bytes: u64) {
        let end = start.saturating_add(bytes);
        let overlapping: Vec<u64> = self
            .0
            .range(..end)
            .rev()
            .take_while(|(at, (len, _))| *at + len > start)
            .map(|(at, _)| *at)
            .collect();
        for at in overlapping {
            let Some((len, region)) = self.0.remove(&at) else { continue };
            if at < start {
                self.0.insert(at, (start - at, Arc::clone(&region)));
            }
            if at + len > end {
                self.0.insert(end, (at + len - end, region));
            }
        }
    }
}

fn address(pointer: NonNull<u8>) -> u64 {
    pointer.as_ptr().addr() as u64
}

fn protection(protection: Protection) -> ProtFlags {
    let mut flags = ProtFlags::empty();
    flags.set(ProtFlags::READ, protection.contains(Protection::READ));
    flags.set(ProtFlags::WRITE, protection.contains(Protection::WRITE));
    flags
}

impl Model {
    /// What a mapping of a file shows, from its start.
    pub(super) fn source(
        &self,
        state: &mut State,
        file: FileId,
        offset: u64,
        bytes: u64,
    ) -> Result<Arc<Region>, Errno> {
        let pid = std::process::id();
        match state.files.get(file)? {
            Kind::Kfd { .. } => self.kfd_source(state, offset, bytes),
            Kind::Render { .. } => {
                let process = state.processes.get(&pid).ok_or(Errno::INVAL)?;
                let (device, buffer) = process
                    .devices
                    .iter()
                    .flat_map(|device| device.buffers.values().map(move |buffer| (device, buffer)))
                    .find(|(_, buffer)| buffer.mmap_offset == offset && offset != 0)
                    .ok_or(Errno::INVAL)?;
                if device.drm_file != Some(file) {
                    return Err(Errno::ACCESS);
                }
                if bytes > buffer.bytes {
                    return Err(Errno::INVAL);
                }
                match &buffer.memory {
                    Memory::Region(region) => Ok(Arc::clone(region)),
                    Memory::User(_) => Err(Errno::PERM),
                }
            }
            Kind::DmaBuf(buffer) if offset == 0 && bytes <= buffer.bytes => {
                Ok(Arc::clone(&buffer.region))
            }
            Kind::DmaBuf(_) => Err(Errno::INVAL),
            Kind::Text { .. } | Kind::Smi(_) | Kind::Host(_) => Err(Errno::NODEV),
        }
    }

    /// `kfd_mmap`.
    fn kfd_source(&self, state: &mut State, offset: u64, bytes: u64) -> Result<Arc<Region>, Errno> {
        // The process is looked up by the caller, not by the file.
        let process = state.processes.get_mut(&std::process::id()).ok_or(Errno::INVAL)?;
        let arena = Arc::clone(&process.arena);
        let offset = if arena.is_plain() { process.literal_offset(offset) } else { offset };
        let gpu_id = MmapType::gpu_of(offset).0;
        let device = process.device(gpu_id).map_err(|_| Errno::NODEV);
        match MmapType::of(offset) {
            MmapType::DOORBELL => {
                let device = device?;
                if bytes != DOORBELL_PAGE_BYTES {
                    return Err(Errno::INVAL);
                }
                device.doorbell_page(&arena).map_err(|_| Errno::NOMEM)
            }
            MmapType::MMIO => {
                let device = device?;
                if bytes != PAGE {
                    return Err(Errno::INVAL);
                }
                device.mmio_page(&arena).map_err(|_| Errno::NOMEM)
            }
            MmapType::EVENTS => process.events.map_page(bytes),
            // The trap page of APUs of gfx8, which the model does not have.
            _ => {
                device?;
                Err(Errno::INVAL)
            }
        }
    }

    /// # Safety
    /// As for [`kfd::sys::Kernel::mmap`].
    pub(super) unsafe fn map(&self, request: &MapRequest) -> Result<NonNull<u8>, Errno> {
        self.config.faults.check(&Call::Mmap)?;
        let bytes = request.bytes as u64;
        if bytes == 0 || !bytes.is_multiple_of(PAGE) {
            return Err(Errno::INVAL);
        }
        let mut state = self.lock();
        let state: &mut State = &mut state;
        let source = match request.backing {
            Backing::File { file, offset } => Some(self.source(state, file, offset, bytes)?),
            Backing::Reserve | Backing::Anonymous => None,
        };
        let at = request.at.map_or(std::ptr::null_mut(), NonNull::as_ptr).cast::<c_void>();
        let fixed = if request.at.is_some() { MapFlags::FIXED } else { MapFlags::empty() };
        let prot = protection(request.protection);
        if let Some(at) = request.at {
            self.before_unmap(state, address(at), bytes);
        }
        let mapped = match (&source, request.backing) {
            (Some(source), _) => {
                let (file, offset) = source.backing();
                let flags = MapFlags::SHARED | fixed;
                // SAFETY: the caller owns the range when `at` is given; otherwise the kernel
                // chooses a free one. The memfd covers the region.
                unsafe { mmap(at, request.bytes, prot, flags, file, offset) }
            }
            (None, backing) => {
                let flags = match backing {
                    Backing::Reserve => MapFlags::PRIVATE | MapFlags::NORESERVE,
                    _ => MapFlags::SHARED,
                };
                // SAFETY: as above.
                unsafe { mmap_anonymous(at, request.bytes, prot, flags | fixed) }
            }
        }?;
        let mapped = NonNull::new(mapped.cast::<u8>()).ok_or(Errno::NOMEM)?;
        if let Some(source) = source {
            state.mappings.0.insert(address(mapped), (bytes, source));
        }
        Ok(mapped)
    }

    /// # Safety
    /// As for [`kfd::sys::Kernel::munmap`].
    pub(super) unsafe fn unmap(&self, at: NonNull<u8>, bytes: usize) -> Result<(), Errno> {
        self.config.faults.check(&Call::Munmap)?;
        let mut state = self.lock();
        self.before_unmap(&mut state, address(at), bytes as u64);
        // SAFETY: the caller owns the range and nothing uses it any more.
        unsafe { munmap(at.as_ptr().cast::<c_void>(), bytes) }
    }

    /// The MMU notifier: user memory that a GPU has mapped goes away. Its queues are evicted; they
    /// would come back only if the pages did, which the model does not follow.
    fn before_unmap(&self, state: &mut State, start: u64, bytes: u64) {
        state.mappings.remove(start, bytes);
        let Some(process) = state.processes.get_mut(&std::process::id()) else { return };
        svm::before_unmap(process, start, bytes, &self.diagnostics);
        let end = start.saturating_add(bytes);
        let mut lost = Vec::new();
        for device in &process.devices {
            for (&va, mapping) in &device.mappings {
                let owner = process.devices.get(mapping.owner);
                let buffer = owner.and_then(|owner| owner.buffers.get(&mapping.number));
                let Some(buffer) = buffer else { continue };
                if let Memory::User(user) = buffer.memory
                    && user < end
                    && start < user + buffer.bytes
                {
                    lost.push((Arc::clone(&device.device), va, mapping.bytes));
                }
            }
        }
        for (device, va, bytes) in lost {
            self.diagnostics.add(
                device.info.id,
                None,
                format!(
                    "user memory mapped at {va:#x} was unmapped by the process: queues evicted"
                ),
            );
            process.runner.evict(&device);
            device.tell_eviction(smi::TRIGGER_USERPTR);
            device.space.unmap(va, bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Arena;
    use super::*;

    #[test]
    fn a_hole_in_a_mapping_leaves_both_ends() {
        let region = Arena::new().unwrap().region(4096).unwrap();
        let mut mappings = Mappings::default();
        mappings.0.insert(0x1000, (0x5000, Arc::clone(&region)));
        mappings.remove(0x2000, 0x1000);
        let left: Vec<_> = mappings.0.iter().map(|(at, (len, _))| (*at, *len)).collect();
        assert_eq!(left, [(0x1000, 0x1000), (0x3000, 0x3000)]);
        mappings.remove(0, 0x10000);
        assert_eq!(Arc::strong_count(&region), 1);
    }
}
