//! The self-test's programs on the bare engine.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod bare;

use bare::run;
use kfd_model::Target;
use kfd_model::exec::Engine;
use kfd_probe::programs::{Case, cases};

fn all(target: Target, workers: usize, wanted: fn(&str) -> bool) {
    let engine = Engine::new(workers);
    let cases: Vec<Case> =
        cases(target.name()).into_iter().filter(|case| wanted(&case.name)).collect();
    assert!(!cases.is_empty());
    let failed: Vec<String> = cases
        .iter()
        .filter_map(|case| {
            Some(format!("{}: {}", case.name, run(&engine, workers == 0, target, case).err()?))
        })
        .collect();
    assert!(
        failed.is_empty(),
        "{} of {} failed:\n{}",
        failed.len(),
        cases.len(),
        failed.join("\n")
    );
}

#[test]
fn every_program_computes_what_the_cpu_does_on_gfx1100() {
    all(Target::Gfx1100, 2, |_| true);
}

#[test]
fn every_program_computes_what_the_cpu_does_on_gfx90a() {
    all(Target::Gfx90a, 2, |_| true);
}

#[test]
fn every_program_runs_stepped_on_gfx1100() {
    all(Target::Gfx1100, 0, |_| true);
}

#[test]
fn every_program_runs_stepped_on_gfx90a() {
    all(Target::Gfx90a, 0, |_| true);
}
