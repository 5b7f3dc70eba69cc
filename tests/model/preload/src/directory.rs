//! Streams of the model's directories. Programs hold them as `DIR *`; they lie in a static array, so
//! that a hook tells ours from the C library's by their address.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use kfd::sys::Kernel as _;
use model::Node;

use crate::instance::Instance;

/// As many streams can be open at a time.
const STREAMS: usize = 64;

/// An open directory.
pub(crate) struct Listing {
    /// Names with their types, `.` and `..` first.
    names: Vec<(String, u8)>,
    next: usize,
    pub(crate) fd: i32,
    entry: libc::dirent64,
}

#[repr(align(64))]
struct Stream {
    taken: AtomicBool,
    listing: AtomicPtr<Listing>,
}

static ALL: [Stream; STREAMS] =
    [const { Stream { taken: AtomicBool::new(false), listing: AtomicPtr::new(ptr::null_mut()) } };
        STREAMS];

/// Whether a stream is one of ours.
#[inline]
pub(crate) fn is_ours(stream: *const c_void) -> bool {
    let start = (&raw const ALL).addr();
    (start..start + size_of_val(&ALL)).contains(&stream.addr())
}

fn stream(stream: *const c_void) -> Option<&'static Stream> {
    let offset = stream.addr().checked_sub((&raw const ALL).addr())?;
    ALL.get(offset / size_of::<Stream>())
}

/// Opens a stream of the directory `path`, which `fd` stands for.
pub(crate) fn open(instance: &Instance, path: &str, fd: i32) -> Result<*mut c_void, i32> {
    let names = instance.model.read_dir(path).map_err(|errno| errno.raw_os_error())?;
    let mut all = vec![(".".to_owned(), libc::DT_DIR), ("..".to_owned(), libc::DT_DIR)];
    for name in names {
        let kind = match instance.model.node(&format!("{path}/{name}"), false) {
            Ok(Some(Node::Device)) => libc::DT_CHR,
            Ok(Some(Node::Directory)) => libc::DT_DIR,
            Ok(Some(Node::Link)) => libc::DT_LNK,
            _ => libc::DT_REG,
        };
        all.push((name, kind));
    }
    let free = ALL.iter().find(|stream| !stream.taken.swap(true, Ordering::AcqRel));
    let free = free.ok_or(libc::EMFILE)?;
    // SAFETY: all zeros are a valid `dirent64`.
    let entry = unsafe { std::mem::zeroed() };
    let listing = Box::new(Listing { names: all, next: 0, fd, entry });
    free.listing.store(Box::into_raw(listing), Ordering::Release);
    Ok((&raw const *free).cast_mut().cast())
}

/// The listing of one of our streams.
///
/// # Safety
/// The stream must be open, and nobody else may use it meanwhile, as with any `DIR`.
pub(crate) unsafe fn listing<'a>(of: *const c_void) -> Option<&'a mut Listing> {
    let listing = stream(of)?.listing.load(Ordering::Acquire);
    // SAFETY: null, or made by `open` and not yet freed by `close`; the caller uses it alone.
    unsafe { listing.as_mut() }
}

/// Ends one of our streams; gives its descriptor.
///
/// # Safety
/// As for [`listing`]; the stream is not used any more.
pub(crate) unsafe fn close(of: *const c_void) -> Option<i32> {
    let stream = stream(of)?;
    let listing = stream.listing.swap(ptr::null_mut(), Ordering::AcqRel);
    if listing.is_null() {
        return None;
    }
    // SAFETY: made by `Box::into_raw` in `open`, and taken out just now.
    let listing = unsafe { Box::from_raw(listing) };
    stream.taken.store(false, Ordering::Release);
    Some(listing.fd)
}

impl Listing {
    /// The next entry, valid until the next call; null at the end.
    pub(crate) fn read(&mut self) -> *mut libc::dirent64 {
        let Some((name, kind)) = self.names.get(self.next) else { return ptr::null_mut() };
        self.next += 1;
        let entry = &mut self.entry;
        entry.d_ino = u64::try_from(self.next).unwrap_or(1);
        entry.d_off = i64::try_from(self.next).unwrap_or(i64::MAX);
        entry.d_type = *kind;
        entry.d_reclen = u16::try_from(size_of::<libc::dirent64>()).unwrap_or(u16::MAX);
        let bytes = name.bytes().take(entry.d_name.len() - 1).chain([0]);
        for (to, from) in entry.d_name.iter_mut().zip(bytes) {
            *to = from.cast_signed();
        }
        entry
    }

    pub(crate) const fn position(&self) -> usize {
        self.next
    }

    pub(crate) const fn seek(&mut self, position: usize) {
        self.next = position;
    }
}
