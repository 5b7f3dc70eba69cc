//! Copies and fills.

mod error;
mod pattern;
mod region;
mod shader;

pub use error::{CopyError, Side};
pub use pattern::Pattern;
pub use region::{Extent, Layout};
