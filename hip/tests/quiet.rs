//! A process whose modules have no service has no thread, no memory and no kernel call for services:
//! the numbers here are the same with the feature `services` and without it.
#![cfg(not(loom))]

use std::sync::Arc;
use std::time::Duration;

use hip::{Grid, Module, Runtime, Stream, StreamRequest};
use kfd::{Kfd, MemoryRequest};
use kfd_model::{Model, Preset};

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

fn ioctls(model: &Model) -> u64 {
    (0..=u8::MAX).map(|number| model.ioctl_count(number)).sum()
}

#[test]
fn modules_without_services_start_no_thread_and_take_no_memory() {
    let model = Model::builder().gpu(Preset::gfx1100()).build();
    let runtime = Runtime::new(Kfd::open_on(Arc::<Model>::clone(&model)).unwrap()).unwrap();
    let device = &runtime.devices()[0];
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/fixtures/code-objects");
    let code = std::fs::read(format!("{folder}/vadd.gfx1100.v5.co")).unwrap();
    let vector = || device.allocate(&MemoryRequest::gtt(4096)).unwrap();
    let (a, b, sum) = (vector(), vector(), vector());
    let mut stream = Stream::new(device, StreamRequest::aql()).unwrap();

    let (before, calls, running) = (model.live(), ioctls(&model), threads());
    let module = Module::load(device, &code).unwrap();
    let vadd = module.function("vadd").unwrap();
    let after = model.live();
    // The code: one allocation, which is mapped.
    assert_eq!((after.buffers, after.queues), (before.buffers + 1, before.queues));
    assert_eq!((ioctls(&model) - calls, threads()), (2, running));

    let grid = Grid::items([1024, 1, 1], [256, 1, 1]);
    // The first brings the packet that invalidates instruction caches, and the software GPU's worker.
    stream.launch(&vadd, &grid, (&a, &b, &sum, 1024_u32)).unwrap();
    stream.synchronize_within(Duration::from_secs(60)).unwrap();
    let (before, calls, running) = (model.live(), ioctls(&model), threads());
    for _ in 0..100 {
        stream.launch(&vadd, &grid, (&a, &b, &sum, 1024_u32)).unwrap();
    }
    assert_eq!((ioctls(&model) - calls, threads()), (0, running));
    stream.synchronize_within(Duration::from_secs(60)).unwrap();
    assert_eq!(model.live().buffers, before.buffers);
    assert_eq!(threads(), running);
}
