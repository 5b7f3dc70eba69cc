//! Real objects, changed at places found by reading the ELF tables plainly.

use std::path::Path;

use hsaco::{CodeObject, Error};

/// Bytes of a fixture.
pub fn fixture(name: &str) -> Vec<u8> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/code-objects");
    std::fs::read(directory.join(name)).unwrap()
}

/// An object to change.
#[derive(Clone)]
pub struct Patch {
    pub bytes: Vec<u8>,
}

pub const PT_LOAD: u32 = 1;
pub const PT_DYNAMIC: u32 = 2;
pub const PT_NOTE: u32 = 4;

/// Byte offsets inside a program header.
pub mod program {
    pub const OFFSET: usize = 8;
    pub const VADDR: usize = 16;
    pub const FILE_BYTES: usize = 32;
    pub const MEMORY_BYTES: usize = 40;
    pub const ALIGN: usize = 48;
}

impl Patch {
    pub fn of(name: &str) -> Self {
        Self { bytes: fixture(name) }
    }

    pub fn vadd() -> Self {
        Self::of("vadd.gfx90a.v5.co")
    }

    pub fn set(mut self, at: usize, value: &[u8]) -> Self {
        self.bytes[at..at + value.len()].copy_from_slice(value);
        self
    }

    pub fn u64_at(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.bytes[at..at + 8].try_into().unwrap())
    }

    pub fn u32_at(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.bytes[at..at + 4].try_into().unwrap())
    }

    pub fn u16_at(&self, at: usize) -> u16 {
        u16::from_le_bytes(self.bytes[at..at + 2].try_into().unwrap())
    }

    pub fn usize_at(&self, at: usize) -> usize {
        usize::try_from(self.u64_at(at)).unwrap()
    }

    /// Places of the program headers of a type.
    pub fn program_headers(&self, kind: u32) -> Vec<usize> {
        let start = self.usize_at(32);
        (0..usize::from(self.u16_at(56)))
            .map(|index| start + 56 * index)
            .filter(|&at| self.u32_at(at) == kind)
            .collect()
    }

    /// Sets a 64-bit field of the `index`th program header of a type.
    pub fn segment(self, kind: u32, index: usize, field: usize, value: u64) -> Self {
        let at = self.program_headers(kind)[index];
        self.set(at + field, &value.to_le_bytes())
    }

    /// Place in the file of an address.
    pub fn place(&self, vaddr: u64) -> usize {
        let found = self.program_headers(PT_LOAD).into_iter().find_map(|at| {
            let offset = vaddr.checked_sub(self.u64_at(at + program::VADDR))?;
            let inside = offset < self.u64_at(at + program::FILE_BYTES);
            inside.then(|| self.u64_at(at + program::OFFSET) + offset)
        });
        usize::try_from(found.unwrap()).unwrap()
    }

    /// Place of the dynamic entry with this tag.
    pub fn dynamic(&self, tag: u64) -> usize {
        let header = self.program_headers(PT_DYNAMIC)[0];
        let start = self.usize_at(header + program::OFFSET);
        let bytes = self.usize_at(header + program::FILE_BYTES);
        (start..start + bytes).step_by(16).find(|&at| self.u64_at(at) == tag).unwrap()
    }

    pub fn dynamic_value(&self, tag: u64) -> u64 {
        self.u64_at(self.dynamic(tag) + 8)
    }

    pub fn set_dynamic(self, tag: u64, value: u64) -> Self {
        let at = self.dynamic(tag) + 8;
        self.set(at, &value.to_le_bytes())
    }

    /// Place of a `.dynsym` entry.
    pub fn symbol(&self, name: &str) -> usize {
        let count = self.u32_at(self.place(self.dynamic_value(4)) + 4);
        let table = self.place(self.dynamic_value(6));
        let strings = self.place(self.dynamic_value(5));
        let found = (0..count as usize).map(|index| table + 24 * index).find(|&at| {
            let start = strings + self.u32_at(at) as usize;
            self.bytes[start..].starts_with(name.as_bytes()) && self.bytes[start + name.len()] == 0
        });
        found.unwrap()
    }

    pub fn set_symbol_value(self, name: &str, value: u64) -> Self {
        let at = self.symbol(name) + 8;
        self.set(at, &value.to_le_bytes())
    }

    pub fn set_symbol_size(self, name: &str, value: u64) -> Self {
        let at = self.symbol(name) + 16;
        self.set(at, &value.to_le_bytes())
    }

    /// Place of a kernel's descriptor.
    pub fn descriptor(&self, symbol: &str) -> usize {
        self.place(self.u64_at(self.symbol(symbol) + 8))
    }

    /// Drops the section headers, as a tool that keeps only what loading needs would.
    pub fn without_sections(self) -> Self {
        self.set(40, &[0; 8]).set(60, &[0; 2]).set(62, &[0; 2])
    }

    #[track_caller]
    pub fn error(&self) -> Error {
        CodeObject::parse(&self.bytes).expect_err("the object is malformed")
    }

    #[track_caller]
    pub fn parses(&self) -> CodeObject<'_> {
        match CodeObject::parse(&self.bytes) {
            Ok(object) => object,
            Err(error) => panic!("{error:?}"),
        }
    }
}

/// Asserts that the error of a patched object matches a pattern.
macro_rules! assert_refused {
    ($patch:expr, $pattern:pat $(if $guard:expr)?) => {{
        let error = $patch.error();
        assert!(matches!(error, $pattern $(if $guard)?), "{error:?}");
    }};
}
pub(crate) use assert_refused;
