//! PM4 inside AQL packets, and PM4 that stops its queue.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use kfd::abi::{EventData, EventType, QueueType, RuntimeEnableArgs, RuntimeEnableMode, WaitResult};
use pm4::packet::{
    AtomicMem, AtomicOp, Compare, CopyData, CopySource, CopyTarget, DmaData, DmaSource,
    IndirectBuffer, PredExec, SetReg, WaitOn, WaitRegMem, WaitRegMem64, gfx9, gfx11,
};
use pm4::reg::Reg;
use pm4::{GpuAddr, ReleaseMem, WriteData};

use super::aql::{BARRIER_AND, Rig, VENDOR};
use super::client::GTT;
use super::ring::{Ring, Words, words};
use super::{Client, Page};
use crate::{Preset, Profile, Target};

fn ring(target: Target) -> Ring {
    Ring::on(Client::stepped(Preset::of(target), Profile::V6_12), QueueType::COMPUTE)
}

/// An AQL queue with a page for buffers.
struct Aql {
    rig: Rig,
    buffer: Page,
}

impl Aql {
    fn new(target: Target) -> Self {
        let rig = Rig::new(Preset::of(target), Profile::V6_12);
        let buffer = rig.client.page(GTT, 8192);
        Self { rig, buffer }
    }

    fn address(&self, at: usize) -> GpuAddr {
        GpuAddr::new(self.buffer.address() + at as u64)
    }

    fn u32(&self, at: usize) -> u32 {
        self.buffer.u32(at).load(Acquire)
    }

    /// Submits E5 of docs/ABI.md with other addresses.
    fn submit(&mut self, body: &Words, signal: u64) {
        for (i, word) in body.0.iter().enumerate() {
            self.buffer.u32(4096 + 4 * i).store(*word, Relaxed);
        }
        let dwords = u32::try_from(body.0.len()).unwrap();
        let ib = IndirectBuffer::new(self.address(4096), dwords).unwrap().encode();
        let pair = |lo: u32, hi: u32| u64::from(lo) | u64::from(hi) << 32;
        self.rig.submit(
            VENDOR | 1 << 16,
            &[(4, ib[0].into()), (8, pair(ib[1], ib[2])), (16, pair(ib[3], 10)), (56, signal)],
        );
    }
}

#[test]
fn each_xcc_executes_a_buffer_and_pred_exec_selects() {
    let mut aql = Aql::new(Target::Gfx942);
    let add = |at| AtomicMem::new(AtomicOp::ADD_32, aql.address(at), 1).unwrap();
    let body = words().pm4(&add(0)).pm4(&PredExec::new(0b101, 9)).pm4(&add(8));
    let done = aql.rig.signal(0, 1);
    aql.submit(&body, done);
    aql.rig.settle();
    assert_eq!((aql.u32(0), aql.u32(8), aql.rig.value(0)), (8, 2, 0));
}

#[test]
fn a_buffer_that_waits_holds_its_queue_and_its_signal() {
    let mut aql = Aql::new(Target::Gfx90a);
    let wait = WaitRegMem::new(WaitOn::Memory(aql.address(0)), Compare::EQUAL, 3).unwrap();
    let body = words().pm4(&wait).pm4(&WriteData::new(aql.address(8), 5).unwrap());
    let (done, next) = (aql.rig.signal(0, 1), aql.rig.signal(1, 1));
    aql.submit(&body, done);
    aql.rig.submit(BARRIER_AND, &[(56, next)]);
    aql.rig.settle();
    assert_eq!((aql.rig.value(0), aql.rig.value(1), aql.rig.read_index()), (1, 1, 0));
    aql.buffer.u32(0).store(3, Release);
    aql.rig.settle();
    assert_eq!((aql.rig.value(0), aql.rig.value(1), aql.u32(8)), (0, 0, 5));
}

#[test]
fn bug_7_the_barrier_bit_holds_vendor_packets_back() {
    let mut aql = Aql::new(Target::Gfx90a);
    // A barrier-value packet that does not hold, then a buffer with the barrier bit.
    let (wait, done) = (aql.rig.signal(0, 9), aql.rig.signal(1, 1));
    let body = [(8, wait), (16, 0), (24, u64::MAX), (32, 0), (56, aql.rig.signal(2, 1))];
    aql.rig.submit(VENDOR | 2 << 16, &body);
    let write = WriteData::new(aql.address(0), 1).unwrap();
    aql.submit(&words().pm4(&write), done);
    aql.rig.settle();
    assert_eq!((aql.u32(0), aql.rig.value(1), aql.rig.value(2)), (0, 1, 1));
    aql.rig.signal(0, 0);
    aql.rig.settle();
    assert_eq!((aql.u32(0), aql.rig.value(1), aql.rig.value(2)), (1, 0, 0));
}

