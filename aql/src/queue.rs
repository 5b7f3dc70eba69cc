//! `amd_queue_v2_t`: what the command processor knows of a queue.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use bitflags::bitflags;
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use crate::{Error, SharedWords, layout};

bitflags! {
    /// `queue_properties` of [`AmdQueueV2`].
    ///
    /// # Source
    /// `amd_queue_properties_t` in ROCr inc/amd_hsa_queue.h; docs/ABI.md §AQL.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct QueueProperties: u32 {
        /// A trap handler is installed.
        const ENABLE_TRAP_HANDLER = 1 << 0;
        /// The process is 64-bit.
        const IS_PTR64 = 1 << 1;
        /// Trap handler debug SGPRs are enabled.
        const ENABLE_TRAP_HANDLER_DEBUG_SGPRS = 1 << 2;
        /// Packets with a completion signal write its timestamps.
        const ENABLE_PROFILING = 1 << 3;
        /// The scratch given is for one dispatch only.
        const USE_SCRATCH_ONCE = 1 << 4;
        /// Not defined; kept when read.
        const _ = !0;
    }
}

/// Last dispatch that used a scratch region, on one XCC.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct ScratchLastUsed {
    /// Packet index for the main region.
    pub main: u64,
    /// Packet index for the alternate region.
    pub alt: u64,
}

/// `amd_queue_v2_t`: 2304 bytes, 64-byte aligned, one page of host memory that the device reads.
///
/// The first 256 bytes are `amd_queue_t`; firmware touches the rest only when
/// [`caps`](Self::caps) says that both sides know it.
///
/// # Source
/// ROCr inc/amd_hsa_queue.h; docs/ABI.md §AQL.
#[doc(alias = "amd_queue_t")]
#[doc(alias = "amd_queue_v2_t")]
#[derive(Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C, align(64))]
pub struct AmdQueueV2 {
    /// 0 for several producers, 1 for one, 2 for cooperative dispatch.
    pub queue_type: u32,
    /// Bit 0: kernel dispatch, bit 1: agent dispatch.
    pub features: u32,
    /// The ring.
    pub base_address: u64,
    /// Handle of the doorbell signal.
    pub doorbell_signal: u64,
    /// Packets in the ring, a power of two.
    pub size: u32,
    /// Zero.
    pub reserved1: u32,
    /// Number of the queue, unique in the process.
    pub id: u64,
    /// Bit 0: the firmware reclaims scratch asynchronously (device). Bit 1: so does the host.
    pub caps: u32,
    /// Zero.
    pub reserved2: [u32; 3],
    /// Packets published. KFD's write pointer.
    pub write_dispatch_id: u64,
    /// High half of the LDS aperture's base.
    pub group_segment_aperture_base_hi: u32,
    /// High half of the scratch aperture's base.
    pub private_segment_aperture_base_hi: u32,
    /// Compute units on all XCCs, minus one.
    pub max_cu_id: u32,
    /// Waves of a compute unit, minus one.
    pub max_wave_id: u32,
    /// Older hardware only.
    pub max_legacy_doorbell_dispatch_id_plus_1: u64,
    /// Older hardware only.
    pub legacy_doorbell_lock: u32,
    /// Zero.
    pub reserved3: [u32; 9],
    /// Packets consumed (device). KFD's read pointer.
    pub read_dispatch_id: u64,
    /// Offset of `read_dispatch_id` in this struct: the device finds the struct by it.
    pub read_dispatch_id_field_base_byte_offset: u32,
    /// `COMPUTE_TMPRING_SIZE` of the main scratch region.
    pub compute_tmpring_size: u32,
    /// Buffer descriptor of the main scratch region.
    pub scratch_resource_descriptor: [u32; 4],
    /// Address of the main scratch region.
    pub scratch_backing_memory_location: u64,
    /// Its size, bytes, of one XCC.
    pub scratch_backing_memory_byte_size: u64,
    /// Scratch per lane of a wave of 64, bytes.
    pub scratch_wave64_lane_byte_size: u32,
    /// [`QueueProperties`].
    pub queue_properties: u32,
    /// Last packet that may use the main scratch region; all ones for no limit.
    pub scratch_max_use_index: u64,
    /// Handle of the signal that the device raises to report errors and ask for scratch.
    pub queue_inactive_signal: u64,
    /// Last packet that may use the alternate scratch region.
    pub alt_scratch_max_use_index: u64,
    /// Buffer descriptor of the alternate scratch region.
    pub alt_scratch_resource_descriptor: [u32; 4],
    /// Address of the alternate scratch region.
    pub alt_scratch_backing_memory_location: u64,
    /// Largest grid in x that may use it, work-items.
    pub alt_scratch_dispatch_limit_x: u32,
    /// Largest grid in y that may use it, work-items.
    pub alt_scratch_dispatch_limit_y: u32,
    /// Largest grid in z that may use it, work-items.
    pub alt_scratch_dispatch_limit_z: u32,
    /// Its scratch per lane of a wave of 64, bytes.
    pub alt_scratch_wave64_lane_byte_size: u32,
    /// Its `COMPUTE_TMPRING_SIZE`.
    pub alt_compute_tmpring_size: u32,
    /// Zero.
    pub reserved5: u32,
    /// Last uses of scratch per XCC (device).
    pub scratch_last_used_index: [ScratchLastUsed; 128],
}

