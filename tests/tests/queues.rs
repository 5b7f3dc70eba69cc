//! Queues: making, changing and destroying them, their limits, their rings.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use kfd::sys::Errno;
use kfd::{Error, KernelLabel, MemoryRequest, Queue, QueueRequest, Until};
use kfd_model::{Call, Model, Profile};
use kfd_tests::{Device, each_device, each_kernel, each_model, each_model_of, every_target};

use crate::support::{LONG, noop, run_noops, settled, wait_for};

fn queue(device: &Device, packets: u32) -> Queue {
    device.gpu().create_queue(&QueueRequest::aql(packets)).unwrap()
}

/// The kernel compares ring, save area, control stack and end-of-pipe sizes with its own.
#[test]
fn queues_of_every_size_are_accepted_and_run() {
    each_kernel(|device| {
        for packets in [64, 128, 1024, 65_536] {
            let queue = queue(device, packets);
            assert_eq!(queue.size(), u64::from(packets));
            assert_eq!(queue.gpu_id(), device.gpu().id());
            run_noops(&device.gpu(), &queue, 10).unwrap();
            let state = settled(&queue);
            assert_eq!((state.read_index, state.write_index), (10, 10));
            assert!(state.packets.is_empty());
            queue.destroy().unwrap();
        }
    });
}

#[test]
fn sizes_and_priorities_that_no_queue_has_never_reach_the_kernel() {
    each_model(Model::builder, |device| {
        for packets in [0, 1, 32, 63, 65, 96, 1 << 26, u32::MAX] {
            let error = device.gpu().create_queue(&QueueRequest::aql(packets)).unwrap_err();
            let Error::InvalidArgument { value, .. } = error else { panic!("{error:?}") };
            assert_eq!(value, u64::from(packets));
        }
        let error = device.gpu().create_queue(&QueueRequest::aql(64).priority(16)).unwrap_err();
        assert!(error.to_string().contains("priority"), "{error}");
        assert_eq!(device.model().ioctl_count(0x02), 0);
    });
}

#[test]
fn a_refused_queue_is_explained_with_all_its_numbers() {
    each_model_of(&Profile::ALL, Model::builder, |device| {
        device.model().faults().fail(Call::Ioctl(0x02), 0, 1, Errno::INVAL);
        let error = device.gpu().create_queue(&QueueRequest::aql(256)).unwrap_err();
        let Error::CreateQueue { gpu, sizes, errno, .. } = &error else { panic!("{error:?}") };
        assert_eq!((*gpu, *errno), (device.gpu().id(), Errno::INVAL));
        assert_eq!(sizes.ring_bytes, 256 * 64);
        // The sizes of a Radeon RX 7900 XTX and of one die of an MI250X.
        let expected = match device.target().as_str() {
            "gfx1100" => (46_047_232, 40_960, 46_047_232 + 96 * 32 * 32),
            _ => (67_170_304, 36_864, 67_170_304 + 0x20000),
        };
        let told = (sizes.save_bytes, sizes.ctl_stack_bytes, sizes.save_area_bytes);
        assert_eq!((told.0, told.1), (expected.0, expected.1));
        assert!(told.2 >= u64::from(told.0) && told.2.is_multiple_of(4096), "{told:?}");
        assert_eq!(sizes.published, device.model().profile() == Profile::V6_12);
        let text = error.to_string();
        assert!(text.contains("invalid queue parameters") && !text.contains("memory"), "{text}");
        assert!(text.contains(&format!("{:#x}", sizes.save_bytes)), "{text}");
    });
}

/// Save area, doorbells, scratch and descriptor are what each kernel wants for each target.
#[test]
fn every_target_has_queues_with_scratch_that_run() {
    every_target(|device| {
        let gpu = device.gpu();
        let request = QueueRequest::aql(64).scratch(256);
        for _ in 0..2 {
            let queue = gpu.create_queue(&request).unwrap();
            run_noops(&gpu, &queue, 3).unwrap();
            queue.destroy().unwrap();
        }
    });
}

