//! The real kernel, through rustix's libc backend. The only system calls of the crate.
#![allow(unsafe_code)] // system calls that take addresses: ioctl, mmap, munmap, madvise

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::mem::{self, offset_of};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::{self, NonNull};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::{Dir, Mode, OFlags};
use rustix::ioctl::{Ioctl, IoctlOutput, Opcode};
use rustix::mm::{MapFlags, ProtFlags};

use crate::abi::{ExportDmabufArgs, SmiEventsArgs, request};

use super::{Advice, Backing, Errno, FileId, Kernel, MapRequest, Metadata, OpenFlags, Protection};

/// Rounds of [`Kernel::relax`] that only hint the processor before each further one yields.
const SPIN_ROUNDS: u32 = 256;

/// The running Linux.
///
/// Keeps the table of files it opened, so that a stale [`FileId`] is an `EBADF` and never somebody
/// else's descriptor.
#[derive(Debug, Default)]
pub struct Linux {
    files: Mutex<BTreeMap<i32, Arc<OwnedFd>>>,
}

impl Linux {
    /// A kernel without open files.
    pub fn new() -> Self {
        Self::default()
    }

    fn adopt(&self, fd: OwnedFd) -> FileId {
        let raw = fd.as_raw_fd();
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        files.insert(raw, Arc::new(fd));
        FileId(raw)
    }

    /// The descriptor, held for the length of a call: the lock is not.
    fn file(&self, file: FileId) -> Result<Arc<OwnedFd>, Errno> {
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        files.get(&file.0).cloned().ok_or(Errno::BADF)
    }
}

/// Offset in the argument of the descriptor that a successful KFD ioctl has made, bytes.
///
/// The whole request word is compared, so that another driver's ioctl is never taken for it.
fn new_descriptor(request: u32) -> Option<usize> {
    match request {
        request::SMI_EVENTS => Some(offset_of!(SmiEventsArgs, anon_fd)),
        request::EXPORT_DMABUF => Some(offset_of!(ExportDmabufArgs, dmabuf_fd)),
        _ => None,
    }
}

/// An ioctl whose argument is a byte slice.
struct Raw<'a> {
    request: Opcode,
    arg: &'a mut [u8],
}

// SAFETY: `as_ptr` gives the start of `arg`, which is borrowed exclusively for the call and, by the
// contract of `Kernel::ioctl`, is the whole argument of `request`. Nothing is decoded from it.
unsafe impl Ioctl for Raw<'_> {
    type Output = u32;
    const IS_MUTATING: bool = true;

    fn opcode(&self) -> Opcode {
        self.request
    }

    fn as_ptr(&mut self) -> *mut c_void {
        self.arg.as_mut_ptr().cast()
    }

    unsafe fn output_from_ptr(out: IoctlOutput, _: *mut c_void) -> Result<u32, Errno> {
        u32::try_from(out).map_err(|_| Errno::OVERFLOW)
    }
}

impl From<Protection> for ProtFlags {
    fn from(protection: Protection) -> Self {
        let mut flags = Self::empty();
        flags.set(Self::READ, protection.contains(Protection::READ));
        flags.set(Self::WRITE, protection.contains(Protection::WRITE));
        flags
    }
}

impl Kernel for Linux {
    fn open(&self, path: &str, flags: OpenFlags) -> Result<FileId, Errno> {
        let access = if flags.contains(OpenFlags::READ_WRITE) {
            OFlags::RDWR
        } else if flags.contains(OpenFlags::WRITE) {
            OFlags::WRONLY
        } else {
            OFlags::RDONLY
        };
        rustix::fs::open(path, access | OFlags::CLOEXEC, Mode::empty()).map(|fd| self.adopt(fd))
    }

    fn close(&self, file: FileId) {
        self.files.lock().unwrap_or_else(PoisonError::into_inner).remove(&file.0);
    }

