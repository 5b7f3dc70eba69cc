//! The AQL packet processor, through rings and doorbells.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use kfd::abi::{
    CreateQueueArgs, DestroyQueueArgs, EventData, EventType, MmapType, RuntimeEnableArgs,
    RuntimeEnableMode, WaitResult,
};
use kfd::sys::{Backing, Kernel};

use super::client::GTT;
use super::{Client, Page};
use crate::{Preset, Profile};

/// A queue, a page of signals, an event page.
pub(super) struct Rig {
    pub(super) client: Client,
    args: CreateQueueArgs,
    ring: Page,
    pointers: Page,
    pub(super) save: Page,
    doorbells: Page,
    pub(super) signals: Page,
    events: Page,
    next: u64,
}

const SLOTS: u64 = 64;

impl Rig {
    fn new(preset: Preset, profile: Profile) -> Self {
        Self::on(Client::stepped(preset, profile))
    }

    pub(super) fn on(client: Client) -> Self {
        let events = client.page(GTT, 32768);
        let mut first =
            kfd::abi::CreateEventArgs { event_page_offset: events.handle, ..Default::default() };
        client.call(0x08, &mut first).unwrap();
        let (mut args, [ring, pointers, _, save]) = client.queue_args(4096);
        client.call(0x02, &mut args).unwrap();
        let signals = client.page(GTT, 4096);
        let offset = MmapType::DOORBELL.offset(client.gpu());
        let at = client.map(None, 0x2000, Backing::File { file: client.kfd, offset }).unwrap();
        let doorbells = Page { at, bytes: 0x2000, handle: 0 };
        Self { client, args, ring, pointers, save, doorbells, signals, events, next: 0 }
    }

    /// Signal number `index`, with a value.
    pub(super) fn signal(&self, index: usize, value: i64) -> u64 {
        self.signals.u64(index * 64 + 8).store(value.cast_unsigned(), Release);
        self.signals.address() + index as u64 * 64
    }

    pub(super) fn value(&self, index: usize) -> i64 {
        self.signals.u64(index * 64 + 8).load(Acquire).cast_signed()
    }

    /// Writes a packet, header last; rings with its index.
    pub(super) fn submit(&mut self, header: u32, body: &[(usize, u64)]) -> u64 {
        let index = self.next;
        self.next += 1;
        let slot = usize::try_from(index % SLOTS).unwrap() * 64;
        for at in (8..64).step_by(8) {
            self.ring.u64(slot + at).store(0, Relaxed);
        }
        self.ring.u32(slot + 4).store(0, Relaxed);
        for &(at, value) in body {
            if at % 8 == 0 {
                self.ring.u64(slot + at).store(value, Relaxed);
            } else {
                self.ring.u32(slot + at).store(u32::try_from(value).unwrap(), Relaxed);
            }
        }
        self.ring.u32(slot).store(header, Release);
        self.pointers.u64(56).store(self.next, Release);
        self.ring_doorbell(index);
        index
    }

    fn ring_doorbell(&self, value: u64) {
        let at = usize::try_from(self.args.doorbell_offset & 0x1fff).unwrap();
        self.doorbells.u64(at).store(value, Release);
    }

    pub(super) fn settle(&self) {
        for _ in 0..100 {
            self.client.model.relax(0);
        }
    }

    fn read_index(&self) -> u64 {
        self.pointers.u64(128).load(Acquire)
    }

    fn header(&self, index: u64) -> u32 {
        self.ring.u32(usize::try_from(index % SLOTS).unwrap() * 64).load(Acquire)
    }

    fn poll(&self, event: kfd::EventId) -> WaitResult {
        let mut events = [EventData { event_id: event, ..Default::default() }];
        self.client.wait(&mut events, false, 0).unwrap()
    }
}

pub(super) const BARRIER_AND: u32 = 0x1503;
const BARRIER_OR: u32 = 0x1505;
const VENDOR: u32 = 0x1500;

