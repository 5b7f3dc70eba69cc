//! What goes wrong on the device, and what the driver makes of it.
//!
//! What the host can learn depends on the GPU and the kernel (docs/ABI.md §Trap): gfx1100 runs waves
//! with traps off, so of a misaligned atomic or an illegal instruction nothing reaches the host but
//! that the kernel never ends, and an abort is told by the program itself, to KFD 1.13 and later.

use std::time::{Duration, Instant};

use aql::{BarrierAnd, Packet};
use kfd::report::{Exception, FaultCause, FaultReport, HangReport, QueueFault};
use kfd::{Buffer, Error, Gpu, KernelLabel, MemoryRequest, Queue, QueueRequest, Signal, Until};
use kfd_model::{Model, Preset};
use kfd_tests::program::{Launch, Program, faults};
use kfd_tests::{Device, each_device, each_kernel, each_model, on_hardware, skip};

use crate::support::{LONG, noop, run_noops, use_everything};

/// How long a wait for something that never comes lasts.
const BOUND: Duration = Duration::from_millis(500);
/// Within this time a fault is known to everybody who waits.
const SOON: Duration = Duration::from_secs(20);

/// A queue, the kernels that go wrong, and a completion signal.
struct Bench<'d> {
    device: &'d Device,
    gpu: Gpu,
    queue: Queue,
    program: Program,
    done: Signal,
}

impl<'d> Bench<'d> {
    fn new(device: &'d Device) -> Self {
        Self::on(device, device.gpu())
    }

    fn on(device: &'d Device, gpu: Gpu) -> Self {
        let target = gpu.gfx_version().to_string();
        Self {
            device,
            queue: gpu.create_queue(&QueueRequest::aql(64)).unwrap(),
            program: Program::load(&gpu, faults(&target)),
            done: gpu.create_signal(1).unwrap(),
            gpu,
        }
    }

    /// Submits one work-item of `kernel`, which completes `done`.
    fn launch(&self, kernel: &str, arguments: &[u64]) -> Launch {
        let launch = self.program.launch(&self.device.kfd, &self.gpu, kernel, (1, 1), arguments);
        let packet = launch.packet.completion(self.done.addr()).encode();
        self.queue.submit(&packet, launch.label).unwrap();
        launch
    }

    fn memory(&self) -> Buffer {
        self.gpu.allocate(&MemoryRequest::gtt(4096).label("victim")).unwrap()
    }

    fn wait(&self, limit: Duration) -> kfd::Result<i64> {
        self.queue.wait(&self.done, Until::Below(1), limit)
    }

    fn lost(&self) -> std::sync::Arc<FaultReport> {
        match self.wait(SOON).unwrap_err() {
            Error::DeviceLost(report) => report,
            other => panic!("{other}"),
        }
    }

    fn queue_lost(&self) -> std::sync::Arc<QueueFault> {
        match self.wait(SOON).unwrap_err() {
            Error::QueueLost(report) => report,
            other => panic!("{other}"),
        }
    }

    fn hang(&self) -> std::sync::Arc<HangReport> {
        let start = Instant::now();
        let report = match self.wait(BOUND).unwrap_err() {
            Error::Timeout(report) => report,
            other => panic!("{other}"),
        };
        assert!(start.elapsed() >= BOUND && start.elapsed() < BOUND + SOON);
        report
    }

    /// A second queue of the process runs packets and kernels as ever.
    fn second_queue_works(&self) {
        let queue = self.gpu.create_queue(&QueueRequest::aql(64)).unwrap();
        run_noops(&self.gpu, &queue, 3).unwrap();
        let (out, done) = (self.memory(), self.gpu.create_signal(1).unwrap());
        out.u32(0).unwrap().store(41, std::sync::atomic::Ordering::Release);
        let arguments = [out.addr().get(), out.addr().get() + 8];
        let launch =
            self.program.launch(&self.device.kfd, &self.gpu, "wild_load", (1, 1), &arguments);
        let packet = launch.packet.completion(done.addr()).encode();
        queue.submit(&packet, launch.label).unwrap();
        queue.wait(&done, Until::Below(1), LONG).unwrap();
        assert_eq!(out.u32(8).unwrap().load(std::sync::atomic::Ordering::Acquire), 42);
        queue.destroy().unwrap();
    }
}

