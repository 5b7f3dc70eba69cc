//! Where device text goes: [`Sink`], and the [`Writer`] between the drain and a slow one.
//!
//! The drain answers waves and must never wait for whoever reads the output. It puts messages into
//! a queue with a bound in bytes; a thread of its own writes them. When the queue is full a message
//! is dropped whole and counted ([`Count::Dropped`](crate::Count::Dropped)), and its printf returns
//! an error; a host that would rather have waves wait can say for how long ([`Overflow::Wait`]).

mod stdio;
mod writer;

use std::io;

pub use stdio::Stdio;
pub use writer::{OUTPUT_OVERHEAD, Output, OutputLimits, Overflow, Writer};

/// Which output a message is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// Takes finished messages, one call for each, in order. Text is whatever the device wrote: any
/// bytes, control characters included.
///
/// It may be slow, fail or panic: that is counted, and the next message comes.
pub trait Sink: Send {
    /// Takes a message.
    ///
    /// # Errors
    /// Whatever writing fails with; counted.
    fn write(&mut self, stream: Stream, text: &[u8]) -> io::Result<()>;

    /// Everything that is there now has been given; more may come.
    ///
    /// # Errors
    /// As [`Sink::write`].
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A function as sink.
#[derive(Debug)]
pub struct Callback<F>(pub F);

impl<F: FnMut(Stream, &[u8]) + Send> Sink for Callback<F> {
    fn write(&mut self, stream: Stream, text: &[u8]) -> io::Result<()> {
        (self.0)(stream, text);
        Ok(())
    }
}

/// Device text for a log: one line without control characters, so that no terminal and no log
/// format obeys a device. What is not UTF-8 becomes U+FFFD; the line feed at the end goes.
pub fn escaped(text: &[u8]) -> String {
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    String::from_utf8_lossy(text).escape_debug().collect()
}

/// Device text as events of `tracing`: standard output at level INFO, standard error at WARN,
/// [`escaped`].
#[cfg(feature = "tracing")]
#[derive(Clone, Copy, Debug, Default)]
pub struct Tracing;

#[cfg(feature = "tracing")]
impl Sink for Tracing {
    fn write(&mut self, stream: Stream, text: &[u8]) -> io::Result<()> {
        let text = escaped(text);
        match stream {
            Stream::Stdout => tracing::info!(target: "hostcall", "{text}"),
            Stream::Stderr => tracing::warn!(target: "hostcall", "{text}"),
        }
        Ok(())
    }
}
