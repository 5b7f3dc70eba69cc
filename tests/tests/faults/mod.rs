//! What goes wrong on the device, and what the driver makes of it.
//!
//! What the host can learn depends on the GPU and the kernel (docs/ABI.md §Trap): gfx9 and gfx1151 run
//! waves that enter the trap handler. gfx1100 runs them with traps off, so of a misaligned atomic or an illegal instruction nothing reaches the host but
//! that the kernel never ends, and an abort is told by the program itself, to KFD 1.13 and later.

mod hangs;
mod memory;
mod packets;
mod waves;

use std::time::{Duration, Instant};

use aql::{BarrierAnd, Packet};
use kfd::report::{Exception, FaultCause, FaultReport, HangReport, QueueFault};
use kfd::{Buffer, Error, Gpu, KernelLabel, MemoryRequest, Queue, QueueRequest, Signal, Until};
use kfd_model::{Model, Preset};
use kfd_tests::program::{FAULT_TARGETS, Launch, Program, faults};
use kfd_tests::{Device, each_device, each_kernel, each_model, each_target, on_hardware, skip};

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
    let known = FAULT_TARGETS.contains(&device.target().as_str());
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

/// As [`each`], on the targets that differ besides.
fn each_of_many(test: impl Fn(&Device)) {
    each_target(|device| {
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

fn check_hang(report: &HangReport, queue: kfd::QueueId, kernel: &str) {
    let state = report.queue.as_ref().unwrap();
    assert_eq!((state.queue, state.read_index, state.write_index), (queue, 0, 1));
    assert_eq!(state.packets[0].kernel.as_deref(), Some(kernel));
    assert!(report.packet.as_ref().unwrap().contains("kernel-dispatch"), "{report:?}");
    assert!(report.waited_ms >= 500 && report.value == 1, "{report:?}");
    assert!(report.to_string().contains(kernel), "{report}");
}
