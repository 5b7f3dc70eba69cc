//! What watching finds: each check on kernels with the bug and without it, and on the self-test's
//! programs, which have none.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod bare;

use std::sync::Arc;

use bare::{Run, observe, observe_with_handler};
use kfd_model::exec::observe::{FindingKind, Observer, Reach, Report};
use kfd_model::exec::{Engine, Outcome};
use kfd_model::{Target, Watch};
use kfd_probe::programs::{Arg, Case, cases};

const TARGETS: [Target; 2] = [Target::Gfx90a, Target::Gfx1100];

fn object(target: Target) -> &'static [u8] {
    match target {
        Target::Gfx90a => include_bytes!("../../fixtures/watch/watch.gfx90a.co"),
        _ => include_bytes!("../../fixtures/watch/watch.gfx1100.co"),
    }
}

/// A kernel of the fixture on two workgroups of 128: buffers out and in of 1 KiB; in holds 3.0.
fn case(target: Target, kernel: &'static str) -> Case {
    let input = (0..256).flat_map(|_| 3.0f32.to_le_bytes()).collect();
    Case {
        name: kernel.to_owned(),
        object: object(target),
        kernel,
        grid: [256, 1, 1],
        group: [128, 1, 1],
        dynamic_lds_bytes: 0,
        args: vec![Arg::Buffer(vec![0; 1024]), Arg::Buffer(input)],
        check: Box::new(|_| Ok(())),
    }
}

/// Runs a kernel of the fixture on this thread, watched.
fn run(target: Target, kernel: &'static str, watch: &str) -> (Run, Report) {
    let engine = Engine::new(0);
    let observer = Arc::new(Observer::new(watch.parse().unwrap()).unwrap());
    engine.observe(Arc::clone(&observer));
    let run = observe(&engine, Some(1000), target, &case(target, kernel)).unwrap();
    (run, observer.report())
}

fn word(run: &Run, at: usize) -> u32 {
    u32::from_le_bytes(run.buffers[0][4 * at..4 * at + 4].try_into().unwrap())
}

/// The kernel with the bug is found out, by one finding of this kind that names the place; the one
/// without is not.
fn tells(
    watch: &str,
    kind: FindingKind,
    bad: &'static str,
    good: Option<&'static str>,
    text: &str,
) {
    for target in TARGETS {
        let (run, report) = self::run(target, bad, watch);
        assert_eq!(run.outcome, Some(Outcome::Completed), "{target} {bad}");
        let [finding] = &report.findings[..] else {
            panic!("{target} {bad}: {:#?}", report.findings);
        };
        assert_eq!(finding.kind, kind, "{target}");
        assert_eq!(finding.at.symbol.as_deref(), Some(bad), "{target}");
        assert!(finding.text.contains(text), "{target}: {}", finding.text);
        assert!(run.says().contains(&finding.text), "{target}: the listener heard: {}", run.says());
        let Some(good) = good else { continue };
        let (run, report) = self::run(target, good, watch);
        assert_eq!(run.outcome, Some(Outcome::Completed), "{target} {good}");
        assert_eq!((report.findings, run.says()), (vec![], String::new()), "{target} {good}");
    }
}

#[test]
fn a_load_used_before_its_wait_is_found() {
    let wait = FindingKind::MissingWait;
    tells("late", wait, "late_bad", Some("late_good"), "v1 is used before the load into it");
    tells("late", wait, "late_scalar_bad", Some("late_good"), "s4 is used before");
    tells("late", wait, "late_order_bad", Some("late_order_good"), "v4 is used before");
}

#[test]
fn what_a_late_load_shows_early_is_a_pattern_and_later_the_value() {
    for target in TARGETS {
        let (bad, _) = run(target, "late_bad", "late");
        let (good, _) = run(target, "late_good", "late");
        assert_eq!(word(&good, 5), 3.0f32.to_bits() ^ 1);
        // The use made a value of the pattern, and the load overwrote it when it came.
        assert_eq!(word(&bad, 5), 3.0f32.to_bits());
    }
}

