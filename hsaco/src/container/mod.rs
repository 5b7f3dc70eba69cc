//! Any file that holds code objects: one by itself, bundles one after another, or a host program.
//!
//! What a file is follows from its content, never from its name. Reading a container looks at
//! headers and decompresses; no code object is parsed before it is chosen.

mod host;
mod wrapper;

pub use wrapper::{FAT_WRAPPER_BYTES, FatWrapper};

use crate::bundle::{self, Bundle, BundleEntry, MAX_DECOMPRESSED_BYTES};
use crate::error::{ContainerProblem, Error, Result};
use crate::select::{Choice, NoFit};
use crate::target::DeviceTarget;

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ContainerKind {
    /// A code object by itself.
    CodeObject,
    /// One or more offload bundles.
    Bundles,
    /// A host ELF file with device code in its sections.
    HostFile,
}

/// A file with code objects in it.
///
/// ```
/// # fn load(file: &[u8], device: hsaco::DeviceTarget) -> Result<(), Box<dyn std::error::Error>> {
/// let container = hsaco::Container::read(file)?;
/// let choice = container.choose(&device)?; // or why nothing fits, for each image
/// let object = hsaco::CodeObject::parse(choice.entry.bytes)?;
/// # let _ = object;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Container<'data> {
    kind: ContainerKind,
    bundles: Vec<Bundle<'data>>,
}

impl<'data> Container<'data> {
    /// Reads a file, decompressing at most [`MAX_DECOMPRESSED_BYTES`] in total.
    ///
    /// # Errors
    /// [`Error::Container`] with the place in the file.
    pub fn read(file: &'data [u8]) -> Result<Self> {
        Self::read_within(file, MAX_DECOMPRESSED_BYTES)
    }

    /// Reads a file, decompressing at most `limit` bytes in total.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn read_within(file: &'data [u8], limit: u64) -> Result<Self> {
        let mut reader = Reader { file, limit, bundles: Vec::new() };
        let kind = reader.read()?;
        Ok(Self { kind, bundles: reader.bundles })
    }

    /// What the file is.
    pub const fn kind(&self) -> ContainerKind {
        self.kind
    }

    /// The bundles in file order, at least one. A program of several translation units has one for
    /// each, with the kernels of that unit.
    pub fn bundles(&self) -> &[Bundle<'data>] {
        &self.bundles
    }

    /// The entries for devices, of all bundles.
    pub fn images(&self) -> impl Iterator<Item = BundleEntry<'_>> {
        self.bundles.iter().flat_map(Bundle::images)
    }

    /// The best image for `device` of the first bundle that has one: the whole answer for a file of
    /// one translation unit. For more, call [`Bundle::choose`] on each.
    ///
    /// # Errors
    /// [`NoFit`] with the reason for each image.
    pub fn choose(&self, device: &DeviceTarget) -> Result<Choice<'_>, NoFit> {
        let mut all: Option<NoFit> = None;
        for bundle in &self.bundles {
            match bundle.choose(device) {
                Ok(choice) => return Ok(choice),
                Err(no_fit) => match &mut all {
                    Some(all) => all.images.extend(no_fit.images),
                    None => all = Some(no_fit),
                },
            }
        }
        Err(all.unwrap_or(NoFit { device: *device, images: Vec::new() }))
    }
}

struct Reader<'data> {
    file: &'data [u8],
    /// Bytes that may still be decompressed.
    limit: u64,
    bundles: Vec<Bundle<'data>>,
}

fn at(offset: usize) -> impl Fn(ContainerProblem) -> Error {
    move |problem| Error::Container { offset: offset as u64, problem }
}

impl<'data> Reader<'data> {
    fn read(&mut self) -> Result<ContainerKind> {
        if !self.file.starts_with(&object::elf::ELFMAG) {
            self.bundles(0, self.file)?;
            return Ok(ContainerKind::Bundles);
        }
        if !host::is_host(self.file).map_err(at(0))? {
            self.bundles.push(Bundle::bare(0, None, self.file));
            return Ok(ContainerKind::CodeObject);
        }
        for code in host::device_code(self.file).map_err(at(0))? {
            match code.id {
                Some(id) => {
                    self.bundles.push(Bundle::bare(code.offset as u64, Some(id), code.bytes))
                }
                None => self.bundles(code.offset, code.bytes)?,
            }
        }
        Ok(ContainerKind::HostFile)
    }

    /// Bundles one after another, with zeros between them and at the end.
    fn bundles(&mut self, start: usize, bytes: &'data [u8]) -> Result<()> {
        let mut offset = 0;
        loop {
            let rest = bytes.get(offset..).unwrap_or(&[]);
            let is_first = offset == 0;
            let (bundle, taken) = Bundle::read((start + offset) as u64, rest, self.limit)
                .map_err(|problem| match problem {
                    ContainerProblem::Unknown { start } if !is_first => {
                        ContainerProblem::Trailing { start }
                    }
                    other => other,
                })
                .map_err(at(start + offset))?;
            if matches!(bundle.encoding(), bundle::Encoding::Compressed(_)) {
                self.limit = self.limit.saturating_sub(bundle.content_bytes() as u64);
            }
            self.bundles.push(bundle);
            offset += taken;
            let after = bytes.get(offset..).and_then(bundle::first_not_zero);
            match after {
                Some(padding) => offset += padding,
                None => return Ok(()),
            }
        }
    }
}
