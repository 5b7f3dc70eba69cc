//! From a code object to the bytes a device needs in memory: segments placed, relocations applied.

use object::LittleEndian as LE;
use object::elf;

use crate::code_object::CodeObject;
use crate::descriptor::DESCRIPTOR_BYTES;
use crate::elf::{RawSymbol, Rela};
use crate::error::{Error, Result};
use crate::managed::{ManagedVariable, POINTER_BYTES};

/// Most memory an object may need. Code reaches its data by signed 32-bit offsets, so a larger
/// image could not work.
pub const MAX_LOAD_BYTES: u64 = 4 << 30;

/// Most bytes of [`Image::bytes`] that are no file bytes: holes between segments.
pub const MAX_HOLE_BYTES: u64 = 16 << 20;

/// Granule at which an image may be placed.
pub(crate) const PAGE_BYTES: u64 = 4096;

bitflags::bitflags! {
    /// Access that a segment's code or data needs: PF_X, PF_W, PF_R of the program header.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct Permissions: u32 {
        /// Instructions are fetched from it.
        const EXECUTE = 1;
        /// Kernels write to it.
        const WRITE = 2;
        /// Kernels read from it.
        const READ = 4;
    }
}

/// A PT_LOAD segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Address in the object.
    pub vaddr: u64,
    /// Bytes that come from the file; the rest is zero.
    pub file_bytes: u64,
    /// Bytes in memory.
    pub memory_bytes: u64,
    /// Access it needs.
    pub permissions: Permissions,
}

/// An object relocated for one base address.
#[derive(Clone, PartialEq, Eq)]
pub struct Image {
    base: u64,
    vaddr_base: u64,
    load_bytes: u64,
    /// Most bytes of `bytes`.
    limit: u64,
    bytes: Vec<u8>,
    segments: Vec<Segment>,
}

impl core::fmt::Debug for Image {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Image")
            .field("base", &format_args!("{:#x}", self.base))
            .field("load_bytes", &self.load_bytes)
            .field("segments", &self.segments)
            .finish_non_exhaustive()
    }
}

impl Image {
    /// Address the image was made for.
    pub const fn base(&self) -> u64 {
        self.base
    }

    /// Memory the image takes, bytes. Alignment of the base: 4096.
    pub const fn load_bytes(&self) -> u64 {
        self.load_bytes
    }

    /// The image up to its last byte that is not zero by definition. **The memory after it, up to
    /// [`Self::load_bytes`], must be zeroed** (`.bss`); [`Self::write_to`] does both.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The segments, ascending, with the object's addresses ([`Self::address_of`] translates).
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Where an address of the object is now.
    pub const fn address_of(&self, vaddr: u64) -> u64 {
        self.base.wrapping_add(vaddr.wrapping_sub(self.vaddr_base))
    }

    /// Copies the image's content at an address of the object, zeros included, to `memory`: the first
    /// value of a variable, relocated.
    ///
    /// # Errors
    /// [`Error::TableOutside`] if the range is not inside the image; `memory` is unchanged then.
    pub fn read(&self, vaddr: u64, memory: &mut [u8]) -> Result<()> {
        let bytes = memory.len() as u64;
        let offset = vaddr.checked_sub(self.vaddr_base);
        let inside = offset
            .filter(|offset| offset.checked_add(bytes).is_some_and(|end| end <= self.load_bytes));
        let offset = inside.ok_or(Error::TableOutside { table: "variable", vaddr, bytes })?;
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(self.bytes.len());
        let content = self.bytes.get(start..).unwrap_or(&[]);
        let (head, tail) = memory.split_at_mut(content.len().min(memory.len()));
        head.copy_from_slice(content.get(..head.len()).unwrap_or(&[]));
        tail.fill(0);
        Ok(())
    }

