//! What is done with a descriptor: `ioctl`, `mmap`, `read`, `write`, `close`, `dup`, `fcntl`.

use std::ffi::{c_int, c_long, c_uint, c_ulong, c_void};
use std::sync::atomic::Ordering;

use kfd::sys::Errno;

use super::answer;
use crate::config::Log;
use crate::descriptors::{self, Kind, Ours};
use crate::instance::Instance;
use crate::next::{fail, forward};

/// The entry of a descriptor and this process's instance; without one the descriptor was inherited
/// from the process that forked.
fn look_up(fd: c_int) -> Option<(Ours, Option<&'static Instance>)> {
    if !descriptors::may_be_ours(fd) {
        return None;
    }
    let ours = descriptors::find(fd)?;
    let instance = Instance::existing().filter(|it| it.generation == ours.generation);
    Some((ours, instance))
}

fn ioctl_of_ours(
    instance: &Instance,
    ours: Ours,
    request: c_ulong,
    argument: *mut c_void,
) -> Result<c_int, Errno> {
    let file = instance.file(ours).ok_or(Errno::NOTTY)?;
    // The kernel takes the lower 32 bits.
    let request = u32::try_from(request & 0xffff_ffff).map_err(|_| Errno::NOTTY)?;
    let address = argument.expose_provenance() as u64;
    let before = instance.model.unmodelled();
    let result = instance.model.ioctl_at(file, request, address, instance);
    let unknown = result == Err(Errno::NOTTY)
        || ours.kind == Kind::Render && instance.model.unmodelled() != before;
    if unknown {
        instance.counts.unknown.fetch_add(1, Ordering::Relaxed);
    }
    let level = match result {
        _ if unknown => Log::Unknown,
        Err(_) => Log::Failed,
        Ok(_) => Log::All,
    };
    instance.log(level, || {
        let known = u8::try_from(request & 0xff).ok().and_then(kfd::abi::request::find);
        let name = match ours.kind {
            Kind::Kfd => known.map_or("KFD ioctl", |ioctl| ioctl.name),
            _ => "DRM ioctl",
        };
        let result = match result {
            Ok(value) => value.to_string(),
            Err(errno) => std::io::Error::from(errno).to_string(),
        };
        format!("{name} {request:#010x}{}: {result}", if unknown { ", unknown" } else { "" })
    });
    result.map(|value| c_int::try_from(value).unwrap_or(c_int::MAX))
}

/// `ioctl`.
#[unsafe(no_mangle)]
unsafe extern "C" fn ioctl(fd: c_int, request: c_ulong, argument: *mut c_void) -> c_int {
    match look_up(fd) {
        None => {
            forward!(ioctl: fn(c_int, c_ulong, *mut c_void) -> c_int, (fd, request, argument), -1)
        }
        // KFD serves only the process that opened it; unknown numbers it refuses before that.
        Some((_, None)) => {
            let request = u32::try_from(request & 0xffff_ffff).unwrap_or(0);
            let known = Instance::knows_ioctl(request);
            fail(if known { libc::EBADF } else { libc::ENOTTY }, -1)
        }
        Some((ours, Some(instance))) => {
            answer(-1, || ioctl_of_ours(instance, ours, request, argument))
        }
    }
}

/// Arguments of `mmap`.
#[derive(Clone, Copy)]
struct Map {
    at: *mut c_void,
    bytes: usize,
    protection: c_int,
    flags: c_int,
    fd: c_int,
    offset: i64,
}

/// The mapping to make, and whether a child must not get it.
fn map_of_ours(map: Map) -> Option<Result<(Map, bool), Errno>> {
    if map.flags & libc::MAP_ANONYMOUS != 0 {
        return None;
    }
    let (ours, instance) = look_up(map.fd)?;
    if ours.kind == Kind::Smi || ours.kind == Kind::Directory {
        return Some(Err(Errno::NODEV));
    }
    let Some(instance) = instance else {
        // The process is looked up by the caller, who has none.
        return (ours.kind == Kind::Kfd).then_some(Err(Errno::INVAL));
    };
    let file = instance.file(ours)?;
    let plan = instance.model.plan_map(file, map.offset.cast_unsigned(), map.bytes as u64);
    let level = if plan.is_ok() { Log::All } else { Log::Failed };
    instance.log(level, || {
        let result = match plan {
            Ok(plan) => format!("offset {:#x} of the memory file", plan.offset),
            Err(errno) => std::io::Error::from(errno).to_string(),
        };
        format!(
            "mmap of {:?}, offset {:#x}, {:#x} bytes: {result}",
            ours.kind, map.offset, map.bytes
        )
    });
    Some(plan.map(|plan| (Map { offset: plan.offset.cast_signed(), ..map }, plan.dont_fork)))
}

