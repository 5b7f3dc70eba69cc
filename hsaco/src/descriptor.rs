//! The 64-byte kernel descriptor.

use zerocopy::byteorder::little_endian::{I64, U16, U32};
use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

use crate::error::DescriptorProblem;
use crate::target::Processor;

/// Size and alignment of a kernel descriptor.
pub const DESCRIPTOR_BYTES: u64 = 64;

/// `kernel_descriptor_t`. Source: LLVM's Support/AMDHSAKernelDescriptor.h; docs/ABI.md §Kernel descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RawDescriptor {
    group_segment_fixed_size: U32,
    private_segment_fixed_size: U32,
    kernarg_size: U32,
    reserved0: [u8; 4],
    kernel_code_entry_byte_offset: I64,
    reserved1: [u8; 20],
    compute_pgm_rsrc3: U32,
    compute_pgm_rsrc1: U32,
    compute_pgm_rsrc2: U32,
    kernel_code_properties: U16,
    kernarg_preload: U16,
    reserved3: [u8; 4],
}

const _: () = {
    assert!(size_of::<RawDescriptor>() == 64);
    assert!(core::mem::offset_of!(RawDescriptor, kernel_code_entry_byte_offset) == 16);
    assert!(core::mem::offset_of!(RawDescriptor, compute_pgm_rsrc3) == 44);
    assert!(core::mem::offset_of!(RawDescriptor, compute_pgm_rsrc1) == 48);
    assert!(core::mem::offset_of!(RawDescriptor, compute_pgm_rsrc2) == 52);
    assert!(core::mem::offset_of!(RawDescriptor, kernel_code_properties) == 56);
    assert!(core::mem::offset_of!(RawDescriptor, kernarg_preload) == 58);
};

bitflags::bitflags! {
    /// `kernel_code_properties`. The first seven say which user SGPRs the kernel wants, in that
    /// order. Source: LLVM's Support/AMDHSAKernelDescriptor.h; docs/ABI.md §Kernel descriptor.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct KernelProperties: u16 {
        /// Scratch buffer descriptor, 4 SGPRs. Not on targets with architected flat scratch.
        const PRIVATE_SEGMENT_BUFFER = 1 << 0;
        /// Address of the dispatch packet, 2 SGPRs.
        const DISPATCH_PTR = 1 << 1;
        /// Address of the `amd_queue_t`, 2 SGPRs.
        const QUEUE_PTR = 1 << 2;
        /// Address of the kernarg segment, 2 SGPRs.
        const KERNARG_SEGMENT_PTR = 1 << 3;
        /// Packet id of the dispatch, 2 SGPRs.
        const DISPATCH_ID = 1 << 4;
        /// Flat scratch base and size, 2 SGPRs. Not on targets with architected flat scratch.
        const FLAT_SCRATCH_INIT = 1 << 5;
        /// Scratch bytes of a work-item, 1 SGPR.
        const PRIVATE_SEGMENT_SIZE = 1 << 6;
        /// Waves of 32 lanes, not 64.
        const WAVEFRONT_SIZE32 = 1 << 10;
        /// Scratch need is not known: `private_segment_fixed_size` is only a floor.
        const USES_DYNAMIC_STACK = 1 << 11;
        const _ = !0;
    }
}

impl KernelProperties {
    /// SGPRs that the enabled fields take on `processor`.
    pub fn user_sgprs(self, processor: Processor) -> u32 {
        let scratch = !processor.has_architected_flat_scratch();
        let taken = |bit: Self, sgprs: u32| if self.contains(bit) { sgprs } else { 0 };
        taken(Self::DISPATCH_PTR, 2)
            + taken(Self::QUEUE_PTR, 2)
            + taken(Self::KERNARG_SEGMENT_PTR, 2)
            + taken(Self::DISPATCH_ID, 2)
            + taken(Self::PRIVATE_SEGMENT_SIZE, 1)
            + if scratch {
                taken(Self::PRIVATE_SEGMENT_BUFFER, 4) + taken(Self::FLAT_SCRATCH_INIT, 2)
            } else {
                0
            }
    }
}

/// Kernel arguments that are loaded into SGPRs before the kernel starts (gfx90a and later gfx9).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Preload {
    /// First dword of the kernarg segment to load.
    pub offset_dwords: u16,
    /// Number of dwords; 0 means no preload. With preload a dispatcher that supports it starts
    /// 256 bytes after the code entry.
    pub dwords: u16,
}

/// Bytes between the code entry and the entry for preloaded arguments.
pub(crate) const PRELOAD_ENTRY_BYTES: u64 = 256;

/// A kernel descriptor, decoded and checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelDescriptor {
    /// Static LDS of a workgroup, bytes.
    pub group_segment_fixed_size: u32,
    /// Scratch of a work-item, bytes.
    pub private_segment_fixed_size: u32,
    /// Size of the kernarg segment, bytes; 0 may mean unknown in hand-written objects.
    pub kernarg_size: u32,
    /// Code address minus the descriptor's address. Signed.
    pub code_entry_offset: i64,
    /// COMPUTE_PGM_RSRC1.
    pub rsrc1: u32,
    /// COMPUTE_PGM_RSRC2.
    pub rsrc2: u32,
    /// COMPUTE_PGM_RSRC3.
    pub rsrc3: u32,
    /// kernel_code_properties.
    pub properties: KernelProperties,
    /// kernarg_preload.
    pub preload: Preload,
    /// Whether every reserved byte is zero, as the ABI asks. Others are accepted.
    pub reserved_is_zero: bool,
}

