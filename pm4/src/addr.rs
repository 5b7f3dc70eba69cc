//! Addresses as the GPU sees them.

use core::fmt;

/// An address in a GPU's virtual address space, in bytes.
///
/// It is never a host pointer, even where the driver arranged that both have the same value.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct GpuAddr(u64);

impl GpuAddr {
    /// The null address.
    pub const NULL: Self = Self(0);

    /// Wraps a raw 64-bit address.
    pub const fn new(raw: u64) -> Self {
        Self(raw)
    }

    /// The raw 64-bit address.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Low 32 bits, as packets carry them.
    #[allow(clippy::cast_possible_truncation)] // the truncation is the point
    pub const fn lo(self) -> u32 {
        self.0 as u32
    }

    /// High 32 bits, as packets carry them.
    pub const fn hi(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// `self + bytes`, or `None` past the end of the address space.
    pub const fn checked_add(self, bytes: u64) -> Option<Self> {
        match self.0.checked_add(bytes) {
            Some(sum) => Some(Self(sum)),
            None => None,
        }
    }

    /// Whether the address is a multiple of `align` bytes. `align` of zero: never.
    pub const fn is_aligned(self, align: u64) -> bool {
        match self.0.checked_rem(align) {
            Some(rest) => rest == 0,
            None => false,
        }
    }
}

impl fmt::Debug for GpuAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

impl fmt::Display for GpuAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

impl From<u64> for GpuAddr {
    fn from(raw: u64) -> Self {
        Self(raw)
    }
}
