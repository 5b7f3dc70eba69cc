//! Accesses of different waves to the same bytes without order between them.
//!
//! Order comes from barriers of the workgroup, and from synchronisation: any atomic operation, any
//! access past the nearest cache and any cache maintenance. Two waves that both synchronise between
//! their accesses, one after the other, count as ordered, and so does a wave that reads with such a
//! load what another one wrote. This is generous: what is reported has no order at all.

use std::collections::HashMap;

/// Bytes that share a record.
const CELL: u64 = 4;
/// Records, at most; memory beyond is not watched.
const CELLS: usize = 1 << 22;

/// One access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mark {
    wave: u64,
    time: u64,
    pc: u64,
    /// Bytes of the cell.
    bytes: u8,
    /// What a store of the whole cell left there.
    value: Option<u32>,
    synchronised: bool,
}

/// The last accesses of a cell.
#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    /// Of each byte the last: no two have a byte in common.
    writes: [Option<Mark>; CELL as usize],
    /// Of different waves.
    reads: [Option<Mark>; 2],
}

/// What a wave knows of the others.
#[derive(Clone, Debug, Default)]
pub(super) struct Order {
    /// When it synchronised, ascending.
    syncs: Vec<u64>,
    /// Until when it has seen what another wave did.
    known: HashMap<u64, u64>,
}

impl Order {
    /// A wave starts.
    pub(super) fn start(&mut self) {
        self.syncs.clear();
        self.known.clear();
    }

    /// It synchronises.
    pub(super) fn synchronise(&mut self, time: u64) {
        if self.syncs.last() != Some(&time) {
            self.syncs.push(time);
        }
    }
}

/// Two accesses without order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Race {
    /// The earlier access.
    pub(super) other_pc: u64,
    pub(super) other_wave: u64,
    /// Whether it wrote.
    pub(super) other_wrote: bool,
    pub(super) at: u64,
}

/// Accesses to one memory.
#[derive(Debug, Default)]
pub(super) struct Races {
    cells: HashMap<u64, Cell>,
    /// When waves synchronised, by wave: those whose accesses are recorded.
    syncs: HashMap<u64, Vec<u64>>,
}

/// One wave's access.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) wave: u64,
    pub(super) time: u64,
    pub(super) pc: u64,
    pub(super) writes: bool,
    pub(super) synchronised: bool,
    /// The dwords that a store moves.
    pub(super) values: [Option<u32>; 4],
}

impl Races {
    /// Forgets everything: a workgroup starts.
    pub(super) fn clear(&mut self) {
        self.cells.clear();
        self.syncs.clear();
    }

    /// A wave synchronises.
    pub(super) fn synchronise(&mut self, wave: u64, time: u64) {
        let syncs = self.syncs.entry(wave).or_default();
        if syncs.last() != Some(&time) {
            syncs.push(time);
        }
    }

    /// Whether what `mark` did comes before what a wave does now.
    fn ordered(&self, mark: &Mark, order: &Order) -> bool {
        if order.known.get(&mark.wave).is_some_and(|&time| time >= mark.time) {
            return true;
        }
        let Some(theirs) = self.syncs.get(&mark.wave) else { return false };
        let after = theirs.partition_point(|&time| time < mark.time);
        let first = theirs.get(after);
        first.is_some_and(|first| order.syncs.last().is_some_and(|mine| mine >= first))
    }

    /// Records an access and returns one that it has no order with.
    pub(super) fn access(
        &mut self,
        step: Step,
        order: &mut Order,
        at: u64,
        bytes: u32,
    ) -> Option<Race> {
        let mut race = None;
        let end = at.saturating_add(bytes.into());
        let mut cell_at = at / CELL * CELL;
        while cell_at < end {
            let first = at.max(cell_at) - cell_at;
            let last = end.min(cell_at + CELL) - cell_at;
            let mask = ((1_u16 << last) - (1 << first)) as u8;
            let k = usize::try_from(cell_at.wrapping_sub(at) / CELL).unwrap_or(usize::MAX);
            let value = step.values.get(k).copied().flatten().filter(|_| at.is_multiple_of(CELL));
            race = race.or(self.cell(step, value, order, cell_at, mask));
            cell_at += CELL;
        }
        race
    }

