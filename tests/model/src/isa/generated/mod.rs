//! Tables made by `isa-gen`.
#![cfg_attr(rustfmt, rustfmt_skip)]

pub(super) mod op;
