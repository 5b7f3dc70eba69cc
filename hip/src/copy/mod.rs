//! Copies and fills: what is asked for, who does it, and how it gets there.
//!
//! - [`region`], [`place`], [`pattern`]: what a call names, checked; pure.
//! - [`shader`], [`sdma`]: the same as launches of the blit kernels, or as packets of an SDMA engine;
//!   pure.
//! - [`exec`]: either of them in a stream, in its order.
//! - [`staging`], [`host`]: pageable memory; [`peer`]: devices that do not reach each other.
//! - [`api`]: the methods of [`Stream`](crate::Stream).

mod api;
mod blit;
#[cfg(test)]
mod device_tests;
mod error;
mod exec;
mod host;
mod objects;
mod pattern;
mod peer;
pub(crate) mod place;
pub(crate) mod region;
mod request;
mod sdma;
pub(crate) mod shader;
mod staging;

pub(crate) use blit::Blit;
pub use error::{CopyError, Side};
pub(crate) use exec::Copies;
pub use pattern::Pattern;
pub use place::Place;
pub use region::{Extent, Layout};
pub use request::{CopyEngine, CopyRequest};