#[test]
fn what_was_never_written_is_found_where_it_decides() {
    let kind = FindingKind::Undefined;
    tells(
        "poison",
        kind,
        "register_bad",
        Some("register_good"),
        "v1 was never written and decides what memory",
    );
    tells("poison", kind, "branch_bad", None, "decides where control goes");
    tells("poison", kind, "lds_undefined_bad", Some("lds_race_good"), "v1 was never written");
}

#[test]
fn poisoned_registers_hold_the_same_pattern_in_every_run() {
    for target in TARGETS {
        let (run, _) = run(target, "register_bad", "poison");
        assert_eq!(word(&run, 3), 0xdead_7ec0 ^ 3);
    }
}

#[test]
fn races_in_lds_and_memory_are_found() {
    let kind = FindingKind::Race;
    for (bad, good) in [("lds_race_bad", "lds_race_good"), ("memory_race_bad", "memory_race_good")]
    {
        for target in TARGETS {
            let (run, report) = self::run(target, bad, "races");
            assert!(!report.findings.is_empty(), "{target} {bad}");
            assert!(report.findings.iter().all(|f| f.kind == kind && f.other.is_some()));
            assert!(run.says().contains("without order between them; the other is"));
            let (_, report) = self::run(target, good, "races");
            assert_eq!(report.findings, [], "{target} {good}");
        }
    }
}

#[test]
fn an_access_beyond_lds_is_found_and_reads_zero_and_writes_nothing() {
    for target in TARGETS {
        let (run, report) = run(target, "lds_overrun_bad", "lds");
        assert_eq!(report.findings.len(), 2, "the store and the load: {:#?}", report.findings);
        assert!(report.findings.iter().all(|f| f.kind == FindingKind::LdsOverrun));
        assert!(report.findings[0].text.contains("at offset 0x200"), "{}", report.findings[0].text);
        assert_eq!(word(&run, 0), 0, "{target}");
        let (run, report) = self::run(target, "lds_overrun_good", "lds");
        assert_eq!((report.findings, word(&run, 0)), (vec![], 7), "{target}");
    }
}

#[test]
fn moved_results_break_what_relies_on_their_last_place() {
    for target in TARGETS {
        let results = |kernel| -> Vec<u32> {
            let seeds = ["report", "ulp=1", "ulp=2", "ulp=3"];
            let mut all: Vec<u32> = seeds
                .iter()
                .flat_map(|watch| {
                    let (run, _) = run(target, kernel, watch);
                    (0..128).map(|at| word(&run, at)).collect::<Vec<_>>()
                })
                .collect();
            all.sort_unstable();
            all.dedup();
            all
        };
        assert_eq!(results("ulp_bad"), [0, 1], "{target}");
        assert_eq!(results("ulp_good"), [1], "{target}");
    }
}

#[test]
fn a_schedule_seed_changes_what_depends_on_order() {
    for target in TARGETS {
        let results = |kernel| -> Vec<u32> {
            let mut all: Vec<u32> = (0..8)
                .map(|seed| word(&run(target, kernel, &format!("schedule={seed}")).0, 0))
                .collect();
            all.sort_unstable();
            all.dedup();
            all
        };
        assert_eq!(results("schedule_bad"), [0, 1], "{target}");
        assert_eq!(results("schedule_good"), [1], "{target}");
    }
}

#[test]
fn the_report_counts_by_class_and_says_where_inexact_results_get() {
    for target in TARGETS {
        let (_, report) = run(target, "ulp_bad", "report");
        let class = |name| report.classes.iter().find(|class| class.class == name).unwrap();
        let waves = if target == Target::Gfx90a { 4 } else { 8 };
        assert_eq!(class("tolerance").instructions, waves, "{target}");
        assert_eq!(report.instructions, class("exact").instructions + waves);
        let [rcp] = &report.inexact[..] else { panic!("{:#?}", report.inexact) };
        assert!(rcp.name.starts_with("v_rcp_f32"));
        assert_eq!(
            (&rcp.first.symbol, &rcp.reaches[..]),
            (&Some("ulp_bad".into()), &[Reach::Memory][..])
        );
        let reached = class("tolerance").first_reaching.as_ref().unwrap();
        assert!(reached.at.text.starts_with("global_store"), "{}", reached.at.text);
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(json["classes"][1]["first_reaching"]["reach"], "memory");
        let (_, report) = run(target, "late_good", "report");
        assert_eq!(report.inexact, []);
    }
}

