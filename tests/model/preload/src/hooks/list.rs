//! Directory streams.

use std::ffi::{c_char, c_int, c_long, c_void};
use std::ptr;

use kfd::sys::Errno;
use model::Node;

use super::{answer, ours};
use crate::descriptors;
use crate::directory::{self, is_ours};
use crate::instance::Instance;
use crate::next::{fail, forward};

fn stream(instance: &Instance, path: &str, fd: c_int) -> Result<*mut c_void, Errno> {
    directory::open(instance, path, fd).map_err(Errno::from_raw_os_error)
}

/// `opendir`.
#[unsafe(no_mangle)]
unsafe extern "C" fn opendir(path: *const c_char) -> *mut c_void {
    // SAFETY: the caller's contract is `opendir`'s.
    if let Some((instance, path)) = unsafe { ours(libc::AT_FDCWD, path) } {
        match instance.model.node(&path, true) {
            Ok(None) => {}
            Ok(Some(Node::Directory)) => {
                return answer(ptr::null_mut(), || {
                    let fd = instance.open_directory(&path, libc::O_CLOEXEC)?;
                    stream(instance, &path, fd).inspect_err(|_| {
                        // SAFETY: opened just now; goes through our own hook.
                        unsafe { libc::close(fd) };
                    })
                });
            }
            Ok(Some(_)) => return fail(libc::ENOTDIR, ptr::null_mut()),
            Err(errno) => return fail(errno.raw_os_error(), ptr::null_mut()),
        }
    }
    forward!(opendir: fn(*const c_char) -> *mut c_void, (path), ptr::null_mut())
}

/// `fdopendir`.
#[unsafe(no_mangle)]
unsafe extern "C" fn fdopendir(fd: c_int) -> *mut c_void {
    if descriptors::may_be_ours(fd)
        && let Some(entry) = descriptors::find(fd)
        && let Some(instance) = Instance::existing()
    {
        return answer(ptr::null_mut(), || {
            let path = instance.directory(entry).ok_or(Errno::NOTDIR)?;
            stream(instance, &path, fd)
        });
    }
    forward!(fdopendir: fn(c_int) -> *mut c_void, (fd), ptr::null_mut())
}

macro_rules! readdir_hooks {
    ($($name:ident)*) => { $(
        /// `readdir`.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(stream: *mut c_void) -> *mut c_void {
            if is_ours(stream) {
                // SAFETY: the caller's contract is `readdir`'s.
                let listing = unsafe { directory::listing(stream) };
                return listing.map_or(ptr::null_mut(), |listing| listing.read().cast());
            }
            forward!($name: fn(*mut c_void) -> *mut c_void, (stream), ptr::null_mut())
        }
    )* };
}

readdir_hooks!(readdir readdir64);

/// `closedir`.
#[unsafe(no_mangle)]
unsafe extern "C" fn closedir(stream: *mut c_void) -> c_int {
    if is_ours(stream) {
        // SAFETY: the caller's contract is `closedir`'s.
        return match unsafe { directory::close(stream) } {
            // SAFETY: the stream owned the descriptor.
            Some(fd) => unsafe { libc::close(fd) },
            None => fail(libc::EBADF, -1),
        };
    }
    forward!(closedir: fn(*mut c_void) -> c_int, (stream), -1)
}

/// `rewinddir`.
#[unsafe(no_mangle)]
unsafe extern "C" fn rewinddir(stream: *mut c_void) {
    if is_ours(stream) {
        // SAFETY: the caller's contract is `rewinddir`'s.
        if let Some(listing) = unsafe { directory::listing(stream) } {
            listing.seek(0);
        }
        return;
    }
    forward!(rewinddir: fn(*mut c_void) -> (), (stream), ());
}

/// `telldir`.
#[unsafe(no_mangle)]
unsafe extern "C" fn telldir(stream: *mut c_void) -> c_long {
    if is_ours(stream) {
        // SAFETY: the caller's contract is `telldir`'s.
        let listing = unsafe { directory::listing(stream) };
        return listing.map_or(-1, |listing| c_long::try_from(listing.position()).unwrap_or(-1));
    }
    forward!(telldir: fn(*mut c_void) -> c_long, (stream), -1)
}

