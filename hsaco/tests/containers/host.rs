//! Host ELF files and fat-binary wrappers.

use hsaco::container::{FAT_WRAPPER_BYTES, FatWrapper};
use hsaco::{Container, ContainerProblem as Problem};

use crate::make::{assert_refused, fixture, set};

fn wrapper(magic: &[u8; 4], version: u32, bundle: u64) -> [u8; FAT_WRAPPER_BYTES] {
    let mut bytes = [0; FAT_WRAPPER_BYTES];
    bytes[..4].copy_from_slice(magic);
    bytes[4..8].copy_from_slice(&version.to_le_bytes());
    bytes[8..16].copy_from_slice(&bundle.to_le_bytes());
    bytes
}

#[test]
fn a_wrapper_says_where_its_bundle_is() {
    let good = wrapper(b"FPIH", 1, 0x7000);
    assert_eq!(FatWrapper::read(&good), Ok(FatWrapper { bundle: 0x7000 }));
    let read = |magic, version, bundle| FatWrapper::read(&wrapper(magic, version, bundle));
    assert_eq!(read(b"HIPF", 1, 8), Err(Problem::WrapperMagic { found: 0x4650_4948 }));
    assert_eq!(read(b"HIPK", 1, 8), Err(Problem::PackedKernels));
    assert_eq!(read(b"FPIH", 2, 8), Err(Problem::WrapperVersion { found: 2 }));
    assert_eq!(read(b"FPIH", 0, 8), Err(Problem::WrapperVersion { found: 0 }));
    assert_eq!(read(b"FPIH", 1, 0), Err(Problem::NullBundle));
    let misaligned = Problem::Misaligned { what: "the bundle", address: 0x7001 };
    assert_eq!(read(b"FPIH", 1, 0x7001), Err(misaligned));
    assert_eq!(FatWrapper::check_address(0), Err(Problem::NullBundle));
    assert!(matches!(FatWrapper::check_address(0x7004), Err(Problem::Misaligned { .. })));
    assert_eq!(FatWrapper::check_address(0x7008), Ok(()));
}

/// Where a section's header is, by its name.
fn section(file: &[u8], name: &str) -> usize {
    let word = |at: usize, bytes: usize| {
        let mut value = [0; 8];
        value[..bytes].copy_from_slice(&file[at..at + bytes]);
        usize::try_from(u64::from_le_bytes(value)).unwrap()
    };
    let (table, count, names) = (word(40, 8), word(60, 2), word(62, 2));
    let strings = word(table + 64 * names + 24, 8);
    let wanted = format!("{name}\0");
    let found = (0..count).map(|index| table + 64 * index);
    let mut found =
        found.filter(|&at| file[strings + word(at, 4)..].starts_with(wanted.as_bytes()));
    found.next().unwrap()
}

fn place(file: &[u8], name: &str) -> usize {
    let at = section(file, name) + 24;
    usize::try_from(u64::from_le_bytes(file[at..at + 8].try_into().unwrap())).unwrap()
}

#[test]
fn the_wrappers_of_a_host_file_are_checked() {
    let file = fixture("fat_host.o");
    let at = place(&file, ".hipFatBinSegment");
    assert_eq!(&file[at..at + 4], b"FPIH");
    assert_refused!(set(file.clone(), at, b"HIPK"), Problem::PackedKernels);
    assert_refused!(set(file.clone(), at, b"ELSE"), Problem::WrapperMagic { .. });
    assert_refused!(set(file, at + 4, &[2]), Problem::WrapperVersion { found: 2 });
}

#[test]
fn a_host_file_without_device_code_says_so() {
    let file = fixture("fat_host.o");
    let at = place(&file, ".hip_fatbin");
    let mut empty = file.clone();
    empty[at..at + 27184].fill(0);
    assert_refused!(empty, Problem::NoDeviceCode);
    // The section's name gone.
    let names = section(&file, ".hip_fatbin");
    assert_refused!(set(file, names, &[0; 4]), Problem::NoDeviceCode);
}

#[test]
fn code_of_unsupported_kinds_is_named() {
    let file = fixture("fat_host.o");
    let name =
        |file: &[u8], text: &[u8]| file.windows(text.len()).rposition(|w| w == text).unwrap();
    // Long enough for the other names to be written over it.
    let at = name(&file, b".rela.hipFatBinSegment\0");
    for (text, section) in [
        (&b".llvm.offloading\0"[..], ".llvm.offloading"),
        (&b".rocm_kpack_ref\0"[..], ".rocm_kpack_ref"),
    ] {
        let fatbin = self::section(&file, ".hip_fatbin");
        let renamed = set(set(file.clone(), at, text), fatbin, &[0; 4]);
        // The wrapper section shares its name with its relocations: both are gone.
        assert_refused!(renamed, Problem::Unsupported { section: found, .. } if found == section);
    }
}

#[test]
fn truncated_host_files_never_read() {
    let file = fixture("fat_host.ccob2.o");
    Container::read(&file).unwrap();
    for length in 0..file.len() {
        assert!(Container::read(&file[..length]).is_err(), "{length} bytes");
    }
}

#[test]
fn sections_that_share_bytes_are_refused() {
    let file = fixture("fat_host.o");
    let fatbin = section(&file, ".hip_fatbin");
    let other = section(&file, ".text");
    let mut copied = file;
    let header = copied[fatbin..fatbin + 64].to_vec();
    copied[other..other + 64].copy_from_slice(&header);
    assert_refused!(copied, Problem::HostFile { what: "device code section" });
}

#[test]
fn host_elf_headers_can_be_anything() {
    let file = fixture("fat_host.ccob2.o");
    for at in 0..64 {
        for value in [0, 1, 0x7f, 0x80, 0xff] {
            let _ = Container::read(&set(file.clone(), at, &[value]));
        }
    }
}
