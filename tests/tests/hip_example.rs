//! The example of `hip` runs unchanged on the software GPU.

#[path = "../../hip/examples/stream_vector_add.rs"]
mod vector_add;

use hip::Runtime;
use kfd::Kfd;
use kfd_model::{Model, Preset, Target};

use crate::streams::code;

fn run(gpu: Target, object: &[u8]) -> Result<(Vec<f32>, i64), String> {
    let model = Model::builder().gpu(Preset::of(gpu)).build();
    let runtime = Runtime::new(Kfd::open_on(model).unwrap()).unwrap();
    vector_add::run(&runtime, object).map_err(|error| error.to_string())
}

#[test]
fn the_example_of_streams_adds_vectors_and_times_them_on_each_generation() {
    for target in [Target::Gfx900, Target::Gfx90a, Target::Gfx942, Target::Gfx1100, Target::Gfx1151]
    {
        let (sum, nanoseconds) = run(target, &code(target.name(), "vadd")).unwrap();
        assert_eq!(sum.len(), 1 << 16, "{target}");
        assert!(nanoseconds > 0, "{target}: {nanoseconds}");
        for (i, sum) in sum.iter().enumerate() {
            assert_eq!(*sum, i as f32 + (i + (1 << 16)) as f32, "{target} element {i}");
        }
    }
}

#[test]
fn the_example_of_streams_refuses_code_of_another_gpu_with_both_targets() {
    let error = run(Target::Gfx1100, &code("gfx90a", "vadd")).unwrap_err();
    assert!(error.contains("gfx1100") && error.contains("gfx90a"), "{error}");
}
