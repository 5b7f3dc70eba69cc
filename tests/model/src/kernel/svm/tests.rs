//! Ranges by themselves.

use super::*;

fn places(ranges: &Ranges) -> Vec<(u64, u64)> {
    ranges.0.iter().map(|(start, range)| (*start, range.last)).collect()
}

fn with(first: u64, last: u64, changes: &[Change]) -> Ranges {
    let mut ranges = Ranges::default();
    ranges.change(first, last, changes, 1 << 18, |_| Ok(())).unwrap();
    ranges
}

#[test]
fn a_change_inside_a_range_cuts_it_in_three_and_the_same_again_cuts_nothing() {
    let mut ranges = with(100, 199, &[Change::Granularity(5)]);
    for range in ranges.0.values_mut() {
        range.mapped = true;
    }
    let changed = ranges.change(120, 129, &[Change::SetFlags(8)], 1 << 18, |_| Ok(()));
    assert_eq!(changed, Ok(vec![120]));
    assert_eq!(places(&ranges), [(100, 119), (120, 129), (130, 199)]);
    let flags: Vec<u32> = ranges.0.values().map(|range| range.flags).collect();
    assert_eq!(flags, [3, 11, 3]);
    assert!(ranges.0.values().all(|range| range.granularity == 5 && range.mapped));
    let again = ranges.change(120, 125, &[Change::SetFlags(8)], 1 << 18, |_| Ok(()));
    assert_eq!(again, Ok(vec![]));
    assert_eq!(ranges.len(), 3);
    // Prefetching is never the same as before.
    let moved = ranges.change(125, 140, &[Change::Prefetch(0)], 1 << 18, |_| Ok(()));
    assert_eq!(moved, Ok(vec![125, 130]));
    assert_eq!(places(&ranges), [(100, 119), (120, 124), (125, 129), (130, 140), (141, 199)]);
}

#[test]
fn gaps_are_filled_with_ranges_that_do_not_cross_the_longest() {
    let mut ranges = with(20, 29, &[Change::Preferred(0)]);
    let changed = ranges.change(10, 70, &[Change::Preferred(1)], 32, |pages| {
        assert_eq!(pages, 51);
        Ok(())
    });
    assert_eq!(changed, Ok(vec![20, 10, 30, 32, 64]));
    assert_eq!(places(&ranges), [(10, 19), (20, 29), (30, 31), (32, 63), (64, 70)]);
    assert_eq!(ranges.pages(), 61);
    assert_eq!(ranges.summary(10, 70, Gpus::default()).preferred, 1);
}

#[test]
fn without_memory_nothing_changes() {
    let mut ranges = with(20, 29, &[Change::Preferred(0)]);
    let refused = ranges.change(10, 25, &[Change::Preferred(1)], 32, |_| Err(Errno::NOMEM));
    assert_eq!(refused, Err(Errno::NOMEM));
    assert_eq!(places(&ranges), [(20, 29)]);
    assert_eq!(ranges.summary(20, 29, Gpus::default()).preferred, 0);
}

#[test]
fn a_summary_is_what_all_ranges_agree_on() {
    let mut ranges = with(0, 9, &[Change::Access(0), Change::InPlace(1), Change::Preferred(7)]);
    ranges.change(10, 19, &[Change::Access(0), Change::SetFlags(16)], 64, |_| Ok(())).unwrap();
    let all: Gpus = (0..3).collect();
    let summary = ranges.summary(0, 19, all);
    assert_eq!(summary.access.iter().collect::<Vec<_>>(), [0]);
    assert!(summary.in_place.is_empty());
    assert_eq!((summary.flags_of_all, summary.flags_of_any), (3, 19));
    assert_eq!(summary.preferred, SvmLocation::UNDEFINED.0);
    assert_eq!(ranges.summary(0, 9, all).preferred, 7);
    // Access of one kind replaces the other; the last word counts.
    let changes = [Change::InPlace(0), Change::NoAccess(1), Change::Granularity(99)];
    ranges.change(0, 9, &changes, 64, |_| Ok(())).unwrap();
    let summary = ranges.summary(0, 9, all);
    assert_eq!(summary.access.iter().count(), 0);
    assert_eq!(summary.in_place.iter().collect::<Vec<_>>(), [0]);
    assert_eq!(summary.granularity, 63);
}

#[test]
fn unmapped_pages_leave_both_ends() {
    let mut ranges = with(0, 99, &[Change::Access(0)]);
    let removed = ranges.remove(40, 59);
    assert_eq!(removed.iter().map(|(at, range)| (*at, range.last)).collect::<Vec<_>>(), [(40, 59)]);
    assert_eq!(places(&ranges), [(0, 39), (60, 99)]);
    assert!(ranges.remove(40, 59).is_empty());
    assert!(!ranges.overlaps(40, 59) && ranges.overlaps(59, 60));
    assert_eq!(ranges.remove(0, u64::MAX).len(), 2);
    assert_eq!(ranges.pages(), 0);
}

#[test]
fn a_save_area_needs_ranges_that_stay_mapped_on_its_gpu() {
    let always = SvmFlags::GPU_ALWAYS_MAPPED.bits();
    let mut ranges = with(0, 9, &[Change::Access(0), Change::SetFlags(always)]);
    assert_eq!(ranges.save_area(0, 10, 0), Err(Errno::INVAL), "not mapped");
    ranges.get_mut(0).unwrap().mapped = true;
    assert_eq!(ranges.save_area(0, 10, 1), Err(Errno::INVAL), "another GPU's");
    assert_eq!(ranges.save_area(0, 11, 0), Err(Errno::INVAL), "too short");
    assert_eq!(ranges.save_area(0, 10, 0), Ok(vec![0]));
    ranges.hold(&[0]);
    assert_eq!(ranges.get(0).unwrap().queues, 1);
    ranges.release(0, 10);
    assert_eq!(ranges.get(0).unwrap().queues, 0);
}
