//! SVM and SET_XNACK_MODE, of kernels with `CONFIG_HSA_AMD_SVM`.
//!
//! Source: Linux 6.12.117, kfd_svm.c, kfd_chardev.c (docs/ABI.md §Model, SVM).
#![allow(unsafe_code)] // hands host addresses to the GPU's page table

use kfd::abi::{
    SetXnackModeArgs, SvmArgs, SvmAttrType, SvmAttribute, SvmFlags, SvmLocation, SvmOp,
};
use kfd::sys::Errno;
use zerocopy::{FromBytes, IntoBytes};

use super::super::process::Process;
use super::super::svm::{Change, Gpus, Range};
use super::super::{State, user};
use super::Context;
use crate::diagnostics::Diagnostics;
use crate::gpu::PAGE;
use crate::memory::Access;
use crate::smi;

/// Bytes of one attribute.
const ATTRIBUTE: usize = size_of::<SvmAttribute>();

/// Places where memory can be that are no GPUs.
const SYSTEM: u32 = SvmLocation::SYSMEM.0;
const UNDEFINED: u32 = SvmLocation::UNDEFINED.0;

/// GPUs of the process that can have SVM.
fn supported(process: &Process) -> Gpus {
    let devices = process.devices.iter().enumerate();
    devices.filter(|(_, device)| device.device.info.has_svm()).map(|(index, _)| index).collect()
}

/// `svm_range_check_attr`.
fn check(process: &Process, attributes: &[SvmAttribute]) -> Result<Vec<Change>, Errno> {
    let supported = supported(process);
    let gpu = |id: u32| {
        let index = process.device_index(id).ok_or(Errno::INVAL)?;
        if supported.contains(index) { Ok(index) } else { Err(Errno::INVAL) }
    };
    let change = |attribute: &SvmAttribute| {
        let value = attribute.value;
        Ok(match attribute.kind {
            SvmAttrType::PREFERRED_LOC if [SYSTEM, UNDEFINED].contains(&value) => {
                Change::Preferred(value)
            }
            SvmAttrType::PREFERRED_LOC => gpu(value).map(|_| Change::Preferred(value))?,
            // Nothing can be prefetched to nowhere.
            SvmAttrType::PREFETCH_LOC if value == SYSTEM => Change::Prefetch(value),
            SvmAttrType::PREFETCH_LOC => gpu(value).map(|_| Change::Prefetch(value))?,
            SvmAttrType::ACCESS => Change::Access(gpu(value)?),
            SvmAttrType::ACCESS_IN_PLACE => Change::InPlace(gpu(value)?),
            SvmAttrType::NO_ACCESS => Change::NoAccess(gpu(value)?),
            SvmAttrType::SET_FLAGS => Change::SetFlags(value),
            SvmAttrType::CLR_FLAGS => Change::ClearFlags(value),
            SvmAttrType::GRANULARITY => Change::Granularity(value),
            _ => return Err(Errno::INVAL),
        })
    };
    attributes.iter().map(change).collect()
}

/// Whether the change has page tables written again (`update_mapping`, XNACK off).
fn updates_mapping(change: &Change) -> bool {
    !matches!(change, Change::Preferred(_) | Change::Prefetch(_) | Change::Granularity(_))
}

/// `svm_range_is_valid`: ordinary mappings of the CPU everywhere, and none of a buffer on any GPU.
fn check_pages(state: &State, start: u64, bytes: u64) -> Result<(), Errno> {
    if start.checked_add(bytes).is_none() {
        return Err(Errno::OVERFLOW);
    }
    let areas = user::areas(start, bytes).ok_or(Errno::FAULT)?;
    // Buffers, doorbells and event pages are mapped as VM_IO and VM_PFNMAP.
    if areas.iter().any(|area| area.special) || state.mappings.overlaps(start, bytes) {
        return Err(Errno::FAULT);
    }
    let process = state.processes.get(&std::process::id()).ok_or(Errno::BADF)?;
    let taken = process.devices.iter().any(|device| device.overlaps(start, bytes));
    if taken { Err(Errno::ADDRINUSE) } else { Ok(()) }
}

