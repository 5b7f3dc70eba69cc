//! The two protocols between threads and devices, apart from everything else: loom explores them.

mod current;
mod progress;

pub use current::{Current, Holders, SlotId};
pub use progress::{Broken, Progress};
