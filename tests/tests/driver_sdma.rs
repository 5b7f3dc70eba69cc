//! SDMA queues of the driver: copies, wrap, engines, limits, life and death.

use std::sync::atomic::Ordering;
use std::time::Duration;

use kfd::sys::Errno;
use kfd::{Buffer, Error, MemoryRequest, QueueKind, SdmaEngine, SdmaQueue, SdmaQueueRequest};
use kfd::{Signal, Until};
use kfd_model::{Model, Preset, Profile, Target};
use kfd_tests::{Device, each_device, each_kernel, each_model, each_model_of, every_target};
use kfd_tests::{on_hardware, skip};
use pm4::packet::Compare;
use pm4::sdma::{Builder, ConstFill, CopyLinear, Fence, FillData, PollMem, Version};
use pm4::{GpuAddr, RingSink};

use crate::support::LONG;

type Out<'a> = Builder<RingSink<'a>>;

fn queue(device: &Device) -> SdmaQueue {
    device.gpu().create_sdma_queue(&SdmaQueueRequest::new(4096)).unwrap()
}

fn memory(device: &Device, bytes: u64) -> Buffer {
    device.gpu().allocate(&MemoryRequest::gtt(bytes).coherent().uncached()).unwrap()
}

fn at(buffer: &Buffer, offset: u64) -> GpuAddr {
    GpuAddr::new(buffer.addr().get() + offset)
}

fn gate(queue: &SdmaQueue, signal: &Signal) -> PollMem {
    let _ = queue;
    PollMem::new(signal.value_addr(), Compare::EQUAL, 0).unwrap()
}

fn pause(queue: &mut SdmaQueue, signal: &Signal) {
    let poll = gate(queue, signal);
    let repeats = queue.version().poll_repeats();
    let fill = |out: &mut Out<'_>| {
        for _ in 0..repeats {
            out.push(&poll);
        }
    };
    queue.submit(PollMem::DWORDS * repeats, fill).unwrap();
}

#[test]
fn a_copy_arrives_before_its_fence_on_every_target() {
    every_target(|device| {
        let mut queue = queue(device);
        let (from, to) = (memory(device, 4096), memory(device, 4096));
        let data: Vec<u8> = (0..4096_u32).map(|n| (n * 7 % 251) as u8).collect();
        from.write(0, &data).unwrap();
        let done = device.gpu().create_silent_signal(1).unwrap();
        let version = queue.version();
        let copy = CopyLinear::new(version, from.addr(), to.addr(), 4096).unwrap();
        let fence = Fence::new(version, done.value_addr(), 0).unwrap().snooped_system();
        queue
            .submit(CopyLinear::DWORDS + Fence::DWORDS, |out: &mut Out<'_>| {
                out.push(&copy).push(&fence);
            })
            .unwrap();
        queue.wait(&done, Until::Below(1), LONG).unwrap();
        let mut back = vec![0; 4096];
        to.read(0, &mut back).unwrap();
        assert_eq!(back, data);
        queue.drain(LONG).unwrap();
        queue.destroy().unwrap();
    });
}

/// A copy ring of a page with its consumer paused now and then, 10,000 small copies: every byte is
/// right, no packet straddles the wrap, and the producer never passes the consumer.
#[test]
fn ten_thousand_copies_through_a_small_ring_are_all_right() {
    each_model(Model::builder, |device| {
        let mut queue = queue(device);
        let version = queue.version();
        let (from, to) = (memory(device, 40_960), memory(device, 40_960));
        let data: Vec<u8> = (0..40_960_u32).map(|n| (n % 253) as u8).collect();
        from.write(0, &data).unwrap();
        for n in 0..10_000_u64 {
            if n % 1000 == 500 {
                device.model().faults().stop_fetching(true);
            }
            let copy = CopyLinear::new(version, at(&from, n * 4), at(&to, n * 4), 4).unwrap();
            let room = queue.has_room(CopyLinear::DWORDS).unwrap();
            if !room {
                device.model().faults().stop_fetching(false);
            }
            let fill = |out: &mut Out<'_>| {
                out.push(&copy);
            };
            let end = queue.submit_within(CopyLinear::DWORDS, fill, LONG).unwrap();
            assert!(end - queue.read_position().unwrap() < 4096);
            // 7 dwords lie in one turn of the ring.
            assert_eq!((end - 4) / 4096, (end - 28) / 4096, "packet {n} straddles the end");
        }
        device.model().faults().stop_fetching(false);
        queue.drain(LONG).unwrap();
        let mut back = vec![0; 40_000];
        to.read(0, &mut back).unwrap();
        assert_eq!(back, data[..40_000]);
    });
}

