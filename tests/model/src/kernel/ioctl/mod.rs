//! KFD's ioctls: how the entry point behaves, and one handler for each.
//!
//! Source: Linux 6.12.117, drivers/gpu/drm/amd/amdkfd/kfd_chardev.c (docs/ABI.md §Model).

mod alloc;
mod debug;
mod debug_query;
mod debug_queues;
mod doorbell;
mod events;
mod info;
mod map;
mod queue;
mod share;
pub(super) mod svm;

use std::sync::MutexGuard;
use std::sync::atomic::Ordering;

use kfd::sys::{Errno, FileId};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use super::files::Kind;
use super::host::{Descriptors, take_descriptors};
use super::process::Process;
use super::{Model, State, user};
use crate::fault::Call;

/// Direction bits of an ioctl's definition.
const READ: u32 = 2;
const WRITE: u32 = 1;

/// Number, direction and size of each ioctl, by the kernel's definition.
/// Sizes are those of 6.12; CREATE_QUEUE was 88 bytes before 1.17.
const TABLE: [(u32, u32); 0x27] = [
    (0, 0),
    (READ, 8),
    (READ | WRITE, 96),
    (READ | WRITE, 8),
    (WRITE, 32),
    (READ | WRITE, 40),
    (READ, 400),
    (WRITE, 24),
    (READ | WRITE, 32),
    (WRITE, 8),
    (WRITE, 8),
    (WRITE, 8),
    (READ | WRITE, 24),
    (WRITE, 8),
    (WRITE, 8),
    (WRITE, 16),
    (WRITE, 16),
    (READ | WRITE, 16),
    (READ | WRITE, 40),
    (WRITE, 24),
    (READ | WRITE, 16),
    (WRITE, 8),
    (READ | WRITE, 40),
    (WRITE, 8),
    (READ | WRITE, 24),
    (READ | WRITE, 24),
    (WRITE, 16),
    (READ | WRITE, 24),
    (READ | WRITE, 32),
    (READ | WRITE, 24),
    (READ | WRITE, 16),
    (READ | WRITE, 8),
    (READ | WRITE, 24),
    (READ | WRITE, 4),
    (READ | WRITE, 56),
    (READ | WRITE, 16),
    (READ | WRITE, 16),
    (READ | WRITE, 16),
    (READ | WRITE, 32),
];

/// A handler's view of a call.
struct Context<'a> {
    model: &'a Model,
    state: MutexGuard<'a, State>,
}

impl Context<'_> {
    /// The caller's process.
    fn process(&mut self) -> Result<&mut Process, Errno> {
        self.state.processes.get_mut(&std::process::id()).ok_or(Errno::BADF)
    }
}

/// Runs `handler` on the argument and stores what it made of it, failed or not.
fn with<T: FromBytes + IntoBytes + Immutable>(
    data: &mut [u8],
    handler: impl FnOnce(&mut T) -> Result<(), Errno>,
) -> Result<u32, Errno> {
    with_result(data, |args| handler(args).map(|()| 0))
}

/// As [`with`], for a call that has a result.
fn with_result<T: FromBytes + IntoBytes + Immutable>(
    data: &mut [u8],
    handler: impl FnOnce(&mut T) -> Result<u32, Errno>,
) -> Result<u32, Errno> {
    let (mut args, _) = T::read_from_prefix(data).map_err(|_| Errno::INVAL)?;
    let result = handler(&mut args);
    for (to, from) in data.iter_mut().zip(args.as_bytes()) {
        *to = *from;
    }
    result
}

/// Where the caller's argument is.
trait Argument {
    /// Fills `data` from its start.
    fn read(&self, data: &mut [u8]) -> Result<(), Errno>;
    /// Writes `data` to its start.
    fn write(&mut self, data: &[u8]) -> Result<(), Errno>;
    /// The descriptors in it are real ones.
    fn descriptors(&self) -> Option<&dyn Descriptors>;
}

/// In a slice. Its descriptors are file numbers of the model.
struct Slice<'a>(&'a mut [u8]);

