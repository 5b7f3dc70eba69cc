//! The seam: everything the driver asks of Linux.
//!
//! [`Linux`] is the real thing. A software KFD implements the same trait. The trait is crossed a
//! few times per queue, buffer or sleep and never on the submit path, which is plain stores into
//! mapped memory.
#![allow(unsafe_code)] // unsafe trait methods are declared here: their arguments are or hold addresses

use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::time::Duration;

mod linux;

pub use linux::Linux;
pub use rustix::io::Errno;

/// A file opened through a [`Kernel`]. Its meaning belongs to the kernel that handed it out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(pub i32);

bitflags::bitflags! {
    /// How to open a file.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct OpenFlags: u32 {
        /// Reading.
        const READ = 1;
        /// Writing.
        const WRITE = 2;
        /// Both, as `/dev/kfd` and render nodes want it.
        const READ_WRITE = 3;
    }

    /// What the CPU may do with a mapping. Empty is `PROT_NONE`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Protection: u32 {
        /// Loads.
        const READ = 1;
        /// Stores.
        const WRITE = 2;
    }
}

/// What backs a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backing {
    /// A reserved range: `MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE`.
    Reserve,
    /// Zeroed host memory that a GPU may be given as userptr: `MAP_SHARED | MAP_ANONYMOUS`, so that
    /// a fork does not make the kernel evict the parent's queues.
    Anonymous,
    /// A file at a byte offset, `MAP_SHARED`. KFD offsets use the top bit.
    File {
        /// The file.
        file: FileId,
        /// Byte offset, or KFD's type and GPU id (docs/ABI.md §mmap).
        offset: u64,
    },
}

/// Arguments of [`Kernel::mmap`].
#[derive(Clone, Copy, Debug)]
pub struct MapRequest {
    /// With `Some`, map exactly here and replace what is there (`MAP_FIXED`): the caller owns the
    /// range. With `None` the kernel chooses.
    pub at: Option<NonNull<u8>>,
    /// Length in bytes, a multiple of the page size.
    pub bytes: usize,
    /// Access.
    pub protection: Protection,
    /// Backing.
    pub backing: Backing,
}

/// Arguments of [`Kernel::advise`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Advice {
    /// `MADV_DONTFORK`: a child does not inherit the range.
    DontFork,
}

/// What `stat` says of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// Type and permission bits (`st_mode`).
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group, by number: names mean nothing across containers.
    pub gid: u32,
    /// Device number for device nodes (`st_rdev`).
    pub rdev: u64,
}

/// The kernel as the driver sees it.
///
/// Calls return the kernel's errno. `EINTR` is passed on: the caller retries, since only it knows
/// its deadline.
pub trait Kernel: Send + Sync + std::fmt::Debug {
    /// Opens `path` with `O_CLOEXEC`.
    ///
    /// # Errors
    /// The errno of `open`.
    fn open(&self, path: &str, flags: OpenFlags) -> Result<FileId, Errno>;

    /// Closes a file. Unknown files are ignored: there is nothing the caller could do.
    fn close(&self, file: FileId);

    /// Issues an ioctl. `arg` is the whole argument, both in and out; its length is what the
    /// caller's `request` encodes. Returns the kernel's non-negative result. A descriptor that the
    /// ioctl makes (SMI_EVENTS, EXPORT_DMABUF) is a [`FileId`] of this kernel.
    ///
    /// # Errors
    /// The errno of `ioctl`. `arg` may have been written even so.
    ///
    /// # Safety
    /// `request` must name an ioctl whose argument is `arg`, and every user pointer inside `arg`
    /// must be valid for what that ioctl does with it, for the whole call.
    unsafe fn ioctl(&self, file: FileId, request: u32, arg: &mut [u8]) -> Result<u32, Errno>;

    /// Maps memory.
    ///
    /// # Errors
    /// The errno of `mmap`.
    ///
    /// # Safety
    /// With `at`, the whole range must be owned by the caller and unused.
    unsafe fn mmap(&self, request: &MapRequest) -> Result<NonNull<u8>, Errno>;

    /// Unmaps memory.
    ///
    /// # Errors
    /// The errno of `munmap`.
    ///
    /// # Safety
    /// Nothing may use the range any more.
    unsafe fn munmap(&self, at: NonNull<u8>, bytes: usize) -> Result<(), Errno>;

    /// Gives advice on a mapped range.
    ///
    /// # Errors
    /// The errno of `madvise`.
    ///
    /// # Safety
    /// The caller must own the range.
    unsafe fn advise(&self, at: NonNull<u8>, bytes: usize, advice: Advice) -> Result<(), Errno>;

    /// Reads from a file at its position. Zero bytes at the end.
    ///
    /// # Errors
    /// The errno of `read`.
    fn read(&self, file: FileId, buf: &mut [u8]) -> Result<usize, Errno>;

    /// Writes to a file at its position.
    ///
    /// # Errors
    /// The errno of `write`.
    fn write(&self, file: FileId, buf: &[u8]) -> Result<usize, Errno>;

    /// Waits until `file` is readable. `false` when `timeout` (rounded up to milliseconds) passed.
    ///
    /// # Errors
    /// The errno of `poll`.
    fn poll(&self, file: FileId, timeout: Duration) -> Result<bool, Errno>;

    /// `stat` of a path, links followed.
    ///
    /// # Errors
    /// The errno of `stat`.
    fn metadata(&self, path: &str) -> Result<Metadata, Errno>;

    /// Target of a symbolic link.
    ///
    /// # Errors
    /// The errno of `readlink`.
    fn read_link(&self, path: &str) -> Result<String, Errno>;

    /// Names in a directory, without `.` and `..`, in no order.
    ///
    /// # Errors
    /// The errno of `open` or `getdents`.
    fn read_dir(&self, path: &str) -> Result<Vec<String>, Errno>;

    /// Duplicates a file into a descriptor that can leave the process.
    ///
    /// # Errors
    /// `EBADF` for unknown files, or the errno of `dup`.
    fn export_fd(&self, file: FileId) -> Result<OwnedFd, Errno>;

    /// Takes over a descriptor that came from elsewhere (a broker that opened it for a sandbox).
    ///
    /// # Errors
    /// `EBADF` when this kernel cannot use such a descriptor.
    fn import_fd(&self, fd: OwnedFd) -> Result<FileId, Errno>;

    /// `CLOCK_MONOTONIC`.
    fn now(&self) -> Duration;

    /// Called by every wait loop that is not asleep yet, with the number of rounds so far: a spin
    /// hint, then a yield. A stepped software GPU advances here.
    fn relax(&self, rounds: u32);
}
