//! Exceptions of waves.

use super::*;

/// A wave's exception `code` where waves trap, a hang where they do not; either way the rest of the
/// process goes on and the queue can be destroyed.
fn exception_or_hang(
    device: &Device,
    kernel: &str,
    code: u32,
    arguments: impl Fn(u64) -> Vec<u64>,
) {
    let bench = Bench::new(device);
    let memory = bench.memory();
    let _launch = bench.launch(kernel, &arguments(memory.addr().get()));
    if traps(device) {
        let fault = bench.queue_lost();
        assert_eq!(fault.reasons, [Exception::Kfd(code)], "{fault}");
        check_stopped_at(&bench, &fault, kernel);
    } else {
        check_hang(&bench.hang(), bench.queue.id(), kernel);
    }
    bench.second_queue_works();
    bench.gpu.check().unwrap();
    bench.queue.destroy().unwrap();
}

fn check_stopped_at(bench: &Bench<'_>, fault: &QueueFault, kernel: &str) {
    assert_eq!((fault.gpu, fault.state.queue), (bench.gpu.id(), bench.queue.id()));
    assert_eq!((fault.state.read_index, fault.state.write_index), (0, 1));
    assert_eq!(fault.state.packets[0].kernel.as_deref(), Some(kernel));
    let error = bench.queue.submit(&noop(&bench.done), KernelLabel::NONE).unwrap_err();
    assert!(matches!(error, Error::QueueLost(_)), "{error}");
    assert!(matches!(bench.queue.check(), Err(Error::QueueLost(_))));
}

#[test]
fn an_illegal_instruction_is_a_queue_exception_where_waves_trap() {
    each_of_many(|device| exception_or_hang(device, "illegal", 4, |memory| vec![memory]));
}

#[test]
fn a_misaligned_atomic_is_a_queue_exception_where_waves_trap() {
    each_of_many(|device| exception_or_hang(device, "atomic_at", 6, |memory| vec![memory + 2]));
}

#[test]
fn an_aligned_atomic_is_none() {
    each_of_many(|device| {
        let bench = Bench::new(device);
        let memory = bench.memory();
        let _launch = bench.launch("atomic_at", &[memory.addr().get() + 4]);
        bench.wait(LONG).unwrap();
        assert_eq!(memory.u32(4).unwrap().load(std::sync::atomic::Ordering::Acquire), 1);
    });
}

#[test]
fn an_abort_is_a_queue_exception_where_it_can_reach_the_host() {
    each_of_many(|device| {
        let bench = Bench::new(device);
        let memory = bench.memory();
        memory.write(0, &1_u32.to_le_bytes()).unwrap();
        let address = memory.addr().get();
        let _launch = bench.launch("abort_if", &[address, address + 64]);
        // With traps off the program sends the message by itself; 6.1 has no use for it.
        if traps(device) || takes_messages(device) {
            let fault = bench.queue_lost();
            assert_eq!(fault.reasons, [Exception::Kfd(1)], "{fault}");
            check_stopped_at(&bench, &fault, "abort_if");
            assert!(fault.to_string().contains("abort"), "{fault}");
        } else {
            check_hang(&bench.hang(), bench.queue.id(), "abort_if");
        }
        let out = |at| memory.u32(at).unwrap().load(std::sync::atomic::Ordering::Acquire);
        assert_eq!((out(64), out(68)), (1, 0), "it ran to the abort and no further");
        bench.second_queue_works();
        bench.queue.destroy().unwrap();
    });
}

#[test]
fn a_kernel_that_does_not_abort_runs_to_its_end() {
    each_of_many(|device| {
        let bench = Bench::new(device);
        let memory = bench.memory();
        let address = memory.addr().get();
        let _launch = bench.launch("abort_if", &[address, address + 64]);
        bench.wait(LONG).unwrap();
        let out = |at| memory.u32(at).unwrap().load(std::sync::atomic::Ordering::Acquire);
        assert_eq!((out(64), out(68)), (1, 1));
    });
}

/// The rule that these tests follow is the kernel's: which targets trap.
#[test]
fn waves_trap_everywhere_but_on_gfx1100_to_gfx1103() {
    let trapping = |version| kfd::trap::traps_enabled(version);
    assert!([90_000, 90_006, 90_008, 90_010, 90_402, 110_500, 110_501].into_iter().all(trapping));
    assert!(![110_000, 110_001, 110_002, 110_003].into_iter().any(trapping));
}

#[test]
fn every_waiter_of_a_stopped_queue_is_told_and_the_other_queue_runs_meanwhile() {
    each_device(|device| {
        if !has_kernels(device) {
            return;
        }
        let bench = Bench::new(device);
        let memory = bench.memory();
        memory.write(0, &1_u32.to_le_bytes()).unwrap();
        let behind: Vec<_> = (0..3).map(|_| bench.gpu.create_signal(1).unwrap()).collect();
        let address = memory.addr().get();
        let _launch = bench.launch("abort_if", &[address, address + 64]);
        for signal in &behind {
            let packet = BarrierAnd::noop().barrier().completion(signal.addr()).encode();
            // The queue may be known to be lost before the last of them.
            let _ = bench.queue.submit(&packet, KernelLabel::NONE);
        }
        std::thread::scope(|scope| {
            let waits: Vec<_> = behind
                .iter()
                .map(|signal| scope.spawn(|| bench.queue.wait(signal, Until::Below(1), LONG)))
                .collect();
            bench.second_queue_works();
            for wait in waits {
                let error = wait.join().unwrap().unwrap_err();
                let Error::QueueLost(fault) = &error else { panic!("{error}") };
                assert_eq!(fault.reasons, [Exception::Kfd(1)]);
            }
        });
        bench.queue.destroy().unwrap();
        assert!(behind.iter().all(|signal| signal.value() == 1));
    });
}
