//! Looking at paths: the `stat` family, `access`, `readlink`, `realpath`.

use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::ptr;

use kfd::sys::{Errno, Metadata};
use model::Node;

use super::file::MODULES;
use super::{answer, ours};
use crate::descriptors::{self, Kind};
use crate::instance::Instance;
use crate::next::{fail, forward};

/// Bytes that sysfs says of every file.
const TEXT_BYTES: i64 = 4096;

const fn is_kind(mode: u32, kind: u32) -> bool {
    mode & libc::S_IFMT == kind
}

fn stat_of(metadata: &Metadata, inode: u64) -> libc::stat {
    // SAFETY: all zeros are a valid `stat`.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    stat.st_mode = metadata.mode;
    stat.st_uid = metadata.uid;
    stat.st_gid = metadata.gid;
    stat.st_rdev = metadata.rdev;
    stat.st_nlink = if is_kind(metadata.mode, libc::S_IFDIR) { 2 } else { 1 };
    stat.st_blksize = 4096;
    stat.st_size = if is_kind(metadata.mode, libc::S_IFREG) { TEXT_BYTES } else { 0 };
    stat.st_dev = 0x16; // some file system
    stat.st_ino = inode;
    stat
}

/// A number for a path: FNV-1a.
fn inode(path: &str) -> u64 {
    path.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}

/// What the model says of a path; `None` when it is the machine's.
fn look(instance: &Instance, path: &str, follow: bool) -> Option<Result<libc::stat, Errno>> {
    if path == MODULES {
        return None;
    }
    let node = match instance.model.node(path, follow) {
        Ok(node) => node?,
        Err(errno) => return Some(Err(errno)),
    };
    let canonical =
        if node == Node::Link { Ok(path.to_owned()) } else { instance.model.canonical(path) };
    let stat = canonical.and_then(|canonical| {
        instance.model.stat(path, follow).map(|metadata| stat_of(&metadata, inode(&canonical)))
    });
    Some(stat)
}

/// What the model says of a descriptor; `None` when it is the machine's.
fn look_at(fd: c_int) -> Option<Result<libc::stat, Errno>> {
    if !descriptors::may_be_ours(fd) {
        return None;
    }
    let entry = descriptors::find(fd)?;
    let instance = Instance::existing()?;
    match entry.kind {
        Kind::Directory => look(instance, &instance.directory(entry)?, true),
        Kind::Kfd | Kind::Render => {
            let file = instance.file(entry)?;
            Some(instance.model.file_metadata(file).map(|metadata| stat_of(&metadata, 1)))
        }
        Kind::DmaBuf | Kind::Smi => None,
    }
}

/// # Safety
/// `path` as for `fstatat`.
unsafe fn find(
    directory: c_int,
    path: *const c_char,
    follow: bool,
) -> Option<Result<libc::stat, Errno>> {
    // SAFETY: the caller's promise.
    let (instance, path) = unsafe { ours(directory, path) }?;
    look(instance, &path, follow)
}

/// Stores what was found; the call's result.
///
/// # Safety
/// `to` must have room for a `stat`.
unsafe fn store(found: Result<libc::stat, Errno>, to: *mut c_void) -> c_int {
    answer(-1, || {
        let stat = found?;
        // SAFETY: room for a `stat`, by the contract of this function; `stat64` is the same on
        // x86-64.
        unsafe { to.cast::<libc::stat>().write(stat) };
        Ok(0)
    })
}

macro_rules! stat_hooks {
    ($($name:ident $follow:literal)*) => { $(
        /// `stat` or `lstat`.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(path: *const c_char, to: *mut c_void) -> c_int {
            // SAFETY: the caller's contract is `stat`'s.
            match unsafe { find(libc::AT_FDCWD, path, $follow) } {
                // SAFETY: as above.
                Some(found) => unsafe { store(found, to) },
                None => forward!($name: fn(*const c_char, *mut c_void) -> c_int, (path, to), -1),
            }
        }
    )* };
}

stat_hooks!(stat true stat64 true lstat false lstat64 false);

macro_rules! xstat_hooks {
    ($($name:ident $follow:literal)*) => { $(
        /// `stat` or `lstat` of programs built with glibc before 2.33.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(version: c_int, path: *const c_char, to: *mut c_void) -> c_int {
            // SAFETY: the caller's contract is `stat`'s.
            match unsafe { find(libc::AT_FDCWD, path, $follow) } {
                // SAFETY: as above.
                Some(found) => unsafe { store(found, to) },
                None => forward!($name: fn(c_int, *const c_char, *mut c_void) -> c_int,
                    (version, path, to), -1),
            }
        }
    )* };
}

