//! Request words: number, direction and argument size of every ioctl.
//!
//! The kernel selects by the number alone. The size is how many bytes user space has: a shorter
//! argument is extended with zeros, a longer one is returned with its tail untouched.

use super::{
    AcquireVmArgs, AllocMemoryOfGpuArgs, AllocQueueGwsArgs, Constant, CreateEventArgs,
    CreateQueueArgs, CriuArgs, DbgAddressWatchArgs, DbgRegisterArgs, DbgTrapArgs,
    DbgUnregisterArgs, DbgWaveControlArgs, DestroyEventArgs, DestroyQueueArgs, ExportDmabufArgs,
    FreeMemoryOfGpuArgs, GetAvailableMemoryArgs, GetClockCountersArgs, GetDmabufInfoArgs,
    GetProcessAperturesArgs, GetProcessAperturesNewArgs, GetQueueWaveStateArgs, GetTileConfigArgs,
    GetVersionArgs, ImportDmabufArgs, MapMemoryToGpuArgs, ResetEventArgs, RuntimeEnableArgs,
    SetCuMaskArgs, SetEventArgs, SetMemoryPolicyArgs, SetScratchBackingVaArgs, SetTrapHandlerArgs,
    SetXnackModeArgs, SmiEventsArgs, SvmArgs, SvmAttribute, UnmapMemoryFromGpuArgs,
    UpdateQueueArgs, WaitEventsArgs,
};
use crate::KfdVersion;

/// Type byte of every KFD ioctl.
#[doc(alias = "AMDKFD_IOCTL_BASE")]
pub const TYPE: u8 = b'K';
/// Smallest number.
#[doc(alias = "AMDKFD_COMMAND_START")]
pub const COMMAND_START: u8 = 0x01;
/// One past the largest number.
#[doc(alias = "AMDKFD_COMMAND_END")]
pub const COMMAND_END: u8 = 0x27;

/// Which way the argument goes, seen from user space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the kernel. Copied back even when the call fails.
    Read,
    /// To the kernel. Nothing is copied back.
    Write,
    /// Both ways. Copied back even when the call fails.
    ReadWrite,
}

impl Direction {
    const fn bits(self) -> u32 {
        match self {
            Self::Write => 1,
            Self::Read => 2,
            Self::ReadWrite => 3,
        }
    }
}

/// Packs a request word as `_IOC` does on x86-64: number in bits 7:0, type in 15:8, size in 29:16,
/// direction in 31:30. Bits of `bytes` past the 14 of its field are dropped.
#[doc(alias = "_IOC")]
#[must_use]
#[allow(clippy::cast_possible_truncation)] // masked to the 14 bits of the field
pub const fn encode(direction: Direction, number: u8, bytes: usize) -> u32 {
    direction.bits() << 30 | ((bytes & 0x3fff) as u32) << 16 | (TYPE as u32) << 8 | number as u32
}

/// The number in a request word: all that the kernel looks at to choose the call.
#[doc(alias = "_IOC_NR")]
#[must_use]
#[allow(clippy::cast_possible_truncation)] // the low byte is the number
pub const fn number(request: u32) -> u8 {
    request as u8
}

/// Bytes of the argument by a request word.
#[doc(alias = "_IOC_SIZE")]
#[must_use]
pub const fn bytes(request: u32) -> usize {
    (request >> 16 & 0x3fff) as usize
}

/// One ioctl.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ioctl {
    /// Number.
    pub number: u8,
    /// Name without its prefix.
    pub name: &'static str,
    /// Bytes of the argument in KFD 1.17. SVM's attributes come on top.
    pub bytes: usize,
    /// Which way the argument goes.
    pub direction: Direction,
    /// Version that has it first; `1.1` also stands for any earlier one.
    pub since: KfdVersion,
}

impl Ioctl {
    /// The request word for an argument of [`Self::bytes`].
    #[must_use]
    pub const fn request(&self) -> u32 {
        encode(self.direction, self.number, self.bytes)
    }
}

/// Looks an ioctl up by number.
#[must_use]
pub fn find(number: u8) -> Option<&'static Ioctl> {
    IOCTLS.iter().find(|ioctl| ioctl.number == number)
}

