//! docs/hostile-inputs.md names tests that exist, for each of the 48 groups.
#![allow(clippy::indexing_slicing)] // test helpers: a panic is the failure

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

fn sources(folder: &Path, text: &mut String) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, text);
        } else {
            text.push_str(&fs::read_to_string(path).unwrap());
        }
    }
}

#[test]
fn every_group_of_hostile_inputs_names_tests_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let table = fs::read_to_string(root.join("../docs/hostile-inputs.md")).unwrap();
    let mut code = String::new();
    sources(&root.join("src"), &mut code);
    sources(&root.join("tests"), &mut code);
    let mut groups = BTreeSet::new();
    for row in table.lines().filter(|line| line.starts_with("| ") && line.contains('`')) {
        let group = row[2..].split(' ').next().unwrap();
        groups.extend(group.parse::<u32>());
        let names = row.split('`').skip(1).step_by(2);
        let tests: Vec<&str> = names.map(|name| name.rsplit("::").next().unwrap()).collect();
        let mut found = 0;
        for name in tests {
            let is_module = code.contains(&format!("mod {name};"));
            let is_test = code.contains(&format!("#[test]\nfn {name}()"))
                || code.contains(&format!("#[test]\n    fn {name}()"));
            assert!(is_module || is_test, "{name} is no test: {row}");
            found += usize::from(is_test);
        }
        assert!(found > 0, "{row}");
    }
    assert!(groups.into_iter().eq(1..=48));
}
