//! The embedder's example runs unchanged on the software GPU.

#[path = "../../kfd/examples/vector_add.rs"]
mod vector_add;

use std::sync::Arc;

use kfd::Kfd;
use kfd_model::{Model, Preset, Target};

fn object(target: Target) -> Vec<u8> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/code-objects");
    std::fs::read(format!("{folder}/vadd.{target}.v5.co")).unwrap()
}

fn run(gpu: Target, object: &[u8]) -> (Arc<Model>, Result<Vec<f32>, String>) {
    let model = Model::builder().gpu(Preset::of(gpu)).build();
    let kfd = Kfd::open_on(Arc::<Model>::clone(&model)).unwrap();
    let sum = vector_add::run(kfd, object).map_err(|error| error.to_string());
    (model, sum)
}

#[test]
fn the_example_adds_vectors_on_each_generation() {
    for target in [Target::Gfx900, Target::Gfx90a, Target::Gfx942, Target::Gfx1100, Target::Gfx1151]
    {
        let (model, sum) = run(target, &object(target));
        let sum = sum.unwrap();
        assert_eq!(sum.len(), 1 << 16, "{target}: {:?}", model.diagnostics());
        for (i, sum) in sum.iter().enumerate() {
            assert_eq!(*sum, i as f32 + (i + (1 << 16)) as f32, "{target} element {i}");
        }
    }
}

#[test]
fn a_code_object_for_another_gpu_is_refused_with_both_targets() {
    for (gpu, other) in [
        (Target::Gfx1100, Target::Gfx90a),
        (Target::Gfx1151, Target::Gfx1150),
        (Target::Gfx942, Target::Gfx90a),
        (Target::Gfx900, Target::Gfx906),
        (Target::Gfx1103, Target::Gfx1102),
    ] {
        let error = run(gpu, &object(other)).1.unwrap_err();
        assert!(error.contains(gpu.name()) && error.contains(other.name()), "{error}");
    }
}