/// 127 queues of a process on a GPU with the default scheduler.
#[test]
fn the_128th_queue_is_refused_and_a_destroyed_one_makes_room() {
    each_model(Model::builder, |device| {
        let mut queues = Vec::new();
        let error = loop {
            match device.gpu().create_queue(&QueueRequest::aql(64)) {
                Ok(queue) => queues.push(queue),
                Err(error) => break error,
            }
            assert!(queues.len() <= 127);
        };
        assert_eq!(queues.len(), 127);
        let Error::QueueLimit { kind, in_use, limit, errno, .. } = &error else {
            panic!("{error:?}")
        };
        assert_eq!((*kind, *errno), (kfd::QueueKind::Aql, Errno::NOSPC));
        assert_eq!((*in_use, *limit), (127, Some(127)));
        assert!(error.to_string().contains("no hardware queue is left"), "{error}");
        assert_eq!(device.model().live().queues, 127);
        let ids: std::collections::BTreeSet<u32> =
            queues.iter().map(|queue| queue.id().0).collect();
        assert_eq!(ids.len(), 127);
        for index in [0, 60, 126] {
            run_noops(&device.gpu(), &queues[index], 3).unwrap();
        }
        queues.swap_remove(50).destroy().unwrap();
        queues.push(queue(device, 64));
        run_noops(&device.gpu(), &queues[126], 3).unwrap();
    });
}

#[test]
fn every_priority_is_accepted_at_creation_and_later() {
    each_device(|device| {
        for priority in 0..=15 {
            let request = QueueRequest::aql(64).priority(priority);
            let queue = device.gpu().create_queue(&request).unwrap();
            queue.set_priority(15 - priority).unwrap();
            run_noops(&device.gpu(), &queue, 1).unwrap();
            let error = queue.set_priority(16).unwrap_err();
            assert!(matches!(error, Error::InvalidArgument { value: 16, .. }), "{error:?}");
        }
    });
}

#[test]
fn a_suspended_queue_does_nothing_and_goes_on_with_what_was_rung_meanwhile() {
    each_kernel(|device| {
        let gpu = device.gpu();
        let queue = queue(device, 64);
        run_noops(&gpu, &queue, 3).unwrap();
        queue.suspend().unwrap();
        let signal = gpu.create_signal(1).unwrap();
        queue.submit(&noop(&signal), KernelLabel::NONE).unwrap();
        let error = queue.wait(&signal, Until::Below(1), Duration::from_millis(60)).unwrap_err();
        assert!(matches!(error, Error::Timeout(_)), "{error:?}");
        queue.resume().unwrap();
        queue.wait(&signal, Until::Below(1), LONG).unwrap();
    });
}

/// A new queue gets the doorbell of the one before it, and the last value in it may equal its own.
#[test]
fn a_queue_on_a_used_doorbell_starts_from_nothing() {
    each_kernel(|device| {
        for _ in 0..20 {
            let queue = queue(device, 64);
            run_noops(&device.gpu(), &queue, 5).unwrap();
            assert_eq!(queue.state().write_index, 5);
            queue.destroy().unwrap();
        }
    });
}

#[test]
fn a_ring_takes_many_times_its_size_in_order() {
    each_device(|device| {
        let gpu = device.gpu();
        let queue = queue(device, 64);
        let signal = gpu.create_signal(1000).unwrap();
        for index in 0..1000 {
            let submitted = queue.submit_within(&noop(&signal), KernelLabel::NONE, LONG).unwrap();
            assert_eq!(submitted, index);
        }
        queue.wait(&signal, Until::Below(1), LONG).unwrap();
        assert_eq!(signal.value(), 0);
        queue.drain(LONG).unwrap();
        let state = settled(&queue);
        assert_eq!((state.read_index, state.write_index), (1001, 1001));
    });
}

