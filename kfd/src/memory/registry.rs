//! Which allocations there are and were, for reports of faults.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Mutex;

use pm4::GpuAddr;

use super::MemoryKind;
use crate::core::lock;
use crate::ids::GpuId;

/// How many freed allocations are remembered.
const FREED: usize = 256;

/// An allocation, as reports name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AllocationInfo {
    /// First address.
    pub addr: GpuAddr,
    /// Bytes asked for.
    pub bytes: u64,
    /// What backs it.
    pub kind: MemoryKind,
    /// The GPU it belongs to.
    pub gpu: GpuId,
    /// What it is for.
    pub label: &'static str,
}

impl fmt::Display for AllocationInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {} ({:?}, {} bytes)", self.label, self.addr, self.kind, self.bytes)
    }
}

/// Allocations around an address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Neighbours {
    /// The one that overlaps the page.
    pub inside: Option<AllocationInfo>,
    /// The last one before it.
    pub before: Option<AllocationInfo>,
    /// The first one after it.
    pub after: Option<AllocationInfo>,
    /// The last one that overlapped the page and was freed.
    pub freed: Option<AllocationInfo>,
}

#[derive(Debug, Default)]
struct Records {
    live: BTreeMap<u64, AllocationInfo>,
    freed: VecDeque<AllocationInfo>,
}

/// All allocations of a `Kfd`.
#[derive(Debug, Default)]
pub(crate) struct Registry(Mutex<Records>);

impl Registry {
    pub fn insert(&self, info: AllocationInfo) {
        lock(&self.0).live.insert(info.addr.get(), info);
    }

    pub fn remove(&self, addr: GpuAddr) {
        let mut records = lock(&self.0);
        if let Some(info) = records.live.remove(&addr.get()) {
            if records.freed.len() == FREED {
                records.freed.pop_front();
            }
            records.freed.push_back(info);
        }
    }

    /// Live allocations, by address.
    pub fn live(&self) -> Vec<AllocationInfo> {
        lock(&self.0).live.values().copied().collect()
    }

    /// What surrounds the page at `page`.
    pub fn neighbours(&self, page: GpuAddr) -> Neighbours {
        let overlaps = |info: &AllocationInfo| {
            let start = info.addr.get();
            start < page.get().saturating_add(0x1000)
                && start.saturating_add(info.bytes) > page.get()
        };
        let records = lock(&self.0);
        let end = page.get().saturating_add(0x1000);
        let inside = records.live.range(..end).next_back().map(|(_, info)| *info).filter(overlaps);
        let before = records
            .live
            .range(..page.get())
            .rev()
            .map(|(_, info)| *info)
            .find(|info| !overlaps(info));
        let after = records.live.range(end..).next().map(|(_, info)| *info);
        let freed = records.freed.iter().rev().copied().find(overlaps);
        Neighbours { inside, before, after, freed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(addr: u64, bytes: u64) -> AllocationInfo {
        AllocationInfo {
            addr: GpuAddr::new(addr),
            bytes,
            kind: MemoryKind::Gtt,
            gpu: GpuId(1),
            label: "buffer",
        }
    }

    #[test]
    fn a_page_behind_a_block_names_the_block_before_and_the_one_after() {
        let registry = Registry::default();
        registry.insert(info(0x1_0000, 0x1000));
        registry.insert(info(0x2_0000, 0x1000));
        let around = registry.neighbours(GpuAddr::new(0x1_1000));
        assert_eq!(around.inside, None);
        assert_eq!(around.before, Some(info(0x1_0000, 0x1000)));
        assert_eq!(around.after, Some(info(0x2_0000, 0x1000)));
    }

    #[test]
    fn a_page_inside_a_block_and_a_freed_one_are_named_so() {
        let registry = Registry::default();
        registry.insert(info(0x1_0000, 0x3000));
        registry.insert(info(0x2_0000, 0x1000));
        registry.remove(GpuAddr::new(0x2_0000));
        assert_eq!(
            registry.neighbours(GpuAddr::new(0x1_2000)).inside,
            Some(info(0x1_0000, 0x3000))
        );
        let freed = registry.neighbours(GpuAddr::new(0x2_0000));
        assert_eq!(freed.freed, Some(info(0x2_0000, 0x1000)));
        assert_eq!(freed.before, Some(info(0x1_0000, 0x3000)));
    }

    #[test]
    fn only_so_many_freed_blocks_are_remembered() {
        let registry = Registry::default();
        for n in 0..2 * FREED as u64 {
            registry.insert(info(n * 0x2000, 0x1000));
            registry.remove(GpuAddr::new(n * 0x2000));
        }
        assert_eq!(registry.neighbours(GpuAddr::new(0)).freed, None);
        assert!(registry.neighbours(GpuAddr::new(FREED as u64 * 0x2000)).freed.is_some());
    }
}
