//! PM4 queues of the driver: order, wrap, back-pressure, lies, life and death.

use std::time::{Duration, Instant};

use aql::BarrierAnd;
use kfd::{AnyQueue, Buffer, Error, MemoryRequest, Pm4Queue, Pm4QueueRequest, QueueKind, Signal};
use kfd::{KernelLabel, QueueRequest, SdmaQueueRequest, Until};
use kfd_model::{Model, Preset, Target};
use kfd_tests::{Device, each_device, each_kernel, each_model, every_target, on_hardware, skip};
use pm4::packet::{Compare, EventWrite, WaitOn, WaitRegMem, gfx9, gfx11};
use pm4::{GpuAddr, IbBuilder, ReleaseMem, RingSink, WriteData};

use crate::support::LONG;

type Ib<'a> = IbBuilder<RingSink<'a>>;

/// Dwords of a page of ring.
const RING: u64 = 1024;

fn queue(device: &Device) -> Pm4Queue {
    device.gpu().create_pm4_queue(&Pm4QueueRequest::new(4096)).unwrap()
}

fn memory(device: &Device) -> Buffer {
    device.gpu().allocate(&MemoryRequest::gtt(4096).coherent().uncached()).unwrap()
}

fn store(at: GpuAddr, value: u32) -> WriteData {
    WriteData::new(at, value).unwrap().confirm()
}

/// Ends earlier work, then makes `signal` 0.
fn complete(queue: &Pm4Queue, signal: &Signal) -> ReleaseMem {
    let release = match queue.target().is_gfx9() {
        true => ReleaseMem::gfx9(gfx9::ReleaseCache::TC_WB),
        false => ReleaseMem::gfx11(gfx11::ReleaseCache::GL2_WB),
    };
    release.write_64(signal.value_addr(), 0).unwrap()
}

/// Waits until the low half of a signal's value is 0.
fn gate(signal: &Signal) -> WaitRegMem {
    WaitRegMem::new(WaitOn::Memory(signal.value_addr()), Compare::EQUAL, 0).unwrap()
}

#[test]
fn packets_run_in_order_and_complete_a_signal() {
    every_target(|device| {
        let (mut queue, memory) = (queue(device), memory(device));
        let done = device.gpu().create_silent_signal(1).unwrap();
        let release = complete(&queue, &done);
        let end = queue.submit(18, |ib: &mut Ib<'_>| {
            ib.push(&store(memory.addr(), 7)).push(&store(memory.addr(), 8)).push(&release);
        });
        assert_eq!(end.unwrap(), 18);
        queue.wait(&done, Until::Below(1), LONG).unwrap();
        assert_eq!(memory.u32(0).unwrap().load(std::sync::atomic::Ordering::Acquire), 8);
        queue.drain(LONG).unwrap();
        queue.destroy().unwrap();
    });
}

/// Packets of 5 dwords over five turns of the ring start at every dword of it.
#[test]
fn the_ring_wraps_at_every_offset() {
    each_device(|device| {
        let (mut queue, memory) = (queue(device), memory(device));
        let addr = memory.addr();
        let count = u32::try_from(RING + 20).unwrap();
        for value in 0..count {
            let at = GpuAddr::new(addr.get() + u64::from(value % 64) * 4);
            let fill = |ib: &mut Ib<'_>| {
                ib.push(&store(at, value));
            };
            let end = queue.submit_within(5, fill, LONG).unwrap();
            assert_eq!(end, u64::from(value + 1) * 5);
        }
        queue.drain(LONG).unwrap();
        for slot in 0..64 {
            let last = (0..count).rev().find(|value| value % 64 == slot).unwrap();
            let word = memory.u32(u64::from(slot) * 4).unwrap();
            assert_eq!(word.load(std::sync::atomic::Ordering::Acquire), last);
        }
        queue.destroy().unwrap();
    });
}

