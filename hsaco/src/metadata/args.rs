//! One entry of `.args`.

use super::reader::{Fail, Reader};
use crate::error::MetadataProblem as Problem;

/// What an argument holds. Hidden ones are filled by the launcher, the others by the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // the variants are the names in metadata
pub enum ValueKind<'data> {
    ByValue,
    GlobalBuffer,
    DynamicSharedPointer,
    Sampler,
    Image,
    Pipe,
    Queue,
    /// A hidden argument this crate can fill.
    Hidden(crate::kernarg::Hidden),
    /// A hidden argument this crate does not know; it stays zero.
    UnknownHidden(&'data str),
    /// Any other kind this crate does not know; the kernel cannot be launched.
    Unknown(&'data str),
}

impl<'data> ValueKind<'data> {
    fn from_name(name: &'data str) -> Self {
        match name {
            "by_value" => Self::ByValue,
            "global_buffer" => Self::GlobalBuffer,
            "dynamic_shared_pointer" => Self::DynamicSharedPointer,
            "sampler" => Self::Sampler,
            "image" => Self::Image,
            "pipe" => Self::Pipe,
            "queue" => Self::Queue,
            _ => match crate::kernarg::Hidden::from_name(name) {
                Some(hidden) => Self::Hidden(hidden),
                None if name.starts_with("hidden_") => Self::UnknownHidden(name),
                None => Self::Unknown(name),
            },
        }
    }

    /// The name in metadata.
    pub fn name(self) -> &'data str {
        match self {
            Self::ByValue => "by_value",
            Self::GlobalBuffer => "global_buffer",
            Self::DynamicSharedPointer => "dynamic_shared_pointer",
            Self::Sampler => "sampler",
            Self::Image => "image",
            Self::Pipe => "pipe",
            Self::Queue => "queue",
            Self::Hidden(hidden) => hidden.name(),
            Self::UnknownHidden(name) | Self::Unknown(name) => name,
        }
    }

    /// Whether the launcher fills it.
    pub const fn is_hidden(self) -> bool {
        matches!(self, Self::Hidden(_) | Self::UnknownHidden(_))
    }
}

/// Where the memory of a pointer argument is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // the variants are the names in metadata
pub enum AddressSpace {
    Private,
    Global,
    Constant,
    Local,
    Generic,
    Region,
}

/// How a kernel uses the memory of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // the variants are the names in metadata
pub enum AccessQualifier {
    ReadOnly,
    WriteOnly,
    ReadWrite,
}

/// What metadata says of an argument. Absent switches are false.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Argument<'data> {
    /// Bytes from the start of the kernarg segment.
    pub offset: u32,
    /// Bytes.
    pub size: u32,
    /// What it holds.
    pub kind: ValueKind<'data>,
    /// Name in the source, if the compiler kept it.
    pub name: Option<&'data str>,
    /// Type in the source, if the compiler kept it.
    pub type_name: Option<&'data str>,
    /// Of pointers only.
    pub address_space: Option<AddressSpace>,
    /// As declared (images and pipes).
    pub access: Option<AccessQualifier>,
    /// As the compiler found it to be.
    pub actual_access: Option<AccessQualifier>,
    /// Alignment of what a dynamic_shared_pointer points to, bytes.
    pub pointee_align: Option<u32>,
    /// `const` in the source.
    pub is_const: bool,
    /// `restrict` in the source.
    pub is_restrict: bool,
    /// `volatile` in the source.
    pub is_volatile: bool,
    /// `pipe` in the source.
    pub is_pipe: bool,
}

fn access(reader: &mut Reader<'_>, key: &'static str) -> Result<AccessQualifier, Problem> {
    match reader.string(key)? {
        "read_only" => Ok(AccessQualifier::ReadOnly),
        "write_only" => Ok(AccessQualifier::WriteOnly),
        "read_write" => Ok(AccessQualifier::ReadWrite),
        _ => Err(Problem::Type { key, expected: "an access qualifier" }),
    }
}

fn address_space(reader: &mut Reader<'_>) -> Result<AddressSpace, Problem> {
    match reader.string(".address_space")? {
        "private" => Ok(AddressSpace::Private),
        "global" => Ok(AddressSpace::Global),
        "constant" => Ok(AddressSpace::Constant),
        "local" => Ok(AddressSpace::Local),
        "generic" => Ok(AddressSpace::Generic),
        "region" => Ok(AddressSpace::Region),
        _ => Err(Problem::Type { key: ".address_space", expected: "an address space" }),
    }
}