impl Argument for Slice<'_> {
    fn read(&self, data: &mut [u8]) -> Result<(), Errno> {
        let from = self.0.get(..data.len()).ok_or(Errno::FAULT)?;
        data.copy_from_slice(from);
        Ok(())
    }

    fn write(&mut self, data: &[u8]) -> Result<(), Errno> {
        let to = self.0.get_mut(..data.len()).ok_or(Errno::FAULT)?;
        to.copy_from_slice(data);
        Ok(())
    }

    fn descriptors(&self) -> Option<&dyn Descriptors> {
        None
    }
}

/// In the memory of a process that has real descriptors.
struct Memory<'a> {
    address: u64,
    descriptors: &'a dyn Descriptors,
}

impl Argument for Memory<'_> {
    fn read(&self, data: &mut [u8]) -> Result<(), Errno> {
        user::read_bytes(self.address, data)
    }

    fn write(&mut self, data: &[u8]) -> Result<(), Errno> {
        user::write_bytes(self.address, data)
    }

    fn descriptors(&self) -> Option<&dyn Descriptors> {
        Some(self.descriptors)
    }
}

impl Model {
    /// `ioctl` on any file.
    pub(super) fn call(&self, file: FileId, request: u32, arg: &mut [u8]) -> Result<u32, Errno> {
        // The lock is not held while the call is carried out.
        let (opener, render) = match self.lock().files.get(file)? {
            Kind::Kfd { pid } => (*pid, None),
            Kind::Render { gpu, .. } => (0, Some(*gpu)),
            _ => return Err(Errno::NOTTY),
        };
        match render {
            Some(gpu) => self.drm_ioctl(gpu, request, arg),
            None => self.kfd_ioctl(opener, request, &mut Slice(arg)),
        }
    }

    /// `ioctl` on `/dev/kfd` with the argument in the process's memory.
    pub(super) fn kfd_ioctl_at(
        &self,
        opener: u32,
        request: u32,
        address: u64,
        descriptors: &dyn Descriptors,
    ) -> Result<u32, Errno> {
        self.kfd_ioctl(opener, request, &mut Memory { address, descriptors })
    }

    /// Whether this kernel's KFD has an ioctl of the request's number. It is asked first, before
    /// the caller's right to the file.
    pub fn knows_ioctl(&self, request: u32) -> bool {
        (1..self.config.profile.ioctl_end()).contains(&(request & 0xff))
    }

    /// `kfd_ioctl`: only the number selects the handler; a shorter argument is continued with
    /// zeros, and what the kernel's definition reads back is read back even after a failure.
    fn kfd_ioctl(&self, opener: u32, request: u32, arg: &mut dyn Argument) -> Result<u32, Errno> {
        let number = request & 0xff;
        let index = usize::try_from(number).unwrap_or(usize::MAX);
        if let Some(count) = self.counters.get(index) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        self.config.faults.check(&Call::Ioctl(number))?;
        if !self.knows_ioctl(request) {
            return Err(Errno::NOTTY);
        }
        let &(direction, bytes) = TABLE.get(index).ok_or(Errno::NOTTY)?;
        if opener != std::process::id() {
            return Err(Errno::BADF);
        }
        if number == 0x22 && !rustix::process::geteuid().is_root() {
            return Err(Errno::ACCESS); // CRIU_OP wants a capability
        }
        let user_bytes = usize::try_from(request >> 16 & 0x3fff).unwrap_or(0);
        let kernel_bytes = usize::try_from(bytes).unwrap_or(0).max(user_bytes);
        let mut data = vec![0; kernel_bytes];
        if direction & WRITE != 0 {
            let shared = data.get_mut(..user_bytes).unwrap_or_default();
            arg.read(shared)?;
            if let Some(descriptors) = arg.descriptors() {
                take_descriptors(number, shared, descriptors);
            }
        }
        if number == 0x20 && !self.svm_size_is_valid(&data, user_bytes) {
            return Err(Errno::INVAL); // before the handler: nothing is read back
        }
        let mut result = self.handle(number, &mut data);
        if result.is_ok()
            && let Err(errno) = self.config.faults.check(&Call::AfterIoctl(number))
        {
            result = Err(errno);
        }
        if result.is_ok()
            && let Some(descriptors) = arg.descriptors()
            && let Err(errno) = self.give_descriptors(number, &mut data, descriptors)
        {
            result = Err(errno);
        }
        if direction & READ != 0 {
            let shared = data.get_mut(..user_bytes).unwrap_or_default();
            self.config.faults.rewrite(number, shared);
            arg.write(shared)?;
        }
        result
    }

