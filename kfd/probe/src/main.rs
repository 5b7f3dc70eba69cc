//! Placeholder until the driver has landed.
fn main() {}
