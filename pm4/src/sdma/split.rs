//! Cuts copies and fills of any size into packets.

use super::window::{MAX_ELEMENT, MAX_PITCH, MAX_SLICE, MAX_XY};
use super::{ConstFill, CopyLinear, CopySubWindow, Error, FillData, Op, Side, Version, in_range};
use crate::GpuAddr;

/// The packets that copy `bytes` bytes from `src` to `dst`, in order; none for no bytes.
///
/// # Errors
/// [`Error::OutOfRange`] if a range does not end within the address space.
pub fn copies(
    version: Version,
    src: GpuAddr,
    dst: GpuAddr,
    bytes: u64,
) -> Result<impl Iterator<Item = CopyLinear> + Clone, Error> {
    inside(Op::COPY_LINEAR, src, bytes)?;
    inside(Op::COPY_LINEAR, dst, bytes)?;
    Ok(chunks(bytes, version.max_copy_bytes()).filter_map(move |(at, bytes)| {
        CopyLinear::new(version, src.checked_add(at)?, dst.checked_add(at)?, bytes).ok()
    }))
}

/// The packets that fill `bytes` bytes at `dst` with `data`, in order; none for no bytes.
///
/// # Errors
/// [`Error::OutOfRange`] if the range does not end within the address space;
/// [`Error::Misaligned`] for a dword at an address or of a length that is no multiple of 4.
pub fn fills(
    version: Version,
    dst: GpuAddr,
    data: FillData,
    bytes: u64,
) -> Result<impl Iterator<Item = ConstFill> + Clone, Error> {
    let packet = Op::CONSTANT_FILL;
    inside(packet, dst, bytes)?;
    if matches!(data, FillData::Dword(_)) && !GpuAddr::new(dst.get() | bytes).is_aligned(4) {
        return Err(Error::Misaligned { packet, addr: dst, align: 4 });
    }
    Ok(chunks(bytes, version.max_fill_bytes()).filter_map(move |(at, bytes)| {
        ConstFill::new(version, dst.checked_add(at)?, data, bytes).ok()
    }))
}

fn inside(packet: Op, start: GpuAddr, bytes: u64) -> Result<(), Error> {
    in_range(packet, "byte count", bytes, 0, u64::MAX - start.get())
}

/// Offset and length of each piece of at most `most` bytes.
fn chunks(bytes: u64, most: u64) -> impl Iterator<Item = (u64, u64)> + Clone {
    let count = bytes.div_ceil(most);
    (0..count).map(move |n| (n * most, most.min(bytes - n * most)))
}

/// A plane or volume in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Surface {
    /// Its first byte.
    pub base: GpuAddr,
    /// Bytes from one row to the next.
    pub pitch_bytes: u64,
    /// Bytes from one plane to the next; of no account for one plane.
    pub slice_bytes: u64,
}

/// The packets that copy `rows` rows of `width` bytes in each of `planes` planes; none if one of
/// the three is 0.
///
/// They use the largest elements that pitches, addresses and width allow.
///
/// # Errors
/// [`Error::OutOfRange`] if a pitch is 0 or, in the smallest elements needed, over 2^19 (slices:
/// 2^28): copy row by row then; or if a surface does not end within the address space.
pub fn windows(
    version: Version,
    src: Surface,
    dst: Surface,
    [width, rows, planes]: [u64; 3],
) -> Result<impl Iterator<Item = CopySubWindow> + Clone, Error> {
    let op = Op::COPY_LINEAR_SUBWIN;
    let volume = planes > 1;
    let pitches = src.pitch_bytes | dst.pitch_bytes;
    let slices = if volume { src.slice_bytes | dst.slice_bytes } else { 0 };
    let largest = element(pitches | slices);
    let smallest = element(pitches | slices | width).min(start(src.base, dst.base));
    for surface in [src, dst] {
        let last = |count: u64, step: u64| {
            let span = count.saturating_sub(1).saturating_mul(step);
            in_range(op, "extent", span, 0, u64::MAX - surface.base.get()).map(|()| span)
        };
        let span = last(rows, surface.pitch_bytes)?
            .saturating_add(if volume { last(planes, surface.slice_bytes)? } else { 0 })
            .saturating_add(width);
        in_range(op, "extent", span, 0, u64::MAX - surface.base.get())?;
        let in_elements = |bytes: u64| bytes >> smallest;
        in_range(op, "pitch", in_elements(surface.pitch_bytes), 1, MAX_PITCH.into())?;
        if volume {
            in_range(op, "slice pitch", in_elements(surface.slice_bytes), 1, MAX_SLICE.into())?;
        }
    }
    let plane_chunks = chunks(if width == 0 { 0 } else { planes }, version.max_planes().into());
    Ok(plane_chunks.flat_map(move |(z, planes)| {
        chunks(rows, MAX_XY.into()).flat_map(move |(y, rows)| {
            let at = |surface: Surface| {
                let rows = y.wrapping_mul(surface.pitch_bytes);
                let planes = if volume { z.wrapping_mul(surface.slice_bytes) } else { 0 };
                Surface {
                    base: GpuAddr::new(surface.base.get().wrapping_add(rows).wrapping_add(planes)),
                    ..surface
                }
            };
            let (src, dst) = (at(src), at(dst));
            Tiles { version, src, dst, largest, volume, x: 0, width, rows, planes }
        })
    }))
}

/// Log2 of the largest element, 16 bytes at most, that divides everything in `bytes`.
fn element(bytes: u64) -> u8 {
    let zeros = (bytes | 1 << MAX_ELEMENT).trailing_zeros();
    u8::try_from(zeros).unwrap_or(MAX_ELEMENT)
}

/// Log2 of the largest element that can start at both addresses: a packet's addresses are
/// multiples of 4, and what is left over is counted in elements.
fn start(src: GpuAddr, dst: GpuAddr) -> u8 {
    element((src.get() | dst.get()) % 4)
}

/// Windows side by side, all of the same rows.
#[derive(Clone)]
struct Tiles {
    version: Version,
    src: Surface,
    dst: Surface,
    largest: u8,
    volume: bool,
    x: u64,
    width: u64,
    rows: u64,
    planes: u64,
}

impl Iterator for Tiles {
    type Item = CopySubWindow;

    fn next(&mut self) -> Option<CopySubWindow> {
        let left = self.width.checked_sub(self.x).filter(|left| *left > 0)?;
        let (src, dst) = (self.src.base.checked_add(self.x)?, self.dst.base.checked_add(self.x)?);
        let usable = self.largest.min(start(src, dst));
        let exact = usable.min(element(left));
        // Too wide for one window: as wide as can be, in the largest elements; the rest follows.
        let (size, count) = match left >> exact {
            count if count <= MAX_XY.into() => (exact, count),
            _ => (usable, (left >> usable).min(MAX_XY.into())),
        };
        self.x += count << size;
        let narrow = |value: u64| u32::try_from(value).ok();
        let side = |surface: Surface, first: GpuAddr| {
            let skipped = first.get() % 4;
            Some(Side {
                base: GpuAddr::new(first.get() - skipped),
                origin: [narrow(skipped >> size)?, 0, 0],
                pitch: narrow(surface.pitch_bytes >> size)?,
                slice: if self.volume { narrow(surface.slice_bytes >> size)? } else { 1 },
            })
        };
        let extent = [narrow(count)?, narrow(self.rows)?, narrow(self.planes)?];
        let (src, dst) = (side(self.src, src)?, side(self.dst, dst)?);
        CopySubWindow::new(self.version, size, src, dst, extent).ok()
    }
}
