//! [`Pool`]: the packets of one hardware queue, and finding those that wait for the host.
//!
//! # What is trusted
//! Nothing in shared memory. The number of packets, the mask, every offset and (phase transport)
//! the host's phases are private to the pool and never read back. A word that the device writes is
//! loaded once; what was checked is what is used. A pass takes a bounded number of steps whatever
//! the device does, and answers each packet it accepts exactly once, on every path.

mod phase;
mod request;
mod stack;

use std::fmt;
use std::time::Duration;

use core::sync::atomic::Ordering;

pub use request::{Replies, Request, Source};

use crate::counters::{Count, Counters};
use crate::error::{Error, Result};
use crate::layout::{Area, LANES, REPLY_WORDS, SLOT_WORDS, Transport};
use crate::service::{ServiceId, Table};
use crate::words::Words;
use phase::Phases;
use stack::Stacks;

/// A pool's number, chosen by the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PoolId(pub u32);

impl fmt::Display for PoolId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What a pool is made from.
#[derive(Clone, Copy, Debug)]
pub struct PoolSpec {
    /// Its number.
    pub id: PoolId,
    /// Its regions.
    pub area: Area,
    /// Address of its memory for the device.
    pub base: u64,
    /// Address of the `amd_signal_t` that the device rings.
    pub doorbell: u64,
    /// Address of the zeroed bitmap in device memory (phase transport; otherwise 0).
    pub occupied: u64,
    /// Lanes of the widest wave of the GPU: 32 or 64. Bits of lanes beyond are ignored.
    pub wave_lanes: u32,
}

/// What a pass may do.
#[derive(Clone, Copy)]
pub struct Turn<'a> {
    /// Most packets looked at.
    pub budget: u32,
    /// Time, from any start; for giving up on packets that a broken chain lost.
    pub now: Duration,
    /// Answer everything with errors and call no service.
    pub refuse: bool,
    /// Asked before each packet: `true` ends the pass.
    pub stop: &'a dyn Fn() -> bool,
}

impl fmt::Debug for Turn<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turn")
            .field("budget", &self.budget)
            .field("now", &self.now)
            .field("refuse", &self.refuse)
            .finish_non_exhaustive()
    }
}

/// What a pass did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pass {
    /// Packets answered.
    pub answered: u32,
    /// The pass ended before everything was looked at: make another.
    pub more: bool,
}

/// Packets of one hardware queue.
#[derive(Debug)]
pub struct Pool<W> {
    id: PoolId,
    shared: Shared<W>,
    base: u64,
    doorbell: u64,
    occupied: u64,
    state: State,
}

/// The private side of the transports.
#[derive(Debug)]
enum State {
    Stack(Stacks),
    Phase(Phases),
}

/// The shared memory with the host's numbers for it, and room for one packet's copy.
#[derive(Debug)]
struct Shared<W> {
    id: PoolId,
    words: W,
    area: Area,
    lanes: u64,
    slots: Box<[[u64; SLOT_WORDS]; LANES]>,
    replies: Box<[[u64; REPLY_WORDS]; LANES]>,
}

impl<W> Pool<W> {
    /// Its number.
    pub const fn id(&self) -> PoolId {
        self.id
    }
}

impl<W: Words> Pool<W> {
    /// Makes the pool in `words`, with every packet free. No wave may be using the memory.
    ///
    /// # Errors
    /// [`Error::PoolMemory`] when `words` is too small; [`Error::WaveLanes`].
    pub fn new(words: W, spec: &PoolSpec) -> Result<Self> {
        let area = spec.area;
        if words.bytes() < area.bytes() {
            return Err(Error::PoolMemory { needed: area.bytes(), found: words.bytes() });
        }
        let lanes = match spec.wave_lanes {
            32 => u64::from(u32::MAX),
            64 => u64::MAX,
            lanes => return Err(Error::WaveLanes { lanes }),
        };
        let state = match area.transport() {
            Transport::Stack => State::Stack(Stacks::new(area)),
            Transport::Phase => State::Phase(Phases::new(area)),
        };
        let shared = Shared {
            id: spec.id,
            words,
            area,
            lanes,
            slots: Box::new([[0; SLOT_WORDS]; LANES]),
            replies: Box::new([[0; REPLY_WORDS]; LANES]),
        };
        let (base, doorbell, occupied) = (spec.base, spec.doorbell, spec.occupied);
        let mut pool = Self { id: spec.id, shared, base, doorbell, occupied, state };
        pool.init();
        Ok(pool)
    }

