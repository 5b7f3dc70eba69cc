//! Waits: what ends them, how soon, and that nothing can be missed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use kfd::sys::Errno;
use kfd::{Error, KernelLabel, Kfd, QueueRequest, Until};
use kfd_model::{Call, Model, Preset, Profile};
use kfd_tests::{Device, each_device, each_kernel, each_model, each_model_of};

use crate::support::{LONG, noop, run_noops, wait_for};

const WAIT_EVENTS: u8 = 0x0c;

fn milliseconds(count: u64) -> Duration {
    Duration::from_millis(count)
}

#[test]
fn a_value_that_is_there_costs_no_system_call() {
    each_model(Model::builder, |device| {
        let gpu = device.gpu();
        let queue = gpu.create_queue(&QueueRequest::aql(64)).unwrap();
        let signal = gpu.create_signal(-3).unwrap();
        let calls: u64 = (0..=255).map(|number| device.model().ioctl_count(number)).sum();
        let conditions = [
            Until::Below(0),
            Until::AtLeast(-3),
            Until::Equal(-3),
            Until::NotEqual(0),
            Until::Below(i64::MAX),
        ];
        for until in conditions {
            assert_eq!(signal.wait(until, Duration::ZERO).unwrap(), -3);
            assert_eq!(queue.wait(&signal, until, LONG).unwrap(), -3);
        }
        let after: u64 = (0..=255).map(|number| device.model().ioctl_count(number)).sum();
        assert_eq!(after, calls);
    });
}

#[test]
fn a_wait_lasts_its_time_and_says_what_it_waited_for() {
    each_kernel(|device| {
        let gpu = device.gpu();
        let signal = gpu.create_signal(42).unwrap();
        for limit in [0, 1, 7, 60] {
            let start = Instant::now();
            let error = signal.wait(Until::Below(1), milliseconds(limit)).unwrap_err();
            let took = start.elapsed();
            assert!(took >= milliseconds(limit), "{limit} ms took {took:?}");
            assert!(took < LONG, "{limit} ms took {took:?}");
            let Error::Timeout(report) = &error else { panic!("{error:?}") };
            assert!(report.waited_ms >= limit && report.value == 42, "{report:?}");
            assert_eq!((&report.queue, &report.packet), (&None, &None));
        }
    });
}

#[test]
fn a_hang_report_names_queue_packet_kernel_and_indices() {
    each_kernel(|device| {
        let gpu = device.gpu();
        let queue = gpu.create_queue(&QueueRequest::aql(64)).unwrap();
        let (gate, done) = (gpu.create_signal(1).unwrap(), gpu.create_signal(1).unwrap());
        run_noops(&gpu, &queue, 2).unwrap();
        let gatekeeper = device.kfd.register_kernel("gatekeeper");
        queue.submit(&wait_for(&gate), gatekeeper).unwrap();
        queue.submit(&noop(&done), KernelLabel::NONE).unwrap();
        let error = queue.wait(&done, Until::Below(1), milliseconds(30)).unwrap_err();
        let Error::Timeout(report) = &error else { panic!("{error:?}") };
        let state = report.queue.as_ref().unwrap();
        assert_eq!((state.queue, state.read_index, state.write_index), (queue.id(), 2, 4));
        assert_eq!(state.packets.len(), 2);
        assert_eq!(state.packets[0].index, 2);
        assert_eq!(state.packets[0].kernel.as_deref(), Some("gatekeeper"));
        assert_eq!(state.packets[1].kernel, None);
        assert!(report.packet.as_ref().unwrap().contains("barrier-and"), "{report:?}");
        let text = error.to_string();
        for part in ["gatekeeper", "read 2", "write 4", "packet 3"] {
            assert!(text.contains(part), "{text} lacks {part}");
        }
        gate.set(0);
        queue.wait(&done, Until::Below(1), LONG).unwrap();
    });
}

#[test]
fn a_wait_of_any_length_is_possible() {
    each_device(|device| {
        let gpu = device.gpu();
        let queue = gpu.create_queue(&QueueRequest::aql(64)).unwrap();
        for limit in [Duration::MAX, Duration::from_millis(u64::from(u32::MAX) + 5)] {
            let signal = gpu.create_signal(1).unwrap();
            queue.submit(&noop(&signal), KernelLabel::NONE).unwrap();
            assert_eq!(queue.wait(&signal, Until::Equal(0), limit).unwrap(), 0);
        }
    });
}

#[test]
fn the_host_wakes_its_own_waiters() {
    each_kernel(|device| {
        let signal = device.gpu().create_signal(1).unwrap();
        std::thread::scope(|scope| {
            let waiters: Vec<_> =
                (0..8).map(|_| scope.spawn(|| signal.wait(Until::Equal(7), LONG))).collect();
            std::thread::sleep(milliseconds(20));
            signal.set(7);
            signal.notify().unwrap();
            for waiter in waiters {
                assert_eq!(waiter.join().unwrap().unwrap(), 7);
            }
        });
    });
}