xstat_hooks!(__xstat true __xstat64 true __lxstat false __lxstat64 false);

macro_rules! fstat_hooks {
    ($($name:ident)*) => { $(
        /// `fstat`.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(fd: c_int, to: *mut c_void) -> c_int {
            match look_at(fd) {
                // SAFETY: the caller's contract is `fstat`'s.
                Some(found) => unsafe { store(found, to) },
                None => forward!($name: fn(c_int, *mut c_void) -> c_int, (fd, to), -1),
            }
        }
    )* };
}

fstat_hooks!(fstat fstat64);

macro_rules! fxstat_hooks {
    ($($name:ident)*) => { $(
        /// `fstat` of programs built with glibc before 2.33.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(version: c_int, fd: c_int, to: *mut c_void) -> c_int {
            match look_at(fd) {
                // SAFETY: the caller's contract is `fstat`'s.
                Some(found) => unsafe { store(found, to) },
                None => forward!($name: fn(c_int, c_int, *mut c_void) -> c_int,
                    (version, fd, to), -1),
            }
        }
    )* };
}

fxstat_hooks!(__fxstat __fxstat64);

/// # Safety
/// As for `fstatat`.
unsafe fn find_at(
    directory: c_int,
    path: *const c_char,
    flags: c_int,
) -> Option<Result<libc::stat, Errno>> {
    if flags & libc::AT_EMPTY_PATH != 0 {
        // SAFETY: the caller's contract is `fstatat`'s.
        let empty = path.is_null() || unsafe { crate::path::bytes(path) } == Some(b"");
        if empty {
            return look_at(directory);
        }
    }
    // SAFETY: as above.
    unsafe { find(directory, path, flags & libc::AT_SYMLINK_NOFOLLOW == 0) }
}

macro_rules! fstatat_hooks {
    ($($name:ident)*) => { $(
        /// `fstatat`.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(
            directory: c_int,
            path: *const c_char,
            to: *mut c_void,
            flags: c_int,
        ) -> c_int {
            // SAFETY: the caller's contract is `fstatat`'s.
            match unsafe { find_at(directory, path, flags) } {
                // SAFETY: as above.
                Some(found) => unsafe { store(found, to) },
                None => forward!($name: fn(c_int, *const c_char, *mut c_void, c_int) -> c_int,
                    (directory, path, to, flags), -1),
            }
        }
    )* };
}

fstatat_hooks!(fstatat fstatat64);

macro_rules! fxstatat_hooks {
    ($($name:ident)*) => { $(
        /// `fstatat` of programs built with glibc before 2.33.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(
            version: c_int,
            directory: c_int,
            path: *const c_char,
            to: *mut c_void,
            flags: c_int,
        ) -> c_int {
            // SAFETY: the caller's contract is `fstatat`'s.
            match unsafe { find_at(directory, path, flags) } {
                // SAFETY: as above.
                Some(found) => unsafe { store(found, to) },
                None => forward!($name: fn(c_int, c_int, *const c_char, *mut c_void, c_int) -> c_int,
                    (version, directory, path, to, flags), -1),
            }
        }
    )* };
}

fxstatat_hooks!(__fxstatat __fxstatat64);

fn statx_of(stat: &libc::stat) -> libc::statx {
    // SAFETY: all zeros are a valid `statx`.
    let mut all: libc::statx = unsafe { std::mem::zeroed() };
    all.stx_mask = libc::STATX_BASIC_STATS;
    all.stx_blksize = 4096;
    all.stx_nlink = u32::try_from(stat.st_nlink).unwrap_or(1);
    all.stx_uid = stat.st_uid;
    all.stx_gid = stat.st_gid;
    all.stx_mode = u16::try_from(stat.st_mode).unwrap_or(0);
    all.stx_ino = stat.st_ino;
    all.stx_size = stat.st_size.cast_unsigned();
    all.stx_rdev_major = libc::major(stat.st_rdev);
    all.stx_rdev_minor = libc::minor(stat.st_rdev);
    all.stx_dev_minor = libc::minor(stat.st_dev);
    all
}