    /// Points a managed variable at the memory that was allocated for it.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if the pointer is behind more than [`MAX_HOLE_BYTES`] of zeros.
    pub fn set_managed(&mut self, variable: &ManagedVariable<'_>, address: u64) -> Result<()> {
        let offset = variable.pointer_vaddr.wrapping_sub(self.vaddr_base);
        let end = offset.saturating_add(POINTER_BYTES);
        let too_large = Error::TooLarge { bytes: end, limit: self.limit.min(self.load_bytes) };
        if end > self.limit || end > self.load_bytes {
            return Err(too_large);
        }
        let (Ok(start), Ok(end)) = (usize::try_from(offset), usize::try_from(end)) else {
            return Err(too_large);
        };
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        if let Some(place) = self.bytes.get_mut(start..end) {
            place.copy_from_slice(&address.to_le_bytes());
        }
        Ok(())
    }

    /// Writes the whole image, zeros included, to `memory`.
    ///
    /// # Errors
    /// [`Error::Base`] if `memory` is smaller than [`Self::load_bytes`].
    pub fn write_to(&self, memory: &mut [u8]) -> Result<()> {
        let too_small = Error::Base { base: self.base, bytes: self.load_bytes };
        let size = usize::try_from(self.load_bytes).map_err(|_| too_small.clone())?;
        let memory = memory.get_mut(..size).ok_or(too_small.clone())?;
        let (head, tail) = memory.split_at_mut_checked(self.bytes.len()).ok_or(too_small)?;
        head.copy_from_slice(&self.bytes);
        tail.fill(0);
        Ok(())
    }
}

/// The image of `object` at `base`; symbols it does not define are looked up with `resolve`.
///
/// Pure: nothing but the returned value changes. `base` is where the image's first byte will be,
/// a multiple of 4096.
///
/// # Errors
/// [`Error::Base`], and the `Relocation*` variants and [`Error::UndefinedSymbol`] for relocations
/// that cannot be applied.
pub fn image(
    object: &CodeObject<'_>,
    base: u64,
    resolve: &dyn Fn(&str) -> Option<u64>,
) -> Result<Image> {
    let segments = object.segment_map();
    let load_bytes = segments.load_bytes();
    let fits = base.checked_add(load_bytes).is_some() && base.is_multiple_of(PAGE_BYTES);
    if !fits {
        return Err(Error::Base { base, bytes: load_bytes });
    }
    let vaddr_base = segments.base();
    let mut builder = Builder { bytes: Vec::new(), file_total: 0 };
    for (segment, content) in segments.iter() {
        builder.file_total += segment.file_bytes;
        if !content.is_empty() {
            builder.write(segment.vaddr - vaddr_base, content)?;
        }
    }
    let mut relocator = Relocator {
        object,
        bias: base.wrapping_sub(vaddr_base),
        resolve,
        descriptors: writable_descriptors(object),
        builder,
    };
    for (index, relocation) in object.relocations().iter().enumerate() {
        relocator.apply(index, relocation)?;
    }
    Ok(Image {
        base,
        vaddr_base,
        load_bytes,
        limit: relocator.builder.file_total + MAX_HOLE_BYTES,
        bytes: relocator.builder.bytes,
        segments: object.segments().copied().collect(),
    })
}

/// Addresses of the descriptors that a relocation could reach, ascending; normally none.
fn writable_descriptors(object: &CodeObject<'_>) -> Vec<u64> {
    let is_writable = |vaddr| {
        let found = object.segment_map().find(vaddr, DESCRIPTOR_BYTES);
        found.is_some_and(|(segment, ..)| segment.permissions.contains(Permissions::WRITE))
    };
    let addresses = object.kernels().iter().map(|kernel| kernel.descriptor_vaddr());
    let mut descriptors: Vec<u64> = addresses.filter(|&vaddr| is_writable(vaddr)).collect();
    descriptors.sort_unstable();
    descriptors
}

struct Builder {
    bytes: Vec<u8>,
    file_total: u64,
}

impl Builder {
    /// Writes at an offset, growing with zeros as far as [`MAX_HOLE_BYTES`] allows.
    fn write(&mut self, offset: u64, content: &[u8]) -> Result<()> {
        let end = offset + content.len() as u64;
        let limit = self.file_total + MAX_HOLE_BYTES;
        let too_large = Error::TooLarge { bytes: end, limit };
        if end > limit {
            return Err(too_large);
        }
        let (Ok(start), Ok(end)) = (usize::try_from(offset), usize::try_from(end)) else {
            return Err(too_large);
        };
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        if let Some(place) = self.bytes.get_mut(start..end) {
            place.copy_from_slice(content);
        }
        Ok(())
    }
}

