//! The stack transport's host side.

use core::sync::atomic::Ordering;
use std::time::Duration;

use zerocopy::IntoBytes;

use super::{Pass, Shared, Turn, store_struct};
use crate::counters::{Count, Counters};
use crate::layout::{Area, CONTROL_READY};
use crate::service::Table;
use crate::words::Words;

/// How long after a chain broke its lost packets are looked for, and how long again before they are
/// given up. A wave needs far less from setting READY to pushing, so what is READY at both times
/// and was not answered between them is on no stack.
const RESCUE_AFTER: Duration = Duration::from_millis(25);

/// What the host knows by itself.
#[derive(Debug)]
pub(super) struct Stacks {
    area: Area,
    mask: u64,
    /// Rest of a chain that was taken off the ready stack and not walked yet; 0 for none.
    chain: u64,
    /// Number of that chain.
    number: u64,
    /// Chain in which each packet was last seen; what is seen twice in one closes a cycle.
    seen: Box<[u64]>,
    rescue: Rescue,
}

/// The search for packets that a broken chain lost.
#[derive(Debug)]
enum Rescue {
    Idle,
    /// Look at this time.
    Armed(Duration),
    /// Packets that were READY, with the chain they had been seen in; give them up at this time.
    Suspects(Duration, Vec<(u32, u64)>),
}

/// The next packet of a chain.
enum Step {
    Packet(u32),
    /// Nobody waits on it.
    Idle,
    /// The chain is at its end or broken.
    End,
}

impl Stacks {
    pub fn new(area: Area) -> Self {
        let seen = vec![0; area.packets() as usize].into_boxed_slice();
        Self { area, mask: area.index_mask(), chain: 0, number: 0, seen, rescue: Rescue::Idle }
    }

    pub fn init<W: Words>(&self, words: &W, base: u64, doorbell: u64) {
        for packet in 0..self.area.packets() {
            words.store32(self.area.control(packet), 0, Ordering::Relaxed);
            let next = self.area.first_next(packet);
            words.store64(self.area.next(packet), next, Ordering::Relaxed);
        }
        let descriptor = self.area.stack_descriptor(base, doorbell);
        store_struct(words, 0, descriptor.as_bytes());
        // The packet that launches a kernel publishes the rest; this is for threads that play GPU.
        let free = self.area.free_stack();
        words.store64(free, descriptor.free_stack, Ordering::Release);
    }

    pub fn pass<W: Words>(
        &mut self,
        shared: &mut Shared<W>,
        table: &mut Table,
        counters: &Counters,
        turn: &Turn<'_>,
    ) -> Pass {
        let mut pass = Pass::default();
        for _ in 0..turn.budget {
            if (turn.stop)() {
                pass.more = true;
                return pass;
            }
            if self.chain == 0 {
                // Acquire: pairs with the release of every push in the chain, since each of them
                // replaced the one before it.
                self.chain = shared.words.swap64(self.area.ready_stack(), 0, Ordering::Acquire);
                self.number += 1;
                if self.chain == 0 {
                    pass.answered += self.rescue(shared, table, counters, turn);
                    return pass;
                }
            }
            match self.step(&shared.words, counters, turn.now) {
                Step::Packet(packet) => {
                    shared.answer(packet, table, counters, turn.refuse);
                    self.release(&shared.words, packet);
                    pass.answered += 1;
                }
                Step::Idle => {}
                Step::End => self.chain = 0,
            }
        }
        pass.more = true;
        pass
    }

    /// Takes one packet off the private chain.
    fn step<W: Words>(&mut self, words: &W, counters: &Counters, now: Duration) -> Step {
        let index = self.chain & self.mask;
        let packet = u32::try_from(index).unwrap_or(u32::MAX);
        let slot = usize::try_from(index).ok().and_then(|index| self.seen.get_mut(index));
        let Some(seen) = slot else {
            counters.note(Count::BadIndex);
            self.broken(now);
            return Step::End;
        };
        if std::mem::replace(seen, self.number) == self.number {
            counters.note(Count::Cycles);
            self.broken(now);
            return Step::End;
        }
        // Before the packet is given back: from then on the device uses the link again.
        self.chain = words.load64(self.area.next(packet), Ordering::Relaxed);
        let control = words.load32(self.area.control(packet), Ordering::Relaxed);
        if control & CONTROL_READY == 0 {
            counters.note(Count::NotReady);
            return Step::Idle;
        }
        Step::Packet(packet)
    }

    /// Tells the wave that its answer is there. The word is the host's own: no bit of the device's
    /// goes into it.
    fn release<W: Words>(&self, words: &W, packet: u32) {
        words.store32(self.area.control(packet), 0, Ordering::Release);
    }

    fn broken(&mut self, now: Duration) {
        // A search that is under way goes on: what this chain lost is READY by its end or not.
        if matches!(self.rescue, Rescue::Idle) {
            self.rescue = Rescue::Armed(now + RESCUE_AFTER);
        }
    }

    /// Answers what a broken chain lost, with errors: nobody knows whether its words are whole.
    /// Called when no chain is left. One load for each packet, twice after a chain broke. At the
    /// end nobody will look again, so whatever is READY is given up.
    fn rescue<W: Words>(
        &mut self,
        shared: &mut Shared<W>,
        table: &mut Table,
        counters: &Counters,
        turn: &Turn<'_>,
    ) -> u32 {
        let now = turn.now;
        let lost = match std::mem::replace(&mut self.rescue, Rescue::Idle) {
            Rescue::Armed(_) | Rescue::Suspects(..) if turn.refuse => self.ready(&shared.words),
            Rescue::Armed(at) if now >= at => {
                self.rescue = Rescue::Suspects(now + RESCUE_AFTER, self.ready(&shared.words));
                return 0;
            }
            Rescue::Suspects(at, suspects) if now >= at => suspects,
            waiting => {
                self.rescue = waiting;
                return 0;
            }
        };
        let mut answered = 0;
        for (packet, seen) in lost {
            let same = self.seen.get(packet as usize) == Some(&seen);
            if same && self.is_ready(&shared.words, packet) {
                shared.answer(packet, table, counters, true);
                self.release(&shared.words, packet);
                counters.note(Count::Rescued);
                answered += 1;
            }
        }
        answered
    }

    /// Packets that are READY now, with the chain they were last seen in.
    fn ready<W: Words>(&self, words: &W) -> Vec<(u32, u64)> {
        let packets = (0..).zip(self.seen.iter().copied());
        packets.filter(|&(packet, _)| self.is_ready(words, packet)).collect()
    }

    fn is_ready<W: Words>(&self, words: &W, packet: u32) -> bool {
        words.load32(self.area.control(packet), Ordering::Relaxed) & CONTROL_READY != 0
    }
}