    fn cell(
        &mut self,
        step: Step,
        value: Option<u32>,
        order: &mut Order,
        at: u64,
        bytes: u8,
    ) -> Option<Race> {
        if self.cells.len() >= CELLS && !self.cells.contains_key(&at) {
            return None;
        }
        let mut cell = self.cells.get(&at).copied().unwrap_or_default();
        let Step { wave, time, pc, writes, synchronised, .. } = step;
        let mut race = None;
        let conflicts = |mark: &Mark| {
            mark.wave != wave && mark.bytes & bytes != 0 && !(mark.synchronised || synchronised)
        };
        for mark in cell.writes.iter().flatten() {
            if synchronised && mark.wave != wave {
                let known = order.known.entry(mark.wave).or_default();
                *known = (*known).max(mark.time);
            } else if race.is_none()
                && conflicts(mark)
                // Who of two that store the same comes last makes no difference.
                && !(writes && value.is_some() && value == mark.value)
                && !self.ordered(mark, order)
            {
                race =
                    Some(Race { other_pc: mark.pc, other_wave: mark.wave, other_wrote: true, at });
            }
        }
        if writes && race.is_none() {
            let read = cell.reads.into_iter().flatten();
            race = read
                .filter(|mark| conflicts(mark) && !self.ordered(mark, order))
                .map(|mark| Race {
                    other_pc: mark.pc,
                    other_wave: mark.wave,
                    other_wrote: false,
                    at,
                })
                .next();
        }
        let mark = Mark { wave, time, pc, bytes, value, synchronised };
        if writes {
            for place in &mut cell.writes {
                *place = place
                    .map(|old| Mark { bytes: old.bytes & !bytes, ..old })
                    .filter(|old| old.bytes != 0);
            }
            // Never full: the others have a byte of their own each, and this one has one.
            if let Some(place) = cell.writes.iter_mut().find(|place| place.is_none()) {
                *place = Some(mark);
            }
            cell.reads = [None; 2];
        } else {
            let slot =
                cell.reads.iter().position(|read| read.is_some_and(|read| read.wave == wave));
            let free = slot.or_else(|| cell.reads.iter().position(Option::is_none)).unwrap_or(1);
            if let Some(place) = cell.reads.get_mut(free) {
                *place = Some(mark);
            }
        }
        self.cells.insert(at, cell);
        race
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(wave: u64, time: u64, writes: bool) -> Step {
        Step { wave, time, pc: 0x100 + wave, writes, synchronised: false, values: [None; 4] }
    }

    #[test]
    fn a_write_and_a_read_of_another_wave_race_unless_both_synchronise_between() {
        let mut races = Races::default();
        let [mut a, mut b] = [Order::default(), Order::default()];
        assert_eq!(races.access(step(0, 1, true), &mut a, 8, 4), None);
        let race = races.access(step(1, 1, false), &mut b, 8, 4);
        assert_eq!(race.map(|race| (race.other_pc, race.other_wrote)), Some((0x100, true)));
        races.access(step(0, 2, true), &mut a, 16, 4);
        races.synchronise(0, 3);
        a.synchronise(3);
        assert!(races.access(step(1, 3, false), &mut b, 16, 4).is_some(), "only one did");
        b.synchronise(4);
        assert_eq!(races.access(step(1, 4, false), &mut b, 16, 4), None);
    }

    #[test]
    fn neighbouring_bytes_do_not_race() {
        let mut races = Races::default();
        let mut order = Order::default();
        races.access(step(0, 1, true), &mut order, 8, 2);
        assert_eq!(races.access(step(1, 1, true), &mut Order::default(), 10, 2), None);
        assert!(races.access(step(2, 1, true), &mut Order::default(), 7, 2).is_some());
    }

    #[test]
    fn an_atomic_read_of_what_was_written_orders_what_came_before() {
        let mut races = Races::default();
        let [mut a, mut b] = [Order::default(), Order::default()];
        races.access(step(0, 1, true), &mut a, 8, 4); // data
        races.access(step(0, 1, true), &mut a, 64, 4); // flag
        let poll = Step { synchronised: true, ..step(1, 2, false) };
        assert_eq!(races.access(poll, &mut b, 64, 4), None);
        assert_eq!(races.access(step(1, 2, false), &mut b, 8, 4), None);
    }
}
