use super::*;

/// A MessagePack value to encode, plainly and in the widths a test asks for.
#[derive(Clone)]
enum Value {
    Raw(Vec<u8>),
    Text(String),
    Number(u32),
    List(Vec<Value>),
    Map(Vec<(Value, Value)>),
}

use Value::{List, Map, Number, Raw};

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

fn map(entries: &[(&str, Value)]) -> Value {
    Map(entries.iter().map(|(key, value)| (text(key), value.clone())).collect())
}

fn count(value: usize) -> [u8; 4] {
    u32::try_from(value).unwrap().to_be_bytes()
}

fn encode(value: &Value, out: &mut Vec<u8>) {
    match value {
        Raw(bytes) => out.extend(bytes),
        Value::Text(text) => {
            out.push(0xdb);
            out.extend(count(text.len()));
            out.extend(text.as_bytes());
        }
        Number(number) => {
            out.push(0xce);
            out.extend(number.to_be_bytes());
        }
        List(items) => {
            out.push(0xdd);
            out.extend(count(items.len()));
            items.iter().for_each(|item| encode(item, out));
        }
        Map(entries) => {
            out.push(0xdf);
            out.extend(count(entries.len()));
            for (key, value) in entries {
                encode(key, out);
                encode(value, out);
            }
        }
    }
}

fn bytes(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    encode(value, &mut out);
    out
}

fn argument(offset: u32, size: u32, kind: &str) -> Value {
    map(&[(".offset", Number(offset)), (".size", Number(size)), (".value_kind", text(kind))])
}

/// A kernel with a 64-byte kernarg segment; `extra` replaces keys or adds some.
fn kernel(extra: &[(&str, Value)]) -> Value {
    let required = [
        (".name", text("k")),
        (".symbol", text("k.kd")),
        (".kernarg_segment_size", Number(64)),
        (".kernarg_segment_align", Number(8)),
        (".group_segment_fixed_size", Number(0)),
        (".private_segment_fixed_size", Number(0)),
        (".wavefront_size", Number(64)),
        (".max_flat_workgroup_size", Number(1024)),
        (".sgpr_count", Number(10)),
        (".vgpr_count", Number(4)),
    ];
    let kept = required.iter().filter(|(key, _)| extra.iter().all(|(other, _)| key != other));
    let entries: Vec<(&str, Value)> = kept.chain(extra).cloned().collect();
    map(&entries)
}

fn note(kernels: Vec<Value>) -> Value {
    map(&[("amdhsa.version", List(vec![Number(1), Number(2)])), ("amdhsa.kernels", List(kernels))])
}