/// `svm_range_validate_and_map`: the GPUs that reach the range get its pages, at its own address.
fn map(process: &mut Process, first: u64, diagnostics: &Diagnostics) -> Result<(), Errno> {
    let Some(range) = process.svm.get(first).cloned() else { return Ok(()) };
    let (start, bytes) = (first * PAGE, (range.last - first + 1) * PAGE);
    let gpus = range.reachable();
    for device in gpus.iter().filter_map(|gpu| process.devices.get(gpu)) {
        if device.bound().is_err() {
            let text = format!(
                "SVM range at {start:#x} given to a GPU without ACQUIRE_VM: EINVAL here, but Linux \
                 6.12.117 reads through a null pointer before it checks"
            );
            diagnostics.add(device.device.info.id, None, text);
            return Err(Errno::INVAL);
        }
    }
    if gpus.is_empty() {
        return Ok(());
    }
    let mut last_is_readable = false;
    for area in user::areas(start, bytes).ok_or(Errno::FAULT)? {
        let length = area.end - area.start;
        last_is_readable = area.read;
        for device in gpus.iter().filter_map(|gpu| process.devices.get(gpu)) {
            let space = &device.device.space;
            if !area.read {
                space.unmap(area.start, length);
                continue;
            }
            let access = Access {
                write: area.write && !range.has_flag(SvmFlags::GPU_RO),
                execute: range.has_flag(SvmFlags::GPU_EXEC),
            };
            let at = usize::try_from(area.start).map_err(|_| Errno::FAULT)?;
            let host = std::ptr::with_exposed_provenance_mut(at);
            // SAFETY:
            // - The range was found mapped just now, readable, and writable if the GPU may write.
            //   The caller of the ioctl keeps it while it is an SVM range (contract of
            //   `Kernel::ioctl`); unmapping it through the model takes it off this table.
            // - The caller accesses memory that it shares with a GPU atomically or through raw
            //   pointers (same contract).
            let mapped = unsafe { space.remap(area.start, length, host, access) };
            mapped.map_err(|_| Errno::INVAL)?;
        }
    }
    if let Some(range) = process.svm.get_mut(first) {
        range.translated = range.translated.union(gpus);
        range.mapped |= last_is_readable;
    }
    Ok(())
}

/// Takes an unmapped part of a range off the GPUs (`svm_range_unmap_from_cpu`).
fn unmap(process: &Process, first: u64, range: &Range, diagnostics: &Diagnostics) {
    let (start, pages) = (first * PAGE, range.last - first + 1);
    if range.queues > 0 {
        let text = format!("save area of a queue at {start:#x} was unmapped: all queues evicted");
        diagnostics.add(0, None, text);
        for device in &process.devices {
            process.runner.evict(&device.device);
            device.device.tell_eviction(smi::TRIGGER_SVM);
        }
    }
    for (gpu, device) in process.devices.iter().enumerate() {
        let reachable = range.reachable().contains(gpu);
        if range.mapped && reachable {
            device.device.tell_svm_unmap(first, pages);
        }
        if range.translated.contains(gpu) {
            device.device.space.unmap(start, pages * PAGE);
            if !reachable {
                let text = format!(
                    "SVM range at {start:#x} was unmapped by the process after the GPU lost access: \
                     Linux 6.12.117 leaves the GPU's translation, the model removes it"
                );
                diagnostics.add(device.device.info.id, None, text);
            }
        }
    }
}

/// The MMU notifier of SVM ranges: the process unmaps the addresses, or maps something else there.
pub(in crate::kernel) fn before_unmap(
    process: &mut Process,
    start: u64,
    bytes: u64,
    diagnostics: &Diagnostics,
) {
    let Some(last) = start.checked_add(bytes.saturating_sub(1)).filter(|_| bytes > 0) else {
        return;
    };
    for (first, range) in process.svm.remove(start / PAGE, last / PAGE) {
        unmap(process, first, &range, diagnostics);
    }
}

