//! The library under programs that know nothing of it, and as AMD's runtime loads it.
#![allow(clippy::indexing_slicing)] // a test that indexes past the end should fail

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Permission bits of `/dev/kfd` in the virtual machine, which has no udev.
const MODE: &str = "600";

/// The library that cargo has built with this test.
fn library() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().and_then(Path::parent).unwrap();
    let library = profile.join("examples/libkfd_model_for_tests.so");
    assert!(library.is_file(), "cargo test builds {} unless told otherwise", library.display());
    library
}

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name)
}

/// Compiles a C file into a program of that name beside this test.
fn compile(path: &Path, name: &str) -> PathBuf {
    let program = library().with_file_name(format!("preload-{name}"));
    let mut command = Command::new("cc");
    command.args(["-O1", "-Wall", "-Wextra", "-Wno-nonnull", "-o"]).arg(&program).arg(path);
    let status = command.args(["-lpthread", "-ldl"]).status().unwrap();
    assert!(status.success(), "cc fails on {}", path.display());
    program
}

fn preloaded(program: impl AsRef<std::ffi::OsStr>, model: &str) -> Command {
    let mut command = Command::new(program);
    command.env("LD_PRELOAD", library()).env("KFD_MODEL", model);
    command
}

fn text(output: &Output) -> String {
    let all = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
    String::from_utf8_lossy(&all).into_owned()
}

fn passes(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let text = text(&output);
    assert!(output.status.success(), "{command:?}: {}\n{text}", output.status);
    text
}

#[test]
fn cat_and_ls_see_the_presets() {
    let nodes = "/sys/class/kfd/kfd/topology/nodes";
    let listed = passes(preloaded("ls", "gfx90a,gfx1100").arg(nodes));
    assert_eq!(listed, "0\n1\n2\n");
    let properties = passes(preloaded("cat", "gfx90a").arg(format!("{nodes}/1/properties")));
    assert!(properties.contains("gfx_target_version 90010\n"), "{properties}");
    let devices = passes(preloaded("ls", "gfx90a,gfx1100").args(["-l", "/dev/dri"]));
    assert!(devices.contains("226, 128") && devices.contains("renderD129"), "{devices}");
    // What is the machine's stays so.
    assert_eq!(
        passes(preloaded("cat", "gfx90a").arg("/sys/kernel/mm/transparent_hugepage/enabled")),
        std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").unwrap()
    );
}

#[test]
fn an_unknown_preset_or_kernel_names_the_known_ones_and_there_is_no_device() {
    let output = preloaded("cat", "gfx1").arg("/dev/kfd").output().unwrap();
    let text = text(&output);
    assert!(!output.status.success());
    assert!(text.contains("\"gfx1\"") && text.contains("gfx90a, gfx942"), "{text}");
    let output = preloaded("cat", "gfx90a").env("KFD_MODEL_KERNEL", "2.4").arg("/dev/kfd").output();
    assert!(self::text(&output.unwrap()).contains("known are 6.1, 6.12.0 and 6.12"));
}

#[test]
fn transcripts_are_those_of_stock_kernels() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance");
    let program = compile(&directory.join("transcript.c"), "transcript");
    for release in ["6.1", "6.12"] {
        let mut command = preloaded(&program, "none");
        command.env("KFD_MODEL_KERNEL", release).env("KFD_MODEL_MODE", MODE);
        let found = passes(&mut command);
        let wanted = std::fs::read_to_string(directory.join(format!("{release}.txt"))).unwrap();
        for (found, wanted) in found.lines().zip(wanted.lines()) {
            assert_eq!(found, wanted, "Linux {release}");
        }
        assert_eq!(found.lines().count(), wanted.lines().count(), "Linux {release}");
    }
}

#[test]
fn hooks_forward_wherever_they_are_called() {
    passes(&mut preloaded(compile(&source("early.c"), "early"), "gfx1100"));
}

#[test]
fn a_program_that_uses_no_gpu_makes_no_model() {
    // The model's threads and memory file would show.
    let maps = passes(preloaded("cat", "gfx1100").arg("/proc/self/maps"));
    assert!(
        maps.contains("libkfd_model_for_tests.so") && !maps.contains("memfd:kfd-model"),
        "{maps}"
    );
}

#[test]
fn a_report_counts_what_was_asked() {
    let file = library().with_file_name(format!("report-{}", std::process::id()));
    let _ = std::fs::remove_file(&file);
    let mut command = preloaded(compile(&source("early.c"), "reported"), "gfx1100");
    passes(command.env("KFD_MODEL_REPORT", &file));
    let report = std::fs::read_to_string(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    let report: serde_json::Value = serde_json::from_str(report.trim()).unwrap();
    assert_eq!(report["ioctls"][0], serde_json::json!({"number": 1, "count": 1}), "{report}");
    assert_eq!(report["unknown_requests"], 0);
}

#[test]
fn a_runtime_that_loads_the_library_as_a_model_gets_interface_1_1() {
    let program = compile(&source("hsa_client.c"), "hsa");
    for target in ["gfx1100", "gfx942"] {
        let mut command = Command::new(&program);
        command.arg(library()).arg(target).env("KFD_MODEL", target);
        assert_eq!(passes(&mut command), "passed\n");
    }
}
