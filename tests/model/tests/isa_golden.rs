//! The decoder and the printer against what LLVM 19 said once. `isa-gen/golden.py` and
//! `isa-gen/objects.py` remake the files; ordinary tests need no LLVM.
#![allow(clippy::indexing_slicing)] // a test: a short line is a failure

use std::collections::BTreeMap;
use std::path::Path;

use kfd_model::Target;
use kfd_model::isa::{self, Pools};

const INSTRUCTIONS: &str = include_str!("../isa-gen/golden/instructions.txt");
const OBJECTS: &str = include_str!("../isa-gen/golden/objects.txt");

fn wave_size(target: Target) -> u32 {
    if target.is_gfx9() { 64 } else { 32 }
}

/// Our text without the operands that LLVM prints by name.
fn comparable(text: &str, expected: &str) -> String {
    if !expected.contains(' ') {
        return text.split_whitespace().next().unwrap_or_default().to_owned();
    }
    if !text.starts_with("tbuffer") {
        return text.to_owned();
    }
    let words: Vec<&str> =
        text.split(' ').map(|word| if word.starts_with("format:") { "" } else { word }).collect();
    words.join(" ")
}

#[test]
fn every_opcode_decodes_and_prints_as_llvm_says() {
    let mut failures = Vec::new();
    let mut compared = 0;
    for line in INSTRUCTIONS.lines() {
        let [mask, words, expected] = line.splitn(3, ' ').collect::<Vec<_>>()[..] else {
            panic!("malformed line {line:?}");
        };
        let mask = u16::from_str_radix(mask, 16).unwrap();
        let words: Vec<u32> =
            words.split(',').map(|word| u32::from_str_radix(word, 16).unwrap()).collect();
        for (i, target) in Target::ALL.into_iter().enumerate() {
            if mask >> i & 1 == 0 {
                continue;
            }
            compared += 1;
            let text = isa::print(target, wave_size(target), &words, 0);
            if comparable(&text, expected) != expected.trim_end() {
                failures.push(format!("{target} {words:08x?}: {text:?}, expected {expected:?}"));
                continue;
            }
            let decoded = isa::decode(target, wave_size(target), &words, &mut Pools::default());
            let size = decoded.map(|decoded| usize::from(decoded.inst.words));
            if size != Ok(words.len()) {
                failures.push(format!("{target} {words:08x?} {text}: size {size:?}"));
            }
        }
    }
    assert!(compared > 10_000, "only {compared} compared");
    assert!(failures.is_empty(), "{} of {compared}:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn code_objects_decode_to_the_mnemonics_and_sizes_that_objdump_lists() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/code-objects");
    for line in OBJECTS.lines() {
        let parts: Vec<&str> = line.split(' ').collect();
        let target: Target = parts[1].parse().unwrap();
        let number = |i: usize| parts[i].parse::<usize>().unwrap();
        let (offset, size, count) = (number(2), number(3), number(4));
        let hash = u64::from_str_radix(parts[5], 16).unwrap();
        let data = std::fs::read(folder.join(parts[0])).unwrap();
        let listing = listing(target, &data[offset..offset + size]);
        assert_eq!(listing.len(), count, "{}: instructions", parts[0]);
        let ours = fnv(listing.iter().flat_map(|line| line.bytes()));
        assert_eq!(ours, hash, "{}: compare with isa-gen/objects.py --dump", parts[0]);
    }
}

/// Mnemonic and size of each instruction, one a line.
fn listing(target: Target, code: &[u8]) -> Vec<String> {
    let words: Vec<u32> =
        code.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect();
    let mut lines = Vec::new();
    let mut at = 0;
    while at < words.len() {
        let rest = &words[at..];
        let text = isa::print(target, wave_size(target), rest, 0);
        let decoded = isa::decode(target, wave_size(target), rest, &mut Pools::default());
        let size = decoded.map_or(1, |decoded| decoded.inst.words);
        let mnemonic = text.split_whitespace().next().unwrap_or_default();
        lines.push(format!("{mnemonic} {size}\n"));
        at += usize::from(size);
    }
    lines
}

fn fnv(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |value, byte| {
        (value ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// What the software GPU cannot run shows here, by name.
#[test]
fn the_executor_has_every_operation_of_the_fixtures() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/code-objects");
    let mut lacking = BTreeMap::new();
    for line in OBJECTS.lines() {
        let parts: Vec<&str> = line.split(' ').collect();
        let target: Target = parts[1].parse().unwrap();
        let (offset, size): (usize, usize) = (parts[2].parse().unwrap(), parts[3].parse().unwrap());
        let data = std::fs::read(folder.join(parts[0])).unwrap();
        let found = isa::scan(target, wave_size(target), &data[offset..offset + size], &[]);
        for (op, (at, text)) in found.examples {
            lacking.insert(op, format!("{} +{at:#x}: {text}", parts[0]));
        }
    }
    assert!(lacking.is_empty(), "{lacking:#?}");
}
