//! The ELF header and e_flags.

use hsaco::{CodeObject, CodeObjectVersion, DeviceTarget, Error, TargetProblem};

use crate::patch::{Patch, assert_refused, fixture};

fn flags(name: &str, flags: u32) -> Patch {
    Patch::of(name).set(48, &flags.to_le_bytes())
}

#[test]
fn an_empty_file_is_cut_short() {
    let patch = Patch { bytes: Vec::new() };
    assert_refused!(patch, Error::Truncated { what: "ELF header", offset: 0, end: 64, found: 0 });
}

#[test]
fn a_file_that_is_no_elf_shows_how_it_starts() {
    let patch = Patch { bytes: b"PK\x03\x04 and more".to_vec() };
    assert_refused!(patch, Error::NotElf { ref start } if start == b"PK\x03\x04");
}

#[test]
fn bundles_are_refused_by_name() {
    assert_refused!(Patch::of("fat_host.bundle"), Error::OffloadBundle);
    assert_refused!(Patch::of("vadd.multi.bundle"), Error::OffloadBundle);
    for name in ["fat_host.ccob1.bundle", "fat_host.ccob2.bundle", "fat_host.ccob3.c22.bundle"] {
        assert_refused!(Patch::of(name), Error::CompressedBundle);
    }
}

#[test]
fn other_elf_files_are_refused_by_name() {
    assert_refused!(Patch::of("fat_host.o"), Error::NotAmdgpu { machine: 62 });
    assert_refused!(Patch::of("vadd.gfx90a.rel.v5.o"), Error::Relocatable);
    assert_refused!(Patch::of("vadd.gfx906.v2.c15.co"), Error::ObsoleteVersion);
    assert_refused!(Patch::vadd().set(16, &[2, 0]), Error::NotSharedObject { found: 2 });
    assert_refused!(Patch::vadd().set(18, &[62, 0]), Error::NotAmdgpu { machine: 62 });
}

#[test]
fn identification_bytes_are_checked() {
    assert_refused!(Patch::vadd().set(4, &[1]), Error::NotElf64 { found: 1 });
    assert_refused!(Patch::vadd().set(5, &[2]), Error::NotLittleEndian { found: 2 });
    assert_refused!(Patch::vadd().set(6, &[0]), Error::ElfVersion { found: 0 });
    assert_refused!(Patch::vadd().set(20, &[9]), Error::ElfVersion { found: 9 });
    for found in [0, 65, 66] {
        assert_refused!(Patch::vadd().set(7, &[found]), Error::NotHsa { found: f } if f == found);
    }
    assert_refused!(Patch::vadd().set(8, &[0]), Error::ObsoleteVersion);
    for found in [5, 255] {
        let patch = Patch::vadd().set(8, &[found]);
        assert_refused!(patch, Error::UnknownVersion { found: f } if f == found);
    }
}

#[test]
fn every_version_is_read_from_the_abi_byte() {
    for (name, version) in [
        ("vadd.gfx90a.v3.c15.co", CodeObjectVersion::V3),
        ("vadd.gfx90a.v4.co", CodeObjectVersion::V4),
        ("vadd.gfx90a.v5.co", CodeObjectVersion::V5),
        ("vadd.gfx90a.v6.co", CodeObjectVersion::V6),
    ] {
        let bytes = fixture(name);
        assert_eq!(CodeObject::parse(&bytes).unwrap().version(), version);
    }
}

#[test]
fn unknown_processors_are_refused_with_their_number() {
    for mach in [0x00, 0x27, 0x99] {
        assert_refused!(
            flags("vadd.gfx90a.v5.co", 0x500 | mach),
            Error::Target { problem: TargetProblem::UnknownProcessor { mach: m }, .. } if u32::from(m) == mach
        );
    }
}

#[test]
fn generic_targets_need_version_6_and_a_generic_version() {
    let version_5 = flags("vadd.gfx9-generic.v6.co", 0x0100_0151).set(8, &[3]);
    for patch in [version_5, flags("vadd.gfx9-generic.v6.co", 0x151)] {
        assert_refused!(
            patch,
            Error::Target { problem: TargetProblem::GenericWithoutVersion { .. }, .. }
        );
    }
    assert_refused!(
        flags("vadd.gfx90a.v6.co", 0x0100_053f),
        Error::Target { problem: TargetProblem::UnexpectedGenericVersion { version: 1, .. }, .. }
    );
}

