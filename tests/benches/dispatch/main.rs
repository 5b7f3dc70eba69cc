//! One AQL dispatch and one satisfied wait.
//!
//! Run by `cargo bench`, criterion times them. With `KFD_BENCH_COUNT=1` each is done a thousand times
//! in a function of its own, for `tests/benches/instructions.sh`, which counts their instructions with
//! callgrind: the count is the gate, the times are information.
//!
//! A dispatch is all that a launch needs once its kernel is known: kernel arguments written, packet
//! encoded and published, doorbell rung. The consumer is stopped and the ring never fills. One kernel
//! takes 32 bytes of arguments, the other 28 and the 256 of version 5's hidden ones.

use std::hint::black_box;
use std::time::{Duration, Instant};

use aql::{KernelDispatch, Packet};
use criterion::Criterion;
use hsaco::{CodeObject, Geometry, KernargTemplate, Services};
use kfd::{Buffer, KernelLabel, Kfd, MemoryRequest, Queue, QueueRequest, Signal, Until};
use kfd_model::{Model, Preset};

const PLAIN: &[u8] = include_bytes!("../../fixtures/code-objects/atomics.gfx1100.v5.co");
const HIDDEN: &[u8] = include_bytes!("../../fixtures/code-objects/vadd.gfx1100.v5.co");
/// More than all dispatches of a run: criterion's are made of batches on a fresh queue.
const PACKETS: u32 = 1 << 16;

struct Launcher {
    queue: Queue,
    kernarg: Buffer,
    template: KernargTemplate,
    geometry: Geometry,
    dispatch: KernelDispatch,
    done: Signal,
    label: KernelLabel,
}

impl Launcher {
    fn new(kfd: &Kfd, object: &[u8], kernel: &str) -> Self {
        let gpu = kfd.first_gpu().unwrap();
        let queue = gpu.create_queue(&QueueRequest::aql(PACKETS)).unwrap();
        queue.suspend().unwrap();
        let object = CodeObject::parse(object).unwrap();
        let kernel = object.kernel(kernel).unwrap();
        let template = kernel.arguments().template(&Services::default()).unwrap();
        let kernarg = gpu.allocate(&MemoryRequest::gtt(4096).coherent().uncached()).unwrap();
        let dispatch = KernelDispatch::new(0x1_0000.into(), [1 << 20, 1, 1], [256, 1, 1]).unwrap();
        Self {
            dispatch: dispatch.kernarg(kernarg.addr()),
            geometry: Geometry::new([1 << 20, 1, 1], [256, 1, 1], 1).unwrap(),
            done: gpu.create_signal(0).unwrap(),
            label: kfd.register_kernel(kernel.name()),
            queue,
            kernarg,
            template,
        }
    }
}

/// Kernel arguments, packet, publication, doorbell. Without hidden arguments the packed explicit ones
/// are the whole segment.
#[inline(never)]
fn plain_dispatch(launcher: &Launcher, arguments: &[u8; 32]) {
    launcher.kernarg.write(0, arguments).unwrap();
    launch(launcher);
}

/// The same with hidden arguments.
#[inline(never)]
fn hidden_dispatch(launcher: &Launcher, arguments: &[u8; 28]) {
    let mut segment = [0; 288];
    launcher.template.write_packed(&mut segment, arguments, &launcher.geometry).unwrap();
    launcher.kernarg.write(0, &segment).unwrap();
    launch(launcher);
}

#[inline(always)]
fn launch(launcher: &Launcher) {
    let packet: Packet = launcher.dispatch.completion(launcher.done.addr()).encode();
    launcher.queue.submit(&packet, launcher.label).unwrap();
}

/// A wait that finds its signal as it should be.
#[inline(never)]
fn satisfied_wait(launcher: &Launcher) {
    launcher.queue.wait(&launcher.done, Until::Below(1), Duration::from_secs(1)).unwrap();
}

/// Times `dispatch` in batches that a fresh queue holds.
fn time(
    criterion: &mut Criterion,
    name: &str,
    fresh: impl Fn() -> Launcher,
    dispatch: impl Fn(&Launcher),
) {
    criterion.bench_function(name, |b| {
        b.iter_custom(|count| {
            let mut elapsed = Duration::ZERO;
            let mut left = count;
            while left > 0 {
                let batch = left.min(PACKETS.into());
                let launcher = fresh();
                let start = Instant::now();
                for _ in 0..batch {
                    dispatch(&launcher);
                }
                elapsed += start.elapsed();
                left -= batch;
            }
            elapsed
        });
    });
}

fn main() {
    let kfd = Kfd::open_on(Model::builder().gpu(Preset::gfx1100()).build()).unwrap();
    let plain = || Launcher::new(&kfd, PLAIN, "atomics");
    let hidden = || Launcher::new(&kfd, HIDDEN, "vadd");
    let (plain_arguments, hidden_arguments) = (black_box([1; 32]), black_box([1; 28]));
    if std::env::var_os("KFD_BENCH_COUNT").is_some() {
        let (plain, hidden) = (plain(), hidden());
        for _ in 0..1000 {
            plain_dispatch(&plain, &plain_arguments);
            hidden_dispatch(&hidden, &hidden_arguments);
            satisfied_wait(&plain);
        }
        return;
    }
    let mut criterion = Criterion::default().configure_from_args();
    let waiter = plain();
    criterion.bench_function("satisfied wait", |b| b.iter(|| satisfied_wait(&waiter)));
    time(&mut criterion, "dispatch", plain, |l| plain_dispatch(l, &plain_arguments));
    time(&mut criterion, "dispatch with hidden arguments", hidden, |l| {
        hidden_dispatch(l, &hidden_arguments);
    });
    criterion.final_summary();
}