pub(super) fn read<'data>(reader: &mut Reader<'data>) -> Result<Argument<'data>, Problem> {
    let mut offset = None;
    let mut size = None;
    let mut kind = None;
    let mut name = None;
    let mut type_name = None;
    let mut space = None;
    let mut declared = None;
    let mut actual = None;
    let mut pointee_align = None;
    let mut switches = [None; 4];
    let [is_const, is_restrict, is_volatile, is_pipe] = &mut switches;
    let entries = reader.map("an argument")?;
    for _ in 0..entries {
        match reader.key()? {
            ".offset" => {
                let value = reader.number(".offset")?;
                reader.once(".offset", &mut offset, value)?;
            }
            ".size" => {
                let value = reader.number(".size")?;
                reader.once(".size", &mut size, value)?;
            }
            ".value_kind" => {
                let value = ValueKind::from_name(reader.string(".value_kind")?);
                reader.once(".value_kind", &mut kind, value)?;
            }
            ".name" => {
                let value = reader.string(".name")?;
                reader.once(".name", &mut name, value)?;
            }
            ".type_name" => {
                let value = reader.string(".type_name")?;
                reader.once(".type_name", &mut type_name, value)?;
            }
            ".address_space" => {
                let value = address_space(reader)?;
                reader.once(".address_space", &mut space, value)?;
            }
            ".access" => {
                let value = access(reader, ".access")?;
                reader.once(".access", &mut declared, value)?;
            }
            ".actual_access" => {
                let value = access(reader, ".actual_access")?;
                reader.once(".actual_access", &mut actual, value)?;
            }
            ".pointee_align" => {
                let value = reader.number(".pointee_align")?;
                if !value.is_power_of_two() {
                    return Err(Problem::Range { key: ".pointee_align", value: value.into() });
                }
                reader.once(".pointee_align", &mut pointee_align, value)?;
            }
            ".is_const" => switch(reader, ".is_const", is_const)?,
            ".is_restrict" => switch(reader, ".is_restrict", is_restrict)?,
            ".is_volatile" => switch(reader, ".is_volatile", is_volatile)?,
            ".is_pipe" => switch(reader, ".is_pipe", is_pipe)?,
            _ => reader.skip()?,
        }
    }
    let [is_const, is_restrict, is_volatile, is_pipe] =
        switches.map(|value| value.unwrap_or(false));
    Ok(Argument {
        offset: offset.or_missing(".offset")?,
        size: size.or_missing(".size")?,
        kind: kind.or_missing(".value_kind")?,
        name,
        type_name,
        address_space: space,
        access: declared,
        actual_access: actual,
        pointee_align,
        is_const,
        is_restrict,
        is_volatile,
        is_pipe,
    })
}

fn switch(
    reader: &mut Reader<'_>,
    key: &'static str,
    slot: &mut Option<bool>,
) -> Result<(), Problem> {
    let value = reader.boolean(key)?;
    reader.once(key, slot, value)
}

/// Checks that the arguments lie inside the segment and share no byte.
///
/// Their order is free. Hidden arguments may be unaligned (hand-written kernels).
pub(super) fn check(args: &[Argument<'_>], segment: u32) -> Result<(), Problem> {
    let mut ranges: Vec<(u32, u32, usize)> = Vec::new();
    for (index, argument) in args.iter().enumerate() {
        let Argument { offset, size, kind, .. } = *argument;
        match offset.checked_add(size) {
            Some(end) if end <= segment && size > 0 => ranges.push((offset, end, index)),
            _ => return Err(Problem::ArgumentOutside { index, offset, size, segment }),
        }
        if let ValueKind::Hidden(hidden) = kind
            && size < hidden.bytes()
        {
            return Err(Problem::HiddenSize { index, size, needed: hidden.bytes() });
        }
    }
    ranges.sort_unstable();
    for pair in ranges.windows(2) {
        if let [(_, end, other), (offset, _, index)] = *pair
            && offset < end
        {
            return Err(Problem::ArgumentOverlap { index, other });
        }
    }
    Ok(())
}
