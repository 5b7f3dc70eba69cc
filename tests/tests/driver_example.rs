//! The embedder's example runs unchanged on the software GPU.

#[path = "../../kfd/examples/vector_add.rs"]
mod vector_add;

use kfd::Kfd;
use kfd_model::{Model, Preset};

#[test]
fn the_example_adds_vectors_on_both_generations() {
    for (preset, target) in [(Preset::gfx1100(), "gfx1100"), (Preset::gfx90a(), "gfx90a")] {
        let file =
            format!("{}/fixtures/code-objects/vadd.{target}.v5.co", env!("CARGO_MANIFEST_DIR"));
        let object = std::fs::read(file).unwrap();
        let model = Model::builder().gpu(preset).build();
        let kfd = Kfd::open_on(model.clone()).unwrap();
        let sum = vector_add::run(kfd, &object).unwrap();
        assert_eq!(sum.len(), 1 << 16, "{:?}", model.diagnostics());
        for (i, sum) in sum.iter().enumerate() {
            assert_eq!(*sum, i as f32 + (i + (1 << 16)) as f32, "element {i}");
        }
    }
}

#[test]
fn a_code_object_for_another_gpu_is_refused_with_both_targets() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/code-objects/vadd.gfx90a.v5.co");
    let kfd = Kfd::open_on(Model::builder().gpu(Preset::gfx1100()).build()).unwrap();
    let error = vector_add::run(kfd, &std::fs::read(file).unwrap()).unwrap_err().to_string();
    assert!(error.contains("gfx90a") && error.contains("gfx1100"), "{error}");
}
