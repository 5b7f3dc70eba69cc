//! What AMD's runtime asks of a model (`HSA_MODEL_LIB`): interface 1.1 of libhsakmt's
//! `hsakmtmodeliface.h`, which hands over every KFD ioctl and what libdrm would do
//! (docs/ABI.md §HSA model).
//!
//! The runtime loads this library without preloading it, so nothing is hooked: memory is mapped by
//! the plain offsets of the descriptors that it gets here.

mod buffer;
mod device;

use std::ffi::{c_int, c_uint, c_ulong, c_void};
use std::sync::Mutex;
use std::sync::PoisonError;

use kfd::sys::{Errno, FileId, Kernel as _, OpenFlags};

use crate::descriptors;
use crate::hooks::answer;
use crate::instance::Instance;

/// `struct hsakmt_model_functions` of interface 1.1.
#[repr(C)]
struct Functions {
    major: u32,
    minor: u32,
    create_memfd: extern "C" fn() -> c_int,
    handle_ioctl: unsafe extern "C" fn(c_ulong, *mut c_void) -> c_int,
    handle_drm_call: unsafe extern "C" fn(c_uint, *mut c_void) -> c_int,
}

static FUNCTIONS: Functions =
    Functions { major: 1, minor: 1, create_memfd, handle_ioctl, handle_drm_call };

/// Gives the table that the runtime asks for.
#[unsafe(no_mangle)]
extern "C" fn get_hsakmt_model_functions() -> *const c_void {
    (&raw const FUNCTIONS).cast()
}

/// `/dev/kfd`, open for the runtime, with the process that opened it.
static KFD: Mutex<Option<(u32, FileId)>> = Mutex::new(None);

/// This process's instance, or `ENODEV` with a wrong environment.
fn instance() -> Result<&'static Instance, Errno> {
    Instance::get().ok_or(Errno::NODEV)
}

/// The file of `/dev/kfd`, opened when first needed.
fn kfd(instance: &Instance) -> Result<FileId, Errno> {
    let mut kfd = KFD.lock().unwrap_or_else(PoisonError::into_inner);
    let pid = std::process::id();
    if let Some((opener, file)) = *kfd
        && opener == pid
    {
        return Ok(file);
    }
    let file = instance.model.open("/dev/kfd", OpenFlags::READ_WRITE)?;
    *kfd = Some((pid, file));
    Ok(file)
}

/// A descriptor that stands for `/dev/kfd`.
extern "C" fn create_memfd() -> c_int {
    answer(-1, || {
        let instance = instance()?;
        kfd(instance)?;
        instance.open_device("/dev/kfd", libc::O_RDWR | libc::O_CLOEXEC)
    })
}

/// A KFD ioctl, SVM's too. WAIT_EVENTS may sleep meanwhile: the model holds no lock then.
unsafe extern "C" fn handle_ioctl(request: c_ulong, argument: *mut c_void) -> c_int {
    answer(-1, || {
        let instance = instance()?;
        let request = u32::try_from(request & 0xffff_ffff).map_err(|_| Errno::NOTTY)?;
        let address = argument.expose_provenance() as u64;
        let result = instance.model.ioctl_at(kfd(instance)?, request, address, instance)?;
        Ok(c_int::try_from(result).unwrap_or(c_int::MAX))
    })
}

/// `enum hsakmt_drm_cmd`.
mod command {
    pub(super) const BO_VA_OP: u32 = 0;
    pub(super) const BO_FREE: u32 = 1;
    pub(super) const BO_IMPORT: u32 = 2;
    pub(super) const BO_EXPORT: u32 = 3;
    pub(super) const BO_CPU_MAP: u32 = 4;
    pub(super) const BO_QUERY_INFO: u32 = 5;
    pub(super) const BO_SET_METADATA: u32 = 6;
    pub(super) const COMMAND_WRITE_READ: u32 = 7;
    pub(super) const OPEN_RENDER: u32 = 8;
    pub(super) const CLOSE: u32 = 9;
    pub(super) const DEVICE_INITIALIZE: u32 = 10;
    pub(super) const DEVICE_DEINITIALIZE: u32 = 11;
    pub(super) const DEVICE_GET_FD: u32 = 12;
    pub(super) const GET_MARKETING_NAME: u32 = 13;
    pub(super) const QUERY_GPU_INFO: u32 = 14;
}

/// What libdrm would do.
#[allow(clippy::multiple_unsafe_ops_per_block)] // one of them is done
unsafe extern "C" fn handle_drm_call(number: c_uint, argument: *mut c_void) -> c_int {
    if argument.is_null() {
        return crate::next::fail(libc::EINVAL, -1);
    }
    answer(-1, || {
        let instance = instance()?;
        // SAFETY: each command comes with a pointer to its own structure of arguments, which
        // outlives the call: the contract of the interface.
        unsafe {
            match number {
                command::OPEN_RENDER => device::open_render(instance, argument.cast()),
                command::CLOSE => device::close(argument.cast()),
                command::DEVICE_INITIALIZE => device::initialize(instance, argument.cast()),
                command::DEVICE_DEINITIALIZE => device::deinitialize(argument.cast()),
                command::DEVICE_GET_FD => device::get_fd(argument.cast()),
                command::GET_MARKETING_NAME => device::marketing_name(argument.cast()),
                command::QUERY_GPU_INFO => device::query_gpu_info(instance, argument.cast()),
                command::COMMAND_WRITE_READ => device::write_read(instance, argument.cast()),
                command::BO_IMPORT => buffer::import(instance, argument.cast()),
                command::BO_FREE => buffer::free(argument.cast()),
                command::BO_EXPORT => buffer::export(argument.cast()),
                command::BO_QUERY_INFO => buffer::query_info(argument.cast()),
                command::BO_SET_METADATA => Ok(0), // kept for other processes, which have their own model
                command::BO_VA_OP | command::BO_CPU_MAP => {
                    instance.log(crate::config::Log::Unknown, || {
                        format!("DRM command {number} of the model interface is not modelled")
                    });
                    Err(Errno::OPNOTSUPP)
                }
                _ => Err(Errno::INVAL),
            }
        }
    })
}

/// An ioctl on a render node's descriptor, with the argument in memory of ours.
fn drm_ioctl(instance: &Instance, fd: c_int, request: u32, argument: u64) -> Result<(), Errno> {
    let ours = descriptors::find(fd).ok_or(Errno::BADF)?;
    let file = instance.file(ours).ok_or(Errno::BADF)?;
    instance.model.ioctl_at(file, request, argument, instance).map(drop)
}
