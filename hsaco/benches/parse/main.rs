//! How fast files of code objects are read.
//!
//! With `HSACO_BENCH_FILE` naming a large program or bundle (`benches/parse/fetch.sh` gets Debian's
//! librocrand, 25 MB for seven targets), that file is measured; without, a small fixture. Throughput is
//! in bytes of the file.
#![allow(clippy::indexing_slicing, missing_docs)] // a benchmark: a panic is the failure

use std::hint::black_box;

use criterion::{Criterion, Throughput};
use hsaco::{CodeObject, Container, DeviceTarget};

const SMALL: &[u8] = include_bytes!("../../../tests/fixtures/code-objects/fat_host.o");
const COMPRESSED: &[u8] =
    include_bytes!("../../../tests/fixtures/code-objects/fat_host.ccob3.c22.bundle");

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let large = std::env::var_os("HSACO_BENCH_FILE").map(|path| std::fs::read(path).unwrap());
    let file = large.as_deref().unwrap_or(SMALL);
    let device = DeviceTarget::from_id("gfx90a:xnack-").unwrap();

    let container = Container::read(file).unwrap();
    let mut objects = 0;
    let mut kernels = 0;
    for image in container.images() {
        if let Ok(object) = CodeObject::parse(image.bytes) {
            objects += 1;
            kernels += object.kernels().len();
        }
    }
    println!("{} bytes, {objects} objects, {kernels} kernels", file.len());

    let mut group = criterion.benchmark_group("file");
    group.throughput(Throughput::Bytes(file.len() as u64));
    group.bench_function("choose one image and parse it", |bencher| {
        bencher.iter(|| {
            let container = Container::read(black_box(file)).unwrap();
            let choice = container.choose(&device).unwrap();
            CodeObject::parse(choice.entry.bytes).unwrap().kernels().len()
        });
    });
    group.bench_function("parse every image", |bencher| {
        bencher.iter(|| {
            let container = Container::read(black_box(file)).unwrap();
            let parsed = container.images().map(|image| CodeObject::parse(image.bytes));
            parsed.map(|object| object.map_or(0, |object| object.kernels().len())).sum::<usize>()
        });
    });
    group.finish();

    let mut group = criterion.benchmark_group("compressed");
    group.throughput(Throughput::Bytes(COMPRESSED.len() as u64));
    group.bench_function("decompress a small bundle", |bencher| {
        bencher.iter(|| Container::read(black_box(COMPRESSED)).unwrap().bundles().len());
    });
    group.finish();
    criterion.final_summary();
}