/// Runs packets that stop the queue, and gives what the model said.
fn stopped(target: Target, packets: &Words) -> String {
    let mut ring = ring(target);
    ring.run(packets);
    assert!(!ring.is_drained(), "{target} went on after {packets:x?}");
    ring.said()
}

#[test]
fn bug_8_packets_that_cannot_be_carried_out_are_not_consumed() {
    for (packets, said) in [
        (vec![0], "not a type-3"),
        (vec![0xc000_ff00, 0], "opcode 0xff"),
        (vec![0xc002_7600, 0x0214, 0, 0], "0x2e14"),
        (vec![0xc001_7600, 0x0300, 0], "0x2f00"),
        (vec![0xc000_4600, 0x0000_0021], "EVENT_WRITE"),
        (vec![0xc003_1502, 1, 1, 1, 1 << 18], "reserved"),
        (vec![0xc003_1502, 1, 1, 1, 1], "groups of [0, 0, 0]"),
        (vec![0xc00f_1000], "has 17 dwords, of which 1 are there"),
        (vec![0xc002_3f00, 0x1000, 0, 0x0010_0004], "INDIRECT_BUFFER"),
        (vec![0xc000_2200, 0], "COND_EXEC"),
    ] {
        for target in [Target::Gfx1100, Target::Gfx90a] {
            let heard = stopped(target, &words().raw(&packets));
            assert!(heard.contains(said), "{target}: {heard} for {packets:x?}");
        }
    }
    // Known, but not to this generation.
    let wait = WaitRegMem64::new(GpuAddr::new(0x1000), Compare::EQUAL, 0).unwrap();
    assert!(stopped(Target::Gfx908, &words().pm4(&wait)).contains("WAIT_REG_MEM64"));
}

#[test]
fn a_bad_packet_raises_the_exception_and_mes_takes_the_queue() {
    for (target, active) in [(Target::Gfx1100, false), (Target::Gfx90a, true)] {
        let client = Client::stepped(Preset::of(target), Profile::V6_12);
        let mode_mask = RuntimeEnableMode::from_bits_retain(1);
        client.call(0x25, &mut RuntimeEnableArgs { mode_mask, ..Default::default() }).unwrap();
        let mut ring = Ring::on(client, QueueType::COMPUTE);
        let event = ring.client.event(EventType::SIGNAL);
        // The save area's header, at the address that the queue was made with.
        let at = std::ptr::NonNull::new(std::ptr::with_exposed_provenance_mut::<u8>(
            usize::try_from(ring.args.ctx_save_restore_address).unwrap(),
        ));
        let save = Page { at: at.unwrap(), bytes: 4096, handle: 0 };
        save.u64(24).store(ring.address(2048), Release);
        save.u32(32).store(event.event_id.0, Release);
        ring.run(&words().raw(&[0xc000_ff00, 0]));
        assert_eq!(ring.u64(2048), 1 << (20 - 1), "{target}");
        assert_eq!(ring.poll(event.event_id), WaitResult::COMPLETE);
        let state = ring.client.model.lock();
        let record = &state.processes[&std::process::id()].queues[&ring.args.queue_id.0];
        assert_eq!(record.queue.is_active(), active);
    }
}

#[test]
fn bug_12_the_read_pointer_is_written_when_the_queue_drains_and_wraps_with_the_ring() {
    let mut ring = ring(Target::Gfx1100);
    for _ in 0..3 {
        ring.run(&words().raw(&[0xffff_1000; 1000]));
        assert!(ring.is_drained(), "{} of {}", ring.read(), ring.next);
    }
    assert_eq!((ring.next, ring.read()), (3000, 3000 % 1024));
    // Half a ring is not more than it holds, a whole one is.
    ring.pointers.u64(56).store(ring.next + 1024, Release);
    ring.ring_doorbell(ring.next + 1024);
    ring.settle();
    assert!(ring.said().contains("the ring has 1024"), "{}", ring.said());
}

#[test]
fn bug_13_a_doorbell_before_the_queue_is_on_hardware_counts() {
    let mut ring = ring(Target::Gfx90a);
    ring.client.model.faults().stop_fetching(true);
    let write = WriteData::new(GpuAddr::new(ring.address(0)), 1).unwrap();
    ring.run(&words().pm4(&write));
    assert_eq!(ring.u32(0), 0);
    ring.client.model.faults().stop_fetching(false);
    ring.settle();
    assert_eq!(ring.u32(0), 1);
}

