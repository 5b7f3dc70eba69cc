//! A kernel: metadata, descriptor and symbol, checked against each other.

use std::collections::BTreeMap;

use crate::descriptor::{
    DESCRIPTOR_BYTES, KernelDescriptor, KernelProperties, PRELOAD_ENTRY_BYTES, Preload,
};
use crate::elf::{self, Segments, Symbol};
use crate::error::{DescriptorProblem, Result};
use crate::kernarg::ArgLayout;
use crate::load::Permissions;
use crate::metadata::{Argument, KernelMetadata, ValueKind};
use crate::needs::Needs;
use crate::occupancy::Resources;
use crate::target::Processor;

/// A kernel of a code object.
#[derive(Clone, Debug)]
pub struct Kernel<'data> {
    metadata: KernelMetadata<'data>,
    descriptor_vaddr: u64,
    descriptor: KernelDescriptor,
    processor: Processor,
    arguments: ArgLayout,
    needs: Needs,
}

/// What a launcher needs of a kernel, in one small value that borrows nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchFacts {
    /// Static LDS of a workgroup, bytes; dynamic LDS comes on top.
    pub static_lds_bytes: u32,
    /// Scratch of a work-item, bytes; only a floor, possibly 0, with `uses_dynamic_stack`.
    pub private_bytes: u32,
    /// The kernel recurses or calls through pointers: give it at least a default stack.
    pub uses_dynamic_stack: bool,
    /// Lanes of a wave: 32 or 64.
    pub wave_size: u32,
    /// User SGPRs to fill, padding included.
    pub user_sgpr_count: u32,
    /// VGPRs of a wave, AccVGPRs included.
    pub vgprs: u32,
    /// SGPRs of a wave.
    pub sgprs: u32,
    /// The only workgroup size that is legal, if there is one.
    pub required_group_size: Option<[u32; 3]>,
    /// Most work-items of a workgroup.
    pub max_flat_group_size: u32,
    /// Size of the kernarg segment, bytes.
    pub kernarg_bytes: u32,
    /// Alignment of the kernarg segment, bytes; at least 16.
    pub kernarg_align: u32,
    /// Arguments preloaded into SGPRs.
    pub preload: Preload,
}

/// A dispatcher loads the kernarg pointer with at least this alignment.
/// Source: LLVM's AMDGPU usage guide, kernel dispatch; docs/ABI.md §Kernel arguments.
const MIN_KERNARG_ALIGN: u32 = 16;

impl<'data> Kernel<'data> {
    /// Finds and checks the descriptor of a kernel in metadata.
    pub(crate) fn new(
        metadata: KernelMetadata<'data>,
        symbols: &BTreeMap<&'data str, Symbol>,
        segments: &Segments<'data>,
        processor: Processor,
    ) -> Result<Self, DescriptorProblem> {
        let symbol = metadata.symbol;
        let missing = || DescriptorProblem::NoSymbol { symbol: symbol.to_owned() };
        let entry = symbols.get(symbol).ok_or_else(missing)?;
        if entry.kind != elf::STT_OBJECT || entry.bytes != DESCRIPTOR_BYTES || entry.absolute {
            return Err(DescriptorProblem::SymbolKind {
                symbol: symbol.to_owned(),
                kind: entry.kind,
                bytes: entry.bytes,
            });
        }
        let vaddr = entry.vaddr;
        let misplaced = DescriptorProblem::Address { vaddr };
        if !vaddr.is_multiple_of(DESCRIPTOR_BYTES) {
            return Err(misplaced);
        }
        let bytes = segments.file_bytes(vaddr, DESCRIPTOR_BYTES).ok_or(misplaced.clone())?;
        let descriptor = KernelDescriptor::decode(bytes).ok_or(misplaced)?;
        descriptor.check(processor)?;
        check_entry(vaddr, &descriptor, segments)?;
        check_agreement(&metadata, &descriptor)?;
        let arguments = ArgLayout::new(&metadata);
        let uses_dynamic_stack = uses_dynamic_stack(&metadata, &descriptor);
        let unknown =
            |argument: &Argument<'_>| matches!(argument.kind, ValueKind::UnknownHidden(_));
        let has_unknown = metadata.args.iter().flatten().any(unknown);
        let needs = Needs::of(&arguments, &descriptor, uses_dynamic_stack, has_unknown);
        Ok(Self { metadata, descriptor_vaddr: vaddr, descriptor, processor, arguments, needs })
    }