    unsafe fn ioctl(&self, file: FileId, request: u32, arg: &mut [u8]) -> Result<u32, Errno> {
        let fd = self.file(file)?;
        let call = Raw { request: Opcode::from(request), arg };
        // SAFETY: the caller vouches that `request` takes `arg` and that pointers inside it are
        // valid for the call.
        let result = unsafe { rustix::ioctl::ioctl(fd.as_fd(), call) }?;
        if let Some(offset) = new_descriptor(request)
            && let Some(bytes) = arg.get(offset..).and_then(|rest| rest.first_chunk::<4>())
            && let Ok(raw) = RawFd::try_from(u32::from_ne_bytes(*bytes))
        {
            // SAFETY: KFD has just made this descriptor for this call, so nobody else owns it.
            self.adopt(unsafe { OwnedFd::from_raw_fd(raw) });
        }
        Ok(result)
    }

    unsafe fn mmap(&self, request: &MapRequest) -> Result<NonNull<u8>, Errno> {
        let at = request.at.map_or(ptr::null_mut(), |at| at.as_ptr().cast::<c_void>());
        let fixed = if request.at.is_some() { MapFlags::FIXED } else { MapFlags::empty() };
        let protection = ProtFlags::from(request.protection);
        let mapped = match request.backing {
            Backing::File { file, offset } => {
                let fd = self.file(file)?;
                if request.at.is_none()
                    && request.protection == Protection::READ | Protection::WRITE
                {
                    let map = memmap2::MmapOptions::new()
                        .offset(offset)
                        .len(request.bytes)
                        .map_raw(fd.as_raw_fd())
                        .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::INVAL))?;
                    let start = map.as_mut_ptr();
                    // Ownership passes to the caller, who gives it back through `munmap`.
                    mem::forget(map);
                    return NonNull::new(start).ok_or(Errno::INVAL);
                }
                let flags = MapFlags::SHARED | fixed;
                // SAFETY: with `FIXED` the caller owns the range; without it nothing is replaced.
                unsafe {
                    rustix::mm::mmap(at, request.bytes, protection, flags, fd.as_fd(), offset)
                }
            }
            Backing::Reserve => {
                let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | fixed;
                // SAFETY: as above.
                unsafe { rustix::mm::mmap_anonymous(at, request.bytes, protection, flags) }
            }
            Backing::Anonymous => {
                let flags = MapFlags::SHARED | fixed;
                // SAFETY: as above.
                unsafe { rustix::mm::mmap_anonymous(at, request.bytes, protection, flags) }
            }
        }?;
        NonNull::new(mapped.cast::<u8>()).ok_or(Errno::INVAL)
    }

    unsafe fn munmap(&self, at: NonNull<u8>, bytes: usize) -> Result<(), Errno> {
        // SAFETY: the caller vouches that nothing uses the range any more.
        unsafe { rustix::mm::munmap(at.as_ptr().cast(), bytes) }
    }

    unsafe fn advise(&self, at: NonNull<u8>, bytes: usize, advice: Advice) -> Result<(), Errno> {
        let advice = match advice {
            Advice::DontFork => rustix::mm::Advice::LinuxDontFork,
        };
        // SAFETY: the caller owns the range; the advice changes no byte of it in this process.
        unsafe { rustix::mm::madvise(at.as_ptr().cast(), bytes, advice) }
    }

    fn read(&self, file: FileId, buf: &mut [u8]) -> Result<usize, Errno> {
        rustix::io::read(self.file(file)?, buf)
    }

    fn write(&self, file: FileId, buf: &[u8]) -> Result<usize, Errno> {
        rustix::io::write(self.file(file)?, buf)
    }

    fn poll(&self, file: FileId, timeout: Duration) -> Result<bool, Errno> {
        let fd = self.file(file)?;
        // Rounded up to milliseconds, and bounded by what a `timespec` holds.
        let ms = timeout.as_nanos().div_ceil(1_000_000);
        let timeout = Timespec {
            tv_sec: i64::try_from(ms / 1_000).unwrap_or(i64::MAX),
            tv_nsec: i64::try_from(ms % 1_000).unwrap_or(0) * 1_000_000,
        };
        let mut fds = [PollFd::new(&fd, PollFlags::IN)];
        rustix::event::poll(&mut fds, Some(&timeout)).map(|ready| ready > 0)
    }

    fn metadata(&self, path: &str) -> Result<Metadata, Errno> {
        let stat = rustix::fs::stat(path)?;
        Ok(Metadata { mode: stat.st_mode, uid: stat.st_uid, gid: stat.st_gid, rdev: stat.st_rdev })
    }

    fn read_link(&self, path: &str) -> Result<String, Errno> {
        let target = rustix::fs::readlink(path, Vec::new())?;
        target.into_string().map_err(|_| Errno::ILSEQ)
    }

    fn read_dir(&self, path: &str) -> Result<Vec<String>, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = rustix::fs::open(path, flags, Mode::empty())?;
        let mut names = Vec::new();
        for entry in Dir::new(fd)? {
            // A name that is not UTF-8 is none of ours.
            if let Ok(name) = entry?.file_name().to_str()
                && name != "."
                && name != ".."
            {
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }

    fn export_fd(&self, file: FileId) -> Result<OwnedFd, Errno> {
        rustix::io::fcntl_dupfd_cloexec(self.file(file)?, 0)
    }

    fn import_fd(&self, fd: OwnedFd) -> Result<FileId, Errno> {
        Ok(self.adopt(fd))
    }

    fn now(&self) -> Duration {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
        Duration::new(seconds, u32::try_from(now.tv_nsec).unwrap_or(0))
    }

    fn relax(&self, rounds: u32) {
        if rounds < SPIN_ROUNDS {
            std::hint::spin_loop();
        } else {
            rustix::thread::sched_yield();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_file_is_bad_rather_than_somebody_elses() {
        let kernel = Linux::new();
        let file = kernel.open("/dev/null", OpenFlags::READ).unwrap();
        kernel.close(file);
        assert_eq!(kernel.read(file, &mut [0; 1]), Err(Errno::BADF));
        assert_eq!(kernel.export_fd(file).err(), Some(Errno::BADF));
    }

    #[test]
    fn a_fixed_anonymous_mapping_replaces_a_reservation() {
        let kernel = Linux::new();
        let bytes = 0x4000;
        let request = MapRequest {
            at: None,
            bytes,
            protection: Protection::empty(),
            backing: Backing::Reserve,
        };
        // SAFETY: no fixed address.
        let base = unsafe { kernel.mmap(&request) }.unwrap();
        let request = MapRequest {
            at: Some(base),
            bytes: 0x1000,
            protection: Protection::READ | Protection::WRITE,
            backing: Backing::Anonymous,
        };
        // SAFETY: the range is ours since the first mapping.
        let again = unsafe { kernel.mmap(&request) }.unwrap();
        assert_eq!(again, base);
        // SAFETY: mapped for reading and writing just now.
        unsafe { base.as_ptr().write(7) };
        // SAFETY: as above.
        assert_eq!(unsafe { base.as_ptr().read() }, 7);
        // SAFETY: nothing uses the range after this.
        unsafe { kernel.munmap(base, bytes) }.unwrap();
    }

    #[test]
    fn an_ioctl_on_the_wrong_kind_of_file_is_enotty() {
        let kernel = Linux::new();
        let file = kernel.open("/dev/null", OpenFlags::READ).unwrap();
        // SAFETY: KFD's GET_VERSION takes 8 bytes; /dev/null knows no ioctl.
        let answer = unsafe { kernel.ioctl(file, 0x8008_4b01, &mut [0; 8]) };
        assert_eq!(answer, Err(Errno::NOTTY));
    }

    #[test]
    fn a_directory_lists_its_names_without_the_dots() {
        let kernel = Linux::new();
        let names = kernel.read_dir("/proc/self").unwrap();
        assert!(names.iter().any(|name| name == "status"));
        assert!(!names.iter().any(|name| name.starts_with('.')));
        assert_eq!(kernel.read_dir("/no-such-place"), Err(Errno::NOENT));
    }
}
