//! Queues of all kinds at once, on a model with threads.

use std::sync::atomic::Ordering::{Acquire, Release};
use std::time::{Duration, Instant};

use kfd::abi::QueueType;
use pm4::packet::{Compare, WaitOn, WaitRegMem, gfx11};
use pm4::sdma::{CopyLinear, Fence, PollMem, Version};
use pm4::{GpuAddr, ReleaseMem};

use super::Client;
use super::client::GTT;
use super::ring::{Ring, words};
use crate::{Model, Preset, Target};

/// Steps of the relay, each on another queue than the one before.
const ROUNDS: u32 = 300;

#[test]
fn engines_hand_over_to_each_other_through_memory() {
    let model = Model::builder().gpu(Preset::of(Target::Gfx1100)).build();
    let mut pm4 = Ring::on(Client::new(&model), QueueType::COMPUTE);
    let mut sdma = pm4.sibling(|args| args.queue_type = QueueType::SDMA);
    let mut busy = pm4.sibling(|args| args.queue_type = QueueType::SDMA);
    // A third queue copies meanwhile: 64 copies of 256 KiB.
    let bytes = 256_usize << 10;
    let large = pm4.client.page(GTT, 2 * bytes);
    large.u64(bytes - 8).store(7, Release);
    let (from, to) = (large.address(), large.address() + bytes as u64);
    let copy = CopyLinear::new(Version::V6, GpuAddr::new(from), GpuAddr::new(to), bytes as u64);
    let copy = copy.unwrap();
    busy.submit(&(0..64).fold(words(), |words, _| words.sdma(&copy)));
    // The word counts up: even values by SDMA, odd ones by PM4.
    let at = GpuAddr::new(pm4.address(0));
    let start = Instant::now();
    for round in 0..ROUNDS {
        let wait = WaitRegMem::new(WaitOn::Memory(at), Compare::EQUAL, 2 * round).unwrap();
        let release = ReleaseMem::gfx11(gfx11::ReleaseCache::GL2_WB);
        let release = release.write_32(at, 2 * round + 1).unwrap();
        pm4.submit(&words().pm4(&wait).pm4(&release));
        let poll = PollMem::new(at, Compare::EQUAL, 2 * round + 1).unwrap();
        let fence = Fence::new(Version::V6, at, 2 * round + 2).unwrap();
        // Pads to the ring's end as drivers do.
        let left = super::ring::RING - usize::try_from(sdma.next).unwrap() % super::ring::RING;
        let padding = if left < 40 { left / 4 } else { 0 };
        sdma.submit(&words().raw(&vec![0; padding]).sdma(&poll).sdma(&fence));
        // Never more than the ring holds.
        while pm4.u32(0) + 40 < 2 * round {
            assert!(start.elapsed() < Duration::from_secs(60), "{}", pm4.said());
            std::thread::yield_now();
        }
    }
    while pm4.u32(0) != 2 * ROUNDS || !pm4.is_drained() || !sdma.is_drained() || !busy.is_drained()
    {
        assert!(start.elapsed() < Duration::from_secs(60), "{}", pm4.said());
        std::thread::yield_now();
    }
    assert_eq!(large.u64(2 * bytes - 8).load(Acquire), 7);
    assert_eq!(pm4.said(), "");
}