layout!(AmdQueueV2, size = 2304, {
    queue_type @ 0, features @ 4, base_address @ 8, doorbell_signal @ 16, size @ 24,
    reserved1 @ 28, id @ 32, caps @ 40, reserved2 @ 44, write_dispatch_id @ 56,
    group_segment_aperture_base_hi @ 64, private_segment_aperture_base_hi @ 68, max_cu_id @ 72,
    max_wave_id @ 76, max_legacy_doorbell_dispatch_id_plus_1 @ 80, legacy_doorbell_lock @ 88,
    reserved3 @ 92, read_dispatch_id @ 128, read_dispatch_id_field_base_byte_offset @ 136,
    compute_tmpring_size @ 140, scratch_resource_descriptor @ 144,
    scratch_backing_memory_location @ 160, scratch_backing_memory_byte_size @ 168,
    scratch_wave64_lane_byte_size @ 176, queue_properties @ 180, scratch_max_use_index @ 184,
    queue_inactive_signal @ 192, alt_scratch_max_use_index @ 200,
    alt_scratch_resource_descriptor @ 208, alt_scratch_backing_memory_location @ 224,
    alt_scratch_dispatch_limit_x @ 232, alt_scratch_dispatch_limit_y @ 236,
    alt_scratch_dispatch_limit_z @ 240, alt_scratch_wave64_lane_byte_size @ 244,
    alt_compute_tmpring_size @ 248, reserved5 @ 252, scratch_last_used_index @ 256,
});

impl AmdQueueV2 {
    /// Offset of [`write_dispatch_id`](Self::write_dispatch_id), bytes.
    pub const WRITE_DISPATCH_ID: usize = 56;
    /// Offset of [`read_dispatch_id`](Self::read_dispatch_id), bytes.
    pub const READ_DISPATCH_ID: usize = 128;

    /// A queue without scratch: everything zero but the three fields that must not be.
    pub fn new() -> Self {
        Self {
            read_dispatch_id_field_base_byte_offset: 128,
            scratch_max_use_index: u64::MAX,
            alt_scratch_max_use_index: u64::MAX,
            ..Self::new_zeroed()
        }
    }
}

impl Default for AmdQueueV2 {
    fn default() -> Self {
        Self::new()
    }
}

/// An `amd_queue_v2_t` in shared memory.
#[derive(Clone, Copy, Debug)]
pub struct QueueWords<'m> {
    words: SharedWords<'m>,
    read: &'m AtomicU64,
    write: &'m AtomicU64,
    inactive_signal: &'m AtomicU64,
    tmpring_size: &'m AtomicU32,
    properties: &'m AtomicU32,
}

impl<'m> QueueWords<'m> {
    /// The queue in the first 2304 bytes of `words`.
    ///
    /// # Errors
    /// [`Error::OutOfBounds`] if they are fewer; [`Error::Misaligned`] unless 64-byte aligned.
    pub fn new(words: SharedWords<'m>) -> Result<Self, Error> {
        let words = words.slice(0, size_of::<AmdQueueV2>())?;
        if !words.address().is_multiple_of(align_of::<AmdQueueV2>()) {
            let align = align_of::<AmdQueueV2>();
            return Err(Error::Misaligned { address: words.address(), align });
        }
        Ok(Self {
            words,
            read: words.u64(AmdQueueV2::READ_DISPATCH_ID)?,
            write: words.u64(AmdQueueV2::WRITE_DISPATCH_ID)?,
            inactive_signal: words.u64(192)?,
            tmpring_size: words.u32(140)?,
            properties: words.u32(180)?,
        })
    }

    /// Makes it `queue`. No device may know it yet.
    ///
    /// # Errors
    /// Never: the bounds were checked by [`Self::new`].
    pub fn init(&self, queue: &AmdQueueV2) -> Result<(), Error> {
        self.words.write(0, queue.as_bytes())
    }

