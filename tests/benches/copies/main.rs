//! What copies cost the host, and how fast the software GPU makes them.
//!
//! Run by `cargo bench`: a copy of 256 MiB of host memory through a stream, by an SDMA engine and by
//! kernels, beside the host's own `memcpy`, as a ratio. With `KFD_BENCH_COUNT=1` each kind of call is
//! done a thousand times in a function of its own, for `tests/benches/instructions.sh`. The consumer is
//! stopped then and no ring ever fills, so that only the host's side counts.
#![allow(clippy::indexing_slicing)] // a benchmark that indexes past the end should fail

use std::sync::Arc;
use std::time::{Duration, Instant};

use hip::{CopyEngine, CopyRequest, Memory, Runtime, Stream, StreamRequest};
use kfd::{Kfd, MemoryRequest};
use kfd_model::{FaultPlan, Model, Preset};

/// Bytes of the copies that are timed.
const LARGE: u64 = 256 << 20;
/// Bytes of the copies that are counted.
const COUNTED: u64 = 1 << 20;

struct Bench {
    plan: Arc<FaultPlan>,
    runtime: Runtime,
}

impl Bench {
    fn new() -> Self {
        let plan = Arc::new(FaultPlan::new());
        let model = Model::builder().gpu(Preset::gfx1100()).fault_plan(Arc::clone(&plan)).build();
        Self { runtime: Runtime::new(Kfd::open_on(model).unwrap()).unwrap(), plan }
    }

    fn stream(&self, engine: CopyEngine) -> Stream {
        let copies = CopyRequest::new().engine(engine).sdma_ring_bytes(1 << 20);
        let request = StreamRequest::aql().packets(1 << 14).kernarg_bytes(16 << 20);
        let request = request.copies(copies).farewell(Duration::ZERO);
        Stream::new(&self.runtime.devices()[0], request).unwrap()
    }

    fn memory(&self, bytes: u64) -> Memory {
        let memory = self.runtime.devices()[0].allocate(&MemoryRequest::gtt(bytes)).unwrap();
        // Every page is there before time is taken.
        for page in (0..bytes).step_by(4096) {
            memory.write(page, &[1]).unwrap();
        }
        memory
    }
}

#[inline(never)]
fn copy_by_engine(stream: &mut Stream, dst: &Memory, src: &Memory) {
    stream.copy(dst, src, COUNTED).unwrap();
}

#[inline(never)]
fn copy_by_kernel(stream: &mut Stream, dst: &Memory, src: &Memory) {
    stream.copy(dst, src, COUNTED).unwrap();
}

#[inline(never)]
fn fill_by_kernel(stream: &mut Stream, dst: &Memory) {
    stream.fill(dst, 7_u32, COUNTED / 4).unwrap();
}

fn count(bench: &Bench) {
    let (dst, src) = (bench.memory(COUNTED), bench.memory(COUNTED));
    let (mut sdma, mut shader) = (bench.stream(CopyEngine::Sdma), bench.stream(CopyEngine::Shader));
    // Queues and kernels are made with the first, signals with the first thousand.
    for stream in [&mut sdma, &mut shader] {
        (0..1500).for_each(|_| stream.copy(&dst, &src, 1).unwrap());
        stream.synchronize().unwrap();
    }
    bench.plan.stop_fetching(true);
    for _ in 0..1000 {
        copy_by_engine(&mut sdma, &dst, &src);
    }
    for _ in 0..1000 {
        copy_by_kernel(&mut shader, &dst, &src);
    }
    for _ in 0..1000 {
        fill_by_kernel(&mut shader, &dst);
    }
}

/// The shortest of a few.
fn best(mut run: impl FnMut()) -> Duration {
    let once = |_| {
        let start = Instant::now();
        run();
        start.elapsed()
    };
    (0..5).map(once).min().unwrap_or_default()
}

fn main() {
    let bench = Bench::new();
    if std::env::var_os("KFD_BENCH_COUNT").is_some() {
        count(&bench);
        // The consumer never runs again: nothing is to be waited for.
        std::process::exit(0);
    }
    let bytes = usize::try_from(LARGE).unwrap();
    let (from, mut to) = (vec![1_u8; bytes], vec![0_u8; bytes]);
    let host = best(|| std::hint::black_box(&mut to).copy_from_slice(std::hint::black_box(&from)));
    drop((from, to));
    let rate = |time: Duration| LARGE as f64 / time.as_secs_f64() / 1e9;
    println!("memcpy of 256 MiB: {host:.1?}, {:.2} GB/s", rate(host));
    let (dst, src) = (bench.memory(LARGE), bench.memory(LARGE));
    for (name, engine) in [("engine", CopyEngine::Sdma), ("kernel", CopyEngine::Shader)] {
        let mut stream = bench.stream(engine);
        let time = best(|| {
            stream.copy(&dst, &src, LARGE).unwrap();
            stream.synchronize().unwrap();
        });
        let ratio = host.as_secs_f64() / time.as_secs_f64();
        println!("by {name}: {time:.1?}, {:.2} GB/s, {ratio:.2} of memcpy", rate(time));
    }
}
