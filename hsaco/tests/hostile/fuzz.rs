//! Truncation at every byte, and random changes: an error or an object, never a panic.

use hsaco::CodeObject;
use hsaco::kernarg::{Geometry, HiddenValues};
use proptest::prelude::*;

use crate::patch::fixture;

const FILES: [&str; 10] = [
    "vadd.gfx90a.v3.c15.co",
    "vadd.gfx1100.v4.co",
    "vadd.gfx90a.debug.v5.co",
    "abi_args.gfx942.v6.c22.co",
    "globals.gfx90a.stripped.v5.co",
    "reloc.gfx1100.v5.co",
    "dims.gfx90a.v5.co",
    "ocl.gfx1100.v5.co",
    "triton_softmax.gfx90a.co",
    "iree_mul.gfx1100.co",
];

/// Uses everything that a parsed object offers.
fn exercise(object: &CodeObject<'_>) {
    if let Ok(image) = object.image(0x7000_0000_0000) {
        assert!(image.bytes().len() as u64 <= image.load_bytes());
        assert!(image.bytes().len() < 17 << 20);
    }
    let hidden = HiddenValues::new(Geometry::new([100, 1, 1], [64, 1, 1], 1).unwrap());
    for kernel in object.kernels() {
        let facts = kernel.launch_facts();
        assert!(facts.wave_size == 32 || facts.wave_size == 64);
        let layout = kernel.arguments();
        assert!(facts.kernarg_bytes <= 1 << 16);
        let Ok(mut builder) = layout.builder() else { continue };
        for argument in layout.explicit() {
            builder.push(&vec![0x5a; argument.size as usize]).unwrap();
        }
        assert_eq!(builder.finish(&hidden).unwrap().len(), facts.kernarg_bytes as usize);
    }
    for variable in object.variables() {
        assert_eq!(object.variable(variable.name), Some(variable));
    }
}

#[test]
fn truncated_code_objects_never_parse() {
    for name in FILES {
        let bytes = fixture(name);
        exercise(&CodeObject::parse(&bytes).unwrap());
        for length in 0..bytes.len() {
            let result = CodeObject::parse(&bytes[..length]);
            assert!(result.is_err(), "{name} cut to {length} of {} bytes parses", bytes.len());
        }
    }
}

#[test]
fn every_single_byte_can_be_anything() {
    for name in ["globals.gfx90a.stripped.v5.co", "triton_add.gfx1100.co"] {
        let mut bytes = fixture(name);
        for at in 0..bytes.len() {
            let original = bytes[at];
            for value in [0xff, original ^ 0x80, original.wrapping_add(1)] {
                bytes[at] = value;
                if let Ok(object) = CodeObject::parse(&bytes) {
                    exercise(&object);
                }
            }
            bytes[at] = original;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_changes_never_panic(
        file in 0..FILES.len(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..32),
        header in prop::collection::vec((0..0x400_usize, any::<u8>()), 0..8),
    ) {
        let mut bytes = fixture(FILES[file]);
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        for (at, value) in header {
            bytes[at] = value;
        }
        if let Ok(object) = CodeObject::parse(&bytes) {
            exercise(&object);
        }
    }

    #[test]
    fn random_bytes_never_panic(tail in prop::collection::vec(any::<u8>(), 0..2048)) {
        let mut bytes = fixture("vadd.gfx90a.v5.co");
        bytes.truncate(64);
        bytes.extend(tail);
        if let Ok(object) = CodeObject::parse(&bytes) {
            exercise(&object);
        }
    }
}
