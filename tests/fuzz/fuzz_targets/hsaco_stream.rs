//! Compressed streams: whatever the stream does, the output stops at the size that was promised.
//!
//! The first byte of the input chooses version and method, the next four are the size promised.
#![no_main]

use hsaco::{Container, ContainerProblem, Error};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((&[choice, a, b, c, d], stream)) = data.split_first_chunk::<5>() else { return };
    let size = u32::from_le_bytes([a, b, c, d]) & 0x3f_ffff;
    let version = u16::from(choice & 3) + 1;
    let method = u16::from(choice >> 2 & 1);
    let mut file = b"CCOB".to_vec();
    file.extend(version.to_le_bytes());
    file.extend(method.to_le_bytes());
    let len = u32::try_from(stream.len()).unwrap();
    match version {
        1 => file.extend(size.to_le_bytes()),
        2 => file.extend([(24 + len).to_le_bytes(), size.to_le_bytes()].concat()),
        _ => file.extend([u64::from(32 + len).to_le_bytes(), u64::from(size).to_le_bytes()].concat()),
    }
    file.extend([0; 8]);
    file.extend(stream);
    match Container::read(&file) {
        Err(Error::Container { problem: ContainerProblem::ContentSize { expected, .. }, .. }) => {
            assert_eq!(expected, u64::from(size));
        }
        // No content has this hash, but that the fuzzer finds.
        Ok(_) | Err(_) => {}
    }
});
