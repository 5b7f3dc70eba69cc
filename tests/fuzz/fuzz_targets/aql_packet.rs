//! Any 64 bytes decode to a packet that encodes to the same bytes, or to what is wrong with them.
#![no_main]

use aql::{Decoded, Packet};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let (packets, _) = data.as_chunks::<64>();
    for bytes in packets {
        let packet = Packet::from_bytes(bytes);
        assert_eq!(packet.to_bytes(), *bytes);
        let decoded = packet.decode();
        assert!(!decoded.to_string().is_empty());
        let again = match decoded {
            Decoded::KernelDispatch(packet) => packet.encode(),
            Decoded::BarrierAnd(packet) => packet.encode(),
            Decoded::BarrierOr(packet) => packet.encode(),
            Decoded::AgentDispatch(packet) => packet.encode(),
            Decoded::Pm4Ib(packet) => {
                assert!(packet.buffer().is_ok());
                packet.encode()
            }
            Decoded::BarrierValue(packet) => {
                assert!(packet.is_satisfied_by(0).is_some());
                packet.encode()
            }
            Decoded::Malformed { packet, .. } => packet,
            _ => packet,
        };
        assert_eq!(again, packet);
    }
});
