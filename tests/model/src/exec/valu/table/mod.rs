//! The operations, by topic. Each function runs `op` through the visitor if the table has it.

mod compare;
mod convert;
mod float;
mod half;
mod hot;
mod int;
mod special;

pub use hot::hot;

use super::visit::Visit;
use crate::isa::Op;

/// Every operation that is not in [`hot`].
pub fn rare<V: Visit>(op: Op, v: V) -> bool {
    use Op::*;
    // The enum is in alphabetical order: compares are one stretch of it.
    if (VCmpClassF16..=VCmpxUF64).contains(&op) {
        return compare::compare(op, v);
    }
    let v = match int::int(op, v) {
        Some(v) => v,
        None => return true,
    };
    let v = match float::float(op, v) {
        Some(v) => v,
        None => return true,
    };
    let v = match half::half(op, v) {
        Some(v) => v,
        None => return true,
    };
    let v = match convert::convert(op, v) {
        Some(v) => v,
        None => return true,
    };
    special::special(op, v)
}
