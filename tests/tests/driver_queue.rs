//! Queues, signals and waits with packets that need no kernel, on the software GPU.

use std::sync::Arc;
use std::time::{Duration, Instant};

use aql::{BarrierAnd, Packet};
use kfd::{Error, KernelLabel, Kfd, QueueRequest, Until};
use kfd_model::{Model, Preset, Profile};

const SECOND: Duration = Duration::from_secs(1);

fn open(preset: Preset) -> (Arc<Model>, Kfd) {
    let model = Model::builder().gpu(preset).build();
    let kfd = Kfd::open_on(model.clone()).unwrap();
    (model, kfd)
}

fn noop(signal: &kfd::Signal) -> Packet {
    BarrierAnd::noop().completion(signal.addr()).encode()
}

#[test]
fn a_packet_completes_its_signal() {
    for preset in [Preset::gfx1100(), Preset::gfx90a()] {
        let (model, kfd) = open(preset);
        let gpu = kfd.first_gpu().unwrap();
        let queue = gpu.create_queue(&QueueRequest::aql(64)).unwrap();
        let signal = gpu.create_signal(1).unwrap();
        assert_eq!(queue.submit(&noop(&signal), KernelLabel::NONE).unwrap(), 0);
        assert_eq!(queue.wait(&signal, Until::Below(1), SECOND).unwrap(), 0);
        queue.destroy().unwrap();
        assert!(kfd.leaks().is_empty(), "{:?}", kfd.leaks());
        assert!(model.diagnostics().is_empty(), "{:?}", model.diagnostics());
    }
}

#[test]
fn more_packets_than_the_ring_holds_all_complete_in_order() {
    let (_model, kfd) = open(Preset::gfx1100());
    let gpu = kfd.first_gpu().unwrap();
    let queue = gpu.create_queue(&QueueRequest::aql(64)).unwrap();
    let signal = gpu.create_signal(1000).unwrap();
    for index in 0..1000 {
        let submitted = queue.submit_within(&noop(&signal), KernelLabel::NONE, SECOND).unwrap();
        assert_eq!(submitted, index);
    }
    queue.wait(&signal, Until::Below(1), SECOND).unwrap();
    queue.drain(SECOND).unwrap();
    assert_eq!(queue.state().write_index, 1001);
}

#[test]
fn a_full_ring_says_so_at_once_and_within_its_time() {
    let (_model, kfd) = open(Preset::gfx1100());
    let gpu = kfd.first_gpu().unwrap();
    let queue = gpu.create_queue(&QueueRequest::aql(64)).unwrap();
    let gate = gpu.create_signal(1).unwrap();
    let wait = BarrierAnd::new([gate.addr(); 5]).barrier().encode();
    for _ in 0..64 {
        queue.submit(&wait, KernelLabel::NONE).unwrap();
    }
    let full = queue.submit(&wait, KernelLabel::NONE).unwrap_err();
    assert!(matches!(full, Error::Ring { cause: aql::Error::Full { .. }, .. }), "{full}");
    let start = Instant::now();
    let late = queue.submit_within(&wait, KernelLabel::NONE, Duration::from_millis(30));
    assert!(matches!(late, Err(Error::Timeout(_))));
    assert!(start.elapsed() < SECOND);
    gate.set(0);
    queue.drain(SECOND).unwrap();
}

#[test]
fn a_wait_that_runs_out_of_time_reports_where_the_queue_stands() {
    let (_model, kfd) = open(Preset::gfx90a());
    let gpu = kfd.first_gpu().unwrap();
    let queue = gpu.create_queue(&QueueRequest::aql(64)).unwrap();
    let (gate, done) = (gpu.create_signal(1).unwrap(), gpu.create_signal(1).unwrap());
    let label = kfd.register_kernel("gatekeeper");
    let packet = BarrierAnd::new([gate.addr(); 5]).completion(done.addr()).encode();
    queue.submit(&packet, label).unwrap();
    let error = queue.wait(&done, Until::Below(1), Duration::from_millis(50)).unwrap_err();
    let Error::Timeout(report) = &error else { panic!("{error}") };
    let state = report.queue.as_ref().unwrap();
    assert_eq!((state.read_index, state.write_index), (0, 1));
    assert_eq!(state.packets[0].kernel.as_deref(), Some("gatekeeper"));
    assert!(report.packet.as_ref().unwrap().contains(&gate.addr().to_string()), "{report:?}");
    assert!(report.waited_ms >= 50 && report.value == 1, "{report:?}");
    // It hangs, and goes all the same.
    queue.destroy().unwrap();
    assert!(kfd.leaks().is_empty());
}

