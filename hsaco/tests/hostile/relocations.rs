//! Relocations.

use hsaco::{CodeObject, Error, Image};

use crate::patch::{PT_LOAD, Patch, fixture, program};

const ABS64: u32 = 3;
const RELATIVE64: u32 = 13;

struct Table {
    patch: Patch,
    start: usize,
    count: usize,
}

fn table(name: &str) -> Table {
    let patch = Patch::of(name);
    let start = patch.place(patch.dynamic_value(7));
    let count = usize::try_from(patch.dynamic_value(8)).unwrap() / 24;
    Table { patch, start, count }
}

impl Table {
    /// The object with its first relocation replaced.
    fn first(&self, offset: u64, symbol: u32, kind: u32, addend: i64) -> Patch {
        let info = u64::from(symbol) << 32 | u64::from(kind);
        let patch = self.patch.clone().set(self.start, &offset.to_le_bytes());
        patch.set(self.start + 8, &info.to_le_bytes()).set(self.start + 16, &addend.to_le_bytes())
    }

    fn offset(&self, index: usize) -> u64 {
        self.patch.u64_at(self.start + 24 * index)
    }
}

#[track_caller]
fn image(patch: &Patch, base: u64) -> Result<Image, Error> {
    CodeObject::parse(&patch.bytes).unwrap().image(base)
}

fn word(image: &Image, vaddr: u64) -> u64 {
    let at = usize::try_from(vaddr).unwrap();
    u64::from_le_bytes(image.bytes()[at..at + 8].try_into().unwrap())
}

#[test]
fn relative_relocations_move_with_the_base() {
    let bytes = fixture("globals.gfx90a.v5.co");
    let object = CodeObject::parse(&bytes).unwrap();
    let counter = object.variable("counter").unwrap().vaddr;
    let floats = object.variable("table").unwrap().vaddr;
    for base in [0, 0x7f12_3456_7000, 0xffff_ffff_0000_0000] {
        let image = object.image(base).unwrap();
        let pointer = |name| word(&image, object.variable(name).unwrap().vaddr);
        assert_eq!(pointer("ptr_to_counter"), base + counter);
        assert_eq!(pointer("ptr_into_table"), base + floats + 5 * 4);
        assert_eq!(image.address_of(counter), base + counter);
    }
}

#[test]
fn symbol_relocations_take_the_symbols_address() {
    let bytes = fixture("reloc.gfx90a.v5.co");
    let object = CodeObject::parse(&bytes).unwrap();
    let base = 0x10_0000;
    let image = object.image(base).unwrap();
    let at = |name| object.variable(name).unwrap().vaddr;
    let pointers = at("ptrs");
    assert_eq!(word(&image, pointers), base + at("pub"));
    assert_eq!(word(&image, pointers + 8), base + at("pub_zero") + 8);
    assert_eq!(word(&image, at("chain")), base + pointers + 8);
}

#[test]
fn only_relocated_words_depend_on_the_base() {
    for name in ["reloc.gfx1100.v5.co", "globals.gfx1100.v5.co", "vadd.gfx1100.v5.co"] {
        let bytes = fixture(name);
        let object = CodeObject::parse(&bytes).unwrap();
        let (low, high) = (object.image(0x1000).unwrap(), object.image(0x2000).unwrap());
        let changed: usize = (low.bytes().chunks(8).zip(high.bytes().chunks(8)))
            .filter(|(one, other)| one != other)
            .count();
        assert_eq!(changed, object.relocation_counts().values().sum::<usize>(), "{name}");
    }
}

#[test]
fn an_image_is_the_files_segments_at_their_addresses() {
    for name in ["stack.gfx90a.v5.co", "triton_softmax.gfx1100.co", "iree_mul.gfx90a.co"] {
        let patch = Patch::of(name);
        let image = image(&patch, 0).unwrap();
        let mut expected = vec![0; usize::try_from(image.load_bytes()).unwrap()];
        for at in patch.program_headers(PT_LOAD) {
            let field = |offset| patch.usize_at(at + offset);
            let (from, bytes) = (field(program::OFFSET), field(program::FILE_BYTES));
            let to = field(program::VADDR);
            expected[to..to + bytes].copy_from_slice(&patch.bytes[from..from + bytes]);
        }
        let Table { patch, start, count } = table_or_empty(name);
        for index in 0..count {
            let at = start + 24 * index;
            assert_eq!(patch.u32_at(at + 8), RELATIVE64);
            let to = patch.usize_at(at);
            expected[to..to + 8].copy_from_slice(&patch.bytes[at + 16..at + 24]);
        }
        let mut memory = vec![0xaa; expected.len()];
        image.write_to(&mut memory).unwrap();
        assert!(memory == expected, "{name}");
        assert!(image.write_to(&mut memory[1..]).is_err());
    }
}

