//! Memory of every kind: its addresses, who can reach it, its end, and what is refused.

use std::sync::atomic::Ordering;

use kfd::sys::Errno;
use kfd::{Error, Gpu, MemoryKind, MemoryRequest};
use kfd_model::{Call, Model, Preset};
use kfd_tests::{Device, each_device, each_kernel, each_model, on_hardware, skip};

const ALLOC: u32 = 0x16;
const FREE: u32 = 0x17;
const MAP: u32 = 0x18;
const UNMAP: u32 = 0x19;

/// Every kind that both sides can reach.
fn shared_kinds(bytes: u64) -> [MemoryRequest; 3] {
    [
        MemoryRequest::gtt(bytes),
        MemoryRequest::vram_cpu_visible(bytes),
        MemoryRequest::userptr(bytes),
    ]
}

#[test]
fn memory_of_both_sides_is_zeroed_keeps_its_bytes_and_ends_where_it_should() {
    each_kernel(|device| {
        let gpu = device.gpu();
        for request in shared_kinds(10_000) {
            let buffer = gpu.allocate(&request).unwrap();
            assert!(buffer.is_cpu_visible());
            assert!(buffer.addr().is_aligned(4096));
            let mut back = vec![1; 10_000];
            buffer.read(0, &mut back).unwrap();
            assert!(back.iter().all(|byte| *byte == 0), "memory is zeroed");
            let data: Vec<u8> = (0..=255).cycle().take(9_999).collect();
            buffer.write(1, &data).unwrap();
            buffer.read(0, &mut back).unwrap();
            assert_eq!(back[1..], data[..]);
            let word = buffer.u32(4).unwrap();
            assert_eq!(word.load(Ordering::Relaxed), u32::from_le_bytes([3, 4, 5, 6]));
            buffer.u64(8).unwrap().store(u64::MAX, Ordering::Relaxed);
            buffer.read(7, &mut back[..10]).unwrap();
            assert_eq!(back[..10], [6, 255, 255, 255, 255, 255, 255, 255, 255, 15]);
            for (offset, bytes) in [(9_999, 2), (10_000, 1), (u64::MAX, 1)] {
                let error = buffer.read(offset, &mut vec![0; bytes]).unwrap_err();
                assert!(matches!(error, Error::OutOfBounds { length: 10_000, .. }), "{error:?}");
            }
            assert!(matches!(buffer.u64(4), Err(Error::Misaligned { offset: 4, align: 8 })));
            buffer.free().unwrap();
        }
    });
}

/// The address is the kernel's: a mapping of this process starts there.
#[test]
fn the_cpu_sees_memory_at_the_address_that_the_gpu_uses() {
    each_device(|device| {
        let gpu = device.gpu();
        for request in shared_kinds(8192) {
            let buffer = gpu.allocate(&request).unwrap();
            let start = buffer.addr().get();
            assert_eq!(access_at(start), Some("rw".to_owned()));
            buffer.free().unwrap();
            assert_ne!(access_at(start), Some("rw".to_owned()), "freed memory is not reachable");
        }
        let hidden = gpu.allocate(&MemoryRequest::vram(8192)).unwrap();
        assert_eq!(access_at(hidden.addr().get()), Some("--".to_owned()), "reserved, no more");
    });
}

/// What /proc/self/maps says of the page at `address`.
fn access_at(address: u64) -> Option<String> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    maps.lines().find_map(|line| {
        let (range, rest) = line.split_once(' ')?;
        let (start, end) = range.split_once('-')?;
        let bound = |text| u64::from_str_radix(text, 16).unwrap();
        (bound(start)..bound(end)).contains(&address).then(|| rest[..2].to_owned())
    })
}

#[test]
fn memory_without_cpu_access_refuses_the_cpu_by_name() {
    each_device(|device| {
        let buffer = device.gpu().allocate(&MemoryRequest::vram(4096)).unwrap();
        assert!(!buffer.is_cpu_visible());
        let told = [
            buffer.write(0, &[1]).unwrap_err(),
            buffer.read(0, &mut [0]).unwrap_err(),
            buffer.u32(0).map(drop).unwrap_err(),
            buffer.u64(0).map(drop).unwrap_err(),
        ];
        for error in told {
            assert!(
                matches!(error, Error::NoCpuAccess { addr } if addr == buffer.addr()),
                "{error:?}"
            );
        }
    });
}