#[test]
fn a_host_can_wake_a_waiter_of_its_own() {
    let (_model, kfd) = open(Preset::gfx1100());
    let gpu = kfd.first_gpu().unwrap();
    let signal = gpu.create_signal(1).unwrap();
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| signal.wait(Until::Equal(7), 10 * SECOND));
        std::thread::sleep(Duration::from_millis(20));
        signal.set(7);
        signal.notify().unwrap();
        assert_eq!(waiter.join().unwrap().unwrap(), 7);
    });
}

#[test]
fn waiting_for_any_of_two_signals_names_the_one_that_is_there() {
    let (_model, kfd) = open(Preset::gfx1100());
    let gpu = kfd.first_gpu().unwrap();
    let queue = gpu.create_queue(&QueueRequest::aql(64)).unwrap();
    let (never, soon) = (gpu.create_signal(1).unwrap(), gpu.create_silent_signal(1).unwrap());
    queue.submit(&noop(&soon), KernelLabel::NONE).unwrap();
    let both = [(&never, Until::Below(1)), (&soon, Until::Below(1))];
    assert_eq!(kfd.wait_any(&both, &[&queue], SECOND).unwrap(), 1);
}

#[test]
fn queues_come_and_go_on_the_same_doorbell() {
    let (_model, kfd) = open(Preset::gfx1100());
    let gpu = kfd.first_gpu().unwrap();
    for _ in 0..10 {
        let queue = gpu.create_queue(&QueueRequest::aql(64)).unwrap();
        let signal = gpu.create_signal(5).unwrap();
        for _ in 0..5 {
            queue.submit(&noop(&signal), KernelLabel::NONE).unwrap();
        }
        queue.wait(&signal, Until::Below(1), SECOND).unwrap();
    }
    assert!(kfd.leaks().is_empty());
}

#[test]
fn scratch_is_checked_before_submission_and_can_grow() {
    for preset in [Preset::gfx1100(), Preset::gfx90a()] {
        let (_model, kfd) = open(preset);
        let gpu = kfd.first_gpu().unwrap();
        let queue = gpu.create_queue(&QueueRequest::aql(64).scratch(100)).unwrap();
        let available = queue.scratch_bytes();
        assert!(available >= 100);
        let packet = aql::KernelDispatch::new(0x1000.into(), [64, 1, 1], [64, 1, 1])
            .unwrap()
            .private_segment(available + 1)
            .encode();
        let error = queue.submit(&packet, KernelLabel::NONE).unwrap_err();
        assert!(matches!(error, Error::ScratchTooSmall { needed, .. } if needed == available + 1));
        queue.grow_scratch(available + 1, SECOND).unwrap();
        assert!(queue.scratch_bytes() > available);
        let signal = gpu.create_signal(1).unwrap();
        queue.submit(&noop(&signal), KernelLabel::NONE).unwrap();
        queue.wait(&signal, Until::Below(1), SECOND).unwrap();
    }
}

#[test]
fn a_suspended_queue_waits_and_a_resumed_one_goes_on() {
    let (_model, kfd) = open(Preset::gfx1100());
    let gpu = kfd.first_gpu().unwrap();
    let queue = gpu.create_queue(&QueueRequest::aql(64)).unwrap();
    let signal = gpu.create_signal(1).unwrap();
    queue.suspend().unwrap();
    queue.submit(&noop(&signal), KernelLabel::NONE).unwrap();
    let early = queue.wait(&signal, Until::Below(1), Duration::from_millis(30));
    assert!(matches!(early, Err(Error::Timeout(_))));
    queue.wave_state().unwrap();
    queue.resume().unwrap();
    queue.wait(&signal, Until::Below(1), SECOND).unwrap();
}

