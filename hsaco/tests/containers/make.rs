//! Containers made byte by byte, and fixtures.

use std::path::Path;

use md5::{Digest, Md5};

pub fn fixture(name: &str) -> Vec<u8> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/code-objects");
    std::fs::read(directory.join(name)).unwrap()
}

/// A plain bundle of entries, each at the next multiple of 4096.
pub fn bundle(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let header: usize = 32 + entries.iter().map(|(id, _)| 24 + id.len()).sum::<usize>();
    let mut bytes = b"__CLANG_OFFLOAD_BUNDLE__".to_vec();
    bytes.extend((entries.len() as u64).to_le_bytes());
    let mut offset = header.next_multiple_of(4096);
    let first = offset;
    for (id, content) in entries {
        for word in [offset, content.len(), id.len()] {
            bytes.extend((word as u64).to_le_bytes());
        }
        bytes.extend(id.as_bytes());
        offset = (offset + content.len()).next_multiple_of(4096);
    }
    bytes.resize(first, 0);
    for (_, content) in entries {
        bytes.resize(bytes.len().next_multiple_of(4096), 0);
        bytes.extend(*content);
    }
    bytes
}

/// A bundle of one entry, for headers to be changed in.
pub fn small() -> Vec<u8> {
    bundle(&[("hipv4-amdgcn-amd-amdhsa--gfx90a", &fixture("vadd.gfx90a.v5.co"))])
}

pub fn hash(content: &[u8]) -> [u8; 8] {
    Md5::digest(content)[..8].try_into().unwrap()
}

/// A compressed bundle around a stream.
pub fn ccob(version: u16, method: u16, stream: &[u8], size: u64, hash: [u8; 8]) -> Vec<u8> {
    let narrow = |value: u64| u32::try_from(value).unwrap().to_le_bytes();
    let len = stream.len() as u64;
    let mut bytes = b"CCOB".to_vec();
    bytes.extend(version.to_le_bytes());
    bytes.extend(method.to_le_bytes());
    match version {
        1 => bytes.extend(narrow(size)),
        2 => bytes.extend([narrow(24 + len), narrow(size)].concat()),
        _ => bytes.extend([(32 + len).to_le_bytes(), size.to_le_bytes()].concat()),
    }
    bytes.extend(hash);
    bytes.extend(stream);
    bytes
}

pub fn zlib(content: &[u8]) -> Vec<u8> {
    miniz_oxide::deflate::compress_to_vec_zlib(content, 6)
}

/// A Zstandard frame of blocks that store or repeat bytes: RFC 8878, section 3.1.
pub struct Frame(Vec<u8>);

impl Frame {
    /// Header without a content size, with a window of 1 KiB << exponent.
    pub fn new(window_exponent: u8) -> Self {
        Self([&[0x28, 0xb5, 0x2f, 0xfd, 0x00][..], &[window_exponent << 3]].concat())
    }

    fn block(&mut self, last: bool, kind: u32, bytes: usize) -> &mut Vec<u8> {
        let header = u32::from(last) | kind << 1 | u32::try_from(bytes).unwrap() << 3;
        self.0.extend(&header.to_le_bytes()[..3]);
        &mut self.0
    }

    /// Stored bytes, in blocks of at most 1 KiB.
    pub fn stored(mut self, content: &[u8], ends: bool) -> Self {
        let count = content.chunks(1024).len();
        for (index, chunk) in content.chunks(1024).enumerate() {
            self.block(ends && index + 1 == count, 0, chunk.len()).extend(chunk);
        }
        self
    }

    /// One byte repeated.
    pub fn repeated(mut self, byte: u8, bytes: usize, last: bool) -> Self {
        self.block(last, 1, bytes).push(byte);
        self
    }

    pub fn bytes(self) -> Vec<u8> {
        self.0
    }
}

/// A compressed bundle of version 2, zstd, around stored blocks.
pub fn stored_zstd(content: &[u8]) -> Vec<u8> {
    let stream = Frame::new(3).stored(content, true).bytes();
    ccob(2, 1, &stream, content.len() as u64, hash(content))
}

pub fn set(mut bytes: Vec<u8>, at: usize, value: &[u8]) -> Vec<u8> {
    bytes[at..at + value.len()].copy_from_slice(value);
    bytes
}

/// Asserts that a file is refused as a container with a problem of this shape.
macro_rules! assert_refused {
    ($bytes:expr, $pattern:pat $(if $guard:expr)?) => {
        match hsaco::Container::read(&$bytes[..]) {
            Err(hsaco::Error::Container { problem: $pattern, .. }) $(if $guard)? => {}
            other => panic!("expected {}, found {other:?}", stringify!($pattern $(if $guard)?)),
        }
    };
}
pub(crate) use assert_refused;
