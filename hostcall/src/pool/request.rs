//! A packet's private copy, and its answer.

use std::fmt;

use super::PoolId;
use crate::layout::{LANES, REPLY_WORDS, SLOT_WORDS};
use crate::service::ServiceId;

/// Where a packet came from, as far as the host knows by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Source {
    /// The pool, that is, the hardware queue.
    pub pool: PoolId,
    /// The packet. A wave has a different one for each call.
    pub packet: u32,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "packet {} of pool {}", self.packet, self.pool)
    }
}

/// A packet: every word was loaded once and cannot change any more. What it says is the device's
/// word only.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    source: Source,
    service: ServiceId,
    lanes: u64,
    slots: &'a [[u64; SLOT_WORDS]; LANES],
}

impl<'a> Request<'a> {
    /// A packet of `lanes` (bit n: slot n is a request).
    pub const fn new(
        source: Source,
        service: ServiceId,
        lanes: u64,
        slots: &'a [[u64; SLOT_WORDS]; LANES],
    ) -> Self {
        Self { source, service, lanes, slots }
    }

    /// Where it came from.
    pub const fn source(&self) -> Source {
        self.source
    }

    /// The service called.
    pub const fn service(&self) -> ServiceId {
        self.service
    }

    /// Its lanes: bit n, lane n takes part. At least one when a service is called.
    pub const fn mask(&self) -> u64 {
        self.lanes
    }

    /// The requests in it with their lanes, ascending.
    pub fn lanes(&self) -> impl Iterator<Item = (usize, &'a [u64; SLOT_WORDS])> + use<'a> {
        let lanes = self.lanes;
        self.slots.iter().enumerate().filter(move |(lane, _)| lanes >> lane & 1 != 0)
    }
}

/// The answers to a packet, one for each of its lanes. They start as the service's refusal.
#[derive(Debug)]
pub struct Replies<'a> {
    lanes: u64,
    words: &'a mut [[u64; REPLY_WORDS]; LANES],
}

impl<'a> Replies<'a> {
    /// Answers for `lanes`.
    pub const fn new(lanes: u64, words: &'a mut [[u64; REPLY_WORDS]; LANES]) -> Self {
        Self { lanes, words }
    }

    /// Answers a lane. Ignored for lanes that are not in the packet.
    pub fn set(&mut self, lane: usize, words: [u64; REPLY_WORDS]) {
        if lane < LANES
            && self.lanes >> lane & 1 != 0
            && let Some(reply) = self.words.get_mut(lane)
        {
            *reply = words;
        }
    }
}
