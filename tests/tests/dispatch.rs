//! Compiled kernels run and compute what the CPU computes.

use std::time::Duration;

use kfd_model::{Model, Preset, Profile};
use kfd_probe::programs::{TARGETS, cases};
use kfd_probe::runner::{Session, Verdict, run_case};
use kfd_tests::{Device, each_device, on_hardware, skip};

/// Longest wait for one launch, on a busy machine that interprets it.
const LIMIT: Duration = Duration::from_secs(120);

fn preset(target: &str) -> Preset {
    Preset::of(target.parse().unwrap())
}

/// Runs the cases of `program` on `device`, and fails with all that fail.
fn run(device: &Device, program: &str) {
    let target = device.target();
    let mut session = Session::new(&device.kfd, &device.gpu()).unwrap();
    let mut failed = Vec::new();
    let mut count = 0;
    for case in cases(&target).iter().filter(|case| word(&case.name) == program) {
        count += 1;
        let outcome = run_case(&mut session, case, LIMIT);
        match outcome.verdict {
            Verdict::Passed => {}
            Verdict::Wrong(wrong) => failed.push(format!("{}: {wrong}", case.name)),
            Verdict::Failed(error) => failed.push(format!("{}: {error:?}", case.name)),
        }
    }
    session.drop_queue().unwrap();
    assert!(count > 0, "{program} has no case for {target}");
    assert!(failed.is_empty(), "{} of {count} failed: {failed:#?}", failed.len());
}

/// The program's name: the first word of a case's.
fn word(name: &str) -> &str {
    name.split(' ').next().unwrap_or_default()
}

fn program(target: &str, program: &str) {
    if on_hardware() {
        return each_device(|device| {
            if device.target() == target {
                run(device, program);
            } else {
                skip(&format!("this machine's GPU is {}", device.target()));
            }
        });
    }
    let device = Device::of(Model::builder().gpu(preset(target)).build(), target);
    run(&device, program);
    let diagnostics = device.model().diagnostics();
    assert!(diagnostics.is_empty(), "{diagnostics:#?}");
    device.finish();
}

macro_rules! programs {
    ($($target:ident: $($name:ident)+;)+) => {
        $(mod $target {
            pub(super) const PROGRAMS: &[&str] = &[$(stringify!($name)),+];

            $(#[test] fn $name() { super::program(stringify!($target), stringify!($name)); })+
        })+
    };
}

programs! {
    gfx1100: vadd dims abi_args dynlds globals atomics stack bigvgpr reloc
        triton_add triton_softmax iree_mul;
    gfx90a: vadd dims abi_args dynlds globals atomics stack bigvgpr reloc
        triton_add triton_softmax iree_mul;
    gfx942: vadd dims abi_args dynlds globals atomics stack bigvgpr reloc
        triton_add triton_softmax iree_mul;
    gfx1151: vadd dims abi_args dynlds globals atomics stack bigvgpr reloc
        triton_add triton_softmax iree_mul;
    gfx900: vadd dims abi_args dynlds globals atomics stack bigvgpr reloc;
}

#[test]
fn every_program_has_its_tests() {
    for (target, programs) in [
        ("gfx1100", gfx1100::PROGRAMS),
        ("gfx90a", gfx90a::PROGRAMS),
        ("gfx942", gfx942::PROGRAMS),
        ("gfx1151", gfx1151::PROGRAMS),
        ("gfx900", gfx900::PROGRAMS),
    ] {
        for case in cases(target) {
            assert!(programs.contains(&word(&case.name)), "{target} {} is in no test", case.name);
        }
    }
}

/// The targets that are like those above run what depends on the launch; `kfd-probe selftest --model
/// all` runs everything on all.
#[test]
fn the_other_targets_start_waves_as_their_code_expects() {
    let tested = ["gfx1100", "gfx90a", "gfx942", "gfx1151", "gfx900"];
    for target in TARGETS.into_iter().filter(|target| !tested.contains(target)) {
        for name in ["dims", "abi_args", "dynlds", "stack"] {
            program(target, name);
        }
    }
}

/// The oldest kernel, and one that runs everything on the thread that waits.
#[test]
fn programs_run_on_every_kernel_and_step_by_step() {
    if on_hardware() {
        return skip("the machine has the kernel it has");
    }
    for target in ["gfx90a", "gfx1100"] {
        for profile in Profile::ALL {
            for stepped in [true, false] {
                let builder = Model::builder().gpu(preset(target)).profile(profile);
                let device = Device::of(builder.stepped(stepped).build(), target);
                run(&device, "triton_add");
                device.finish();
            }
        }
    }
}