impl Context<'_> {
    /// Whether the kernel was built with SVM: the topology shows it.
    fn kernel_has_svm(&self) -> bool {
        self.model.gpus.iter().any(|gpu| gpu.has_svm())
    }

    /// `svm_range_set_max_pages`: the longest range, in pages.
    fn longest_range(&self) -> u64 {
        let pages = |vram: u64| {
            let pages = (vram >> 17).clamp(1 << 9, 1 << 18);
            1 << pages.ilog2()
        };
        self.model.gpus.iter().map(|gpu| pages(gpu.vram_bytes)).min().unwrap_or(1 << 9)
    }

    /// The whole argument: `SvmArgs` and the attributes, whose number was checked.
    pub(super) fn svm(&mut self, data: &mut [u8]) -> Result<u32, Errno> {
        if !self.kernel_has_svm() {
            return Err(Errno::PERM);
        }
        let (args, tail) = SvmArgs::read_from_prefix(data).map_err(|_| Errno::INVAL)?;
        let count = usize::try_from(args.nattr).map_err(|_| Errno::INVAL)?;
        let tail = tail.get(..count.saturating_mul(ATTRIBUTE)).ok_or(Errno::INVAL)?;
        let attributes = tail.chunks_exact(ATTRIBUTE).map(SvmAttribute::read_from_bytes);
        let mut attributes = attributes.collect::<Result<Vec<_>, _>>().map_err(|_| Errno::INVAL)?;
        let aligned = args.start_addr.is_multiple_of(PAGE) && args.size.is_multiple_of(PAGE);
        if !aligned || args.start_addr == 0 || args.size == 0 {
            return Err(Errno::INVAL);
        }
        let result = match args.op {
            SvmOp::SET_ATTR => self.svm_set(&args, &attributes),
            SvmOp::GET_ATTR => self.svm_get(&args, &mut attributes),
            _ => Err(Errno::INVAL),
        };
        // Read back even when it failed half way.
        for (to, from) in data.iter_mut().skip(size_of::<SvmArgs>()).zip(attributes.as_bytes()) {
            *to = *from;
        }
        result.map(|()| 0)
    }

    fn svm_set(&mut self, args: &SvmArgs, attributes: &[SvmAttribute]) -> Result<(), Errno> {
        let longest = self.longest_range();
        let limit = self.model.config.system_bytes;
        let process = self.process()?;
        let changes = check(process, attributes)?;
        if process.devices.iter().all(|device| device.bound().is_err()) {
            return Err(Errno::INVAL);
        }
        check_pages(&self.state, args.start_addr, args.size)?;
        let process = self.process()?;
        let (first, last) = pages(args);
        let used = process.system_bytes();
        let over = |pages: u64| used.saturating_add(pages.saturating_mul(PAGE)) > limit;
        let reserve = |pages| if over(pages) { Err(Errno::NOMEM) } else { Ok(()) };
        let changed = process.svm.change(first, last, &changes, longest, reserve)?;
        let diagnostics = &self.model.diagnostics;
        // A migration that fails is not told to the process: the pages are used where they are.
        let mut places = changes.iter().filter_map(|change| match change {
            Change::Prefetch(place) if *place != SYSTEM => Some(*place),
            _ => None,
        });
        if let Some(gpu) = places.next_back() {
            let text = format!(
                "SVM prefetch of {:#x} bytes at {:#x}: pages do not move to video memory here, as \
                 when a migration fails",
                args.size, args.start_addr
            );
            diagnostics.add_unmodelled(gpu, None, text);
        }
        if !changes.iter().any(updates_mapping) {
            return Ok(());
        }
        let process = self.state.processes.get_mut(&std::process::id()).ok_or(Errno::BADF)?;
        // What was changed stays, whatever fails here.
        let mut result = Ok(());
        for first in changed {
            if let Err(errno) = map(process, first, diagnostics) {
                result = Err(errno);
            }
        }
        result
    }

    fn svm_get(&mut self, args: &SvmArgs, attributes: &mut [SvmAttribute]) -> Result<(), Errno> {
        check_pages(&self.state, args.start_addr, args.size)?;
        let may_be_asked = |kind: SvmAttrType| {
            let never = [SvmAttrType::ACCESS_IN_PLACE, SvmAttrType::NO_ACCESS];
            kind.0 <= SvmAttrType::GRANULARITY.0 && !never.contains(&kind)
        };
        if !attributes.iter().all(|attribute| may_be_asked(attribute.kind)) {
            return Err(Errno::INVAL);
        }
        let process = self.process()?;
        let (first, last) = pages(args);
        let summary = process.svm.summary(first, last, supported(process));
        for attribute in attributes {
            match attribute.kind {
                SvmAttrType::PREFERRED_LOC => attribute.value = summary.preferred,
                SvmAttrType::PREFETCH_LOC => attribute.value = summary.prefetch,
                SvmAttrType::SET_FLAGS => attribute.value = summary.flags_of_all,
                SvmAttrType::CLR_FLAGS => attribute.value = !summary.flags_of_any,
                SvmAttrType::GRANULARITY => attribute.value = summary.granularity.into(),
                _ => {
                    let gpu = process.device_index(attribute.value).ok_or(Errno::INVAL)?;
                    attribute.kind = match () {
                        () if summary.access.contains(gpu) => SvmAttrType::ACCESS,
                        () if summary.in_place.contains(gpu) => SvmAttrType::ACCESS_IN_PLACE,
                        () => SvmAttrType::NO_ACCESS,
                    };
                }
            }
        }
        Ok(())
    }

    /// `kfd_ioctl_set_xnack_mode`. Retry faults are not modelled: where the kernel would turn them
    /// on, the answer is that of a virtual function without them, and the diagnostics say so.
    pub(super) fn set_xnack_mode(&mut self, args: &mut SetXnackModeArgs) -> Result<(), Errno> {
        if !self.kernel_has_svm() {
            return Err(Errno::PERM);
        }
        let process = self.process()?;
        match args.xnack_enabled {
            ..0 => args.xnack_enabled = 0,
            _ if !process.queues.is_empty() => return Err(Errno::BUSY),
            0 => {}
            1.. => {
                if process.devices.iter().all(|device| device.device.info.selects_xnack()) {
                    let text = "SET_XNACK_MODE: retry faults are not modelled, refused as on a \
                                virtual function without them";
                    self.model.diagnostics.add_unmodelled(0, None, text.to_owned());
                }
                return Err(Errno::PERM);
            }
        }
        Ok(())
    }
}

/// First and last page of a range that lies in the address space.
fn pages(args: &SvmArgs) -> (u64, u64) {
    (args.start_addr / PAGE, (args.start_addr + (args.size - 1)) / PAGE)
}