#[test]
fn an_empty_barrier_completes_its_signal_and_gives_its_slot_back() {
    let mut rig = Rig::new(Preset::gfx1100(), Profile::V6_12);
    let signal = rig.signal(0, 1);
    let index = rig.submit(BARRIER_AND, &[(56, signal)]);
    rig.settle();
    assert_eq!(rig.value(0), 0);
    assert_eq!(rig.read_index(), 1);
    assert_eq!(rig.header(index) & 0xffff, 1);
}

#[test]
fn completion_writes_the_mailbox_and_raises_the_event() {
    let mut rig = Rig::new(Preset::gfx90a(), Profile::V6_12);
    let event = rig.client.event(EventType::SIGNAL);
    let slot = usize::try_from(event.event_slot_index).unwrap() * 8;
    let signal = rig.signal(0, 1);
    rig.signals.u64(16).store(rig.events.address() + slot as u64, Release);
    rig.signals.u32(24).store(event.event_trigger_data, Release);
    rig.submit(BARRIER_AND, &[(56, signal)]);
    let mut events = [EventData { event_id: event.event_id, ..Default::default() }];
    assert_eq!(rig.client.wait(&mut events, false, 1000), Ok(WaitResult::COMPLETE));
    assert_eq!(rig.value(0), 0);
    assert_eq!(rig.events.u64(slot).load(Acquire), u64::MAX); // acknowledged
}

#[test]
fn a_lost_interrupt_leaves_the_value_and_no_event() {
    let mut rig = Rig::new(Preset::gfx1100(), Profile::V6_12);
    let event = rig.client.event(EventType::SIGNAL);
    let slot = usize::try_from(event.event_slot_index).unwrap() * 8;
    let signal = rig.signal(0, 1);
    rig.signals.u64(16).store(rig.events.address() + slot as u64, Release);
    rig.signals.u32(24).store(event.event_trigger_data, Release);
    rig.client.model.faults().lose_interrupts(1);
    rig.submit(BARRIER_AND, &[(56, signal)]);
    rig.settle();
    assert_eq!(rig.value(0), 0);
    assert_eq!(rig.poll(event.event_id), WaitResult::TIMEOUT);
    // The next one finds the slot that was left.
    let other = rig.signal(1, 1);
    rig.signals.u64(64 + 16).store(rig.signals.address() + 4088, Release);
    rig.signals.u32(64 + 24).store(77, Release);
    rig.submit(BARRIER_AND, &[(56, other)]);
    rig.settle();
    assert_eq!(rig.poll(event.event_id), WaitResult::COMPLETE);
}

#[test]
fn barriers_wait_for_their_signals() {
    let mut rig = Rig::new(Preset::gfx1100(), Profile::V6_12);
    let (a, b, done) = (rig.signal(0, 1), rig.signal(1, 1), rig.signal(2, 2));
    rig.submit(BARRIER_OR, &[(8, a), (16, b), (56, done)]);
    rig.submit(BARRIER_AND, &[(8, a), (40, b), (56, done)]);
    rig.settle();
    assert_eq!((rig.value(2), rig.read_index()), (2, 0));
    rig.signal(1, 0);
    rig.settle();
    assert_eq!((rig.value(2), rig.read_index()), (1, 1));
    rig.signal(0, 0);
    rig.settle();
    assert_eq!((rig.value(2), rig.read_index()), (0, 2));
}

#[test]
fn barrier_value_compares_signed_under_its_mask() {
    let mut rig = Rig::new(Preset::gfx90a(), Profile::V6_12);
    let signal = rig.signal(0, -3);
    let done = rig.signal(1, 100);
    let mask = u64::MAX;
    let minus = |value: i64| value.cast_unsigned();
    // LT -5 must wait, the others pass.
    for (value, condition) in [(-3, 0), (7, 1), (0, 2), (-3, 3)] {
        let body = [(8, signal), (16, minus(value)), (24, mask), (36, 0), (32, condition)];
        rig.submit(VENDOR | 2 << 16, &[body.as_slice(), &[(56, done)]].concat());
    }
    rig.settle();
    assert_eq!(rig.value(1), 96);
    rig.submit(VENDOR | 2 << 16, &[(8, signal), (16, minus(-5)), (24, mask), (32, 2), (56, done)]);
    rig.settle();
    assert_eq!((rig.value(1), rig.read_index()), (96, 4));
    rig.signal(0, -6);
    rig.settle();
    assert_eq!((rig.value(1), rig.read_index()), (95, 5));
}

