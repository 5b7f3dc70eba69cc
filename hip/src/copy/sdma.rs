//! Copies and fills as packets of an SDMA engine. Pure; lengths are known before anything is written.
//!
//! What an engine can do, by its version (docs/ABI.md §SDMA limits, §SDMA copies):
//! - bytes in one piece, at any alignment: linear packets of [`Version::max_copy_bytes`]. The engine is
//!   faster where addresses and length are multiples of 4, so the last bytes get a packet of their own;
//! - rows: window packets where pitches and slices are multiples of 4 bytes and fit their fields. The
//!   hardware needs that multiple; addresses and width may be anything;
//! - other rows: a linear packet each, if they are long enough to be worth one ([`LONG_ROW`]) and not
//!   too many ([`MOST_ROWS`]);
//! - fills with a value of 4 bytes, or one that repeats 4: dword packets, and up to three packets of one
//!   byte at each end that is not aligned. There is no window packet for fills: rows as above.
//!
//! What it cannot do is left to the shader, and [`Unfit`] says why.

use pm4::packet::Compare;
use pm4::sdma::{
    self, Builder, ConstFill, CopyLinear, CopySubWindow, Fence, FillData, GcrReq, PollMem, Surface,
    Version, windows,
};
use pm4::{GpuAddr, Sink};

use super::pattern::Pattern;
use super::region::{Region, Shape};

/// Shortest row for which a packet of its own is worth it, bytes.
pub(crate) const LONG_ROW: u64 = 4 << 10;
/// Most rows that are done one by one: as many packets as a small ring holds.
pub(crate) const MOST_ROWS: u64 = 1 << 10;

/// Why an engine cannot do a copy or fill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unfit {
    /// Windows need pitches in dwords that fit 19 bits of elements, slices 28.
    #[error("{rows} rows of {width} bytes: no window packet fits, and one by one is too slow")]
    Rows { rows: u64, width: u64 },
    /// Fills repeat a byte or a dword.
    #[error("a value of {size} bytes does not repeat one of 4")]
    Value { size: u64 },
    /// Not even the shader could do it.
    #[error(transparent)]
    Packet(#[from] sdma::Error),
}

/// One packet of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    Copy(CopyLinear),
    Window(CopySubWindow),
    Fill(ConstFill),
}

/// Bytes that one kind of packet moves, or fills with one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    /// First byte written, relative to the row's.
    at: u64,
    bytes: u64,
    data: FillData,
}

/// Most runs of a fill: three bytes at each end and dwords between.
const MOST_RUNS: usize = 7;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    /// Each row: whole dwords in chunks, then the rest.
    Copy {
        dst: Region,
        src: Region,
        width: u64,
        split: u64,
    },
    Windows {
        dst: Surface,
        src: Surface,
        extent: [u64; 3],
    },
    Fill {
        dst: Region,
        runs: [Run; MOST_RUNS],
    },
}

/// A copy or fill as packets, all of one length, that need no order among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    version: Version,
    work: Work,
    rows: u64,
    planes: u64,
    /// Packets of a row; of all of it for windows.
    per_row: u64,
}

impl Plan {
    /// Copies a shape, from the second region to the first.
    pub fn copy(version: Version, shape: &Shape<2>) -> Result<Self, Unfit> {
        let [dst, src] = shape.regions;
        let extent = shape.extent;
        if shape.as_linear().is_none()
            && let Some(plan) = Self::windows(version, shape)
        {
            return Ok(plan);
        }
        check_rows(shape)?;
        let both = dst.base.get() | src.base.get();
        let steps = [dst, src].map(|r| r.layout.pitch_bytes | r.layout.slice_bytes);
        let aligned = (both | steps[0] | steps[1]).is_multiple_of(4);
        let split = if aligned && extent.width > 4 { extent.width & !3 } else { extent.width };
        let most = version.max_copy_bytes();
        let per_row = split.div_ceil(most) + (extent.width - split).min(1);
        let work = Work::Copy { dst, src, width: extent.width, split };
        Ok(Self { version, work, rows: extent.rows, planes: extent.planes, per_row })
    }

