//! `libkfd_model.so`: the software GPU under programs that know nothing of it.
//!
//! - With `LD_PRELOAD` it stands before the C library's file functions: `/dev/kfd`, the render nodes
//!   and what `/sys` shows of them are the model's, everything else is the machine's own.
//! - As `HSA_MODEL_LIB` it gives AMD's runtime the table of functions it asks for (`hsa`).
//!
//! For a path or descriptor that is not the model's a hook only forwards: it takes no lock,
//! allocates nothing, has no thread-local and cannot panic. So it is right in signal handlers, in
//! allocators, before any constructor has run and after `exit` began.
//!
//! Environment: `KFD_MODEL` (presets, comma-separated; `none`), `KFD_MODEL_KERNEL` (`6.1`, `6.12.0`
//! or `6.12`), `KFD_MODEL_LOG` (on the error stream: 1 unknown requests, 2 those that fail, 3 all),
//! `KFD_MODEL_REPORT` (a file that gets a line of JSON from each process),
//! `KFD_MODEL_OFFSETS` (`plain`; or `kfd`, with which `mmap` must be the hooked one), `KFD_MODEL_MODE`
//! (permission bits of `/dev/kfd`, octal).
#![allow(unsafe_code)] // the C library's names, and pointers of programs we do not know

mod config;
mod descriptors;
mod directory;
mod hooks;
mod hsa;
mod instance;
mod next;
mod path;
mod report;