#[test]
fn an_unpublished_slot_stalls_the_queue_even_past_the_doorbell() {
    let mut rig = Rig::new(Preset::gfx1100(), Profile::V6_12);
    let done = rig.signal(0, 2);
    rig.submit(BARRIER_AND, &[(56, done)]);
    rig.ring_doorbell(1); // one past the last packet is harmless
    rig.settle();
    assert_eq!((rig.value(0), rig.read_index()), (1, 1));
    // Published without a further ring: the header is looked at again.
    rig.ring.u64(64 + 56).store(done, Relaxed);
    rig.ring.u32(64).store(BARRIER_AND, Release);
    rig.settle();
    assert_eq!((rig.value(0), rig.read_index()), (0, 2));
}

#[test]
fn a_doorbell_that_goes_back_is_harmless() {
    let mut rig = Rig::new(Preset::gfx1100(), Profile::V6_12);
    let done = rig.signal(0, 3);
    rig.client.model.faults().stop_fetching(true);
    for _ in 0..3 {
        rig.submit(BARRIER_AND, &[(56, done)]);
    }
    rig.client.model.faults().stop_fetching(false);
    rig.settle();
    rig.ring_doorbell(0);
    rig.settle();
    assert_eq!((rig.value(0), rig.read_index()), (0, 3));
}

#[test]
fn the_ring_wraps() {
    let mut rig = Rig::new(Preset::gfx1100(), Profile::V6_12);
    let done = rig.signal(0, 1000);
    for _ in 0..200 {
        rig.submit(BARRIER_AND, &[(56, done)]);
        rig.settle();
    }
    assert_eq!((rig.value(0), rig.read_index()), (800, 200));
}

#[test]
fn a_recycled_doorbell_starts_silent_and_a_ring_before_mapping_counts() {
    let mut rig = Rig::new(Preset::gfx1100(), Profile::V6_12);
    let done = rig.signal(0, 10);
    rig.submit(BARRIER_AND, &[(56, done)]);
    rig.settle();
    rig.client.call(0x03, &mut DestroyQueueArgs::default()).unwrap();
    rig.ring_doorbell(5); // nobody's
    rig.pointers.u64(56).store(0, Release);
    rig.pointers.u64(128).store(0, Release);
    let mut args = rig.args;
    rig.client.model.faults().stop_fetching(true);
    rig.client.call(0x02, &mut args).unwrap();
    assert_eq!(args.doorbell_offset, rig.args.doorbell_offset);
    rig.next = 0;
    rig.submit(BARRIER_AND, &[(56, done)]);
    rig.client.model.faults().stop_fetching(false);
    rig.settle();
    assert_eq!((rig.value(0), rig.read_index()), (8, 1));
}

#[test]
fn profiling_stamps_the_signal_with_the_gpu_clock() {
    let mut rig = Rig::new(Preset::gfx90a(), Profile::V6_12);
    let clock = |rig: &Rig| {
        let gpu_id = rig.client.gpu();
        let mut args = kfd::abi::GetClockCountersArgs { gpu_id, ..Default::default() };
        rig.client.call(0x05, &mut args).unwrap();
        args.gpu_clock_counter
    };
    rig.pointers.u32(180).store(8, Release);
    let done = rig.signal(0, 1);
    let before = clock(&rig);
    rig.submit(BARRIER_AND, &[(56, done)]);
    rig.settle();
    let (start, end) = (rig.signals.u64(32).load(Acquire), rig.signals.u64(40).load(Acquire));
    assert!(before <= start && start <= end && end <= clock(&rig));
}

