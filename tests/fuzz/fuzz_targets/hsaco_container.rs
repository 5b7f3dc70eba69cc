//! Whatever reads as a container gives images inside its bytes and a choice, or says why not.
#![no_main]

use hsaco::bundle::{Extent, extent};
use hsaco::{CodeObject, Container, DeviceTarget};
use libfuzzer_sys::fuzz_target;

/// More is legal, but only makes the fuzzer slow.
const LIMIT: u64 = 4 << 20;

fuzz_target!(|data: &[u8]| {
    // A loader that has only a pointer asks again and again; each answer must lead on.
    let mut known = 0;
    while let Some(Ok(Extent::AtLeast(bytes))) = data.get(..known).map(extent) {
        assert!(bytes > known);
        known = bytes;
    }
    let Ok(container) = Container::read_within(data, LIMIT) else { return };
    let content: usize = container.bundles().iter().map(|bundle| bundle.content_bytes()).sum();
    assert!(content <= data.len() + usize::try_from(LIMIT).unwrap());
    for target in ["gfx90a:sramecc+:xnack-", "gfx1100", "gfx906:xnack+"] {
        let device = DeviceTarget::from_id(target).unwrap();
        match container.choose(&device) {
            Ok(choice) => {
                choice.target.fits(&device).expect("the image chosen fits");
                let _ = CodeObject::parse(choice.entry.bytes);
            }
            Err(no_fit) => {
                assert_eq!(no_fit.images.len(), container.images().count());
                assert!(!no_fit.to_string().is_empty());
            }
        }
    }
});
