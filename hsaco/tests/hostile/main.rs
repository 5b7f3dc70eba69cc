//! Malformed code objects: each gives the error that names what is wrong.
//!
//! Every case is a real object with one thing changed, so that nothing else can be the reason.
#![allow(clippy::indexing_slicing)] // test helpers: a panic is the failure

mod descriptor;
mod dynamic;
mod fuzz;
mod header;
mod managed;
mod note;
mod patch;
mod relocations;
mod segments;
