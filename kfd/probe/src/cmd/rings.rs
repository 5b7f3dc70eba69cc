//! Rings as text: of a snapshot, taken now or read from a file that nobody vouches for.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use kfd::Snapshot;
use kfd::snapshot::QueueRecord;
use serde::Serialize;

use super::devices::bytes;
use crate::exit::{Failure, chain};
use crate::render::{Report, table};

/// A snapshot to be shown.
#[derive(Serialize)]
pub struct Rings {
    /// Where it is from; `None` when it is of this process.
    pub file: Option<String>,
    /// What was seen.
    pub snapshot: Snapshot,
    /// Kinds of queues that this process could not have, and why.
    pub missing: Vec<String>,
}

/// Reads a snapshot from a file, `-` for standard input.
pub fn read(path: &Path) -> Result<Rings, Failure> {
    let name = path.display().to_string();
    let input: Box<dyn Read> = if path == Path::new("-") {
        Box::new(io::stdin().lock())
    } else {
        let opened = File::open(path);
        Box::new(opened.map_err(|source| Failure::Read { path: name.clone(), source })?)
    };
    parse(&name, io::BufReader::new(input))
}

/// Reads a snapshot that is in memory or comes from a file called `name`.
pub fn parse(name: &str, from: impl Read) -> Result<Rings, Failure> {
    let snapshot = Snapshot::read_from(from)
        .map_err(|error| Failure::BadInput { what: format!("{name}: {}", chain(&error)) })?;
    Ok(Rings { file: Some(name.to_owned()), snapshot, missing: Vec::new() })
}

/// `text` without what a terminal would act on.
fn plain(text: &str) -> String {
    let replaced = |c: char| if c.is_control() && c != '\n' { '\u{fffd}' } else { c };
    text.chars().map(replaced).collect()
}

fn row(queue: &QueueRecord) -> [String; 10] {
    let age = queue.oldest_ms.map_or_else(String::new, |age| format!("{age} ms"));
    [
        queue.gpu.to_string(),
        plain(&queue.target),
        queue.queue.to_string(),
        queue.kind.to_string(),
        bytes(queue.ring_bytes),
        queue.read_index.to_string(),
        queue.write_index.to_string(),
        format!("{} {}", queue.pending(), queue.kind.unit()),
        age,
        queue.condition().to_owned(),
    ]
}

impl Report for Rings {
    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        let Snapshot { pid, kfd_version, queues, gpus, memory, leaks, events, .. } = &self.snapshot;
        let version = plain(kfd_version);
        let origin = self.file.as_ref().map_or_else(String::new, |file| format!("{file}: "));
        writeln!(out, "{}process {pid}, KFD {version}, {events} events", plain(&origin))?;
        for record in memory {
            let (kind, bytes) = (plain(&record.kind), bytes(record.bytes));
            writeln!(out, "  {} allocations of {kind}, {bytes}", record.count)?;
        }
        for gpu in gpus {
            if let Some(lost) = &gpu.lost {
                writeln!(out, "GPU {} ({}): {}", gpu.gpu, plain(&gpu.target), plain(lost))?;
            }
        }
        if queues.is_empty() {
            writeln!(out, "no queues")?;
        } else {
            let mut all = table(&[
                "GPU", "target", "queue", "kind", "ring", "read", "write", "pending", "oldest",
                "state",
            ]);
            queues.iter().for_each(|queue| {
                all.add_row(row(queue));
            });
            writeln!(out, "{all}")?;
        }
        // What is in the rings that are not idle.
        for queue in queues.iter().filter(|queue| queue.condition() != "idle") {
            writeln!(out, "\n{}", plain(&queue.to_string()))?;
        }
        for leak in leaks {
            let (what, why) = (plain(&leak.what), plain(&leak.why));
            writeln!(out, "leaked: {what}, {}: {why}", bytes(leak.bytes))?;
        }
        for missing in &self.missing {
            writeln!(out, "not shown: {missing}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_act_on_is_replaced() {
        assert_eq!(plain("a\x1b[2Jb\nc\u{9b}31m"), "a\u{fffd}[2Jb\nc\u{fffd}31m");
    }

    #[test]
    fn a_file_of_another_version_is_bad_input_that_names_it() {
        let Err(error) = parse("rings", &b"kfd-snapshot 7 3\nabc"[..]) else {
            panic!("it is read")
        };
        assert_eq!(
            error.to_string(),
            "rings: the snapshot has version 7, this program reads version 1"
        );
    }
}
