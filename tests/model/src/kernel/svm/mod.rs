//! Ranges of shared virtual memory: what they are, how they are cut, what is asked of them.
//!
//! Source: Linux 6.12.117, drivers/gpu/drm/amd/amdkfd/kfd_svm.c (docs/ABI.md §Model, SVM). The
//! page tables and user memory are `ioctl::svm`'s business.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use kfd::abi::{SvmFlags, SvmLocation};
use kfd::sys::Errno;

/// `svm_range_set_default_attributes`: 2^9 pages migrate together.
const DEFAULT_GRANULARITY: u8 = 9;

/// The largest granularity that is kept.
const MAX_GRANULARITY: u32 = 0x3f;

/// GPUs of the process, one bit for each index into its devices (at most `MAX_GPU_INSTANCE`, 64).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Gpus(u64);

impl Gpus {
    const fn bit(index: usize) -> u64 {
        if index < 64 { 1 << index } else { 0 }
    }

    pub(super) const fn contains(self, index: usize) -> bool {
        self.0 & Self::bit(index) != 0
    }

    pub(super) fn set(&mut self, index: usize, there: bool) {
        if there {
            self.0 |= Self::bit(index);
        } else {
            self.0 &= !Self::bit(index);
        }
    }

    pub(super) fn iter(self) -> impl Iterator<Item = usize> {
        (0..64).filter(move |index| self.contains(*index))
    }

    pub(super) const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub(super) const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl FromIterator<usize> for Gpus {
    fn from_iter<I: IntoIterator<Item = usize>>(indices: I) -> Self {
        Self(indices.into_iter().map(Self::bit).fold(0, |all, bit| all | bit))
    }
}

/// One attribute to be set, checked: GPUs are indices into the process's devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Preferred(u32),
    Prefetch(u32),
    Access(usize),
    InPlace(usize),
    NoAccess(usize),
    SetFlags(u32),
    ClearFlags(u32),
    Granularity(u32),
}

/// A range of pages with the same attributes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Range {
    /// The last page.
    pub(super) last: u64,
    pub(super) preferred: u32,
    pub(super) prefetch: u32,
    pub(super) flags: u32,
    pub(super) granularity: u8,
    /// Who reaches it, pages moving if need be.
    pub(super) access: Gpus,
    /// Who reaches it where it is.
    pub(super) in_place: Gpus,
    /// `mapped_to_gpu`.
    pub(super) mapped: bool,
    /// GPUs whose page tables hold it: those that lost access keep it.
    pub(super) translated: Gpus,
    /// Queues whose save area it is.
    pub(super) queues: u32,
}

impl Range {
    fn new(last: u64) -> Self {
        Self {
            last,
            preferred: SvmLocation::UNDEFINED.0,
            prefetch: SvmLocation::UNDEFINED.0,
            flags: (SvmFlags::HOST_ACCESS | SvmFlags::COHERENT).bits(),
            granularity: DEFAULT_GRANULARITY,
            access: Gpus::default(),
            in_place: Gpus::default(),
            mapped: false,
            translated: Gpus::default(),
            queues: 0,
        }
    }

    /// GPUs that are to have it mapped while XNACK is off.
    pub(super) const fn reachable(&self) -> Gpus {
        self.access.union(self.in_place)
    }

    /// `svm_range_is_same_attrs`, for one attribute.
    fn has(&self, change: Change) -> bool {
        match change {
            Change::Preferred(place) => self.preferred == place,
            Change::Prefetch(_) => false, // always moves pages
            Change::Access(gpu) => self.access.contains(gpu),
            Change::InPlace(gpu) => self.in_place.contains(gpu),
            Change::NoAccess(gpu) => !self.reachable().contains(gpu),
            Change::SetFlags(flags) => self.flags & flags == flags,
            Change::ClearFlags(flags) => self.flags & flags == 0,
            Change::Granularity(pages) => u32::from(self.granularity) == pages,
        }
    }

    /// `svm_range_apply_attrs`, for one attribute.
    fn apply(&mut self, change: Change) {
        match change {
            Change::Preferred(place) => self.preferred = place,
            Change::Prefetch(place) => self.prefetch = place,
            Change::Access(gpu) => self.give(gpu, true, false),
            Change::InPlace(gpu) => self.give(gpu, false, true),
            Change::NoAccess(gpu) => self.give(gpu, false, false),
            Change::SetFlags(flags) => self.flags |= flags,
            Change::ClearFlags(flags) => self.flags &= !flags,
            Change::Granularity(pages) => {
                self.granularity = u8::try_from(pages.min(MAX_GRANULARITY)).unwrap_or(u8::MAX);
            }
        }
    }

