//! Any dwords are walked to their end, and what decodes says the same when it is encoded.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pm4::{Packet, Packets};

fuzz_target!(|data: &[u8]| {
    let (dwords, _) = data.as_chunks::<4>();
    let words: Vec<u32> = dwords.iter().map(|dword| u32::from_le_bytes(*dword)).collect();
    let mut steps = 0;
    for packet in Packets::new(&words) {
        steps += 1;
        let Ok(packet) = packet else { continue };
        assert!(!packet.to_string().is_empty());
        let mut out = [0; 0x4000];
        let dwords = match packet {
            Packet::IndirectBuffer(packet) => copy(&packet.encode(), &mut out),
            Packet::AcquireMemGfx9(packet) => copy(&packet.encode(), &mut out),
            Packet::AcquireMemGfx11(packet) => copy(&packet.encode(), &mut out),
            Packet::ReleaseMem(packet) => copy(&packet.encode(), &mut out),
            Packet::WriteData(packet) => packet.encode_into(&mut out).expect("it was decoded"),
            _ => continue,
        };
        assert_eq!(Packet::decode(&out[..dwords]), Ok(packet));
    }
    assert!(steps <= words.len());
});

fn copy(packet: &[u32], out: &mut [u32]) -> usize {
    out[..packet.len()].copy_from_slice(packet);
    packet.len()
}