#[test]
fn a_full_ring_refuses_at_once_and_after_its_time_and_takes_packets_again() {
    each_device(|device| {
        let gpu = device.gpu();
        let queue = queue(device, 64);
        let (gate, done) = (gpu.create_signal(1).unwrap(), gpu.create_signal(64).unwrap());
        queue.submit(&wait_for(&gate), KernelLabel::NONE).unwrap();
        for _ in 1..64 {
            queue.submit(&noop(&done), KernelLabel::NONE).unwrap();
        }
        let full = queue.submit(&noop(&done), KernelLabel::NONE).unwrap_err();
        let Error::Ring { queue: id, cause: aql::Error::Full { needed, free, size } } = full else {
            panic!("{full:?}");
        };
        assert_eq!((id, needed, free, size), (queue.id(), 1, 0, 64));
        let start = Instant::now();
        let limit = Duration::from_millis(40);
        let late = queue.submit_within(&noop(&done), KernelLabel::NONE, limit).unwrap_err();
        let Error::Timeout(report) = late else { panic!("{late:?}") };
        assert!(start.elapsed() >= limit && start.elapsed() < LONG);
        let state = report.queue.as_ref().unwrap();
        assert_eq!((state.read_index, state.write_index), (0, 64), "nothing was written past it");
        gate.set(0);
        queue.submit_within(&noop(&done), KernelLabel::NONE, LONG).unwrap();
        queue.wait(&done, Until::Below(1), LONG).unwrap();
        assert_eq!(done.value(), 0, "each packet ran once");
    });
}

#[test]
fn a_batch_is_submitted_whole_or_not_at_all() {
    each_device(|device| {
        let gpu = device.gpu();
        let queue = queue(device, 64);
        let signal = gpu.create_signal(64).unwrap();
        let batch = vec![(noop(&signal), KernelLabel::NONE); 65];
        let error = queue.submit_all(&batch).unwrap_err();
        let size = aql::Error::BatchSize { packets: 65, size: 64 };
        assert!(matches!(error, Error::Ring { cause, .. } if cause == size), "{error:?}");
        let invalid = [batch[0], (aql::Packet::INVALID, KernelLabel::NONE)];
        let error = queue.submit_all(&invalid).unwrap_err();
        assert!(matches!(error, Error::Ring { cause: aql::Error::InvalidPacket, .. }), "{error:?}");
        assert_eq!(queue.state().write_index, 0);
        assert_eq!(queue.submit_all(&batch[..64]).unwrap(), 63);
        queue.wait(&signal, Until::Below(1), LONG).unwrap();
    });
}

/// The packet processor fetches as soon as the doorbell covers a slot: a slot that is covered and
/// not yet whole would be read torn, and the queue would stop.
#[test]
fn eight_producers_on_a_small_ring_lose_and_tear_nothing() {
    const EACH: u32 = 500;
    each_device(|device| {
        let gpu = device.gpu();
        let queue = queue(device, 64);
        let signal = gpu.create_signal(i64::from(8 * EACH)).unwrap();
        let sum = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..EACH {
                        let index =
                            queue.submit_within(&noop(&signal), KernelLabel::NONE, LONG).unwrap();
                        sum.fetch_add(index, Ordering::Relaxed);
                    }
                });
            }
        });
        queue.wait(&signal, Until::Below(1), LONG).unwrap();
        assert_eq!(signal.value(), 0);
        let count = u64::from(8 * EACH);
        assert_eq!(sum.into_inner(), count * (count - 1) / 2, "each index once");
    });
}

#[test]
fn a_read_index_that_lies_ends_submission_with_its_numbers() {
    for lie in [1_i64, -1, 64, 1 << 40, i64::MIN] {
        each_model(Model::builder, |device| {
            let gpu = device.gpu();
            let queue = queue(device, 64);
            run_noops(&gpu, &queue, 10).unwrap();
            assert_eq!(settled(&queue).read_index, 10);
            device.model().faults().lie_read_index(lie);
            let signal = gpu.create_signal(1000).unwrap();
            let mut submitted = 0;
            let error = loop {
                let packet = noop(&signal);
                match queue.submit_within(&packet, KernelLabel::NONE, Duration::from_millis(50)) {
                    Ok(_) => submitted += 1,
                    Err(error) => break error,
                }
                if submitted == 1000 {
                    // One less than the truth cannot be told from slowness: the ring only seems
                    // one slot smaller. Nothing was overwritten.
                    assert_eq!(lie, -1, "it was believed");
                    queue.wait(&signal, Until::Below(1), LONG).unwrap();
                    return;
                }
            };
            match &error {
                Error::Ring {
                    queue: id,
                    cause: aql::Error::ReadIndexOutOfRange { read, first, last },
                } => {
                    assert_eq!(*id, queue.id());
                    assert!(*read < *first || *read > *last, "{error}");
                }
                other => panic!("a lie of {lie}: {other:?}"),
            }
            let second = self::queue(device, 64);
            device.model().faults().clear();
            run_noops(&gpu, &second, 100).unwrap();
        });
    }
}