/// Submissions of every length from many offsets: 1 to 60 fills of 5 dwords at a time.
#[test]
fn submissions_of_every_size_wrap() {
    each_device(|device| {
        let mut queue = queue(device);
        let (version, to) = (queue.version(), memory(device, 4096));
        let mut number = 0;
        for round in 0..4 {
            for count in 1..=60_u32 {
                number += 1;
                let value = number;
                let fill = |out: &mut Out<'_>| {
                    for n in 0..count {
                        let to = at(&to, u64::from(n) * 4);
                        out.push(&ConstFill::new(version, to, FillData::Dword(value), 4).unwrap());
                    }
                };
                let dwords = ConstFill::DWORDS * count as usize;
                queue.submit_within(dwords, fill, LONG).unwrap();
                if count % 16 == round {
                    queue.drain(LONG).unwrap();
                    for n in 0..count {
                        let word = to.u32(u64::from(n) * 4).unwrap();
                        assert_eq!(word.load(Ordering::Acquire), value);
                    }
                }
            }
        }
        queue.drain(LONG).unwrap();
    });
}

#[test]
fn a_full_ring_says_so_and_a_submission_of_more_than_half_of_it_never_fits() {
    each_model(Model::builder, |device| {
        let mut queue = queue(device);
        let closed = device.gpu().create_silent_signal(1).unwrap();
        pause(&mut queue, &closed);
        let full = loop {
            match queue.submit(64, |out: &mut Out<'_>| {
                out.nop(64);
            }) {
                Ok(_) => {}
                Err(error) => break error,
            }
        };
        assert!(full.is_full(), "{full}");
        let late = queue.make_room(64, Duration::from_millis(20)).unwrap_err();
        let Error::Timeout(report) = &late else { panic!("{late:?}") };
        assert!(report.packet.as_ref().unwrap().starts_with("POLL_REGMEM"), "{late}");
        assert!(late.to_string().contains("waits for"), "{late}");
        assert_eq!(queue.capacity(), 512);
        let never = queue.submit(513, |_: &mut Out<'_>| panic!("it never fits"));
        assert!(matches!(never, Err(Error::Sdma { .. })), "{never:?}");
        closed.set(0);
        queue.drain(LONG).unwrap();
    });
}

/// Engines of gfx900 hang on less.
#[test]
fn every_submission_to_an_engine_of_gfx900_has_64_dwords() {
    if on_hardware() {
        return skip("it compares the software GPU's targets");
    }
    for (target, dwords) in [(Target::Gfx900, 64), (Target::Gfx906, 4), (Target::Gfx1100, 4)] {
        let device = Device::of(Model::builder().gpu(Preset::of(target)).build(), "a preset");
        let (mut queue, to) = (queue(&device), memory(&device, 4096));
        let fence = Fence::new(queue.version(), to.addr(), 5).unwrap();
        let end = queue.submit(Fence::DWORDS, |out: &mut Out<'_>| {
            out.push(&fence);
        });
        assert_eq!(end.unwrap(), dwords * 4, "{target}");
        queue.drain(LONG).unwrap();
        queue.destroy().unwrap();
        drop(to);
        device.finish();
    }
}