    fn windows(version: Version, shape: &Shape<2>) -> Option<Self> {
        let surface = |region: Region| Surface {
            base: region.base,
            pitch_bytes: region.layout.pitch_bytes,
            slice_bytes: region.layout.slice_bytes,
        };
        let steps = shape.regions.map(|r| r.layout.pitch_bytes | r.layout.slice_bytes);
        if !(steps[0] | steps[1]).is_multiple_of(4) {
            return None;
        }
        let [dst, src] = shape.regions.map(surface);
        let extent = [shape.extent.width, shape.extent.rows, shape.extent.planes];
        let count = windows(version, src, dst, extent).ok()?.count();
        let work = Work::Windows { dst, src, extent };
        Some(Self { version, work, rows: 1, planes: 1, per_row: count as u64 })
    }

    /// Fills a shape with `pattern`, which starts anew in each row.
    pub fn fill(version: Version, shape: &Shape<1>, pattern: Pattern) -> Result<Self, Unfit> {
        let [dst] = shape.regions;
        let width = shape.extent.width;
        let steps = dst.layout.pitch_bytes | dst.layout.slice_bytes;
        let value = Unfit::Value { size: pattern.bytes() };
        if pattern.as_dword(0).is_none() {
            return Err(value);
        }
        check_rows(shape)?;
        let rows = shape.extent.rows * shape.extent.planes;
        if rows > 1 && !steps.is_multiple_of(4) && pattern.as_byte().is_none() {
            // Each row would have edges of its own.
            return Err(Unfit::Rows { rows, width });
        }
        let byte = |at: u64| Run { at, bytes: 1, data: FillData::Byte(pattern.rotated(at)[0]) };
        let mut runs = [Run { at: 0, bytes: 0, data: FillData::Byte(0) }; MOST_RUNS];
        let mut places = runs.iter_mut();
        let mut add = |run: Run| {
            if run.bytes > 0
                && let Some(place) = places.next()
            {
                *place = run;
            }
        };
        match pattern.as_byte() {
            // Rows that are not aligned alike: bytes throughout.
            Some(value) if rows > 1 && !steps.is_multiple_of(4) => {
                add(Run { at: 0, bytes: width, data: FillData::Byte(value) });
            }
            _ => {
                let head = (dst.base.get().wrapping_neg() % 4).min(width);
                let body = (width - head) & !3;
                (0..head).for_each(|at| add(byte(at)));
                let dword = pattern.as_dword(head).ok_or(value)?;
                add(Run { at: head, bytes: body, data: FillData::Dword(dword) });
                (head + body..width).for_each(|at| add(byte(at)));
            }
        }
        let most = version.max_fill_bytes();
        let per_row = runs.iter().map(|run| run.bytes.div_ceil(most)).sum();
        let Shape { extent, .. } = *shape;
        Ok(Self {
            version,
            work: Work::Fill { dst, runs },
            rows: extent.rows,
            planes: extent.planes,
            per_row,
        })
    }

    /// How many packets there are.
    pub fn packets(&self) -> u64 {
        self.per_row.saturating_mul(self.rows).saturating_mul(self.planes)
    }

    /// Dwords of each.
    pub const fn packet_dwords(&self) -> usize {
        match self.work {
            Work::Copy { .. } => CopyLinear::DWORDS,
            Work::Windows { .. } => CopySubWindow::DWORDS,
            Work::Fill { .. } => ConstFill::DWORDS,
        }
    }

    /// Packet number `index`, from 0.
    fn piece(&self, index: u64) -> Option<Piece> {
        let Self { version, rows, per_row, .. } = *self;
        let (row, n) = (index.checked_div(per_row)?, index.checked_rem(per_row)?);
        let (plane, row) = (row.checked_div(rows)?, row.checked_rem(rows)?);
        match self.work {
            Work::Copy { dst, src, width, split } => {
                let most = version.max_copy_bytes();
                let chunks = split.div_ceil(most);
                let (at, bytes) = if n < chunks {
                    (n * most, most.min(split - n * most))
                } else {
                    (split, width - split)
                };
                let from = src.row(row, plane).checked_add(at)?;
                let to = dst.row(row, plane).checked_add(at)?;
                CopyLinear::new(version, from, to, bytes).ok().map(Piece::Copy)
            }
            Work::Windows { dst, src, extent } => {
                let mut all = windows(version, src, dst, extent).ok()?;
                all.nth(usize::try_from(index).ok()?).map(Piece::Window)
            }
            Work::Fill { dst, runs } => {
                let most = version.max_fill_bytes();
                let mut n = n;
                let run = runs.iter().find(|run| {
                    let packets = run.bytes.div_ceil(most);
                    let found = n < packets;
                    n -= if found { 0 } else { packets };
                    found
                })?;
                let to = dst.row(row, plane).checked_add(run.at + n * most)?;
                let bytes = most.min(run.bytes - n * most);
                ConstFill::new(version, to, run.data, bytes).ok().map(Piece::Fill)
            }
        }
    }

