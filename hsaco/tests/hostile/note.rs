//! The note segment around the metadata; the metadata itself has unit tests.

use hsaco::{Error, MetadataProblem};

use crate::patch::{PT_NOTE, Patch, assert_refused, program};

/// Place of the note's header.
fn note(patch: &Patch) -> usize {
    patch.usize_at(patch.program_headers(PT_NOTE)[0] + program::OFFSET)
}

#[test]
fn an_object_without_metadata_is_refused() {
    let patch = Patch::vadd();
    let header = patch.program_headers(PT_NOTE)[0];
    assert_refused!(patch.clone().set(header, &6_u32.to_le_bytes()), Error::NoMetadata);
    let at = note(&patch);
    assert_refused!(patch.clone().set(at + 8, &10_u32.to_le_bytes()), Error::NoMetadata);
    assert_refused!(patch.clone().set(at + 12, b"XMDGPU"), Error::NoMetadata);
    assert_refused!(
        patch.set(at, &0_u32.to_le_bytes()),
        Error::NoMetadata | Error::Truncated { .. }
    );
}

#[test]
fn two_metadata_notes_are_refused() {
    let patch = Patch::vadd();
    let relro = patch.program_headers(0x6474_e552)[0];
    let header = patch.program_headers(PT_NOTE)[0];
    let copy = patch.bytes[header..header + 56].to_vec();
    assert_refused!(patch.set(relro, &copy), Error::DuplicateMetadata);
}

#[test]
fn note_sizes_must_be_inside_their_segment() {
    let patch = Patch::vadd();
    let at = note(&patch);
    for size in [u32::MAX, 0x7fff_ffff, patch.u32_at(at + 4) + 8] {
        let patch = patch.clone().set(at + 4, &size.to_le_bytes());
        assert_refused!(patch, Error::Truncated { what: "a note", .. });
    }
    let patch = patch.set(at, &u32::MAX.to_le_bytes());
    assert_refused!(patch, Error::Truncated { what: "a note", .. });
}

#[test]
fn a_note_segment_past_the_file_is_refused() {
    let patch = Patch::vadd().segment(PT_NOTE, 0, program::FILE_BYTES, u64::MAX);
    assert_refused!(patch, Error::Truncated { what: "notes", .. });
}

#[test]
fn the_padding_after_the_last_note_may_be_missing() {
    let patch = Patch::of("iree_mul.gfx1100.co");
    let at = note(&patch);
    let content = patch.u32_at(at + 4);
    let end = u64::from(12 + 8 + content);
    let patch = patch.segment(PT_NOTE, 0, program::FILE_BYTES, end);
    patch.parses();
}

#[test]
fn metadata_that_is_cut_names_the_offset() {
    let patch = Patch::vadd();
    let at = note(&patch);
    let content = patch.u32_at(at + 4);
    let patch = patch.set(at + 4, &(content - 4).to_le_bytes());
    assert_refused!(
        patch,
        Error::Metadata { problem: MetadataProblem::Truncated, .. } | Error::Truncated { .. }
    );
}

#[test]
fn a_kernel_listed_twice_is_refused() {
    // Both names have the same length, so one can take the place of the other in the note.
    let mut patch = Patch::of("dynlds.gfx90a.v5.co");
    let (one, other) = (&b"reduce_dyn"[..], &b"static_lds"[..]);
    let start = note(&patch);
    let end = start + patch.usize_at(patch.program_headers(PT_NOTE)[0] + program::FILE_BYTES);
    for at in start..end - one.len() {
        let is_name = !patch.bytes[at + other.len()..].starts_with(b".kd");
        if is_name && patch.bytes[at..].starts_with(other) {
            patch = patch.set(at, one);
        }
    }
    assert_refused!(patch, Error::DuplicateKernel { ref kernel } if kernel == "reduce_dyn");
}
