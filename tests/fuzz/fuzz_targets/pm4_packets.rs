//! Any dwords are walked to their end, and what decodes says the same when it is encoded.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pm4::{Encode, Packet, Packets, Target};

fuzz_target!(|data: &[u8]| {
    let (dwords, _) = data.as_chunks::<4>();
    let words: Vec<u32> = dwords.iter().map(|dword| u32::from_le_bytes(*dword)).collect();
    let mut steps = 0;
    for packet in Packets::new(&words) {
        steps += 1;
        let Ok(packet) = packet else { continue };
        for target in Target::ALL {
            assert!(!packet.on(target).to_string().is_empty());
        }
        let mut again = Vec::new();
        packet.emit(|part| again.extend_from_slice(part));
        assert_eq!(again.len(), packet.dwords());
        assert_eq!(Packet::decode(&again), Ok(packet));
    }
    assert!(steps <= words.len());
});
