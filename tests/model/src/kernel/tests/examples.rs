//! The worked examples of docs/ABI.md §PM4 and §SDMA, dword for dword, at their addresses.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use kfd::abi::QueueType;
use kfd::sys::Backing;

use super::aql::{Rig, VENDOR};
use super::client::GTT;
use super::ring::{Ring, words};
use super::{Client, Page};
use crate::{Preset, Profile, Target};

const CODE: u64 = 0x7f00_0020_1000;
const SIGNAL: u64 = 0x7f00_0040_1000;
const BUFFER: u64 = 0x7f00_0050_0000;
const FENCE: u64 = 0x7f00_0060_0000;

/// Memory at a GPU address, and at some other address of the CPU's.
fn at(client: &Client, va: u64, bytes: usize) -> Page {
    let args = client.alloc(0, GTT, va, bytes as u64).unwrap();
    let page = client.map(None, bytes, Backing::Reserve).unwrap();
    let backing = Backing::File { file: client.render[0], offset: args.mmap_offset };
    client.map(Some(page), bytes, backing).unwrap();
    client.map_to(args.handle.0, &client.gpus).unwrap();
    Page { at: page, bytes, handle: args.handle.0 }
}

fn client(target: Target) -> Client {
    Client::stepped(Preset::of(target), Profile::V6_12)
}

#[test]
fn e5_a_buffer_inside_an_aql_packet() {
    let mut rig = Rig::on(client(Target::Gfx1100));
    let (buffer, signal) = (at(&rig.client, BUFFER, 4096), at(&rig.client, SIGNAL, 4096));
    let fence = at(&rig.client, FENCE, 4096);
    let write = [0xc003_3700, 0x0010_0200, 0x0060_0000, 0x7f00, 0xdead_beef];
    for (i, word) in write.into_iter().chain([0xffff_1000; 59]).enumerate() {
        buffer.u32(4 * i).store(word, Relaxed);
    }
    signal.u64(0x48).store(1, Release);
    let dwords = [
        (4, 0xc002_3f00),
        (8, 0x7f00_0050_0000),
        (16, 0x0000_000a_0080_0040),
        (56, 0x7f00_0040_1040),
    ];
    rig.submit(VENDOR | 1 << 16, &dwords);
    rig.settle();
    assert_eq!(fence.u32(0).load(Acquire), 0xdead_beef);
    assert_eq!(signal.u64(0x48).load(Acquire), 0);
}

/// A kernel of nothing but its end, launched by `packets`, which then store 1 to the fence.
fn launch(target: Target, end: u32, packets: &[u32]) {
    let mut ring = Ring::on(client(target), QueueType::COMPUTE);
    let (code, fence) = (at(&ring.client, CODE, 4096), at(&ring.client, FENCE, 4096));
    code.u32(0).store(end, Relaxed);
    ring.submit(&words().raw(packets));
    for _ in 0..20_000 {
        ring.client.model.step();
    }
    assert_eq!(fence.u64(0).load(Acquire), 1, "{}", ring.said());
    assert!(ring.is_drained());
    assert_eq!(ring.said(), "");
}

#[test]
fn e6_a_dispatch_of_gfx90a() {
    #[rustfmt::skip]
    let packets = [
        0xc005_5802, 0x28c4_0000, 0xffff_ffff, 0x00ff_ffff, 0, 0, 0xa,
        0xc002_7600, 0x20c, 0x0000_2010, 0x7f,
        0xc002_7600, 0x212, 0x00ac_0083, 0x84,
        0xc001_7600, 0x22d, 7,
        0xc001_7600, 0x218, 0,
        0xc003_7600, 0x21b, 0, 0, 0,
        0xc001_7600, 0x215, 0,
        0xc008_7600, 0x204, 0, 0, 0, 0x100, 1, 1, 0, 0,
        0xc002_7600, 0x240, 0x0030_0000, 0x7f00,
        0xc003_1502, 0x1000, 1, 1, 5,
        0xc000_4600, 0x407,
        0xc006_4900, 0x0002_8514, 0x4300_0000, 0x0060_0000, 0x7f00, 1, 0, 0,
    ];
    assert_eq!(packets.len(), 58);
    // The code is at 0x7f0000201000: PGM_LO above is that of the example.
    launch(Target::Gfx90a, 0xbf81_0000, &packets);
}

#[test]
fn e7_a_dispatch_of_gfx1100_in_waves_of_32() {
    #[rustfmt::skip]
    let packets = [
        0xc006_5800, 0, 0xffff_ffff, 0x01ff_ffff, 0, 0, 0xa, 0xc3f1,
        0xc006_7600, 0x20c, 0x0000_2010, 0x7f, 0, 0, 0, 0,
        0xc002_7600, 0x212, 0x60ac_0001, 0x84,
        0xc001_7600, 0x228, 0,
        0xc001_7600, 0x218, 0,
        0xc003_7600, 0x21b, 0, 0, 0,
        0xc001_7600, 0x215, 0,
        0xc008_7600, 0x204, 0, 0, 0, 0x100, 1, 1, 0, 0,
        0xc002_7600, 0x240, 0x0030_0000, 0x7f00,
        0xc003_1502, 0x1000, 1, 1, 0x8005,
        0xc000_4600, 0x407,
        0xc006_4900, 0x0070_f514, 0x4300_0000, 0x0060_0000, 0x7f00, 1, 0, 0,
    ];
    assert_eq!(packets.len(), 63);
    launch(Target::Gfx1100, 0xbfb0_0000, &packets);
}

