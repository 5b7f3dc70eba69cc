//! Random bytes and random changes: an error or a container, never a panic, and never more memory
//! than the limit allows.

use std::path::Path;

use hsaco::bundle::{Extent, extent};
use hsaco::{CodeObject, Container, DeviceTarget};
use proptest::prelude::*;

use crate::make::{bundle, fixture, stored_zstd};

const FILES: [&str; 7] = [
    "fat_host.bundle",
    "fat_host.ccob1.bundle",
    "fat_host.ccob2.bundle",
    "fat_host.ccob2zlib.bundle",
    "fat_host.ccob3.c22.bundle",
    "fat_host.two_ccob.bundle",
    "fat_host.ccob2.o",
];

const LIMIT: u64 = 1 << 20;

fn exercise(file: &[u8]) {
    if let Ok(Extent::AtLeast(bytes)) = extent(file) {
        assert!(bytes > file.len());
    }
    let Ok(container) = Container::read_within(file, LIMIT) else { return };
    let content: usize = container.bundles().iter().map(|bundle| bundle.content_bytes()).sum();
    assert!(content as u64 <= LIMIT + file.len() as u64);
    for device in ["gfx90a", "gfx1100", "gfx942:xnack+"] {
        let device = DeviceTarget::from_id(device).unwrap();
        match container.choose(&device) {
            Ok(choice) => {
                choice.target.fits(&device).unwrap();
                let _ = CodeObject::parse(choice.entry.bytes);
            }
            Err(no_fit) => assert_eq!(no_fit.images.len(), container.images().count()),
        }
    }
}

/// What the fuzzer found worth keeping: each reaches code that the others do not.
#[test]
fn inputs_kept_by_the_fuzzer_never_panic() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fuzz/seeds/hsaco_container");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        exercise(&std::fs::read(entry.unwrap().path()).unwrap());
        count += 1;
    }
    assert!(count > 40, "{count}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_changes_never_panic(
        file in 0..FILES.len(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..16),
        header in prop::collection::vec((0..0x100_usize, any::<u8>()), 0..8),
    ) {
        let mut bytes = fixture(FILES[file]);
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        for (at, value) in header {
            bytes[at] = value;
        }
        exercise(&bytes);
    }

    #[test]
    fn random_bytes_after_a_magic_never_panic(
        magic in prop::sample::select(vec![&b"CCOB\x02\0\x01\0"[..], b"CCOB\x03\0\0\0", b"__CLANG_OFFLOAD_BUNDLE__\x01\0\0\0\0\0\0\0"]),
        tail in prop::collection::vec(any::<u8>(), 0..512),
    ) {
        exercise(&[magic, &tail].concat());
    }

    /// What is put into a bundle comes out of it, compressed or not.
    #[test]
    fn bundles_give_back_what_was_put_in(
        contents in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..6000), 1..8),
    ) {
        let ids: Vec<String> = (0..contents.len()).map(|index| format!("hip-entry-{index}")).collect();
        let entries: Vec<(&str, &[u8])> =
            ids.iter().zip(&contents).map(|(id, bytes)| (id.as_str(), bytes.as_slice())).collect();
        let plain = bundle(&entries);
        for file in [stored_zstd(&plain), plain] {
            let container = Container::read(&file).unwrap();
            let found: Vec<(&str, &[u8])> =
                container.images().map(|image| (image.id.unwrap(), image.bytes)).collect();
            prop_assert_eq!(&found, &entries);
        }
    }
}
