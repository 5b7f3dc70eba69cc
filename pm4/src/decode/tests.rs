extern crate alloc;
use alloc::string::ToString;
use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::packet::{CachePolicy, DataDst};
use crate::{GpuAddr, WriteData};

#[test]
fn packets_walks_a_worked_stream() {
    // Acquire, event write, release: parts of docs/ABI.md §PM4, worked example E6.
    let words = [
        0xc005_5802,
        0x28c4_0000,
        0xffff_ffff,
        0x00ff_ffff,
        0,
        0,
        0xa,
        0xc000_4600,
        0x407,
        0xffff_1000,
        0xc006_4900,
        0x0002_8514,
        0x4300_0000,
        0x0060_0000,
        0x7f00,
        1,
        0,
        0,
    ];
    let text: Vec<_> = Packets::new(&words).map(|p| p.unwrap().to_string()).collect();
    assert_eq!(
        text,
        [
            "ACQUIRE_MEM cache=TC_WB | TCL1 | TC | SH_KCACHE | SH_ICACHE range=all",
            "EVENT_WRITE event=CS_PARTIAL_FLUSH index=4",
            "NOP skips 0 dwords",
            "RELEASE_MEM event=CACHE_FLUSH_AND_INV_TS_EVENT/5 cache=0x28000 dst=0x7f0000600000 data=0x1 confirm",
        ]
    );
}

#[test]
fn packets_ends_at_a_truncated_packet() {
    let words = WriteData::new(GpuAddr::new(0x1000), 7).unwrap().encode();
    for cut in 1..words.len() {
        let all: Vec<_> = Packets::new(&words[..cut]).collect();
        assert_eq!(all, [Err(Error::Truncated { needed: 5, found: cut })]);
    }
}

#[test]
fn packets_goes_on_after_a_malformed_packet() {
    let mut words = Vec::from(WriteData::new(GpuAddr::new(0x1000), 7).unwrap().encode());
    words[1] |= 1 << 31;
    words.push(Nop::one_dword());
    let all: Vec<_> = Packets::new(&words).collect();
    assert!(matches!(all[0], Err(Error::Reserved { dword: 1, .. })));
    assert!(matches!(all[1], Ok(Packet::Nop(_))));
    assert_eq!(all.len(), 2);
}

proptest! {
    #[test]
    fn any_dwords_decode_without_panic_and_end(
        words in prop::collection::vec(
            prop_oneof![any::<u32>(), (0u32..6, 0u8..=255).prop_map(|(n, op)| {
                3 << 30 | n << 16 | u32::from(op) << 8
            })],
            0..64,
        )
    ) {
        let steps = Packets::new(&words).inspect(|p| {
            let _ = p.map(|p| p.to_string());
        }).count();
        prop_assert!(steps <= words.len());
    }

    #[test]
    fn write_block_decodes_to_what_was_encoded(
        kind in 0u8..16, dst in any::<u64>(), data in prop::collection::vec(any::<u32>(), 1..9),
        one_address: bool, confirm: bool, policy in 0u8..4,
    ) {
        let block = WriteBlock {
            kind: DataDst(kind), dst: GpuAddr::new(dst & !3), data: &data,
            one_address, confirm, policy: CachePolicy(policy),
        };
        let mut out = [0; 16];
        let dwords = block.encode_into(&mut out).unwrap();
        prop_assert_eq!(Packet::decode(&out[..dwords]), Ok(Packet::WriteData(block)));
    }

    #[test]
    fn what_decodes_encodes_to_the_same_dwords(
        opcode in prop_oneof![Just(Opcode::INDIRECT_BUFFER), Just(Opcode::RELEASE_MEM)],
        body in prop::array::uniform7(prop_oneof![any::<u32>(), Just(0u32)]),
    ) {
        let dwords = if opcode == Opcode::RELEASE_MEM { 8 } else { 4 };
        let mut words = Vec::from([Header::new(opcode, dwords).word()]);
        words.extend(&body[..dwords - 1]);
        match Packet::decode(&words) {
            Ok(Packet::IndirectBuffer(ib)) => prop_assert_eq!(&ib.encode()[..], &words[..]),
            Ok(Packet::ReleaseMem(release)) => {
                prop_assert_eq!(&release.encode()[..], &words[..]);
            }
            Ok(other) => prop_assert!(false, "{:?}", other),
            Err(_) => {}
        }
    }
}
