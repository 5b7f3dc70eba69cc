//! Malformed plain bundles.

use hsaco::{Container, ContainerProblem as Problem};

use crate::make::{assert_refused, bundle, fixture, set, small};

/// Places in the header of `small`.
const COUNT: usize = 24;
const OFFSET: usize = 32;
const SIZE: usize = 40;
const ID_BYTES: usize = 48;
const ID: usize = 56;

#[test]
fn a_file_of_another_kind_shows_how_it_starts() {
    assert_refused!(b"PK\x03\x04 and more", Problem::Unknown { ref start } if start == b"PK\x03\x04 and");
    assert_refused!([], Problem::Unknown { ref start } if start.is_empty());
}

#[test]
fn truncated_bundles_never_read() {
    let whole = small();
    Container::read(&whole).unwrap();
    for length in (0..256).chain((256..whole.len()).step_by(64)) {
        assert!(Container::read(&whole[..length]).is_err(), "{length} bytes");
    }
}

#[test]
fn the_entry_count_must_fit_in_the_file() {
    assert_refused!(set(small(), COUNT, &[0; 8]), Problem::NoEntries);
    for count in [1_000_000_u64, 1 << 32, u64::MAX] {
        let file = set(small(), COUNT, &count.to_le_bytes());
        assert_refused!(file, Problem::TooManyEntries { count: c, .. } if c == count);
    }
    // As many as could fit, but are not there.
    let file = set(small(), COUNT, &2_u64.to_le_bytes());
    assert_refused!(file, Problem::EntryId { index: 1, .. });
}

#[test]
fn entries_must_be_inside_the_bundle_behind_its_header() {
    let len = small().len() as u64;
    for (at, value) in [
        (OFFSET, u64::MAX),
        (OFFSET, u64::MAX - 100),
        (OFFSET, len),
        (OFFSET, 0),
        (OFFSET, 86),
        (SIZE, u64::MAX),
        (SIZE, u64::MAX - 4095),
        (SIZE, len),
        (SIZE, len - 4096 + 1),
    ] {
        let file = set(small(), at, &value.to_le_bytes());
        assert_refused!(file, Problem::EntryOutside { index: 0, from: 87, .. });
    }
}

#[test]
fn ids_must_name_a_kind_and_a_target() {
    for bytes in [1_u64 << 63, u64::MAX, u64::MAX - 56, 1 << 20] {
        let file = set(small(), ID_BYTES, &bytes.to_le_bytes());
        assert_refused!(file, Problem::Truncated { what: "the id of an entry", .. });
    }
    for (at, byte) in [(ID, b'-'), (ID + 3, 0), (ID + 3, b' '), (ID + 3, 0xff)] {
        let file = set(small(), at, &[byte]);
        assert_refused!(file, Problem::EntryId { index: 0, .. });
    }
    assert_refused!(bundle(&[("gfx90a", b"x")]), Problem::EntryId { ref id, .. } if id == "gfx90a");
    assert_refused!(bundle(&[("", b"x")]), Problem::EntryId { .. });
    // The message does not carry a huge id.
    let long = "x".repeat(1 << 16);
    assert_refused!(bundle(&[(&long, b"x")]), Problem::EntryId { ref id, .. } if id.len() == 64);
}

#[test]
fn ids_may_be_given_once() {
    let object = fixture("vadd.gfx90a.v5.co");
    let id = "hipv4-amdgcn-amd-amdhsa--gfx90a";
    let file = bundle(&[(id, &object), (id, &object)]);
    assert_refused!(file, Problem::DuplicateEntry { id: ref found } if found == id);
}

#[test]
fn entries_may_not_share_bytes() {
    let file = bundle(&[("hip-a", &[1; 8192]), ("hip-b", &[2; 100])]);
    let second = ID + 5;
    for offset in [4096_u64, 5000, 4096 + 8191] {
        let file = set(file.clone(), second, &offset.to_le_bytes());
        assert_refused!(file, Problem::EntryOverlap { .. });
    }
    Container::read(&set(file, second, &(4096_u64 + 8192).to_le_bytes())).unwrap();
}

#[test]
fn something_else_after_a_bundle_is_not_skipped() {
    let mut file = small();
    file.extend([0; 100]);
    Container::read(&file).unwrap();
    file.extend(b"else");
    assert_refused!(file, Problem::Trailing { ref start } if start == b"else");
    // A second bundle that is damaged is an error of the file, with its place.
    let mut file = small();
    let at = file.len() as u64;
    file.extend(set(small(), COUNT, &[0; 8]));
    match Container::read(&file) {
        Err(hsaco::Error::Container { offset, problem: Problem::NoEntries }) => {
            assert_eq!(offset, at)
        }
        other => panic!("{other:?}"),
    }
}