#[test]
fn cpu_visible_vram_needs_a_window_of_its_size() {
    each_model(
        || Model::builder().gpu(Preset::gfx1100().small_bar()),
        |device| {
            let gpu = device.gpu();
            let error = gpu.allocate(&MemoryRequest::vram_cpu_visible(4096)).unwrap_err();
            assert!(matches!(error, Error::Unsupported { .. }), "{error:?}");
            assert!(error.to_string().contains("resizable BAR"), "{error}");
            gpu.allocate(&MemoryRequest::vram(4096)).unwrap();
            gpu.allocate(&MemoryRequest::gtt(4096)).unwrap();
        },
    );
}

#[test]
fn freed_memory_is_given_back_at_once() {
    each_device(|device| {
        let gpu = device.gpu();
        let before = gpu.available_memory().unwrap();
        let buffer = gpu.allocate(&MemoryRequest::vram(64 << 20)).unwrap();
        let during = gpu.available_memory().unwrap();
        assert!(before - during >= 64 << 20, "{before} {during}");
        buffer.free().unwrap();
        assert!(gpu.available_memory().unwrap() > during);
    });
}

#[test]
fn addresses_are_used_again() {
    each_device(|device| {
        let gpu = device.gpu();
        let addr = gpu.allocate(&MemoryRequest::vram(1 << 20)).unwrap().addr();
        for request in shared_kinds(1 << 20) {
            assert_eq!(gpu.allocate(&request).unwrap().addr(), addr);
        }
    });
}

#[test]
fn live_allocations_are_listed_by_address_with_their_labels() {
    each_device(|device| {
        let gpu = device.gpu();
        let one = gpu.allocate(&MemoryRequest::gtt(100).label("one")).unwrap();
        let two = gpu.allocate(&MemoryRequest::vram(5000).label("two")).unwrap();
        let list = device.kfd.allocations();
        assert!(list.is_sorted_by_key(|info| info.addr));
        assert!(list.contains(&one.info()) && list.contains(&two.info()), "{list:?}");
        let info = two.info();
        assert_eq!((info.label, info.bytes, info.kind), ("two", 5000, MemoryKind::Vram));
        assert_eq!(info.gpu, gpu.id());
        drop((one, two));
        assert!(device.kfd.allocations().is_empty());
    });
}