/// Submits a packet that is refused and checks both report paths.
fn refused(preset: Preset, header: u32, body: &[(usize, u64)], bit: i64, code: u32) {
    let client = Client::stepped(preset, Profile::V6_12);
    let mode_mask = RuntimeEnableMode::from_bits_retain(1);
    client.call(0x25, &mut RuntimeEnableArgs { mode_mask, ..Default::default() }).unwrap();
    let mut rig = Rig::on(client);
    let event = rig.client.event(EventType::SIGNAL);
    let inactive = rig.signal(4, 0);
    let done = rig.signal(0, 1);
    rig.pointers.u64(192).store(inactive, Release);
    rig.save.u64(24).store(rig.signals.address() + 2048, Release);
    rig.save.u32(32).store(event.event_id.0, Release);
    rig.submit(header, &[body, &[(56, done)]].concat());
    rig.settle();
    assert_eq!(rig.value(4), bit);
    assert_eq!(rig.signals.u64(2048).load(Acquire), 1 << (code - 1));
    assert_eq!(rig.poll(event.event_id), WaitResult::COMPLETE);
    // Unconsumed, and its signal untouched.
    assert_eq!((rig.read_index(), rig.value(0), rig.header(0)), (0, 1, header));
    assert!(!rig.client.model.diagnostics().is_empty());
    // The queue can be destroyed.
    rig.client.call(0x03, &mut DestroyQueueArgs::default()).unwrap();
}

#[test]
fn bad_packets_are_reported_and_stay_unconsumed() {
    let one_group = [(4, 1 << 16 | 1_u64), (8, 1), (16, 1 << 32 | 1)];
    let shape = |x: u64| [(4, 1 << 16 | x), (8, 1), (12, 1), (16, 1 << 32 | 1)];
    for preset in [Preset::gfx1100(), Preset::gfx90a()] {
        let refused = |header, body: &[(usize, u64)], bit, code| {
            refused(preset.clone(), header, body, bit, code);
        };
        refused(0x0006, &[], 0x20, 20);
        refused(0x0004, &[], 0x20, 20);
        refused(VENDOR | 9 << 16, &[], 0x100, 23);
        refused(0x0002 | 3 << 16, &one_group, 0x2, 16); // no grid
        refused(0x0002, &shape(1), 0x2, 16); // no dimensions
        refused(0x0002 | 3 << 16, &shape(2000), 0x40, 21);
        refused(0x0002 | 3 << 16, &shape(1), 0x8, 18); // no kernel object
        let lds = [shape(1).as_slice(), &[(28, 65537)]].concat();
        refused(0x0002 | 3 << 16, &lds, 0x4, 17);
    }
}

#[test]
fn a_wild_kernel_object_is_a_memory_fault_that_stops_the_process_on_that_gpu() {
    let mut rig = Rig::new(Preset::gfx1100(), Profile::V6_12);
    let event = rig.client.event(EventType::MEMORY).event_id;
    let done = rig.signal(0, 1);
    rig.submit(
        0x0002 | 3 << 16,
        &[(4, 1 << 16 | 1), (8, 1), (12, 1), (16, 1 << 32 | 1), (32, 0x5000_1240), (56, done)],
    );
    rig.settle();
    let mut events = [EventData { event_id: event, ..Default::default() }];
    assert_eq!(rig.client.wait(&mut events, false, 0), Ok(WaitResult::COMPLETE));
    let data = events[0].memory_exception_data();
    assert_eq!((data.va, data.gpu_id), (0x5000_1000, rig.client.gpu()));
    assert_eq!((data.failure.not_present, data.failure.read_only), (1, 0));
    // A queue made later starts evicted.
    let (mut args, [ring, ..]) = rig.client.queue_args(4096);
    rig.client.call(0x02, &mut args).unwrap();
    ring.u64(56).store(done, Relaxed);
    ring.u32(0).store(BARRIER_AND, Release);
    let at = usize::try_from(args.doorbell_offset & 0x1fff).unwrap();
    rig.doorbells.u64(at).store(0, Release);
    rig.settle();
    assert_eq!(rig.value(0), 1);
}

