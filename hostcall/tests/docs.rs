//! docs/hostcall.md names tests that exist.

use std::fs;
use std::path::{Path, PathBuf};

fn sources(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

#[test]
fn every_test_named_for_a_threat_or_requirement_exists() {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let document = fs::read_to_string(crate_folder.join("../docs/hostcall.md")).unwrap();
    let mut files = Vec::new();
    sources(&crate_folder.join("src"), &mut files);
    sources(&crate_folder.join("tests"), &mut files);
    // Kernel arguments are hsaco's. Tests of services on a device live with the other device tests.
    sources(&crate_folder.join("../hsaco/src"), &mut files);
    sources(&crate_folder.join("../hip/tests"), &mut files);
    sources(&crate_folder.join("../tests/tests"), &mut files);
    let code: String = files.iter().map(|file| fs::read_to_string(file).unwrap()).collect();
    let mut named = 0;
    for row in document.lines().filter(|line| line.starts_with("| ")) {
        // The last column holds the tests.
        let tests = row.trim_end_matches(" |").rsplit(" | ").next().unwrap_or_default();
        let names =
            tests.split('`').skip(1).step_by(2).filter(|name| name.matches('_').count() > 2);
        for name in names {
            named += 1;
            assert!(code.contains(&format!("fn {name}(")), "{name} does not exist");
        }
    }
    assert!(named > 30, "only {named} tests were found: is the table still the same?");
}
