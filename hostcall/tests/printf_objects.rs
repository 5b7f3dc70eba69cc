//! The printf metadata of compiled code objects.

use std::fs;
use std::path::Path;

use hostcall::printf::{DrainLimits, FormatTable, Lookup, RecordKind, Records, drain};
use hsaco::CodeObject;

fn table(name: &str) -> FormatTable {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/code-objects").join(name);
    let file = fs::read(path).unwrap();
    let object = CodeObject::parse(&file).unwrap();
    FormatTable::new(object.printf_strings().unwrap().iter().copied())
}

#[test]
fn a_hip_module_s_formats_are_found_by_the_hashes_that_its_code_writes() {
    let table = table("printf_buffered.gfx90a.v5.co");
    assert_eq!((table.kind(), table.errors()), (RecordKind::Hip, &[][..]));
    let hash = 0xd8ae_465a_b908_74ad_u64;
    assert!(matches!(table.hash(hash), Lookup::Format { .. }));
    let mut record = vec![0; 4];
    record.extend_from_slice(&hash.to_le_bytes());
    record.extend_from_slice(b"literal\0");
    for word in [1.5f64.to_bits(), 1 << 40, 0x78, 0] {
        record.extend_from_slice(&word.to_le_bytes());
    }
    let size = u32::try_from(record.len()).unwrap();
    record[..4].copy_from_slice(&(size << 2 | 2).to_le_bytes());
    let mut text = Vec::new();
    let drained = drain(
        Records::new(&record, &table),
        &DrainLimits::default(),
        &mut Vec::new(),
        |_, line| {
            text.extend_from_slice(line);
        },
    );
    assert_eq!(text, b"odd literal  1.50 1099511627776 x (nil) %\n");
    assert_eq!((drained.printed, drained.odd), (1, 0));
}

#[test]
fn an_open_cl_module_s_formats_are_found_by_id() {
    for name in ["ocl.gfx90a.v5.co", "ocl.gfx1100.v5.co"] {
        let table = table(name);
        assert_eq!((table.kind(), table.errors()), (RecordKind::OpenCl, &[][..]));
        let words = [2, 7, 0.25f32.to_bits(), 1];
        let records: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut text = Vec::new();
        let _ = drain(
            Records::new(&records, &table),
            &DrainLimits::default(),
            &mut Vec::new(),
            |_, line| {
                text.extend_from_slice(line);
            },
        );
        assert_eq!(text, b"a=7 b=0.250000\nsecond\n");
    }
}
