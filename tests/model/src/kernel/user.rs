//! Copies from and to the driver's memory, as `copy_from_user` and `copy_to_user` do.
//!
//! The kernel does it by system calls on this very process, so that a bad address is an `EFAULT`
//! and not a crash.

use std::io::{IoSlice, IoSliceMut};

use kfd::sys::Errno;
use nix::sys::uio::{RemoteIoVec, process_vm_readv, process_vm_writev};
use nix::unistd::Pid;
use zerocopy::{FromBytes, Immutable, IntoBytes};

fn remote(address: u64, bytes: usize) -> Result<[RemoteIoVec; 1], Errno> {
    let base = usize::try_from(address).map_err(|_| Errno::FAULT)?;
    Ok([RemoteIoVec { base, len: bytes }])
}

/// Fills `bytes` from `address`.
///
/// # Errors
/// `EFAULT` unless all of it can be read.
pub(crate) fn read_bytes(address: u64, bytes: &mut [u8]) -> Result<(), Errno> {
    let wanted = bytes.len();
    if wanted == 0 {
        return Ok(());
    }
    let from = remote(address, wanted)?;
    match process_vm_readv(Pid::this(), &mut [IoSliceMut::new(bytes)], &from) {
        Ok(done) if done == wanted => Ok(()),
        _ => Err(Errno::FAULT),
    }
}

/// Copies `bytes` to `address`.
///
/// # Errors
/// `EFAULT` unless all of it can be written.
pub(crate) fn write_bytes(address: u64, bytes: &[u8]) -> Result<(), Errno> {
    if bytes.is_empty() {
        return Ok(());
    }
    let to = remote(address, bytes.len())?;
    match process_vm_writev(Pid::this(), &[IoSlice::new(bytes)], &to) {
        Ok(done) if done == bytes.len() => Ok(()),
        _ => Err(Errno::FAULT),
    }
}

/// Reads one value.
///
/// # Errors
/// `EFAULT`.
pub(crate) fn read<T: FromBytes + IntoBytes>(address: u64) -> Result<T, Errno> {
    let mut value = T::new_zeroed();
    read_bytes(address, value.as_mut_bytes())?;
    Ok(value)
}

/// Writes one value.
///
/// # Errors
/// `EFAULT`.
pub(crate) fn write<T: IntoBytes + Immutable>(address: u64, value: &T) -> Result<(), Errno> {
    write_bytes(address, value.as_bytes())
}

/// `access_ok`: the range lies in the user half of the address space.
pub(crate) fn access_ok(address: u64, bytes: u64) -> bool {
    address.checked_add(bytes).is_some_and(|end| end <= 1 << 47)
}

/// A part of the process's address space, as `/proc/self/maps` shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Area {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) read: bool,
    pub(crate) write: bool,
    /// Pages of the kernel's own, such as the clock's: mapped without page structures.
    pub(crate) special: bool,
}

fn area(line: &str) -> Option<Area> {
    let mut fields = line.split(' ');
    let (low, high) = fields.next()?.split_once('-')?;
    let access = fields.next()?;
    Some(Area {
        start: u64::from_str_radix(low, 16).ok()?,
        end: u64::from_str_radix(high, 16).ok()?,
        read: access.starts_with('r'),
        write: access.get(1..)?.starts_with('w'),
        special: line.contains("[vvar") || line.ends_with("[vsyscall]"),
    })
}

/// The parts of the range, cut to it; `None` when a page of it belongs to none.
pub(crate) fn areas(address: u64, bytes: u64) -> Option<Vec<Area>> {
    let end = address.checked_add(bytes)?;
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let mut areas = Vec::new();
    let mut at = address;
    for area in maps.lines().filter_map(area) {
        if at < end && (area.start..area.end).contains(&at) {
            areas.push(Area { start: at, end: area.end.min(end), ..area });
            at = area.end;
        }
    }
    (at >= end).then_some(areas)
}

/// Whether every page of the range belongs to a readable (and `writable`) mapping, as pinning a
/// user range needs.
pub(crate) fn is_ordinary_memory(address: u64, bytes: u64, writable: bool) -> bool {
    let allowed = |area: &Area| area.read && (area.write || !writable);
    areas(address, bytes).is_some_and(|areas| areas.iter().all(allowed))
}
