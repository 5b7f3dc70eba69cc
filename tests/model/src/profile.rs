//! Which kernel the model imitates.

/// A kernel release whose KFD behaviour the model follows (docs/ABI.md §Model).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Profile {
    /// Debian's 6.1 (6.1.192): KFD 1.11, no check of queue buffers, no dma-buf export.
    V6_1,
    /// 6.12.0: KFD 1.17, queue buffers must have exactly the kernel's sizes, which sysfs hides.
    V6_12_0,
    /// Debian's 6.12 (6.12.117): KFD 1.17, save area and EOP may be larger, sysfs gives the sizes.
    #[default]
    V6_12,
}

impl Profile {
    /// All profiles, oldest first.
    pub const ALL: [Self; 3] = [Self::V6_1, Self::V6_12_0, Self::V6_12];

    /// Minor version of the KFD interface; the major one is 1.
    pub const fn minor(self) -> u32 {
        match self {
            Self::V6_1 => 11,
            Self::V6_12_0 | Self::V6_12 => 17,
        }
    }

    /// First ioctl number that this kernel does not have.
    pub(crate) const fn ioctl_end(self) -> u32 {
        match self {
            Self::V6_1 => 0x24,
            Self::V6_12_0 | Self::V6_12 => 0x27,
        }
    }

    /// Whether events carry an age (KFD 1.14).
    pub(crate) const fn has_event_age(self) -> bool {
        self.minor() >= 14
    }

    /// Whether CREATE_QUEUE checks that its buffers are mapped, each alone and in full.
    pub(crate) const fn checks_queue_buffers(self) -> bool {
        !matches!(self, Self::V6_1)
    }

    /// Whether save area and EOP must be exactly as large as the kernel's number.
    pub(crate) const fn wants_exact_sizes(self) -> bool {
        matches!(self, Self::V6_12_0)
    }

    /// Whether sysfs shows `cwsr_size` and `ctl_stack_size`.
    pub(crate) const fn publishes_save_sizes(self) -> bool {
        matches!(self, Self::V6_12)
    }

    /// Whether rings below 1024 bytes are taken as 1024.
    pub(crate) const fn clamps_ring(self) -> bool {
        !matches!(self, Self::V6_12_0)
    }

    /// Whether a bad packet makes the kernel take the queue off a MES chip.
    pub(crate) const fn suspends_bad_queues(self) -> bool {
        !matches!(self, Self::V6_1)
    }

    /// Whether an APU's video memory is system memory (since Linux 6.10).
    pub(crate) const fn unifies_apu_memory(self) -> bool {
        !matches!(self, Self::V6_1)
    }

    /// First address of the GPUVM aperture.
    pub(crate) const fn gpuvm_base(self) -> u64 {
        match self {
            Self::V6_1 => 0x4000,
            Self::V6_12_0 | Self::V6_12 => 0x1_0000,
        }
    }
}