#[test]
fn what_is_pushed_runs_when_it_is_rung_as_a_whole_batch() {
    each_model(Model::builder, |device| {
        let (mut queue, memory) = (queue(device), memory(device));
        let word = || memory.u32(0).unwrap().load(std::sync::atomic::Ordering::Acquire);
        for value in 1..=20 {
            queue
                .push(5, |ib: &mut Ib<'_>| {
                    ib.push(&store(memory.addr(), value));
                })
                .unwrap();
        }
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!((word(), queue.state().write_index), (0, 0));
        queue.ring();
        queue.drain(LONG).unwrap();
        assert_eq!(word(), 20);
    });
}

#[test]
fn a_full_ring_says_so_then_holds_the_producer_back_and_loses_nothing() {
    each_model(Model::builder, |device| {
        let (mut queue, memory) = (queue(device), memory(device));
        let closed = device.gpu().create_silent_signal(1).unwrap();
        queue
            .submit(7, |ib: &mut Ib<'_>| {
                ib.push(&gate(&closed));
            })
            .unwrap();
        let mut value = 0;
        let full = loop {
            let pushed = queue.submit(5, |ib: &mut Ib<'_>| {
                ib.push(&store(memory.addr(), value + 1));
            });
            match pushed {
                Ok(_) => value += 1,
                Err(error) => break error,
            }
        };
        assert!(full.is_full(), "{full}");
        // One dword stays free.
        assert_eq!(u64::from(value), (RING - 1 - 7) / 5);
        let wait = Duration::from_millis(30);
        let late = queue.submit_within(5, |_: &mut Ib<'_>| panic!("there is no room"), wait);
        let Err(Error::Timeout(report)) = late else { panic!("{late:?}") };
        let state = report.queue.as_ref().unwrap();
        assert_eq!((state.kind, state.read_index), (QueueKind::Pm4, 0));
        assert!(report.packet.as_ref().unwrap().starts_with("WAIT_REG_MEM"), "{report}");
        closed.set(0);
        queue
            .submit_within(
                5,
                |ib: &mut Ib<'_>| {
                    ib.push(&store(memory.addr(), value + 1));
                },
                LONG,
            )
            .unwrap();
        queue.drain(LONG).unwrap();
        let last = memory.u32(0).unwrap().load(std::sync::atomic::Ordering::Acquire);
        assert_eq!(last, value + 1);
    });
}

/// Hardware reports its place in the ring: after a whole turn that is where it was before.
#[test]
fn a_ring_that_has_drained_takes_its_whole_capacity_again() {
    each_device(|device| {
        let (mut queue, memory) = (queue(device), memory(device));
        for round in 0..40 {
            let dwords = queue.capacity();
            assert_eq!(dwords, 1023);
            let fill = |ib: &mut Ib<'_>| {
                for n in 0..200 {
                    ib.push(&store(memory.addr(), round * 200 + n));
                }
                ib.pad_to(dwords);
            };
            queue.submit_within(dwords, fill, LONG).unwrap();
        }
        queue.drain(LONG).unwrap();
        let last = memory.u32(0).unwrap().load(std::sync::atomic::Ordering::Acquire);
        assert_eq!(last, 40 * 200 - 1);
    });
}

#[test]
fn a_read_pointer_that_lies_is_told_with_what_was_read() {
    each_model(Model::builder, |device| {
        let mut queue = queue(device);
        device.model().faults().lie_read_index(500);
        queue
            .submit(2, |ib: &mut Ib<'_>| {
                ib.push(&EventWrite::CS_PARTIAL_FLUSH);
            })
            .unwrap();
        let deadline = Instant::now() + LONG;
        let told = loop {
            match queue.read_position() {
                Err(error) => break error,
                Ok(_) => std::thread::sleep(Duration::from_millis(1)),
            }
            assert!(Instant::now() < deadline, "the lie is not noticed");
        };
        let Error::Ring { queue: id, cause } = &told else { panic!("{told:?}") };
        assert_eq!(*id, queue.id());
        assert!(matches!(cause, aql::Error::ReadIndexOutOfRange { .. }), "{cause}");
        let record = &device.kfd.snapshot().queues[0];
        assert!(record.bad_read_word.is_some(), "{record}");
        device.model().faults().clear();
        device.model().faults().lie_read_index(0);
        queue.destroy().unwrap();
    });
}

