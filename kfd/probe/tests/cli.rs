//! The built program: its JSON, its exit codes, its behaviour on a closed pipe.
#![allow(clippy::indexing_slicing)] // what is not there fails the test

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn probe(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_kfd-probe")).args(args).output().unwrap()
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Runs with `--json` and checks the frame that every document has.
fn json(args: &[&str]) -> (i32, Value) {
    let output = probe(&[&["--json"], args].concat());
    let text = stdout(&output);
    let value: Value = serde_json::from_str(&text)
        .unwrap_or_else(|error| panic!("{error}: {text}\n{}", stderr(&output)));
    assert_eq!(value["schema"], 1);
    assert_eq!(value["command"], args[0]);
    (code(&output), value)
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/code-objects").join(name)
}

/// A file that goes away with its owner.
struct Temporary(PathBuf);

impl Temporary {
    fn new(name: &str) -> Self {
        let name = format!("kfd-probe-test-{}-{name}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[cfg(feature = "model")]
mod model {
    use super::*;

    #[test]
    fn devices_lists_the_nodes_of_the_software_gpu_with_what_a_runtime_needs() {
        let (code, value) = json(&["devices", "--model", "gfx1100,gfx90a"]);
        assert_eq!(code, 0);
        assert_eq!(value["device"]["kind"], "software");
        let nodes = value["nodes"].as_array().unwrap();
        assert_eq!(nodes.len(), 3);
        assert_eq!(nodes[0]["kind"], "cpu");
        let gpu = &nodes[1]["gpu"];
        assert_eq!(gpu["target"], "gfx1100");
        assert_eq!(gpu["compute_units"], 96);
        assert_eq!(gpu["vram_bytes"], 25_753_026_560_u64);
        assert_eq!(gpu["wave_size"], 32);
        assert_eq!(gpu["large_bar"], true);
        assert_eq!(gpu["usable"], true);
        assert_eq!(gpu["pci_address"], "0000:03:00.0");
        assert_eq!(nodes[2]["gpu"]["target"], "gfx90a");
        assert_eq!(nodes[2]["links"][0]["kind"], "PCIe");
        assert_eq!(value["unusable"].as_array().unwrap().len(), 0);
    }

    #[test]
    fn the_first_line_names_the_device() {
        let output = probe(&["devices", "--model", "gfx90a"]);
        let text = stdout(&output);
        let first = text.lines().next().unwrap();
        assert!(first.starts_with("device: gfx90a"), "{first}");
        assert!(first.contains("software GPU (gfx90a preset)"), "{first}");
        assert!(!text.contains('\u{1b}'), "no colour when not on a terminal");
    }

    #[test]
    fn doctor_finds_nothing_wrong_with_the_software_gpu() {
        let (code, value) = json(&["doctor", "--model", "all"]);
        assert_eq!(code, 0, "{value:#}");
        assert_eq!(value["healthy"], true);
        let checks = value["checks"].as_array().unwrap();
        let named = |name: &str| checks.iter().any(|check| check["name"] == name);
        for name in ["kernel", "/dev/kfd", "topology", "KFD version", "caller", "container"] {
            assert!(named(name), "{name}");
        }
        let per_gpu = |what: &str| {
            checks.iter().filter(|c| c["name"].as_str().unwrap().ends_with(what)).count()
        };
        for what in ["address space", "CPU access to VRAM", "PCIe atomics", "firmware", "XNACK"] {
            assert_eq!(per_gpu(what), 11, "{what}");
        }
    }

    #[test]
    fn queues_shows_the_own_queue_live_and_in_sysfs() {
        let (code, value) = json(&["queues", "--model", "gfx1100"]);
        assert_eq!(code, 0);
        let own = &value["own"][0];
        assert_eq!(own["packets"], 64);
        let processes = value["processes"].as_array().unwrap();
        let this = processes.iter().find(|process| process["is_this_process"] == true).unwrap();
        assert_eq!(this["command"], "kfd-probe");
        let queue = &this["queues"][0];
        assert_eq!(queue["queue_id"], own["queue_id"]);
        assert_eq!(queue["gpu_id"], own["gpu_id"]);
        assert_eq!(queue["kind"], "compute");
        assert_eq!(queue["ring_bytes"], 4096);
        assert!(this["gpus"][0]["vram_bytes"].as_u64().is_some());
    }

    /// The three rings wait for each other, and the report says for what.
    #[test]
    fn queues_shows_what_each_ring_waits_for() {
        let (code, value) = json(&["queues", "--model", "gfx90a"]);
        assert_eq!(code, 0);
        let queues = value["rings"]["snapshot"]["queues"].as_array().unwrap();
        assert_eq!(queues.len(), 3, "{value:#}");
        for queue in queues {
            assert_eq!(queue["waits"].as_array().unwrap().len(), 1, "{queue:#}");
            assert_eq!(queue["waits"][0]["value"], 1);
        }
        let named_by = |n: usize| queues[n]["waits"][0]["named_by"].as_array().unwrap().len();
        assert_eq!([named_by(0), named_by(1), named_by(2)], [0, 1, 1]);
        let output = probe(&["queues", "--model", "gfx90a"]);
        let text = stdout(&output);
        assert!(text.contains("WAIT_REG_MEM") && text.contains("POLL_REGMEM"), "{text}");
        assert!(text.contains("waits for") && text.contains("named by"), "{text}");
    }

    #[test]
    fn a_capture_is_shown_later_by_decode_queues_and_watch() {
        let file = std::env::temp_dir().join(format!("kfd-probe-rings-{}", std::process::id()));
        let path = file.to_str().unwrap();
        let (code, value) = json(&["capture", "--model", "gfx1100", path]);
        assert_eq!((code, &value["queues"]), (0, &serde_json::json!(3)));
        let (code, value) = json(&["decode", "--from", path]);
        assert_eq!(code, 0);
        let queues = value["snapshot"]["queues"].as_array().unwrap();
        assert_eq!(queues.len(), 3);
        assert_eq!(queues[1]["target"], "gfx1100");
        for command in [&["queues", "--from", path][..], &["watch", "-n", "1", "--from", path]] {
            let output = probe(command);
            assert_eq!(self::code(&output), 0);
            let text = stdout(&output);
            assert!(text.contains("POLL_REGMEM") && !text.contains('\x1b'), "{text}");
        }
        // Another version is refused by number, by everything that reads it.
        std::fs::write(&file, "kfd-snapshot 2 5\n12345").unwrap();
        for command in [&["decode", "--from", path][..], &["queues", "--from", path]] {
            let output = probe(command);
            assert_eq!(self::code(&output), 7);
            assert!(stderr(&output).contains("version 2"), "{}", stderr(&output));
        }
        std::fs::remove_file(&file).unwrap();
    }

    #[test]
    fn watch_looks_as_often_as_it_is_told_and_rings_move() {
        let output = probe(&["watch", "--model", "gfx90a", "-n", "3", "-s", "10"]);
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        let text = stdout(&output);
        assert_eq!(text.matches("process ").count(), 3, "{text}");
        assert!(!text.contains('\x1b'), "plain when it is no terminal");
        assert!(text.contains("read 2 write 3 packets"), "{text}");
    }

    #[test]
    fn an_unknown_preset_is_a_usage_error_that_lists_the_known_ones() {
        let output = probe(&["selftest", "--model", "gfx9000"]);
        assert_eq!(code(&output), 2);
        let text = stderr(&output);
        assert!(text.contains("gfx9000") && text.contains("gfx1150, gfx1151, all"), "{text}");
    }

    #[test]
    fn selftest_runs_a_kernel_and_counts_what_it_did() {
        let (code, value) =
            json(&["selftest", "--model", "gfx1100", "--only", "vadd v5", "--timeout", "60000"]);
        assert_eq!(code, 0, "{value:#}");
        assert_eq!(value["passed"], true);
        assert_eq!(value["totals"]["passed"], 1);
        let gpu = &value["gpus"][0];
        assert_eq!(gpu["target_id"], "gfx1100");
        let case = &gpu["cases"][0];
        assert_eq!(case["name"], "vadd v5");
        assert_eq!(case["kernel"], "vadd");
        assert_eq!(case["result"], "passed");
        assert_eq!(case["packets"], 1);
        let index = |which: &str, name: &str| case[which][name].as_u64().unwrap();
        assert_eq!(index("queue_after", "write_index"), index("queue_before", "write_index") + 1);
        assert_eq!(index("queue_after", "read_index"), index("queue_after", "write_index"));
        let seen = &gpu["observations"];
        assert_eq!(seen["problem"], Value::Null);
        assert_eq!(seen["partial_groups_right"], true);
        assert_eq!(seen["doorbell_past_end_harmless"], true);
        assert_eq!(seen["read_index"]["reached_end"], true);
        assert!(seen["gpu_clock_hz"].as_f64().unwrap() > 1e6);
    }

    #[test]
    fn a_report_becomes_a_software_gpu_that_gives_the_same_results() {
        let report = Temporary::new("report.json");
        let output = probe(&[
            "selftest",
            "--model",
            "gfx90a",
            "--only",
            "vadd v5",
            "--report",
            report.path(),
        ]);
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        let saved: Value = serde_json::from_slice(&std::fs::read(&report.0).unwrap()).unwrap();
        assert_eq!(saved["schema"], 1);
        assert_eq!(saved["machine"]["topology"]["nodes"].as_array().unwrap().len(), 2);
        let (code, value) = json(&[
            "selftest",
            "--model",
            report.path(),
            "--only",
            "vadd v5",
            "--compare",
            report.path(),
        ]);
        assert_eq!(code, 0, "{value:#}");
        assert_eq!(value["device"]["gpus"][0]["target"], "gfx90a");
        let differences: Vec<&str> =
            value["differences"].as_array().unwrap().iter().map(|d| d.as_str().unwrap()).collect();
        // Only how the device is called, and what timing lets one see, may differ.
        for line in &differences {
            let harmless = ["device description", "read index seen"];
            assert!(harmless.iter().any(|known| line.contains(known)), "{line}");
        }
        assert!(differences.iter().any(|line| line.starts_with("device description")));
    }

    #[test]
    fn each_difference_from_a_report_is_a_line() {
        let report = Temporary::new("changed.json");
        let run = |extra: &[&str]| {
            let only = ["selftest", "--model", "gfx1100", "--only", "vadd v5"];
            probe(&[&["--json"], only.as_slice(), extra].concat())
        };
        assert_eq!(code(&run(&["--report", report.path()])), 0);
        let text = std::fs::read_to_string(&report.0).unwrap();
        let mut saved: Value = serde_json::from_str(&text).unwrap();
        saved["machine"]["kernel_release"] = "5.4.0".into();
        saved["machine"]["topology"]["nodes"][1]["properties"]["simd_count"] = 7.into();
        saved["gpus"][0]["cases"][0]["result"] = "wrong".into();
        std::fs::write(&report.0, saved.to_string()).unwrap();
        let value: Value =
            serde_json::from_slice(&run(&["--compare", report.path()]).stdout).unwrap();
        let lines = value["differences"].to_string();
        assert!(lines.contains("simd_count: was 7, is 192"), "{lines}");
        assert!(lines.contains("kernel: was"), "{lines}");
        assert!(lines.contains("gfx1100 vadd v5: was"), "{lines}");
    }

    #[test]
    fn a_gpu_without_programs_of_its_own_runs_the_generic_one() {
        let cases = kfd_probe::programs::cases("gfx1152");
        let names: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
        assert_eq!(names, ["vadd generic"]);
    }

    #[test]
    fn a_test_name_that_none_has_is_bad_input() {
        let output = probe(&["selftest", "--model", "gfx1100", "--only", "nothing"]);
        assert_eq!(code(&output), 7);
        assert!(stderr(&output).contains("\"nothing\""), "{}", stderr(&output));
    }

    #[test]
    fn files_that_are_no_reports_are_refused_by_name() {
        let file = Temporary::new("no-report.json");
        for (content, word) in
            [("", "not a report"), ("{\"schema\": 1}", "not a report"), ("[1]", "not a report")]
        {
            std::fs::write(&file.0, content).unwrap();
            let output = probe(&["devices", "--model", file.path()]);
            assert_eq!(code(&output), 7);
            let text = stderr(&output);
            assert!(text.contains(word) && text.contains("no-report.json"), "{text}");
        }
        let output = probe(&["devices", "--model", "/nowhere/report.json"]);
        assert_eq!(code(&output), 7);
    }

    #[test]
    fn without_hardware_the_software_gpu_runs_and_the_report_says_why() {
        if Path::new("/dev/kfd").exists() {
            eprintln!("skipped: this machine has a /dev/kfd");
            return;
        }
        let (code, value) = json(&["devices"]);
        assert_eq!(code, 0);
        assert_eq!(value["device"]["kind"], "software");
        let reason = value["device"]["hardware_not_used"].as_str().unwrap();
        assert!(reason.contains("/dev/kfd is absent") && !reason.contains('\n'), "{reason}");
        let text = stdout(&probe(&["devices"]));
        assert!(text.lines().nth(1).unwrap().starts_with("hardware not used: "), "{text}");
    }

    #[test]
    fn isa_scans_every_code_object_fixture() {
        let mut scanned = 0;
        for entry in std::fs::read_dir(fixture("")).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            // Version 2 is refused by name, like what is no code object at all.
            if !name.ends_with(".co") || name.contains(".v2.") {
                continue;
            }
            let (code, value) = json(&["isa", path.to_str().unwrap()]);
            assert_eq!(code, 0, "{name}: {value:#}");
            let kernels = value["kernels"].as_array().unwrap();
            assert!(!kernels.is_empty(), "{name}");
            for kernel in kernels {
                let opcodes = kernel["opcodes"].as_array().unwrap();
                // These two end otherwise, on purpose.
                if kernel["name"] == "illegal" || kernel["name"] == "endless" {
                    continue;
                }
                assert!(opcodes.iter().any(|op| op["name"] == "s_endpgm"), "{name}: {kernel:#}");
            }
            scanned += 1;
        }
        assert!(scanned > 50, "{scanned}");
    }

    #[test]
    fn isa_tells_how_close_to_hardware_each_instruction_is() {
        let path = fixture("vadd.gfx1100.v5.co");
        let (_, value) = json(&["isa", path.to_str().unwrap()]);
        let opcodes = value["object"]["opcodes"].as_array().unwrap();
        let add = opcodes.iter().find(|op| op["name"] == "v_add_f32").unwrap();
        assert_eq!((&add["fidelity"], &add["supported"]), (&"exact".into(), &true.into()));
        assert!(add["note"].is_null(), "{add}");
        let known = ["exact", "tolerance", "approximated"];
        for op in opcodes {
            assert!(known.contains(&op["fidelity"].as_str().unwrap()), "{op}");
        }
    }

    #[test]
    fn isa_disassembles_with_addresses() {
        let path = fixture("vadd.gfx1100.v5.co");
        let output = probe(&["isa", path.to_str().unwrap(), "--disassemble"]);
        assert_eq!(code(&output), 0);
        let text = stdout(&output);
        assert!(text.contains("s_endpgm") && text.contains("global_store_b32"), "{text}");
    }
}

#[test]
fn hardware_that_is_absent_is_exit_code_3_with_one_line() {
    if Path::new("/dev/kfd").exists() {
        eprintln!("skipped: this machine has a /dev/kfd");
        return;
    }
    for command in ["devices", "selftest"] {
        let output = probe(&[command, "--hardware"]);
        assert_eq!(code(&output), 3);
        let text = stderr(&output);
        assert!(text.contains("/dev/kfd is absent") && text.contains("Remedy:"), "{text}");
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(output.stdout.is_empty());
    }
    let (code, value) = json(&["doctor"]);
    assert_eq!(code, 3);
    assert_eq!(value["healthy"], false);
    assert_eq!(value["exit_code"], 3);
    let failed: Vec<&Value> =
        value["checks"].as_array().unwrap().iter().filter(|c| c["status"] == "failed").collect();
    assert_eq!(failed[0]["name"], "/dev/kfd");
    assert!(failed[0]["remedy"].as_str().unwrap().contains("amdgpu"));
}

/// A dispatch of 10020 work-items in workgroups of 256, as another runtime would write it.
const DISPATCH: &str = "02150100 00010100 01000000 24270000 01000000 01000000 00000000 00000000 \
     40100000 007f0000 00200000 007f0000 00000000 00000000 80300000 007f0000";

#[test]
fn decode_names_every_field_of_a_dispatch() {
    let (code, value) = json(&["decode", DISPATCH]);
    assert_eq!(code, 0, "{value:#}");
    let packet = &value["packets"][0];
    assert_eq!(packet["kind"], "kernel_dispatch");
    assert_eq!(packet["header"]["raw"], "0x1502");
    assert_eq!(packet["header"]["barrier"], true);
    assert_eq!(packet["header"]["acquire"], "system");
    let field = |name: &str| {
        let fields = packet["fields"].as_array().unwrap();
        fields.iter().find(|field| field["name"] == name).unwrap()["value"].clone()
    };
    assert_eq!(field("grid"), "10020x1x1");
    assert_eq!(field("workgroup"), "256x1x1");
    assert_eq!(field("kernel_object"), "0x7f0000001040");
    assert_eq!(field("kernarg_address"), "0x7f0000002000");
    assert_eq!(packet["completion_signal"], "0x7f0000003080");
    assert_eq!(value["malformed"], 0);
}

#[test]
fn decode_names_garbage_and_counts_trailing_bytes() {
    let garbage = "ff".repeat(64) + "0102";
    let (code, value) = json(&["decode", &garbage]);
    assert_eq!(code, 1);
    assert_eq!(value["malformed"], 1);
    assert_eq!(value["trailing_bytes"], 2);
    assert_eq!(value["trailing_hex"], "01 02");
    assert_eq!(value["packets"][0]["kind"], "unknown");
    let problem = value["packets"][0]["problem"].as_str().unwrap();
    assert!(problem.contains("255"), "{problem}");
    assert_eq!(value["packets"][0]["dwords"].as_array().unwrap().len(), 16);
}

#[test]
fn decode_reads_files_and_refuses_what_it_cannot_read() {
    let file = Temporary::new("packets.bin");
    let mut bytes = vec![0; 128];
    bytes[0] = 1; // INVALID
    bytes[64] = 3; // barrier-AND without fences
    std::fs::write(&file.0, &bytes).unwrap();
    let (code_, value) = json(&["decode", "--from", file.path()]);
    assert_eq!(code_, 0);
    assert_eq!(value["packets"][0]["kind"], "invalid");
    assert_eq!(value["packets"][1]["kind"], "barrier_and");
    assert_eq!(code(&probe(&["decode", "--from", "/nowhere/packets.bin"])), 7);
    assert_eq!(code(&probe(&["decode", "xyz"])), 7);
    assert_eq!(code(&probe(&["decode"])), 2);
}

#[test]
fn decode_shows_pm4_and_sdma_packets_with_their_offsets() {
    let launch = "c0027600 0000020c 00002010 0000007f c0004600 00000407";
    let (code_, value) = json(&["decode", "--pm4", "--target", "gfx1100", launch]);
    assert_eq!(code_, 0, "{value:#}");
    assert_eq!(value["packets"][1]["offset"], 16);
    let text = value["packets"][0]["text"].as_str().unwrap();
    assert_eq!(text, "SET_SH_REG COMPUTE_PGM_LO=0x2010 COMPUTE_PGM_HI=0x7f");
    let fence = "00030005 00600000 00007f00 00000001";
    assert_eq!(json(&["decode", "--sdma", "--target", "gfx1151", fence]).0, 0);
    let (code_, value) = json(&["decode", "--sdma", "--target", "gfx942", fence]);
    assert_eq!((code_, &value["malformed"]), (1, &1.into()));
    assert_eq!(code(&probe(&["decode", "--sdma", fence])), 2);
    assert_eq!(code(&probe(&["decode", "--pm4", "--target", "gfx803", launch])), 2);
}

#[test]
fn isa_refuses_other_files_by_name() {
    for (name, word) in [
        ("vadd.gfx906.v2.c15.co", "version"),
        ("vadd.gfx90a.rel.v5.o", ""),
        ("fat_host.o", ""),
        ("fat_host.bundle", ""),
        ("facts.jsonl", ""),
        ("absent.co", "cannot read"),
    ] {
        let path = fixture(name);
        let output = probe(&["isa", path.to_str().unwrap()]);
        assert_eq!(code(&output), 7, "{name}: {}", stderr(&output));
        let text = stderr(&output);
        assert!(text.contains(name) && text.contains(word), "{text}");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let packets = "01".to_owned() + &"00".repeat(63);
    let many: Vec<String> = std::iter::repeat_n(packets, 1_000).collect();
    let mut child = Command::new(env!("CARGO_BIN_EXE_kfd-probe"))
        .arg("decode")
        .args(&many)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut text = String::new();
    child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(text, "");
}

#[test]
fn usage_errors_are_exit_code_2() {
    assert_eq!(code(&probe(&[])), 2);
    assert_eq!(code(&probe(&["devices", "--model", "all", "--hardware"])), 2);
    assert_eq!(code(&probe(&["nonsense"])), 2);
}

/// Images of the first bundle in a report of `object`.
fn images(value: &Value) -> &Vec<Value> {
    value["bundles"][0]["images"].as_array().unwrap()
}

#[test]
fn object_tells_what_is_in_a_compressed_bundle_and_what_fits() {
    let file = fixture("fat_host.ccob3.c22.bundle");
    let file = file.to_str().unwrap();
    let (code, value) = json(&["object", file, "--target", "gfx90a:xnack+"]);
    assert_eq!(code, 0, "{value:#}");
    assert_eq!(value["container"], "bundles");
    assert_eq!(value["bundles"][0]["encoding"], "CCOB 3 zstd");
    let targets: Vec<&Value> = images(&value).iter().map(|image| &image["target"]).collect();
    assert_eq!(targets, ["gfx1100", "gfx90a", "gfx942"]);
    for image in images(&value) {
        assert_eq!(image["problem"], Value::Null);
        assert_eq!(image["kernels"].as_array().unwrap().len(), 2);
        assert_eq!(image["managed"][0]["name"], "man_var");
        assert_eq!(image["managed"][0]["bytes"], 4);
    }
    let device = &value["devices"][0];
    assert_eq!(device["target"], "gfx90a:sramecc+:xnack+");
    assert_eq!(device["fits"], true);
    assert_eq!(device["images"][0]["image"], "hipv4-amdgcn-amd-amdhsa--gfx90a");
}

#[test]
fn object_exits_with_1_and_reasons_when_nothing_fits() {
    let file = fixture("vadd.multi.bundle");
    let (code, value) = json(&["object", file.to_str().unwrap(), "--target", "gfx1030"]);
    assert_eq!(code, 1);
    let device = &value["devices"][0];
    assert_eq!(device["fits"], false);
    assert_eq!(device["images"][0]["misfits"].as_array().unwrap().len(), 3);
    assert_eq!(device["images"][0]["misfits"][0][1], "another processor");
    let text = stdout(&probe(&["object", file.to_str().unwrap(), "--target", "gfx1030"]));
    assert!(text.contains("gfx1030: does not fit"), "{text}");
}

#[test]
fn object_tells_what_kernels_take_and_need() {
    let file = fixture("bigvgpr.gfx90a.v5.co");
    let (code, value) = json(&["object", file.to_str().unwrap(), "--target", "gfx90a"]);
    assert_eq!(code, 0);
    assert_eq!(value["container"], "code object");
    for kernel in images(&value)[0]["kernels"].as_array().unwrap() {
        let vgprs = kernel["vgprs"].as_u64().unwrap();
        assert_eq!(kernel["occupancy"]["waves_per_simd"], (512 / vgprs).min(8), "{kernel:#}");
        assert_eq!(kernel["occupancy"]["processor"], "gfx90a");
    }
    let file = fixture("printf_buffered.gfx90a.v5.co");
    let (_, value) = json(&["object", file.to_str().unwrap(), "--target", "gfx90a"]);
    let needs = images(&value)[0]["needs"].as_array().unwrap();
    assert!(needs.contains(&Value::from("printf buffer")), "{needs:?}");
    let formats = images(&value)[0]["printf_formats"].as_array().unwrap();
    assert!(formats.contains(&Value::from("hello from %d of block %u\n")), "{formats:?}");
}

#[test]
fn object_says_why_an_image_cannot_be_loaded() {
    let file = fixture("vadd.gfx906.v2.c15.co");
    let (code, value) = json(&["object", file.to_str().unwrap(), "--target", "gfx906"]);
    assert_eq!(code, 1);
    let problem = images(&value)[0]["problem"].as_str().unwrap();
    assert!(problem.contains("code object version 2 or older"), "{problem}");
}

#[test]
fn object_refuses_foreign_files_and_targets() {
    let foreign = Temporary::new("foreign");
    std::fs::write(foreign.path(), b"not a bundle").unwrap();
    let output = probe(&["object", foreign.path()]);
    assert_eq!(code(&output), 7);
    assert!(stderr(&output).contains("neither an ELF file nor an offload bundle"));
    assert_eq!(code(&probe(&["object", foreign.path(), "--target", "gfx9-generic"])), 2);
}
