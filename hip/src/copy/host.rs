//! Copies from and to the host's own, pageable, memory.

use super::error::{CopyError, Side};
use super::exec::Way;
use super::region::{Extent, Layout, Region, Shape};
use super::staging::{Block, Staging, blocks};
use crate::error::Result;
use crate::stream::Core;

/// Where a block's rows are in the host's slice.
struct HostRows {
    layout: Layout,
    block: Block,
}

impl HostRows {
    /// Offset in the slice and in the chunk, of each row.
    fn offsets(&self) -> impl Iterator<Item = (usize, u64)> {
        let Self { layout, block: Block { x, row, plane, extent } } = *self;
        (0..extent.planes).flat_map(move |z| {
            (0..extent.rows).map(move |y| {
                let rows = (row + y).saturating_mul(layout.pitch_bytes);
                let planes = (plane + z).saturating_mul(layout.slice_bytes);
                let at = x.saturating_add(rows).saturating_add(planes);
                let packed = (z * extent.rows + y) * extent.width;
                (usize::try_from(at).unwrap_or(usize::MAX), packed)
            })
        })
    }

    fn width(&self) -> usize {
        usize::try_from(self.block.extent.width).unwrap_or(usize::MAX)
    }
}

/// Refuses a slice that is shorter than the region in it.
fn check_slice(side: Side, layout: Layout, extent: Extent, found: usize) -> Result<(), CopyError> {
    let needed = layout.span(side, extent)?;
    if needed > found as u64 {
        return Err(CopyError::HostLength { needed, found: found as u64 });
    }
    Ok(())
}

/// The shape that one side's regions describe, for pieces of it.
fn joined(device: Region, layout: Layout, extent: Extent) -> (Region, Layout, Extent) {
    // The slice's addresses do not matter: only how its rows lie.
    let host = Region { layout, ..Region::linear(pm4::GpuAddr::NULL) };
    let Shape { regions: [device, host], extent } = Shape::new([device, host], extent);
    (device, host.layout, extent)
}

fn part(region: Region, block: &Block) -> Region {
    let row = region.row(block.row, block.plane).get();
    Region { base: pm4::GpuAddr::new(row.wrapping_add(block.x)), ..region }
}

impl Core {
    /// Makes the chunks.
    fn stage(&mut self) -> Result<()> {
        if self.copies.staging.is_none() {
            let device = std::sync::Arc::clone(self.device());
            self.copies.staging = Some(Staging::new(&device, &self.copies.request)?);
        }
        Ok(())
    }

    /// The next chunk, once it is free.
    fn free_chunk(&mut self) -> Result<usize> {
        let next = |core: &Self| {
            core.copies.staging.as_ref().map_or((0, 0), |staging| staging.chunks.next())
        };
        let (chunk, needed) = next(self);
        self.shared.wait_for(needed, self.shared.patience)?;
        self.look()?;
        Ok(chunk)
    }

    /// Copies between a chunk and a block of device memory, and notes that the chunk is in use.
    fn copy_block(
        &mut self,
        chunk: usize,
        device: Region,
        block: &Block,
        to_device: bool,
    ) -> Result<()> {
        let Some(staging) = &self.copies.staging else { return Ok(()) };
        let host = Region { base: staging.addr(chunk), layout: Layout::dense(block.extent) };
        let device = part(device, block);
        let regions = if to_device { [device, host] } else { [host, device] };
        self.copy_shape(&Shape::new(regions, block.extent), Way::Link)?;
        if !to_device {
            // The host reads the chunk next.
            self.release()?;
        }
        let number = self.count;
        if let Some(staging) = &mut self.copies.staging {
            staging.chunks.take(number);
        }
        Ok(())
    }

    /// Copies a region of `from` to the device. Returns when the last byte is in a chunk.
    pub fn copy_from_slice(
        &mut self,
        dst: Region,
        from: &[u8],
        layout: Layout,
        extent: Extent,
    ) -> Result<()> {
        check_slice(Side::Source, layout, extent, from.len())?;
        if extent.is_empty() {
            return Ok(());
        }
        self.stage()?;
        let (dst, layout, extent) = joined(dst, layout, extent);
        for block in blocks(extent, self.copies.request.chunk_bytes) {
            let chunk = self.free_chunk()?;
            let rows = HostRows { layout, block };
            if let Some(staging) = &self.copies.staging {
                for (at, packed) in rows.offsets() {
                    let row = from.get(at..).and_then(|from| from.get(..rows.width()));
                    staging
                        .buffer
                        .write(staging.offset(chunk) + packed, row.unwrap_or_default())?;
                }
            }
            // The device may have something of the chunk from last time.
            self.others_wrote();
            self.copy_block(chunk, dst, &block, true)?;
        }
        Ok(())
    }

    /// Copies a region of the device to `to`. Returns when the last byte is there.
    pub fn copy_to_slice(
        &mut self,
        to: &mut [u8],
        layout: Layout,
        src: Region,
        extent: Extent,
    ) -> Result<()> {
        check_slice(Side::Destination, layout, extent, to.len())?;
        if extent.is_empty() {
            return Ok(());
        }
        self.stage()?;
        let (src, layout, extent) = joined(src, layout, extent);
        let chunks = self.copies.staging.as_ref().map_or(1, |staging| staging.chunks.count());
        let mut ahead = blocks(extent, self.copies.request.chunk_bytes);
        let mut waiting = std::collections::VecDeque::with_capacity(chunks);
        loop {
            // Chunks that the device fills while the host empties the first of them.
            while waiting.len() < chunks
                && let Some(block) = ahead.next()
            {
                let chunk = self.free_chunk()?;
                self.copy_block(chunk, src, &block, false)?;
                waiting.push_back((self.count, chunk, block));
            }
            let Some((number, chunk, block)) = waiting.pop_front() else { return Ok(()) };
            self.shared.wait_for(number, self.shared.patience)?;
            self.look()?;
            let rows = HostRows { layout, block };
            if let Some(staging) = &self.copies.staging {
                for (at, packed) in rows.offsets() {
                    let row = to.get_mut(at..).and_then(|to| to.get_mut(..rows.width()));
                    staging.buffer.read(staging.offset(chunk) + packed, row.unwrap_or_default())?;
                }
            }
        }
    }
}