/// The write pointer in memory is what a queue starts from when it is mapped again; the doorbell of
/// a queue that is not mapped is lost.
#[test]
fn what_is_submitted_to_a_suspended_queue_runs_when_it_is_resumed() {
    each_kernel(|device| {
        let (mut queue, memory) = (queue(device), memory(device));
        for round in 1..=5 {
            queue.suspend().unwrap();
            queue
                .submit(5, |ib: &mut Ib<'_>| {
                    ib.push(&store(memory.addr(), round));
                })
                .unwrap();
            std::thread::sleep(Duration::from_millis(5));
            assert_eq!(
                memory.u32(0).unwrap().load(std::sync::atomic::Ordering::Acquire),
                round - 1
            );
            let record = device.kfd.snapshot().queues[0].clone();
            assert!(record.suspended && record.saved_waves.is_some(), "{record}");
            queue.resume().unwrap();
            queue.drain(LONG).unwrap();
            let word = memory.u32(0).unwrap();
            assert_eq!(word.load(std::sync::atomic::Ordering::Acquire), round);
        }
        queue.set_priority(11).unwrap();
        queue.set_cu_mask(&[0xffff_ffff]).unwrap();
        queue.drain(LONG).unwrap();
    });
}

/// A recycled doorbell that kept its last value would swallow the first ring of the next queue, or
/// start it at a position that is not its own.
#[test]
fn queues_that_come_and_go_on_one_doorbell_start_at_their_own_first_packet() {
    each_device(|device| {
        let memory = memory(device);
        let mut doorbells = std::collections::BTreeSet::new();
        for round in 1..=20 {
            let mut queue = queue(device);
            doorbells.insert(device.kfd.snapshot().queues[0].doorbell_offset);
            queue
                .submit(5, |ib: &mut Ib<'_>| {
                    ib.push(&store(memory.addr(), round));
                })
                .unwrap();
            queue.drain(LONG).unwrap();
            let word = memory.u32(0).unwrap();
            assert_eq!(word.load(std::sync::atomic::Ordering::Acquire), round);
            queue.destroy().unwrap();
        }
        if !on_hardware() {
            assert_eq!(doorbells.len(), 1, "the doorbell is recycled");
        }
    });
}

#[test]
fn a_queue_that_waits_for_ever_goes_all_the_same() {
    each_kernel(|device| {
        let closed = device.gpu().create_silent_signal(1).unwrap();
        for _ in 0..3 {
            let mut queue = queue(device);
            queue
                .submit(7, |ib: &mut Ib<'_>| {
                    ib.push(&gate(&closed));
                })
                .unwrap();
            queue.destroy().unwrap();
        }
        closed.set(0);
    });
}

#[test]
fn packets_that_overrun_what_was_asked_for_are_refused_and_the_ring_goes_on() {
    each_model(Model::builder, |device| {
        let (mut queue, memory) = (queue(device), memory(device));
        let overrun = queue.submit(4, |ib: &mut Ib<'_>| {
            ib.push(&store(memory.addr(), 1));
        });
        let Err(Error::Pm4 { cause, .. }) = overrun else { panic!("{overrun:?}") };
        assert_eq!(cause, pm4::Error::BufferTooSmall { needed: 5, capacity: 4 });
        let never = queue.submit(1024, |_: &mut Ib<'_>| panic!("it never fits"));
        assert!(matches!(never, Err(Error::Pm4 { .. })), "{never:?}");
        queue
            .submit(5, |ib: &mut Ib<'_>| {
                ib.push(&store(memory.addr(), 2));
            })
            .unwrap();
        queue.drain(LONG).unwrap();
        assert_eq!(memory.u32(0).unwrap().load(std::sync::atomic::Ordering::Acquire), 2);
    });
}

