//! The C library's names. Signatures are fixed: on x86-64 a variadic function takes its first
//! arguments where one with as many fixed arguments does.

mod device;
mod file;
mod list;
mod look;

pub(crate) use device::{close_ours, duplicate_ours};

use std::ffi::c_char;
use std::panic::{AssertUnwindSafe, catch_unwind};

use kfd::sys::Errno;

use crate::descriptors;
use crate::instance::Instance;
use crate::next::fail;
use crate::path;

/// The model's path that a caller names, if it is one; `None` leaves the call to the machine.
///
/// # Safety
/// As for [`path::bytes`].
unsafe fn ours(directory: i32, text: *const c_char) -> Option<(&'static Instance, String)> {
    // SAFETY: the caller's promise.
    let bytes = unsafe { path::bytes(text) }?;
    if path::is_ours(bytes) {
        let instance = Instance::get()?;
        return Some((instance, String::from_utf8_lossy(bytes).into_owned()));
    }
    if bytes.first() == Some(&b'/') || !descriptors::may_be_ours(directory) {
        return None;
    }
    let instance = Instance::existing()?;
    let base = instance.directory(descriptors::find(directory)?)?;
    let name = String::from_utf8_lossy(bytes);
    Some((instance, if name.is_empty() { base } else { format!("{base}/{name}") }))
}

/// What a call on the model's behalf gives: its value, or `failed` with errno set. A panic, which
/// would be a defect of the model, is `EIO`.
pub(crate) fn answer<T>(failed: T, call: impl FnOnce() -> Result<T, Errno>) -> T {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(value)) => value,
        Ok(Err(errno)) => fail(errno.raw_os_error(), failed),
        Err(_) => fail(libc::EIO, failed),
    }
}
