//! Compares `kfd::abi` with the committed tables.

use kfd::abi::{self, request};
use std::collections::BTreeMap;

/// What a row is about, and what it says.
type Table = BTreeMap<String, String>;

fn parse(text: &str) -> Table {
    let rows = text.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        let key = if line.starts_with("field ") { 3 } else { 2 };
        (words[..key].join(" "), words[key..].join(" "))
    });
    unique(rows)
}

/// `kfd::abi` in the same form.
fn mirrored() -> Table {
    let constants = abi::constants()
        .map(|constant| (format!("constant {}", constant.c_name), format!("{:#x}", constant.value)))
        // C's %#llx writes zero without its prefix.
        .map(|(key, value)| (key, if value == "0x0" { "0".to_owned() } else { value }));
    let layouts = abi::layouts().flat_map(|layout| {
        let tag = layout.c_name;
        let fields = layout.fields.iter().map(move |field| {
            (format!("field {tag} {}", field.c_name), format!("{} {}", field.offset, field.bytes))
        });
        [(format!("struct {tag}"), layout.bytes.to_string())].into_iter().chain(fields)
    });
    unique(constants.chain(layouts))
}

fn unique(rows: impl Iterator<Item = (String, String)>) -> Table {
    let mut table = Table::new();
    for (key, value) in rows {
        let before = table.insert(key.clone(), value.clone());
        assert!(before.is_none_or(|before| before == value), "{key} has two values");
    }
    table
}

fn table_1_11() -> Table {
    parse(include_str!("../tables/1.11.txt"))
}

fn table_1_17() -> Table {
    parse(include_str!("../tables/1.17.txt"))
}

/// Rows of `left` that `right` lacks or says otherwise.
fn missing<'a>(left: &'a Table, right: &Table) -> Vec<(&'a str, &'a str)> {
    left.iter()
        .filter(|&(key, value)| right.get(key) != Some(value))
        .map(|(key, value)| (key.as_str(), value.as_str()))
        .collect()
}

#[test]
fn everything_in_the_1_17_headers_is_mirrored() {
    assert_eq!(missing(&table_1_17(), &mirrored()), []);
}

#[test]
fn nothing_is_mirrored_that_the_1_17_headers_lack() {
    assert_eq!(missing(&mirrored(), &table_1_17()), []);
}

#[test]
fn version_1_11_differs_from_1_17_only_where_it_is_known_to() {
    let expected = [
        ("constant AMDKFD_COMMAND_END", "0x24"),
        ("constant AMDKFD_IOC_CREATE_QUEUE", "0xc0584b02"),
        ("constant HSA_CAP_RESERVED", "0xe00f8000"),
        ("constant KFD_IOCTL_MINOR_VERSION", "0xb"),
        ("struct kfd_ioctl_create_queue_args", "88"),
    ];
    assert_eq!(missing(&table_1_11(), &mirrored()), expected);
}

#[test]
fn version_1_11_has_exactly_the_ioctls_that_are_that_old() {
    let old = table_1_11();
    for ioctl in request::IOCTLS {
        let key = format!("constant AMDKFD_IOC_{}", ioctl.name);
        let deprecated = format!("{key}_DEPRECATED");
        let there = old.contains_key(&key) || old.contains_key(&deprecated);
        assert_eq!(there, ioctl.since.minor <= 11, "{}", ioctl.name);
    }
}

#[test]
fn the_tables_are_not_empty() {
    assert!(table_1_11().len() > 300, "{}", table_1_11().len());
    assert!(table_1_17().len() > 500, "{}", table_1_17().len());
}
