//! What a [`Stream`] offers.

use super::error::Side;
use super::exec::Way;
use super::pattern::Pattern;
use super::place::{Place, copy_shape, fill_shape};
use super::region::{Extent, Layout};
use crate::error::Result;
use crate::stream::Stream;

/// Copies and fills, in the stream's order: after everything given to it before, and before everything
/// given to it later. All checks come first: what is refused leaves nothing behind. No bytes are no
/// operation. [`CopyEngine`](crate::CopyEngine) tells what moves the bytes.
///
/// Memory must be mapped on the stream's device: its own, the host's (GTT and userptr), or another
/// device's after [`Memory::map_on`](crate::Memory::map_on). It may be dropped as soon as the call
/// returns.
impl Stream {
    /// Copies `bytes` bytes. HIP's `hipMemcpyAsync` between addresses of devices and pinned memory.
    ///
    /// ```no_run
    /// # fn go(stream: &mut hip::Stream, own: &hip::Memory, host: &hip::Memory) -> hip::Result<()> {
    /// stream.fill(own, 1.5_f32.to_bits(), 1024)?;
    /// stream.copy(own.at(4096), host.at(64), 1000)?;
    /// let mut bytes = [0; 5096];
    /// stream.copy_to_host(&mut bytes, own)
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`CopyError::Outside`], [`CopyError::Overlap`], [`CopyError::NotMapped`] with the numbers: nothing
    /// was submitted. Otherwise as [`Stream::launch`].
    ///
    /// [`CopyError::Outside`]: crate::CopyError::Outside
    /// [`CopyError::Overlap`]: crate::CopyError::Overlap
    /// [`CopyError::NotMapped`]: crate::CopyError::NotMapped
    pub fn copy<'d, 's>(
        &mut self,
        dst: impl Into<Place<'d>>,
        src: impl Into<Place<'s>>,
        bytes: u64,
    ) -> Result<()> {
        let layout = Layout::default();
        self.copy_rows(dst, layout, src, layout, Extent::linear(bytes))
    }

    /// Copies rows and planes of them. HIP's `hipMemcpy2DAsync` and `hipMemcpy3DAsync`.
    ///
    /// The layouts count from the places, which are the first bytes copied.
    ///
    /// # Errors
    /// As [`Stream::copy`]; [`CopyError::Pitch`], [`CopyError::Slice`], [`CopyError::TooLarge`].
    ///
    /// [`CopyError::Pitch`]: crate::CopyError::Pitch
    /// [`CopyError::Slice`]: crate::CopyError::Slice
    /// [`CopyError::TooLarge`]: crate::CopyError::TooLarge
    pub fn copy_rows<'d, 's>(
        &mut self,
        dst: impl Into<Place<'d>>,
        dst_layout: Layout,
        src: impl Into<Place<'s>>,
        src_layout: Layout,
        extent: Extent,
    ) -> Result<()> {
        let (dst, src) = (dst.into(), src.into());
        let device = self.core().device();
        let shape = copy_shape(device, (dst, dst_layout), (src, src_layout), extent)?;
        let is_local = dst.is_local_to(device) && src.is_local_to(device);
        let way = if is_local { Way::Local } else { Way::Link };
        self.core().copy_shape(&shape, way)
    }

    /// Stores `count` times a value of 1, 2, 4, 8 or 16 bytes. HIP's `hipMemsetD8Async` to `D32Async`.
    ///
    /// # Errors
    /// As [`Stream::copy`]; [`CopyError::Alignment`] when the place is no multiple of the value's size.
    ///
    /// [`CopyError::Alignment`]: crate::CopyError::Alignment
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

    /// Fills rows and planes of them with a value, from the start of each row on. HIP's
    /// `hipMemset2DAsync` and `hipMemset3DAsync`.
    ///
    /// # Errors
    /// As [`Stream::copy_rows`]; [`CopyError::Alignment`] when the place or a row is no multiple of the
    /// value's size.
    ///
    /// [`CopyError::Alignment`]: crate::CopyError::Alignment
    pub fn fill_rows<'d>(
        &mut self,
        dst: impl Into<Place<'d>>,
        layout: Layout,
        value: impl Into<Pattern>,
        extent: Extent,
    ) -> Result<()> {
        let (dst, value) = (dst.into(), value.into());
        let device = self.core().device();
        let shape = fill_shape(device, (dst, layout), value, extent)?;
        let way = if dst.is_local_to(device) { Way::Local } else { Way::Link };
        self.core().fill_shape(&shape, value, way)
    }

    /// Copies from pageable memory, through pinned chunks of bounded size.
    ///
    /// Returns when the last byte is in a chunk: `src` may be changed or freed then, though the device
    /// need not have the bytes yet. HIP's `hipMemcpyAsync` from memory that is not registered.
    ///
    /// # Errors
    /// As [`Stream::copy`]. After [`Error::Timeout`](crate::Error::Timeout) the first chunks may be
    /// copied.
    pub fn copy_from_host<'d>(&mut self, dst: impl Into<Place<'d>>, src: &[u8]) -> Result<()> {
        let (layout, extent) = (Layout::default(), Extent::linear(src.len() as u64));
        self.copy_rows_from_host(dst, layout, src, layout, extent)
    }

    /// Copies rows from pageable memory, as [`Stream::copy_from_host`].
    ///
    /// # Errors
    /// As [`Stream::copy_rows`]; [`CopyError::HostLength`].
    ///
    /// [`CopyError::HostLength`]: crate::CopyError::HostLength
    pub fn copy_rows_from_host<'d>(
        &mut self,
        dst: impl Into<Place<'d>>,
        dst_layout: Layout,
        src: &[u8],
        src_layout: Layout,
        extent: Extent,
    ) -> Result<()> {
        let dst = dst.into();
        let to = dst.region(Side::Destination, dst_layout, extent)?;
        dst.check_mapped(Side::Destination, self.core().device())?;
        self.core().copy_from_slice(to, src, src_layout, extent)
    }

    /// Copies to pageable memory, through pinned chunks of bounded size.
    ///
    /// Returns when all bytes are in `dst`, and so after everything given to the stream before. HIP's
    /// `hipMemcpyAsync` to memory that is not registered.
    ///
    /// # Errors
    /// As [`Stream::copy_from_host`]; as [`Stream::synchronize`].
    pub fn copy_to_host<'s>(&mut self, dst: &mut [u8], src: impl Into<Place<'s>>) -> Result<()> {
        let (layout, extent) = (Layout::default(), Extent::linear(dst.len() as u64));
        self.copy_rows_to_host(dst, layout, src, layout, extent)
    }

    /// Copies rows to pageable memory, as [`Stream::copy_to_host`]. What is between the rows is not
    /// touched.
    ///
    /// # Errors
    /// As [`Stream::copy_rows_from_host`] and [`Stream::copy_to_host`].
    pub fn copy_rows_to_host<'s>(
        &mut self,
        dst: &mut [u8],
        dst_layout: Layout,
        src: impl Into<Place<'s>>,
        src_layout: Layout,
        extent: Extent,
    ) -> Result<()> {
        let src = src.into();
        let from = src.region(Side::Source, src_layout, extent)?;
        src.check_mapped(Side::Source, self.core().device())?;
        self.core().copy_to_slice(dst, dst_layout, from, extent)
    }
}
