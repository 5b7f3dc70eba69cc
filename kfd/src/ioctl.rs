//! How an argument becomes a call: the pairing of structs with ioctls, retry, and the name of the
//! call that failed.
#![allow(unsafe_code)] // declares and implements the unsafe pairing trait, and crosses the seam

use crate::abi::{self, request};
use crate::sys::{Errno, FileId, Kernel};
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// How often one call is repeated after `EINTR`. A signal every millisecond would need more than an
/// hour in one call to get there; a kernel that only ever says `EINTR` gets there in seconds.
pub(crate) const MAX_INTERRUPTIONS: u32 = 1 << 22;

/// An argument and the one ioctl it belongs to.
///
/// # Safety
/// `REQUEST` must name an ioctl whose whole argument is `Self`.
pub(crate) unsafe trait KfdIoctl: FromBytes + IntoBytes + Immutable {
    /// The ioctl's name, for errors.
    const NAME: &'static str;
    /// Its request word.
    const REQUEST: u32;
}

/// The kernel refused a KFD ioctl.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("KFD ioctl {name} failed")]
pub struct IoctlError {
    /// Name as in kfd_ioctl.h, without `AMDKFD_IOC_`.
    pub name: &'static str,
    /// Why.
    #[source]
    pub errno: Errno,
}

/// Issues the ioctl of `args` on `/dev/kfd`, again after each interruption. The kernel has copied its
/// results into `args` by then, so a repeated MAP skips what is done and a repeated WAIT knows the
/// time left. Returns the kernel's non-negative result: 0 but for DBG_TRAP.
///
/// # Errors
/// The errno, with the ioctl's name. `args` may have been written even so.
///
/// # Safety
/// Every address in `args` must be valid for what the ioctl does with it, for the whole call.
pub(crate) unsafe fn call<A: KfdIoctl>(
    kernel: &dyn Kernel,
    file: FileId,
    args: &mut A,
) -> Result<u32, IoctlError> {
    // SAFETY: `KfdIoctl` pairs the request word with `A`; the caller vouches for the addresses in it.
    let result = unsafe { repeat(kernel, file, A::REQUEST, args.as_mut_bytes()) };
    result.map_err(|errno| IoctlError { name: A::NAME, errno })
}

/// Issues SVM for `attributes`, whose values GET_ATTR replaces. `args.nattr` is set here.
///
/// # Errors
/// `E2BIG` when the request word cannot hold the size of so many attributes; else as [`call`].
///
/// # Safety
/// Setting attributes can move or unprotect the range: the caller must own it.
pub(crate) unsafe fn call_svm(
    kernel: &dyn Kernel,
    file: FileId,
    mut args: abi::SvmArgs,
    attributes: &mut [abi::SvmAttribute],
) -> Result<(), IoctlError> {
    let failed = |errno| IoctlError { name: "SVM", errno };
    let word = request::svm(attributes.len()).ok_or_else(|| failed(Errno::TOOBIG))?;
    args.nattr = u32::try_from(attributes.len()).map_err(|_| failed(Errno::TOOBIG))?;
    let mut bytes = [args.as_bytes(), attributes.as_bytes()].concat();
    // SAFETY: SVM's argument is `SvmArgs` followed by the attributes that it counts, as `bytes` is and
    // as `word` says; it holds no address but the range, which the caller owns.
    unsafe { repeat(kernel, file, word, &mut bytes) }.map_err(failed)?;
    let tail = bytes.get(size_of::<abi::SvmArgs>()..).unwrap_or_default();
    attributes.as_mut_bytes().copy_from_slice(tail);
    Ok(())
}

/// # Safety
/// As [`Kernel::ioctl`].
unsafe fn repeat(
    kernel: &dyn Kernel,
    file: FileId,
    request: u32,
    argument: &mut [u8],
) -> Result<u32, Errno> {
    for _ in 0..MAX_INTERRUPTIONS {
        // SAFETY: the caller guarantees what `Kernel::ioctl` asks for.
        match unsafe { kernel.ioctl(file, request, argument) } {
            Err(Errno::INTR) => {}
            result => return result,
        }
    }
    Err(Errno::INTR)
}

macro_rules! pair {
    ($($args:ident: $name:ident;)+) => {
        $(
            // SAFETY: kfd_ioctl.h pairs the number of this request word with this struct;
            // kfd-header-check compares the word (hence the size) and the struct with C.
            unsafe impl KfdIoctl for abi::$args {
                const NAME: &'static str = stringify!($name);
                const REQUEST: u32 = request::$name;
            }
        )+

        #[cfg(test)]
        const PAIRS: &[(&str, u32)] = &[$((abi::$args::NAME, abi::$args::REQUEST),)+];
    };
}

pair! {
    GetVersionArgs: GET_VERSION;
    CreateQueueArgs: CREATE_QUEUE;
    DestroyQueueArgs: DESTROY_QUEUE;
    SetMemoryPolicyArgs: SET_MEMORY_POLICY;
    GetClockCountersArgs: GET_CLOCK_COUNTERS;
    GetProcessAperturesArgs: GET_PROCESS_APERTURES;
    UpdateQueueArgs: UPDATE_QUEUE;
    CreateEventArgs: CREATE_EVENT;
    DestroyEventArgs: DESTROY_EVENT;
    SetEventArgs: SET_EVENT;
    ResetEventArgs: RESET_EVENT;
    WaitEventsArgs: WAIT_EVENTS;
    DbgRegisterArgs: DBG_REGISTER;
    DbgUnregisterArgs: DBG_UNREGISTER;
    DbgAddressWatchArgs: DBG_ADDRESS_WATCH;
    DbgWaveControlArgs: DBG_WAVE_CONTROL;
    SetScratchBackingVaArgs: SET_SCRATCH_BACKING_VA;
    GetTileConfigArgs: GET_TILE_CONFIG;
    SetTrapHandlerArgs: SET_TRAP_HANDLER;
    GetProcessAperturesNewArgs: GET_PROCESS_APERTURES_NEW;
    AcquireVmArgs: ACQUIRE_VM;
    AllocMemoryOfGpuArgs: ALLOC_MEMORY_OF_GPU;
    FreeMemoryOfGpuArgs: FREE_MEMORY_OF_GPU;
    MapMemoryToGpuArgs: MAP_MEMORY_TO_GPU;
    UnmapMemoryFromGpuArgs: UNMAP_MEMORY_FROM_GPU;
    SetCuMaskArgs: SET_CU_MASK;
    GetQueueWaveStateArgs: GET_QUEUE_WAVE_STATE;
    GetDmabufInfoArgs: GET_DMABUF_INFO;
    ImportDmabufArgs: IMPORT_DMABUF;
    AllocQueueGwsArgs: ALLOC_QUEUE_GWS;
    SmiEventsArgs: SMI_EVENTS;
    SetXnackModeArgs: SET_XNACK_MODE;
    CriuArgs: CRIU_OP;
    GetAvailableMemoryArgs: AVAILABLE_MEMORY;
    ExportDmabufArgs: EXPORT_DMABUF;
    RuntimeEnableArgs: RUNTIME_ENABLE;
    DbgTrapArgs: DBG_TRAP;
}

mod checked;

pub(crate) use checked::{apertures, version};

#[cfg(test)]
#[path = "ioctl_tests.rs"]
mod tests;
