//! Ids that KFD hands out, each a type of its own so that one never passes for another.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $raw:ty) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash,
            FromBytes, IntoBytes, Immutable, KnownLayout,
        )]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        #[repr(transparent)]
        pub struct $name(pub $raw);

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(&self.0, f)
            }
        }
    };
}

id!(
    /// Index of a topology node (`/sys/class/kfd/kfd/topology/nodes/<n>`).
    NodeId, u32
);
id!(
    /// KFD's id of a GPU: a hash of its PCI identity, 0 for a CPU node.
    GpuId, u32
);
id!(
    /// KFD's id of a queue, unique in the process.
    QueueId, u32
);
id!(
    /// KFD's id of an event.
    EventId, u32
);
id!(
    /// KFD's handle of a memory allocation: GPU id in the high half, index in the low one.
    MemHandle, u64
);

/// Version of the KFD interface, ordered by age.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KfdVersion {
    /// Changes when old programs would break.
    pub major: u32,
    /// Grows with each addition.
    pub minor: u32,
}

impl std::fmt::Display for KfdVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}
