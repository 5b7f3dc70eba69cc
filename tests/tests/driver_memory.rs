//! Memory of every kind, its life and its errors, on the software GPU.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use kfd::sys::Errno;
use kfd::{Error, Kfd, MemoryKind, MemoryRequest};
use kfd_model::{Model, Preset};

fn open(presets: impl IntoIterator<Item = Preset>) -> (Arc<Model>, Kfd) {
    let builder = presets.into_iter().fold(Model::builder(), |b, preset| b.gpu(preset));
    let model = builder.build();
    let kfd = Kfd::open_on(model.clone()).unwrap();
    (model, kfd)
}

#[test]
fn cpu_visible_memory_has_one_address_and_keeps_what_is_written() {
    for preset in [Preset::gfx1100(), Preset::gfx90a()] {
        let (_model, kfd) = open([preset]);
        let gpu = kfd.first_gpu().unwrap();
        let requests = [
            MemoryRequest::gtt(10_000),
            MemoryRequest::vram_cpu_visible(10_000),
            MemoryRequest::userptr(10_000),
        ];
        for request in requests {
            let buffer = gpu.allocate(&request).unwrap();
            let mut back = vec![1; 10_000];
            buffer.read(0, &mut back).unwrap();
            assert!(back.iter().all(|byte| *byte == 0), "memory is zeroed");
            let data: Vec<u8> = (0..=255).cycle().take(9_999).collect();
            buffer.write(1, &data).unwrap();
            buffer.read(0, &mut back).unwrap();
            assert_eq!(back[1..], data[..]);
            let word = buffer.u32(4).unwrap();
            assert_eq!(word.load(Ordering::Relaxed), u32::from_le_bytes([3, 4, 5, 6]));
            assert!(buffer.read(9_999, &mut [0; 2]).is_err(), "the tail of the page is not ours");
        }
        assert!(kfd.leaks().is_empty());
    }
}

#[test]
fn vram_without_cpu_access_refuses_the_cpu() {
    let (_model, kfd) = open([Preset::gfx1100()]);
    let buffer = kfd.first_gpu().unwrap().allocate(&MemoryRequest::vram(4096)).unwrap();
    assert!(!buffer.is_cpu_visible());
    assert!(matches!(buffer.write(0, &[1]), Err(Error::NoCpuAccess { .. })));
}

#[test]
fn freed_memory_is_given_back_and_its_addresses_are_used_again() {
    let (_model, kfd) = open([Preset::gfx1100()]);
    let gpu = kfd.first_gpu().unwrap();
    let before = gpu.available_memory().unwrap();
    let first = gpu.allocate(&MemoryRequest::vram(64 << 20)).unwrap();
    let addr = first.addr();
    assert_eq!(gpu.available_memory().unwrap(), before - (64 << 20));
    first.free().unwrap();
    assert_eq!(gpu.available_memory().unwrap(), before);
    assert_eq!(gpu.allocate(&MemoryRequest::vram(64 << 20)).unwrap().addr(), addr);
}

#[test]
fn allocations_are_listed_while_they_live() {
    let (_model, kfd) = open([Preset::gfx1100()]);
    let gpu = kfd.first_gpu().unwrap();
    let buffer = gpu.allocate(&MemoryRequest::gtt(100).label("mine")).unwrap();
    let list = kfd.allocations();
    assert_eq!(list, [buffer.info()]);
    assert_eq!((list[0].label, list[0].bytes, list[0].kind), ("mine", 100, MemoryKind::Gtt));
    drop(buffer);
    assert!(kfd.allocations().is_empty());
}

#[test]
fn too_much_memory_is_enomem_and_the_device_goes_on() {
    let (_model, kfd) = open([Preset::gfx1100()]);
    let gpu = kfd.first_gpu().unwrap();
    let error = gpu.allocate(&MemoryRequest::vram(1 << 40)).unwrap_err();
    let Error::Ioctl { name, errno, .. } = &error else { panic!("{error:?}") };
    assert_eq!((*name, *errno), ("ALLOC_MEMORY_OF_GPU", Errno::NOMEM));
    assert!(error.to_string().contains("out of GPU memory"), "{error}");
    assert!(kfd.leaks().is_empty());
    gpu.allocate(&MemoryRequest::vram(4096)).unwrap();
}

#[test]
fn zero_bytes_are_refused_before_the_kernel() {
    let (model, kfd) = open([Preset::gfx1100()]);
    let gpu = kfd.first_gpu().unwrap();
    let error = gpu.allocate(&MemoryRequest::gtt(0)).unwrap_err();
    assert!(matches!(error, Error::InvalidArgument { .. }));
    assert_eq!(model.ioctl_count(0x16), 0);
}

#[test]
fn system_memory_is_mapped_on_two_gpus_and_freed_from_both() {
    let (_model, kfd) = open([Preset::gfx90a(), Preset::gfx90a()]);
    let gpus = kfd.gpus();
    let buffer = gpus[0].allocate(&MemoryRequest::gtt(4096)).unwrap();
    buffer.map_on(&[&gpus[0], &gpus[1]]).unwrap();
    assert_eq!(buffer.mapped_on(), [gpus[0].id(), gpus[1].id()]);
    buffer.unmap_from(&[&gpus[0]]).unwrap();
    assert_eq!(buffer.mapped_on(), [gpus[1].id()]);
    buffer.free().unwrap();
    assert!(kfd.leaks().is_empty());
}

#[test]
fn doorbells_and_the_flush_page_can_be_mapped_for_the_gpu() {
    let (_model, kfd) = open([Preset::gfx1100()]);
    let gpu = kfd.first_gpu().unwrap();
    let doorbells = gpu.allocate(&MemoryRequest::doorbells()).unwrap();
    assert!(!doorbells.is_cpu_visible());
    let flush = gpu.allocate(&MemoryRequest::mmio_remap()).unwrap();
    flush.u32(0).unwrap().store(1, Ordering::Relaxed);
    doorbells.free().unwrap();
    flush.free().unwrap();
}