fn table_or_empty(name: &str) -> Table {
    let patch = Patch::of(name);
    let object = CodeObject::parse(&patch.bytes).unwrap();
    if object.relocation_counts().is_empty() {
        return Table { patch: Patch::of(name), start: 0, count: 0 };
    }
    table(name)
}

#[test]
fn bases_must_be_pages_below_the_end_of_memory() {
    let patch = Patch::vadd();
    for base in [1, 0x800, 0xffff_ffff_ffff_f000] {
        assert!(matches!(image(&patch, base), Err(Error::Base { base: b, .. }) if b == base));
    }
}

#[test]
fn places_outside_writable_segments_are_refused() {
    let table = table("globals.gfx90a.v5.co");
    let object = CodeObject::parse(&table.patch.bytes).unwrap();
    let code = object.kernels()[0].entry_vaddr();
    let descriptor = object.kernels()[0].descriptor_vaddr();
    let end = object.load_bytes();
    for offset in [end - 4, end, u64::MAX - 3, u64::MAX - 8, 0x10, code, descriptor] {
        let patch = table.first(offset, 0, RELATIVE64, 0);
        let error = image(&patch, 0).unwrap_err();
        assert!(
            matches!(error, Error::RelocationOutside { index: 0, vaddr, .. } if vaddr == offset),
            "{error:?}"
        );
    }
}

#[test]
fn a_descriptor_in_a_writable_segment_is_not_relocated() {
    let table = table("globals.gfx90a.v5.co");
    let object = CodeObject::parse(&table.patch.bytes).unwrap();
    let descriptor = object.kernels()[0].descriptor_vaddr();
    for offset in [descriptor - 7, descriptor, descriptor + 56] {
        let patch = table.first(offset, 0, RELATIVE64, 0);
        let first = patch.program_headers(PT_LOAD)[0];
        let patch = patch.set(first + 4, &[6]);
        let error = image(&patch, 0).unwrap_err();
        assert!(matches!(error, Error::RelocationInDescriptor { index: 0, .. }), "{error:?}");
    }
    let patch = table.first(descriptor - 8, 0, RELATIVE64, 0);
    let first = patch.program_headers(PT_LOAD)[0];
    image(&patch.set(first + 4, &[6]), 0).unwrap();
}

#[test]
fn unaligned_places_are_legal() {
    // A packed structure with a pointer in it makes one.
    let table = table("globals.gfx90a.v5.co");
    let place = table.offset(0) - 1;
    let image = image(&table.first(place, 0, RELATIVE64, 0x77), 0x4000).unwrap();
    assert_eq!(word(&image, place), 0x4077);
}

#[test]
fn addends_may_leave_the_image() {
    let table = table("globals.gfx90a.v5.co");
    let place = table.offset(0);
    let image = image(&table.first(place, 0, RELATIVE64, -0x5000), 0x4000).unwrap();
    assert_eq!(word(&image, place), 0_u64.wrapping_sub(0x1000));
}

#[test]
fn symbols_past_the_table_are_refused() {
    let table = table("reloc.gfx90a.v5.co");
    let patch = table.first(table.offset(0), 0xff_ffff, ABS64, 0);
    let error = image(&patch, 0).unwrap_err();
    assert!(matches!(error, Error::RelocationSymbol { symbol: 0xff_ffff, .. }), "{error:?}");
}

#[test]
fn types_that_linked_objects_cannot_have_are_refused() {
    let table = table("globals.gfx90a.v5.co");
    for kind in [4, 5, 7, 10, 12, 14, 15, 255, u32::MAX] {
        let error = image(&table.first(table.offset(0), 0, kind, 0), 0).unwrap_err();
        assert!(matches!(error, Error::RelocationType { kind: k, .. } if k == kind), "{error:?}");
    }
    image(&table.first(u64::MAX, 0, 0, 0), 0).unwrap();
}

