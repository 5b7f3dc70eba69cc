//! What the runner makes of kernels that go wrong, and that it goes on afterwards.
#![cfg(feature = "model")]

use std::time::Duration;

use kfd::Kfd;
use kfd_model::{Model, Preset, Target};
use kfd_probe::programs::{Arg, Case, Wrong, cases};
use kfd_probe::runner::{RunError, Session, Verdict, run_case};

const TIMEOUT: Duration = Duration::from_secs(60);

fn faults(target: &str) -> &'static [u8] {
    match target {
        "gfx900" => include_bytes!("../../../tests/fixtures/code-objects/faults.gfx900.v5.co"),
        "gfx942" => include_bytes!("../../../tests/fixtures/code-objects/faults.gfx942.v5.co"),
        "gfx1151" => include_bytes!("../../../tests/fixtures/code-objects/faults.gfx1151.v5.co"),
        "gfx90a" => include_bytes!("../../../tests/fixtures/code-objects/faults.gfx90a.v5.co"),
        _ => include_bytes!("../../../tests/fixtures/code-objects/faults.gfx1100.v5.co"),
    }
}

fn case(object: &'static [u8], kernel: &'static str, args: Vec<Arg>) -> Case {
    Case {
        name: kernel.to_owned(),
        object,
        kernel,
        grid: [1, 1, 1],
        group: [1, 1, 1],
        dynamic_lds_bytes: 0,
        args,
        check: Box::new(|_| Ok(())),
    }
}

fn out() -> Arg {
    Arg::Buffer(vec![0; 8])
}

/// A session on a software GPU of each generation.
fn on_each(test: impl Fn(&str, &mut Session)) {
    for target in [Target::Gfx900, Target::Gfx90a, Target::Gfx942, Target::Gfx1100, Target::Gfx1151]
    {
        let (preset, target) = (Preset::of(target), target.name());
        let kfd = Kfd::open_on(Model::builder().gpu(preset).build()).unwrap();
        let gpu = kfd.first_gpu().unwrap();
        test(target, &mut Session::new(&kfd, &gpu).unwrap());
        assert_eq!(kfd.leaks().len(), 0);
    }
}

fn vadd(target: &str) -> Case {
    cases(target).into_iter().find(|case| case.name == "vadd v5").unwrap()
}

#[test]
fn a_kernel_that_never_ends_is_reported_by_name_and_the_next_case_runs() {
    on_each(|target, session| {
        let endless = case(faults(target), "endless", Vec::new());
        let outcome = run_case(session, &endless, Duration::from_millis(300));
        let Verdict::Failed(RunError::Driver(kfd::Error::Timeout(report))) = &outcome.verdict
        else {
            panic!("{:?}", outcome.verdict);
        };
        assert!(report.to_string().contains("endless"), "{report}");
        assert!(outcome.elapsed >= Duration::from_millis(300));
        assert_eq!(outcome.packets, 1);
        let outcome = run_case(session, &vadd(target), TIMEOUT);
        assert!(outcome.verdict.is_passed(), "{:?}", outcome.verdict);
    });
}

/// The kernel runs gfx1100 without a trap handler: there the wave halts, and only time tells.
#[test]
fn an_illegal_instruction_costs_its_queue_and_the_next_case_runs() {
    on_each(|target, session| {
        let illegal = case(faults(target), "illegal", vec![out()]);
        let handled = target != "gfx1100";
        let timeout = if handled { TIMEOUT } else { Duration::from_millis(300) };
        let outcome = run_case(session, &illegal, timeout);
        match &outcome.verdict {
            Verdict::Failed(RunError::Driver(kfd::Error::QueueLost(fault))) if handled => {
                assert!(fault.to_string().contains("illegal instruction"), "{fault}");
            }
            Verdict::Failed(RunError::Driver(kfd::Error::Timeout(report))) if !handled => {
                assert!(report.to_string().contains("illegal"), "{report}");
            }
            verdict => panic!("{target}: {verdict:?}"),
        }
        let outcome = run_case(session, &vadd(target), TIMEOUT);
        assert!(outcome.verdict.is_passed(), "{:?}", outcome.verdict);
    });
}

#[test]
fn a_wild_store_loses_the_gpu_and_the_next_case_says_so() {
    on_each(|target, session| {
        let address = Arg::Value(0xdead_0000_u64.to_le_bytes().to_vec());
        let wild = case(faults(target), "wild_store", vec![address]);
        let outcome = run_case(session, &wild, TIMEOUT);
        let Verdict::Failed(RunError::Driver(kfd::Error::DeviceLost(fault))) = &outcome.verdict
        else {
            panic!("{:?}", outcome.verdict);
        };
        assert!(fault.to_string().contains("0xdead0000"), "{fault}");
        assert!(session.gpu().check().is_err());
        let outcome = run_case(session, &vadd(target), TIMEOUT);
        let Verdict::Failed(RunError::Driver(kfd::Error::DeviceLost(_))) = &outcome.verdict else {
            panic!("{:?}", outcome.verdict);
        };
    });
}

#[test]
fn a_result_that_differs_is_wrong_and_names_the_element() {
    on_each(|target, session| {
        let mut vadd = vadd(target);
        vadd.args.swap(0, 2); // c, b, a: the result lands in the first input
        let outcome = run_case(session, &vadd, TIMEOUT);
        let Verdict::Wrong(Wrong { what, .. }) = &outcome.verdict else {
            panic!("{:?}", outcome.verdict);
        };
        assert!(what.starts_with("c["), "{what}");
    });
}

#[test]
fn what_does_not_fit_is_refused_before_anything_is_launched() {
    on_each(|target, session| {
        let other = if target == "gfx90a" { "gfx1100" } else { "gfx90a" };
        let refused = |session: &mut Session, case: &Case| {
            let outcome = run_case(session, case, TIMEOUT);
            assert_eq!((outcome.packets, outcome.before), (0, None));
            match outcome.verdict {
                Verdict::Failed(error) => error,
                verdict => panic!("{verdict:?}"),
            }
        };
        let error = refused(session, &case(faults(other), "endless", Vec::new()));
        assert!(matches!(error, RunError::Target(_)), "{error}");
        assert!(error.to_string().contains(target) && error.to_string().contains(other));
        let error = refused(session, &case(faults(target), "absent", Vec::new()));
        assert!(error.to_string().contains("absent"), "{error}");
        let error = refused(session, &case(faults(target), "illegal", Vec::new()));
        assert!(matches!(error, RunError::Arguments(_)), "{error}");
        let large = Case { group: [1025, 1, 1], ..case(faults(target), "endless", Vec::new()) };
        let error = refused(session, &large);
        assert!(matches!(error, RunError::Workgroup { items: 1025, most: 1024 }), "{error}");
        let error = refused(session, &case(&[], "endless", Vec::new()));
        assert!(matches!(error, RunError::Object(_)), "{error}");
    });
}
