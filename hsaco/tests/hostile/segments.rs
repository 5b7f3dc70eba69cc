//! PT_LOAD.

use hsaco::Error;
use hsaco::load::{MAX_HOLE_BYTES, MAX_LOAD_BYTES};

use crate::patch::{PT_LOAD, Patch, assert_refused, program};

fn last(patch: &Patch) -> usize {
    patch.program_headers(PT_LOAD).len() - 1
}

#[test]
fn an_object_without_segments_is_refused() {
    let mut patch = Patch::vadd();
    for at in patch.program_headers(PT_LOAD) {
        patch = patch.set(at, &6_u32.to_le_bytes());
    }
    assert_refused!(patch, Error::NoSegments);
}

#[test]
fn a_file_part_larger_than_the_memory_part_is_refused() {
    let patch = Patch::vadd().segment(PT_LOAD, 0, program::MEMORY_BYTES, 16);
    assert_refused!(patch, Error::SegmentSizes { memory_bytes: 16, .. });
}

#[test]
fn a_file_part_past_the_end_is_refused() {
    for offset in [0x1_0000, u64::MAX - 4, 1 << 63] {
        let patch = Patch::vadd().segment(PT_LOAD, 1, program::OFFSET, offset);
        assert_refused!(patch, Error::Truncated { what: "segment", offset: o, .. } if o == offset);
    }
}

#[test]
fn memory_has_a_limit() {
    let patch = Patch::vadd();
    let index = last(&patch);
    let patch = patch.segment(PT_LOAD, index, program::MEMORY_BYTES, 1 << 40);
    assert_refused!(patch, Error::TooLarge { bytes, limit: MAX_LOAD_BYTES } if bytes == 1 << 40);
    let patch = patch.segment(PT_LOAD, index, program::MEMORY_BYTES, u64::MAX);
    assert_refused!(patch, Error::TooLarge { .. });
    let patch = patch.segment(PT_LOAD, index, program::MEMORY_BYTES, 0x1000).segment(
        PT_LOAD,
        index,
        program::VADDR,
        1 << 63,
    );
    assert_refused!(patch, Error::TooLarge { .. });
    let patch = patch.segment(PT_LOAD, index, program::VADDR, u64::MAX - 16);
    assert_refused!(patch, Error::Header { field: "p_vaddr", .. });
}

#[test]
fn segments_must_ascend_without_overlap() {
    let patch = Patch::vadd();
    let first = patch.program_headers(PT_LOAD)[0];
    let end = patch.u64_at(first + program::VADDR) + patch.u64_at(first + program::MEMORY_BYTES);
    let overlapping = patch.clone().segment(PT_LOAD, 1, program::VADDR, end - 1);
    assert_refused!(overlapping, Error::SegmentOrder { previous_end, .. } if previous_end == end);
    let descending = patch.segment(PT_LOAD, 0, program::VADDR, 0x10_0000);
    assert_refused!(descending, Error::SegmentOrder { .. });
}

#[test]
fn segments_that_share_file_content_are_refused() {
    let patch = Patch::of("globals.gfx90a.v5.co");
    let index = last(&patch);
    let whole = patch.bytes.len() as u64;
    let patch = patch
        .segment(PT_LOAD, index, program::OFFSET, 0)
        .segment(PT_LOAD, index, program::FILE_BYTES, whole)
        .segment(PT_LOAD, index, program::MEMORY_BYTES, whole);
    assert_refused!(patch, Error::TooLarge { limit, .. } if limit == whole);
}

#[test]
fn alignment_is_not_needed_to_load() {
    for align in [0, 3, 1 << 63] {
        let patch = Patch::vadd().segment(PT_LOAD, 0, program::ALIGN, align);
        assert_eq!(patch.parses().kernels().len(), 1);
    }
}

#[test]
fn a_large_bss_costs_nothing_here() {
    let patch = Patch::vadd();
    let index = last(&patch);
    let patch = patch.segment(PT_LOAD, index, program::MEMORY_BYTES, 3 << 30);
    let object = patch.parses();
    assert!(object.load_bytes() > 3 << 30);
    let image = object.image(0).unwrap();
    assert!(image.bytes().len() < 1 << 20);
    assert_eq!(image.load_bytes(), object.load_bytes());
}

#[test]
fn a_large_hole_between_segments_is_refused() {
    // The last segment has variables' first values; far away, it would need zeros before it.
    let patch = Patch::of("reloc.gfx90a.v5.co");
    let index = last(&patch);
    let at = patch.program_headers(PT_LOAD)[index];
    assert!(patch.u64_at(at + program::FILE_BYTES) > 0);
    let patch = patch.segment(PT_LOAD, index, program::VADDR, 0x200_0000);
    let error = patch.parses().image(0).unwrap_err();
    assert!(
        matches!(error, Error::TooLarge { bytes, limit }
            if bytes > 0x200_0000 && limit < MAX_HOLE_BYTES + patch.bytes.len() as u64),
        "{error:?}"
    );
}