/// Whether the device has kernels for these tests; says so if not.
fn has_kernels(device: &Device) -> bool {
    let known = ["gfx90a", "gfx1100"].contains(&device.target().as_str());
    if !known {
        skip("there are no fault kernels for this GPU's target");
    }
    known
}

fn each(test: impl Fn(&Device)) {
    each_kernel(|device| {
        if has_kernels(device) {
            test(device);
        }
    });
}

/// Whether waves enter a trap handler without a debugger.
fn traps(device: &Device) -> bool {
    kfd::trap::traps_enabled(device.gpu().gfx_version().target_version())
}

/// Whether KFD passes messages of waves on to the process: 1.13 and later.
fn takes_messages(device: &Device) -> bool {
    device.kfd.supports(kfd::Feature::RuntimeEnable)
}

#[track_caller]
fn memory_cause(report: &FaultReport) -> (u64, bool, bool) {
    match report.cause {
        FaultCause::Memory { page, not_present, read_only, no_execute, imprecise, error_type } => {
            assert!(!no_execute && !imprecise && error_type == 0, "{:?}", report.cause);
            (page.get(), not_present, read_only)
        }
        other => panic!("{other:?}"),
    }
}

// Memory faults

#[test]
fn a_store_past_the_end_of_a_buffer_is_reported_with_page_flags_and_neighbour() {
    each(|device| {
        let bench = Bench::new(device);
        let victim = bench.memory();
        let end = victim.addr().get() + 4096;
        let _launch = bench.launch("wild_store", &[end + 0x124]);
        let report = bench.lost();
        // A refused write sets the bit for a missing page and the one for a missing permission.
        assert_eq!(memory_cause(&report), (end, true, true));
        assert_eq!(report.gpu, bench.gpu.id());
        let neighbours = report.neighbours;
        assert_eq!((neighbours.inside, neighbours.freed), (None, None));
        assert_eq!(neighbours.before.unwrap().addr, victim.addr());
        let text = report.to_string();
        assert!(text.contains("victim") && text.contains("the page is at +4096"), "{text}");
        assert!(text.contains("wild_store") && text.contains("not present"), "{text}");
        let state = &report.queues[0];
        assert_eq!((state.queue, state.read_index, state.write_index), (bench.queue.id(), 0, 1));
        assert_eq!(state.packets[0].kernel.as_deref(), Some("wild_store"));
    });
}

#[test]
fn a_load_from_nowhere_is_reported_as_a_load() {
    each(|device| {
        let bench = Bench::new(device);
        let out = bench.memory();
        let nowhere = out.addr().get() + 4096;
        let _launch = bench.launch("wild_load", &[nowhere, out.addr().get()]);
        assert_eq!(memory_cause(&bench.lost()), (nowhere, true, false));
    });
}

#[test]
fn a_null_pointer_is_a_fault_at_page_zero() {
    each(|device| {
        let bench = Bench::new(device);
        let _launch = bench.launch("wild_store", &[0]);
        assert_eq!(memory_cause(&bench.lost()), (0, true, true));
    });
}

#[test]
fn a_freed_pointer_is_named_as_freed() {
    each(|device| {
        let bench = Bench::new(device);
        let _around = (bench.memory(), bench.memory());
        let freed = bench.gpu.allocate(&MemoryRequest::gtt(4096).label("gone")).unwrap();
        let addr = freed.addr();
        let arguments = [addr.get(), bench.memory().addr().get()];
        let launch = bench.program.launch(&device.kfd, &bench.gpu, "wild_load", (1, 1), &arguments);
        freed.free().unwrap();
        let packet = launch.packet.completion(bench.done.addr()).encode();
        bench.queue.submit(&packet, launch.label).unwrap();
        let report = bench.lost();
        assert_eq!(report.neighbours.freed.map(|info| info.addr), Some(addr), "{report}");
        assert!(report.to_string().contains("freed gone"), "{report}");
    });
}

#[test]
fn a_store_to_read_only_memory_is_told_from_a_missing_page() {
    each(|device| {
        let bench = Bench::new(device);
        let constant =
            bench.gpu.allocate(&MemoryRequest::gtt(4096).read_only().label("constant")).unwrap();
        let _launch = bench.launch("wild_store", &[constant.addr().get() + 8]);
        let report = bench.lost();
        assert_eq!(memory_cause(&report), (constant.addr().get(), false, true));
        assert_eq!(report.neighbours.inside.unwrap().addr, constant.addr());
    });
}

