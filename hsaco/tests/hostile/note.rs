//! The note segment around the metadata; the metadata itself has unit tests.

use hsaco::{DescriptorProblem, Error, MetadataProblem};

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

/// The object with every `from` in its note that `suffix` follows replaced by `to`.
fn rename(patch: Patch, from: &[u8], suffix: &[u8], to: &[u8]) -> Patch {
    let mut patch = patch;
    let start = note(&patch);
    let end = start + patch.usize_at(patch.program_headers(PT_NOTE)[0] + program::FILE_BYTES);
    let needle = [from, suffix].concat();
    for at in start..end - needle.len() {
        if patch.bytes[at..].starts_with(&needle) {
            patch = patch.set(at, to);
        }
    }
    patch
}

#[test]
fn a_kernel_or_descriptor_listed_twice_is_refused() {
    // In sorted metadata, `.private_segment_fixed_size` follows the value of `.name`.
    let names = rename(Patch::of("bigvgpr.gfx90a.v5.co"), b"v4_s16", b"\xbb.private", b"v3_s15");
    assert_refused!(names, Error::DuplicateKernel { ref kernel } if kernel == "v3_s15");
    let symbols = rename(Patch::of("bigvgpr.gfx90a.v5.co"), b"v4_s16", b".kd", b"v3_s15");
    assert_refused!(symbols, Error::DuplicateKernel { ref kernel } if kernel == "v3_s15.kd");
}

#[test]
fn a_kernarg_segment_has_a_limit() {
    // A number of 3 bytes becomes one of 5, and that of the next key 1 of 3 bytes.
    let patch = Patch::vadd();
    let (size, group) = (&b"\xb5.kernarg_segment_size"[..], &b"\xb8.max_flat_workgroup_size"[..]);
    let old = [size, b"\xcd\x01\x20", group, b"\xcd\x04\x00"].concat();
    let new = [size, b"\xce\x00\x01\x00\x01", group, b"\x40"].concat();
    let at = patch.bytes.windows(old.len()).position(|bytes| bytes == old).unwrap();
    assert_refused!(
        patch.set(at, &new),
        Error::Kernel {
            problem: DescriptorProblem::Limit {
                field: "kernarg_segment_size",
                value: 65537,
                limit: 65536
            },
            ..
        }
    );
}

#[test]
fn a_kernel_whose_symbol_is_not_there_is_refused() {
    let patch = rename(Patch::of("bigvgpr.gfx90a.v5.co"), b"v4_s16", b".kd", b"v4_xxx");
    assert_refused!(
        patch,
        Error::Kernel { ref kernel, problem: DescriptorProblem::NoSymbol { ref symbol } }
            if kernel == "v4_s16" && symbol == "v4_xxx.kd"
    );
}
