//! This process's standard output and error.

use std::io::{self, Write};

use super::{Sink, Stream};

/// Most bytes collected before they are written.
const BATCH_BYTES: usize = 1 << 16;

/// Writes to the process's standard output and error.
///
/// A message is never cut by what other threads print through [`std::io::stdout`], nor by another
/// message. Messages that come together are written together.
#[derive(Debug)]
pub struct Stdio {
    stream: Stream,
    batch: Vec<u8>,
}

impl Default for Stdio {
    fn default() -> Self {
        Self::new()
    }
}

impl Stdio {
    /// Nothing collected yet.
    pub const fn new() -> Self {
        Self { stream: Stream::Stdout, batch: Vec::new() }
    }
}

impl Sink for Stdio {
    fn write(&mut self, stream: Stream, text: &[u8]) -> io::Result<()> {
        let mut result = Ok(());
        if stream != self.stream || self.batch.len() >= BATCH_BYTES {
            result = self.flush();
        }
        self.stream = stream;
        self.batch.extend_from_slice(text);
        result
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.batch.is_empty() {
            return Ok(());
        }
        let result = match self.stream {
            Stream::Stdout => {
                let mut out = io::stdout().lock();
                out.write_all(&self.batch).and_then(|()| out.flush())
            }
            Stream::Stderr => io::stderr().lock().write_all(&self.batch),
        };
        // What could not be written is gone: a closed pipe must not make the batch grow.
        self.batch.clear();
        result
    }
}