    /// Packets consumed. The device writes it: [`Ring::refresh`](crate::Ring::refresh) is the one
    /// that reads it for use.
    pub const fn read_dispatch_id(&self) -> &'m AtomicU64 {
        self.read
    }

    /// Packets published.
    pub const fn write_dispatch_id(&self) -> &'m AtomicU64 {
        self.write
    }

    /// Handle of the signal for errors and scratch requests.
    pub const fn inactive_signal(&self) -> &'m AtomicU64 {
        self.inactive_signal
    }

    /// `COMPUTE_TMPRING_SIZE` of the main scratch region.
    pub const fn tmpring_size(&self) -> &'m AtomicU32 {
        self.tmpring_size
    }

    /// [`QueueProperties`], as bits.
    pub const fn properties(&self) -> &'m AtomicU32 {
        self.properties
    }

    /// Replaces the main scratch region. Only while the device waits for it, or before it knows
    /// the queue.
    ///
    /// # Errors
    /// Never: the bounds were checked by [`Self::new`].
    pub fn set_scratch(&self, queue: &AmdQueueV2) -> Result<(), Error> {
        self.tmpring_size.store(queue.compute_tmpring_size, Ordering::Relaxed);
        for (offset, word) in (144..).step_by(4).zip(queue.scratch_resource_descriptor) {
            self.words.u32(offset)?.store(word, Ordering::Relaxed);
        }
        let location = self.words.u64(160)?;
        location.store(queue.scratch_backing_memory_location, Ordering::Relaxed);
        let bytes = self.words.u64(168)?;
        bytes.store(queue.scratch_backing_memory_byte_size, Ordering::Relaxed);
        let lane = self.words.u32(176)?;
        lane.store(queue.scratch_wave64_lane_byte_size, Ordering::Release);
        Ok(())
    }

    /// What a report about the queue needs, each word loaded once. The device may have written
    /// any of it: nothing here is checked.
    pub fn take(&self) -> QueueState {
        QueueState {
            read_dispatch_id: self.read.load(Ordering::Acquire),
            write_dispatch_id: self.write.load(Ordering::Relaxed),
            properties: QueueProperties::from_bits_retain(self.properties.load(Ordering::Relaxed)),
            tmpring_size: self.tmpring_size.load(Ordering::Relaxed),
            inactive_signal: self.inactive_signal.load(Ordering::Relaxed),
        }
    }
}

/// Snapshot of the words of a queue that change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueState {
    /// Packets consumed, as the device says.
    pub read_dispatch_id: u64,
    /// Packets published.
    pub write_dispatch_id: u64,
    /// Properties.
    pub properties: QueueProperties,
    /// `COMPUTE_TMPRING_SIZE` of the main scratch region.
    pub tmpring_size: u32,
    /// Handle of the signal for errors and scratch requests.
    pub inactive_signal: u64,
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::shared::tests::memory;

    #[test]
    fn init_leaves_every_field_where_the_device_looks() {
        let memory = memory(4096);
        let words = QueueWords::new(memory).unwrap();
        let queue = AmdQueueV2 {
            size: 64,
            write_dispatch_id: 5,
            read_dispatch_id: 3,
            compute_tmpring_size: 0x44200,
            queue_inactive_signal: 0xabc0,
            queue_properties: (QueueProperties::IS_PTR64 | QueueProperties::ENABLE_PROFILING)
                .bits(),
            ..AmdQueueV2::new()
        };
        words.init(&queue).unwrap();
        assert_eq!(memory.u32(24).unwrap().load(Ordering::Relaxed), 64);
        assert_eq!(memory.u32(136).unwrap().load(Ordering::Relaxed), 128);
        assert_eq!(memory.u64(184).unwrap().load(Ordering::Relaxed), u64::MAX);
        let state = words.take();
        assert_eq!((state.read_dispatch_id, state.write_dispatch_id), (3, 5));
        assert_eq!((state.tmpring_size, state.inactive_signal), (0x44200, 0xabc0));
        assert_eq!(state.properties.bits(), 0b1010);
    }

    #[test]
    fn set_scratch_changes_the_scratch_fields_only() {
        let memory = memory(4096);
        let words = QueueWords::new(memory).unwrap();
        let before = AmdQueueV2 { queue_properties: 2, ..AmdQueueV2::new() };
        words.init(&before).unwrap();
        let after = AmdQueueV2 {
            compute_tmpring_size: 1,
            scratch_resource_descriptor: [2, 3, 4, 5],
            scratch_backing_memory_location: 6,
            scratch_backing_memory_byte_size: 7,
            scratch_wave64_lane_byte_size: 8,
            ..before
        };
        words.set_scratch(&after).unwrap();
        let mut bytes = [0u8; 2304];
        for (i, chunk) in bytes.chunks_exact_mut(8).enumerate() {
            let word = memory.u64(i * 8).unwrap().load(Ordering::Relaxed);
            chunk.copy_from_slice(&word.to_le_bytes());
        }
        assert_eq!(AmdQueueV2::read_from_bytes(&bytes).unwrap(), after);
    }
}