#[test]
fn bug_17_a_release_without_an_end_of_pipe_buffer_faults_at_zero() {
    let client = Client::stepped(Preset::of(Target::Gfx90a), Profile::V6_12);
    let mut ring = Ring::with(client, |args| {
        args.queue_type = QueueType::COMPUTE;
        (args.eop_buffer_address, args.eop_buffer_size) = (0, 0);
    });
    let event = ring.client.event(EventType::MEMORY).event_id;
    let packet = ReleaseMem::gfx9(gfx9::ReleaseCache::empty());
    let at = GpuAddr::new(ring.address(0));
    // Other packets do without.
    ring.run(&words().pm4(&WriteData::new(at, 1).unwrap()));
    assert_eq!(ring.u32(0), 1);
    ring.run(&words().pm4(&packet.write_64(at, 5).unwrap()));
    let mut events = [EventData { event_id: event, ..Default::default() }];
    assert_eq!(ring.client.wait(&mut events, false, 0), Ok(WaitResult::COMPLETE));
    assert_eq!(events[0].memory_exception_data().va, 0);
    assert_eq!(ring.u32(0), 1);
}

#[test]
fn copies_atomics_and_dma_reach_memory() {
    let mut ring = ring(Target::Gfx1100);
    let at = |offset: usize| GpuAddr::new(ring.address(offset));
    for i in 0..0x1000 / 8 {
        ring.set(0x1000 + 8 * i, 0x0101_0101_0101_0101 * (i as u64 & 0xff));
    }
    ring.set(0, 40);
    let copy = |from, to| CopyData::new_64(from, to).unwrap();
    let scratch = Reg(0xC040);
    let packets = words()
        .pm4(&AtomicMem::new(AtomicOp::ADD_64, at(0), 2).unwrap())
        .pm4(&copy(CopySource::AtomicReturn, CopyTarget::TcL2(at(8))))
        .pm4(&copy(CopySource::GpuClock, CopyTarget::TcL2(at(16))))
        .pm4(&SetReg::uconfig(scratch, &[0x77]).unwrap())
        .pm4(&CopyData::new_32(CopySource::Register(scratch), CopyTarget::Memory(at(24))).unwrap())
        .pm4(&DmaData::new(DmaSource::TcL2(at(0x1000)), at(0x2000), 0x1000).unwrap())
        .pm4(&DmaData::new(DmaSource::Data(0xabcd), at(0x3000), 64).unwrap())
        .pm4(&gfx11::AcquireMem::new(gfx11::Gcr::GLI_INV_ALL).range(at(0x1000), 0x1000));
    ring.run(&packets);
    assert_eq!(ring.said(), "");
    assert_eq!((ring.u64(0), ring.u64(8), ring.u64(24)), (42, 40, 0x77));
    assert!(ring.u64(16) > 0);
    assert!((0..0x1000 / 8).all(|i| ring.u64(0x1000 + 8 * i) == ring.u64(0x2000 + 8 * i)));
    assert_eq!((ring.u32(0x303c), ring.u32(0x3040)), (0xabcd, 0));
}

#[test]
fn a_slowed_processor_and_a_lying_read_pointer_are_what_the_plan_ordered() {
    let mut ring = ring(Target::Gfx90a);
    let faults = ring.client.model.config.faults.clone();
    faults.lie_read_index(1000).slow_engines(std::time::Duration::from_millis(2), 0);
    let store = |at| WriteData::new(GpuAddr::new(ring.address(at)), 1).unwrap();
    let packets = words().pm4(&store(0)).pm4(&store(8));
    ring.push(&packets);
    ring.ring_doorbell(ring.next);
    ring.client.model.step();
    assert_eq!((ring.u32(0), ring.u32(8), ring.read()), (1, 0, 1005));
    std::thread::sleep(std::time::Duration::from_millis(3));
    ring.settle();
    assert_eq!((ring.u32(8), ring.read()), (1, 1010));
}

#[test]
fn the_host_data_path_is_flushed_by_its_registers() {
    for (target, known) in
        [(Target::Gfx906, true), (Target::Gfx1100, true), (Target::Gfx1151, false)]
    {
        let mut ring = ring(target);
        let on = WaitOn::WriteThenRegister { write: Reg(0xE26), wait: Reg(0xE27) };
        let flush = WaitRegMem::new(on, Compare::EQUAL, u32::MAX).unwrap();
        let after = WriteData::new(GpuAddr::new(ring.address(0)), 1).unwrap();
        ring.run(&words().pm4(&flush).pm4(&after));
        assert_eq!(ring.u32(0), known.into(), "{target}: {}", ring.said());
    }
}
