//! The whole thread through the product: open, allocate, load, queue, dispatch, wait, compare.

use std::sync::Arc;
use std::time::Duration;

use kfd::{Kfd, MemoryRequest, QueueRequest};
use kfd_model::{Model, Preset, Profile};
use kfd_tests::{Program, finish, pages};

const ITEMS: u16 = 1000;
const GROUP: u16 = 256;

/// `c[i] = a[i] + b[i]` for [`ITEMS`] items, on the first GPU.
fn vadd(kfd: &Kfd, object: &[u8]) -> Vec<f32> {
    let gpu = kfd.first_gpu().unwrap();
    let program = Program::load(&gpu, object);
    let bytes = u64::from(ITEMS) * 4;
    let data = gpu.allocate(&MemoryRequest::gtt(pages(3 * bytes))).unwrap();
    for i in 0..ITEMS {
        let at = u64::from(i) * 4;
        data.write(at, &f32::from(i).to_le_bytes()).unwrap();
        data.write(bytes + at, &(f32::from(i) * 0.5).to_le_bytes()).unwrap();
    }
    let address = |index: u64| (data.addr().get() + index * bytes).to_le_bytes();
    let queue = gpu.create_queue(&QueueRequest::aql(64)).unwrap();
    let items = u32::from(ITEMS);
    let grid = [items.next_multiple_of(GROUP.into()), 1, 1];
    let launched = program.launch(
        kfd,
        &gpu,
        &queue,
        "vadd",
        (grid, [GROUP, 1, 1]),
        &[&address(0), &address(1), &address(2), &items.to_le_bytes()],
    );
    finish(&queue, &launched, Duration::from_secs(20)).unwrap();
    let mut result = vec![0; usize::from(ITEMS) * 4];
    data.read(2 * bytes, &mut result).unwrap();
    let words = result.chunks_exact(4);
    words.map(|word| f32::from_le_bytes(word.try_into().unwrap())).collect()
}

#[test]
fn vadd_adds_on_every_preset_profile_and_mode() {
    let objects: [(Preset, &[u8]); 2] = [
        (Preset::gfx1100(), include_bytes!("../fixtures/code-objects/vadd.gfx1100.v5.co")),
        (Preset::gfx90a(), include_bytes!("../fixtures/code-objects/vadd.gfx90a.v5.co")),
    ];
    for (preset, object) in objects {
        for profile in Profile::ALL {
            for stepped in [true, false] {
                let model = Model::builder().gpu(preset.clone()).profile(profile).stepped(stepped);
                let model = model.build();
                let kfd = Kfd::open_on(Arc::clone(&model) as _).unwrap();
                let result = vadd(&kfd, object);
                for (i, value) in (0..ITEMS).zip(result) {
                    assert_eq!(value, f32::from(i) + f32::from(i) * 0.5);
                }
                drop(kfd);
                assert_eq!(model.diagnostics(), []);
            }
        }
    }
}
