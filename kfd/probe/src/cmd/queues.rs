//! `queues`: rings, live, and the queues of every process, from sysfs.

use std::io::{self, Write};

use kfd::process::ProcessInfo;
use kfd::sys::{Kernel, Linux};
use serde::Serialize;

use super::demo::Demo;
use super::device::{self, Device, DeviceSummary, read_text};
use super::devices::bytes;
use super::rings::{self, Rings};
use crate::cli::QueuesArgs;
use crate::exit::{Code, Failure};
use crate::render::{Output, Report, table};

#[derive(Serialize)]
struct Queues {
    /// `None` where no device could be opened: sysfs is readable even so.
    device: Option<DeviceSummary>,
    device_problem: Option<String>,
    /// An AQL queue of this process on each usable GPU, made for this report.
    own: Vec<OwnRow>,
    /// All queues of this process, made for this report, with what is in them.
    rings: Option<Rings>,
    processes: Vec<ProcessRow>,
}

#[derive(Serialize)]
struct OwnRow {
    gpu_id: u32,
    target: String,
    queue_id: u32,
    kind: &'static str,
    packets: u64,
    read_index: u64,
    write_index: u64,
    private_bytes_per_work_item: u32,
}

#[derive(Serialize)]
struct ProcessRow {
    pid: u32,
    command: Option<String>,
    is_this_process: bool,
    gpus: Vec<UsageRow>,
    queues: Vec<QueueRow>,
}

#[derive(Serialize)]
struct UsageRow {
    gpu_id: u32,
    vram_bytes: Option<u64>,
    /// How busy SDMA queues were, in the kernel's unit.
    sdma_activity: Option<u64>,
    evicted_ms: Option<u64>,
    compute_units_in_use: Option<u64>,
}

#[derive(Serialize)]
struct QueueRow {
    gpu_id: u32,
    queue_id: u32,
    kind: &'static str,
    ring_bytes: u64,
}

/// Runs `queues`.
pub fn run(args: &QueuesArgs, out: &Output) -> Result<Code, Failure> {
    if let Some(path) = &args.from {
        out.report("queues", &rings::read(path)?)?;
        return Ok(Code::Passed);
    }
    let linux = Linux::new();
    let report = match device::select(&args.device) {
        Ok(device) => collect(device)?,
        // Other processes' queues can be seen without a device of one's own.
        Err(failure) if args.device.model.is_none() && kfd::process::processes(&linux).is_ok() => {
            Queues {
                device: None,
                device_problem: Some(failure.to_string()),
                own: Vec::new(),
                rings: None,
                processes: processes(&linux),
            }
        }
        Err(failure) => return Err(failure),
    };
    out.report("queues", &report)?;
    Ok(Code::Passed)
}

fn collect(device: Device) -> Result<Queues, Failure> {
    let Device { kfd, summary, .. } = device;
    let demo = Demo::start(&kfd)?;
    let own = demo.aql().map(|(gpu, queue)| {
        let state = queue.state();
        OwnRow {
            gpu_id: gpu.id().0,
            target: gpu.gfx_version().to_string(),
            queue_id: queue.id().0,
            kind: "AQL",
            packets: queue.size(),
            read_index: state.read_index,
            write_index: state.write_index,
            private_bytes_per_work_item: queue.scratch_bytes(),
        }
    });
    let own = own.collect();
    let (snapshot, missing) = (demo.snapshot(), demo.missing.clone());
    let mut processes = processes(&**kfd.kernel());
    if summary.kind == "software" && summary.hardware_not_used.is_some() {
        // The machine may have processes on its own KFD even if this one may not use it.
        processes.extend(self::processes(&Linux::new()).into_iter().filter(|p| !p.is_this_process));
    }
    demo.finish()?;
    let rings = Some(Rings { file: None, snapshot, missing });
    Ok(Queues { device: Some(summary), device_problem: None, own, rings, processes })
}

fn processes(kernel: &dyn Kernel) -> Vec<ProcessRow> {
    let found = kfd::process::processes(kernel).unwrap_or_default();
    found.iter().map(|process| row(kernel, process)).collect()
}

fn row(kernel: &dyn Kernel, process: &ProcessInfo) -> ProcessRow {
    let pid = process.pid;
    let gpus = process.gpus.iter().map(|gpu| UsageRow {
        gpu_id: gpu.gpu.0,
        vram_bytes: gpu.vram_bytes,
        sdma_activity: gpu.sdma_activity,
        evicted_ms: gpu.evicted_ms,
        compute_units_in_use: gpu.cu_occupancy,
    });
    let queues = process.queues.iter().map(|queue| QueueRow {
        gpu_id: queue.gpu.0,
        queue_id: queue.id.0,
        kind: match queue.kind {
            0 => "compute",
            1 => "SDMA",
            4 => "SDMA over xGMI",
            _ => "unknown",
        },
        ring_bytes: queue.ring_bytes,
    });
    ProcessRow {
        pid,
        command: read_text(kernel, &format!("/proc/{pid}/comm"))
            .ok()
            .map(|name| name.trim().to_owned()),
        is_this_process: pid == std::process::id(),
        gpus: gpus.collect(),
        queues: queues.collect(),
    }
}

impl Report for Queues {
    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        match (&self.device, &self.device_problem) {
            (Some(device), _) => writeln!(out, "{}", device.headline())?,
            (None, problem) => {
                writeln!(out, "device: none; {}", problem.as_deref().unwrap_or_default())?;
            }
        }
        if let Some(rings) = &self.rings {
            writeln!(out, "\nThis process (queues made for this report, in a chain of waits):")?;
            rings.text(out)?;
        }
        writeln!(out, "\nProcesses that use KFD, as the kernel lists them:")?;
        if self.processes.is_empty() {
            return writeln!(out, "none");
        }
        let mut all = table(&["pid", "command", "GPU", "queue", "kind", "ring", "VRAM"]);
        for process in &self.processes {
            let command = process.command.clone().unwrap_or_else(|| "?".to_owned());
            let vram = |gpu: u32| {
                let usage = process.gpus.iter().find(|usage| usage.gpu_id == gpu);
                usage.and_then(|usage| usage.vram_bytes).map_or_else(|| "?".to_owned(), bytes)
            };
            for queue in &process.queues {
                all.add_row([
                    process.pid.to_string(),
                    command.clone(),
                    queue.gpu_id.to_string(),
                    queue.queue_id.to_string(),
                    queue.kind.to_owned(),
                    bytes(queue.ring_bytes),
                    vram(queue.gpu_id),
                ]);
            }
            if process.queues.is_empty() {
                for gpu in &process.gpus {
                    all.add_row([
                        process.pid.to_string(),
                        command.clone(),
                        gpu.gpu_id.to_string(),
                        "none".to_owned(),
                        String::new(),
                        String::new(),
                        vram(gpu.gpu_id),
                    ]);
                }
            }
        }
        writeln!(out, "{all}")
    }
}