/// The request word of SVM with `attributes` attributes, or `None` when the word's size field cannot
/// hold them.
#[must_use]
pub const fn svm(attributes: usize) -> Option<u32> {
    let Some(tail) = attributes.checked_mul(size_of::<SvmAttribute>()) else { return None };
    match size_of::<SvmArgs>().checked_add(tail) {
        Some(bytes) if bytes <= 0x3fff => Some(encode(Direction::ReadWrite, 0x20, bytes)),
        _ => None,
    }
}

macro_rules! ioctls {
    ($($name:ident = $number:literal, $direction:ident, $args:ty, $minor:literal, $c_name:literal;)+) => {
        $(
            #[doc = concat!("Request word of ", stringify!($name), "; its argument is [`", stringify!($args), "`].")]
            #[doc(alias = $c_name)]
            pub const $name: u32 = encode(Direction::$direction, $number, size_of::<$args>());
        )+

        /// Every ioctl of KFD 1.17, by number.
        pub const IOCTLS: &[Ioctl] = &[$(Ioctl {
            number: $number,
            name: stringify!($name),
            bytes: size_of::<$args>(),
            direction: Direction::$direction,
            since: KfdVersion { major: 1, minor: $minor },
        },)+];

        pub(super) const CONSTANTS: &[Constant] = &[
            Constant { c_name: "AMDKFD_IOCTL_BASE", value: TYPE as u64 },
            Constant { c_name: "AMDKFD_COMMAND_START", value: COMMAND_START as u64 },
            Constant { c_name: "AMDKFD_COMMAND_END", value: COMMAND_END as u64 },
            $(Constant { c_name: $c_name, value: $name as u64 },)+
        ];
    };
}