#[test]
fn an_engine_by_number_needs_kfd_1_17_and_has_to_exist() {
    each_model_of(&Profile::ALL, Model::builder, |device| {
        let gpu = device.gpu();
        let by_number =
            |n| gpu.create_sdma_queue(&SdmaQueueRequest::new(4096).engine(SdmaEngine::Index(n)));
        let before = device.model().ioctl_count(0x02);
        if device.model().profile() == Profile::V6_1 {
            let error = by_number(0).unwrap_err();
            assert!(matches!(error, Error::KfdTooOld { .. }), "{error}");
            assert!(error.to_string().contains("1.17"), "{error}");
            assert_eq!(device.model().ioctl_count(0x02), before);
            return;
        }
        let properties = &gpu.node().properties;
        let (pcie, xgmi) =
            (properties.num_sdma_engines.unwrap(), properties.num_sdma_xgmi_engines.unwrap());
        let error = by_number(pcie + xgmi).unwrap_err();
        assert!(matches!(error, Error::InvalidArgument { .. }), "{error}");
        assert_eq!(device.model().ioctl_count(0x02), before);
        for engine in 0..pcie + xgmi {
            let mut queue = by_number(engine).unwrap();
            assert_eq!(queue.engine(), SdmaEngine::Index(engine));
            queue.drain(LONG).unwrap();
        }
    });
}

#[test]
fn engines_for_xgmi_are_used_where_there_are_some() {
    each_model(Model::builder, |device| {
        let request = SdmaQueueRequest::new(4096).engine(SdmaEngine::Xgmi);
        let made = device.gpu().create_sdma_queue(&request);
        if device.gpu().node().properties.num_sdma_xgmi_engines == Some(0) {
            let error = made.unwrap_err();
            assert!(matches!(error, Error::Unsupported { .. }), "{error}");
        } else {
            made.unwrap().drain(LONG).unwrap();
        }
    });
}

/// What a stream falls back to copies by kernels for.
#[test]
fn engines_without_a_queue_left_are_a_limit_with_its_numbers() {
    each_model(Model::builder, |device| {
        let gpu = device.gpu();
        let properties = &gpu.node().properties;
        let all =
            properties.num_sdma_engines.unwrap() * properties.num_sdma_queues_per_engine.unwrap();
        let mut queues = Vec::new();
        let error = loop {
            match device.gpu().create_sdma_queue(&SdmaQueueRequest::new(4096)) {
                Ok(queue) => queues.push(queue),
                Err(error) => break error,
            }
        };
        let Error::QueueLimit { kind, in_use, limit, errno, .. } = &error else {
            panic!("{error:?}")
        };
        assert_eq!(*kind, QueueKind::Sdma(SdmaEngine::Any));
        assert_eq!((*in_use, *limit, *errno), (all, Some(all), Errno::NOMEM));
        // One engine's queues are as limited, and say so of that engine.
        let request = SdmaQueueRequest::new(4096).engine(SdmaEngine::Index(0));
        let error = device.gpu().create_sdma_queue(&request).unwrap_err();
        assert!(error.to_string().contains("SDMA of engine 0"), "{error}");
        queues.pop();
        queues.push(queue(device));
        for queue in &mut queues {
            queue.drain(LONG).unwrap();
        }
    });
}

#[test]
fn a_queue_that_is_refused_at_any_step_leaves_nothing_behind() {
    each_model(Model::builder, |device| {
        // The first queue makes what all share.
        queue(device).destroy().unwrap();
        let before = device.model().live();
        for step in 0..3 {
            device.model().faults().fail(kfd_model::Call::Ioctl(0x16), step, 1, Errno::NOMEM);
            let made = device.gpu().create_sdma_queue(&SdmaQueueRequest::new(4096));
            if let Ok(queue) = made {
                queue.destroy().unwrap();
            }
            device.model().faults().clear();
            assert_eq!(device.model().live().buffers, before.buffers, "step {step}");
        }
        device.model().faults().fail(kfd_model::Call::Ioctl(0x02), 0, 1, Errno::INVAL);
        let error = device.gpu().create_sdma_queue(&SdmaQueueRequest::new(4096)).unwrap_err();
        let Error::CreateQueue { kind, sizes, .. } = &error else { panic!("{error:?}") };
        assert_eq!((*kind, sizes.ring_bytes), (QueueKind::Sdma(SdmaEngine::Any), 4096));
        assert_eq!(device.model().live().buffers, before.buffers);
    });
}

