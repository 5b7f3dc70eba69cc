//! Any dwords are walked to their end by every engine, and what decodes says the same when it is
//! encoded.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pm4::Encode;
use pm4::sdma::{Packet, Packets, Version};

fuzz_target!(|data: &[u8]| {
    let (dwords, _) = data.as_chunks::<4>();
    let words: Vec<u32> = dwords.iter().map(|dword| u32::from_le_bytes(*dword)).collect();
    for version in Version::ALL {
        let mut steps = 0;
        let mut packets = Packets::new(&words, version);
        while let Some(packet) = packets.next() {
            steps += 1;
            assert_eq!(packets.offset() + packets.rest().len(), words.len());
            let Ok(packet) = packet else { continue };
            assert!(!packet.to_string().is_empty());
            let mut again = Vec::new();
            packet.emit(|part| again.extend_from_slice(part));
            assert_eq!(again.len(), packet.dwords());
            assert_eq!(Packet::decode(&again, version), Ok(packet));
        }
        assert!(steps <= words.len());
    }
});