/// `statx`.
#[unsafe(no_mangle)]
unsafe extern "C" fn statx(
    directory: c_int,
    path: *const c_char,
    flags: c_int,
    mask: c_uint,
    to: *mut libc::statx,
) -> c_int {
    // SAFETY: the caller's contract is `statx`'s.
    match unsafe { find_at(directory, path, flags) } {
        Some(found) => answer(-1, || {
            let stat = found?;
            // SAFETY: the caller gave room for the answer.
            unsafe { to.write(statx_of(&stat)) };
            Ok(0)
        }),
        None => forward!(
            statx: fn(c_int, *const c_char, c_int, c_uint, *mut libc::statx) -> c_int,
            (directory, path, flags, mask, to), -1),
    }
}

/// Whether the process may use what was found as `access` asks.
fn may(stat: &libc::stat, wanted: c_int) -> Result<c_int, Errno> {
    // SAFETY: takes nothing, cannot fail.
    let root = unsafe { libc::geteuid() } == 0;
    let bits = if root || stat.st_mode & 0o222 != 0 { 6 } else { 4 };
    let bits = bits | if is_kind(stat.st_mode, libc::S_IFDIR) { 1 } else { 0 };
    // Files of sysfs that have no writing bit cannot be written by root either.
    let read_only = is_kind(stat.st_mode, libc::S_IFREG);
    let denied = wanted & !bits != 0 || read_only && wanted & libc::W_OK != 0;
    if denied { Err(Errno::ACCESS) } else { Ok(0) }
}

/// # Safety
/// `path` as for `faccessat`.
unsafe fn access_at(directory: c_int, path: *const c_char, mode: c_int) -> Option<c_int> {
    // SAFETY: the caller's promise.
    let found = unsafe { find(directory, path, true) }?;
    Some(answer(-1, || may(&found?, mode)))
}

macro_rules! access_hooks {
    ($($name:ident)*) => { $(
        /// `access`.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(path: *const c_char, mode: c_int) -> c_int {
            // SAFETY: the caller's contract is `access`'s.
            if let Some(result) = unsafe { access_at(libc::AT_FDCWD, path, mode) } {
                return result;
            }
            forward!($name: fn(*const c_char, c_int) -> c_int, (path, mode), -1)
        }
    )* };
}

access_hooks!(access euidaccess eaccess);

/// `faccessat`.
#[unsafe(no_mangle)]
unsafe extern "C" fn faccessat(
    directory: c_int,
    path: *const c_char,
    mode: c_int,
    flags: c_int,
) -> c_int {
    // SAFETY: the caller's contract is `faccessat`'s.
    if let Some(result) = unsafe { access_at(directory, path, mode) } {
        return result;
    }
    forward!(faccessat: fn(c_int, *const c_char, c_int, c_int) -> c_int,
        (directory, path, mode, flags), -1)
}

/// # Safety
/// As for `readlinkat`.
unsafe fn link_at(
    directory: c_int,
    path: *const c_char,
    to: *mut c_char,
    room: usize,
) -> Option<isize> {
    // SAFETY: the caller's promise.
    let (instance, path) = unsafe { ours(directory, path) }?;
    if path == MODULES {
        return None;
    }
    Some(answer(-1, || {
        if instance.model.node(&path, false)? != Some(Node::Link) {
            return Err(Errno::INVAL);
        }
        let target = kfd::sys::Kernel::read_link(&*instance.model, &path)?;
        let count = target.len().min(room);
        // SAFETY: `room` bytes belong to the caller's buffer, and `count` to the target.
        unsafe { ptr::copy_nonoverlapping(target.as_ptr(), to.cast(), count) };
        isize::try_from(count).map_err(|_| Errno::INVAL)
    }))
}

/// `readlink`.
#[unsafe(no_mangle)]
unsafe extern "C" fn readlink(path: *const c_char, to: *mut c_char, room: usize) -> isize {
    // SAFETY: the caller's contract is `readlink`'s.
    if let Some(result) = unsafe { link_at(libc::AT_FDCWD, path, to, room) } {
        return result;
    }
    forward!(readlink: fn(*const c_char, *mut c_char, usize) -> isize, (path, to, room), -1)
}

/// `readlinkat`.
#[unsafe(no_mangle)]
unsafe extern "C" fn readlinkat(
    directory: c_int,
    path: *const c_char,
    to: *mut c_char,
    room: usize,
) -> isize {
    // SAFETY: the caller's contract is `readlinkat`'s.
    if let Some(result) = unsafe { link_at(directory, path, to, room) } {
        return result;
    }
    forward!(readlinkat: fn(c_int, *const c_char, *mut c_char, usize) -> isize,
        (directory, path, to, room), -1)
}