#[test]
fn a_value_set_without_waking_anyone_is_found_all_the_same() {
    each_kernel(|device| {
        let gpu = device.gpu();
        for signal in [gpu.create_signal(1).unwrap(), gpu.create_silent_signal(1).unwrap()] {
            std::thread::scope(|scope| {
                let waiter = scope.spawn(|| signal.wait(Until::Below(1), LONG));
                std::thread::sleep(milliseconds(10));
                signal.set(0);
                waiter.join().unwrap().unwrap();
            });
            signal.notify().unwrap();
            signal.reset_event().unwrap();
        }
    });
}

#[test]
fn lost_interrupts_only_delay() {
    each_model_of(&Profile::ALL, Model::builder, |device| {
        let gpu = device.gpu();
        let queue = gpu.create_queue(&QueueRequest::aql(64)).unwrap();
        device.model().faults().lose_interrupts(u32::MAX);
        for _ in 0..10 {
            run_noops(&gpu, &queue, 5).unwrap();
        }
        let gate = gpu.create_signal(1).unwrap();
        let done = gpu.create_signal(1).unwrap();
        queue.submit(&wait_for(&gate), KernelLabel::NONE).unwrap();
        queue.submit(&noop(&done), KernelLabel::NONE).unwrap();
        std::thread::scope(|scope| {
            // Asleep long before the packet is done, and nobody wakes it.
            let waiter = scope.spawn(|| queue.wait(&done, Until::Below(1), LONG));
            std::thread::sleep(milliseconds(30));
            gate.set(0);
            waiter.join().unwrap().unwrap();
        });
    });
}

#[test]
fn late_interrupts_only_delay() {
    each_model_of(&[Profile::V6_1, Profile::V6_12], Model::builder, |device| {
        let gpu = device.gpu();
        let queue = gpu.create_queue(&QueueRequest::aql(64)).unwrap();
        device.model().faults().delay_interrupts(milliseconds(25));
        for _ in 0..5 {
            run_noops(&gpu, &queue, 2).unwrap();
        }
        // An interrupt that arrives after its signal has another use ends no wait.
        let other = gpu.create_signal(1).unwrap();
        let error = queue.wait(&other, Until::Below(1), milliseconds(60)).unwrap_err();
        assert!(matches!(error, Error::Timeout(_)), "{error:?}");
    });
}

/// The window between looking at the value and falling asleep: a wake-up that comes in it must end
/// the sleep. With event age the kernel knows; without, sleeps are short.
#[test]
fn a_wakeup_between_look_and_sleep_is_never_lost() {
    each_model_of(&[Profile::V6_1, Profile::V6_12], Model::builder, |device| {
        let gpu = device.gpu();
        let (ping, pong) = (gpu.create_signal(0).unwrap(), gpu.create_signal(0).unwrap());
        let rounds = 300;
        let start = Instant::now();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for round in 1..=rounds {
                    ping.wait(Until::AtLeast(round), LONG).unwrap();
                    // Hits every place around the other side's check and sleep.
                    for _ in 0..round % 50 * 20 {
                        std::hint::spin_loop();
                    }
                    pong.set(round);
                    pong.notify().unwrap();
                }
            });
            for round in 1..=rounds {
                ping.set(round);
                ping.notify().unwrap();
                pong.wait(Until::AtLeast(round), LONG).unwrap();
            }
        });
        let each = start.elapsed() / u32::try_from(rounds).unwrap();
        assert!(each < milliseconds(50), "a round takes {each:?}: wake-ups are lost");
    });
}

#[test]
fn waiting_for_any_names_the_one_that_is_there() {
    each_kernel(|device| {
        let gpu = device.gpu();
        let queue = gpu.create_queue(&QueueRequest::aql(64)).unwrap();
        let (never, soon) = (gpu.create_signal(1).unwrap(), gpu.create_silent_signal(1).unwrap());
        queue.submit(&noop(&soon), KernelLabel::NONE).unwrap();
        let both = [(&never, Until::Below(1)), (&soon, Until::Below(1))];
        assert_eq!(device.kfd.wait_any(&both, &[&queue], LONG).unwrap(), 1);
        let error = device.kfd.wait_any(&both[..1], &[&queue], milliseconds(5)).unwrap_err();
        assert!(matches!(error, Error::Timeout(_)), "{error:?}");
        let error = device.kfd.wait_any(&[], &[&queue], LONG).unwrap_err();
        assert!(matches!(error, Error::InvalidArgument { .. }), "{error:?}");
    });
}

#[test]
fn interrupted_waits_keep_their_deadline() {
    each_model(Model::builder, |device| {
        let signal = device.gpu().create_signal(1).unwrap();
        device.model().faults().fail(Call::Ioctl(WAIT_EVENTS.into()), 0, 500, Errno::INTR);
        let start = Instant::now();
        let error = signal.wait(Until::Below(1), milliseconds(80)).unwrap_err();
        assert!(matches!(error, Error::Timeout(_)), "{error:?}");
        assert!(start.elapsed() >= milliseconds(80) && start.elapsed() < LONG);
        assert!(device.model().ioctl_count(WAIT_EVENTS) > 500);
    });
}

