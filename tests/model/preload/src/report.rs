//! What a process tells of its model when it exits (`KFD_MODEL_REPORT`).

use std::fs::OpenOptions;
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde::Serialize;

use crate::instance::Instance;

/// What the hooks count.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Requests that neither KFD nor DRM knows.
    pub(crate) unknown: AtomicU64,
    told: AtomicBool,
}

#[derive(Serialize)]
struct Call {
    number: u8,
    count: u64,
}

#[derive(Serialize)]
struct Report {
    pid: u32,
    ioctls: Vec<Call>,
    unknown_requests: u64,
    unmodelled: u64,
    diagnostics: Vec<String>,
}

/// Registers the report, once a process.
pub(crate) fn at_exit() {
    if std::env::var_os("KFD_MODEL_REPORT").is_some() {
        // SAFETY: `tell` lives as long as the process: this library is never unloaded before exit
        // handlers have run.
        unsafe { libc::atexit(tell) };
    }
}

extern "C" fn tell() {
    let Some(instance) = Instance::existing() else { return };
    if instance.counts.told.swap(true, Ordering::AcqRel) {
        return;
    }
    let counts = (0..=u8::MAX).map(|number| (number, instance.model.ioctl_count(number)));
    let report = Report {
        pid: std::process::id(),
        ioctls: counts
            .filter(|(_, count)| *count > 0)
            .map(|(number, count)| Call { number, count })
            .collect(),
        unknown_requests: instance.counts.unknown.load(Ordering::Relaxed),
        unmodelled: instance.model.unmodelled(),
        diagnostics: instance.model.diagnostics().iter().map(ToString::to_string).collect(),
    };
    let Some(path) = std::env::var_os("KFD_MODEL_REPORT") else { return };
    let Ok(mut line) = serde_json::to_string(&report) else { return };
    line.push('\n');
    // One write, so that lines of several processes do not mix.
    let file = OpenOptions::new().append(true).create(true).open(path);
    let written = file.and_then(|mut file| file.write_all(line.as_bytes()));
    if let Err(error) = written {
        eprintln!("libkfd_model.so: the report cannot be written: {error}");
    }
}
