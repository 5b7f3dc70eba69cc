//! Blocking printf (service 2): the seam to whoever puts messages together.

use super::Service;
use crate::counters::Counters;
use crate::layout::SLOT_WORDS;
use crate::pool::{PoolId, Replies, Request, Source};

/// Bit of a fragment's first word: a message begins. Source: docs/ABI.md §Hostcall services.
pub const DESCRIPTOR_BEGIN: u64 = 1;
/// Bit of a fragment's first word: the message ends.
pub const DESCRIPTOR_END: u64 = 2;

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
