//! Any text is read as every kind of topology file, and what was read is what the text says.
#![no_main]

use kfd::topology::{Cache, Link, MemBank, NodeProperties, SystemProperties};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(read) = NodeProperties::parse(text) {
        for (name, value) in read.iter() {
            let says = |line: &str| {
                let (found, number) = line.trim_end().split_once(' ').unwrap_or_default();
                found == name && number.trim().parse() == Ok(value)
            };
            assert!(text.lines().any(says), "{name} {value}");
        }
    }
    let _ = SystemProperties::parse(text);
    let _ = MemBank::parse(text);
    let _ = Cache::parse(text);
    let _ = Link::parse(text);
});
