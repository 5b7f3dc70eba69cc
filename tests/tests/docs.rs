//! The documents keep up with the code.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn sources(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        let name = entry.file_name().into_string().unwrap();
        if path.is_dir() {
            if name != "target" && !name.starts_with('.') {
                sources(&path, files);
            }
        } else if name.ends_with(".rs") || name.ends_with(".s") {
            files.push(path);
        }
    }
}

/// Citations in `text`: what follows the section sign, up to the end of the line.
fn citations(text: &str) -> impl Iterator<Item = &str> {
    // Built at run time, or this file would cite a section of its own.
    let mark = ["ABI.md", "§"].join(" ");
    text.lines().filter_map(move |line| line.split_once(&mark).map(|(_, rest)| rest))
}

#[test]
fn every_cited_section_of_the_abi_document_exists() {
    let document = fs::read_to_string(root().join("docs/ABI.md")).unwrap();
    let headings: BTreeSet<&str> = document
        .lines()
        .filter(|line| line.starts_with('#'))
        .map(|l| l.trim_start_matches(['#', ' ']))
        .collect();
    let mut files = Vec::new();
    sources(&root(), &mut files);
    let mut cited = 0;
    for file in files {
        for citation in citations(&fs::read_to_string(&file).unwrap()) {
            cited += 1;
            assert!(
                headings.iter().any(|heading| citation.starts_with(heading)),
                "{} cites {citation:?}, which docs/ABI.md does not have",
                file.display()
            );
        }
    }
    assert!(cited > 50, "only {cited} citations were found: is the mark still the same?");
}

/// Names in backquotes that look like those of tests: three words or more, joined.
fn test_names(document: &str) -> BTreeSet<&str> {
    let is_name = |name: &&str| {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        name.matches('_').count() >= 3 && name.chars().all(plain)
    };
    document.split('`').skip(1).step_by(2).filter(is_name).collect()
}

#[test]
fn every_test_that_the_list_of_queue_bugs_names_exists() {
    let document = fs::read_to_string(root().join("docs/queue-bugs.md")).unwrap();
    let mut files = Vec::new();
    sources(&root(), &mut files);
    let code: String = files.iter().map(|file| fs::read_to_string(file).unwrap()).collect();
    let names = test_names(&document);
    assert!(names.len() > 30, "only {} names were found", names.len());
    for name in names {
        assert!(code.contains(&format!("fn {name}(")), "docs/queue-bugs.md names {name}");
    }
    for number in 1..=23 {
        let row = format!("| {number} | ");
        assert!(document.lines().any(|line| line.starts_with(&row)), "no row for bug {number}");
    }
}

#[test]
fn every_test_that_the_list_of_hostcall_threats_names_exists() {
    let document = fs::read_to_string(root().join("docs/hostcall.md")).unwrap();
    let mut files = Vec::new();
    sources(&root(), &mut files);
    let code: String = files.iter().map(|file| fs::read_to_string(file).unwrap()).collect();
    let names = test_names(&document);
    assert!(names.len() > 80, "only {} names were found", names.len());
    for name in names {
        assert!(code.contains(&format!("fn {name}(")), "docs/hostcall.md names {name}");
    }
    // Each threat and requirement has a row, which names a test.
    let threats = (1..=32).map(|number| format!("| T{number} |"));
    let requirements = [1, 2, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 15, 16, 17, 20, 22, 23, 24, 26];
    for row in threats.chain(requirements.map(|number| format!("| R{number} |"))) {
        let found = document.lines().find(|line| line.starts_with(&row));
        let found = found.unwrap_or_else(|| panic!("docs/hostcall.md has no row {row}"));
        let refers = ["T1,", "T4,", "nothing to test", "loom"].iter().any(|to| found.contains(to));
        assert!(refers || !test_names(found).is_empty(), "no test: {found}");
    }
}

#[test]
fn every_section_of_the_abi_document_names_its_source() {
    let document = fs::read_to_string(root().join("docs/ABI.md")).unwrap();
    for section in document.split("\n# ").skip(1) {
        let name = section.lines().next().unwrap_or_default();
        assert!(section.contains("ource"), "section {name:?} names no source");
    }
}
