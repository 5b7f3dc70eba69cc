//! Shared virtual memory: attributes of address ranges. KFD 1.5 and later.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

open_flags! {
    /// Flags of a range.
    pub struct SvmFlags(u32);
    /// The host may always access it.
    HOST_ACCESS = 1, "KFD_IOCTL_SVM_FLAG_HOST_ACCESS";
    /// Coherent between all devices with access.
    COHERENT = 2, "KFD_IOCTL_SVM_FLAG_COHERENT";
    /// Any GPU of the hive serves as preferred location.
    HIVE_LOCAL = 4, "KFD_IOCTL_SVM_FLAG_HIVE_LOCAL";
    /// GPUs only read.
    GPU_RO = 8, "KFD_IOCTL_SVM_FLAG_GPU_RO";
    /// GPUs may execute.
    GPU_EXEC = 0x10, "KFD_IOCTL_SVM_FLAG_GPU_EXEC";
    /// GPUs mostly read; writes fault.
    GPU_READ_MOSTLY = 0x20, "KFD_IOCTL_SVM_FLAG_GPU_READ_MOSTLY";
    /// Mapped at any time, as without XNACK. KFD 1.11 and later.
    GPU_ALWAYS_MAPPED = 0x40, "KFD_IOCTL_SVM_FLAG_GPU_ALWAYS_MAPPED";
    /// Coherent for device-scope atomics.
    EXT_COHERENT = 0x80, "KFD_IOCTL_SVM_FLAG_EXT_COHERENT";
}

open_enum! {
    /// Operation of SVM.
    pub struct SvmOp(u32);
    /// Sets attributes.
    SET_ATTR = 0, "KFD_IOCTL_SVM_OP_SET_ATTR";
    /// Reads attributes.
    GET_ATTR = 1, "KFD_IOCTL_SVM_OP_GET_ATTR";
}

open_enum! {
    /// Location of a range: a GPU id or one of these.
    pub struct SvmLocation(u32);
    /// System memory.
    SYSMEM = 0, "KFD_IOCTL_SVM_LOCATION_SYSMEM";
    /// None given, or not the same in the whole range.
    UNDEFINED = 0xffff_ffff, "KFD_IOCTL_SVM_LOCATION_UNDEFINED";
}

open_enum! {
    /// What an attribute is.
    pub struct SvmAttrType(u32);
    /// Value: an [`SvmLocation`].
    PREFERRED_LOC = 0, "KFD_IOCTL_SVM_ATTR_PREFERRED_LOC";
    /// Value: an [`SvmLocation`]. Setting it moves the pages.
    PREFETCH_LOC = 1, "KFD_IOCTL_SVM_ATTR_PREFETCH_LOC";
    /// Value: a GPU id that gets access.
    ACCESS = 2, "KFD_IOCTL_SVM_ATTR_ACCESS";
    /// Value: a GPU id that gets access without moving pages.
    ACCESS_IN_PLACE = 3, "KFD_IOCTL_SVM_ATTR_ACCESS_IN_PLACE";
    /// Value: a GPU id that loses access.
    NO_ACCESS = 4, "KFD_IOCTL_SVM_ATTR_NO_ACCESS";
    /// Value: [`SvmFlags`] to set.
    SET_FLAGS = 5, "KFD_IOCTL_SVM_ATTR_SET_FLAGS";
    /// Value: [`SvmFlags`] to clear.
    CLR_FLAGS = 6, "KFD_IOCTL_SVM_ATTR_CLR_FLAGS";
    /// Value: log2 of pages that move together.
    GRANULARITY = 7, "KFD_IOCTL_SVM_ATTR_GRANULARITY";
}

/// One attribute.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct SvmAttribute {
    /// What it is; GET_ATTR overwrites an access type with the access that the GPU has.
    pub kind: SvmAttrType,
    /// Its value.
    pub value: u32,
}
abi_layout!(SvmAttribute = "kfd_ioctl_svm_attribute", size = 8, { kind as "type" @ 0, value @ 4 });

/// Start of the argument of SVM; `nattr` [`SvmAttribute`]s follow it, and the request's size field
/// must cover them.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct SvmArgs {
    /// To KFD, page-aligned.
    pub start_addr: u64,
    /// To KFD, bytes, whole pages.
    pub size: u64,
    /// To KFD.
    pub op: SvmOp,
    /// To KFD.
    pub nattr: u32,
}
abi_layout!(
    SvmArgs = "kfd_ioctl_svm_args", size = 24,
    { start_addr @ 0, size @ 8, op @ 16, nattr @ 20 },
    members { "attrs": [SvmAttribute; 0], @ 24 },
);
