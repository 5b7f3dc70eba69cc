//! The kernel descriptor: 64 bytes that an AQL dispatch names (docs/ABI.md §Kernel descriptor).

use super::packet::Packet;
use crate::Target;

/// What the packet processor takes from a kernel descriptor.
#[derive(Clone, Copy, Debug)]
pub(super) struct Descriptor {
    /// First instruction, relative to the descriptor.
    pub(super) entry_offset: u64,
    pub(super) rsrc1: u32,
    pub(super) rsrc2: u32,
    pub(super) rsrc3: u32,
    properties: u32,
    preload: u32,
}

/// Which user SGPRs a kernel wants, in the order in which they lie.
#[derive(Clone, Copy, Debug)]
pub(super) struct UserSgprs {
    pub(super) private_segment_buffer: bool,
    pub(super) dispatch_ptr: bool,
    pub(super) queue_ptr: bool,
    pub(super) kernarg_ptr: bool,
    pub(super) dispatch_id: bool,
    pub(super) flat_scratch_init: bool,
    pub(super) private_segment_size: bool,
}

impl Descriptor {
    pub(super) const BYTES: usize = 64;

    pub(super) fn parse(bytes: [u8; Self::BYTES]) -> Self {
        let words = Packet(bytes);
        Self {
            entry_offset: words.u64(16),
            rsrc3: words.u32(44),
            rsrc1: words.u32(48),
            rsrc2: words.u32(52),
            properties: words.u16(56),
            preload: words.u16(58),
        }
    }

    const fn property(&self, bit: u32) -> bool {
        self.properties >> bit & 1 != 0
    }

    pub(super) const fn user_sgprs(&self) -> UserSgprs {
        UserSgprs {
            private_segment_buffer: self.property(0),
            dispatch_ptr: self.property(1),
            queue_ptr: self.property(2),
            kernarg_ptr: self.property(3),
            dispatch_id: self.property(4),
            flat_scratch_init: self.property(5),
            private_segment_size: self.property(6),
        }
    }

    /// Lanes of a wave.
    pub(super) const fn wave_size(&self, target: Target) -> u32 {
        if target.is_gfx11() && self.property(10) { 32 } else { 64 }
    }

    /// Kernel argument dwords to preload, and the first one; none where the chip cannot.
    pub(super) const fn preload(&self, target: Target) -> Option<(u32, u32)> {
        let (count, first) = (self.preload & 0x7f, self.preload >> 7);
        if count > 0 && target.has_unified_vgprs() { Some((count, first)) } else { None }
    }

    /// VGPRs of a wave, of both kinds.
    pub(super) const fn vgprs(&self, target: Target) -> u32 {
        let granule = match () {
            () if target.has_unified_vgprs() => 8,
            () if target.is_gfx11() && self.wave_size(target) == 32 => 8,
            () => 4,
        };
        ((self.rsrc1 & 0x3f) + 1) * granule
    }
}