    fn give(&mut self, gpu: usize, access: bool, in_place: bool) {
        self.access.set(gpu, access);
        self.in_place.set(gpu, in_place);
    }

    pub(super) fn has_flag(&self, flag: SvmFlags) -> bool {
        SvmFlags::from_bits_retain(self.flags).contains(flag)
    }
}

/// What GET_ATTR says of some pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Summary {
    pub(super) preferred: u32,
    pub(super) prefetch: u32,
    pub(super) access: Gpus,
    pub(super) in_place: Gpus,
    pub(super) flags_of_all: u32,
    pub(super) flags_of_any: u32,
    pub(super) granularity: u8,
}

/// A location that all ranges agree on.
#[derive(Default)]
enum Agreed {
    #[default]
    Nothing,
    Yes(u32),
    No,
}

impl Agreed {
    fn with(self, place: u32) -> Self {
        match self {
            Self::No => Self::No,
            _ if place == SvmLocation::UNDEFINED.0 => Self::No,
            Self::Yes(other) if other != place => Self::No,
            _ => Self::Yes(place),
        }
    }

    fn place(self) -> u32 {
        if let Self::Yes(place) = self { place } else { SvmLocation::UNDEFINED.0 }
    }
}

/// The ranges of a process, by first page; they do not overlap.
#[derive(Debug, Default)]
pub(super) struct Ranges(BTreeMap<u64, Range>);

impl Ranges {
    /// First pages of the ranges that have pages in `first..=last`.
    fn touching(&self, first: u64, last: u64) -> Vec<u64> {
        let upwards = self.0.range(..=last).rev();
        let mut starts: Vec<u64> =
            upwards.take_while(|(_, range)| range.last >= first).map(|(start, _)| *start).collect();
        starts.reverse();
        starts
    }

    pub(super) fn overlaps(&self, first: u64, last: u64) -> bool {
        !self.touching(first, last).is_empty()
    }