#[test]
fn a_fault_ends_every_wait_on_that_gpu_with_the_first_cause() {
    each(|device| {
        let bench = Bench::new(device);
        let other = bench.gpu.create_queue(&QueueRequest::aql(64)).unwrap();
        let (never, gate) =
            (bench.gpu.create_signal(1).unwrap(), bench.gpu.create_signal(1).unwrap());
        other.submit(&crate::support::wait_for(&gate), KernelLabel::NONE).unwrap();
        other.submit(&noop(&never), KernelLabel::NONE).unwrap();
        let page = bench.memory().addr().get() + 0x10_0000_0000;
        std::thread::scope(|scope| {
            let waits = [
                scope.spawn(|| bench.wait(LONG).map(drop)),
                scope.spawn(|| other.wait(&never, Until::Below(1), LONG).map(drop)),
                scope.spawn(|| never.wait(Until::Below(1), LONG).map(drop)),
                scope.spawn(|| {
                    let signals = [(&never, Until::Below(1)), (&bench.done, Until::Below(1))];
                    device.kfd.wait_any(&signals, &[&other], LONG).map(drop)
                }),
            ];
            std::thread::sleep(Duration::from_millis(20));
            let start = Instant::now();
            let _launch = bench.launch("wild_store", &[page]);
            let reports: Vec<_> = waits
                .into_iter()
                .map(|wait| match wait.join().unwrap().unwrap_err() {
                    Error::DeviceLost(report) => report,
                    other => panic!("{other}"),
                })
                .collect();
            assert!(start.elapsed() < SOON);
            assert_eq!(memory_cause(&reports[0]).0, page);
            assert!(reports.iter().all(|report| *report == reports[0]), "the first cause");
            assert_eq!(reports[0].queues.len(), 2);
        });
        // And everything later on that GPU.
        gate.set(0);
        let refused = [
            bench.queue.submit(&noop(&bench.done), KernelLabel::NONE).map(drop),
            other.submit(&noop(&never), KernelLabel::NONE).map(drop),
            other.check(),
            bench.gpu.check(),
            bench.gpu.allocate(&MemoryRequest::gtt(4096)).map(drop),
            bench.gpu.create_queue(&QueueRequest::aql(64)).map(drop),
            never.wait(Until::Below(1), LONG).map(drop),
        ];
        for result in refused {
            let Err(Error::DeviceLost(report)) = result else { panic!("{result:?}") };
            assert_eq!(memory_cause(&report).0, page);
        }
        assert_eq!(never.value(), 1, "evicted queues do not go on");
        bench.queue.destroy().unwrap();
        other.destroy().unwrap();
    });
}

#[test]
fn another_gpu_of_the_process_goes_on() {
    if on_hardware() {
        return skip("it needs two GPUs of known targets");
    }
    each_model(
        || Model::builder().gpu(Preset::gfx90a()),
        |device| {
            let gpus = device.kfd.gpus();
            let (bad, good) =
                (Bench::on(device, gpus[0].clone()), Bench::on(device, gpus[1].clone()));
            let _launch = bad.launch("wild_store", &[0x7000]);
            bad.lost();
            good.second_queue_works();
            run_noops(&good.gpu, &good.queue, 10).unwrap();
            good.gpu.check().unwrap();
            assert!(bad.gpu.check().is_err());
            let _shared = good.memory();
        },
    );
}

#[test]
fn later_faults_do_not_replace_the_first() {
    each(|device| {
        let bench = Bench::new(device);
        let second = bench.gpu.create_queue(&QueueRequest::aql(64)).unwrap();
        let base = bench.memory().addr().get() + 0x20_0000_0000;
        let launch = |page| {
            bench.program.launch(&device.kfd, &bench.gpu, "wild_store", (1, 1), &[base + page])
        };
        let launches = [launch(0), launch(0x5000)];
        bench.queue.submit(&launches[0].packet.encode(), launches[0].label).unwrap();
        // It may be known to be lost by now.
        let _ = second.submit(&launches[1].packet.encode(), launches[1].label);
        let report = bench.lost();
        assert!([base, base + 0x5000].contains(&memory_cause(&report).0));
        std::thread::sleep(Duration::from_millis(50));
        device.kfd.poll_faults().unwrap();
        let Err(Error::DeviceLost(again)) = second.check() else { panic!("it is lost") };
        assert_eq!(*again, *report);
    });
}