#[test]
fn a_trace_has_every_instruction_with_what_it_changes() {
    let directory = tempfile::tempdir().unwrap();
    for target in TARGETS {
        let path = directory.path().join(target.name());
        let (_, report) = run(target, "late_good", &format!("report,trace={}", path.display()));
        let text = std::fs::read_to_string(path).unwrap();
        assert_eq!(text.lines().count() as u64, report.instructions, "{target}");
        let line = text.lines().find(|line| line.contains("v_xor_b32")).unwrap();
        assert!(line.contains("late_good+") && line.contains("v1=0x40400001 in"), "{line}");
    }
}

#[test]
fn coverage_counts_lines_of_objects_with_dwarf() {
    let file =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/code-objects/vadd.gfx90a.debug.v5.co");
    let bytes: &'static [u8] = Box::leak(std::fs::read(file).unwrap().into_boxed_slice());
    let mut case = cases("gfx90a").into_iter().find(|case| case.name.starts_with("vadd")).unwrap();
    case.object = bytes;
    let engine = Engine::new(0);
    let observer = Observer::new(format!("coverage={file}").parse().unwrap()).unwrap();
    let observer = Arc::new(observer);
    engine.observe(Arc::clone(&observer));
    let run = observe(&engine, Some(1000), Target::Gfx90a, &case).unwrap();
    assert_eq!(run.check, Ok(()));
    let coverage = observer.report().coverage;
    let of = |line| coverage.iter().find(|row| row.line == line).map_or(0, |row| row.executions);
    let waves = u64::from(case.grid[0].div_ceil(64));
    assert!(coverage.iter().all(|row| row.file.ends_with("vadd.hip")), "{coverage:?}");
    assert!(of(5) >= 1 && of(5) <= waves && of(6) >= 1, "{coverage:?}");
    let wrong = Observer::new(format!("coverage={}", file.replace(".debug", "")).parse().unwrap());
    assert!(wrong.unwrap_err().to_string().contains("no DWARF line table"));
}

/// Every program under every check that finds bugs, with no finding and the right result.
fn silent(target: Target) {
    let engine = Engine::new(2);
    let observer = Arc::new(Observer::new("check,schedule=5,report".parse().unwrap()).unwrap());
    engine.observe(Arc::clone(&observer));
    let mut wrong = Vec::new();
    // Each work-item of dims writes its own numbers to the same words: a race, which is found.
    for case in cases(target.name()).into_iter().filter(|case| !case.name.starts_with("dims")) {
        let run = observe(&engine, None, target, &case).unwrap();
        if run.outcome != Some(Outcome::Completed) || run.check.is_err() || !run.says().is_empty() {
            wrong.push(format!("{}: {:?} {:?}\n{}", case.name, run.outcome, run.check, run.says()));
        }
    }
    assert!(wrong.is_empty(), "{} programs:\n{}", wrong.len(), wrong.join("\n"));
    let report = observer.report();
    assert_eq!(report.findings, []);
    assert_eq!(report.classes[3].instructions, 0, "nothing is missing");
}

#[test]
fn every_check_is_silent_on_the_programs_of_gfx9() {
    [Target::Gfx900, Target::Gfx908, Target::Gfx90a, Target::Gfx942].into_iter().for_each(silent);
}

#[test]
fn every_check_is_silent_on_the_programs_of_gfx11() {
    [Target::Gfx1100, Target::Gfx1151].into_iter().for_each(silent);
}

