//! What a stream costs the host: launches, events, waits.
//!
//! Run by `cargo bench`, criterion times them. With `KFD_BENCH_COUNT=1` each is done a thousand times
//! in a function of its own, for `tests/benches/instructions.sh`. The consumer is stopped and no ring
//! ever fills, so that only the host's side counts.
#![allow(clippy::indexing_slicing)] // the model has one GPU

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::Criterion;
use hip::{
    CommandBuffer, CommandKind, CommandRecorder, CommandRequest, Event, Function, Grid, KernelId,
    Module, Runtime, Stream, StreamRequest,
};
use kfd::Kfd;
use kfd_model::{FaultPlan, Model, Preset};
use pm4::GpuAddr;

/// 32 bytes of arguments: six addresses would be 48; this kernel takes four.
const PLAIN: &[u8] = include_bytes!("../../fixtures/code-objects/atomics.gfx1100.v5.co");
/// 28 bytes of arguments and the 256 of version 5's hidden ones.
const HIDDEN: &[u8] = include_bytes!("../../fixtures/code-objects/vadd.gfx1100.v5.co");
/// More than all operations of a run.
const PACKETS: u32 = 1 << 14;

struct Bench {
    plan: Arc<FaultPlan>,
    runtime: Runtime,
    plain: Function,
    hidden: Function,
    grid: Grid,
    pointers: [GpuAddr; 4],
}

impl Bench {
    fn new() -> Self {
        let plan = Arc::new(FaultPlan::new());
        let model = Model::builder().gpu(Preset::gfx1100()).fault_plan(Arc::clone(&plan)).build();
        let runtime = Runtime::new(Kfd::open_on(model).unwrap()).unwrap();
        let device = &runtime.devices()[0];
        let function = |code, name| Module::load(device, code).unwrap().function(name).unwrap();
        Self {
            plain: function(PLAIN, "atomics"),
            hidden: function(HIDDEN, "vadd"),
            grid: Grid::items([1 << 20, 1, 1], [256, 1, 1]),
            pointers: black_box([GpuAddr::new(0x1000); 4]),
            plan,
            runtime,
        }
    }

    /// A stream whose queue fetches nothing.
    fn stream(&self, request: StreamRequest) -> Stream {
        let request = request.packets(PACKETS).kernarg_bytes(64 << 20).events(1100);
        let request = request.farewell(Duration::ZERO);
        Stream::new(&self.runtime.devices()[0], request).unwrap()
    }
}

#[inline(never)]
fn stream_launch_plain(bench: &Bench, stream: &mut Stream) {
    let [a, b, c, d] = bench.pointers;
    stream.launch(&bench.plain, &bench.grid, (a, b, c, d)).unwrap();
}

#[inline(never)]
fn stream_launch_hidden(bench: &Bench, stream: &mut Stream) {
    let [a, b, c, _] = bench.pointers;
    stream.launch(&bench.hidden, &bench.grid, (a, b, c, 7_u32)).unwrap();
}

#[inline(never)]
fn pm4_launch_plain(bench: &Bench, stream: &mut Stream) {
    let [a, b, c, d] = bench.pointers;
    stream.launch(&bench.plain, &bench.grid, (a, b, c, d)).unwrap();
}

#[inline(never)]
fn event_record_and_wait(event: &Event, stream: &mut Stream, other: &mut Stream) {
    stream.record(event).unwrap();
    other.wait(event).unwrap();
}

#[inline(never)]
fn empty_synchronize(stream: &mut Stream) {
    stream.synchronize().unwrap();
}

#[inline(never)]
fn submit_ten(stream: &mut Stream, command: &mut CommandBuffer) {
    stream.submit(command).unwrap();
}

#[inline(never)]
fn submit_thousand(stream: &mut Stream, command: &mut CommandBuffer) {
    stream.submit(command).unwrap();
}

#[inline(never)]
fn pm4_enter_thousand(stream: &mut Stream, command: &mut CommandBuffer) {
    stream.submit(command).unwrap();
}

#[inline(never)]
fn change_and_submit(stream: &mut Stream, command: &mut CommandBuffer, kernel: KernelId) {
    command.set_argument(kernel, 3, 1_u32).unwrap();
    stream.submit(command).unwrap();
}

#[inline(never)]
fn packets_thousand(stream: &mut Stream, command: &mut CommandBuffer) {
    stream.submit(command).unwrap();
}

/// Submissions counted: the device has to run them, so that instances are used again.
const SUBMISSIONS: usize = 20;

/// `kernels` additions of one element each.
fn record(bench: &Bench, kind: CommandKind, kernels: usize) -> (CommandBuffer, KernelId) {
    let device = &bench.runtime.devices()[0];
    let memory = device.allocate(&kfd::MemoryRequest::gtt(4096)).unwrap();
    let request = CommandRequest::new().kind(kind).instances(2);
    let mut recorder = CommandRecorder::new(device, request).unwrap();
    recorder.fill(&memory, 0_u8, 1).unwrap(); // keeps the memory
    let grid = Grid::items([1, 1, 1], [32, 1, 1]);
    let mut add = || recorder.kernel(&bench.hidden, &grid, (&memory, &memory, &memory, 1_u32));
    let mut last = add().unwrap();
    for _ in 1..kernels {
        last = add().unwrap();
    }
    (recorder.finish().unwrap(), last)
}