macro_rules! mmap_hooks {
    ($($name:ident)*) => { $(
        /// `mmap`.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(
            at: *mut c_void,
            bytes: usize,
            protection: c_int,
            flags: c_int,
            fd: c_int,
            offset: i64,
        ) -> *mut c_void {
            let map = Map { at, bytes, protection, flags, fd, offset };
            let (map, dont_fork) = if descriptors::may_be_ours(fd) {
                let mut failed = false;
                let planned = answer((map, false), || {
                    map_of_ours(map).unwrap_or(Ok((map, false))).inspect_err(|_| failed = true)
                });
                if failed {
                    return libc::MAP_FAILED;
                }
                planned
            } else {
                (map, false)
            };
            let Map { at, bytes, protection, flags, fd, offset } = map;
            let mapped = forward!(
                $name: fn(*mut c_void, usize, c_int, c_int, c_int, i64) -> *mut c_void,
                (at, bytes, protection, flags, fd, offset), libc::MAP_FAILED);
            if dont_fork && mapped != libc::MAP_FAILED {
                // SAFETY: the range was mapped just now; the advice changes nothing in this process.
                unsafe { libc::madvise(mapped, bytes, libc::MADV_DONTFORK) };
            }
            mapped
        }
    )* };
}

mmap_hooks!(mmap mmap64);

/// What `read` and `write` of a device give; `None` where the operating system does it.
fn cannot_transfer(fd: c_int) -> Option<isize> {
    let (ours, _) = look_up(fd)?;
    match ours.kind {
        Kind::Kfd | Kind::Render | Kind::DmaBuf => Some(fail(libc::EINVAL, -1)),
        Kind::Directory => Some(fail(libc::EISDIR, -1)),
        Kind::Smi => None,
    }
}

/// `read`.
#[unsafe(no_mangle)]
unsafe extern "C" fn read(fd: c_int, buffer: *mut c_void, bytes: usize) -> isize {
    if let Some(result) = cannot_transfer(fd) {
        return result;
    }
    forward!(read: fn(c_int, *mut c_void, usize) -> isize, (fd, buffer, bytes), -1)
}

/// `write`.
#[unsafe(no_mangle)]
unsafe extern "C" fn write(fd: c_int, buffer: *const c_void, bytes: usize) -> isize {
    if let Some(result) = cannot_transfer(fd) {
        return result;
    }
    if bytes < 8 && look_up(fd).is_some_and(|(ours, _)| ours.kind == Kind::Smi) {
        return fail(libc::EFAULT, -1); // a mask has eight bytes
    }
    forward!(write: fn(c_int, *const c_void, usize) -> isize, (fd, buffer, bytes), -1)
}

/// Takes a descriptor of this process's instance out, before its number can be given to another
/// file. What a process has inherited stays as it is: after `vfork` the table is the parent's.
fn take_out(fd: c_int) -> Option<(Ours, &'static Instance)> {
    let (ours, instance) = look_up(fd)?;
    let instance = instance?;
    descriptors::remove(fd);
    Some((ours, instance))
}