#[test]
fn queues_of_all_kinds_are_waited_for_together() {
    each_device(|device| {
        let gpu = device.gpu();
        let (mut pm4, memory) = (queue(device), memory(device));
        let aql = gpu.create_queue(&QueueRequest::aql(64)).unwrap();
        let sdma = gpu.create_sdma_queue(&SdmaQueueRequest::new(4096)).unwrap();
        let never = gpu.create_signal(1).unwrap();
        let soon = gpu.create_silent_signal(1).unwrap();
        let release = complete(&pm4, &soon);
        pm4.submit(13, |ib: &mut Ib<'_>| {
            ib.push(&store(memory.addr(), 1)).push(&release);
        })
        .unwrap();
        let both = [(&never, Until::Below(1)), (&soon, Until::Below(1))];
        let queues: [&dyn AnyQueue; 3] = [&aql, &pm4, &sdma];
        assert_eq!(device.kfd.wait_any(&both, &queues, LONG).unwrap(), 1);
    });
}

#[test]
fn compute_queues_of_both_kinds_share_one_limit_that_is_named() {
    each_model(Model::builder, |device| {
        let gpu = device.gpu();
        let (mut pm4, mut aql) = (Vec::new(), Vec::new());
        let error = loop {
            match gpu.create_pm4_queue(&Pm4QueueRequest::new(4096)) {
                Ok(queue) => pm4.push(queue),
                Err(error) => break error,
            }
            match gpu.create_queue(&QueueRequest::aql(64)) {
                Ok(queue) => aql.push(queue),
                Err(error) => break error,
            }
        };
        let Error::QueueLimit { in_use, limit, .. } = error else { panic!("{error:?}") };
        assert_eq!((in_use, limit), (127, Some(127)));
        let text = error.to_string();
        assert!(text.contains("no hardware queue is left"), "{text}");
        // What there is goes on, and a queue that goes makes room.
        aql.pop();
        pm4.push(queue(device));
        pm4.last_mut().unwrap().drain(LONG).unwrap();
    });
}

/// What somebody with a stuck queue asks: where does it stand, for what, what is that now, and who
/// should change it.
#[test]
fn a_snapshot_says_what_a_stuck_queue_waits_for_and_who_names_it() {
    each_model(Model::builder, |device| {
        let gpu = device.gpu();
        let mut waiter = queue(device);
        let aql = gpu.create_queue(&QueueRequest::aql(64)).unwrap();
        let (closed, middle) =
            (gpu.create_silent_signal(1).unwrap(), gpu.create_silent_signal(3).unwrap());
        let label = device.kfd.register_kernel("the culprit");
        let none = GpuAddr::NULL;
        let packet = BarrierAnd::new([closed.addr(), none, none, none, none]);
        aql.submit(&packet.completion(middle.addr()).encode(), label).unwrap();
        waiter
            .submit(7, |ib: &mut Ib<'_>| {
                ib.push(&gate(&middle));
            })
            .unwrap();
        let error = waiter.wait(&middle, Until::Below(1), Duration::from_millis(60)).unwrap_err();
        let Error::Timeout(report) = &error else { panic!("{error:?}") };
        let find = |id| report.snapshot.queues.iter().find(|record| record.queue == id).unwrap();
        let stuck = find(waiter.id());
        assert_eq!((stuck.kind, stuck.condition()), (QueueKind::Pm4, "waits"));
        assert_eq!(
            (stuck.waits[0].address, stuck.waits[0].value),
            (middle.value_addr().get(), Some(3))
        );
        let by = stuck.waits[0].named_by[0];
        assert_eq!((by.queue, by.index), (aql.id(), 0));
        assert!(stuck.oldest_ms.unwrap() >= 20, "{stuck}");
        assert_eq!(stuck.dwords.len(), 7);
        let culprit = find(aql.id());
        assert_eq!(culprit.packets[0].kernel.as_deref(), Some("the culprit"));
        assert_eq!(culprit.waits[0].value, Some(1));
        // Nothing on the device will change that one.
        assert!(culprit.waits[0].named_by.is_empty());
        assert!(error.to_string().contains("waits for"), "{error}");
        closed.set(0);
        waiter.wait(&middle, Until::Below(3), LONG).unwrap();
        middle.set(0);
        waiter.drain(LONG).unwrap();
    });
}

