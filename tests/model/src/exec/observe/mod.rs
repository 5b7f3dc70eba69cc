//! Watching waves while they execute, in a loop of its own.
//!
//! A launch is watched when its engine has an [`Observer`]; others run in the ordinary loop, which
//! knows nothing of this. The watching loop executes one instruction at a time with the same
//! semantics, asks before and after each what it touches ([`crate::isa::Effects`]), and keeps what
//! it learns beside the waves, never in them.

mod access;
mod checks;
mod fidelity;
mod late;
mod lines;
mod options;
mod place;
mod probe;
mod race;
mod report;
mod run;
mod state;
mod symbols;
#[cfg(test)]
mod tests;
mod trace;
mod ulp;
pub(super) mod undefined;
mod watcher;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

pub use fidelity::Reach;
pub use options::{UnknownWatch, Watch};
pub use place::Place;
pub(super) use probe::{Doing, Probe};
pub use report::{ClassCount, Finding, FindingKind, LineCoverage, OperationCount, Reached, Report};
pub(super) use state::GroupWatch;
pub(super) use watcher::Watcher;

use super::job::lock;
use super::launch::Launch;
use crate::Target;
use race::Races;
use report::Totals;
pub(super) use symbols::Loaded;

/// Lines of a trace; what comes later is left out.
const TRACE_LINES: u64 = 10_000_000;

/// Collects what all launches of an engine show.
pub struct Observer {
    watch: Watch,
    totals: Mutex<Totals>,
    trace: Option<Mutex<BufWriter<File>>>,
    trace_lines: AtomicU64,
    launches: AtomicU64,
    objects: Vec<lines::Object>,
}

/// Why watching could not begin.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WatchError {
    /// A file for a trace could not be made, or one for coverage not read.
    #[error("{path}")]
    File {
        /// Which.
        path: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// An object for coverage has no line table.
    #[error("{path}: no DWARF line table ({why})")]
    Lines {
        /// Which.
        path: String,
        /// What is wrong with it.
        why: String,
    },
}

impl Observer {
    /// An observer of what `watch` says.
    ///
    /// # Errors
    /// [`WatchError`] when a file that `watch` names cannot be used.
    pub fn new(watch: Watch) -> Result<Self, WatchError> {
        let failed = |path: &std::path::Path, source| WatchError::File {
            path: path.display().to_string(),
            source,
        };
        let trace = match &watch.trace {
            Some(path) => {
                let file = File::create(path).map_err(|error| failed(path, error))?;
                Some(Mutex::new(BufWriter::new(file)))
            }
            None => None,
        };
        let mut objects = Vec::new();
        for path in &watch.coverage {
            let bytes = std::fs::read(path).map_err(|error| failed(path, error))?;
            let object = lines::Object::read(path.clone(), &bytes)
                .map_err(|why| WatchError::Lines { path: path.display().to_string(), why })?;
            objects.push(object);
        }
        Ok(Self {
            watch,
            totals: Mutex::default(),
            trace,
            trace_lines: AtomicU64::new(0),
            launches: AtomicU64::new(0),
            objects,
        })
    }

    /// What was seen so far. Slices that run now are not in it.
    pub fn report(&self) -> Report {
        if let Some(trace) = &self.trace {
            // A trace that cannot be written is cut short; the report does not depend on it.
            let _ = lock(trace).flush();
        }
        lock(&self.totals).report(&self.objects)
    }

    /// Begins to watch a launch.
    pub(super) fn launch(self: &Arc<Self>, launch: &Launch) -> JobWatch {
        let number = self.launches.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        JobWatch {
            observer: Arc::clone(self),
            target: launch.target,
            wave_size: launch.wave_size,
            entry: launch.entry,
            lds_bytes: launch.lds_bytes,
            number,
            time: AtomicU64::new(1),
            races: Mutex::default(),
            loaded: Mutex::default(),
        }
    }

    fn write_trace(&self, line: &str) {
        let Some(trace) = &self.trace else { return };
        if self.trace_lines.fetch_add(1, std::sync::atomic::Ordering::Relaxed) < TRACE_LINES {
            let _ = writeln!(lock(trace), "{line}");
        }
    }
}

impl std::fmt::Debug for Observer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Observer").field("watch", &self.watch).finish_non_exhaustive()
    }
}

/// A launch that is watched.
pub(super) struct JobWatch {
    observer: Arc<Observer>,
    target: Target,
    wave_size: u32,
    entry: u64,
    lds_bytes: u32,
    /// Its number among the engine's launches: a schedule seed gives each another order.
    number: u64,
    /// Ticks with every synchronisation.
    time: AtomicU64,
    races: Mutex<Races>,
    loaded: Mutex<Vec<Loaded>>,
}

impl JobWatch {
    /// Of a launch that nobody but its own arithmetic exceptions asks to be watched.
    pub(super) fn quiet(launch: &Launch) -> Self {
        static NOBODY: std::sync::OnceLock<Arc<Observer>> = std::sync::OnceLock::new();
        let nobody = NOBODY.get_or_init(|| {
            Arc::new(Observer {
                watch: Watch::default(),
                totals: Mutex::default(),
                trace: None,
                trace_lines: AtomicU64::new(0),
                launches: AtomicU64::new(0),
                objects: Vec::new(),
            })
        });
        nobody.launch(launch)
    }
}
