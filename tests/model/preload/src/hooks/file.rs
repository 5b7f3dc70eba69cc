//! Opening: `open` and its kin, `fopen`, `creat`.

use std::ffi::{CStr, c_char, c_int, c_uint};
use std::os::fd::IntoRawFd as _;
use std::ptr;

use kfd::sys::Errno;
use model::Node;

use super::{answer, ours};
use crate::instance::{Instance, set_inheritance};
use crate::next::forward;

/// The list of kernel modules: the machine's, and amdgpu.
pub(super) const MODULES: &str = "/proc/modules";

fn modules() -> Result<Vec<u8>, Errno> {
    // By a relative-free name that is not ours: the same file of this very process.
    let mut text = std::fs::read("/proc/self/root/proc/modules").unwrap_or_default();
    if !text.split(|byte| *byte == b'\n').any(|line| line.starts_with(b"amdgpu ")) {
        text.extend_from_slice(b"amdgpu 13434880 1 - Live 0x0000000000000000\n");
    }
    Ok(text)
}

/// Opens a path of the model's; `None` when it turns out not to be one.
fn open_ours(instance: &Instance, path: &str, flags: c_int) -> Option<Result<c_int, Errno>> {
    let node = if path == MODULES { Ok(Some(Node::Text)) } else { instance.model.node(path, true) };
    let node = match node {
        Ok(node) => node?,
        Err(errno) => return Some(Err(errno)),
    };
    Some(match node {
        Node::Device if flags & libc::O_DIRECTORY != 0 => Err(Errno::NOTDIR),
        Node::Device => instance.open_device(path, flags),
        Node::Directory => instance.open_directory(path, flags),
        Node::Link => Err(Errno::LOOP),
        Node::Text => open_text(instance, path, flags),
    })
}

fn open_text(instance: &Instance, path: &str, flags: c_int) -> Result<c_int, Errno> {
    if flags & libc::O_DIRECTORY != 0 {
        return Err(Errno::NOTDIR);
    }
    if flags & libc::O_ACCMODE != libc::O_RDONLY {
        return Err(Errno::ACCESS);
    }
    let text = if path == MODULES { modules()? } else { instance.model.text(path)? };
    let fd = model::text_descriptor(&text)?;
    set_inheritance(&fd, flags)?;
    Ok(fd.into_raw_fd())
}

/// # Safety
/// As for `openat`.
unsafe fn open_if_ours(directory: c_int, path: *const c_char, flags: c_int) -> Option<c_int> {
    // SAFETY: the caller gave a C string, or a pointer that the kernel has to refuse.
    let (instance, path) = unsafe { ours(directory, path) }?;
    let mut is_ours = true;
    let fd = answer(-1, || match open_ours(instance, &path, flags) {
        Some(result) => result,
        None => {
            is_ours = false;
            Ok(-1)
        }
    });
    is_ours.then_some(fd)
}

macro_rules! open_hooks {
    ($($name:ident)*) => { $(
        /// `open`.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
            // SAFETY: the caller's contract is `open`'s.
            if let Some(fd) = unsafe { open_if_ours(libc::AT_FDCWD, path, flags) } {
                return fd;
            }
            forward!($name: fn(*const c_char, c_int, c_uint) -> c_int, (path, flags, mode), -1)
        }
    )* };
}

open_hooks!(open open64 __open __open64);

macro_rules! checked_open_hooks {
    ($($name:ident)*) => { $(
        /// `open` with `_FORTIFY_SOURCE`.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(path: *const c_char, flags: c_int) -> c_int {
            // SAFETY: the caller's contract is `open`'s.
            if let Some(fd) = unsafe { open_if_ours(libc::AT_FDCWD, path, flags) } {
                return fd;
            }
            forward!($name: fn(*const c_char, c_int) -> c_int, (path, flags), -1)
        }
    )* };
}

checked_open_hooks!(__open_2 __open64_2);

macro_rules! openat_hooks {
    ($($name:ident)*) => { $(
        /// `openat`.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(
            directory: c_int,
            path: *const c_char,
            flags: c_int,
            mode: c_uint,
        ) -> c_int {
            // SAFETY: the caller's contract is `openat`'s.
            if let Some(fd) = unsafe { open_if_ours(directory, path, flags) } {
                return fd;
            }
            forward!($name: fn(c_int, *const c_char, c_int, c_uint) -> c_int,
                (directory, path, flags, mode), -1)
        }
    )* };
}

openat_hooks!(openat openat64);

macro_rules! checked_openat_hooks {
    ($($name:ident)*) => { $(
        /// `openat` with `_FORTIFY_SOURCE`.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(directory: c_int, path: *const c_char, flags: c_int) -> c_int {
            // SAFETY: the caller's contract is `openat`'s.
            if let Some(fd) = unsafe { open_if_ours(directory, path, flags) } {
                return fd;
            }
            forward!($name: fn(c_int, *const c_char, c_int) -> c_int, (directory, path, flags), -1)
        }
    )* };
}

checked_openat_hooks!(__openat_2 __openat64_2);

macro_rules! creat_hooks {
    ($($name:ident)*) => { $(
        /// `creat`.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(path: *const c_char, mode: c_uint) -> c_int {
            let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC;
            // SAFETY: the caller's contract is `creat`'s.
            if let Some(fd) = unsafe { open_if_ours(libc::AT_FDCWD, path, flags) } {
                return fd;
            }
            forward!($name: fn(*const c_char, c_uint) -> c_int, (path, mode), -1)
        }
    )* };
}

creat_hooks!(creat creat64);

/// The flags of an `fopen` mode.
fn mode_flags(mode: &CStr) -> c_int {
    let mode = mode.to_bytes();
    let both = mode.contains(&b'+');
    let access = match mode.first() {
        _ if both => libc::O_RDWR,
        Some(b'r') => libc::O_RDONLY,
        _ => libc::O_WRONLY,
    };
    access | if mode.contains(&b'e') { libc::O_CLOEXEC } else { 0 }
}

/// # Safety
/// As for `fopen`.
unsafe fn fopen_if_ours(path: *const c_char, mode: *const c_char) -> Option<*mut libc::FILE> {
    // SAFETY: the caller gave a C string.
    unsafe { ours(libc::AT_FDCWD, path) }?;
    // SAFETY: `fopen` takes a C string here.
    let flags = mode_flags(unsafe { CStr::from_ptr(mode) });
    // SAFETY: as for `fopen`.
    let fd = unsafe { open_if_ours(libc::AT_FDCWD, path, flags) }?;
    if fd < 0 {
        return Some(ptr::null_mut());
    }
    // SAFETY: `fd` was opened just now and is given away; `mode` is the caller's.
    let stream = unsafe { libc::fdopen(fd, mode) };
    if stream.is_null() {
        // SAFETY: nobody else has the descriptor.
        unsafe { libc::close(fd) };
    }
    Some(stream)
}

macro_rules! fopen_hooks {
    ($($name:ident)*) => { $(
        /// `fopen`.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(path: *const c_char, mode: *const c_char) -> *mut libc::FILE {
            // SAFETY: the caller's contract is `fopen`'s.
            if let Some(stream) = unsafe { fopen_if_ours(path, mode) } {
                return stream;
            }
            forward!($name: fn(*const c_char, *const c_char) -> *mut libc::FILE,
                (path, mode), ptr::null_mut())
        }
    )* };
}

fopen_hooks!(fopen fopen64);
