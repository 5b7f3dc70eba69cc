//! Lengths of images that come without one.

use hsaco::ContainerProblem as Problem;
use hsaco::bundle::{Extent, extent};

use crate::make::{bundle, fixture, set, small};

/// Asks as a loader would that has only a pointer; panics if it is sent beyond the end.
fn measure(file: &[u8]) -> Result<usize, Problem> {
    let mut known = 0;
    loop {
        match extent(&file[..known])? {
            Extent::Exactly(bytes) => return Ok(bytes),
            Extent::AtLeast(bytes) => {
                assert!(bytes > known, "each answer goes on");
                known = bytes;
            }
        }
    }
}

#[test]
fn real_files_are_as_long_as_they_say() {
    for name in [
        "fat_host.bundle",
        "fat_host.generic.c22.bundle",
        "vadd.multi.bundle",
        "fat_host.ccob2.bundle",
        "fat_host.ccob2zlib.bundle",
        "fat_host.ccob3.c22.bundle",
        "vadd.gfx90a.v5.co",
        "vadd.gfx90a.debug.v5.co",
        "globals.gfx90a.stripped.v5.co",
        "triton_add.gfx1100.co",
        "iree_mul.gfx90a.co",
    ] {
        let file = fixture(name);
        let bytes = measure(&file).unwrap();
        // A section may be padded behind its last object.
        let rest = &file[bytes..];
        assert!(rest.len() < 8 && rest.iter().all(|&byte| byte == 0), "{name}: {bytes}");
        // Nothing is read beyond the end.
        let mut longer = file.clone();
        longer.extend([0xff; 4096]);
        assert_eq!(measure(&longer), Ok(bytes), "{name}");
    }
}

#[test]
fn a_bundle_of_the_host_only_ends_with_its_header() {
    let host = "host-x86_64-unknown-linux--";
    assert_eq!(measure(&bundle(&[(host, &[])])), Ok(32 + 24 + host.len()));
}

#[test]
fn a_version_1_bundle_does_not_say() {
    assert_eq!(measure(&fixture("fat_host.ccob1.bundle")), Err(Problem::NoLength));
}

#[test]
fn lengths_are_bounded() {
    let measure = |at, value: &[u8]| measure(&set(small(), at, value));
    assert_eq!(measure(24, &[0; 8]), Err(Problem::NoEntries));
    assert!(matches!(measure(24, &[0xff; 8]), Err(Problem::TooManyEntries { .. })));
    assert!(matches!(measure(24, &[0, 4, 0, 0]), Err(Problem::EntryId { .. })));
    assert!(matches!(measure(48, &[0xff; 8]), Err(Problem::EntryId { .. })));
    for at in [32, 40] {
        assert!(matches!(measure(at, &[0xff; 8]), Err(Problem::Truncated { .. })));
    }
    assert!(matches!(extent(&[0x5a; 32]), Err(Problem::Unknown { .. })));
    let elf = |at: usize, value: &[u8]| {
        let file = set(fixture("vadd.gfx90a.v5.co"), at, value);
        extent(&file[..64])
    };
    // e_phoff, e_shoff beyond everything; another class; another machine.
    assert!(matches!(elf(32, &[0xff; 8]), Err(Problem::HostFile { .. })));
    assert!(matches!(
        elf(40, &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0]),
        Err(Problem::Truncated { .. })
    ));
    assert!(matches!(elf(4, &[1]), Err(Problem::HostFile { .. })));
    assert!(matches!(elf(18, &[62]), Err(Problem::HostFile { .. })));
}
