//! What instructions do to one lane: pure functions on values.

pub mod bits;
pub mod convert;
pub mod div;
pub mod fp8;
pub mod half;
pub mod minmax;
pub mod soft;
pub mod trans;