/// A refusal at each step inside creation, whatever the step: nothing is left, and the next works.
#[test]
fn a_refusal_at_any_step_of_creation_leaves_nothing_behind() {
    each_model_of(&[Profile::V6_1, Profile::V6_12], Model::builder, |device| {
        let gpu = device.gpu();
        let request = QueueRequest::aql(64).scratch(64);
        // What is made once for all queues exists from here on.
        gpu.create_queue(&request).unwrap().destroy().unwrap();
        let before = device.model().live();
        let mut refused = 0;
        for call in [Call::AnyIoctl, Call::Mmap] {
            for step in 0..40 {
                device.model().faults().fail(call.clone(), step, 1, Errno::NOMEM);
                let result = gpu.create_queue(&request);
                device.model().faults().clear();
                refused += u32::from(result.is_err());
                drop(result);
                assert_eq!(device.model().live(), before, "{call:?} {step}");
            }
        }
        assert!(refused >= 10, "only {refused} steps could be refused");
        run_noops(&gpu, &queue(device, 64), 3).unwrap();
    });
}

#[test]
fn a_refusal_at_any_step_of_the_first_creation_can_be_tried_again() {
    for step in 0..60 {
        let device = Device::of(Model::builder().build(), "gfx1100");
        device.model().faults().fail(Call::AnyIoctl, step, 1, Errno::NOMEM);
        let result = device.gpu().create_queue(&QueueRequest::aql(64));
        device.model().faults().clear();
        drop(result);
        run_noops(&device.gpu(), &queue(&device, 64), 3)
            .unwrap_or_else(|error| panic!("after a refusal at step {step}: {error}"));
    }
}

#[test]
fn a_queue_that_the_kernel_does_not_destroy_keeps_its_memory_and_is_listed() {
    let device = Device::of(Model::builder().build(), "gfx1100");
    let buffers = |device: &Device| device.model().live().buffers;
    let first = queue(&device, 64);
    let with_queue = buffers(&device);
    device.model().faults().fail(Call::Ioctl(0x03), 0, 1, Errno::NODEV);
    let error = first.destroy().unwrap_err();
    assert!(
        matches!(error, Error::Ioctl { name: "DESTROY_QUEUE", errno: Errno::NODEV, .. }),
        "{error:?}"
    );
    assert_eq!(buffers(&device), with_queue, "the device may still use it");
    assert_eq!(device.model().live().queues, 1);
    let leaks = device.kfd.leaks();
    assert!(leaks[0].what.contains("queue 0") && leaks[0].bytes > 1 << 20, "{leaks:?}");
    run_noops(&device.gpu(), &queue(&device, 64), 3).unwrap();
}

#[test]
fn a_queue_whose_waves_could_not_be_saved_is_gone_all_the_same() {
    for errno in [Errno::TIME, Errno::IO] {
        let device = Device::of(Model::builder().build(), "gfx1100");
        let first = queue(&device, 64);
        device.model().faults().fail(Call::AfterIoctl(0x03), 0, 1, errno);
        let error = first.destroy().unwrap_err();
        assert!(matches!(error, Error::Ioctl { errno: told, .. } if told == errno), "{error:?}");
        assert!(device.kfd.leaks().is_empty());
        assert!(device.kfd.allocations().iter().all(|info| info.label != "queue ring"));
    }
}

#[test]
fn the_memory_of_a_live_queue_cannot_be_pulled_from_under_it() {
    each_device(|device| {
        let queue = queue(device, 64);
        let names: Vec<&str> = device.kfd.allocations().iter().map(|info| info.label).collect();
        for label in ["queue ring", "queue descriptor", "queue save area"] {
            assert!(names.contains(&label), "{names:?}");
        }
        queue.destroy().unwrap();
        let names: Vec<&str> = device.kfd.allocations().iter().map(|info| info.label).collect();
        assert!(names.iter().all(|label| !label.starts_with("queue ")), "{names:?}");
    });
}