#[test]
fn a_sleeping_wait_calls_the_kernel_rarely() {
    each_model_of(&[Profile::V6_12], Model::builder, |device| {
        let signal = device.gpu().create_signal(1).unwrap();
        let before = device.model().ioctl_count(WAIT_EVENTS);
        signal.wait(Until::Below(1), milliseconds(300)).unwrap_err();
        let calls = device.model().ioctl_count(WAIT_EVENTS) - before;
        assert!(calls <= 12, "{calls} calls in 300 ms");
    });
}

/// The memory of a signal that a packet will still write is not given to another signal.
#[test]
fn a_signal_dropped_before_its_packet_ran_is_not_used_again() {
    each_device(|device| {
        let gpu = device.gpu();
        let queue = gpu.create_queue(&QueueRequest::aql(64)).unwrap();
        let gate = gpu.create_signal(1).unwrap();
        let pending = gpu.create_signal(1).unwrap();
        let address = pending.addr();
        queue.submit(&wait_for(&gate), KernelLabel::NONE).unwrap();
        let last = aql::BarrierAnd::noop().barrier().completion(pending.addr()).encode();
        queue.submit(&last, KernelLabel::NONE).unwrap();
        drop(pending);
        let others: Vec<_> = (0..200).map(|_| gpu.create_signal(5).unwrap()).collect();
        assert!(others.iter().all(|signal| signal.addr() != address));
        gate.set(0);
        queue.drain(LONG).unwrap();
        assert!(others.iter().all(|signal| signal.value() == 5));
    });
}

#[test]
fn signals_are_64_byte_aligned_and_apart() {
    each_device(|device| {
        let gpu = device.gpu();
        let signals: Vec<_> = (0..200).map(|n| gpu.create_signal(n).unwrap()).collect();
        let mut addresses: Vec<u64> = signals.iter().map(|signal| signal.addr().get()).collect();
        addresses.sort_unstable();
        assert!(addresses.iter().all(|address| address.is_multiple_of(64)));
        assert!(addresses.windows(2).all(|pair| pair[1] - pair[0] >= 64));
        for (value, signal) in (0..).zip(&signals) {
            assert_eq!(signal.value(), value);
            assert_eq!(signal.add(-2), value);
            assert_eq!(signal.value(), value - 2);
        }
    });
}

/// 4096 slots of the event page, of which KFD keeps the first.
#[test]
fn when_the_event_slots_run_out_the_error_says_so_and_silent_signals_go_on() {
    let device = Device::of(Model::builder().build(), "gfx1100");
    let gpu = device.gpu();
    let mut signals = Vec::new();
    let error = loop {
        match gpu.create_signal(1) {
            Ok(signal) => signals.push(signal),
            Err(error) => break error,
        }
        assert!(signals.len() <= 4096);
    };
    assert!(signals.len() > 4000, "{}", signals.len());
    let Error::Ioctl { name, errno, .. } = &error else { panic!("{error:?}") };
    assert_eq!((*name, *errno), ("CREATE_EVENT", Errno::NOSPC));
    assert!(error.to_string().contains("all event slots are in use"), "{error}");
    let silent = gpu.create_silent_signal(1).unwrap();
    let queue = gpu.create_queue(&QueueRequest::aql(64)).unwrap();
    queue.submit(&noop(&silent), KernelLabel::NONE).unwrap();
    queue.wait(&silent, Until::Below(1), LONG).unwrap();
    signals.pop().unwrap().set(0);
    gpu.create_signal(1).unwrap();
}

#[test]
fn a_failing_wait_is_an_error_not_a_loop() {
    each_model(Model::builder, |device| {
        let signal = device.gpu().create_signal(1).unwrap();
        device.model().faults().fail(Call::Ioctl(WAIT_EVENTS.into()), 0, 1, Errno::NODEV);
        let error = signal.wait(Until::Below(1), LONG).unwrap_err();
        let Error::Ioctl { name, errno, .. } = &error else { panic!("{error:?}") };
        assert_eq!((*name, *errno), ("WAIT_EVENTS", Errno::NODEV));
    });
}

#[test]
fn threads_wait_submit_and_poll_at_once() {
    each_device(|device| {
        let gpu = device.gpu();
        let queue = gpu.create_queue(&QueueRequest::aql(64)).unwrap();
        let done = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        run_noops(&gpu, &queue, 3).unwrap();
                        done.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            scope.spawn(|| {
                while done.load(Ordering::Relaxed) < 200 {
                    device.kfd.poll_faults().unwrap();
                    std::thread::sleep(milliseconds(1));
                }
            });
        });
    });
}

/// A stepped model runs on the waiting thread alone.
#[test]
fn a_stepped_device_advances_while_it_is_waited_for() {
    for preset in [Preset::gfx1100(), Preset::gfx90a()] {
        let model = Model::builder().gpu(preset).stepped(true).build();
        let kfd = Kfd::open_on(Arc::<Model>::clone(&model)).unwrap();
        let gpu = kfd.first_gpu().unwrap();
        let queue = gpu.create_queue(&QueueRequest::aql(64)).unwrap();
        run_noops(&gpu, &queue, 500).unwrap();
    }
}