ioctls! {
    GET_VERSION = 0x01, Read, GetVersionArgs, 0, "AMDKFD_IOC_GET_VERSION";
    CREATE_QUEUE = 0x02, ReadWrite, CreateQueueArgs, 0, "AMDKFD_IOC_CREATE_QUEUE";
    DESTROY_QUEUE = 0x03, ReadWrite, DestroyQueueArgs, 0, "AMDKFD_IOC_DESTROY_QUEUE";
    SET_MEMORY_POLICY = 0x04, Write, SetMemoryPolicyArgs, 0, "AMDKFD_IOC_SET_MEMORY_POLICY";
    GET_CLOCK_COUNTERS = 0x05, ReadWrite, GetClockCountersArgs, 0, "AMDKFD_IOC_GET_CLOCK_COUNTERS";
    GET_PROCESS_APERTURES = 0x06, Read, GetProcessAperturesArgs, 0,
        "AMDKFD_IOC_GET_PROCESS_APERTURES";
    UPDATE_QUEUE = 0x07, Write, UpdateQueueArgs, 0, "AMDKFD_IOC_UPDATE_QUEUE";
    CREATE_EVENT = 0x08, ReadWrite, CreateEventArgs, 0, "AMDKFD_IOC_CREATE_EVENT";
    DESTROY_EVENT = 0x09, Write, DestroyEventArgs, 0, "AMDKFD_IOC_DESTROY_EVENT";
    SET_EVENT = 0x0a, Write, SetEventArgs, 0, "AMDKFD_IOC_SET_EVENT";
    RESET_EVENT = 0x0b, Write, ResetEventArgs, 0, "AMDKFD_IOC_RESET_EVENT";
    WAIT_EVENTS = 0x0c, ReadWrite, WaitEventsArgs, 0, "AMDKFD_IOC_WAIT_EVENTS";
    DBG_REGISTER = 0x0d, Write, DbgRegisterArgs, 0, "AMDKFD_IOC_DBG_REGISTER_DEPRECATED";
    DBG_UNREGISTER = 0x0e, Write, DbgUnregisterArgs, 0, "AMDKFD_IOC_DBG_UNREGISTER_DEPRECATED";
    DBG_ADDRESS_WATCH = 0x0f, Write, DbgAddressWatchArgs, 0,
        "AMDKFD_IOC_DBG_ADDRESS_WATCH_DEPRECATED";
    DBG_WAVE_CONTROL = 0x10, Write, DbgWaveControlArgs, 0,
        "AMDKFD_IOC_DBG_WAVE_CONTROL_DEPRECATED";
    SET_SCRATCH_BACKING_VA = 0x11, ReadWrite, SetScratchBackingVaArgs, 1,
        "AMDKFD_IOC_SET_SCRATCH_BACKING_VA";
    GET_TILE_CONFIG = 0x12, ReadWrite, GetTileConfigArgs, 1, "AMDKFD_IOC_GET_TILE_CONFIG";
    SET_TRAP_HANDLER = 0x13, Write, SetTrapHandlerArgs, 1, "AMDKFD_IOC_SET_TRAP_HANDLER";
    GET_PROCESS_APERTURES_NEW = 0x14, ReadWrite, GetProcessAperturesNewArgs, 1,
        "AMDKFD_IOC_GET_PROCESS_APERTURES_NEW";
    ACQUIRE_VM = 0x15, Write, AcquireVmArgs, 1, "AMDKFD_IOC_ACQUIRE_VM";
    ALLOC_MEMORY_OF_GPU = 0x16, ReadWrite, AllocMemoryOfGpuArgs, 1,
        "AMDKFD_IOC_ALLOC_MEMORY_OF_GPU";
    FREE_MEMORY_OF_GPU = 0x17, Write, FreeMemoryOfGpuArgs, 1, "AMDKFD_IOC_FREE_MEMORY_OF_GPU";
    MAP_MEMORY_TO_GPU = 0x18, ReadWrite, MapMemoryToGpuArgs, 1, "AMDKFD_IOC_MAP_MEMORY_TO_GPU";
    UNMAP_MEMORY_FROM_GPU = 0x19, ReadWrite, UnmapMemoryFromGpuArgs, 1,
        "AMDKFD_IOC_UNMAP_MEMORY_FROM_GPU";
    SET_CU_MASK = 0x1a, Write, SetCuMaskArgs, 1, "AMDKFD_IOC_SET_CU_MASK";
    GET_QUEUE_WAVE_STATE = 0x1b, ReadWrite, GetQueueWaveStateArgs, 1,
        "AMDKFD_IOC_GET_QUEUE_WAVE_STATE";
    GET_DMABUF_INFO = 0x1c, ReadWrite, GetDmabufInfoArgs, 1, "AMDKFD_IOC_GET_DMABUF_INFO";
    IMPORT_DMABUF = 0x1d, ReadWrite, ImportDmabufArgs, 1, "AMDKFD_IOC_IMPORT_DMABUF";
    ALLOC_QUEUE_GWS = 0x1e, ReadWrite, AllocQueueGwsArgs, 1, "AMDKFD_IOC_ALLOC_QUEUE_GWS";
    SMI_EVENTS = 0x1f, ReadWrite, SmiEventsArgs, 3, "AMDKFD_IOC_SMI_EVENTS";
    SVM = 0x20, ReadWrite, SvmArgs, 5, "AMDKFD_IOC_SVM";
    SET_XNACK_MODE = 0x21, ReadWrite, SetXnackModeArgs, 5, "AMDKFD_IOC_SET_XNACK_MODE";
    CRIU_OP = 0x22, ReadWrite, CriuArgs, 7, "AMDKFD_IOC_CRIU_OP";
    AVAILABLE_MEMORY = 0x23, ReadWrite, GetAvailableMemoryArgs, 9, "AMDKFD_IOC_AVAILABLE_MEMORY";
    EXPORT_DMABUF = 0x24, ReadWrite, ExportDmabufArgs, 12, "AMDKFD_IOC_EXPORT_DMABUF";
    RUNTIME_ENABLE = 0x25, ReadWrite, RuntimeEnableArgs, 13, "AMDKFD_IOC_RUNTIME_ENABLE";
    DBG_TRAP = 0x26, ReadWrite, DbgTrapArgs, 13, "AMDKFD_IOC_DBG_TRAP";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_consecutive_from_start_to_end() {
        let numbers: Vec<u8> = IOCTLS.iter().map(|ioctl| ioctl.number).collect();
        assert_eq!(numbers, (COMMAND_START..COMMAND_END).collect::<Vec<_>>());
    }

    #[test]
    fn a_request_word_takes_apart_into_what_it_was_made_of() {
        for ioctl in IOCTLS {
            assert_eq!(number(ioctl.request()), ioctl.number);
            assert_eq!(bytes(ioctl.request()), ioctl.bytes);
            assert_eq!(find(ioctl.number), Some(ioctl));
        }
    }

    #[test]
    fn svm_counts_its_attributes_until_the_size_field_is_full() {
        assert_eq!(svm(0), Some(SVM));
        assert_eq!(svm(2).map(bytes), Some(40));
        assert_eq!(svm(2044).map(bytes), Some(16376));
        assert_eq!(svm(2045), None);
        assert_eq!(svm(usize::MAX), None);
    }
}
