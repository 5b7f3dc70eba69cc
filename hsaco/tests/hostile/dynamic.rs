//! PT_DYNAMIC and the symbol tables.

use hsaco::Error;

use crate::patch::{PT_DYNAMIC, Patch, assert_refused, program};

const DT_HASH: u64 = 4;
const DT_STRTAB: u64 = 5;
const DT_SYMTAB: u64 = 6;
const DT_RELA: u64 = 7;
const DT_RELASZ: u64 = 8;
const DT_RELAENT: u64 = 9;
const DT_STRSZ: u64 = 10;
const DT_SYMENT: u64 = 11;

fn globals() -> Patch {
    Patch::of("globals.gfx90a.stripped.v5.co")
}

#[test]
fn tables_must_be_in_loaded_file_bytes() {
    for (tag, name) in [
        (DT_SYMTAB, "DT_SYMTAB"),
        (DT_STRTAB, "DT_STRTAB"),
        (DT_RELA, "DT_RELA"),
        (DT_HASH, "DT_HASH"),
    ] {
        for vaddr in [0x7fff_0000, u64::MAX - 4, 1 << 63] {
            let patch = globals().set_dynamic(tag, vaddr);
            assert_refused!(patch, Error::TableOutside { table, .. } if table == name);
        }
    }
}

#[test]
fn a_string_table_that_is_too_small_is_refused() {
    for bytes in [0, 1, 5] {
        let patch = globals().set_dynamic(DT_STRSZ, bytes);
        assert_refused!(patch, Error::SymbolName { table: ".dynsym", .. });
    }
    assert_refused!(
        globals().set_dynamic(DT_STRSZ, 1 << 40),
        Error::TableOutside { table: "DT_STRTAB", .. }
    );
}

#[test]
fn a_symbol_name_past_its_table_is_refused() {
    let patch = globals();
    let at = patch.symbol("counter");
    let patch = patch.set(at, &u32::MAX.to_le_bytes());
    assert_refused!(patch, Error::SymbolName { offset: u32::MAX, .. });
}

#[test]
fn a_string_without_its_end_is_refused() {
    let patch = globals();
    let bytes = patch.dynamic_value(DT_STRSZ);
    let end = patch.place(patch.dynamic_value(DT_STRTAB) + bytes - 1);
    assert_eq!(patch.bytes[end], 0);
    assert_refused!(patch.set_dynamic(DT_STRSZ, bytes - 1), Error::SymbolName { .. });
}

#[test]
fn entry_sizes_are_checked() {
    for size in [0, 16, 25] {
        let patch = globals().set_dynamic(DT_SYMENT, size);
        assert_refused!(patch, Error::Dynamic { tag: "DT_SYMENT", .. });
        let patch = globals().set_dynamic(DT_RELAENT, size);
        assert_refused!(patch, Error::Dynamic { tag: "DT_RELAENT", .. });
    }
    let size = globals().dynamic_value(DT_RELASZ);
    let patch = globals().set_dynamic(DT_RELASZ, size - 1);
    assert_refused!(patch, Error::Dynamic { tag: "DT_RELASZ", .. });
    let patch = globals().set_dynamic(DT_RELASZ, 24 << 40);
    assert_refused!(patch, Error::TableOutside { table: "DT_RELA", .. });
}

#[test]
fn a_hash_table_that_claims_too_many_symbols_is_refused() {
    let patch = globals();
    let at = patch.place(patch.dynamic_value(DT_HASH)) + 4;
    let patch = patch.set(at, &u32::MAX.to_le_bytes());
    assert_refused!(patch, Error::TableOutside { table: "DT_SYMTAB", .. });
}

#[test]
fn a_dynamic_segment_needs_its_end_mark() {
    let patch = globals();
    let at = patch.dynamic(0);
    let start = patch.usize_at(patch.program_headers(PT_DYNAMIC)[0] + program::OFFSET);
    let patch = patch.segment(PT_DYNAMIC, 0, program::FILE_BYTES, (at - start) as u64);
    assert_refused!(patch, Error::Dynamic { tag: "DT_NULL", problem: "missing" });
}

