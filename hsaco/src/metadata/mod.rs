//! The metadata note: MessagePack into typed values that borrow from the file.
//!
//! Unknown keys are skipped, known ones must have their type. Key lists and types:
//! docs/ABI.md §Code object metadata.

mod args;
mod kernel;
mod printf;
mod reader;

pub use args::{AccessQualifier, AddressSpace, Argument, ValueKind};
pub use kernel::{KernelKind, KernelMetadata};
pub use printf::{PrintfFormat, PrintfId};

use crate::error::{Error, MetadataProblem};
use reader::{Fail, Reader};

/// The whole note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metadata<'data> {
    /// `amdhsa.version`: 1.0 for code object version 3, 1.1 for 4, 1.2 for 5 and 6.
    pub version: (u32, u32),
    /// `amdhsa.target` as text, in one of two spellings; version 4 and later. For messages: the
    /// target is in e_flags.
    pub target: Option<&'data str>,
    /// `amdhsa.printf`: the format strings of buffered printf; `None` when the key is absent.
    pub printf: Option<Vec<&'data str>>,
    /// The same taken apart, each id once.
    pub printf_formats: Vec<PrintfFormat<'data>>,
    /// `amdhsa.kernels`.
    pub kernels: Vec<KernelMetadata<'data>>,
}

impl<'data> Metadata<'data> {
    /// Reads the descriptor of an AMDGPU metadata note.
    ///
    /// # Errors
    /// [`Error::Metadata`] with the offset where reading stopped.
    pub fn parse(note: &'data [u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(note);
        read(&mut reader).map_err(|problem| Error::Metadata {
            kernel: reader.kernel.map(str::to_owned),
            offset: reader.offset(),
            problem,
        })
    }
}

fn read<'data>(reader: &mut Reader<'data>) -> Result<Metadata<'data>, MetadataProblem> {
    let mut version = None;
    let mut target = None;
    let mut printf = None;
    let mut kernels = None;
    let entries = reader.map("the note")?;
    for _ in 0..entries {
        match reader.key()? {
            "amdhsa.version" => {
                const KEY: &str = "amdhsa.version";
                let [major, minor] = reader.numbers(KEY)?;
                if major != 1 || minor > 2 {
                    return Err(MetadataProblem::Version { major, minor });
                }
                reader.once(KEY, &mut version, (major, minor))?;
            }
            "amdhsa.target" => {
                let text = reader.string("amdhsa.target")?;
                reader.once("amdhsa.target", &mut target, text)?;
            }
            "amdhsa.printf" => {
                let strings =
                    reader.list("amdhsa.printf", |reader| reader.string("amdhsa.printf"))?;
                reader.once("amdhsa.printf", &mut printf, strings)?;
            }
            "amdhsa.kernels" => {
                let list = reader.list("amdhsa.kernels", kernel::read)?;
                reader.kernel = None;
                reader.once("amdhsa.kernels", &mut kernels, list)?;
            }
            _ => reader.skip()?,
        }
    }
    if reader.remaining() != 0 {
        return Err(MetadataProblem::Trailing { bytes: reader.remaining() });
    }
    let printf_formats = PrintfFormat::parse_all(printf.as_deref().unwrap_or(&[]))?;
    Ok(Metadata {
        version: version.or_missing("amdhsa.version")?,
        target,
        printf,
        printf_formats,
        kernels: kernels.or_missing("amdhsa.kernels")?,
    })
}

#[cfg(test)]
mod tests;
