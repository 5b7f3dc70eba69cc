//! Packets that move data: parts of it at each turn.

use pm4::sdma::{ConstFill, CopyLinear, CopySubWindow, FillData, Op, Version, WriteUntiled};
use zerocopy::IntoBytes;

use super::super::turn::{Budget, Reason};
use super::super::{Queue, Runner, State};
use super::{Done, Room};
use crate::memory::AccessError;

/// Rows of a sub-window that are copied in a turn, at most.
const ROWS: u64 = 4096;

impl Queue {
    /// The next part of a packet that moves `bytes` bytes; `part` gets where it starts and how long
    /// it is.
    fn move_part(
        runner: &Runner,
        state: &mut State,
        bytes: u64,
        budget: &Budget,
        part: impl FnOnce(u64, u64) -> Result<(), AccessError>,
    ) -> Result<Done, AccessError> {
        let done = state.copier.progress;
        // Parts of a fill with dwords are whole dwords.
        let length = bytes.saturating_sub(done).min(budget.bytes.next_multiple_of(4));
        part(done, length)?;
        state.copier.progress = done + length;
        if state.copier.progress < bytes {
            return Ok(Done::More);
        }
        runner.engine().wake();
        Ok(Done::Next { bytes: length })
    }

    pub(super) fn copy_linear(
        &self,
        runner: &Runner,
        state: &mut State,
        copy: CopyLinear,
        budget: &Budget,
    ) -> Result<Done, AccessError> {
        let (src, dst) = (copy.src().get(), copy.dst().get());
        Self::move_part(runner, state, copy.bytes().into(), budget, |done, length| {
            let (src, dst) = (src.wrapping_add(done), dst.wrapping_add(done));
            Ok(self.setup.device.space.copy(src, dst, length)?)
        })
    }

    pub(super) fn const_fill(
        &self,
        runner: &Runner,
        state: &mut State,
        fill: ConstFill,
        budget: &Budget,
    ) -> Result<Done, AccessError> {
        let data = match fill.data() {
            FillData::Byte(byte) => u32::from_le_bytes([byte; 4]),
            FillData::Dword(data) => data,
        };
        Self::move_part(runner, state, fill.bytes().into(), budget, |done, length| {
            let dst = fill.dst().get().wrapping_add(done);
            Ok(self.setup.device.space.fill(dst, length, data)?)
        })
    }

    /// WRITE_UNTILED: its data lies in the ring or buffer, in one piece.
    pub(super) fn write_untiled(
        &self,
        state: &mut State,
        version: Version,
        room: &Room,
        budget: &Budget,
    ) -> Result<(u64, Done), AccessError> {
        const COUNT: u32 = 0xf_ffff;
        let stop = |reason| Ok((0, Done::Stop(reason)));
        if let Err(reason) = room.check(Op::WRITE_UNTILED, 5) {
            return stop(reason);
        }
        let space = &self.setup.device.space;
        let mut words = [0; 5];
        space.read(room.address, words.as_mut_bytes())?;
        let [_, _, _, count, _] = &mut words;
        let data = u64::from(*count & COUNT) + 1;
        // As a packet of one dword: the checks are the same.
        *count &= !COUNT;
        let dst = match WriteUntiled::decode(&words, version) {
            Ok(packet) => packet.dst().get(),
            Err(error) => return stop(Reason::unsupported(error)),
        };
        if let Err(reason) = room.check(Op::WRITE_UNTILED, 4 + data) {
            return stop(reason);
        }
        let done = state.copier.progress;
        let length = (4 * data).saturating_sub(done).min(budget.bytes.next_multiple_of(4));
        let from = room.address.wrapping_add(16 + done);
        space.copy(from, dst.wrapping_add(done), length)?;
        state.copier.progress = done + length;
        if state.copier.progress < 4 * data {
            return Ok((0, Done::More));
        }
        Ok((4 + data, Done::Next { bytes: length }))
    }

    /// COPY_LINEAR_SUBWIN, row by row.
    pub(super) fn copy_sub_window(
        &self,
        runner: &Runner,
        state: &mut State,
        copy: CopySubWindow,
        budget: &Budget,
    ) -> Result<Done, AccessError> {
        let (src, dst) = copy.sides();
        let [width, rows, planes] = copy.extent().map(u64::from);
        let element = u64::from(copy.element_bytes());
        let bytes = width * element;
        let total = rows * planes;
        let first = state.copier.progress;
        let count = (budget.bytes / bytes).clamp(1, ROWS).min(total.saturating_sub(first));
        let place = |side: &pm4::sdma::Side, y: u64, z: u64| {
            let [ox, oy, oz] = side.origin.map(u64::from);
            let row = (z + oz) * u64::from(side.slice) + (y + oy) * u64::from(side.pitch);
            side.base.get().wrapping_add((row + ox) * element)
        };
        let mut view = self.setup.device.space.view();
        for row in first..first + count {
            let (y, z) = (row % rows, row / rows);
            view.copy(place(&src, y, z), place(&dst, y, z), bytes)?;
        }
        drop(view);
        state.copier.progress = first + count;
        if state.copier.progress < total {
            return Ok(Done::More);
        }
        runner.engine().wake();
        Ok(Done::Next { bytes: count * bytes })
    }
}
