//! [`Place`]: a position in device memory, and the checks of what copies and fills name.

use std::sync::Arc;

use kfd::MemoryKind;
use pm4::GpuAddr;

use super::error::{CopyError, Side};
use super::pattern::Pattern;
use super::region::{Extent, Layout, Region, Shape, overlap};
use crate::device::DeviceCore;
use crate::memory::Memory;

/// A position in [`Memory`]: where a copy or fill starts.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    pub(crate) memory: &'a Memory,
    pub(crate) offset: u64,
}

impl Memory {
    /// The position `offset` bytes from its start, for copies and fills.
    pub const fn at(&self, offset: u64) -> Place<'_> {
        Place { memory: self, offset }
    }
}

/// Its start.
impl<'a> From<&'a Memory> for Place<'a> {
    fn from(memory: &'a Memory) -> Self {
        memory.at(0)
    }
}

impl Place<'_> {
    /// Its address.
    pub fn addr(self) -> GpuAddr {
        GpuAddr::new(self.memory.addr().get().saturating_add(self.offset))
    }

    /// The region that starts here.
    ///
    /// # Errors
    /// As [`Layout::span`]; [`CopyError::Outside`].
    pub(crate) fn region(
        self,
        side: Side,
        layout: Layout,
        extent: Extent,
    ) -> Result<Region, CopyError> {
        let bytes = layout.span(side, extent)?;
        let (offset, length) = (self.offset, self.memory.bytes());
        match offset.checked_add(bytes) {
            Some(end) if end <= length => Ok(Region { base: self.addr(), layout }),
            _ => Err(CopyError::Outside { side, offset, bytes, length }),
        }
    }

    /// Whether `device` can reach it.
    pub(crate) fn is_mapped_on(self, device: &Arc<DeviceCore>) -> bool {
        self.memory.devices().iter().any(|other| Arc::ptr_eq(other, device))
    }

    /// # Errors
    /// [`CopyError::NotMapped`].
    pub(crate) fn check_mapped(
        self,
        side: Side,
        device: &Arc<DeviceCore>,
    ) -> Result<(), CopyError> {
        if self.is_mapped_on(device) {
            return Ok(());
        }
        Err(CopyError::NotMapped { side, addr: self.addr(), gpu: device.gpu.id() })
    }

    /// Whether it is in the memory of `device` itself.
    pub(crate) fn is_local_to(self, device: &Arc<DeviceCore>) -> bool {
        let owner = self.memory.devices().first();
        self.memory.buffer().info().kind == MemoryKind::Vram
            && owner.is_some_and(|owner| Arc::ptr_eq(owner, device))
    }
}

/// The shape of a copy on `device`, checked.
///
/// # Errors
/// As [`Place::region`]; [`CopyError::Overlap`]; [`CopyError::NotMapped`].
pub(crate) fn copy_shape(
    device: &Arc<DeviceCore>,
    (dst, dst_layout): (Place<'_>, Layout),
    (src, src_layout): (Place<'_>, Layout),
    extent: Extent,
) -> Result<Shape<2>, CopyError> {
    let to = dst.region(Side::Destination, dst_layout, extent)?;
    let from = src.region(Side::Source, src_layout, extent)?;
    check_apart(to, from, extent)?;
    dst.check_mapped(Side::Destination, device)?;
    src.check_mapped(Side::Source, device)?;
    Ok(Shape::new([to, from], extent))
}

/// The shape of a fill on `device`, checked.
///
/// # Errors
/// As [`Place::region`]; [`CopyError::Alignment`]; [`CopyError::NotMapped`].
pub(crate) fn fill_shape(
    device: &Arc<DeviceCore>,
    (dst, layout): (Place<'_>, Layout),
    pattern: Pattern,
    extent: Extent,
) -> Result<Shape<1>, CopyError> {
    let to = dst.region(Side::Destination, layout, extent)?;
    check_values(to, extent, pattern)?;
    dst.check_mapped(Side::Destination, device)?;
    Ok(Shape::new([to], extent))
}

/// Refuses a copy within one region of memory.
fn check_apart(dst: Region, src: Region, extent: Extent) -> Result<(), CopyError> {
    if overlap(dst, src, extent) {
        return Err(CopyError::Overlap { src: src.base, dst: dst.base, extent });
    }
    Ok(())
}

/// Refuses fills that would end within a value.
fn check_values(dst: Region, extent: Extent, pattern: Pattern) -> Result<(), CopyError> {
    let (size, width) = (pattern.bytes(), extent.width);
    if !width.is_multiple_of(size) || !dst.base.is_aligned(size) {
        return Err(CopyError::Alignment { dst: dst.base, width, size });
    }
    Ok(())
}