#[test]
fn halves_of_an_address_go_to_32_bit_places() {
    let table = table("reloc.gfx90a.v5.co");
    let object = CodeObject::parse(&table.patch.bytes).unwrap();
    let public = object.variable("pub").unwrap().vaddr;
    let at = table.patch.symbol("pub");
    let first = table.patch.place(table.patch.dynamic_value(6));
    let symbol = u32::try_from((at - first) / 24).unwrap();
    let base = 0x1234_5678_9000;
    let address = base + public + 1;
    for (kind, half) in [(1, address & 0xffff_ffff), (6, address & 0xffff_ffff), (2, address >> 32)]
    {
        let place = table.offset(0);
        let before = word(&image(&table.first(place, 0, 0, 0), base).unwrap(), place);
        let image = image(&table.first(place, symbol, kind, 1), base).unwrap();
        assert_eq!(word(&image, place), before & !0xffff_ffff | half, "type {kind}");
    }
}

#[test]
fn undefined_symbols_are_looked_up_and_named() {
    let table = table("reloc.gfx90a.v5.co");
    let at = table.patch.symbol("pub_zero");
    let patch = table.patch.clone().set(at + 6, &[0, 0]).without_sections();
    let error = image(&patch, 0).unwrap_err();
    assert!(
        matches!(error, Error::UndefinedSymbol { ref name } if name == "pub_zero"),
        "{error:?}"
    );
    let object = CodeObject::parse(&patch.bytes).unwrap();
    let resolve = |name: &str| (name == "pub_zero").then_some(0xabc_0000);
    let image = hsaco::load::image(&object, 0, &resolve).unwrap();
    assert_eq!(word(&image, object.variable("ptrs").unwrap().vaddr + 8), 0xabc_0008);
}

#[test]
fn a_base_address_that_is_not_zero_in_the_object_is_taken_off() {
    // All addresses of the object moved by 0x10000: every PT_LOAD, symbol and table address.
    let shift = 0x1_0000;
    let original = Patch::vadd().without_sections();
    let mut patch = original.clone();
    for at in [2, PT_LOAD].into_iter().flat_map(|kind| original.program_headers(kind)) {
        let vaddr = original.u64_at(at + program::VADDR) + shift;
        patch = patch.set(at + program::VADDR, &vaddr.to_le_bytes());
    }
    for symbol in ["vadd", "vadd.kd", "__hip_cuid_"] {
        let value = original.u64_at(original.symbol(symbol) + 8) + shift;
        let at = original.symbol(symbol) + 8;
        patch = patch.set(at, &value.to_le_bytes());
    }
    for tag in [4, 5, 6, 0x6fff_fef5] {
        let at = original.dynamic(tag) + 8;
        let value = original.u64_at(at) + shift;
        patch = patch.set(at, &value.to_le_bytes());
    }
    let moved = patch.parses();
    let original = original.parses();
    assert_eq!(moved.load_bytes(), original.load_bytes());
    let (here, there) = (original.image(0x5000).unwrap(), moved.image(0x5000).unwrap());
    assert_eq!(
        here.address_of(original.kernels()[0].descriptor_vaddr()),
        there.address_of(moved.kernels()[0].descriptor_vaddr())
    );
}

#[test]
fn a_million_relocations_at_one_place_end_soon() {
    // The table of relocations moved to the end of the file, as a segment of its own.
    let table = table("globals.gfx90a.v5.co");
    let entry = table.patch.bytes[table.start..table.start + 24].to_vec();
    let mut patch = table.patch.clone().without_sections();
    let start = patch.bytes.len() as u64;
    let bytes = 24_000_000_u64;
    for _ in 0..1_000_000 {
        patch.bytes.extend_from_slice(&entry);
    }
    let last = patch.program_headers(PT_LOAD).len() - 1;
    let end = {
        let at = patch.program_headers(PT_LOAD)[last];
        patch.u64_at(at + program::VADDR) + patch.u64_at(at + program::MEMORY_BYTES)
    };
    let vaddr = end.next_multiple_of(0x1000);
    // GNU_RELRO (0x6474e552) gives its header for the new segment.
    let header = patch.program_headers(0x6474_e552)[0];
    let fields = [1 | 4 << 32, start, vaddr, vaddr, bytes, bytes, 0x1000];
    for (index, field) in fields.into_iter().enumerate() {
        patch = patch.set(header + 8 * index, &u64::to_le_bytes(field));
    }
    // Headers must ascend: the new one goes after the last PT_LOAD already.
    let patch = patch.set_dynamic(7, vaddr).set_dynamic(8, bytes);
    let began = std::time::Instant::now();
    let object = patch.parses();
    assert_eq!(object.relocation_counts()[&RELATIVE64], 1_000_000);
    object.image(0x1000).unwrap();
    assert!(began.elapsed() < std::time::Duration::from_secs(5));
}