struct Relocator<'a, 'data> {
    object: &'a CodeObject<'data>,
    bias: u64,
    resolve: &'a dyn Fn(&str) -> Option<u64>,
    descriptors: Vec<u64>,
    builder: Builder,
}

// R_AMDGPU_*. Source: LLVM's BinaryFormat/ELFRelocs/AMDGPU.def; docs/ABI.md §Code object relocations.
const R_AMDGPU_NONE: u32 = 0;
const R_AMDGPU_ABS32_LO: u32 = 1;
const R_AMDGPU_ABS32_HI: u32 = 2;
const R_AMDGPU_ABS64: u32 = 3;
const R_AMDGPU_ABS32: u32 = 6;
const R_AMDGPU_RELATIVE64: u32 = 13;

impl Relocator<'_, '_> {
    fn apply(&mut self, index: usize, relocation: &Rela) -> Result<()> {
        let kind = relocation_type(relocation);
        let symbol = relocation.r_sym(LE, false);
        let addend = relocation.r_addend.get(LE).cast_unsigned();
        match kind {
            R_AMDGPU_NONE => Ok(()),
            R_AMDGPU_RELATIVE64 => {
                let value = self.bias.wrapping_add(addend);
                self.store(index, relocation, &value.to_le_bytes())
            }
            R_AMDGPU_ABS64 | R_AMDGPU_ABS32 | R_AMDGPU_ABS32_LO | R_AMDGPU_ABS32_HI => {
                let value = self.symbol_address(index, symbol)?.wrapping_add(addend).to_le_bytes();
                let (low, high) = value.split_at(4);
                let stored = match kind {
                    R_AMDGPU_ABS64 => &value,
                    R_AMDGPU_ABS32_HI => high,
                    _ => low,
                };
                self.store(index, relocation, stored)
            }
            _ => Err(Error::RelocationType { index, kind }),
        }
    }

    fn symbol_address(&self, index: usize, symbol: u32) -> Result<u64> {
        let table = self.object.dynamic_symbols();
        let position = usize::try_from(symbol).ok();
        let found = position.and_then(|position| Some((position, table.symbols.get(position)?)));
        let bad = Error::RelocationSymbol { index, symbol };
        let (position, entry) = found.ok_or(bad.clone())?;
        // Index 0 is the null symbol, whose address is 0: absolute.
        if symbol == 0 {
            return Ok(0);
        }
        let section = entry.st_shndx.get(LE);
        if section == elf::SHN_UNDEF {
            let name = table.name_of(position, entry)?;
            return (self.resolve)(name)
                .ok_or_else(|| Error::UndefinedSymbol { name: name.to_owned() });
        }
        if !has_address(entry) {
            return Err(bad);
        }
        let value = entry.st_value.get(LE);
        Ok(if section == elf::SHN_ABS { value } else { self.bias.wrapping_add(value) })
    }

    fn store(&mut self, index: usize, relocation: &Rela, value: &[u8]) -> Result<()> {
        let vaddr = relocation.r_offset.get(LE);
        let bytes = value.len() as u64;
        let segments = self.object.segment_map();
        let writable = segments
            .find(vaddr, bytes)
            .is_some_and(|(segment, ..)| segment.permissions.contains(Permissions::WRITE));
        if !writable {
            return Err(Error::RelocationOutside { index, vaddr, bytes });
        }
        let after = self.descriptors.partition_point(|&start| start < vaddr + bytes);
        let before = after.checked_sub(1).and_then(|at| self.descriptors.get(at));
        if before.is_some_and(|&start| vaddr < start + DESCRIPTOR_BYTES) {
            return Err(Error::RelocationInDescriptor { index, vaddr });
        }
        self.builder.write(vaddr - segments.base(), value)
    }
}

pub(crate) fn relocation_type(relocation: &Rela) -> u32 {
    relocation.r_type(LE, false).0
}

/// Whether a defined symbol of this type has an address: not sections, files, TLS or unknown ones.
fn has_address(symbol: &RawSymbol) -> bool {
    matches!(symbol.st_type(), elf::STT_NOTYPE | elf::STT_OBJECT | elf::STT_FUNC)
}
