//! Which addresses are free: pure arithmetic over ranges that somebody else reserved.
//!
//! A range it hands out is used by CPU and GPU alike. Behind every allocation one page stays
//! unmapped, so that running off its end is a fault and not somebody else's data.

use std::collections::BTreeMap;

/// Page size of the GPU page tables the driver uses, in bytes. Source: docs/ABI.md §Memory.
pub(crate) const PAGE: u64 = 0x1000;
/// From this size on, allocations are aligned to it, so that the GPU can use large pages.
const HUGE: u64 = 0x20_0000;

/// `bytes` rounded up to a multiple of `align`, a power of two; `None` on overflow.
pub(crate) const fn round_up(bytes: u64, align: u64) -> Option<u64> {
    match bytes.checked_add(align - 1) {
        Some(sum) => Some(sum & !(align - 1)),
        None => None,
    }
}

/// A range handed out by [`VaAllocator::take`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VaRange {
    /// First byte.
    pub start: u64,
    /// Usable bytes, whole pages. The guard page behind is not counted.
    pub bytes: u64,
}

impl VaRange {
    fn with_guard(self) -> u64 {
        self.bytes + PAGE
    }
}

/// Hands out addresses from arenas.
#[derive(Debug, Default)]
pub(crate) struct VaAllocator {
    /// Free ranges, start to length, never adjacent to one another within an arena.
    free: BTreeMap<u64, u64>,
    /// Reserved ranges, start to length, disjoint.
    arenas: BTreeMap<u64, u64>,
}

impl VaAllocator {
    /// How large an arena has to be for an allocation of `bytes` to fit whatever its alignment.
    pub fn arena_for(bytes: u64) -> Option<u64> {
        let bytes = round_up(bytes, PAGE)?;
        bytes.checked_add(PAGE)?.checked_add(alignment(bytes))
    }

    /// Adds a reserved range. `false`, and nothing changes, when it is not page aligned, wraps, or
    /// overlaps one that is known.
    #[must_use]
    pub fn add_arena(&mut self, start: u64, bytes: u64) -> bool {
        let Some(end) = start.checked_add(bytes) else { return false };
        if bytes == 0 || !start.is_multiple_of(PAGE) || !bytes.is_multiple_of(PAGE) {
            return false;
        }
        let below = self.arenas.range(..end).next_back();
        if below.is_some_and(|(&other, &length)| other + length > start) {
            return false;
        }
        self.arenas.insert(start, bytes);
        self.free.insert(start, bytes);
        true
    }

    /// Takes `bytes`, rounded up to pages: the lowest free range that fits. `None` when none does.
    pub fn take(&mut self, bytes: u64) -> Option<VaRange> {
        let bytes = round_up(bytes, PAGE)?;
        if bytes == 0 {
            return None;
        }
        let need = bytes.checked_add(PAGE)?;
        let align = alignment(bytes);
        let (free_start, free_bytes, start) =
            self.free.iter().find_map(|(&free_start, &free_bytes)| {
                let start = round_up(free_start, align)?;
                let end = start.checked_add(need)?;
                (end <= free_start + free_bytes).then_some((free_start, free_bytes, start))
            })?;
        self.free.remove(&free_start);
        if start > free_start {
            self.free.insert(free_start, start - free_start);
        }
        let rest = free_start + free_bytes - (start + need);
        if rest > 0 {
            self.free.insert(start + need, rest);
        }
        Some(VaRange { start, bytes })
    }

    /// Gives a range back, exactly as [`VaAllocator::take`] gave it.
    pub fn give_back(&mut self, range: VaRange) {
        let Some((&arena, _)) = self.arenas.range(..=range.start).next_back() else { return };
        let mut start = range.start;
        let mut bytes = range.with_guard();
        if let Some((&before, &length)) = self.free.range(..start).next_back() {
            // Arenas that happen to touch are not merged: each is unmapped by itself.
            if before >= arena && before + length == start {
                self.free.remove(&before);
                start = before;
                bytes += length;
            }
        }
        let end = start + bytes;
        if !self.arenas.contains_key(&end)
            && let Some(length) = self.free.remove(&end)
        {
            bytes += length;
        }
        self.free.insert(start, bytes);
    }

    /// The arenas of which nothing is in use, as start and length.
    pub fn unused_arenas(&self) -> Vec<(u64, u64)> {
        let whole = |(start, bytes): (&u64, &u64)| self.free.get(start) == Some(bytes);
        self.arenas.iter().filter(|&arena| whole(arena)).map(|(&s, &b)| (s, b)).collect()
    }
}

fn alignment(bytes: u64) -> u64 {
    if bytes >= HUGE { HUGE } else { PAGE }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn allocator() -> VaAllocator {
        let mut va = VaAllocator::default();
        assert!(va.add_arena(0x10_0000, 0x100_0000));
        va
    }

    #[test]
    fn a_guard_page_separates_neighbours() {
        let mut va = allocator();
        let first = va.take(1).unwrap();
        let second = va.take(PAGE).unwrap();
        assert_eq!(first, VaRange { start: 0x10_0000, bytes: PAGE });
        assert_eq!(second.start, 0x10_2000);
    }

    #[test]
    fn two_mebibytes_and_more_are_aligned_to_large_pages() {
        let mut va = allocator();
        assert_eq!(va.take(HUGE).unwrap().start % HUGE, 0);
        assert_eq!(va.take(PAGE).unwrap().start, 0x10_0000);
    }

    #[test]
    fn zero_bytes_overflow_and_too_much_are_refused() {
        let mut va = allocator();
        assert_eq!(va.take(0), None);
        assert_eq!(va.take(u64::MAX), None);
        assert_eq!(va.take(0x100_0000), None);
    }

    #[test]
    fn an_arena_that_overlaps_or_wraps_is_refused() {
        let mut va = allocator();
        assert!(!va.add_arena(0x10_1000, PAGE));
        assert!(!va.add_arena(0xf_f000, 2 * PAGE));
        assert!(!va.add_arena(u64::MAX - 0xfff, 0x1000));
        assert!(!va.add_arena(0x800, PAGE));
        assert!(va.add_arena(0x110_0000, PAGE));
    }

    #[test]
    fn touching_arenas_stay_apart() {
        let mut va = VaAllocator::default();
        assert!(va.add_arena(0x10_0000, 2 * PAGE));
        assert!(va.add_arena(0x10_2000, 2 * PAGE));
        let (a, b) = (va.take(PAGE).unwrap(), va.take(PAGE).unwrap());
        va.give_back(a);
        va.give_back(b);
        assert_eq!(va.unused_arenas(), [(0x10_0000, 2 * PAGE), (0x10_2000, 2 * PAGE)]);
    }

    proptest! {
        #[test]
        fn live_ranges_never_overlap_and_all_comes_back(
            steps in proptest::collection::vec((any::<bool>(), 1u64..0x30_0000, any::<usize>()), 1..200)
        ) {
            let mut va = allocator();
            let mut live: Vec<VaRange> = Vec::new();
            for (take, bytes, pick) in steps {
                if take || live.is_empty() {
                    if let Some(new) = va.take(bytes) {
                        prop_assert!(new.bytes >= bytes);
                        for old in &live {
                            prop_assert!(new.start + new.with_guard() <= old.start
                                || old.start + old.with_guard() <= new.start);
                        }
                        live.push(new);
                    }
                } else {
                    va.give_back(live.swap_remove(pick % live.len()));
                }
            }
            for range in live {
                va.give_back(range);
            }
            prop_assert_eq!(va.unused_arenas(), [(0x10_0000, 0x100_0000)]);
        }
    }
}