#[test]
fn duplicate_and_missing_tags_are_refused() {
    let patch = globals();
    let at = patch.dynamic(DT_SYMENT);
    let twice = patch.clone().set(at, &DT_STRSZ.to_le_bytes());
    assert_refused!(twice, Error::Dynamic { tag: "DT_STRSZ", problem: "given twice" });
    let at = patch.dynamic(DT_STRSZ);
    let missing = patch.clone().set(at, &0x6fff_0000_u64.to_le_bytes());
    assert_refused!(missing, Error::Dynamic { tag: "DT_STRSZ", problem: "missing" });
    let at = patch.dynamic(DT_RELASZ);
    let missing = patch.set(at, &0x6fff_0000_u64.to_le_bytes());
    assert_refused!(missing, Error::Dynamic { tag: "DT_RELASZ", problem: "missing" });
}

#[test]
fn symbols_are_counted_by_the_gnu_hash_table_when_it_is_the_only_one() {
    for name in ["globals.gfx90a.stripped.v5.co", "reloc.gfx1100.v5.co", "bigvgpr.gfx90a.v5.co"] {
        let whole = Patch::of(name).without_sections();
        let at = whole.dynamic(DT_HASH);
        let gnu_only = whole.clone().set(at, &0x6fff_0000_u64.to_le_bytes());
        let (whole, gnu_only) = (whole.parses(), gnu_only.parses());
        assert_eq!(whole.variables(), gnu_only.variables());
        assert_eq!(whole.kernels().len(), gnu_only.kernels().len());
    }
    let patch = globals();
    let at = patch.dynamic(DT_HASH);
    let patch = patch.set(at, &0x6fff_0000_u64.to_le_bytes());
    let buckets = patch.place(patch.dynamic_value(0x6fff_fef5));
    for words in [[u32::MAX; 3], [1, u32::MAX, 0], [1, 0, u32::MAX]] {
        let words: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let patch = patch.clone().set(buckets, &words);
        assert_refused!(patch, Error::TableOutside { .. });
    }
}

#[test]
fn no_hash_table_means_no_count() {
    let mut patch = globals();
    for tag in [DT_HASH, 0x6fff_fef5] {
        let at = patch.dynamic(tag);
        patch = patch.set(at, &0x6fff_0000_u64.to_le_bytes());
    }
    assert_refused!(patch, Error::Dynamic { tag: "DT_HASH or DT_GNU_HASH", .. });
}

#[test]
fn variables_must_be_inside_the_image() {
    for size in [1 << 60, u64::MAX] {
        let patch = globals().set_symbol_size("counter", size);
        assert_refused!(patch, Error::SymbolOutside { bytes, .. } if bytes == size);
    }
    let patch = globals().set_symbol_value("counter", u64::MAX - 2);
    assert_refused!(patch, Error::SymbolOutside { .. });
}

#[test]
fn a_name_defined_twice_is_refused() {
    let patch = globals();
    let (one, other) = (patch.symbol("counter"), patch.symbol("zeroed"));
    let name = patch.u32_at(one).to_le_bytes();
    let patch = patch.set(other, &name);
    assert_refused!(patch, Error::DuplicateSymbol { ref name } if name == "counter");
}

#[test]
fn a_symbol_table_section_is_checked_too() {
    // e_shoff and the type of each section lead to .symtab (2).
    let patch = Patch::of("globals.gfx90a.v5.co");
    let start = patch.usize_at(40);
    let found = (0..usize::from(patch.u16_at(60)))
        .map(|index| start + 64 * index)
        .find(|&at| patch.u32_at(at + 4) == 2);
    let symtab = found.unwrap();
    let outside = patch.clone().set(symtab + 24, &u64::MAX.to_le_bytes());
    assert_refused!(outside, Error::Truncated { what: ".symtab", .. });
    let unlinked = patch.set(symtab + 40, &999_u32.to_le_bytes());
    assert_refused!(unlinked, Error::Header { field: "sh_link", value: 999 });
}

#[test]
fn a_stripped_object_has_all_its_variables() {
    let whole = Patch::of("globals.gfx90a.v5.co");
    let stripped = globals();
    let (whole, stripped) = (whole.parses(), stripped.parses());
    assert!(!whole.is_stripped() && stripped.is_stripped());
    assert_eq!(whole.variables(), stripped.variables());
    let counter = stripped.variable("counter").unwrap();
    assert_eq!(counter.bytes, 4);
    assert_eq!(&stripped.bytes_at(counter.vaddr).unwrap()[..4], &7_u32.to_le_bytes());
    assert!(stripped.variable("Counter").is_none());
}
