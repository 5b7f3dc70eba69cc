//! Copies and fills in command buffers: launches of the blit kernels, which every kind can hold.

use super::CommandRecorder;
use crate::copy::place::{copy_shape, fill_shape};
use crate::copy::shader::{self, GROUP, Launch};
use crate::copy::{Blit, Extent, Layout, Pattern, Place};
use crate::error::Result;
use crate::launch::{Grid, Packed};

impl CommandRecorder {
    /// Copies `bytes` bytes of memory that the device reaches. The command buffer keeps the memory.
    ///
    /// # Errors
    /// [`Error::Copy`](crate::Error::Copy): [`Outside`](crate::CopyError::Outside) when a range is not
    /// inside its memory, [`Overlap`](crate::CopyError::Overlap),
    /// [`NotMapped`](crate::CopyError::NotMapped);
    /// [`CommandError::TooLarge`](crate::CommandError::TooLarge).
    pub fn copy<'d, 's>(
        &mut self,
        dst: impl Into<Place<'d>>,
        src: impl Into<Place<'s>>,
        bytes: u64,
    ) -> Result<()> {
        let layout = Layout::default();
        self.copy_rows(dst, layout, src, layout, Extent::linear(bytes))
    }

    /// Copies rows and planes of them, as [`Stream::copy_rows`](crate::Stream::copy_rows).
    ///
    /// # Errors
    /// As [`CommandRecorder::copy`]; [`Pitch`](crate::CopyError::Pitch),
    /// [`Slice`](crate::CopyError::Slice), [`TooLarge`](crate::CopyError::TooLarge).
    pub fn copy_rows<'d, 's>(
        &mut self,
        dst: impl Into<Place<'d>>,
        dst_layout: Layout,
        src: impl Into<Place<'s>>,
        src_layout: Layout,
        extent: Extent,
    ) -> Result<()> {
        let (dst, src) = (dst.into(), src.into());
        let shape = copy_shape(&self.device, (dst, dst_layout), (src, src_layout), extent)?;
        let blit = Blit::of(&self.device)?;
        self.blit(&blit, shader::copy(shape, blit.most_groups))?;
        self.memory.extend([dst.memory.share(), src.memory.share()]);
        Ok(())
    }

    /// Stores `count` times a value of 1, 2, 4, 8 or 16 bytes. The command buffer keeps the memory.
    ///
    /// # Errors
    /// As [`CommandRecorder::copy`]; [`Alignment`](crate::CopyError::Alignment) when the place is no
    /// multiple of the value's size.
    pub fn fill<'d>(
        &mut self,
        dst: impl Into<Place<'d>>,
        value: impl Into<Pattern>,
        count: u64,
    ) -> Result<()> {
        let value = value.into();
        let bytes = count.saturating_mul(value.bytes());
        self.fill_rows(dst, Layout::default(), value, Extent::linear(bytes))
    }

    /// Fills rows and planes of them, as [`Stream::fill_rows`](crate::Stream::fill_rows).
    ///
    /// # Errors
    /// As [`CommandRecorder::copy_rows`]; as [`CommandRecorder::fill`].
    pub fn fill_rows<'d>(
        &mut self,
        dst: impl Into<Place<'d>>,
        layout: Layout,
        value: impl Into<Pattern>,
        extent: Extent,
    ) -> Result<()> {
        let (dst, value) = (dst.into(), value.into());
        let shape = fill_shape(&self.device, (dst, layout), value, extent)?;
        let blit = Blit::of(&self.device)?;
        self.blit(&blit, shader::fill(shape, value, blit.most_groups))?;
        self.memory.push(dst.memory.share());
        Ok(())
    }

    /// Records all of `launches`, which need no order among them, or none.
    fn blit(&mut self, blit: &Blit, launches: impl Iterator<Item = Launch>) -> Result<()> {
        let mark = self.mark();
        for (index, launch) in launches.enumerate() {
            let grid = Grid::blocks([launch.groups, 1, 1], [GROUP, 1, 1]);
            let cold = &blit.function(launch.kernel).cold;
            let arguments = Packed(launch.arguments());
            if let Err(error) = self.add_kernel(cold, &grid, &arguments, index == 0) {
                self.rewind(&mark);
                return Err(error);
            }
        }
        Ok(())
    }
}
