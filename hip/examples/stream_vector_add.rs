//! A complete program on `hip`: adds two vectors on the first GPU.
//!
//! `cargo run -p kfd-hip --example stream_vector_add -- vadd.co` takes a code object, a bundle, or a host
//! program with device code in it.

use std::error::Error;

use hip::{Event, Grid, Module, Runtime, Stream, StreamRequest};
use kfd::MemoryRequest;

const N: u32 = 1 << 16;

/// Adds two vectors with the kernel `vadd` and returns the sum, and how long the kernel took.
pub fn run(runtime: &Runtime, code: &[u8]) -> Result<(Vec<f32>, i64), Box<dyn Error>> {
    let device = runtime.devices().first().ok_or("no GPU")?;
    let module = Module::load(device, code)?;
    let vadd = module.function("vadd")?;
    let mut stream = Stream::new(device, StreamRequest::aql())?;

    let vector = || device.allocate(&MemoryRequest::gtt(u64::from(N) * 4).label("vector"));
    let (a, b, sum) = (vector()?, vector()?, vector()?);
    let numbers = |from: u32| -> Vec<u8> {
        (from..from + N).flat_map(|i| (i as f32).to_le_bytes()).collect()
    };
    a.write(0, &numbers(0))?;
    b.write(0, &numbers(N))?;

    let (before, after) = (Event::new(runtime), Event::new(runtime));
    stream.record(&before)?;
    stream.launch(&vadd, &Grid::items([N, 1, 1], [256, 1, 1]), (&a, &b, &sum, N))?;
    stream.record(&after)?;
    stream.synchronize()?;

    let mut bytes = vec![0; usize::try_from(sum.bytes())?];
    sum.read(0, &mut bytes)?;
    let sum = bytes.as_chunks().0.iter().map(|value| f32::from_le_bytes(*value)).collect();
    Ok((sum, after.nanoseconds_since(&before)?))
}

#[allow(dead_code)] // a test includes this file for `run`
fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("usage: stream_vector_add FILE")?;
    let (sum, nanoseconds) = run(&Runtime::open()?, &std::fs::read(path)?)?;
    let right = sum.iter().zip(0..N).all(|(sum, i)| *sum == i as f32 + (N + i) as f32);
    println!(
        "{} sums in {nanoseconds} ns, {}",
        sum.len(),
        if right { "all right" } else { "wrong" }
    );
    Ok(())
}
