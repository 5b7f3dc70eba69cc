//! Why a kernel cannot be launched.

use crate::{GpuAddr, Target};

/// A dimension of a grid or group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axis {
    /// The first.
    X,
    /// The second.
    Y,
    /// The third.
    Z,
}

/// Why a kernel cannot be launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The code is not where code can be.
    #[error("kernel entry {entry} is not a multiple of 256 bytes below 2^48")]
    Entry {
        /// Where it is.
        entry: GpuAddr,
    },
    /// The target has no waves of 32 lanes.
    #[error("{target} has no waves of 32 lanes")]
    Wave32 {
        /// The target.
        target: Target,
    },
    /// The kernel's user SGPRs do not fit.
    #[error("kernel wants {needed} user SGPRs and counts {counted}, at most {max}")]
    UserSgprs {
        /// What its properties and preloads need.
        needed: u32,
        /// What `COMPUTE_PGM_RSRC2` counts.
        counted: u32,
        /// Most there are.
        max: u32,
    },
    /// More vector registers than there are.
    #[error("kernel wants {vgprs} vector registers, at most {max}")]
    Vgprs {
        /// What it wants.
        vgprs: u32,
        /// Most there are.
        max: u32,
    },
    /// The grid or group is empty along one axis.
    #[error("the grid or the group has no work-items along {axis:?}")]
    Empty {
        /// Which.
        axis: Axis,
    },
    /// The group has too many work-items.
    #[error("a group of {items} work-items, at most {max}")]
    Group {
        /// How many.
        items: u64,
        /// Most there can be.
        max: u32,
    },
    /// The group wants more LDS than there is.
    #[error("a group wants {bytes} bytes of LDS, at most {max}")]
    Lds {
        /// What it wants, bytes.
        bytes: u32,
        /// Most there is, bytes.
        max: u32,
    },
    /// The queue's scratch memory does not suffice.
    #[error("a wave wants {needed} bytes of scratch, the queue has {found}")]
    Scratch {
        /// What a wave wants, bytes.
        needed: u64,
        /// What the queue gives a wave, bytes.
        found: u64,
    },
    /// The kernel uses scratch without saying so.
    #[error("{bytes} bytes of scratch for a kernel that does not enable it")]
    ScratchDisabled {
        /// Scratch of a work-item, bytes.
        bytes: u32,
    },
    /// The scratch memory is not where it can be.
    #[error("scratch at {base} is not a multiple of 256 bytes below 2^48")]
    ScratchBase {
        /// Where it is.
        base: GpuAddr,
    },
    /// The kernel looks at something that the launch does not have.
    #[error("the kernel wants the {what}, the launch has none")]
    Missing {
        /// What.
        what: &'static str,
    },
    /// The arguments end before the last preloaded one.
    #[error("{needed} dwords of arguments are preloaded, the launch has {found}")]
    Preload {
        /// Dwords the kernel preloads.
        needed: u16,
        /// Dwords there are.
        found: usize,
    },
}
