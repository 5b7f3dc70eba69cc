//! Why a copy or fill is refused.

use std::fmt;

use kfd::GpuId;
use pm4::GpuAddr;

use super::Extent;

/// Which part of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// Where it reads.
    Source,
    /// Where it, or a fill, writes.
    Destination,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Source => "source",
            Self::Destination => "destination",
        })
    }
}

/// Why a copy or fill was refused. Nothing of it was submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CopyError {
    /// Rows overlap.
    #[error("{side}: a pitch of {pitch_bytes} bytes is less than a row of {width}")]
    Pitch {
        /// Which part of the copy.
        side: Side,
        /// From one row to the next.
        pitch_bytes: u64,
        /// Bytes of a row.
        width: u64,
    },
    /// Planes overlap.
    #[error(
        "{side}: {slice_bytes} bytes from plane to plane are less than a plane of {plane_bytes}"
    )]
    Slice {
        /// Which part of the copy.
        side: Side,
        /// From one plane to the next.
        slice_bytes: u64,
        /// From a plane's first byte to behind its last.
        plane_bytes: u64,
    },
    /// The bytes cannot be counted.
    #[error(
        "{side}: {} planes of {} rows of {} bytes do not fit into 64 bits",
        extent.planes, extent.rows, extent.width
    )]
    TooLarge {
        /// Which part of the copy.
        side: Side,
        /// What was asked for.
        extent: Extent,
    },
    /// The range is not inside the memory it was said to be in.
    #[error("{side}: {bytes} bytes at offset {offset:#x} are outside memory of {length:#x} bytes")]
    Outside {
        /// Which part of the copy.
        side: Side,
        /// Where the range starts in the memory.
        offset: u64,
        /// Bytes from the first to behind the last.
        bytes: u64,
        /// Bytes of the memory.
        length: u64,
    },
    /// The caller's slice has another length than the region has bytes.
    #[error("the host's slice has {found} bytes, the region {needed}")]
    HostLength {
        /// Bytes the region spans.
        needed: u64,
        /// Bytes of the slice.
        found: u64,
    },
    /// Source and destination share bytes.
    #[error(
        "source {src} and destination {dst} overlap: {} planes of {} rows of {} bytes",
        extent.planes, extent.rows, extent.width
    )]
    Overlap {
        /// First byte read.
        src: GpuAddr,
        /// First byte written.
        dst: GpuAddr,
        /// What was asked for.
        extent: Extent,
    },
    /// A fill whose destination or width is no multiple of its value's size.
    #[error("a value of {size} bytes cannot fill {width} bytes a row at {dst}")]
    Alignment {
        /// First byte.
        dst: GpuAddr,
        /// Bytes of a row.
        width: u64,
        /// Bytes of the value.
        size: u64,
    },
    /// The GPU that is to copy does not have the memory mapped.
    #[error("{side}: the memory at {addr} is not mapped on GPU {gpu}: give it access first")]
    NotMapped {
        /// Which part of the copy.
        side: Side,
        /// First byte.
        addr: GpuAddr,
        /// The GPU.
        gpu: GpuId,
    },
}