#[test]
fn a_newer_generic_version_still_fits() {
    let patch = flags("vadd.gfx11-generic.v6.co", 0xff00_0054);
    let target = patch.parses().target();
    assert_eq!(target.generic_version(), 255);
    target.fits(&DeviceTarget::new(110000, false, false).unwrap()).unwrap();
}

#[test]
fn features_a_processor_lacks_and_undefined_bits_are_refused() {
    assert_refused!(
        flags("vadd.gfx1100.v5.co", 0x341),
        Error::Target { problem: TargetProblem::UnexpectedFeature { feature: "xnack", .. }, .. }
    );
    assert_refused!(
        flags("vadd.gfx90a.v5.co", 0x153f),
        Error::Target { problem: TargetProblem::UndefinedFlags { bits: 0x1000 }, .. }
    );
}

#[test]
fn a_target_string_that_contradicts_the_flags_is_refused() {
    assert_refused!(
        flags("vadd.gfx90a.v5.co", 0x73f),
        Error::Target { problem: TargetProblem::Contradiction { .. }, .. }
    );
}

#[test]
fn both_spellings_of_the_target_string_are_accepted() {
    let old = fixture("vadd.gfx90a_srameccp_xnackm.v5.co");
    let old = CodeObject::parse(&old).unwrap();
    assert_eq!(old.target_text(), Some("amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-"));
    let new = fixture("triton_add.gfx90a.co");
    let new = CodeObject::parse(&new).unwrap();
    assert_eq!(new.target_text(), Some("amdgpu9.0a-amd-amdhsa-unknown-gfx90a"));
    assert_eq!(new.target().to_string(), "gfx90a");
}

#[test]
fn header_tables_outside_the_file_are_refused() {
    for (at, what) in [(32, "program headers"), (40, "section headers")] {
        for value in [1 << 20, u64::MAX - 8, 1 << 63] {
            let patch = Patch::vadd().set(at, &value.to_le_bytes());
            assert_refused!(patch, Error::Truncated { what: w, .. } if w == what);
        }
    }
    assert_refused!(
        Patch::vadd().set(32, &16_u64.to_le_bytes()),
        Error::Header { field: "e_phoff", value: 16 }
    );
    assert_refused!(
        Patch::vadd().set(40, &16_u64.to_le_bytes()),
        Error::Header { field: "e_shoff", value: 16 }
    );
}

#[test]
fn header_tables_may_be_unaligned() {
    // The program headers moved to the end of the file, at an odd place.
    let mut patch = Patch::vadd().without_sections();
    let start = patch.usize_at(32);
    let bytes = 56 * usize::from(patch.u16_at(56));
    let table = patch.bytes[start..start + bytes].to_vec();
    let place = patch.bytes.len() | 1;
    patch.bytes.resize(place, 0);
    patch.bytes.extend(table);
    let patch = patch.set(32, &(place as u64).to_le_bytes());
    assert_eq!(patch.parses().kernels().len(), 1);
}

#[test]
fn header_entry_sizes_and_counts_are_checked() {
    for size in [0_u16, 1, 65535] {
        assert_refused!(
            Patch::vadd().set(54, &size.to_le_bytes()),
            Error::Header { field: "e_phentsize", value } if value == u64::from(size)
        );
        assert_refused!(
            Patch::vadd().set(58, &size.to_le_bytes()),
            Error::Header { field: "e_shentsize", value } if value == u64::from(size)
        );
    }
    assert_refused!(Patch::vadd().set(56, &[0, 0]), Error::NoSegments);
    assert_refused!(
        Patch::vadd().set(56, &[0xff, 0xff]),
        Error::Header { field: "e_phnum", value: 0xffff }
    );
}

#[test]
fn an_object_without_section_headers_loads_the_same() {
    for name in ["globals.gfx90a.v5.co", "reloc.gfx1100.v5.co", "triton_add.gfx1100.co"] {
        let whole = Patch::of(name);
        let bare = Patch::of(name).without_sections();
        let (whole, bare) = (whole.parses(), bare.parses());
        assert!(bare.is_stripped());
        assert_eq!(whole.variables(), bare.variables());
        let (one, other) = (whole.image(0x10000).unwrap(), bare.image(0x10000).unwrap());
        assert_eq!(one.segments(), other.segments());
        // The ELF header is part of the image, and is what was changed.
        assert!(one.bytes()[64..] == other.bytes()[64..], "{name}");
        assert_eq!(whole.kernels().len(), bare.kernels().len());
    }
}

#[test]
fn the_section_name_table_is_never_needed() {
    Patch::vadd().set(62, &[0xff, 0xfe]).parses();
    Patch::vadd().set(60, &[0, 0]).parses();
}
