//! Blocking printf (service 2).

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use super::{Service, ServiceId};
use crate::counters::Counters;
use crate::format::Limits;
use crate::layout::SLOT_WORDS;
use crate::pool::{PoolId, Replies, Request, Source};
use crate::printf::{Blocking, BlockingStats, Descriptor, MessageLimits, Sender};
use crate::sink::Output;

/// Bit of a fragment's first word: a message begins. Source: docs/ABI.md §Hostcall services.
pub const DESCRIPTOR_BEGIN: u64 = Descriptor::BEGIN;
/// Bit of a fragment's first word: the message ends.
pub const DESCRIPTOR_END: u64 = Descriptor::END;

/// Puts messages together out of fragments.
pub trait Fragments: Send {
    /// Takes one lane's fragment and returns its answer: the descriptor of the next fragment, or
    /// the result of the message that ended.
    ///
    /// `words[0]` is the descriptor, the rest data, all as the device wrote it. Message 0 does not
    /// exist: its number goes to waves whose message was refused, and a fragment of it that ends
    /// is answered with -1.
    fn fragment(&mut self, from: Source, lane: usize, words: &[u64; SLOT_WORDS]) -> u64;

    /// Drops what the waves of a pool had begun: they are gone.
    fn forget(&mut self, pool: PoolId);
}

/// Puts messages together, formats them and hands the text to an output.
pub struct Text {
    blocking: Blocking,
    output: Output,
    start: Instant,
    stats: TextStats,
}

/// What became of the messages of a [`Text`].
#[derive(Clone, Debug, Default)]
pub struct TextStats(Arc<Mutex<BlockingStats>>);

impl TextStats {
    /// As of the last fragment.
    pub fn get(&self) -> BlockingStats {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Text {
    /// `messages` and `limits` bound what the device can make the host keep and print. Takes no
    /// memory before the first message.
    pub fn new(output: Output, messages: MessageLimits, limits: Limits) -> Self {
        Self {
            blocking: Blocking::new(messages, limits),
            output,
            start: Instant::now(),
            stats: TextStats::default(),
        }
    }

    /// A view of what happens, to be kept when the service is registered.
    pub fn stats(&self) -> TextStats {
        self.stats.clone()
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Text").field("stats", &self.stats.get()).finish_non_exhaustive()
    }
}

impl Fragments for Text {
    fn fragment(&mut self, from: Source, lane: usize, words: &[u64; SLOT_WORDS]) -> u64 {
        let sender = Sender {
            pool: from.pool.0,
            service: ServiceId::PRINTF.0,
            lane: u8::try_from(lane).unwrap_or(u8::MAX),
        };
        let output = &self.output;
        let answer = self.blocking.serve(sender, words, self.start.elapsed(), |stream, text| {
            // The output counts what it drops.
            let _ = output.push(stream, text.to_vec());
        });
        *self.stats.0.lock().unwrap_or_else(PoisonError::into_inner) = *self.blocking.stats();
        answer
    }

    fn forget(&mut self, pool: PoolId) {
        self.blocking.drop_pool(pool.0);
    }
}

/// Serves printf by handing each lane's fragment on.
#[derive(Debug)]
pub struct Printf<F>(pub F);

impl<F: Fragments> Service for Printf<F> {
    fn serve(&mut self, request: &Request<'_>, replies: &mut Replies<'_>, _: &Counters) {
        for (lane, words) in request.lanes() {
            replies.set(lane, [self.0.fragment(request.source(), lane, words), 0]);
        }
    }

    fn forget(&mut self, pool: PoolId) {
        self.0.forget(pool);
    }
}