    /// The packets from number `first` on.
    pub fn pieces(&self, first: u64) -> impl Iterator<Item = Piece> + '_ {
        let windows = match self.work {
            // Not one by one: each would count from the start.
            Work::Windows { dst, src, extent } => windows(self.version, src, dst, extent).ok(),
            _ => None,
        };
        let skipped = usize::try_from(first).unwrap_or(usize::MAX);
        let others = if windows.is_some() { 0..0 } else { first..self.packets() };
        let windows = windows.into_iter().flatten().skip(skipped).map(Piece::Window);
        windows.chain(others.map_while(|index| self.piece(index)))
    }

    /// Appends `count` packets from number `first` on.
    pub fn emit<S: Sink>(&self, first: u64, count: u64, to: &mut Builder<S>) {
        for piece in self.pieces(first).take(usize::try_from(count).unwrap_or(usize::MAX)) {
            match piece {
                Piece::Copy(packet) => to.push(&packet),
                Piece::Window(packet) => to.push(&packet),
                Piece::Fill(packet) => to.push(&packet),
            };
        }
    }
}

/// Refuses many short rows.
fn check_rows<const N: usize>(shape: &Shape<N>) -> Result<(), Unfit> {
    let width = shape.extent.width;
    let rows = shape.extent.rows.saturating_mul(shape.extent.planes);
    if rows > 1 && (width < LONG_ROW || rows > MOST_ROWS) {
        return Err(Unfit::Rows { rows, width });
    }
    Ok(())
}

/// What goes around packets that move data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bracket<'a> {
    pub version: Version,
    /// Signals that must be 0 first. Only their low halves are looked at: signals that go from 1 to 0.
    pub waits: &'a [GpuAddr],
    /// Whether packets before these on the same ring may still be moving what these read or write:
    /// an engine overlaps packets, a NOP ends that.
    pub drain: bool,
    /// The signal that is set from 1 to 0 when all is done.
    pub done: Option<GpuAddr>,
}

/// Offset of a signal's value, bytes. docs/ABI.md §AQL signal.
const SIGNAL_VALUE: u64 = 8;

impl Bracket<'_> {
    /// Dwords in front of the packets and behind them.
    pub fn dwords(&self) -> usize {
        let polls = self.waits.len() * self.version.poll_repeats() * PollMem::DWORDS;
        let caches = if self.version.needs_gcr() { 2 * GcrReq::DWORDS } else { 0 };
        let done = if self.done.is_some() { Fence::DWORDS } else { 0 };
        polls + usize::from(self.drain) + caches + done
    }

    /// Most packets of `dwords` dwords each in a submission of at most `limit` dwords.
    pub fn fitting(&self, limit: usize, dwords: usize) -> u64 {
        (limit.saturating_sub(self.dwords()).checked_div(dwords)).unwrap_or(0) as u64
    }

    /// Appends a whole submission: `packets` appends what is between.
    ///
    /// # Errors
    /// [`sdma::Error::Misaligned`] for a signal that is none.
    pub fn emit<S: Sink>(
        &self,
        to: &mut Builder<S>,
        packets: impl FnOnce(&mut Builder<S>),
    ) -> Result<(), sdma::Error> {
        let version = self.version;
        let value = |signal: GpuAddr| GpuAddr::new(signal.get().wrapping_add(SIGNAL_VALUE));
        for signal in self.waits {
            let poll = PollMem::new(value(*signal), Compare::EQUAL, 0)?;
            (0..version.poll_repeats()).for_each(|_| {
                to.push(&poll);
            });
        }
        if self.drain {
            to.nop(1);
        }
        if version.needs_gcr() {
            to.push(&GcrReq::new(version, GcrReq::BEFORE_COPY)?);
        }
        packets(to);
        if version.needs_gcr() {
            to.push(&GcrReq::new(version, GcrReq::AFTER_COPY)?);
        }
        if let Some(signal) = self.done {
            to.push(&Fence::new(version, value(signal), 0)?.snooped_system());
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "sdma_tests.rs"]
mod tests;