#[test]
fn scratch_grows_while_the_queue_is_idle_and_is_described_to_kernels() {
    each_device(|device| {
        let request = Pm4QueueRequest::new(4096).scratch(64);
        let mut queue = device.gpu().create_pm4_queue(&request).unwrap();
        let before = queue.scratch();
        assert!(before.tmpring_size != 0 && queue.scratch_bytes() >= 64);
        queue.grow_scratch(4096, LONG).unwrap();
        let after = queue.scratch();
        assert!(after.tmpring_size > before.tmpring_size && queue.scratch_bytes() >= 4096);
        assert_ne!(queue.descriptor(), GpuAddr::NULL);
        queue.drain(LONG).unwrap();
    });
}

#[test]
fn a_queue_of_an_xcc_that_there_is_not_never_reaches_the_kernel() {
    if on_hardware() {
        return skip("it needs eight XCCs");
    }
    let model = Model::builder().gpu(Preset::of(Target::Gfx942)).build();
    let device = Device::of(model, "gfx942");
    let xccs = device.gpu().node().num_xcc();
    let request = Pm4QueueRequest::new(4096);
    let error = device.gpu().create_pm4_queue(&request.xcc(xccs)).unwrap_err();
    assert!(error.to_string().contains("XCC"), "{error}");
    let mut queue = device.gpu().create_pm4_queue(&request.xcc(xccs - 1)).unwrap();
    queue.drain(LONG).unwrap();
    queue.set_priority(3).unwrap();
    queue.drain(LONG).unwrap();
    queue.destroy().unwrap();
    device.finish();
}

/// So body, header and pointers arrive in the order they are stored, and no host data path is in
/// between.
#[test]
fn rings_and_descriptors_are_in_system_memory_and_compute_rings_executable() {
    each_device(|device| {
        let gpu = device.gpu();
        let _aql = gpu.create_queue(&QueueRequest::aql(64)).unwrap();
        let _pm4 = queue(device);
        let _sdma = gpu.create_sdma_queue(&SdmaQueueRequest::new(4096)).unwrap();
        let all = device.kfd.allocations();
        for label in ["queue ring", "queue descriptor"] {
            let found: Vec<_> = all.iter().filter(|info| info.label == label).collect();
            assert_eq!(found.len(), 3, "{label}");
            assert!(found.iter().all(|info| info.kind == kfd::MemoryKind::Gtt), "{found:?}");
        }
    });
}

#[test]
fn a_lost_queue_says_so_to_its_producer() {
    each_model(Model::builder, |device| {
        let mut queue = queue(device);
        // DISPATCH_DIRECT without a program: opcode 0x15 of garbage registers is the model's affair;
        // an opcode that does not exist is every command processor's.
        let garbage = [0xc000_ff00_u32, 0];
        let fill = |ib: &mut Ib<'_>| {
            for packet in pm4::Packets::new(&garbage).flatten() {
                ib.push(&packet);
            }
        };
        queue.submit(2, fill).unwrap();
        let never = device.gpu().create_silent_signal(1).unwrap();
        let wait = Duration::from_millis(500);
        let error = queue.wait(&never, Until::Below(1), wait).unwrap_err();
        let lost = matches!(error, Error::QueueLost(_) | Error::Timeout(_) | Error::DeviceLost(_));
        assert!(lost, "{error:?}");
        never.set(0);
        // Whatever it was, it names the packet.
        assert!(
            error.to_string().contains("0xff") || error.to_string().contains("000000"),
            "{error}"
        );
        queue.destroy().unwrap();
        let fresh = device.gpu().create_queue(&QueueRequest::aql(64));
        if let Ok(fresh) = fresh {
            let done = device.gpu().create_signal(1).unwrap();
            let packet = BarrierAnd::noop().completion(done.addr()).encode();
            fresh.submit(&packet, KernelLabel::NONE).unwrap();
            fresh.wait(&done, Until::Below(1), LONG).unwrap();
        }
    });
}
