//! Whatever parses as a code object can be loaded and its kernels called, or says why not.
#![no_main]

use hsaco::{CodeObject, Geometry, HiddenValues, Processor, occupancy};
use libfuzzer_sys::fuzz_target;

/// Larger images are legal, but only make the fuzzer slow.
const MAX_IMAGE: u64 = 1 << 20;

fuzz_target!(|data: &[u8]| {
    let Ok(object) = CodeObject::parse(data) else { return };
    if object.load_bytes() <= MAX_IMAGE {
        if let Ok(mut image) = object.image(0x7f00_0000_0000) {
            assert!(u64::try_from(image.bytes().len()).unwrap() <= object.load_bytes());
            for kernel in object.kernels() {
                let _ = image.address_of(kernel.descriptor_vaddr());
            }
            for variable in object.managed() {
                let mut value = vec![0; usize::try_from(variable.bytes).unwrap()];
                image.read(variable.initial_vaddr, &mut value).expect("it is inside the image");
                if image.set_managed(variable, 0x1234_5678).is_ok() {
                    let mut pointer = [0; 8];
                    image.read(variable.pointer_vaddr, &mut pointer).unwrap();
                    assert_eq!(u64::from_le_bytes(pointer), 0x1234_5678);
                }
            }
        }
    }
    for kernel in object.kernels() {
        let _ = kernel.launch_facts();
        assert!(object.needs().contains(kernel.needs()));
        for processor in Processor::all() {
            let resources = kernel.resources(processor, 1 << 12);
            if let Some(found) = occupancy(processor, &resources, 256) {
                assert!(found.waves_per_simd <= found.max_waves_per_simd);
            }
        }
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