/// `readlink` with `_FORTIFY_SOURCE`.
#[unsafe(no_mangle)]
unsafe extern "C" fn __readlink_chk(
    path: *const c_char,
    to: *mut c_char,
    room: usize,
    object: usize,
) -> isize {
    // SAFETY: the caller's contract is `readlink`'s.
    if let Some(result) = unsafe { link_at(libc::AT_FDCWD, path, to, room.min(object)) } {
        return result;
    }
    forward!(__readlink_chk: fn(*const c_char, *mut c_char, usize, usize) -> isize,
        (path, to, room, object), -1)
}

/// # Safety
/// As for `realpath`.
unsafe fn canonical(path: *const c_char, to: *mut c_char) -> Option<*mut c_char> {
    // SAFETY: the caller's promise.
    let (instance, path) = unsafe { ours(libc::AT_FDCWD, path) }?;
    if path == MODULES {
        return None;
    }
    Some(answer(ptr::null_mut(), || {
        let path = CString::new(instance.model.canonical(&path)?).map_err(|_| Errno::INVAL)?;
        let bytes = path.as_bytes_with_nul();
        if bytes.len() > usize::try_from(libc::PATH_MAX).unwrap_or(0) {
            return Err(Errno::NAMETOOLONG);
        }
        if to.is_null() {
            // SAFETY: a C string; the caller frees the copy.
            return Ok(unsafe { libc::strdup(path.as_ptr()) });
        }
        // SAFETY: the caller's buffer has PATH_MAX bytes.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), to.cast(), bytes.len()) };
        Ok(to)
    }))
}

/// `realpath`.
#[unsafe(no_mangle)]
unsafe extern "C" fn realpath(path: *const c_char, to: *mut c_char) -> *mut c_char {
    // SAFETY: the caller's contract is `realpath`'s.
    if let Some(result) = unsafe { canonical(path, to) } {
        return result;
    }
    forward!(realpath: fn(*const c_char, *mut c_char) -> *mut c_char, (path, to), ptr::null_mut())
}

/// `realpath` with `_FORTIFY_SOURCE`.
#[unsafe(no_mangle)]
unsafe extern "C" fn __realpath_chk(
    path: *const c_char,
    to: *mut c_char,
    object: usize,
) -> *mut c_char {
    if object < usize::try_from(libc::PATH_MAX).unwrap_or(0) {
        return fail(libc::EINVAL, ptr::null_mut());
    }
    // SAFETY: the caller's contract is `realpath`'s.
    if let Some(result) = unsafe { canonical(path, to) } {
        return result;
    }
    forward!(__realpath_chk: fn(*const c_char, *mut c_char, usize) -> *mut c_char,
        (path, to, object), ptr::null_mut())
}

/// The model's files have no extended attributes.
///
/// # Safety
/// `path` must be a C string.
unsafe fn has_no_attributes(path: *const c_char, follow: bool) -> Option<isize> {
    // SAFETY: the caller's promise.
    let found = unsafe { find(libc::AT_FDCWD, path, follow) }?;
    Some(answer(-1, || found.and(Err(Errno::OPNOTSUPP))))
}

macro_rules! getxattr_hooks {
    ($($name:ident $follow:literal)*) => { $(
        /// `getxattr` or `lgetxattr`.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(
            path: *const c_char,
            name: *const c_char,
            to: *mut c_void,
            room: usize,
        ) -> isize {
            // SAFETY: the caller's contract is `getxattr`'s.
            if let Some(result) = unsafe { has_no_attributes(path, $follow) } {
                return result;
            }
            forward!($name: fn(*const c_char, *const c_char, *mut c_void, usize) -> isize,
                (path, name, to, room), -1)
        }
    )* };
}

getxattr_hooks!(getxattr true lgetxattr false);

macro_rules! listxattr_hooks {
    ($($name:ident $follow:literal)*) => { $(
        /// `listxattr` or `llistxattr`.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(path: *const c_char, to: *mut c_char, room: usize) -> isize {
            // SAFETY: the caller's contract is `listxattr`'s.
            if let Some(result) = unsafe { has_no_attributes(path, $follow) } {
                return result;
            }
            forward!($name: fn(*const c_char, *mut c_char, usize) -> isize, (path, to, room), -1)
        }
    )* };
}

listxattr_hooks!(listxattr true llistxattr false);