#[test]
fn every_check_finds_the_race_of_a_program_that_has_one() {
    let engine = Engine::new(0);
    let observer = Arc::new(Observer::new("check".parse().unwrap()).unwrap());
    engine.observe(Arc::clone(&observer));
    let dims = cases("gfx1100").into_iter().find(|case| case.name == "dims v5 3-D 10x7x5");
    let dims = dims.unwrap();
    observe(&engine, Some(1000), Target::Gfx1100, &dims).unwrap();
    let findings = observer.report().findings;
    let kinds: Vec<FindingKind> = findings.iter().map(|finding| finding.kind).collect();
    assert!(
        !kinds.is_empty() && kinds.iter().all(|kind| *kind == FindingKind::Race),
        "{findings:#?}"
    );
}

/// Every program computes the same bits under every seed and number of workers, but for those whose
/// result is the order: dims says which work-item came last, atomics how far the others were.
fn same_bits(target: Target) {
    let mut wrong = Vec::new();
    for case in cases(target.name()) {
        if ["dims", "atomics"].iter().any(|name| case.name.contains(name)) {
            continue;
        }
        let mut first: Option<Vec<Vec<u8>>> = None;
        for (workers, seed) in [(0, None), (0, Some(1)), (1, Some(2)), (3, Some(3)), (3, None)] {
            let engine = Engine::new(workers);
            if let Some(seed) = seed {
                let watch = format!("schedule={seed}").parse().unwrap();
                engine.observe(Arc::new(Observer::new(watch).unwrap()));
            }
            let steps = (workers == 0).then_some(100_000);
            let run = observe(&engine, steps, target, &case).unwrap();
            let first = first.get_or_insert_with(|| run.buffers.clone());
            if run.outcome != Some(Outcome::Completed)
                || run.check.is_err()
                || *first != run.buffers
            {
                wrong.push(format!(
                    "{} with {workers} workers, seed {seed:?}: {:?}",
                    case.name, run.check
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{target}:\n{}", wrong.join("\n"));
}

#[test]
fn results_are_the_same_bits_under_any_schedule_on_gfx9() {
    [Target::Gfx900, Target::Gfx90a, Target::Gfx942].into_iter().for_each(same_bits);
}

#[test]
fn results_are_the_same_bits_under_any_schedule_on_gfx11() {
    same_bits(Target::Gfx1100);
}

#[test]
fn options_of_a_watch_are_those_of_the_text() {
    let watch: Watch = "check".parse().unwrap();
    assert!(watch.poison && watch.late && watch.races && watch.lds && watch.ulp.is_none());
}

/// TRAPSTS: division by zero, inexact.
const DIVISION: u32 = 1 << 2;
const INEXACT: u32 = 1 << 5;

#[test]
fn a_kernel_that_reads_trapsts_finds_its_exceptions_there_and_they_stay() {
    for target in TARGETS {
        for watch in ["", "late,report"] {
            let (run, _) = run(target, "exceptions_read", watch);
            assert_eq!(word(&run, 0), DIVISION | (DIVISION | INEXACT) << 16, "{target} {watch:?}");
            let (run, _) = self::run(target, "exceptions_called", watch);
            assert_eq!(word(&run, 0), DIVISION, "{target} {watch:?}: read in a function");
        }
    }
}

#[test]
fn an_exception_whose_trap_is_enabled_enters_the_handler_after_it() {
    for target in TARGETS {
        let case = case(target, "exceptions_trap");
        let engine = Engine::new(0);
        let run = observe_with_handler(&engine, target, &case, "exceptions_handler").unwrap();
        assert_eq!(run.outcome, Some(Outcome::Completed), "{target}: {}", run.says());
        // The inexact sum enters none, the division does, and then TRAPSTS has both.
        assert_eq!((word(&run, 0), word(&run, 128)), (0, DIVISION | INEXACT), "{target}");
        let run = observe(&engine, Some(1000), target, &case).unwrap();
        assert_eq!((run.outcome, word(&run, 128)), (Some(Outcome::Completed), 0), "no handler");
    }
}
