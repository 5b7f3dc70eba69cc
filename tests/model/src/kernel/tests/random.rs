//! Whatever lies in a ring, a queue neither hangs the model nor takes it down.

use std::time::{Duration, Instant};

use kfd::abi::{DestroyQueueArgs, QueueType};
use proptest::prelude::*;

use super::Client;
use super::ring::{Ring, words};
use crate::{Preset, Profile, Target};

/// A dword that may mean something.
#[derive(Clone, Copy, Debug)]
enum Word {
    Any(u32),
    /// Header of a PM4 packet: opcode, count.
    Pm4(u8, u8),
    /// Header of an SDMA packet: operation, sub-operation.
    Sdma(u8, u8),
    /// Low half of an address in the test's memory.
    Low(u16),
    High,
    Small(u8),
}

fn word() -> impl Strategy<Value = Word> {
    let opcodes = vec![
        0x10, 0x15, 0x16, 0x1e, 0x22, 0x23, 0x37, 0x3c, 0x3f, 0x40, 0x46, 0x49, 0x50, 0x58, 0x76,
        0x79, 0x93, 0x9b,
    ];
    prop_oneof![
        any::<u32>().prop_map(Word::Any),
        (prop::sample::select(opcodes), 0..12_u8).prop_map(|(op, count)| Word::Pm4(op, count)),
        (0..18_u8, 0..5_u8).prop_map(|(op, sub)| Word::Sdma(op, sub)),
        any::<u16>().prop_map(Word::Low),
        Just(Word::High),
        any::<u8>().prop_map(Word::Small),
    ]
}

fn run(target: Target, kind: QueueType, content: &[Word]) -> Result<(), TestCaseError> {
    let client = Client::stepped(Preset::of(target), Profile::V6_12);
    let mut ring = Ring::on(client, kind);
    let base = ring.memory.address();
    let value = |word: &Word| match *word {
        Word::Any(word) => word,
        Word::Pm4(op, count) => 0xc000_0000 | u32::from(count) << 16 | u32::from(op) << 8,
        Word::Sdma(op, sub) => u32::from(sub) << 8 | u32::from(op),
        Word::Low(offset) => u32::try_from(base & 0xffff_0000).unwrap() | u32::from(offset & !3),
        Word::High => u32::try_from(base >> 32).unwrap(),
        Word::Small(word) => word.into(),
    };
    let values: Vec<u32> = content.iter().map(value).collect();
    // Buffers hold the same.
    ring.buffer(0, &words().raw(&values));
    let start = Instant::now();
    ring.submit(&words().raw(&values));
    for _ in 0..300 {
        ring.client.model.step();
    }
    prop_assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    let queue_id = ring.args.queue_id;
    ring.client.call(0x03, &mut DestroyQueueArgs { queue_id, pad: 0 }).unwrap();
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..Default::default() })]

    #[test]
    fn no_pm4_ring_hangs_or_panics(content in prop::collection::vec(word(), 1..300), which in 0..11_usize) {
        run(Target::ALL[which], QueueType::COMPUTE, &content)?;
    }

    #[test]
    fn no_sdma_ring_hangs_or_panics(content in prop::collection::vec(word(), 64..300), which in 0..11_usize) {
        run(Target::ALL[which], QueueType::SDMA, &content)?;
    }
}
