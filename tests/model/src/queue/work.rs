//! What PM4 packets have started: launches that run, and releases that wait for their end.

use std::collections::VecDeque;

use pm4::ReleaseMem;

use super::{Queue, Runner, State};
use crate::exec::Job;
use crate::memory::AccessError;

/// Launches of a queue that run at once; releases that wait at once.
const MOST: usize = 64;

/// A dispatch that runs.
#[derive(Debug)]
struct Launched {
    number: u64,
    /// The AQL packet around it.
    packet: u64,
    xcc: u32,
    job: Job,
}

/// An end-of-pipe event that waits for the work before it.
#[derive(Debug)]
struct Waiting {
    packet: u64,
    xcc: u32,
    /// Launches with lower numbers come first.
    launches: u64,
    release: ReleaseMem,
}

/// Launches and releases of a queue's PM4.
#[derive(Debug, Default)]
pub(super) struct Work {
    /// Number of the next launch.
    next: u64,
    launches: Vec<Launched>,
    releases: VecDeque<Waiting>,
    /// AQL packets that are complete when their work is.
    packets: Vec<u64>,
}

impl Work {
    pub(super) fn is_empty(&self) -> bool {
        self.launches.is_empty() && self.releases.is_empty() && self.packets.is_empty()
    }

    pub(super) fn jobs(&self) -> impl Iterator<Item = &Job> {
        self.launches.iter().map(|launched| &launched.job)
    }

    /// Number of the next launch; `None` while there is no room.
    pub(super) fn number(&self) -> Option<u64> {
        (self.launches.len() < MOST).then_some(self.next)
    }

    /// Takes on the launch with the next number.
    pub(super) fn started(&mut self, packet: u64, xcc: u32, job: Job) {
        self.launches.push(Launched { number: self.next, packet, xcc, job });
        self.next += 1;
    }

    /// A launch has ended.
    pub(super) fn ended(&mut self, number: u64) {
        self.launches.retain(|launched| launched.number != number);
    }

    /// Whether nothing of an AQL packet is left.
    pub(super) fn is_done(&self, packet: u64) -> bool {
        !self.launches.iter().any(|launched| launched.packet == packet)
            && !self.releases.iter().any(|waiting| waiting.packet == packet)
    }

    /// An AQL packet is complete once its work is.
    pub(super) fn wait_for(&mut self, packet: u64) {
        self.packets.push(packet);
    }

    /// Puts a release behind the work so far; false while there is no room.
    pub(super) fn release(&mut self, packet: u64, xcc: u32, release: ReleaseMem) -> bool {
        let room = self.releases.len() < MOST;
        if room {
            let launches = self.next;
            self.releases.push_back(Waiting { packet, xcc, launches, release });
        }
        room
    }
}

impl State {
    /// Whether work runs that comes before launch `launches` on an XCC, or before AQL packet
    /// `packet` on any.
    pub(super) fn is_busy(&self, xcc: u32, launches: u64, packet: u64) -> bool {
        let before = |l: &Launched| l.xcc == xcc && l.number < launches;
        self.work.launches.iter().any(before)
            || self.flights.iter().any(|flight| flight.job.is_some() && flight.index < packet)
    }

    /// Whether any work of an XCC runs.
    pub(super) fn is_running(&self, xcc: u32) -> bool {
        self.is_busy(xcc, u64::MAX, u64::MAX)
    }

    /// The first release whose work has ended: of an XCC, only the oldest may be.
    fn ready(&self) -> Option<usize> {
        let mut behind = 0_u64;
        self.work.releases.iter().position(|waiting| {
            let bit = 1_u64.checked_shl(waiting.xcc).unwrap_or(0);
            let first = behind & bit == 0;
            behind |= bit;
            first && !self.is_busy(waiting.xcc, waiting.launches, waiting.packet)
        })
    }
}

impl Queue {
    /// Carries out releases whose work has ended, then completes AQL packets that waited for
    /// theirs. True if anything happened.
    pub(super) fn settle(&self, runner: &Runner, state: &mut State) -> Result<bool, AccessError> {
        let mut moved = false;
        while let Some(at) = state.ready() {
            if let Some(waiting) = state.work.releases.remove(at) {
                self.perform(runner, &waiting.release)?;
                moved = true;
            }
        }
        let done = |packet: &u64, work: &Work| work.is_done(*packet);
        while let Some(at) = state.work.packets.iter().position(|p| done(p, &state.work)) {
            let packet = state.work.packets.remove(at);
            self.complete(runner, state, packet)?;
            moved = true;
        }
        Ok(moved)
    }
}