#[test]
fn what_is_submitted_to_a_suspended_copy_queue_runs_when_it_is_resumed() {
    each_kernel(|device| {
        let (mut queue, to) = (queue(device), memory(device, 4096));
        for round in 1..=5 {
            queue.suspend().unwrap();
            let fence = Fence::new(queue.version(), to.addr(), round).unwrap();
            queue
                .submit(Fence::DWORDS, |out: &mut Out<'_>| {
                    out.push(&fence);
                })
                .unwrap();
            std::thread::sleep(Duration::from_millis(5));
            assert_eq!(to.u32(0).unwrap().load(Ordering::Acquire), round - 1);
            let state = queue.state();
            assert_ne!(state.read_index, state.write_index);
            queue.resume().unwrap();
            queue.drain(LONG).unwrap();
            assert_eq!(to.u32(0).unwrap().load(Ordering::Acquire), round);
        }
        queue.set_priority(15).unwrap();
        queue.drain(LONG).unwrap();
    });
}

#[test]
fn copy_queues_that_come_and_go_on_one_doorbell_start_at_their_own_first_packet() {
    each_device(|device| {
        let to = memory(device, 4096);
        for round in 1..=10 {
            let mut queue = queue(device);
            let fence = Fence::new(queue.version(), to.addr(), round).unwrap();
            queue
                .submit(Fence::DWORDS, |out: &mut Out<'_>| {
                    out.push(&fence);
                })
                .unwrap();
            queue.drain(LONG).unwrap();
            assert_eq!(to.u32(0).unwrap().load(Ordering::Acquire), round);
            queue.destroy().unwrap();
        }
    });
}

#[test]
fn a_copy_queue_that_polls_for_ever_goes_all_the_same() {
    each_kernel(|device| {
        let closed = device.gpu().create_silent_signal(1).unwrap();
        let mut queue = queue(device);
        pause(&mut queue, &closed);
        queue.destroy().unwrap();
        closed.set(0);
    });
}

#[test]
fn an_engines_read_pointer_that_lies_is_told_with_what_was_read() {
    each_model(Model::builder, |device| {
        let mut queue = queue(device);
        device.model().faults().lie_read_index(1 << 20);
        queue
            .submit(8, |out: &mut Out<'_>| {
                out.nop(8);
            })
            .unwrap();
        let deadline = std::time::Instant::now() + LONG;
        let told = loop {
            match queue.read_position() {
                Err(error) => break error,
                Ok(_) => std::thread::sleep(Duration::from_millis(1)),
            }
            assert!(std::time::Instant::now() < deadline);
        };
        let Error::Ring { cause: aql::Error::ReadIndexOutOfRange { read, .. }, .. } = told else {
            panic!("{told:?}")
        };
        assert!(read >= 1 << 20);
        device.model().faults().lie_read_index(0);
        queue.destroy().unwrap();
    });
}

/// CPU stores to VRAM reach a copy behind a flush of the host data path.
#[test]
fn a_copy_from_vram_sees_what_the_cpu_stored_before_the_flush() {
    each_device(|device| {
        let gpu = device.gpu();
        let request = MemoryRequest::vram_cpu_visible(4096);
        let Ok(vram) = gpu.allocate(&request) else {
            return skip("the CPU sees no VRAM of this GPU");
        };
        let (mut queue, to) = (queue(device), memory(device, 4096));
        let copy = CopyLinear::new(queue.version(), vram.addr(), to.addr(), 4096).unwrap();
        for round in 1..=50_u8 {
            vram.write(0, &[round; 4096]).unwrap();
            gpu.flush_hdp().unwrap();
            queue
                .submit(CopyLinear::DWORDS, |out: &mut Out<'_>| {
                    out.push(&copy);
                })
                .unwrap();
            queue.drain(LONG).unwrap();
            let mut back = [0; 4096];
            to.read(0, &mut back).unwrap();
            assert_eq!(back, [round; 4096]);
        }
    });
}

#[test]
fn engines_that_end_polls_early_are_given_two() {
    for version in Version::ALL {
        let early = matches!(version, Version::V4_0 | Version::V4_2);
        assert_eq!(version.poll_repeats(), if early { 2 } else { 1 }, "{version}");
    }
}

#[test]
fn versions_of_engines_follow_the_gpu() {
    every_target(|device| {
        let version = device.gpu().sdma_version().unwrap();
        let expected = match device.target().as_str() {
            "gfx900" => Version::V4_0,
            "gfx906" | "gfx908" => Version::V4_2,
            "gfx90a" => Version::V4_4_0,
            "gfx942" => Version::V4_4_2,
            _ => Version::V6,
        };
        assert_eq!(version, expected);
    });
}