fn let_go(taken: Option<(Ours, &'static Instance)>) {
    if let Some((ours, instance)) = taken {
        answer(0, || {
            instance.released(ours);
            Ok(0)
        });
    }
}

/// `close`.
#[unsafe(no_mangle)]
unsafe extern "C" fn close(fd: c_int) -> c_int {
    let taken = take_out(fd);
    let result = forward!(close: fn(c_int) -> c_int, (fd), -1);
    let_go(taken);
    result
}

/// Closes a descriptor of the model's where nothing is hooked.
pub(crate) fn close_ours(fd: c_int) {
    let taken = take_out(fd);
    // SAFETY: who asks for it owns the descriptor.
    unsafe { libc::syscall(libc::SYS_close, fd) };
    let_go(taken);
}

/// Duplicates a descriptor of the model's where nothing is hooked.
pub(crate) fn duplicate_ours(fd: c_int) -> Result<c_int, Errno> {
    let (ours, instance) = look_up(fd).ok_or(Errno::BADF)?;
    let instance = instance.ok_or(Errno::BADF)?;
    // SAFETY: makes a new descriptor.
    let copy = unsafe { libc::syscall(libc::SYS_fcntl, fd, libc::F_DUPFD_CLOEXEC, 0) };
    let copy = c_int::try_from(copy).ok().filter(|copy| *copy >= 0).ok_or(Errno::MFILE)?;
    instance.duplicated(copy, ours);
    Ok(copy)
}

/// Enters a duplicate of `source`, if that is ours.
fn duplicated(source: c_int, copy: c_int) -> c_int {
    if copy < 0 {
        return copy;
    }
    if let Some((ours, Some(instance))) = look_up(source) {
        instance.duplicated(copy, ours);
    }
    copy
}

/// `dup`.
#[unsafe(no_mangle)]
unsafe extern "C" fn dup(fd: c_int) -> c_int {
    let copy = forward!(dup: fn(c_int) -> c_int, (fd), -1);
    duplicated(fd, copy)
}

/// Runs a call that replaces `target`.
fn replacing(source: c_int, target: c_int, call: impl FnOnce() -> c_int) -> c_int {
    if source == target {
        return call();
    }
    let taken = take_out(target);
    let copy = call();
    if copy < 0
        && let Some((ours, _)) = taken
    {
        descriptors::enter(target, ours); // it was not replaced
        return copy;
    }
    let_go(taken);
    duplicated(source, copy)
}

/// `dup2`.
#[unsafe(no_mangle)]
unsafe extern "C" fn dup2(source: c_int, target: c_int) -> c_int {
    replacing(source, target, || forward!(dup2: fn(c_int, c_int) -> c_int, (source, target), -1))
}

/// `dup3`.
#[unsafe(no_mangle)]
unsafe extern "C" fn dup3(source: c_int, target: c_int, flags: c_int) -> c_int {
    replacing(
        source,
        target,
        || forward!(dup3: fn(c_int, c_int, c_int) -> c_int, (source, target, flags), -1),
    )
}

macro_rules! fcntl_hooks {
    ($($name:ident)*) => { $(
        /// `fcntl`.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(fd: c_int, command: c_int, argument: c_long) -> c_int {
            let result = forward!($name: fn(c_int, c_int, c_long) -> c_int,
                (fd, command, argument), -1);
            if command == libc::F_DUPFD || command == libc::F_DUPFD_CLOEXEC {
                return duplicated(fd, result);
            }
            result
        }
    )* };
}

fcntl_hooks!(fcntl fcntl64);

/// `close_range`.
#[unsafe(no_mangle)]
unsafe extern "C" fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int {
    const CLOEXEC: c_int = 4; // CLOSE_RANGE_CLOEXEC closes nothing now
    let result =
        forward!(close_range: fn(c_uint, c_uint, c_int) -> c_int, (first, last, flags), -1);
    if result == 0 && flags & CLOEXEC == 0 {
        forget(first, last);
    }
    result
}

/// `closefrom`.
#[unsafe(no_mangle)]
unsafe extern "C" fn closefrom(first: c_int) {
    forward!(closefrom: fn(c_int) -> (), (first), ());
    forget(c_uint::try_from(first).unwrap_or(0), c_uint::MAX);
}

/// Lets go of what was closed in bulk.
fn forget(first: c_uint, last: c_uint) {
    let Some(instance) = Instance::existing() else { return };
    for (fd, ours) in descriptors::entered(first, last) {
        if ours.generation == instance.generation {
            descriptors::remove(fd);
            let_go(Some((ours, instance)));
        }
    }
}