    /// Pages of all ranges.
    pub(super) fn pages(&self) -> u64 {
        self.0.iter().map(|(start, range)| range.last - start + 1).sum()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn get(&self, start: u64) -> Option<&Range> {
        self.0.get(&start)
    }

    pub(super) fn get_mut(&mut self, start: u64) -> Option<&mut Range> {
        self.0.get_mut(&start)
    }

    /// Cuts the range that starts at `start` so that one starts at `page`, inside it.
    fn split(&mut self, start: u64, page: u64) {
        let Some(range) = self.0.get_mut(&start).filter(|_| page > start) else { return };
        if page > range.last {
            return;
        }
        let tail = range.clone();
        range.last = page - 1;
        self.0.insert(page, tail);
    }

    /// Parts of `first..=last` that no range has.
    fn gaps(&self, first: u64, last: u64) -> Vec<(u64, u64)> {
        let mut gaps = Vec::new();
        let mut at = first;
        for start in self.touching(first, last) {
            if start > at {
                gaps.push((at, start - 1));
            }
            at = self.0.get(&start).map_or(at, |range| range.last.saturating_add(1));
        }
        if at <= last {
            gaps.push((at, last));
        }
        gaps
    }

    /// `svm_range_add` and `svm_range_apply_attrs`: makes ranges for pages that have none, none
    /// longer than `longest` pages or across a multiple of it, cuts those that reach out, and
    /// changes them. Gives the first pages of those that changed.
    ///
    /// # Errors
    /// That of `reserve`, which is asked for the new pages before anything changes.
    pub(super) fn change(
        &mut self,
        first: u64,
        last: u64,
        changes: &[Change],
        longest: u64,
        reserve: impl FnOnce(u64) -> Result<(), Errno>,
    ) -> Result<Vec<u64>, Errno> {
        let gaps = self.gaps(first, last);
        reserve(gaps.iter().map(|(from, to)| to - from + 1).sum())?;
        let mut changed = Vec::new();
        for start in self.touching(first, last) {
            let Some(range) = self.0.get(&start) else { continue };
            if range.mapped && changes.iter().all(|change| range.has(*change)) {
                continue;
            }
            let end = range.last;
            if end > last {
                self.split(start, last + 1);
            }
            self.split(start, first);
            changed.push(start.max(first));
        }
        for (from, to) in gaps {
            let mut at = from;
            while at <= to {
                let boundary = (at / longest + 1).saturating_mul(longest);
                let end = to.min(boundary - 1);
                self.0.insert(at, Range::new(end));
                changed.push(at);
                at = end + 1;
            }
        }
        for start in &changed {
            if let Some(range) = self.0.get_mut(start) {
                changes.iter().for_each(|change| range.apply(*change));
            }
        }
        Ok(changed)
    }

    /// `svm_range_get_attr`. `all` are the process's GPUs with SVM.
    pub(super) fn summary(&self, first: u64, last: u64, all: Gpus) -> Summary {
        let starts = self.touching(first, last);
        if starts.is_empty() {
            let new = Range::new(last);
            return Summary {
                preferred: new.preferred,
                prefetch: new.prefetch,
                access: Gpus::default(), // XNACK would give all
                in_place: Gpus::default(),
                flags_of_all: new.flags,
                flags_of_any: new.flags,
                granularity: new.granularity,
            };
        }
        let (mut preferred, mut prefetch) = (Agreed::default(), Agreed::default());
        let (mut access, mut in_place) = (all, all);
        let (mut flags_of_all, mut flags_of_any, mut granularity) = (u32::MAX, 0, u8::MAX);
        for range in starts.iter().filter_map(|start| self.0.get(start)) {
            preferred = preferred.with(range.preferred);
            prefetch = prefetch.with(range.prefetch);
            access = access.intersection(range.access);
            in_place = in_place.intersection(range.in_place);
            flags_of_all &= range.flags;
            flags_of_any |= range.flags;
            granularity = granularity.min(range.granularity);
        }
        Summary {
            preferred: preferred.place(),
            prefetch: prefetch.place(),
            access,
            in_place,
            flags_of_all,
            flags_of_any,
            granularity,
        }
    }

    /// `svm_range_unmap_from_cpu`: takes the pages out, with what is left of the ranges on both
    /// sides. Gives the parts taken out, with their first pages.
    pub(super) fn remove(&mut self, first: u64, last: u64) -> Vec<(u64, Range)> {
        let mut removed = Vec::new();
        for start in self.touching(first, last) {
            let Some(range) = self.0.get(&start) else { continue };
            if range.last > last {
                self.split(start, last + 1);
            }
            self.split(start, first);
            let start = start.max(first);
            removed.extend(self.0.remove(&start).map(|range| (start, range)));
        }
        removed
    }

    /// `kfd_queue_buffer_svm_get`: the ranges of a queue's save area, which the GPU must always
    /// have mapped.
    ///
    /// # Errors
    /// `EINVAL`.
    pub(super) fn save_area(&self, first: u64, pages: u64, gpu: usize) -> Result<Vec<u64>, Errno> {
        let (mut at, mut left) = (first, pages);
        let mut held = Vec::new();
        while left > 0 {
            let start = *self.touching(at, at).first().ok_or(Errno::INVAL)?;
            let range = self.0.get(&start).ok_or(Errno::INVAL)?;
            let always = range.has_flag(SvmFlags::GPU_ALWAYS_MAPPED);
            if !range.mapped || !range.reachable().contains(gpu) || !always {
                return Err(Errno::INVAL);
            }
            held.push(start);
            // The kernel counts whole ranges, even where the area starts inside one.
            let length = range.last - start + 1;
            left = left.saturating_sub(length);
            at += length;
        }
        Ok(held)
    }

    /// A queue needs these ranges.
    pub(super) fn hold(&mut self, starts: &[u64]) {
        for start in starts {
            if let Some(range) = self.0.get_mut(start) {
                range.queues += 1;
            }
        }
    }

    /// `kfd_queue_buffer_svm_put`.
    pub(super) fn release(&mut self, first: u64, pages: u64) {
        let Some(last) = pages.checked_sub(1).map(|more| first.saturating_add(more)) else {
            return;
        };
        for start in self.touching(first, last) {
            if let Some(range) = self.0.get_mut(&start) {
                range.queues = range.queues.saturating_sub(1);
            }
        }
    }
}
