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

/// Whether every page of the range belongs to a readable (and `writable`) mapping, as pinning a
/// user range needs.
pub(crate) fn is_ordinary_memory(address: u64, bytes: u64, writable: bool) -> bool {
    let Some(end) = address.checked_add(bytes) else { return false };
    let Ok(maps) = std::fs::read_to_string("/proc/self/maps") else { return false };
    let mut at = address;
    for line in maps.lines() {
        let mut fields = line.split(' ');
        let (Some(range), Some(access)) = (fields.next(), fields.next()) else { continue };
        let Some((low, high)) = range.split_once('-') else { continue };
        let bounds = (u64::from_str_radix(low, 16), u64::from_str_radix(high, 16));
        let (Ok(low), Ok(high)) = bounds else { continue };
        if (low..high).contains(&at) {
            if !access.starts_with('r') || writable && !access.starts_with("rw") {
                return false;
            }
            at = high;
            if at >= end {
                return true;
            }
        }
    }
    false
}
