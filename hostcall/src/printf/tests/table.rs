use crate::format::Needs;
use crate::printf::{EntryError, FormatTable, Lookup, RecordKind};

#[test]
fn hip_entries_are_a_hash_and_an_unescaped_format() {
    let table = FormatTable::new(["0:0:d8ae465ab90874ad,odd %s, a:b %d\\n\n"]);
    assert_eq!(table.kind(), RecordKind::Hip);
    assert_eq!(table.errors(), []);
    let needs = Needs { words: 1, texts: 1 };
    let format = b"odd %s, a:b %d\\n\n";
    assert_eq!(table.hash(0xd8ae_465a_b908_74ad), Lookup::Format { format, needs });
    assert_eq!(table.hash(1), Lookup::Unknown);
}

#[test]
fn the_same_format_twice_is_one_and_two_formats_of_one_hash_are_ambiguous() {
    let table = FormatTable::new(["0:0:a,x", "0:0:b,y", "0:0:a,x", "0:0:b,z"]);
    assert!(matches!(table.hash(0xa), Lookup::Format { format: b"x", .. }));
    assert_eq!(table.hash(0xb), Lookup::Ambiguous);
    assert_eq!(table.errors(), []);
}

#[test]
fn the_entry_of_a_module_with_run_time_formats_only_is_read() {
    let table = FormatTable::new(["0:0:ffffffff,\"Non const format string\""]);
    assert_eq!((table.kind(), table.errors()), (RecordKind::Hip, &[][..]));
    assert!(matches!(table.hash(0xffff_ffff), Lookup::Format { .. }));
}

#[test]
fn open_cl_entries_have_sizes_and_escapes() {
    let table = FormatTable::new(["1:0:second\\n", "2:2:4:8:a=%d\\72 b=%f\\a\\q\\"]);
    assert_eq!(table.kind(), RecordKind::OpenCl);
    assert_eq!(table.errors(), []);
    let first = table.id(1).unwrap();
    assert_eq!((&first.sizes[..], &first.format[..]), (&[][..], &b"second\n"[..]));
    let second = table.id(2).unwrap();
    assert_eq!((&second.sizes[..], second.arguments_bytes), (&[4, 8][..], 12));
    assert_eq!(second.format, b"a=%d: b=%f\x07\\q\\");
    assert!(table.id(3).is_none());
}

#[test]
fn open_cl_entries_can_name_fewer_sizes_than_arguments() {
    // One conversion, two arguments: the compiler stores and names the first only.
    let table = FormatTable::new(["1:2:4:%d\\n"]);
    assert_eq!(table.errors(), []);
    assert_eq!(table.id(1).unwrap().sizes, [4]);
}

#[test]
fn malformed_entries_are_named_and_left_out() {
    let bad = [
        "",
        "1",
        "1:",
        "x:0:f",
        "1:y:f",
        "0:0:nohash",
        "0:0:,f",
        "0:0:12345678123456781,f",
        "1:1:four:f",
        "1:1:-4:f",
        "2:2:4294967295:4294967295:f",
        "2:1:4294967293:f",
        "3:1:4:4:f",
        "99999999999:0:f",
    ];
    for entry in bad {
        let table = FormatTable::new([entry, "0:0:1,good"]);
        assert_eq!(table.errors().len(), 1, "{entry:?}: {:?}", table.errors());
        assert!(matches!(table.hash(1), Lookup::Format { .. }), "{entry:?}");
    }
}

#[test]
fn a_mixed_table_keeps_the_kind_of_its_first_entry() {
    let table = FormatTable::new(["0:0:1,hip", "1:0:opencl"]);
    assert_eq!(
        (table.kind(), table.errors()),
        (RecordKind::Hip, &[EntryError::Mixed { entry: 1 }][..])
    );
    let table = FormatTable::new(["1:0:opencl", "0:0:1,hip"]);
    assert_eq!(table.kind(), RecordKind::OpenCl);
    assert_eq!(table.errors(), [EntryError::Mixed { entry: 1 }]);
}

#[test]
fn an_open_cl_id_with_two_formats_has_none() {
    let table = FormatTable::new(["1:0:a", "1:0:a", "2:0:b", "2:1:4:b%d"]);
    assert!(table.id(1).is_some());
    assert!(table.id(2).is_none());
    assert_eq!(table.errors(), [EntryError::DuplicateId { entry: 3 }]);
}

#[test]
fn every_prefix_of_an_entry_is_read_or_refused() {
    for entry in ["0:0:2319109160b18660,hello %d\n", "2:2:4:4:a=%d b=%f\\72\\n"] {
        for end in 0..=entry.len() {
            let table = FormatTable::new([&entry[..end]]);
            assert!(table.errors().len() <= 1);
        }
    }
}