#[test]
fn e8_waits_writes_and_clocks() {
    for (target, clock) in [(Target::Gfx90a, 0x0201_2509), (Target::Gfx1100, 0x0001_0209)] {
        let mut ring = Ring::on(client(target), QueueType::COMPUTE);
        let fence = at(&ring.client, FENCE, 4096);
        let wait = [0xc005_3c00, 0x15, 0x0060_0000, 0x7f00, 5, 0xffff_ffff, 4];
        let write = [0xc003_3700, 0x0010_0200, 0x0060_0000, 0x7f00, 0xdead_beef];
        ring.run(&words().raw(&wait).raw(&write));
        assert_eq!((fence.u32(0).load(Acquire), ring.read()), (0, 0));
        fence.u32(0).store(5, Release);
        ring.settle();
        assert_eq!(fence.u32(0).load(Acquire), 0xdead_beef);
        let release = [0xc006_4900, 0x514, 0x6000_0000, 0x0060_0000, 0x7f00, 0, 0, 0];
        let copy = [0xc004_4000, clock, 0, 0, 0x0060_0000, 0x7f00];
        let mut last = 0;
        for packet in [release.as_slice(), &copy] {
            ring.run(&words().raw(packet));
            let now = fence.u64(0).load(Acquire);
            assert!(now > last && now >> 32 != 0xdead_beef, "{}", ring.said());
            last = now;
        }
    }
}

#[test]
fn e9_a_copy_with_fence_and_trap() {
    for (target, header) in [(Target::Gfx906, 0x0000_0005), (Target::Gfx1100, 0x0053_0005)] {
        let mut ring = Ring::on(client(target), QueueType::SDMA);
        let from = at(&ring.client, 0x7f00_0010_0000, 4096);
        let to = at(&ring.client, 0x7f00_0020_0000, 4096);
        let fence = at(&ring.client, FENCE, 4096);
        from.u64(4088).store(0x1234_5678_9abc_def0, Relaxed);
        ring.run(
            &words()
                .raw(&[1, 0xfff, 0, 0x0010_0000, 0x7f00, 0x0020_0000, 0x7f00])
                .raw(&[header, 0x0060_0000, 0x7f00, 1])
                .raw(&[6, 7]),
        );
        assert_eq!(to.u64(4088).load(Acquire), 0x1234_5678_9abc_def0, "{}", ring.said());
        assert_eq!((fence.u32(0).load(Acquire), ring.said()), (1, String::new()));
    }
}

#[test]
fn e10_a_copy_with_dependency_timestamp_and_caches() {
    let mut ring = Ring::on(client(Target::Gfx1100), QueueType::SDMA);
    let from = at(&ring.client, 0x7f00_0010_0000, 4096);
    let to = at(&ring.client, 0x7f00_0020_0000, 4096);
    let fence = at(&ring.client, FENCE, 4096);
    from.u64(0).store(42, Relaxed);
    fence.u64(0).store(1, Release);
    let packets = words()
        .raw(&[0xb000_0008, 0x0060_0000, 0x7f00, 0, 0xffff_ffff, 0x0fff_0004])
        .raw(&[0x0000_020d, 0x0060_0020, 0x7f00])
        .raw(&[8, 0, 0x8000_0000, 0, 0, 0])
        .raw(&[0x111, 0, 0xc3c0_0000, 0, 0])
        // A page instead of 64 MiB, which would cover the fence.
        .raw(&[1, 0xfff, 0, 0x0010_0000, 0x7f00, 0x0020_0000, 0x7f00])
        .raw(&[0x111, 0, 0x8040_0000, 0, 0])
        .raw(&[0x5e00_000a, 0x0060_0000, 0x7f00, 0xffff_ffff, 0xffff_ffff, 0, 0, 0])
        .raw(&[0x8000_000b, 0x0060_0100, 0x7f00, 0xdead_beef, 0xff])
        .raw(&[2, 0x0060_0040, 0x7f00, 0, 0xcafe_f00d]);
    ring.run(&packets);
    assert_eq!(to.u64(0).load(Acquire), 0);
    fence.u64(0).store(0, Release);
    ring.settle();
    assert_eq!(ring.said(), "");
    assert_eq!((to.u64(0).load(Acquire), fence.u64(0).load(Acquire)), (42, u64::MAX));
    assert!(fence.u64(0x20).load(Acquire) > 0);
    let words = [0x40, 0x100, 0x1fc, 0x200].map(|at| fence.u32(at).load(Acquire));
    assert_eq!(words, [0xcafe_f00d, 0xdead_beef, 0xdead_beef, 0]);
}
