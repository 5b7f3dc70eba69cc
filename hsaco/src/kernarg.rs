//! Kernel arguments: where each goes, and packing them.
//!
//! Two ways to pack. [`ArgLayout::builder`] checks each argument and allocates. A
//! [`KernargTemplate`], made once per kernel, fills the segment of each launch without allocation.
//! Both write exactly the kernarg segment: the explicit arguments, then each hidden argument that
//! the kernel declares at its declared offset and size; everything else is zero.
//!
//! Offsets and kinds: docs/ABI.md §Kernel arguments.

mod builder;
mod hidden;
mod layout;
mod template;

pub use builder::KernargBuilder;
pub use hidden::{Geometry, Hidden, HiddenValues, Services};
pub use layout::{ArgLayout, ExplicitArg, ExplicitKind, HiddenArg};
pub use template::KernargTemplate;

#[cfg(test)]
mod tests;
