//! Device code in the sections of a host ELF file.

use object::LittleEndian as LE;
use object::elf;
use object::read::elf::{FileHeader, SectionHeader};

use super::FatWrapper;
use crate::error::ContainerProblem;

/// Section of the bundles in a linked host file or a host object.
const FATBIN: &str = ".hip_fatbin";
/// Section of the fat-binary wrappers.
const WRAPPERS: &str = ".hipFatBinSegment";
/// Start of the name of a section that holds one device's code; the entry id follows. In host
/// objects that clang's bundler made.
const BUNDLED: &str = "__CLANG_OFFLOAD_BUNDLE__";

/// Sections that tell why there is no bundle.
const UNSUPPORTED: [(&str, &str); 2] = [
    (".rocm_kpack_ref", "the code is in a .kpack file, which is not supported"),
    (".llvm.offloading", "not linked yet: link the program, then read it"),
];

type Header = elf::FileHeader64<LE>;

/// Device code of a host file.
pub(super) struct DeviceCode<'data> {
    /// Where it starts in the file.
    pub offset: usize,
    /// `None` for bundles; the id of the one image otherwise.
    pub id: Option<String>,
    pub bytes: &'data [u8],
}

/// Whether an ELF file is for another machine than an AMD GPU.
pub(super) fn is_host(file: &[u8]) -> Result<bool, ContainerProblem> {
    // e_machine has its place in every class of ELF file; a code object's header is checked in full
    // when it is parsed.
    let machine = crate::bundle::Fields(file).u16("the ELF header", 18)?;
    Ok(machine != elf::EM_AMDGPU.0)
}

/// What stands in the sections that hold device code.
pub(super) fn device_code(file: &[u8]) -> Result<Vec<DeviceCode<'_>>, ContainerProblem> {
    let damaged = |what| move |_: object::read::Error| ContainerProblem::HostFile { what };
    let header = Header::parse(file).map_err(damaged("ELF header"))?;
    let endian = header.endian().map_err(damaged("ELF header"))?;
    let sections = header.sections(endian, file).map_err(damaged("section headers"))?;
    let names_index = header.shstrndx(endian, file).map_err(damaged("section name table"))?;
    let names = sections
        .section(object::SectionIndex(usize::try_from(names_index).unwrap_or(usize::MAX)))
        .and_then(|section| section.data(endian, file))
        .map_err(damaged("section name table"))?;
    let mut found = Vec::new();
    let mut unsupported = None;
    let mut total = 0_usize;
    for section in sections.iter() {
        // A name runs to its NUL. Names are compared from their start, so that a table without any
        // NUL costs no more than others.
        let offset = usize::try_from(section.sh_name(endian)).unwrap_or(usize::MAX);
        let name = names.get(offset..).unwrap_or(&[]);
        let is = |text: &str| {
            name.strip_prefix(text.as_bytes()).is_some_and(|rest| rest.first() == Some(&0))
        };
        if let Some(&known) = UNSUPPORTED.iter().find(|(text, _)| is(text)) {
            unsupported = Some(known);
        }
        let bundled = name.strip_prefix(BUNDLED.as_bytes());
        let is_fatbin = is(FATBIN);
        if !is_fatbin && !is(WRAPPERS) && bundled.is_none() {
            continue;
        }
        let bytes = section.data(endian, file).map_err(damaged("device code section"))?;
        // Sections of a real file share no bytes; this bounds the work by the file's size.
        total = total.saturating_add(bytes.len());
        if total > file.len() {
            return Err(ContainerProblem::HostFile { what: "device code section" });
        }
        let offset = usize::try_from(section.sh_offset(endian)).unwrap_or(usize::MAX);
        if let Some(rest) = bundled {
            let id = section_id(rest)?;
            // The host's own section holds nothing for a device.
            if !id.starts_with("host-") {
                found.push(DeviceCode { offset, id: Some(id), bytes });
            }
        } else if is_fatbin {
            // Empty when all code is elsewhere (packed kernels).
            if crate::bundle::first_not_zero(bytes).is_some() {
                found.push(DeviceCode { offset, id: None, bytes });
            }
        } else {
            FatWrapper::check_section(bytes)?;
        }
    }
    match (found.is_empty(), unsupported) {
        (false, _) => Ok(found),
        (true, Some((section, advice))) => Err(ContainerProblem::Unsupported { section, advice }),
        (true, None) => Err(ContainerProblem::NoDeviceCode),
    }
}

/// Longest entry id in a section name.
const MAX_ID_BYTES: usize = 1024;

fn section_id(rest: &[u8]) -> Result<String, ContainerProblem> {
    let head = rest.get(..MAX_ID_BYTES).unwrap_or(rest);
    let id = head.split(|&byte| byte == 0).next().unwrap_or(&[]);
    if id.len() < MAX_ID_BYTES && id.iter().all(u8::is_ascii_graphic) && id.contains(&b'-') {
        return Ok(String::from_utf8_lossy(id).into_owned());
    }
    let shown = id.get(..64).unwrap_or(id);
    Err(ContainerProblem::EntryId { index: 0, id: String::from_utf8_lossy(shown).into_owned() })
}
