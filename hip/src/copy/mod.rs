//! Copies and fills.

#[cfg(test)]
mod device_tests;
mod error;
mod objects;
mod pattern;
mod region;
mod sdma;
mod shader;

pub use error::{CopyError, Side};
pub use pattern::Pattern;
pub use region::{Extent, Layout};
