//! `selftest`: runs compiled kernels and compares every result with the CPU's.

mod compare;
mod observe;
mod report;

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use kfd::{Gpu, Kfd};
use kfd_probe::programs::{self, Case};
use kfd_probe::runner::{Outcome, RunError, Session, Verdict, run_case};

use super::device::{self, Device};
use super::machine::Machine;
use crate::cli::{DeviceArgs, SelftestArgs};
use crate::exit::{Code, Failure, chain};
use crate::render::Output;
pub use report::SavedReport;
use report::{CaseRow, GpuRow, IndicesRow, Selftest, Totals};

/// A progress bar appears only when the whole takes longer than this.
const PATIENCE: Duration = Duration::from_secs(1);

/// Runs `selftest`.
pub fn run(args: &SelftestArgs, out: &Output) -> Result<Code, Failure> {
    // Read first: a bad file should not cost a run.
    let earlier = args.compare.as_deref().map(SavedReport::load).transpose()?;
    let device = device::select_if(&watched(args), has_programs)?;
    let headline = out.line(&device.summary.headline());
    if args.report.is_none() {
        headline?; // with a report to write, a reader that went away stops nothing
    }
    let timeout = Duration::from_millis(args.timeout.max(1));
    let mut selftest = collect(&device, args, timeout, out);
    if selftest.totals.run == 0 {
        return Err(nothing_ran(&device, args));
    }
    if let Some(earlier) = &earlier {
        selftest.differences = Some(compare::differences(earlier, &selftest));
    }
    if let Some(path) = &args.report {
        selftest.save(path)?;
    }
    out.report("selftest", &selftest)?;
    Ok(if selftest.passed { Code::Passed } else { Code::Failed })
}

/// The device; what it executes is counted where there is a report to write it to.
fn watched(args: &SelftestArgs) -> DeviceArgs {
    let mut device = args.device.clone();
    if args.report.is_some() && !device.hardware {
        let watch = device.watch.take().unwrap_or_default();
        device.watch = Some(format!("{watch},report"));
    }
    device
}

/// Refuses a device without a GPU that there are programs for.
fn has_programs(kfd: &Kfd) -> Result<(), Failure> {
    let targets: Vec<String> = kfd.gpus().iter().map(|gpu| gpu.gfx_version().to_string()).collect();
    if targets.iter().any(|target| !programs::cases(target).is_empty()) {
        return Ok(());
    }
    let what = format!(
        "there are no programs for {}: the self-test has some for {}, and one for gfx9 and gfx11 \
         in general",
        targets.join(", "),
        programs::TARGETS.join(", ")
    );
    Err(Failure::Device { code: Code::NoGpu, what })
}

/// Why a self-test without a single result ended so.
fn nothing_ran(device: &Device, args: &SelftestArgs) -> Failure {
    match (has_programs(&device.kfd), &args.only) {
        (Err(failure), _) => failure,
        (Ok(()), Some(text)) => {
            Failure::BadInput { what: format!("no test has {text:?} in its name") }
        }
        (Ok(()), None) => Failure::Device {
            code: Code::DeviceFailed,
            what: "no test could be run on any GPU".to_owned(),
        },
    }
}

fn collect(device: &Device, args: &SelftestArgs, timeout: Duration, out: &Output) -> Selftest {
    let start = Instant::now();
    let gpus = device.kfd.gpus();
    let wanted: Vec<Vec<Case>> = gpus.iter().map(|gpu| cases(gpu, args)).collect();
    let progress = Progress::new(wanted.iter().map(Vec::len).sum(), out.is_interactive());
    let mut rows = Vec::new();
    for (gpu, cases) in gpus.iter().zip(&wanted) {
        rows.push(one_gpu(&device.kfd, gpu, cases, timeout, &progress));
    }
    progress.finish();
    let totals = Totals::of(&rows);
    Selftest {
        device: device.summary.clone(),
        passed: totals.run > 0
            && totals.failed == 0
            && totals.not_run == 0
            && device.findings() == 0,
        totals,
        seconds: start.elapsed().as_secs_f64(),
        gpus: rows,
        leaks: device.kfd.leaks().iter().map(|leak| format!("{leak:?}")).collect(),
        diagnostics: device.diagnostics(),
        watched: device.watched(),
        machine: Machine::read(&device.kfd),
        differences: None,
    }
}

fn cases(gpu: &Gpu, args: &SelftestArgs) -> Vec<Case> {
    let mut cases = programs::cases(&gpu.gfx_version().to_string());
    if let Some(text) = &args.only {
        cases.retain(|case| case.name.contains(text.as_str()));
    }
    cases
}

fn one_gpu(kfd: &Kfd, gpu: &Gpu, cases: &[Case], timeout: Duration, progress: &Progress) -> GpuRow {
    let target = gpu.gfx_version().to_string();
    let mut row = GpuRow {
        node: gpu.node().id.0,
        gpu_id: gpu.id().0,
        programs: programs::cases(&target).len(),
        target,
        target_id: String::new(),
        problem: None,
        cases: Vec::new(),
        observations: None,
    };
    let mut session = match Session::new(kfd, gpu) {
        Ok(session) => session,
        Err(error) => {
            row.problem = Some(chain(&error));
            return row;
        }
    };
    row.target_id = session.target().to_string();
    if cases.is_empty() {
        return row;
    }
    for case in cases {
        progress.next(&case.name);
        let result = match &row.problem {
            None => case_row(case, &run_case(&mut session, case, timeout)),
            Some(problem) => CaseRow::not_run(case, problem),
        };
        // A GPU that is lost for this process runs nothing more; say so once.
        if row.problem.is_none()
            && let Err(error) = gpu.check()
        {
            row.problem = Some(chain(&error));
        }
        row.cases.push(result);
    }
    if row.problem.is_none() {
        row.observations = Some(observe::observe(&mut session, &row.cases, timeout));
    }
    if let Err(error) = session.drop_queue() {
        row.problem.get_or_insert_with(|| chain(&error));
    }
    row
}

fn case_row(case: &Case, outcome: &Outcome) -> CaseRow {
    let (result, detail) = match &outcome.verdict {
        Verdict::Passed => ("passed", None),
        Verdict::Wrong(wrong) => ("wrong", Some(wrong.to_string())),
        Verdict::Failed(RunError::Driver(kfd::Error::Timeout(report))) => {
            ("timeout", Some(report.to_string()))
        }
        Verdict::Failed(error) => ("failed", Some(chain(error))),
    };
    CaseRow {
        result: result.to_owned(),
        detail,
        microseconds: outcome.elapsed.as_secs_f64() * 1e6,
        gpu_ticks: outcome.gpu_ticks,
        packets: outcome.packets,
        queue_before: outcome.before.map(IndicesRow::from),
        queue_after: outcome.after.map(IndicesRow::from),
        ..CaseRow::not_run(case, "")
    }
}

/// A bar on standard error, for people, once it takes long.
struct Progress {
    bar: ProgressBar,
    start: Instant,
    interactive: bool,
}

impl Progress {
    fn new(steps: usize, interactive: bool) -> Self {
        let bar = ProgressBar::with_draw_target(Some(steps as u64), ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template("{bar:40} {pos}/{len} {msg}") {
            bar.set_style(style);
        }
        Self { bar, start: Instant::now(), interactive }
    }

    fn next(&self, name: &str) {
        if self.interactive && self.bar.is_hidden() && self.start.elapsed() > PATIENCE {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.bar.set_message(name.to_owned());
        self.bar.inc(1);
    }

    fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