    /// Name in metadata, which is the one in the source (mangled for C++).
    pub const fn name(&self) -> &'data str {
        self.metadata.name
    }

    /// Name of the descriptor's symbol.
    pub const fn symbol(&self) -> &'data str {
        self.metadata.symbol
    }

    /// Address of the descriptor in the object; a dispatch packet takes its translation.
    pub const fn descriptor_vaddr(&self) -> u64 {
        self.descriptor_vaddr
    }

    /// Address of the first instruction in the object.
    pub const fn entry_vaddr(&self) -> u64 {
        self.descriptor_vaddr.wrapping_add_signed(self.descriptor.code_entry_offset)
    }

    /// Where a dispatcher that preloads arguments starts: 256 bytes after the entry for a kernel
    /// that has preloaded arguments, else the entry.
    pub const fn preload_entry_vaddr(&self) -> u64 {
        let skipped = if self.descriptor.preload.dwords == 0 { 0 } else { PRELOAD_ENTRY_BYTES };
        self.entry_vaddr() + skipped
    }

    /// The descriptor.
    pub const fn descriptor(&self) -> &KernelDescriptor {
        &self.descriptor
    }

    /// Everything metadata says.
    pub const fn metadata(&self) -> &KernelMetadata<'data> {
        &self.metadata
    }

    /// Where its arguments go.
    pub const fn arguments(&self) -> &ArgLayout {
        &self.arguments
    }

    /// What it needs beyond code and arguments, decided once.
    pub const fn needs(&self) -> Needs {
        self.needs
    }

    /// What a wave and a workgroup take on `device`, by the descriptor; `dynamic_lds_bytes` of LDS
    /// come on top of the static ones. For [`crate::occupancy()`].
    ///
    /// `device` is the processor that runs the code, which generic code does not name.
    pub fn resources(&self, device: Processor, dynamic_lds_bytes: u32) -> Resources {
        let descriptor = &self.descriptor;
        Resources {
            wave_size: descriptor.wave_size(),
            vgprs: descriptor.vgprs(device),
            sgprs: descriptor.sgprs(device),
            lds_bytes: descriptor.group_segment_fixed_size.saturating_add(dynamic_lds_bytes),
            is_wgp_mode: descriptor.is_wgp_mode(device),
        }
    }

    /// What a launcher needs.
    pub fn launch_facts(&self) -> LaunchFacts {
        let Self { metadata, descriptor, .. } = self;
        LaunchFacts {
            static_lds_bytes: descriptor.group_segment_fixed_size,
            private_bytes: descriptor.private_segment_fixed_size,
            uses_dynamic_stack: uses_dynamic_stack(metadata, descriptor),
            wave_size: descriptor.wave_size(),
            user_sgpr_count: descriptor.user_sgpr_count(),
            vgprs: descriptor.vgprs(self.processor),
            sgprs: descriptor.sgprs(self.processor),
            required_group_size: metadata.reqd_workgroup_size,
            max_flat_group_size: metadata.max_flat_workgroup_size,
            kernarg_bytes: metadata.kernarg_segment_size,
            kernarg_align: metadata.kernarg_segment_align.max(MIN_KERNARG_ALIGN),
            preload: descriptor.preload,
        }
    }
}

fn uses_dynamic_stack(metadata: &KernelMetadata<'_>, descriptor: &KernelDescriptor) -> bool {
    metadata.uses_dynamic_stack.unwrap_or(false)
        || descriptor.properties.contains(KernelProperties::USES_DYNAMIC_STACK)
}

/// Largest kernarg segment accepted. The ABI has no limit; this one keeps a launcher's allocation
/// small, and is far above what compilers let a kernel take.
const MAX_KERNARG_BYTES: u32 = 64 << 10;

/// Alignment of a kernel's first instruction.
const ENTRY_ALIGN: u64 = 256;

fn check_entry(
    vaddr: u64,
    descriptor: &KernelDescriptor,
    segments: &Segments<'_>,
) -> Result<(), DescriptorProblem> {
    let offset = descriptor.code_entry_offset;
    let entry = vaddr.checked_add_signed(offset).filter(|entry| entry.is_multiple_of(ENTRY_ALIGN));
    // The shortest program is one instruction word, s_endpgm.
    let needed = if descriptor.preload.dwords == 0 { 4 } else { PRELOAD_ENTRY_BYTES + 4 };
    let executable =
        entry.and_then(|entry| segments.find(entry, needed)).is_some_and(|(segment, _, start)| {
            segment.permissions.contains(Permissions::EXECUTE)
                && start + needed <= segment.file_bytes
        });
    if executable { Ok(()) } else { Err(DescriptorProblem::Entry { offset }) }
}

fn check_agreement(
    metadata: &KernelMetadata<'_>,
    descriptor: &KernelDescriptor,
) -> Result<(), DescriptorProblem> {
    let contradiction = |field, descriptor: u32, metadata: u32| {
        Err(DescriptorProblem::Contradiction {
            field,
            descriptor: descriptor.into(),
            metadata: metadata.into(),
        })
    };
    let wave_size = descriptor.wave_size();
    if wave_size != metadata.wavefront_size {
        return contradiction("wavefront size", wave_size, metadata.wavefront_size);
    }
    let segment = metadata.kernarg_segment_size;
    if segment > MAX_KERNARG_BYTES {
        return Err(DescriptorProblem::Limit {
            field: "kernarg_segment_size",
            value: segment.into(),
            limit: MAX_KERNARG_BYTES.into(),
        });
    }
    // 0 in the descriptor stands for "not told" in hand-written kernels.
    let kernarg = descriptor.kernarg_size;
    if kernarg != 0 && kernarg != metadata.kernarg_segment_size {
        return contradiction("kernarg size", kernarg, metadata.kernarg_segment_size);
    }
    Ok(())
}
