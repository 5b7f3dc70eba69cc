//! Malformed compressed bundles.

use hsaco::{Container, ContainerProblem as Problem, Error};

use crate::make::{Frame, assert_refused, ccob, fixture, hash, set, small, stored_zstd, zlib};

/// Good files of each version and method.
fn good() -> Vec<(String, Vec<u8>)> {
    let content = small();
    let size = content.len() as u64;
    let zstd = Frame::new(3).stored(&content, true).bytes();
    let mut files = Vec::new();
    for version in [1, 2, 3] {
        for (method, stream) in [(0, zlib(&content)), (1, zstd.clone())] {
            let file = ccob(version, method, &stream, size, hash(&content));
            Container::read(&file).unwrap();
            files.push((format!("version {version}, method {method}"), file));
        }
    }
    files
}

#[test]
fn truncated_compressed_bundles_never_read() {
    for (name, file) in good() {
        for length in (0..64).chain((64..file.len()).step_by(61)).chain([file.len() - 1]) {
            assert!(Container::read(&file[..length]).is_err(), "{name}, {length} bytes");
        }
    }
    for name in ["ccob1", "ccob2", "ccob2zlib", "ccob3.c22"] {
        let file = fixture(&format!("fat_host.{name}.bundle"));
        for length in 0..file.len() {
            assert!(Container::read(&file[..length]).is_err(), "{name}, {length} bytes");
        }
    }
}

#[test]
fn versions_and_methods_are_refused_by_number() {
    for version in [0_u16, 4, 9, 0xffff] {
        let file = set(stored_zstd(&small()), 4, &version.to_le_bytes());
        assert_refused!(file, Problem::CompressedVersion { found } if found == version);
    }
    for method in [2_u16, 0xffff] {
        let file = set(stored_zstd(&small()), 6, &method.to_le_bytes());
        assert_refused!(file, Problem::CompressionMethod { found } if found == method);
    }
    let file = set(stored_zstd(&small()), 4, &9_u16.to_le_bytes());
    let error = Container::read(&file).unwrap_err();
    let source = std::error::Error::source(&error).unwrap().to_string();
    assert!(source.contains("version 9"), "{source}");
}

#[test]
fn the_total_size_must_hold_the_header_and_fit_in_the_file() {
    let file = stored_zstd(&small());
    for total in [0_u32, 23] {
        let file = set(file.clone(), 8, &total.to_le_bytes());
        assert_refused!(file, Problem::CompressedSize { header: 24, .. });
    }
    let one_more = u32::try_from(file.len()).unwrap() + 1;
    for total in [one_more, u32::MAX] {
        let file = set(file.clone(), 8, &total.to_le_bytes());
        assert_refused!(file, Problem::Truncated { what: "the compressed stream", .. });
    }
    let content = small();
    let wide = ccob(3, 0, &zlib(&content), content.len() as u64, hash(&content));
    for total in [1_u64 << 63, u64::MAX] {
        let file = set(wide.clone(), 8, &total.to_le_bytes());
        assert_refused!(file, Problem::Truncated { what: "the compressed stream", .. });
    }
    assert_refused!(
        set(wide, 8, &[31, 0, 0, 0, 0, 0, 0, 0]),
        Problem::CompressedSize { header: 32, .. }
    );
}

#[test]
fn the_content_must_have_exactly_the_size_in_the_header() {
    let content = small();
    let size = content.len() as u64;
    let zstd = Frame::new(3).stored(&content, true).bytes();
    for (method, stream) in [(0, zlib(&content)), (1, zstd)] {
        for version in [1, 2, 3] {
            let file = |size| ccob(version, method, &stream, size, hash(&content));
            assert_refused!(file(size + 1), Problem::ContentSize { found, .. } if found == size);
            assert_refused!(file(size - 1), Problem::ContentSize { expected, .. } if expected == size - 1);
            assert_refused!(file(0), Problem::ContentSize { expected: 0, .. });
        }
    }
}

#[test]
fn a_size_that_the_stream_cannot_reach_is_refused_before_decompression() {
    let content = small();
    let stream = zlib(&content);
    for size in [1_u64 << 63, u64::MAX] {
        let file = ccob(3, 0, &stream, size, hash(&content));
        assert_refused!(file, Problem::ContentTooLarge { bytes, .. } if bytes == size);
    }
    // 4 GiB from 1 KiB.
    for method in [0, 1] {
        let file = ccob(2, method, &[0x5a; 1024], u32::MAX.into(), [0; 8]);
        let most = if method == 0 { 1024 * 1032 } else { 256 << 17 };
        assert_refused!(file, Problem::ContentTooLarge { limit, .. } if limit == most);
    }
}

