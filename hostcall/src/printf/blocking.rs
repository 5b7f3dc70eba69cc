//! Blocking printf: service 2 of hostcall.

use std::time::Duration;

use super::messages::{MessageLimits, Messages, Refused, Sender};
use super::{ERROR_REPLY, Stream, reset};
use crate::format::{self, Limits, Outcome, Words};

/// What happened to messages, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockingStats {
    /// Messages printed.
    pub printed: u64,
    /// Messages printed whose format and arguments did not go together.
    pub odd: u64,
    /// Fragments refused, each with its whole message.
    pub refused: u64,
    /// Messages whose control word names no stream.
    pub bad_stream: u64,
    /// Messages not printed because a limit would have cut them.
    pub over_limit: u64,
    /// The last refusal.
    pub last_refusal: Option<Refused>,
}

/// Serves printf requests: fragments in, answers and finished text out.
pub struct Blocking {
    messages: Messages,
    limits: Limits,
    text: Vec<u8>,
    stats: BlockingStats,
}

impl Blocking {
    /// Takes no memory before the first message.
    #[must_use]
    pub fn new(messages: MessageLimits, limits: Limits) -> Self {
        Self {
            messages: Messages::new(messages),
            limits,
            text: Vec::new(),
            stats: BlockingStats::default(),
        }
    }

    /// What happened so far.
    #[must_use]
    pub const fn stats(&self) -> &BlockingStats {
        &self.stats
    }

    /// The open messages.
    #[must_use]
    pub const fn messages(&self) -> &Messages {
        &self.messages
    }

    /// Drops what the waves of a pool left unfinished. Returns how many messages that were.
    pub fn drop_pool(&mut self, pool: u32) -> usize {
        self.messages.drop_pool(pool)
    }

    /// Takes one lane's request, a private copy of its eight words, and returns what to answer in word 0:
    /// always something, so that the wave goes on. A finished message goes to `sink`, whole, in one call.
    /// `now` is time since any fixed start.
    ///
    /// If `sink` panics the message is closed already; the caller that catches the panic answers
    /// [`ERROR_REPLY`], or the wave waits for ever.
    pub fn serve(
        &mut self,
        sender: Sender,
        payload: &[u64; 8],
        now: Duration,
        sink: impl FnOnce(Stream, &[u8]),
    ) -> u64 {
        let Self { messages, limits, text, stats } = self;
        let served = messages.accept(sender, payload, now, |message| {
            reset(text);
            let result = match print(text, message, limits) {
                Some((stream, outcome)) => {
                    if outcome.cut.any() {
                        stats.over_limit += 1;
                    } else {
                        stats.printed += 1;
                        stats.odd += u64::from(!outcome.is_clean());
                        sink(stream, text);
                    }
                    outcome.result()
                }
                None => {
                    stats.bad_stream += 1;
                    -1
                }
            };
            i64::from(result).cast_unsigned()
        });
        served.unwrap_or_else(|refused| {
            stats.refused += 1;
            stats.last_refusal = Some(refused);
            ERROR_REPLY
        })
    }
}

/// Appends the text of a message: control word, format, arguments. `None` if the control word names no
/// stream.
fn print(out: &mut Vec<u8>, message: &[u8], limits: &Limits) -> Option<(Stream, Outcome)> {
    let (control, rest) = message.split_first_chunk()?;
    let stream = match u64::from_le_bytes(*control) {
        0 => Stream::Stdout,
        1 => Stream::Stderr,
        _ => return None,
    };
    let (format, arguments) = split_format(rest);
    Some((stream, format::format(out, format, &mut Words::new(arguments), limits)))
}

/// An inline format, which ends with a NUL, and what follows at the next multiple of 8 bytes.
pub(super) fn split_format(bytes: &[u8]) -> (&[u8], &[u8]) {
    let format = format::until_nul(bytes);
    let end = (format.len() + 1).next_multiple_of(8);
    (format, bytes.get(end..).unwrap_or_default())
}