/// Submits and waits, so that each finds an instance that is idle. The first two make them.
fn submissions(stream: &mut Stream, mut submit: impl FnMut(&mut Stream, bool)) {
    for n in 0..SUBMISSIONS + 2 {
        submit(stream, n < 2);
        stream.synchronize().unwrap();
    }
}

fn count_commands(bench: &Bench) {
    for (request, is_pm4) in [(StreamRequest::aql(), false), (StreamRequest::pm4(), true)] {
        let mut stream =
            Stream::new(&bench.runtime.devices()[0], request.packets(1 << 12)).unwrap();
        let (mut ten, _) = record(bench, CommandKind::IndirectBuffer, 10);
        let (mut thousand, kernel) = record(bench, CommandKind::IndirectBuffer, 1000);
        if is_pm4 {
            submissions(&mut stream, |stream, first| match first {
                true => drop(stream.submit(&mut thousand).unwrap()),
                false => pm4_enter_thousand(stream, &mut thousand),
            });
            continue;
        }
        submissions(&mut stream, |stream, first| match first {
            true => drop(stream.submit(&mut ten).unwrap()),
            false => submit_ten(stream, &mut ten),
        });
        submissions(&mut stream, |stream, first| match first {
            true => drop(stream.submit(&mut thousand).unwrap()),
            false => submit_thousand(stream, &mut thousand),
        });
        submissions(&mut stream, |stream, first| match first {
            true => drop(stream.submit(&mut thousand).unwrap()),
            false => change_and_submit(stream, &mut thousand, kernel),
        });
        let (mut packets, _) = record(bench, CommandKind::Packets, 1000);
        submissions(&mut stream, |stream, first| match first {
            true => drop(stream.submit(&mut packets).unwrap()),
            false => packets_thousand(stream, &mut packets),
        });
    }
}

fn count(bench: &Bench) {
    count_commands(bench);
    let mut idle = bench.stream(StreamRequest::aql());
    idle.synchronize().unwrap();
    for _ in 0..1000 {
        empty_synchronize(&mut idle);
    }
    bench.plan.stop_fetching(true);
    let (mut aql, mut other) =
        (bench.stream(StreamRequest::aql()), bench.stream(StreamRequest::aql()));
    let mut pm4 = bench.stream(StreamRequest::pm4());
    let event = Event::new(&bench.runtime);
    // The first packet of a stream invalidates caches; its buffer is made then.
    let [a, b, c, d] = bench.pointers;
    for stream in [&mut aql, &mut pm4] {
        stream.launch(&bench.plain, &bench.grid, (a, b, c, d)).unwrap();
    }
    for _ in 0..1000 {
        stream_launch_plain(bench, &mut aql);
    }
    for _ in 0..1000 {
        stream_launch_hidden(bench, &mut aql);
    }
    for _ in 0..1000 {
        pm4_launch_plain(bench, &mut pm4);
    }
    for _ in 0..1000 {
        event_record_and_wait(&event, &mut aql, &mut other);
    }
}

/// Times `operation` in batches that a fresh stream holds.
fn time(
    criterion: &mut Criterion,
    name: &str,
    bench: &Bench,
    request: StreamRequest,
    hidden: bool,
) {
    criterion.bench_function(name, |b| {
        b.iter_custom(|count| {
            let mut elapsed = Duration::ZERO;
            let mut left = count;
            while left > 0 {
                let batch = left.min(u64::from(PACKETS) / 2);
                let mut stream = bench.stream(request);
                let start = Instant::now();
                for _ in 0..batch {
                    if hidden {
                        stream_launch_hidden(bench, &mut stream);
                    } else {
                        stream_launch_plain(bench, &mut stream);
                    }
                }
                elapsed += start.elapsed();
                left -= batch;
            }
            elapsed
        });
    });
}

fn main() {
    let bench = Bench::new();
    if std::env::var_os("KFD_BENCH_COUNT").is_some() {
        count(&bench);
        // The consumer never runs again: nothing is to be waited for.
        std::process::exit(0);
    }
    let mut criterion = Criterion::default().configure_from_args();
    let mut idle = bench.stream(StreamRequest::aql());
    criterion.bench_function("empty synchronize", |b| b.iter(|| empty_synchronize(&mut idle)));
    bench.plan.stop_fetching(true);
    time(&mut criterion, "launch", &bench, StreamRequest::aql(), false);
    time(&mut criterion, "launch with hidden arguments", &bench, StreamRequest::aql(), true);
    time(&mut criterion, "launch on PM4", &bench, StreamRequest::pm4(), false);
    criterion.final_summary();
    std::process::exit(0);
}