#[track_caller]
fn problem(value: &Value) -> MetadataProblem {
    let bytes = bytes(value);
    match Metadata::parse(&bytes).unwrap_err() {
        Error::Metadata { problem, .. } => problem,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn kernel_problem(extra: &[(&str, Value)]) -> MetadataProblem {
    problem(&note(vec![kernel(extra)]))
}

#[test]
fn an_object_may_have_no_kernels() {
    assert!(Metadata::parse(&bytes(&note(Vec::new()))).unwrap().kernels.is_empty());
}

#[test]
fn a_kernel_may_have_no_argument_list() {
    let bytes = bytes(&note(vec![kernel(&[])]));
    let metadata = Metadata::parse(&bytes).unwrap();
    let kernel = metadata.kernels.first().unwrap();
    assert_eq!((kernel.name, kernel.symbol), ("k", "k.kd"));
    assert_eq!(kernel.args, None);
    assert_eq!(kernel.kind, KernelKind::Normal);
}

#[test]
fn every_integer_width_is_read() {
    let encodings: [&[u8]; 10] = [
        &[64],
        &[0xcc, 64],
        &[0xcd, 0, 64],
        &[0xce, 0, 0, 0, 64],
        &[0xcf, 0, 0, 0, 0, 0, 0, 0, 64],
        &[0xd0, 64],
        &[0xd1, 0, 64],
        &[0xd2, 0, 0, 0, 64],
        &[0xd3, 0, 0, 0, 0, 0, 0, 0, 64],
        &[0x40],
    ];
    for encoding in encodings {
        let number = Raw(encoding.to_vec());
        let bytes = bytes(&note(vec![kernel(&[(".kernarg_segment_size", number)])]));
        let metadata = Metadata::parse(&bytes).unwrap();
        assert_eq!(metadata.kernels.first().unwrap().kernarg_segment_size, 64, "{encoding:x?}");
    }
}

#[test]
fn numbers_out_of_range_are_refused_with_their_value() {
    let cases: [(&[u8], i128); 7] = [
        (&[0xff], -1),
        (&[0xd0, 0x80], -128),
        (&[0xd1, 0xff, 0xfe], -2),
        (&[0xd2, 0x80, 0, 0, 0], -(1 << 31)),
        (&[0xd3, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], -1),
        (&[0xcf, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], u64::MAX as i128),
        (&[0xcf, 0, 0, 0, 1, 0, 0, 0, 0], 1 << 32),
    ];
    for (encoding, value) in cases {
        let found = kernel_problem(&[(".sgpr_count", Raw(encoding.to_vec()))]);
        assert_eq!(found, MetadataProblem::Range { key: ".sgpr_count", value });
    }
}

#[test]
fn wrong_types_are_refused() {
    let float = Raw(vec![0xcb, 0x40, 0x50, 0, 0, 0, 0, 0, 0]);
    let expected = "an integer";
    assert_eq!(
        kernel_problem(&[(".vgpr_count", float)]),
        MetadataProblem::Type { key: ".vgpr_count", expected }
    );
    assert_eq!(
        kernel_problem(&[(".vgpr_count", text("4"))]),
        MetadataProblem::Type { key: ".vgpr_count", expected }
    );
    assert_eq!(
        kernel_problem(&[(".uses_dynamic_stack", Number(1))]),
        MetadataProblem::Type { key: ".uses_dynamic_stack", expected: "a boolean" }
    );
    assert_eq!(
        kernel_problem(&[(".name", Number(1))]),
        MetadataProblem::Type { key: ".name", expected: "a string" }
    );
    assert_eq!(
        problem(&List(Vec::new())),
        MetadataProblem::Type { key: "the note", expected: "a map" }
    );
    assert_eq!(
        problem(&Map(vec![(Number(1), Number(1))])),
        MetadataProblem::Type { key: "a key", expected: "a string" }
    );
    assert_eq!(problem(&Raw(vec![0xc1])), MetadataProblem::Reserved);
    assert_eq!(kernel_problem(&[(".name", Raw(vec![0xa1, 0xff]))]), MetadataProblem::NotUtf8);
}

#[test]
fn every_required_key_is_required() {
    let Map(whole) = kernel(&[]) else { unreachable!() };
    for missing in 0..whole.len() {
        let mut entries = whole.clone();
        entries.remove(missing);
        let found = problem(&note(vec![Map(entries)]));
        assert!(matches!(found, MetadataProblem::Missing { .. }), "{found:?}");
    }
    assert_eq!(
        problem(&map(&[("amdhsa.kernels", List(Vec::new()))])),
        MetadataProblem::Missing { key: "amdhsa.version" }
    );
    assert_eq!(
        problem(&map(&[("amdhsa.version", List(vec![Number(1), Number(0)]))])),
        MetadataProblem::Missing { key: "amdhsa.kernels" }
    );
    for missing in 0..3 {
        let Map(mut entries) = argument(0, 8, "by_value") else { unreachable!() };
        entries.remove(missing);
        let found = kernel_problem(&[(".args", List(vec![Map(entries)]))]);
        assert!(matches!(found, MetadataProblem::Missing { .. }), "{found:?}");
    }
}

#[test]
fn duplicate_keys_are_refused() {
    let Map(mut entries) = kernel(&[]) else { unreachable!() };
    entries.push((text(".symbol"), text("other.kd")));
    assert_eq!(problem(&note(vec![Map(entries)])), MetadataProblem::Duplicate { key: ".symbol" });
}

#[test]
fn unknown_keys_are_skipped_whatever_they_hold() {
    let mut deep = vec![0x91; 100_000];
    deep.push(0x01);
    let values: [Vec<u8>; 12] = [
        vec![0xc0],
        vec![0xc4, 3, 1, 2, 3],
        vec![0xc5, 0, 1, 9],
        vec![0xc6, 0, 0, 0, 1, 9],
        vec![0xc7, 2, 7, 1, 2],
        vec![0xd4, 7, 1],
        vec![0xd8, 7, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
        vec![0xca, 0, 0, 0, 0],
        vec![0x82, 0xa1, b'a', 0x93, 1, 2, 3, 0xa1, b'b', 0x80],
        vec![0xde, 0, 1, 0xc0, 0xdc, 0, 2, 0xc2, 0xc3],
        vec![0xd9, 2, b'h', b'i'],
        deep,
    ];
    for value in values {
        let extra = [(".new_key", Raw(value.clone()))];
        let bytes = bytes(&note(vec![kernel(&extra)]));
        let parsed = Metadata::parse(&bytes);
        assert!(parsed.is_ok(), "{:x?}: {parsed:?}", &value.get(..8.min(value.len())));
    }
}

#[test]
fn counts_that_promise_too_much_end_soon() {
    let huge: [&[u8]; 6] = [
        &[0xdd, 0xff, 0xff, 0xff, 0xff],
        &[0xdf, 0xff, 0xff, 0xff, 0xff],
        &[0xdb, 0xff, 0xff, 0xff, 0xff],
        &[0xc6, 0xff, 0xff, 0xff, 0xff],
        &[0xc9, 0xff, 0xff, 0xff, 0xff, 1],
        &[0xdd, 0xff, 0xff, 0xff, 0xff, 0xdd, 0xff, 0xff, 0xff, 0xff],
    ];
    for value in huge {
        let skipped = map(&[("unknown", Raw(value.to_vec()))]);
        assert_eq!(problem(&skipped), MetadataProblem::Truncated, "{value:x?}");
    }
    for key in ["amdhsa.kernels", "amdhsa.printf"] {
        let list = map(&[(key, Raw(vec![0xdd, 0xff, 0xff, 0xff, 0xff]))]);
        assert_eq!(problem(&list), MetadataProblem::Truncated);
    }
    assert_eq!(problem(&Raw(vec![0xdf, 0xff, 0xff, 0xff, 0xff])), MetadataProblem::Truncated);
}

#[test]
fn a_note_cut_anywhere_is_truncated() {
    let args = List(vec![argument(0, 8, "global_buffer"), argument(8, 4, "by_value")]);
    let whole = bytes(&note(vec![kernel(&[(".args", args)])]));
    Metadata::parse(&whole).unwrap();
    for length in 0..whole.len() {
        let cut = whole.get(..length).unwrap();
        let error = Metadata::parse(cut).unwrap_err();
        let truncated =
            matches!(error, Error::Metadata { problem: MetadataProblem::Truncated, .. });
        assert!(truncated, "cut to {length}: {error:?}");
    }
}

#[test]
fn bytes_after_the_map_are_refused() {
    let mut bytes = bytes(&note(Vec::new()));
    bytes.extend([0, 0, 0]);
    let error = Metadata::parse(&bytes).unwrap_err();
    assert!(matches!(
        error,
        Error::Metadata { problem: MetadataProblem::Trailing { bytes: 3 }, .. }
    ));
}

#[test]
fn versions_past_1_2_are_refused() {
    for (major, minor) in [(2, 0), (1, 9), (1, 3), (0, 0)] {
        let version = List(vec![Number(major), Number(minor)]);
        let note = map(&[("amdhsa.version", version), ("amdhsa.kernels", List(Vec::new()))]);
        assert_eq!(problem(&note), MetadataProblem::Version { major, minor });
    }
    let long = List(vec![Number(1), Number(2), Number(0)]);
    assert!(matches!(problem(&map(&[("amdhsa.version", long)])), MetadataProblem::Type { .. }));
}

#[test]
fn values_outside_their_set_are_refused() {
    for (key, value) in [
        (".kernarg_segment_align", 3),
        (".kernarg_segment_align", 0),
        (".wavefront_size", 48),
        (".max_flat_workgroup_size", 0),
        (".max_flat_workgroup_size", 1025),
        (".workgroup_processor_mode", 2),
    ] {
        let found = kernel_problem(&[(key, Number(value))]);
        assert_eq!(found, MetadataProblem::Range { key, value: value.into() });
    }
    let kind = kernel_problem(&[(".kind", text("other"))]);
    assert!(matches!(kind, MetadataProblem::Type { key: ".kind", .. }));
}

#[test]
fn required_workgroup_sizes_are_three_that_fit() {
    let size = |numbers: &[u32]| {
        (".reqd_workgroup_size", List(numbers.iter().copied().map(Number).collect()))
    };
    for numbers in [&[64, 1][..], &[64, 1, 1, 1]] {
        let found = kernel_problem(&[size(numbers)]);
        assert!(matches!(found, MetadataProblem::Type { key: ".reqd_workgroup_size", .. }));
    }
    for (numbers, product) in
        [([0, 1, 1], 0), ([32, 32, 2], 2048), ([u32::MAX, u32::MAX, 2], u128::from(u64::MAX))]
    {
        let found = kernel_problem(&[size(&numbers)]);
        let value = i128::try_from(product).unwrap();
        let MetadataProblem::Range { key: ".reqd_workgroup_size", value: found } = found else {
            panic!("{found:?}");
        };
        // The product saturates; that it is far too large is all that matters.
        assert!(found == value || product > 1 << 60, "{found}");
    }
    let bytes = bytes(&note(vec![kernel(&[size(&[32, 32, 1])])]));
    let metadata = Metadata::parse(&bytes).unwrap();
    assert_eq!(metadata.kernels.first().unwrap().reqd_workgroup_size, Some([32, 32, 1]));
}

#[test]
fn arguments_must_be_inside_the_segment_and_apart() {
    let with = |list: Vec<Value>| kernel_problem(&[(".args", List(list))]);
    for (offset, size) in [(60, 8), (64, 1), (u32::MAX, 8), (0, 0), (0, 1 << 31)] {
        assert_eq!(
            with(vec![argument(offset, size, "by_value")]),
            MetadataProblem::ArgumentOutside { index: 0, offset, size, segment: 64 }
        );
    }
    assert_eq!(
        with(vec![argument(8, 8, "by_value"), argument(0, 9, "by_value")]),
        MetadataProblem::ArgumentOverlap { index: 0, other: 1 }
    );
    assert_eq!(
        with(vec![argument(0, 2, "hidden_block_count_x")]),
        MetadataProblem::HiddenSize { index: 0, size: 2, needed: 4 }
    );
}

#[test]
fn kinds_are_known_hidden_or_unknown() {
    let args = List(vec![
        argument(40, 8, "hidden_from_the_future"),
        argument(0, 8, "global_buffer"),
        argument(8, 4, "by_telepathy"),
        argument(16, 8, "hidden_heap_v1"),
    ]);
    let bytes = bytes(&note(vec![kernel(&[(".args", args)])]));
    let metadata = Metadata::parse(&bytes).unwrap();
    let kinds: Vec<ValueKind<'_>> = metadata
        .kernels
        .iter()
        .flat_map(|kernel| kernel.args.iter().flatten())
        .map(|a| a.kind)
        .collect();
    assert_eq!(
        kinds,
        [
            ValueKind::UnknownHidden("hidden_from_the_future"),
            ValueKind::GlobalBuffer,
            ValueKind::Unknown("by_telepathy"),
            ValueKind::Hidden(crate::kernarg::Hidden::HeapV1),
        ]
    );
}

#[test]
fn an_error_names_the_kernel_and_the_offset() {
    let bad = kernel(&[(".name", text("second")), (".zz", Raw(vec![0xc1]))]);
    let whole = bytes(&note(vec![kernel(&[]), bad]));
    let Error::Metadata { kernel, offset, problem } = Metadata::parse(&whole).unwrap_err() else {
        panic!("another error");
    };
    assert_eq!(kernel.as_deref(), Some("second"));
    assert_eq!(problem, MetadataProblem::Reserved);
    assert_eq!(whole.get(offset - 1), Some(&0xc1));
}

#[test]
fn a_million_kernels_without_content_end_at_the_first() {
    let mut list = vec![0xdd, 0, 0x0f, 0x42, 0x40];
    list.extend(vec![0x80; 1_000_000]);
    assert_eq!(
        problem(&map(&[("amdhsa.kernels", Raw(list))])),
        MetadataProblem::Missing { key: ".symbol" }
    );
}

#[test]
fn printf_strings_must_be_formats() {
    let with = |strings: &[&str]| {
        let Map(mut entries) = note(Vec::new()) else { unreachable!() };
        entries.push((text("amdhsa.printf"), List(strings.iter().copied().map(text).collect())));
        Map(entries)
    };
    let good = bytes(&with(&["1:1:4:%d\\n", "2:0:a\\72b"]));
    let metadata = Metadata::parse(&good).unwrap();
    let formats: Vec<&str> = metadata.printf_formats.iter().map(|format| &*format.format).collect();
    assert_eq!(formats, ["%d\n", "a:b"]);
    assert_eq!(metadata.printf.unwrap().len(), 2);
    for bad in ["no colon", "1:3:4:4:x", "1:2147483648:4:x", "0:0:abc", "1:0:other"] {
        let found = problem(&with(&["1:0:x", bad]));
        assert!(matches!(found, MetadataProblem::Printf { index: 1, .. }), "{bad}: {found:?}");
    }
}