    /// Its regions.
    pub const fn area(&self) -> &Area {
        &self.shared.area
    }

    /// What kernels get as `hidden_hostcall_buffer`.
    pub const fn address(&self) -> u64 {
        self.base
    }

    /// The shared memory.
    pub const fn words(&self) -> &W {
        &self.shared.words
    }

    /// Gives the memory back.
    pub fn into_words(self) -> W {
        self.shared.words
    }

    /// Frees every packet: for a queue whose waves are gone, killed ones with packets included.
    /// The bitmap of the phase transport is the caller's to clear.
    pub fn reset(&mut self) {
        self.state = match self.shared.area.transport() {
            Transport::Stack => State::Stack(Stacks::new(self.shared.area)),
            Transport::Phase => State::Phase(Phases::new(self.shared.area)),
        };
        self.init();
    }

    fn init(&mut self) {
        let words = &self.shared.words;
        match &self.state {
            State::Stack(stacks) => stacks.init(words, self.base, self.doorbell),
            State::Phase(phases) => phases.init(words, self.base, self.occupied, self.doorbell),
        }
    }

    /// Answers packets that wait for the host, at most `turn.budget` of them.
    pub fn pass(&mut self, table: &mut Table, counters: &Counters, turn: &Turn<'_>) -> Pass {
        match &mut self.state {
            State::Stack(stacks) => stacks.pass(&mut self.shared, table, counters, turn),
            State::Phase(phases) => phases.pass(&mut self.shared, table, counters, turn),
        }
    }
}

impl<W: Words> Shared<W> {
    /// Serves a packet and writes the answer's words. The caller then tells the device.
    fn answer(&mut self, packet: u32, table: &mut Table, counters: &Counters, refuse: bool) {
        let area = self.area;
        let service = ServiceId(self.words.load32(area.service(packet), Ordering::Relaxed));
        let found = self.words.load64(area.activemask(packet), Ordering::Relaxed);
        let lanes = found & self.lanes;
        if lanes != found {
            counters.note(Count::StrayLanes);
        }
        if lanes == 0 {
            counters.note(Count::EmptyMask);
        }
        for (lane, slot) in self.slots.iter_mut().enumerate() {
            if lanes >> lane & 1 != 0 {
                *slot = self.words.load_slot(area.slot(packet, lane));
            }
        }
        let source = Source { pool: self.id, packet };
        let request = Request::new(source, service, lanes, &self.slots);
        let mut replies = Replies::new(lanes, &mut self.replies);
        if refuse {
            table.refuse(&request, &mut replies);
        } else if lanes != 0 {
            table.serve(&request, &mut replies, counters);
        }
        for (lane, reply) in self.replies.iter().enumerate() {
            if lanes >> lane & 1 == 0 {
                continue;
            }
            for (word, value) in reply.iter().enumerate() {
                let offset = area.slot(packet, lane) + 8 * word;
                self.words.store64(offset, *value, Ordering::Relaxed);
            }
        }
        counters.note(Count::Answered);
    }
}

/// Writes a struct of whole words.
fn store_struct<W: Words>(words: &W, offset: usize, bytes: &[u8]) {
    for (at, chunk) in bytes.as_chunks::<8>().0.iter().enumerate() {
        words.store64(offset + 8 * at, u64::from_le_bytes(*chunk), Ordering::Relaxed);
    }
}
