//! Kernels that never end or go wrong: what the model's user is told, in bounded time and memory,
//! while the device goes on as hardware does.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod bare;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bare::{Run, observe};
use kfd_model::exec::{Cause, Diagnosis, Engine};
use kfd_model::{Target, Watchdog};
use kfd_probe::programs::{Arg, Case};

const TARGETS: [Target; 2] = [Target::Gfx90a, Target::Gfx1100];

/// A kernel of the fixture on workgroups of 128.
fn case(target: Target, kernel: &'static str, groups: u32) -> Case {
    Case {
        name: kernel.to_owned(),
        object: match target {
            Target::Gfx90a => include_bytes!("../../fixtures/watch/watch.gfx90a.co"),
            _ => include_bytes!("../../fixtures/watch/watch.gfx1100.co"),
        },
        kernel,
        grid: [128 * groups, 1, 1],
        group: [128, 1, 1],
        dynamic_lds_bytes: 0,
        args: vec![Arg::Buffer(vec![0; 1024]), Arg::Buffer(vec![0; 1024])],
        check: Box::new(|_| Ok(())),
    }
}

/// Runs a kernel until the watchdog has barked; it must not end.
fn hang(target: Target, kernel: &'static str, watchdog: Watchdog) -> (Run, Diagnosis) {
    let engine = Engine::new(0);
    engine.set_watchdog(watchdog);
    let run = observe(&engine, Some(60), target, &case(target, kernel, 2)).unwrap();
    assert_eq!(run.outcome, None, "{target} {kernel}: the device hangs");
    let barks =
        |d: &&Diagnosis| matches!(d.cause, Cause::Budget | Cause::Deadlock | Cause::Livelock);
    let found: Vec<Diagnosis> = run.diagnoses.iter().filter(barks).cloned().collect();
    let [one] = &found[..] else { panic!("{target} {kernel}: {}", run.says()) };
    let diagnosis = one.clone();
    (run, diagnosis)
}

fn instructions(limit: u64) -> Watchdog {
    Watchdog::default().instructions(limit)
}

fn tells(kernel: &'static str, cause: Cause, texts: &[&str]) {
    for target in TARGETS {
        let (_, diagnosis) = hang(target, kernel, instructions(20_000));
        assert_eq!(diagnosis.cause, cause, "{target}: {}", diagnosis.text);
        for text in texts {
            assert!(diagnosis.text.contains(text), "{target}: {text:?} in {}", diagnosis.text);
        }
    }
}

#[test]
fn a_barrier_that_a_wave_never_reaches_is_a_livelock_of_that_wave() {
    let circle = "goes round in a circle, reading 0x";
    tells(
        "barrier_never",
        Cause::Livelock,
        &["wave 0", circle, "waits at the barrier before barrier_never+"],
    );
}

#[test]
fn a_barrier_that_a_halted_wave_never_reaches_is_a_deadlock_at_once() {
    tells(
        "barrier_halted",
        Cause::Deadlock,
        &["is halted at barrier_halted+", "waits at the barrier before"],
    );
}

#[test]
fn waves_that_sleep_until_a_word_changes_are_a_deadlock() {
    for target in TARGETS {
        let (_, diagnosis) = hang(target, "sleeps", instructions(500));
        assert_eq!(diagnosis.cause, Cause::Deadlock, "{target}: {}", diagnosis.text);
        assert!(
            diagnosis.text.contains("sleeps and looks again, reading 0x"),
            "{}",
            diagnosis.text
        );
    }
}

#[test]
fn a_loop_that_counts_is_neither() {
    tells("counts", Cause::Budget, &["its waves run on", "counts+", "s_add_u32"]);
}

#[test]
fn endless_recursion_without_a_stack_is_a_livelock() {
    tells("recursion", Cause::Livelock, &["goes round in a circle at recursion+"]);
}

#[test]
fn the_clock_on_the_wall_is_watched_even_where_nothing_runs() {
    for target in TARGETS {
        let limit = Watchdog::default().time(Duration::from_millis(20));
        let (_, diagnosis) = hang(target, "counts", limit);
        assert_eq!(diagnosis.cause, Cause::Budget);
    }
    let engine = Engine::new(1);
    engine.set_watchdog(Watchdog::default().time(Duration::from_millis(20)));
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                engine.check_watchdog();
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        let run = observe_for(&engine, Duration::from_secs(2));
        stop.store(true, Ordering::Relaxed);
        assert!(run.says().contains("deadlock"), "{}", run.says());
    });
}

fn observe_for(engine: &Engine, limit: Duration) -> Run {
    bare::observe_for(engine, limit, Target::Gfx1100, &case(Target::Gfx1100, "sleeps", 1)).unwrap()
}

/// Kernels whose waves each run into an exception: told once, and the rest of the grid waits.
#[test]
fn a_million_workgroups_that_all_fail_give_one_diagnosis() {
    for target in TARGETS {
        for (kernel, text) in [
            ("into_literal", "cannot execute"),
            ("lies_about_registers", "cannot execute"),
            ("misaligned", "violated memory rules"),
        ] {
            let engine = Engine::new(0);
            let start = Instant::now();
            let run =
                observe(&engine, Some(300), target, &case(target, kernel, 1_000_000)).unwrap();
            assert_eq!((run.outcome, &run.faults[..]), (None, &[][..]), "{target} {kernel}");
            let [one] = &run.diagnoses[..] else { panic!("{target} {kernel}: {}", run.says()) };
            assert!(one.text.contains(text), "{}", one.text);
            assert!(start.elapsed() < Duration::from_secs(20));
        }
    }
}

#[test]
fn a_million_workgroups_that_all_fault_give_one_fault() {
    for target in TARGETS {
        for (kernel, fetch, address) in
            [("wild_jump", true, 0x4567_0000_1230), ("faults", false, 0)]
        {
            let engine = Engine::new(0);
            let run =
                observe(&engine, Some(300), target, &case(target, kernel, 1_000_000)).unwrap();
            let [fault] = &run.faults[..] else { panic!("{target} {kernel}: {:?}", run.faults) };
            assert_eq!((fault.fetch, fault.address, fault.write), (fetch, address, !fetch));
            assert!(run.diagnoses.is_empty(), "{}", run.says());
        }
    }
}

#[test]
fn a_deadlock_is_told_while_others_are_not_started() {
    let engine = Engine::new(0);
    engine.set_watchdog(instructions(1_000_000_000));
    let case = case(Target::Gfx1100, "barrier_halted", 100_000);
    let run = observe(&engine, Some(300), Target::Gfx1100, &case).unwrap();
    let found = run.diagnoses.iter().find(|d| d.cause == Cause::Deadlock);
    let text = &found.unwrap_or_else(|| panic!("{}", run.says())).text;
    assert!(text.contains("workgroups not started") && text.contains("more waves"), "{text}");
    assert!(text.lines().count() < 20, "{text}");
}
