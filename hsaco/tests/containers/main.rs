//! Containers of code objects: every form gives the same objects, and malformed ones say what is wrong.
#![allow(clippy::indexing_slicing)] // test helpers: a panic is the failure
#![cfg(feature = "compression")]

mod bundle;
mod choice;
mod compressed;
mod extent;
mod forms;
mod host;
mod make;
mod random;