/// LDS bytes a workgroup can have: 160 KiB on gfx950, 64 KiB elsewhere.
fn max_lds_bytes(processor: Processor) -> u32 {
    if processor.name() == "gfx950" { 160 << 10 } else { 64 << 10 }
}

/// Scratch bytes a wave can have: COMPUTE_TMPRING_SIZE.WAVESIZE has 13 bits of 1 KiB on gfx9 (gfx11
/// has 15 of 256 bytes, which is a little more); docs/ABI.md §Kernel descriptor.
const MAX_WAVE_SCRATCH_BYTES: u32 = 8191 << 10;

/// Scratch bytes a work-item can have.
fn max_private_bytes(wave_size: u32) -> u32 {
    MAX_WAVE_SCRATCH_BYTES / wave_size
}

/// SGPRs that a launch can fill.
const MAX_USER_SGPRS: u32 = 16;

impl KernelDescriptor {
    /// Decodes the first 64 bytes of `bytes`; `None` if there are fewer. Nothing is checked.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (raw, _) = RawDescriptor::read_from_prefix(bytes).ok()?;
        let preload = raw.kernarg_preload.get();
        Some(Self {
            group_segment_fixed_size: raw.group_segment_fixed_size.get(),
            private_segment_fixed_size: raw.private_segment_fixed_size.get(),
            kernarg_size: raw.kernarg_size.get(),
            code_entry_offset: raw.kernel_code_entry_byte_offset.get(),
            rsrc1: raw.compute_pgm_rsrc1.get(),
            rsrc2: raw.compute_pgm_rsrc2.get(),
            rsrc3: raw.compute_pgm_rsrc3.get(),
            properties: KernelProperties::from_bits_retain(raw.kernel_code_properties.get()),
            preload: Preload { dwords: preload & 0x7f, offset_dwords: preload >> 7 },
            reserved_is_zero: raw.reserved0 == [0; 4]
                && raw.reserved1 == [0; 20]
                && raw.reserved3 == [0; 4],
        })
    }

    /// Lanes of a wave: 32 or 64.
    pub const fn wave_size(&self) -> u32 {
        if self.properties.contains(KernelProperties::WAVEFRONT_SIZE32) { 32 } else { 64 }
    }

    /// USER_SGPR_COUNT of COMPUTE_PGM_RSRC2: user SGPRs, preloaded arguments, padding.
    pub const fn user_sgpr_count(&self) -> u32 {
        self.rsrc2 >> 1 & 0x1f
    }

    /// Whether the kernel uses scratch (ENABLE_PRIVATE_SEGMENT of COMPUTE_PGM_RSRC2).
    pub const fn enables_private_segment(&self) -> bool {
        self.rsrc2 & 1 != 0
    }

    /// VGPRs that a wave is given, AccVGPRs included, as COMPUTE_PGM_RSRC1 encodes it.
    pub fn vgprs(&self, processor: Processor) -> u32 {
        let granule = if processor.has_unified_vgprs()
            || (processor.has_wave32() && self.wave_size() == 32)
        {
            8
        } else {
            4
        };
        ((self.rsrc1 & 0x3f) + 1) * granule
    }

    /// SGPRs that a wave is given: by 16 on gfx9, always 128 on gfx10 and later.
    pub fn sgprs(&self, processor: Processor) -> u32 {
        if processor.major() >= 10 { 128 } else { ((self.rsrc1 >> 6 & 0xf) / 2 + 1) * 16 }
    }

    /// Whether workgroups may spread over two compute units (WGP_MODE of COMPUTE_PGM_RSRC1, gfx10
    /// and later).
    pub fn is_wgp_mode(&self, processor: Processor) -> bool {
        processor.major() >= 10 && self.rsrc1 >> 29 & 1 != 0
    }

    /// Index of the first AccVGPR in the unified file; `None` on targets with separate files.
    pub fn accum_offset(&self, processor: Processor) -> Option<u32> {
        processor.has_unified_vgprs().then(|| ((self.rsrc3 & 0x3f) + 1) * 4)
    }

    /// Checks what the hardware of `processor` demands of the fields.
    pub(crate) fn check(&self, processor: Processor) -> Result<(), DescriptorProblem> {
        let limit = |field, value: u32, limit: u32| {
            if value > limit {
                Err(DescriptorProblem::Limit { field, value: value.into(), limit: limit.into() })
            } else {
                Ok(())
            }
        };
        if self.wave_size() == 32 && !processor.has_wave32() {
            return Err(DescriptorProblem::Wave32 { processor });
        }
        limit("group_segment_fixed_size", self.group_segment_fixed_size, max_lds_bytes(processor))?;
        limit(
            "private_segment_fixed_size",
            self.private_segment_fixed_size,
            max_private_bytes(self.wave_size()),
        )?;
        let vgpr_limit = if processor.has_unified_vgprs() { 512 } else { 256 };
        limit("VGPRs", self.vgprs(processor), vgpr_limit)?;
        if let Some(accum_offset) = self.accum_offset(processor) {
            limit("ACCUM_OFFSET", accum_offset, self.vgprs(processor))?;
        }
        let count = self.user_sgpr_count();
        limit("USER_SGPR_COUNT", count, MAX_USER_SGPRS)?;
        let needed = self.properties.user_sgprs(processor) + u32::from(self.preload.dwords);
        if count < needed {
            return Err(DescriptorProblem::UserSgprs { count, needed });
        }
        let preload_bytes =
            (u32::from(self.preload.offset_dwords) + u32::from(self.preload.dwords)) * 4;
        if self.preload.dwords != 0 {
            limit("kernarg_preload end", preload_bytes, self.kernarg_size.next_multiple_of(4))?;
        }
        Ok(())
    }
}
