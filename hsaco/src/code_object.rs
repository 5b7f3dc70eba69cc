//! A parsed code object: kernels, variables, target.

use std::collections::{BTreeMap, BTreeSet};

use crate::descriptor::{
    DESCRIPTOR_BYTES, KernelDescriptor, KernelProperties, PRELOAD_ENTRY_BYTES, Preload,
};
use crate::elf::{self, CodeObjectVersion, Dynamic, File, Rela, Segments, Symbol, SymbolTable};
use crate::error::{DescriptorProblem, Error, Result, TargetProblem};
use crate::kernarg::ArgLayout;
use crate::load::{self, Image, Permissions, Segment};
use crate::metadata::{KernelMetadata, Metadata};
use crate::target::{ObjectTarget, Processor};

/// A code object, checked, borrowing from the file's bytes.
#[derive(Clone, Debug)]
pub struct CodeObject<'data> {
    version: CodeObjectVersion,
    flags: u32,
    target: ObjectTarget,
    segments: Segments<'data>,
    dynamic: Dynamic<'data>,
    is_stripped: bool,
    note_bytes: usize,
    metadata_version: (u32, u32),
    target_text: Option<&'data str>,
    printf: Option<Vec<&'data str>>,
    kernels: Vec<Kernel<'data>>,
    variables: Vec<Variable<'data>>,
}

/// A kernel of a code object.
#[derive(Clone, Debug)]
pub struct Kernel<'data> {
    metadata: KernelMetadata<'data>,
    descriptor_vaddr: u64,
    descriptor: KernelDescriptor,
    processor: Processor,
    arguments: ArgLayout,
}

/// A variable that a program can find by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variable<'data> {
    /// Its name.
    pub name: &'data str,
    /// Its address in the object; [`Image::address_of`] translates it.
    pub vaddr: u64,
    /// Its size, bytes.
    pub bytes: u64,
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

impl<'data> CodeObject<'data> {
    /// Checks `bytes` as a code object of version 3 to 6.
    ///
    /// # Errors
    /// See [`Error`]; everything that [`Self::image`] does not report is found here.
    pub fn parse(bytes: &'data [u8]) -> Result<Self> {
        let file = File { bytes };
        let identity = elf::identify(file)?;
        let target_error = |problem| Error::Target { flags: identity.flags, problem };
        let target =
            ObjectTarget::from_flags(identity.flags, identity.version).map_err(target_error)?;
        let segments = Segments::read(file, identity.program_headers)?;
        let dynamic = Dynamic::read(file, identity.program_headers, &segments)?;
        let sections = elf::section_symbols(file, identity.section_headers)?;
        let mut symbols = BTreeMap::new();
        elf::dynamic_symbols(&dynamic).collect_into(&mut symbols)?;
        if let Some(table) = &sections {
            table.collect_into(&mut symbols)?;
        }
        let note = elf::metadata_note(file, identity.program_headers)?;
        let metadata = Metadata::parse(note)?;
        check_target_text(&metadata, &target).map_err(target_error)?;
        let variables = variables(&symbols, &segments)?;
        let mut kernels = Vec::new();
        for entry in metadata.kernels {
            let name = entry.name;
            let kernel = Kernel::new(entry, &symbols, &segments, target.processor());
            let error = |problem| Error::Kernel { kernel: name.to_owned(), problem };
            kernels.push(kernel.map_err(error)?);
        }
        refuse_duplicates(&kernels)?;
        Ok(Self {
            version: identity.version,
            flags: identity.flags,
            target,
            segments,
            dynamic,
            is_stripped: sections.is_none(),
            note_bytes: note.len(),
            metadata_version: metadata.version,
            target_text: metadata.target,
            printf: metadata.printf,
            kernels,
            variables,
        })
    }

    /// Version of the code object ABI.
    pub const fn version(&self) -> CodeObjectVersion {
        self.version
    }

    /// What it was compiled for.
    pub const fn target(&self) -> ObjectTarget {
        self.target
    }

    /// e_flags as found.
    pub const fn flags(&self) -> u32 {
        self.flags
    }

    /// `amdhsa.version`.
    pub const fn metadata_version(&self) -> (u32, u32) {
        self.metadata_version
    }