/// `seekdir`.
#[unsafe(no_mangle)]
unsafe extern "C" fn seekdir(stream: *mut c_void, position: c_long) {
    if is_ours(stream) {
        // SAFETY: the caller's contract is `seekdir`'s.
        if let Some(listing) = unsafe { directory::listing(stream) } {
            listing.seek(usize::try_from(position).unwrap_or(0));
        }
        return;
    }
    forward!(seekdir: fn(*mut c_void, c_long) -> (), (stream, position), ());
}

/// `dirfd`.
#[unsafe(no_mangle)]
unsafe extern "C" fn dirfd(stream: *mut c_void) -> c_int {
    if is_ours(stream) {
        // SAFETY: the caller's contract is `dirfd`'s.
        let listing = unsafe { directory::listing(stream) };
        return listing.map_or(-1, |listing| listing.fd);
    }
    forward!(dirfd: fn(*mut c_void) -> c_int, (stream), -1)
}

type Filter = Option<unsafe extern "C" fn(*const c_void) -> c_int>;
type Compare = Option<unsafe extern "C" fn(*const c_void, *const c_void) -> c_int>;

/// `scandir` of a directory of the model's: an array of entries, all from `malloc`.
///
/// # Safety
/// As for `scandir`.
unsafe fn scan(
    path: *const c_char,
    list: *mut *mut *mut libc::dirent64,
    filter: Filter,
    compare: Compare,
) -> c_int {
    // SAFETY: the caller's contract is `scandir`'s.
    let stream = unsafe { opendir(path) };
    if stream.is_null() {
        return -1;
    }
    let mut entries: Vec<*mut libc::dirent64> = Vec::new();
    loop {
        // SAFETY: opened just now, and used by nobody else.
        let entry = unsafe { readdir64(stream) };
        if entry.is_null() {
            break;
        }
        // SAFETY: the filter takes an entry.
        if filter.is_some_and(|filter| unsafe { filter(entry) } == 0) {
            continue;
        }
        let bytes = size_of::<libc::dirent64>();
        // SAFETY: no precondition.
        let copy = unsafe { libc::malloc(bytes) };
        if !copy.is_null() {
            // SAFETY: both have so many bytes.
            unsafe { libc::memcpy(copy, entry, bytes) };
            entries.push(copy.cast());
        }
    }
    // SAFETY: nothing uses the stream any more.
    unsafe { closedir(stream) };
    let bytes = entries.len() * size_of::<*mut libc::dirent64>();
    // SAFETY: no precondition.
    let array = unsafe { libc::malloc(bytes.max(1)) }.cast::<*mut libc::dirent64>();
    if array.is_null() {
        return fail(libc::ENOMEM, -1);
    }
    // SAFETY: the array has room for all entries.
    unsafe { ptr::copy_nonoverlapping(entries.as_ptr(), array, entries.len()) };
    if compare.is_some() {
        // SAFETY: the comparison takes pointers to elements.
        unsafe { libc::qsort(array.cast(), entries.len(), size_of::<*mut c_void>(), compare) };
    }
    // SAFETY: the caller gave a place for the array.
    unsafe { list.write(array) };
    c_int::try_from(entries.len()).unwrap_or(c_int::MAX)
}

macro_rules! scandir_hooks {
    ($($name:ident)*) => { $(
        /// `scandir`.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(
            path: *const c_char,
            list: *mut *mut *mut libc::dirent64,
            filter: Filter,
            compare: Compare,
        ) -> c_int {
            // SAFETY: the caller's contract is `scandir`'s.
            if unsafe { ours(libc::AT_FDCWD, path) }.is_some() {
                // SAFETY: as above.
                return unsafe { scan(path, list, filter, compare) };
            }
            forward!(
                $name: fn(*const c_char, *mut *mut *mut libc::dirent64, Filter, Compare) -> c_int,
                (path, list, filter, compare), -1)
        }
    )* };
}

scandir_hooks!(scandir scandir64);
