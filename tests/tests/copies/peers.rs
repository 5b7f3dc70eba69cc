//! Copies between GPUs.

use hip::{CopyEngine, Runtime};
use kfd_model::{Model, Preset};

use super::{Random, difference, request, stream, vram};

#[test]
fn mapped_memory_of_another_gpu_is_copied_both_ways() {
    if kfd_tests::on_hardware() {
        return kfd_tests::skip("it needs two GPUs");
    }
    for preset in [Preset::gfx90a, Preset::gfx1100] {
        let model = Model::builder().gpu(preset()).gpu(preset()).build();
        let device = kfd_tests::Device::of(model, "two GPUs");
        let runtime = Runtime::new(device.kfd.clone()).unwrap();
        let [first, second] = [0, 1].map(|n| runtime.devices()[n].clone());
        for engine in [CopyEngine::Sdma, CopyEngine::Shader, CopyEngine::Auto] {
            let mut stream = stream(&first, request(engine));
            let (own, mut other) = (vram(&first, 1 << 18), vram(&second, 1 << 18));
            if other.map_on(&first).is_err() {
                continue; // the GPUs cannot reach each other
            }
            let bytes = Random::new(1).bytes(1 << 18);
            stream.copy_from_host(&own, &bytes).unwrap();
            stream.copy(&other, &own, 1 << 18).unwrap();
            stream.fill(&own, 0_u128, 1 << 14).unwrap();
            stream.copy(&own, &other, 1 << 18).unwrap();
            let mut found = vec![0; 1 << 18];
            stream.copy_to_host(&mut found, &own).unwrap();
            assert_eq!(difference(&found, &bytes), None);
        }
        drop((first, second, runtime));
        device.finish();
    }
}