    /// `amdhsa.target`, for messages.
    pub const fn target_text(&self) -> Option<&'data str> {
        self.target_text
    }

    /// `amdhsa.printf`: formats of buffered printf. `None` without the key.
    pub fn printf_formats(&self) -> Option<&[&'data str]> {
        self.printf.as_deref()
    }

    /// Whether there is no `.symtab` (`.dynsym` has all that matters).
    pub const fn is_stripped(&self) -> bool {
        self.is_stripped
    }

    /// Size of the metadata note's content, bytes.
    pub const fn note_bytes(&self) -> usize {
        self.note_bytes
    }

    /// How often each relocation type occurs.
    pub fn relocation_counts(&self) -> BTreeMap<u32, usize> {
        let mut counts = BTreeMap::new();
        for relocation in self.relocations() {
            *counts.entry(load::relocation_type(relocation)).or_default() += 1;
        }
        counts
    }

    /// The kernels in metadata order.
    pub fn kernels(&self) -> &[Kernel<'data>] {
        &self.kernels
    }

    /// The kernel with this name in metadata.
    pub fn kernel(&self, name: &str) -> Option<&Kernel<'data>> {
        self.kernels.iter().find(|kernel| kernel.name() == name)
    }

    /// Global variables in the order of their names.
    pub fn variables(&self) -> &[Variable<'data>] {
        &self.variables
    }

    /// The variable with this name.
    pub fn variable(&self, name: &str) -> Option<&Variable<'data>> {
        let at = self.variables.binary_search_by(|variable| variable.name.cmp(name)).ok()?;
        self.variables.get(at)
    }

    /// Memory the image takes, bytes, to be allocated at a multiple of 4096.
    pub fn load_bytes(&self) -> u64 {
        self.segments.load_bytes()
    }

    /// The segments, ascending.
    pub fn segments(&self) -> impl Iterator<Item = &Segment> {
        self.segments.iter().map(|(segment, _)| segment)
    }

    /// File bytes at an address of the object, to the end of their segment; for disassembly.
    pub fn bytes_at(&self, vaddr: u64) -> Option<&'data [u8]> {
        self.segments.file_bytes_from(vaddr)
    }

    /// The image for a base address; see [`load::image`].
    ///
    /// # Errors
    /// As [`load::image`]; a symbol that the object does not define is an error.
    pub fn image(&self, base: u64) -> Result<Image> {
        load::image(self, base, &|_| None)
    }

    pub(crate) const fn segment_map(&self) -> &Segments<'data> {
        &self.segments
    }

    pub(crate) const fn relocations(&self) -> &'data [Rela] {
        self.dynamic.relocations
    }

    pub(crate) fn dynamic_symbols(&self) -> SymbolTable<'data> {
        elf::dynamic_symbols(&self.dynamic)
    }
}

fn check_target_text(metadata: &Metadata<'_>, target: &ObjectTarget) -> Result<(), TargetProblem> {
    match metadata.target {
        Some(text) if target.is_named_by(text) == Some(false) => {
            Err(TargetProblem::Contradiction {
                metadata: text.to_owned(),
                flags: target.to_string(),
            })
        }
        _ => Ok(()),
    }
}

fn variables<'data>(
    symbols: &BTreeMap<&'data str, Symbol>,
    segments: &Segments<'_>,
) -> Result<Vec<Variable<'data>>> {
    let mut variables = Vec::new();
    for (&name, symbol) in symbols {
        if symbol.kind != elf::STT_OBJECT || symbol.absolute || name.ends_with(".kd") {
            continue;
        }
        let Symbol { vaddr, bytes, .. } = *symbol;
        if !segments.contains(vaddr, bytes) {
            return Err(Error::SymbolOutside { name: name.to_owned(), vaddr, bytes });
        }
        variables.push(Variable { name, vaddr, bytes });
    }
    Ok(variables)
}

fn refuse_duplicates<'data>(kernels: &[Kernel<'data>]) -> Result<()> {
    let by: [fn(&Kernel<'data>) -> &'data str; 2] =
        [|kernel| kernel.name(), |kernel| kernel.symbol()];
    for key in by {
        let mut seen = BTreeSet::new();
        if let Some(twice) = kernels.iter().map(key).find(|&name| !seen.insert(name)) {
            return Err(Error::DuplicateKernel { kernel: twice.to_owned() });
        }
    }
    Ok(())
}

impl<'data> Kernel<'data> {
    fn new(
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
        Ok(Self { metadata, descriptor_vaddr: vaddr, descriptor, processor, arguments })
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

    /// What a launcher needs.
    pub fn launch_facts(&self) -> LaunchFacts {
        let Self { metadata, descriptor, .. } = self;
        LaunchFacts {
            static_lds_bytes: descriptor.group_segment_fixed_size,
            private_bytes: descriptor.private_segment_fixed_size,
            uses_dynamic_stack: metadata.uses_dynamic_stack.unwrap_or(false)
                || descriptor.properties.contains(KernelProperties::USES_DYNAMIC_STACK),
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
    // 0 in the descriptor stands for "not told" in hand-written kernels.
    let kernarg = descriptor.kernarg_size;
    if kernarg != 0 && kernarg != metadata.kernarg_segment_size {
        return contradiction("kernarg size", kernarg, metadata.kernarg_segment_size);
    }
    Ok(())
}
