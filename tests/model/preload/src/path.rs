//! Which paths are the model's, decided on the bytes of the caller's string.

use std::ffi::{CStr, c_char};

/// The first components of the model's paths. The model decides on what lies below.
const OURS: [&[&[u8]]; 9] = [
    &[b"dev", b"kfd"],
    &[b"dev", b"dri"],
    &[b"sys", b"class", b"kfd"],
    &[b"sys", b"class", b"drm"],
    &[b"sys", b"devices", b"virtual", b"kfd"],
    &[b"sys", b"devices", b"pci0000:02"],
    &[b"sys", b"module", b"amdgpu"],
    &[b"sys", b"bus", b"pci", b"drivers", b"amdgpu"],
    &[b"proc", b"modules"],
];

/// Before the numbers of DRM's character devices.
const DRM_NUMBERS: [&[u8]; 3] = [b"sys", b"dev", b"char"];

/// Whether the absolute path may be the model's. `..` is not followed: such a path is the machine's.
pub(crate) fn is_ours(path: &[u8]) -> bool {
    if path.first() != Some(&b'/') {
        return false;
    }
    let components = path.split(|byte| *byte == b'/');
    let components = components.filter(|part| !part.is_empty() && *part != b".");
    let mut drm = components.clone();
    if DRM_NUMBERS.iter().all(|part| drm.next() == Some(part)) {
        return drm.next().is_some_and(|number| number.starts_with(b"226:"));
    }
    OURS.iter().any(|ours| {
        let mut components = components.clone();
        ours.iter().all(|part| components.next() == Some(part))
    })
}

/// The caller's string; `None` for pointers into the first page, with which the kernel has to deal.
///
/// # Safety
/// `path` must be null, within the first page, or a C string that outlives the result.
pub(crate) unsafe fn bytes<'a>(path: *const c_char) -> Option<&'a [u8]> {
    if path.addr() < 4096 {
        return None;
    }
    // SAFETY: a C string by the contract of this function.
    Some(unsafe { CStr::from_ptr(path) }.to_bytes())
}
