//! A parsed code object: kernels, variables, target.

use std::collections::{BTreeMap, BTreeSet};

use crate::elf::{self, CodeObjectVersion, Dynamic, File, Rela, Segments, Symbol, SymbolTable};
use crate::error::{Error, Result, TargetProblem};
use crate::kernel::Kernel;
use crate::load::{self, Image, Segment};
use crate::managed::{self, ManagedVariable};
use crate::metadata::{Metadata, PrintfFormat};
use crate::needs::Needs;
use crate::target::ObjectTarget;

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
    printf_formats: Vec<PrintfFormat<'data>>,
    kernels: Vec<Kernel<'data>>,
    variables: Vec<Variable<'data>>,
    managed: Vec<ManagedVariable<'data>>,
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

/// What the ELF header alone says of a code object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Version of the code object ABI.
    pub version: CodeObjectVersion,
    /// e_flags as found.
    pub flags: u32,
    /// What it was compiled for.
    pub target: ObjectTarget,
}

impl CodeObject<'_> {
    /// Reads the ELF header only: enough to tell whether an object runs on a device.
    ///
    /// # Errors
    /// [`Error`] for a header that [`CodeObject::parse`] refuses; the rest is not looked at.
    pub fn identify(bytes: &[u8]) -> Result<Identity> {
        let identity = elf::identify(File { bytes })?;
        let (version, flags) = (identity.version, identity.flags);
        let target = ObjectTarget::from_flags(flags, version)
            .map_err(|problem| Error::Target { flags, problem })?;
        Ok(Identity { version, flags, target })
    }
}

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
        let managed = managed::managed_variables(&symbols, &segments, &kernels)?;
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
            printf_formats: metadata.printf_formats,
            kernels,
            variables,
            managed,
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

    /// `amdhsa.printf` as it is. `None` without the key.
    pub fn printf_strings(&self) -> Option<&[&'data str]> {
        self.printf.as_deref()
    }

    /// Formats of buffered printf, each id once.
    pub fn printf_formats(&self) -> &[PrintfFormat<'data>] {
        &self.printf_formats
    }

    /// What the kernels need together; empty for a module that no service concerns.
    pub fn needs(&self) -> Needs {
        self.kernels.iter().map(Kernel::needs).collect()
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

    /// Managed variables in the order of their names. Each is also among [`Self::variables`], as its
    /// pointer and its first value.
    pub fn managed(&self) -> &[ManagedVariable<'data>] {
        &self.managed
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