/// Only what KFD told, and what the driver knew: no instruction, no exact address.
#[test]
fn a_report_holds_nothing_that_kfd_did_not_tell() {
    each(|device| {
        let bench = Bench::new(device);
        let address = bench.memory().addr().get() + 0x30_0000_0000 + 0xabc;
        let _launch = bench.launch("wild_store", &[address]);
        let report = bench.lost();
        assert_eq!(memory_cause(&report).0, address & !0xfff);
        assert!(!format!("{report:?} {report}").contains("abc"), "{report:?}");
    });
}

#[test]
fn a_wild_kernel_object_is_a_fault_of_the_packet_processor() {
    each_model(Model::builder, |device| {
        let gpu = device.gpu();
        let queue = gpu.create_queue(&QueueRequest::aql(64)).unwrap();
        let done = gpu.create_signal(1).unwrap();
        let object = 0x7ead_0000_1000_u64;
        let packet = aql::KernelDispatch::new(object.into(), [1; 3], [1; 3]).unwrap();
        let label = device.kfd.register_kernel("nowhere");
        queue.submit(&packet.completion(done.addr()).encode(), label).unwrap();
        let error = queue.wait(&done, Until::Below(1), SOON).unwrap_err();
        let Error::DeviceLost(report) = &error else { panic!("{error}") };
        assert_eq!(memory_cause(report), (object, true, false));
        assert!(error.to_string().contains("nowhere"), "{error}");
    });
}

#[test]
fn a_process_with_a_lost_gpu_closes_in_short_time() {
    each(|device| {
        let bench = Bench::new(device);
        let _launch = bench.launch("wild_store", &[0x5000]);
        bench.lost();
        let start = Instant::now();
        drop(bench);
        assert!(start.elapsed() < Duration::from_secs(10));
    });
}

#[test]
fn a_queue_destroyed_while_its_fault_is_on_its_way_is_gone() {
    for round in 0..20 {
        let device = Device::of(Model::builder().build(), "gfx1100");
        let Bench { queue, program, done, gpu, .. } = Bench::new(&device);
        let launch = program.launch(&device.kfd, &gpu, "wild_store", (1, 1), &[0x6000]);
        let packet = launch.packet.completion(done.addr()).encode();
        queue.submit(&packet, launch.label).unwrap();
        std::thread::sleep(Duration::from_micros(round * 50));
        queue.destroy().unwrap();
        let _ = device.kfd.poll_faults();
    }
}

#[test]
fn a_reset_gpu_is_lost_with_its_cause() {
    each_model(Model::builder, |device| {
        let gpu = device.gpu();
        let queue = gpu.create_queue(&QueueRequest::aql(64)).unwrap();
        run_noops(&gpu, &queue, 3).unwrap();
        let signal = gpu.create_signal(1).unwrap();
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| queue.wait(&signal, Until::Below(1), LONG));
            std::thread::sleep(Duration::from_millis(20));
            device.model().reset_gpu(0);
            let error = waiter.join().unwrap().unwrap_err();
            let Error::DeviceLost(report) = &error else { panic!("{error}") };
            let FaultCause::Hardware { reset_type: 0, reset_cause: 0, memory_lost: true } =
                report.cause
            else {
                panic!("{:?}", report.cause);
            };
            assert!(error.to_string().contains("reset after a hang"), "{error}");
        });
        assert!(gpu.check().is_err());
    });
}

// Exceptions of waves

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

fn check_hang(report: &HangReport, queue: kfd::QueueId, kernel: &str) {
    let state = report.queue.as_ref().unwrap();
    assert_eq!((state.queue, state.read_index, state.write_index), (queue, 0, 1));
    assert_eq!(state.packets[0].kernel.as_deref(), Some(kernel));
    assert!(report.packet.as_ref().unwrap().contains("kernel-dispatch"), "{report:?}");
    assert!(report.waited_ms >= 500 && report.value == 1, "{report:?}");
    assert!(report.to_string().contains(kernel), "{report}");
}

