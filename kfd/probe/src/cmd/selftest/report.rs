//! What `selftest` prints and saves, and what of a saved report is read again.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use kfd_probe::programs::Case;
use kfd_probe::runner::Indices;
use serde::{Deserialize, Serialize};

use super::observe::Observations;
use crate::cmd::device::DeviceSummary;
use crate::cmd::machine::Machine;
use crate::exit::Failure;
use crate::render::{Report, table};

/// Version of the report's format.
pub const SCHEMA: u32 = 1;
/// A report is not larger, bytes.
const REPORT_LIMIT: u64 = 64 << 20;

/// The whole self-test.
#[derive(Serialize)]
pub struct Selftest {
    /// The device that ran.
    pub device: DeviceSummary,
    /// Whether everything ran and all results are the CPU's.
    pub passed: bool,
    /// Counts.
    pub totals: Totals,
    /// How long it took.
    pub seconds: f64,
    /// One entry per usable GPU.
    pub gpus: Vec<GpuRow>,
    /// What the driver did not free since the device may still use it.
    pub leaks: Vec<String>,
    /// The software GPU's own words.
    pub diagnostics: Vec<String>,
    /// What the software GPU saw while it executed: the honesty report and what it was told to look
    /// for.
    pub watched: Option<serde_json::Value>,
    /// Kernel, firmware, topology.
    pub machine: Machine,
    /// What is different from the report of `--compare`.
    pub differences: Option<Vec<String>>,
}

/// Counts of cases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Cases that were run.
    pub run: usize,
    /// Cases whose results are the CPU's.
    pub passed: usize,
    /// Cases that were run and did not pass.
    pub failed: usize,
    /// Cases that could not be run any more.
    pub not_run: usize,
}

/// One GPU's results.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GpuRow {
    /// Topology node.
    pub node: u32,
    /// KFD's id.
    pub gpu_id: u32,
    /// `gfx90a`.
    pub target: String,
    /// `gfx90a:sramecc+:xnack-`.
    pub target_id: String,
    /// How many programs there are for it.
    pub programs: usize,
    /// Why the rest did not run.
    pub problem: Option<String>,
    /// Results.
    pub cases: Vec<CaseRow>,
    /// What was measured and seen beside the results.
    pub observations: Option<Observations>,
}

/// One case's result.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CaseRow {
    /// Program and variant.
    pub name: String,
    /// Symbol of the kernel.
    pub kernel: String,
    /// Work-items.
    pub grid: [u32; 3],
    /// Work-items of a workgroup.
    pub workgroup: [u32; 3],
    /// `passed`, `wrong`, `failed`, `timeout` or `not_run`.
    pub result: String,
    /// What is wrong.
    pub detail: Option<String>,
    /// From the doorbell until the wait returned.
    pub microseconds: f64,
    /// Ticks of the GPU's clock from start to end of the packet.
    pub gpu_ticks: Option<u64>,
    /// Packets submitted.
    pub packets: u64,
    /// The queue before.
    pub queue_before: Option<IndicesRow>,
    /// The queue after.
    pub queue_after: Option<IndicesRow>,
}

/// Where a queue stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndicesRow {
    /// Packets the device has taken.
    pub read_index: u64,
    /// Packets submitted.
    pub write_index: u64,
}

impl From<Indices> for IndicesRow {
    fn from(indices: Indices) -> Self {
        Self { read_index: indices.read, write_index: indices.write }
    }
}

impl CaseRow {
    /// A case that was not run.
    pub fn not_run(case: &Case, problem: &str) -> Self {
        Self {
            name: case.name.clone(),
            kernel: case.kernel.to_owned(),
            grid: case.grid,
            workgroup: case.group,
            result: "not_run".to_owned(),
            detail: Some(problem.to_owned()),
            microseconds: 0.0,
            gpu_ticks: None,
            packets: 0,
            queue_before: None,
            queue_after: None,
        }
    }

    fn launch(&self) -> String {
        let ([x, y, z], [gx, gy, gz]) = (self.grid, self.workgroup);
        let size = |[x, y, z]: [u32; 3]| match (y, z) {
            (1, 1) => x.to_string(),
            (_, 1) => format!("{x}x{y}"),
            _ => format!("{x}x{y}x{z}"),
        };
        format!("{} / {}", size([x, y, z]), size([gx, gy, gz]))
    }
}

impl Totals {
    /// Counts the rows.
    pub fn of(gpus: &[GpuRow]) -> Self {
        let mut totals = Self::default();
        for case in gpus.iter().flat_map(|gpu| &gpu.cases) {
            match case.result.as_str() {
                "passed" => totals.passed += 1,
                "not_run" => totals.not_run += 1,
                _ => totals.failed += 1,
            }
        }
        totals.run = totals.passed + totals.failed;
        totals
    }
}

/// What is read of a saved report; other fields may come and go.
#[derive(Debug, Deserialize)]
pub struct SavedReport {
    schema: u32,
    /// The device, as far as it is compared.
    pub device: SavedDevice,
    /// The machine.
    pub machine: Machine,
    /// The results.
    pub gpus: Vec<GpuRow>,
}

