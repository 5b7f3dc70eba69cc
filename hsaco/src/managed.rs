//! Managed variables: memory that host and devices share, reached through a pointer in the image.

use std::collections::BTreeMap;

use crate::descriptor::DESCRIPTOR_BYTES;
use crate::elf::{self, Segments, Symbol};
use crate::error::{Error, ManagedProblem, Result};
use crate::kernel::Kernel;
use crate::load::Permissions;

/// A managed variable: the object `X.managed` holds its first value, the object `X` a pointer that
/// the loader sets to the memory it allocated. See docs/ABI.md §Managed variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ManagedVariable<'data> {
    /// Its name in the source, `X`.
    pub name: &'data str,
    /// Address of the pointer in the object; [`crate::Image::set_managed`] writes it.
    pub pointer_vaddr: u64,
    /// Address of the first value in the object; [`crate::Image::read`] copies it.
    pub initial_vaddr: u64,
    /// Its size, bytes; not 0.
    pub bytes: u64,
    /// Alignment that its memory must have at least, bytes: that of its first value, at most 4096.
    pub align: u64,
}

/// Bytes of the pointer.
pub(crate) const POINTER_BYTES: u64 = 8;

/// Most that is made of the alignment a first value happens to have.
const MAX_ALIGN: u64 = 4096;

/// Finds all `X.managed` and checks each against its `X`.
pub(crate) fn managed_variables<'data>(
    symbols: &BTreeMap<&'data str, Symbol>,
    segments: &Segments<'_>,
    kernels: &[Kernel<'_>],
) -> Result<Vec<ManagedVariable<'data>>> {
    let mut found = Vec::new();
    for (&symbol_name, value) in symbols {
        let Some(name) = symbol_name.strip_suffix(".managed") else { continue };
        if value.kind != elf::STT_OBJECT || value.absolute {
            continue;
        }
        let error = |problem| Error::Managed { variable: name.to_owned(), problem };
        if value.bytes == 0 {
            return Err(error(ManagedProblem::Empty));
        }
        let pointer = symbols.get(name).filter(|symbol| symbol.kind == elf::STT_OBJECT);
        let pointer = pointer.ok_or_else(|| error(ManagedProblem::NoPointer))?;
        if pointer.bytes != POINTER_BYTES {
            return Err(error(ManagedProblem::PointerSize { bytes: pointer.bytes }));
        }
        let vaddr = pointer.vaddr;
        let is_writable = segments
            .find(vaddr, POINTER_BYTES)
            .is_some_and(|(segment, ..)| segment.permissions.contains(Permissions::WRITE));
        let overlaps = |kernel: &Kernel<'_>| {
            let descriptor = kernel.descriptor_vaddr();
            vaddr < descriptor + DESCRIPTOR_BYTES && descriptor < vaddr + POINTER_BYTES
        };
        if !is_writable || pointer.absolute || kernels.iter().any(overlaps) {
            return Err(error(ManagedProblem::PointerPlace { vaddr }));
        }
        found.push(ManagedVariable {
            name,
            pointer_vaddr: vaddr,
            initial_vaddr: value.vaddr,
            bytes: value.bytes,
            align: 1 << value.vaddr.trailing_zeros().min(MAX_ALIGN.trailing_zeros()),
        });
    }
    Ok(found)
}
