//! Device-to-host services: printf, the device heap, host functions.
//!
//! Nothing is served yet. Kernels that declare a service slot get 0 in it (`hsaco::kernarg` writes
//! declared hidden arguments and leaves unclaimed ones zero), and no thread is started, no memory
//! taken and no packet looked at. The crate exists so that the direction of dependencies is fixed:
//! `hostcall` stands on `aql` and `kfd`, and nothing below it knows of it.
#![deny(unsafe_code)]

pub mod format;
pub mod printf;