/// The device of a saved report.
#[derive(Debug, Deserialize)]
pub struct SavedDevice {
    /// `hardware` or `software`.
    pub kind: String,
    /// For people.
    pub description: String,
}

#[derive(Serialize)]
struct Saved<'a> {
    schema: u32,
    command: &'static str,
    kfd_probe_version: &'static str,
    #[serde(flatten)]
    selftest: &'a Selftest,
}

impl Selftest {
    /// Writes the report.
    pub fn save(&self, path: &Path) -> Result<(), Failure> {
        let saved = Saved {
            schema: SCHEMA,
            command: "selftest",
            kfd_probe_version: env!("CARGO_PKG_VERSION"),
            selftest: self,
        };
        let mut text = serde_json::to_vec_pretty(&saved)?;
        text.push(b'\n');
        fs::write(path, text).map_err(|error| {
            Failure::Output(io::Error::new(error.kind(), format!("{}: {error}", path.display())))
        })
    }
}

impl SavedReport {
    /// Reads a report of `selftest --report`.
    ///
    /// # Errors
    /// [`Failure::Read`]; [`Failure::BadInput`] when it is something else or of another version.
    pub fn load(path: &Path) -> Result<Self, Failure> {
        let name = || path.display().to_string();
        let read = |source| Failure::Read { path: name(), source };
        let bad = |why: String| Failure::BadInput { what: format!("{}: {why}", name()) };
        let bytes = fs::metadata(path).map_err(read)?.len();
        if bytes > REPORT_LIMIT {
            return Err(bad(format!("{bytes} bytes are more than a report has")));
        }
        let text = fs::read(path).map_err(read)?;
        let report: Self = serde_json::from_slice(&text)
            .map_err(|error| bad(format!("not a report of selftest --report: {error}")))?;
        if report.schema != SCHEMA {
            let found = report.schema;
            return Err(bad(format!("format {found} of reports is unknown, {SCHEMA} is known")));
        }
        Ok(report)
    }
}

impl Report for Selftest {
    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        // The headline was printed before the first test.
        for gpu in &self.gpus {
            self.gpu_text(out, gpu)?;
        }
        for (title, lines) in
            [("Not freed:", &self.leaks), ("The software GPU says:", &self.diagnostics)]
        {
            if !lines.is_empty() {
                writeln!(out, "\n{title}")?;
            }
            for line in lines {
                writeln!(out, "- {line}")?;
            }
        }
        if let Some(differences) = &self.differences {
            writeln!(out, "\nCompared with the earlier report: {} differences", differences.len())?;
            for difference in differences {
                writeln!(out, "- {difference}")?;
            }
        }
        let Totals { run, passed, failed, not_run } = self.totals;
        let verdict = if self.passed { "passed" } else { "FAILED" };
        writeln!(
            out,
            "\n{verdict}: {passed} of {run} tests passed, {failed} failed, {not_run} not run, {:.1} s",
            self.seconds
        )
    }
}

impl Selftest {
    fn gpu_text(&self, out: &mut dyn Write, gpu: &GpuRow) -> io::Result<()> {
        let header =
            ["kernel", "target", "grid / group", "result", "time", "packets", "before", "after"];
        let mut cases = table(&header);
        let place = |indices: Option<IndicesRow>| {
            let text = |row: IndicesRow| format!("{}/{}", row.read_index, row.write_index);
            indices.map_or_else(String::new, text)
        };
        for case in &gpu.cases {
            cases.add_row([
                case.name.clone(),
                gpu.target.clone(),
                case.launch(),
                case.result.clone(),
                time(case.microseconds),
                case.packets.to_string(),
                place(case.queue_before),
                place(case.queue_after),
            ]);
        }
        if gpu.cases.is_empty() {
            writeln!(out, "node {}: no programs for {}", gpu.node, gpu.target)?;
        } else {
            writeln!(out, "\nGPU {} ({}); queue as read/write index", gpu.gpu_id, gpu.target_id)?;
            writeln!(out, "{cases}")?;
        }
        for case in gpu.cases.iter().filter(|case| case.result != "passed") {
            let detail = case.detail.as_deref().unwrap_or_default();
            writeln!(out, "- {} {}: {detail}", case.name, case.result)?;
        }
        if let Some(problem) = &gpu.problem {
            writeln!(out, "- {problem}")?;
        }
        match &gpu.observations {
            Some(observations) => observations.text(out),
            None => Ok(()),
        }
    }
}

/// Microseconds in a unit that leaves few digits.
fn time(microseconds: f64) -> String {
    if microseconds < 1e3 {
        format!("{microseconds:.0} us")
    } else if microseconds < 1e6 {
        format!("{:.1} ms", microseconds / 1e3)
    } else {
        format!("{:.2} s", microseconds / 1e6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_in_a_unit_that_leaves_few_digits() {
        assert_eq!(time(12.3), "12 us");
        assert_eq!(time(1_234.0), "1.2 ms");
        assert_eq!(time(2_500_000.0), "2.50 s");
    }
}
