//! The definitions that the program would have got without us.

use std::ffi::{CStr, c_void};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The next definition of a name after this library, found on first use: no constructor need have
/// run. Two threads that race find the same.
pub(crate) struct Next {
    name: &'static CStr,
    found: AtomicPtr<c_void>,
}

impl Next {
    pub(crate) const fn new(name: &'static CStr) -> Self {
        Self { name, found: AtomicPtr::new(ptr::null_mut()) }
    }

    /// The definition; null when there is none.
    #[inline]
    pub(crate) fn get(&self) -> *mut c_void {
        let found = self.found.load(Ordering::Acquire);
        if found.is_null() { self.find() } else { found }
    }

    #[cold]
    fn find(&self) -> *mut c_void {
        // SAFETY: the name ends with a zero byte. `dlsym` allocates only to describe a failure.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
        self.found.store(found, Ordering::Release);
        found
    }
}

/// Sets `errno` and gives the value that says so.
pub(crate) fn fail<T>(errno: i32, value: T) -> T {
    // SAFETY: the C library's `errno` of this thread.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: as above; valid for this thread.
    unsafe { place.write(errno) };
    value
}

/// `forward!(name: fn(types) -> type, (arguments), on absence)` calls the next definition of `name`.
macro_rules! forward {
    ($name:ident: fn($($type:ty),*) -> $result:ty, ($($argument:expr),*), $absent:expr) => {{
        static NEXT: $crate::next::Next = $crate::next::Next::new({
            // A C string literal cannot be made of an identifier.
            const NAME: &str = concat!(stringify!($name), "\0");
            match std::ffi::CStr::from_bytes_with_nul(NAME.as_bytes()) {
                Ok(name) => name,
                Err(_) => c"",
            }
        });
        let next = NEXT.get();
        if next.is_null() {
            $crate::next::fail(libc::ENOSYS, $absent)
        } else {
            // SAFETY: the C library defines the name with this signature; a variadic function of
            // x86-64 takes its first arguments where one with fixed arguments does.
            let next: unsafe extern "C" fn($($type),*) -> $result = unsafe { std::mem::transmute(next) };
            // SAFETY: the caller gave these arguments for the same function.
            unsafe { next($($argument),*) }
        }
    }};
}
pub(crate) use forward;
