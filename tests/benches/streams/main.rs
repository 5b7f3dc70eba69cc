//! What a stream costs the host: launches, events, waits.
//!
//! Run by `cargo bench`, criterion times them. With `KFD_BENCH_COUNT=1` each is done a thousand times
//! in a function of its own, for `tests/benches/instructions.sh`. The consumer is stopped and no ring
//! ever fills, so that only the host's side counts.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::Criterion;
use hip::{Event, Function, Grid, Module, Runtime, Stream, StreamRequest};
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
        let request = request.packets(PACKETS).kernarg_bytes(64 << 20).farewell(Duration::ZERO);
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

fn count(bench: &Bench) {
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