#[test]
fn every_kernel_runs_packets() {
    for profile in Profile::ALL {
        let model = Model::builder().gpu(Preset::gfx1100()).profile(profile).build();
        let kfd = Kfd::open_on(model).unwrap();
        assert_eq!(kfd.supports(kfd::Feature::EventAge), profile != Profile::V6_1);
        let gpu = kfd.first_gpu().unwrap();
        let queue = gpu.create_queue(&QueueRequest::aql(64)).unwrap();
        let signal = gpu.create_signal(1).unwrap();
        queue.submit(&noop(&signal), KernelLabel::NONE).unwrap();
        queue.wait(&signal, Until::Below(1), SECOND).unwrap();
    }
}

#[test]
fn a_bad_packet_loses_its_queue_only() {
    for preset in [Preset::gfx1100(), Preset::gfx90a()] {
        let (_model, kfd) = open(preset);
        let gpu = kfd.first_gpu().unwrap();
        let bad = gpu.create_queue(&QueueRequest::aql(64)).unwrap();
        let good = gpu.create_queue(&QueueRequest::aql(64)).unwrap();
        let signal = gpu.create_signal(1).unwrap();
        // Packet type 7 does not exist.
        let mut packet = noop(&signal);
        packet.0[0] = packet.0[0] & !0xff | 7;
        let label = kfd.register_kernel("bad");
        bad.submit(&packet, label).unwrap();
        let error = bad.wait(&signal, Until::Below(1), 5 * SECOND).unwrap_err();
        let Error::QueueLost(fault) = &error else { panic!("{error}") };
        assert!(fault.reasons.contains(&kfd::report::Exception::Kfd(20)), "{fault}");
        assert_eq!(fault.state.read_index, 0);
        assert_eq!(fault.state.packets[0].kernel.as_deref(), Some("bad"));
        assert_eq!(signal.value(), 1, "the packet is not consumed");
        assert!(matches!(bad.submit(&packet, label), Err(Error::QueueLost(_))));
        good.submit(&noop(&signal), KernelLabel::NONE).unwrap();
        good.wait(&signal, Until::Below(1), SECOND).unwrap();
        bad.destroy().unwrap();
        assert!(kfd.leaks().is_empty());
    }
}

#[test]
fn a_reset_loses_the_gpu_for_every_waiter_with_the_same_cause() {
    let (model, kfd) = open(Preset::gfx1100());
    let gpu = kfd.first_gpu().unwrap();
    let queue = gpu.create_queue(&QueueRequest::aql(64)).unwrap();
    let (gate, done) = (gpu.create_signal(1).unwrap(), gpu.create_signal(1).unwrap());
    let packet = BarrierAnd::new([gate.addr(); 5]).completion(done.addr()).encode();
    queue.submit(&packet, KernelLabel::NONE).unwrap();
    std::thread::scope(|scope| {
        let wait = || queue.wait(&done, Until::Below(1), 10 * SECOND);
        let waiters: Vec<_> = (0..4).map(|_| scope.spawn(wait)).collect();
        std::thread::sleep(Duration::from_millis(20));
        let start = Instant::now();
        model.reset_gpu(0);
        for waiter in waiters {
            let error = waiter.join().unwrap().unwrap_err();
            assert!(matches!(error, Error::DeviceLost(_)), "{error}");
        }
        assert!(start.elapsed() < SECOND);
    });
    assert!(matches!(gpu.check(), Err(Error::DeviceLost(_))));
    assert!(matches!(queue.submit(&packet, KernelLabel::NONE), Err(Error::DeviceLost(_))));
    queue.destroy().unwrap();
}