#[test]
fn a_bomb_stops_at_the_size_in_the_header() {
    let mut frame = Frame::new(3);
    for _ in 0..2048 {
        frame = frame.repeated(0, 1 << 10, false);
    }
    let stream = frame.repeated(0, 1 << 10, true).bytes();
    let file = ccob(2, 1, &stream, 4096, [0; 8]);
    assert_refused!(file, Problem::ContentSize { expected: 4096, found, .. } if found < 2 << 20);
    let stream = zlib(&vec![0; 16 << 20]);
    let file = ccob(2, 0, &stream, 4096, [0; 8]);
    assert_refused!(file, Problem::ContentSize { expected: 4096, found: 4096, more: true });
}

#[test]
fn the_callers_limit_counts_all_bundles_of_a_file() {
    let content = small();
    let limit = content.len() as u64;
    let file = stored_zstd(&content);
    Container::read_within(&file, limit).unwrap();
    let refused = |file: &[u8], limit| {
        let Err(Error::Container { problem, .. }) = Container::read_within(file, limit) else {
            panic!("limit {limit}")
        };
        assert!(matches!(problem, Problem::ContentTooLarge { .. }), "{problem}");
    };
    refused(&file, limit - 1);
    let twice = [file.clone(), file].concat();
    Container::read_within(&twice, 2 * limit).unwrap();
    refused(&twice, 2 * limit - 1);
}

#[test]
fn damage_in_the_stream_or_the_hash_is_found() {
    let content = small();
    for (name, file) in good() {
        // The hash is the last of the header.
        let header = match name.as_bytes()[8] {
            b'1' => 20,
            b'2' => 24,
            _ => 32,
        };
        let mut file = file;
        file[header - 1] ^= 1;
        assert_refused!(file, Problem::Hash { found, .. } if found == u64::from_le_bytes(hash(&content)));
    }
    let file = stored_zstd(&content);
    for at in 24..file.len() {
        let damaged = set(file.clone(), at, &[file[at] ^ 0x40]);
        // A larger window changes nothing else.
        assert!(at == 29 || Container::read(&damaged).is_err(), "byte {at}");
        if at == 400 {
            // The rest is content, where the hash finds every change.
            assert_refused!(damaged, Problem::Hash { .. });
            break;
        }
    }
}

#[test]
fn a_stream_of_the_other_method_is_damaged() {
    let content = small();
    let size = content.len() as u64;
    let zstd = Frame::new(3).stored(&content, true).bytes();
    let file = ccob(2, 0, &zstd, size, hash(&content));
    assert_refused!(file, Problem::Stream { method: "zlib", .. });
    let file = ccob(2, 1, &zlib(&content), size, hash(&content));
    assert_refused!(file, Problem::Stream { method: "zstd", .. });
}

#[test]
fn the_content_is_one_frame() {
    let content = small();
    let size = content.len() as u64;
    let (head, tail) = content.split_at(2000);
    let skippable: &[u8] = &[0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0, 1, 2, 3, 4];
    let frame = |content| Frame::new(3).stored(content, true).bytes();
    let in_front = [skippable, &frame(&content)].concat();
    let file = ccob(2, 1, &in_front, size, hash(&content));
    assert_refused!(file, Problem::Stream { ref reason, .. } if reason.contains("skippable"));
    let behind = [&frame(&content), skippable].concat();
    assert_refused!(ccob(2, 1, &behind, size, hash(&content)), Problem::AfterStream { bytes: 12 });
    let two = [frame(head), frame(tail)].concat();
    assert_refused!(
        ccob(3, 1, &two, size, hash(&content)),
        Problem::ContentSize { found: 2000, .. }
    );
}

#[test]
fn a_window_larger_than_the_content_costs_nothing() {
    let content = small();
    for exponent in [0, 13, 17, 20, 31] {
        let frame = Frame::new(exponent).stored(&content, true).bytes();
        let file = ccob(2, 1, &frame, content.len() as u64, hash(&content));
        Container::read(&file).unwrap();
    }
    // Content that would really need such a window is refused at its header.
    let mut frame = Frame::new(18);
    for _ in 0..2048 {
        frame = frame.repeated(0, 1 << 10, false);
    }
    let file = ccob(2, 1, &frame.bytes(), (128 << 20) + 1, [0; 8]);
    assert_refused!(file, Problem::Stream { ref reason, .. } if reason.contains("window"));
}

#[test]
fn the_content_must_be_a_plain_bundle() {
    for content in [stored_zstd(&small()), fixture("vadd.gfx90a.v5.co"), b"text".to_vec()] {
        let start = content[..content.len().min(8)].to_vec();
        assert_refused!(stored_zstd(&content), Problem::NotABundle { start: ref s } if *s == start);
    }
    let mut content = small();
    content.extend(b"\0\0more");
    assert_refused!(stored_zstd(&content), Problem::Trailing { ref start } if start == b"more");
    assert_refused!(stored_zstd(&set(small(), 24, &[0; 8])), Problem::NoEntries);
}
