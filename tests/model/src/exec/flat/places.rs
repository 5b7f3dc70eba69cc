//! Where the lanes of an instruction go, for those who watch.

use super::batch::next_batch;
use super::{Segment, Space};
use crate::exec::context::Context;
use crate::exec::wave::Wave;
use crate::isa::ir::Inst;

/// Calls `each` with every active lane's memory and address: an offset in LDS or scratch.
pub(in crate::exec) fn places<const N: usize>(
    w: &Wave<N>,
    i: &Inst,
    cx: &Context<'_>,
    mut each: impl FnMut(usize, Space, u64),
) {
    let name = i.op.name();
    let segment = match name.split('_').next() {
        Some("flat") => Segment::Flat,
        Some("scratch") => Segment::Scratch,
        _ => Segment::Global,
    };
    let mut rest = w.exec();
    while rest != 0 {
        let Ok(batch) = next_batch(w, i, cx, segment, &mut rest) else { return };
        for lane in batch.active() {
            let at = match batch.space {
                Space::Global => batch.address(lane),
                _ => u64::from(batch.offset[lane]),
            };
            each(lane, batch.space, at);
        }
    }
}
