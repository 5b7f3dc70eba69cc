//! Whatever parses as a code object can be loaded and its kernels called, or says why not.
#![no_main]

use hsaco::{CodeObject, Geometry, HiddenValues};
use libfuzzer_sys::fuzz_target;

/// Larger images are legal, but only make the fuzzer slow.
const MAX_IMAGE: u64 = 1 << 20;

fuzz_target!(|data: &[u8]| {
    let Ok(object) = CodeObject::parse(data) else { return };
    if object.load_bytes() <= MAX_IMAGE {
        if let Ok(image) = object.image(0x7f00_0000_0000) {
            assert!(u64::try_from(image.bytes().len()).unwrap() <= object.load_bytes());
            for kernel in object.kernels() {
                let _ = image.address_of(kernel.descriptor_vaddr());
            }
        }
    }
    for kernel in object.kernels() {
        let _ = kernel.launch_facts();
        let arguments = kernel.arguments();
        let Ok(mut builder) = arguments.builder() else { continue };
        for argument in arguments.explicit() {
            let size = usize::try_from(argument.size).unwrap();
            builder.push(&vec![0xA5; size]).expect("it has the size that the kernel takes");
        }
        let geometry = Geometry::new([64, 1, 1], [64, 1, 1], 1).unwrap();
        if let Ok(segment) = builder.finish(&HiddenValues::new(geometry)) {
            let bytes = usize::try_from(kernel.launch_facts().kernarg_bytes).unwrap();
            assert!(segment.len() >= bytes);
        }
    }
});
