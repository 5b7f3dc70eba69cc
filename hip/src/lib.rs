//! HIP in Rust: streams, modules and launches on `kfd`.
//!
//! Nothing is here yet but the name. Programs that want to launch kernels today use `kfd`, `aql`
//! and `hsaco` directly: `kfd/examples/vector_add.rs` is a complete one.
#![deny(unsafe_code)]
pub mod copy;