#[test]
fn a_pm4_buffer_writes_memory_and_unknown_packets_stop_the_queue() {
    let mut rig = Rig::new(Preset::gfx1100(), Profile::V6_12);
    let buffer = rig.client.page(GTT, 4096);
    let target = rig.signals.address() + 1024;
    let write = pm4::WriteData::new(target.into(), 0xdead_beef).unwrap().encode();
    let release = pm4::ReleaseMem::gfx11(pm4::packet::gfx11::ReleaseCache::empty())
        .write_64((target + 8).into(), 5)
        .unwrap()
        .encode();
    let unknown = [0xc000_4600, 0x21e];
    let words = [write.as_slice(), &release, &[0xffff_1000], &unknown].concat();
    for (i, word) in words.iter().enumerate() {
        buffer.u32(i * 4).store(*word, Relaxed);
    }
    let good = words.len() - unknown.len();
    let done = rig.signal(0, 2);
    let submit = |rig: &mut Rig, dwords: usize| {
        let ib = pm4::IndirectBuffer::new(buffer.address().into(), u32::try_from(dwords).unwrap());
        let ib = ib.unwrap().encode();
        let pair = |lo: u32, hi: u32| u64::from(lo) | u64::from(hi) << 32;
        rig.submit(
            VENDOR | 1 << 16,
            &[(8, pair(ib[1], ib[2])), (4, ib[0].into()), (16, pair(ib[3], 10)), (56, done)],
        );
        rig.settle();
    };
    submit(&mut rig, good);
    assert_eq!(rig.value(0), 1);
    assert_eq!(rig.signals.u32(1024).load(Acquire), 0xdead_beef);
    assert_eq!(rig.signals.u64(1032).load(Acquire), 5);
    submit(&mut rig, words.len());
    assert_eq!((rig.value(0), rig.read_index()), (1, 1));
    let said = rig.client.model.diagnostics();
    assert!(said.iter().any(|said| said.text.contains("EVENT_WRITE")), "{said:?}");
}

#[test]
fn the_watching_thread_finds_doorbells_and_seldom_looks_when_idle() {
    let mut rig = Rig::on(Client::new(&crate::Model::builder().build()));
    let done = rig.signal(0, 2);
    for left in [1, 0] {
        rig.submit(BARRIER_AND, &[(56, done)]);
        let start = std::time::Instant::now();
        while rig.value(0) != left {
            assert!(start.elapsed().as_secs() < 10);
            std::thread::yield_now();
        }
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
    let (before, start) = (rig.client.model.looks(), std::time::Instant::now());
    std::thread::sleep(std::time::Duration::from_secs(1));
    let looks = rig.client.model.looks() - before;
    assert!(looks > 0, "a doorbell would not be found");
    // However late this thread is, the other does not look more often than this.
    let most = start.elapsed().as_millis() / 10 + 1;
    assert!(u128::from(looks) <= most, "{looks} looks where {most} would do");
}

#[test]
fn smi_clients_hear_of_a_memory_fault() {
    let mut rig = Rig::new(Preset::gfx90a(), Profile::V6_12);
    let mut args = kfd::abi::SmiEventsArgs { gpuid: rig.client.gpu(), ..Default::default() };
    rig.client.call(0x1f, &mut args).unwrap();
    let file = kfd::sys::FileId(i32::try_from(args.anon_fd).unwrap());
    let model = std::sync::Arc::clone(&rig.client.model);
    let mut text = [0; 64];
    assert_eq!(model.write(file, &1_u64.to_le_bytes()), Ok(8));
    assert_eq!(model.read(file, &mut text), Err(kfd::sys::Errno::AGAIN));
    assert_eq!(model.poll(file, std::time::Duration::from_millis(5)), Ok(false));
    let shape = [(4, 1 << 16 | 1), (8, 1), (12, 1), (16, 1 << 32 | 1), (32, 0x40)];
    rig.submit(0x0002 | 3 << 16, &shape);
    assert_eq!(model.poll(file, std::time::Duration::from_secs(5)), Ok(true));
    let count = model.read(file, &mut text).unwrap();
    let line = std::str::from_utf8(&text[..count]).unwrap();
    assert!(line.starts_with(&format!("1 {:x}:", std::process::id())), "{line}");
}