#[test]
fn timestamps_are_the_gpus_clock_and_in_order() {
    each_device(|device| {
        let gpu = device.gpu();
        let queue = gpu.create_queue(&QueueRequest::aql(64).profiling()).unwrap();
        let before = gpu.clocks().unwrap().gpu_ticks;
        let mut last = before;
        for _ in 0..5 {
            let signal = gpu.create_signal(1).unwrap();
            queue.submit(&noop(&signal), KernelLabel::NONE).unwrap();
            queue.wait(&signal, Until::Below(1), LONG).unwrap();
            let (start, end) = signal.timestamps();
            assert!(last <= start && start <= end, "{last} {start} {end}");
            last = end;
        }
        assert!(last <= gpu.clocks().unwrap().gpu_ticks);
    });
}

#[test]
fn global_wave_sync_belongs_to_one_queue_at_a_time() {
    each_model(Model::builder, |device| {
        let (one, two) = (queue(device, 64), queue(device, 64));
        one.set_global_wave_sync(true).unwrap();
        let error = two.set_global_wave_sync(true).unwrap_err();
        assert!(matches!(error, Error::Ioctl { errno: Errno::BUSY, .. }), "{error:?}");
        one.set_global_wave_sync(false).unwrap();
        two.set_global_wave_sync(true).unwrap();
    });
}

#[test]
fn compute_units_are_masked_in_pairs_where_they_come_in_pairs() {
    each_device(|device| {
        let queue = queue(device, 64);
        queue.set_cu_mask(&[0b11]).unwrap();
        queue.set_cu_mask(&[u32::MAX; 8]).unwrap();
        let half = queue.set_cu_mask(&[0b1]);
        if device.gpu().gfx_version().major() >= 10 {
            let error = half.unwrap_err();
            assert!(matches!(error, Error::Ioctl { errno: Errno::INVAL, .. }), "{error:?}");
        } else {
            half.unwrap();
        }
        for empty in [&[][..], &[0, 0]] {
            let error = queue.set_cu_mask(empty).unwrap_err();
            assert!(matches!(error, Error::InvalidArgument { .. }), "{error:?}");
        }
        run_noops(&device.gpu(), &queue, 3).unwrap();
    });
}

#[test]
fn private_memory_is_reserved_grown_and_refused_beyond_what_a_wave_can_have() {
    each_device(|device| {
        let gpu = device.gpu();
        let queue = gpu.create_queue(&QueueRequest::aql(64).scratch(100)).unwrap();
        let first = queue.scratch_bytes();
        assert!((100..200).contains(&first), "{first}");
        let dispatch = aql::KernelDispatch::new(0x1000_u64.into(), [1; 3], [1; 3]).unwrap();
        let greedy = dispatch.private_segment(first + 1).encode();
        let error = queue.submit(&greedy, KernelLabel::NONE).unwrap_err();
        let Error::ScratchTooSmall { needed, available, .. } = error else { panic!("{error:?}") };
        assert_eq!((needed, available), (first + 1, first));
        queue.grow_scratch(1000, LONG).unwrap();
        assert!(queue.scratch_bytes() >= 1000);
        queue.grow_scratch(500, LONG).unwrap();
        assert!(queue.scratch_bytes() >= 1000, "it never shrinks");
        run_noops(&gpu, &queue, 3).unwrap();
        assert!(queue.grow_scratch(u32::MAX, LONG).is_err());
        run_noops(&gpu, &queue, 3).unwrap();
        let scratch = |label: &str| {
            device.kfd.allocations().iter().filter(|info| info.label == label).count()
        };
        assert_eq!(scratch("queue scratch"), 1, "the old memory is gone");
    });
}

#[test]
fn a_queue_and_its_memory_come_and_go_without_loss() {
    each_device(|device| {
        let gpu = device.gpu();
        for _ in 0..10 {
            let buffer = gpu.allocate(&MemoryRequest::vram(1 << 20)).unwrap();
            let queue = queue(device, 1024);
            run_noops(&gpu, &queue, 3).unwrap();
            drop(queue);
            drop(buffer);
        }
    });
}
