//! The phase transport's host side.

use core::sync::atomic::Ordering;

use zerocopy::IntoBytes;

use super::{Pass, Shared, Turn, store_struct};
use crate::counters::{Count, Counters};
use crate::layout::Area;
use crate::service::Table;
use crate::words::Words;

/// Packets looked at in a short scan: the device takes the lowest that is free.
const FIRST_WINDOW: u32 = 64;
/// One scan in so many covers the whole pool, so that no packet starves behind busy low ones.
const WHOLE_EVERY: u64 = 16;

/// What the host knows by itself.
#[derive(Debug)]
pub(super) struct Phases {
    area: Area,
    /// The host's phase of each packet: what it last wrote, never read back.
    host: Box<[u32]>,
    /// Device phases last seen, to count a bad one once.
    device: Box<[u32]>,
    /// Where the scan that a budget cut short goes on; 0 for a new one.
    cursor: u32,
    /// Where a short scan ends.
    window: u32,
    scans: u64,
}

impl Phases {
    pub fn new(area: Area) -> Self {
        let zeros = vec![0; area.packets() as usize].into_boxed_slice();
        Self { area, host: zeros.clone(), device: zeros, cursor: 0, window: FIRST_WINDOW, scans: 0 }
    }

    pub fn init<W: Words>(&self, words: &W, base: u64, occupied: u64, doorbell: u64) {
        for packet in 0..self.area.packets() {
            words.store32(self.area.host_phase(packet), 0, Ordering::Relaxed);
            words.store32(self.area.device_phase(packet), 0, Ordering::Relaxed);
        }
        let descriptor = self.area.phase_descriptor(base, occupied, doorbell);
        store_struct(words, 0, descriptor.as_bytes());
    }

    pub fn pass<W: Words>(
        &mut self,
        shared: &mut Shared<W>,
        table: &mut Table,
        counters: &Counters,
        turn: &Turn<'_>,
    ) -> Pass {
        let mut pass = Pass::default();
        self.scans += 1;
        let whole = self.area.packets();
        let short = self.window.min(whole);
        // The last look is at all of them, wherever a stop cut the one before short.
        let cursor = std::mem::take(&mut self.cursor);
        let start = if turn.refuse { 0 } else { cursor };
        let periodic = self.scans.is_multiple_of(WHOLE_EVERY);
        let mut end = if start >= short || periodic || turn.refuse { whole } else { short };
        let mut packet = start;
        while packet < end {
            if pass.answered >= turn.budget || (turn.stop)() {
                self.cursor = packet;
                pass.more = true;
                return pass;
            }
            if let Some(host) = self.pending(&shared.words, packet, counters) {
                shared.answer(packet, table, counters, turn.refuse);
                self.release(&shared.words, packet, host);
                pass.answered += 1;
                if packet >= self.window / 2 {
                    self.window = self.window.saturating_mul(2).min(whole.max(FIRST_WINDOW));
                }
            }
            packet += 1;
            // Nothing in the low ones: the whole pool has to be seen before anybody sleeps.
            if packet == end && pass.answered == 0 {
                end = whole;
            }
        }
        if pass.answered == 0 {
            self.window = FIRST_WINDOW;
        }
        // What lies before `start` or beyond a short scan's end is looked at next time.
        pass.more = pass.answered > 0 || start > 0;
        pass
    }

    /// The host's new phase of a packet that waits; `None` when none does.
    fn pending<W: Words>(&mut self, words: &W, packet: u32, counters: &Counters) -> Option<u32> {
        // Acquire: pairs with the device's release of the packet's words.
        let device = words.load32(self.area.device_phase(packet), Ordering::Acquire);
        let index = packet as usize;
        let last = self.device.get_mut(index)?;
        let before = std::mem::replace(last, device);
        let host = *self.host.get(index)?;
        if device > 1 {
            if device != before {
                counters.note(Count::BadPhase);
            }
            return None;
        }
        (device != host).then_some(device)
    }

    /// Tells the wave that its answer is there. `host` is 0 or 1, and what the host had not.
    fn release<W: Words>(&mut self, words: &W, packet: u32, host: u32) {
        if let Some(phase) = self.host.get_mut(packet as usize) {
            *phase = host;
        }
        words.store32(self.area.host_phase(packet), host, Ordering::Release);
    }
}