#[test]
fn buffers_do_not_overlap() {
    each_device(|device| {
        let gpu = device.gpu();
        let sizes = [1, 4095, 4096, 4097, 65_536, 1 << 20, 3 << 20, 8192];
        let buffers: Vec<_> = sizes
            .iter()
            .flat_map(|bytes| shared_kinds(*bytes))
            .map(|request| gpu.allocate(&request).unwrap())
            .collect();
        let mut ranges: Vec<_> =
            buffers.iter().map(|b| (b.addr().get(), b.addr().get() + b.bytes())).collect();
        ranges.sort_unstable();
        assert!(ranges.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{ranges:x?}");
    });
}

#[test]
fn doorbells_and_the_flush_page_can_be_mapped_for_the_gpu() {
    each_device(|device| {
        let gpu = device.gpu();
        let doorbells = gpu.allocate(&MemoryRequest::doorbells()).unwrap();
        assert!(!doorbells.is_cpu_visible());
        assert_eq!(doorbells.bytes(), 8192);
        let flush = gpu.allocate(&MemoryRequest::mmio_remap()).unwrap();
        flush.u32(0).unwrap().store(1, Ordering::Relaxed);
        doorbells.free().unwrap();
        flush.free().unwrap();
    });
}

/// The first two GPUs of a device, or a reason.
fn two_gpus(device: &Device) -> Option<[Gpu; 2]> {
    let mut gpus = device.kfd.gpus().into_iter();
    let pair = gpus.next().zip(gpus.next()).map(|(one, two)| [one, two]);
    if pair.is_none() {
        skip("it needs two GPUs");
    }
    pair
}

/// Runs on two GPUs of each preset, or on hardware.
fn each_pair(test: impl Fn(&Device, &[Gpu; 2])) {
    let run = |device: &Device| {
        if let Some(gpus) = two_gpus(device) {
            test(device, &gpus);
        }
    };
    if on_hardware() {
        each_device(run);
    } else {
        // `each_model` adds the second one, of the preset in turn.
        each_model(|| Model::builder().gpu(Preset::gfx90a()), run);
    }
}

#[test]
fn system_memory_is_mapped_on_two_gpus_and_freed_from_both() {
    each_pair(|_, [one, two]| {
        for request in [MemoryRequest::gtt(4096), MemoryRequest::userptr(4096)] {
            let buffer = one.allocate(&request).unwrap();
            assert_eq!(buffer.mapped_on(), [one.id()]);
            buffer.map_on(&[one, two]).unwrap();
            assert_eq!(buffer.mapped_on(), [one.id(), two.id()]);
            buffer.map_on(&[two]).unwrap();
            buffer.unmap_from(&[one]).unwrap();
            assert_eq!(buffer.mapped_on(), [two.id()]);
            buffer.unmap_from(&[one]).unwrap();
            buffer.free().unwrap();
        }
    });
}

#[test]
fn vram_does_not_reach_another_gpu_without_a_link() {
    if on_hardware() {
        return skip("whether two GPUs are linked is known for the software GPU only");
    }
    each_pair(|_, [one, two]| {
        let buffer = one.allocate(&MemoryRequest::vram(4096)).unwrap();
        let error = buffer.map_on(&[two]).unwrap_err();
        let Error::Ioctl { name, errno, .. } = &error else { panic!("{error:?}") };
        assert_eq!((*name, *errno), ("MAP_MEMORY_TO_GPU", Errno::INVAL));
        assert!(error.to_string().contains("cannot reach"), "{error}");
        assert_eq!(buffer.mapped_on(), [one.id()], "the first GPU keeps it");
        buffer.free().unwrap();
    });
}

#[test]
fn the_same_address_on_two_gpus_is_never_two_buffers() {
    each_pair(|_, [one, two]| {
        let a = one.allocate(&MemoryRequest::vram(4096)).unwrap();
        let b = two.allocate(&MemoryRequest::vram(4096)).unwrap();
        assert_ne!(a.addr(), b.addr());
    });
}

#[test]
fn too_much_memory_is_enomem_with_size_and_advice_and_the_device_goes_on() {
    each_device(|device| {
        let gpu = device.gpu();
        for request in [MemoryRequest::vram(1 << 44), MemoryRequest::gtt(1 << 44)] {
            let error = gpu.allocate(&request).unwrap_err();
            let Error::Ioctl { name, errno, .. } = &error else { panic!("{error:?}") };
            assert_eq!((*name, *errno), ("ALLOC_MEMORY_OF_GPU", Errno::NOMEM));
            let text = error.to_string();
            assert!(text.contains("out of GPU memory"), "{text}");
            assert!(text.contains(&(1_u64 << 44).to_string()), "{text}");
            gpu.allocate(&MemoryRequest::vram(4096)).unwrap();
        }
    });
}

#[test]
fn vram_can_be_used_up_and_freed_again_without_loss() {
    each_model(
        || Model::builder().gpu(Preset::gfx1100().vram_bytes(256 << 20)),
        |device| {
            let gpu = device.gpu();
            let mut rounds = Vec::new();
            for _ in 0..3 {
                let mut buffers = Vec::new();
                let error = loop {
                    match gpu.allocate(&MemoryRequest::vram(16 << 20)) {
                        Ok(buffer) => buffers.push(buffer),
                        Err(error) => break error,
                    }
                    assert!(buffers.len() <= 16, "more than there is");
                };
                assert!(matches!(error, Error::Ioctl { errno: Errno::NOMEM, .. }), "{error:?}");
                rounds.push(buffers.len());
            }
            assert!(rounds[0] >= 14 && rounds.iter().all(|n| *n == rounds[0]), "{rounds:?}");
        },
    );
}

#[test]
fn more_than_the_address_space_is_refused_before_the_kernel() {
    each_device(|device| {
        for bytes in [u64::MAX, 1 << 63, 1 << 50] {
            let error = device.gpu().allocate(&MemoryRequest::vram(bytes)).unwrap_err();
            assert!(
                matches!(
                    error,
                    Error::OutOfAddressSpace { .. } | Error::System { errno: Errno::NOMEM, .. }
                ),
                "{error:?}"
            );
        }
    });
}

#[test]
fn zero_bytes_are_refused_before_the_kernel() {
    each_model(Model::builder, |device| {
        for request in [MemoryRequest::gtt(0), MemoryRequest::vram(0), MemoryRequest::userptr(0)] {
            let error = device.gpu().allocate(&request).unwrap_err();
            assert!(matches!(error, Error::InvalidArgument { value: 0, .. }), "{error:?}");
        }
        assert_eq!(device.model().ioctl_count(0x16), 0);
    });
}

#[test]
fn a_refusal_at_any_step_of_an_allocation_leaves_nothing_behind() {
    each_model(Model::builder, |device| {
        let gpu = device.gpu();
        gpu.acquire().unwrap();
        let before = device.model().live();
        for request in shared_kinds(4096).into_iter().chain([MemoryRequest::vram(4096)]) {
            for call in [Call::Ioctl(ALLOC), Call::Ioctl(MAP), Call::Mmap] {
                for skip in 0..4 {
                    device.model().faults().fail(call.clone(), skip, 1, Errno::NOMEM);
                    let result = gpu.allocate(&request);
                    device.model().faults().clear();
                    drop(result);
                    assert_eq!(device.model().live(), before, "{request:?} {call:?} {skip}");
                    assert!(device.kfd.allocations().is_empty());
                }
            }
        }
    });
}

#[test]
fn memory_that_the_kernel_will_not_unmap_is_kept_and_listed() {
    let model = Model::builder().build();
    let device = Device::of(model, "gfx1100");
    let gpu = device.gpu();
    for (call, name) in [(UNMAP, "UNMAP_MEMORY_FROM_GPU"), (FREE, "FREE_MEMORY_OF_GPU")] {
        let leaks = device.kfd.leaks().len();
        let buffer = gpu.allocate(&MemoryRequest::gtt(4096).label("kept")).unwrap();
        let addr = buffer.addr();
        device.model().faults().fail(Call::Ioctl(call), 0, 1, Errno::BUSY);
        let error = buffer.free().unwrap_err();
        assert!(
            matches!(&error, Error::Ioctl { name: told, errno: Errno::BUSY, .. } if *told == name),
            "{error:?}"
        );
        assert!(error.to_string().contains("queue still uses it"), "{error}");
        let list = device.kfd.leaks();
        assert_eq!(list.len(), leaks + 1);
        assert!(list[leaks].what.contains("kept") && list[leaks].bytes == 4096, "{list:?}");
        // Its addresses are never given to anything else.
        for _ in 0..8 {
            assert_ne!(gpu.allocate(&MemoryRequest::gtt(4096)).unwrap().addr(), addr);
        }
    }
}

#[test]
fn a_buffer_may_outlive_the_device_and_be_dropped_by_another_thread() {
    each_device(|device| {
        let buffer = device.gpu().allocate(&MemoryRequest::gtt(4096)).unwrap();
        let clone = device.kfd.clone();
        drop(clone);
        std::thread::scope(|scope| scope.spawn(move || drop(buffer)).join().unwrap());
    });
}

#[test]
fn many_threads_allocate_and_free_at_once() {
    each_device(|device| {
        std::thread::scope(|scope| {
            for thread in 0..4_u8 {
                let gpu = device.gpu();
                scope.spawn(move || {
                    for round in 0..25 {
                        let mine = vec![thread; 4096 * (1 + round % 5)];
                        let request = MemoryRequest::gtt(mine.len() as u64);
                        let buffer = gpu.allocate(&request).unwrap();
                        buffer.write(0, &mine).unwrap();
                        let mut back = vec![0; mine.len()];
                        buffer.read(0, &mut back).unwrap();
                        assert!(back.iter().all(|byte| *byte == thread));
                    }
                });
            }
        });
    });
}