#[test]
fn an_illegal_instruction_is_a_queue_exception_where_waves_trap() {
    each(|device| exception_or_hang(device, "illegal", 4, |memory| vec![memory]));
}

#[test]
fn a_misaligned_atomic_is_a_queue_exception_where_waves_trap() {
    each(|device| exception_or_hang(device, "atomic_at", 6, |memory| vec![memory + 2]));
}

#[test]
fn an_aligned_atomic_is_none() {
    each(|device| {
        let bench = Bench::new(device);
        let memory = bench.memory();
        let _launch = bench.launch("atomic_at", &[memory.addr().get() + 4]);
        bench.wait(LONG).unwrap();
        assert_eq!(memory.u32(4).unwrap().load(std::sync::atomic::Ordering::Acquire), 1);
    });
}

#[test]
fn an_abort_is_a_queue_exception_where_it_can_reach_the_host() {
    each(|device| {
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
    each(|device| {
        let bench = Bench::new(device);
        let memory = bench.memory();
        let address = memory.addr().get();
        let _launch = bench.launch("abort_if", &[address, address + 64]);
        bench.wait(LONG).unwrap();
        let out = |at| memory.u32(at).unwrap().load(std::sync::atomic::Ordering::Acquire);
        assert_eq!((out(64), out(68)), (1, 1));
    });
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

// Hangs

#[test]
fn an_endless_kernel_ends_the_wait_at_its_bound_and_its_queue_can_be_destroyed() {
    each(|device| {
        let bench = Bench::new(device);
        let _launch = bench.launch("endless", &[]);
        check_hang(&bench.hang(), bench.queue.id(), "endless");
        bench.second_queue_works();
        check_hang(&bench.hang(), bench.queue.id(), "endless");
        let start = Instant::now();
        let Bench { queue, .. } = bench;
        queue.destroy().unwrap();
        assert!(start.elapsed() < SOON);
    });
}

#[test]
fn a_kernel_that_spins_sees_the_hosts_store_and_ends() {
    each(|device| {
        let bench = Bench::new(device);
        let request = MemoryRequest::gtt(4096).coherent().uncached();
        let memory = bench.gpu.allocate(&request).unwrap();
        let address = memory.addr().get();
        let _launch = bench.launch("spin_until", &[address, address + 64]);
        check_hang(&bench.hang(), bench.queue.id(), "spin_until");
        memory.u32(0).unwrap().store(1, std::sync::atomic::Ordering::Release);
        bench.wait(LONG).unwrap();
        assert_eq!(memory.u32(64).unwrap().load(std::sync::atomic::Ordering::Acquire), 7);
    });
}

#[test]
fn a_suspended_queue_runs_no_wave_until_it_is_resumed() {
    each_device(|device| {
        if !has_kernels(device) {
            return;
        }
        let bench = Bench::new(device);
        let request = MemoryRequest::gtt(4096).coherent().uncached();
        let memory = bench.gpu.allocate(&request).unwrap();
        let (stop, out) = (memory.u32(0).unwrap(), memory.u32(64).unwrap());
        let address = memory.addr().get();
        let _launch = bench.launch("spin_until", &[address, address + 64]);
        // It runs: the wait ends by time only.
        bench.hang();
        bench.queue.suspend().unwrap();
        stop.store(1, std::sync::atomic::Ordering::Release);
        bench.hang();
        assert_eq!(out.load(std::sync::atomic::Ordering::Acquire), 0);
        bench.queue.resume().unwrap();
        bench.wait(LONG).unwrap();
        assert_eq!(out.load(std::sync::atomic::Ordering::Acquire), 7);
    });
}

#[test]
fn a_device_with_an_endless_kernel_can_be_dropped() {
    each_device(|device| {
        if !has_kernels(device) {
            return;
        }
        let bench = Bench::new(device);
        let launch = bench.launch("endless", &[]);
        std::thread::sleep(Duration::from_millis(20));
        let start = Instant::now();
        // The queue goes before the code it runs.
        let Bench { queue, program, done, gpu, .. } = bench;
        drop(queue);
        drop((launch, program, done, gpu));
        assert!(start.elapsed() < SOON);
    });
}

// Bad packets

/// A packet that no command processor takes: its words, KFD's code and the bit of the inactive
/// signal that say why. Source: docs/ABI.md §Queue errors.
fn bad_packets() -> Vec<(&'static str, Packet, u32, u64)> {
    let dispatch = aql::KernelDispatch::new(0x10_0000_u64.into(), [64, 1, 1], [64, 1, 1]).unwrap();
    let with = |change: &dyn Fn(&mut [u32; 16])| {
        let mut packet = dispatch.encode();
        change(&mut packet.0);
        packet
    };
    vec![
        ("no work-items", with(&|words| words[3] = 0), 16, 0x2),
        ("no dimensions", with(&|words| words[0] &= 0xffff), 16, 0x2),
        ("too much LDS", with(&|words| words[7] = 1 << 20), 17, 0x4),
        ("a null kernel", with(&|words| words[8] = 0), 18, 0x8),
        ("a misaligned kernel", with(&|words| words[8] |= 8), 18, 0x8),
        ("an agent dispatch", with(&|words| words[0] = words[0] & !0xff | 4), 20, 0x20),
        ("a packet of type 7", with(&|words| words[0] = words[0] & !0xff | 7), 20, 0x20),
        ("a huge workgroup", with(&|words| words[1] = 1025 | 1 << 16), 21, 0x40),
        (
            "an unknown vendor format",
            with(&|words| words[0] = words[0] & !0xff_00ff | 0x7f_0000),
            23,
            0x100,
        ),
    ]
}

#[test]
fn a_bad_packet_stops_its_queue_unconsumed_and_the_second_queue_runs_on() {
    each_kernel(|device| {
        let gpu = device.gpu();
        for (name, packet, code, bit) in bad_packets() {
            let queue = gpu.create_queue(&QueueRequest::aql(64)).unwrap();
            run_noops(&gpu, &queue, 2).unwrap();
            let behind: Vec<_> = (0..3).map(|_| gpu.create_signal(1).unwrap()).collect();
            let label = device.kfd.register_kernel(name);
            queue.submit(&packet, label).unwrap();
            for signal in &behind {
                let _ = queue.submit(&noop(signal), KernelLabel::NONE);
            }
            for signal in &behind {
                let error = queue.wait(signal, Until::Below(1), SOON).unwrap_err();
                let Error::QueueLost(fault) = &error else { panic!("{name}: {error}") };
                let allowed = [Exception::Kfd(code), Exception::Inactive(bit)];
                assert!(!fault.reasons.is_empty(), "{name}: {error}");
                assert!(fault.reasons.iter().all(|r| allowed.contains(r)), "{name}: {error}");
                assert_eq!(fault.state.read_index, 2, "{name}: it is not consumed");
                assert_eq!(fault.state.packets[0].index, 2);
                assert_eq!(fault.state.packets[0].kernel.as_deref(), Some(name));
            }
            assert!(behind.iter().all(|signal| signal.value() == 1));
            let other = gpu.create_queue(&QueueRequest::aql(64)).unwrap();
            run_noops(&gpu, &other, 3).unwrap();
            gpu.check().unwrap();
            queue.destroy().unwrap();
        }
    });
}

#[test]
fn a_thread_asleep_hears_of_a_bad_packet() {
    each_kernel(|device| {
        let gpu = device.gpu();
        let queue = gpu.create_queue(&QueueRequest::aql(64)).unwrap();
        let never = gpu.create_signal(1).unwrap();
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| queue.wait(&never, Until::Below(1), LONG));
            std::thread::sleep(Duration::from_millis(40));
            let (_, packet, ..) = bad_packets().swap_remove(0);
            queue.submit(&packet, KernelLabel::NONE).unwrap();
            let error = waiter.join().unwrap().unwrap_err();
            assert!(matches!(error, Error::QueueLost(_)), "{error}");
        });
    });
}

#[test]
fn after_a_fault_a_new_process_state_starts_clean() {
    for preset in [Preset::gfx1100(), Preset::gfx90a()] {
        let device = Device::of(Model::builder().gpu(preset.clone()).build(), "a");
        let bench = Bench::new(&device);
        let _launch = bench.launch("wild_store", &[0x5000]);
        bench.lost();
        let other = Device::of(Model::builder().gpu(preset).build(), "b");
        use_everything(&other.kfd).unwrap();
    }
}