    /// `kfd_ioctl_svm_validate`: the argument must hold all attributes it announces.
    fn svm_size_is_valid(&self, data: &[u8], user_bytes: usize) -> bool {
        let attributes = data.get(20..24).and_then(|bytes| bytes.try_into().ok());
        let attributes = attributes.map_or(0, u32::from_le_bytes);
        user_bytes as u64 >= 24 + 8 * u64::from(attributes)
    }

    fn handle(&self, number: u32, data: &mut [u8]) -> Result<u32, Errno> {
        match number {
            // Those may sleep, so they must not hold the process's lock.
            0x03 => return with(data, |args| self.destroy_queue_unheld(args)),
            0x0c => return with(data, |args| self.wait_events(args)),
            0x25 => return with(data, |args| self.runtime_enable(args)),
            _ => {}
        }
        let mut context = Context { model: self, state: self.lock() };
        let c = &mut context;
        match number {
            0x01 => with(data, |args| c.get_version(args)),
            0x02 => with(data, |args| c.create_queue(args)),
            0x04 => with(data, |args| c.set_memory_policy(args)),
            0x05 => with(data, |args| c.get_clock_counters(args)),
            0x06 => with(data, |args| c.get_process_apertures(args)),
            0x07 => with(data, |args| c.update_queue(args)),
            0x08 => with(data, |args| c.create_event(args)),
            0x09 => with(data, |args| c.destroy_event(args)),
            0x0a => with(data, |args| c.set_event(args)),
            0x0b => with(data, |args| c.reset_event(args)),
            0x0d..=0x10 => Err(Errno::PERM), // the old debugger interface
            0x11 => with(data, |args| c.set_scratch_backing_va(args)),
            0x12 => with(data, |args| c.get_tile_config(args)),
            0x13 => with(data, |args| c.set_trap_handler(args)),
            0x14 => with(data, |args| c.get_process_apertures_new(args)),
            0x15 => with(data, |args| c.acquire_vm(args)),
            0x16 => with(data, |args| c.alloc_memory_of_gpu(args)),
            0x17 => with(data, |args| c.free_memory_of_gpu(args)),
            0x18 => with(data, |args| c.map_memory_to_gpu(args)),
            0x19 => with(data, |args| c.unmap_memory_from_gpu(args)),
            0x1a => with(data, |args| c.set_cu_mask(args)),
            0x1b => with(data, |args| c.get_queue_wave_state(args)),
            0x1c => with(data, |args| c.get_dmabuf_info(args)),
            0x1d => with(data, |args| c.import_dmabuf(args)),
            0x1e => with(data, |args| c.alloc_queue_gws(args)),
            0x1f => with(data, |args| c.smi_events(args)),
            0x20 => c.svm(data),
            0x21 => with(data, |args| c.set_xnack_mode(args)),
            0x22 => with(data, |args| c.criu_op(args)),
            0x23 => with(data, |args| c.available_memory(args)),
            0x24 => with(data, |args| c.export_dmabuf(args)),
            0x26 => with_result(data, |args| c.debug_trap(args)),
            _ => Err(Errno::NOTTY),
        }
    }
}

/// GPU id and number of a memory handle.
fn split_handle(handle: u64) -> (u32, u32) {
    let gpu_id = u32::try_from(handle >> 32).unwrap_or(0);
    (gpu_id, u32::try_from(handle & 0xffff_ffff).unwrap_or(0))
}

/// Joins what [`split_handle`] splits.
fn join_handle(gpu_id: u32, number: u32) -> u64 {
    u64::from(gpu_id) << 32 | u64::from(number)
}
