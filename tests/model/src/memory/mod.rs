//! GPU memory: the page table of a process on a GPU, and every access through it.
#![allow(unsafe_code)] // the executor's loads and stores go through raw host addresses, here only

/// Placeholder until the page table lands.
#[derive(Debug, Default)]
pub struct AddressSpace {}
