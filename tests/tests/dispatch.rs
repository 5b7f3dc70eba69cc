//! Compiled kernels run and compute what the CPU computes.

use std::time::Duration;

use kfd_model::{Model, Preset, Profile};
use kfd_probe::programs::{TARGETS, cases};
use kfd_probe::runner::{Session, Verdict, run_case};
use kfd_tests::{Device, each_device, on_hardware, skip};

/// Longest wait for one launch, on a busy machine that interprets it.
const LIMIT: Duration = Duration::from_secs(120);

fn preset(target: &str) -> Preset {
    if target == "gfx90a" { Preset::gfx90a() } else { Preset::gfx1100() }
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
    ($($name:ident)+) => {
        const PROGRAMS: &[&str] = &[$(stringify!($name)),+];

        mod gfx1100 {
            $(#[test] fn $name() { super::program("gfx1100", stringify!($name)); })+
        }

        mod gfx90a {
            $(#[test] fn $name() { super::program("gfx90a", stringify!($name)); })+
        }
    };
}

programs! {
    vadd dims abi_args dynlds globals atomics stack bigvgpr reloc
    triton_add triton_softmax iree_mul
}

#[test]
fn every_program_has_its_tests() {
    for target in TARGETS {
        for case in cases(target) {
            assert!(PROGRAMS.contains(&word(&case.name)), "{} is in no test", case.name);
        }
    }
}

/// The oldest kernel, and one that runs everything on the thread that waits.
#[test]
fn programs_run_on_every_kernel_and_step_by_step() {
    if on_hardware() {
        return skip("the machine has the kernel it has");
    }
    for target in TARGETS {
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
