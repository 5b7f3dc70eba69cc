//! `capture`: rings and what belongs to them, saved for `decode --from`.

use std::io::{self, Write};

use serde::Serialize;

use super::demo::Demo;
use super::device;
use crate::cli::CaptureArgs;
use crate::exit::{Code, Failure};
use crate::render::{Output, Report};

#[derive(Serialize)]
struct Captured {
    file: String,
    queues: usize,
    pending_packets: usize,
    missing: Vec<String>,
}

/// Runs `capture`.
pub fn run(args: &CaptureArgs, out: &Output) -> Result<Code, Failure> {
    let device = device::select(&args.device)?;
    let demo = Demo::start(&device.kfd)?;
    let snapshot = demo.snapshot();
    let file = args.file.display().to_string();
    snapshot.save(&args.file).map_err(|error| match error {
        kfd::snapshot::SnapshotFileError::Io(source) => Failure::Output(source),
        other => Failure::Output(io::Error::other(other)),
    })?;
    let report = Captured {
        file,
        queues: snapshot.queues.len(),
        pending_packets: snapshot.queues.iter().map(|queue| queue.packets.len()).sum(),
        missing: demo.missing.clone(),
    };
    demo.finish()?;
    out.report("capture", &report)?;
    Ok(Code::Passed)
}

impl Report for Captured {
    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        let Self { file, queues, pending_packets, missing } = self;
        writeln!(out, "{file}: {queues} queues, {pending_packets} pending packets")?;
        missing.iter().try_for_each(|missing| writeln!(out, "not captured: {missing}"))?;
        writeln!(out, "show it with: kfd-probe decode --from {file}")
    }
}
