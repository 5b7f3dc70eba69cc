//! Runs random programs on the software GPU and on the CPU, and compares every word.
//!
//! `cargo run --release -p kfd-model --example differential -- [--seeds N] [--first SEED]
//! [--targets A,B] [--levels 0,1,2,3] [--watch WHAT] [--csmith DIRECTORY]`
//!
//! Needs clang-19 and lld-19, for csmith's programs libcsmith-dev. Each seed is a program (`program.rs`) that is compiled for x86-64 and, at
//! each level, for each target. With `--csmith`, the `.c` files of a directory, written by csmith, are
//! the programs instead. A program that differs is made smaller as long as it still does, and shown.
//! Exits with 1 if one did.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]
#![allow(clippy::cast_possible_truncation)] // sizes are constants here

#[path = "../../tests/bare/mod.rs"]
mod bare;
mod csmith;
mod program;

use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::Arc;

use bare::observe;
use kfd_model::Target;
use kfd_model::exec::observe::Observer;
use kfd_model::exec::{Engine, Outcome};
use kfd_probe::programs::{Arg, Case};
use program::{GROUP, GROUPS, Program, SUMS, WORDS};

/// What to do.
struct Options {
    first: u64,
    seeds: u64,
    targets: Vec<Target>,
    levels: Vec<String>,
    watch: String,
    csmith: Option<String>,
}

impl Options {
    fn read() -> Result<Self, String> {
        let mut options = Self {
            first: 1,
            seeds: 20,
            targets: vec![Target::Gfx900, Target::Gfx90a, Target::Gfx942, Target::Gfx1100],
            levels: ["0", "1", "2", "3"].map(str::to_owned).into(),
            watch: "check".to_owned(),
            csmith: None,
        };
        let mut args = std::env::args().skip(1);
        while let Some(name) = args.next() {
            let value = args.next().ok_or(format!("{name} wants a value"))?;
            let bad = || format!("{name}: {value:?} is none");
            match name.as_str() {
                "--first" => options.first = value.parse().map_err(|_| bad())?,
                "--seeds" => options.seeds = value.parse().map_err(|_| bad())?,
                "--levels" => options.levels = value.split(',').map(str::to_owned).collect(),
                "--watch" => options.watch = value,
                "--csmith" => options.csmith = Some(value),
                "--targets" => {
                    let targets = value.split(',').map(str::parse).collect::<Result<_, _>>();
                    options.targets = targets.map_err(|_| bad())?;
                }
                _ => return Err(format!("{name} is unknown")),
            }
        }
        Ok(options)
    }
}

/// Runs clang-19; an error is what it says.
fn clang(arguments: &[&str], source: &Path, output: &Path) -> Result<(), String> {
    let run = Command::new("clang-19").args(arguments).arg(source).arg("-o").arg(output).output();
    let run = run.map_err(|error| format!("clang-19: {error}"))?;
    if run.status.success() {
        return Ok(());
    }
    Err(format!("clang-19: {}", String::from_utf8_lossy(&run.stderr)))
}

/// Where Debian's libcsmith-dev has its headers.
const HEADERS: &str = "-I/usr/include/csmith";

/// What the CPU computes: the words that the program prints.
fn on_cpu(directory: &Path, source: &Path, language: &str) -> Result<Vec<u32>, String> {
    let binary = directory.join("cpu");
    let flags = [
        "-x",
        language,
        "-w",
        "-O1",
        "-ffp-contract=off",
        "-mfma",
        "-fwrapv",
        "-fno-math-errno",
        HEADERS,
    ];
    clang(&flags, source, &binary)?;
    let mut run = Command::new("timeout");
    let run = run.arg("5").arg(&binary).output().map_err(|error| error.to_string())?;
    if !run.status.success() {
        return Err(format!("the CPU's program: {}", run.status));
    }
    let text = String::from_utf8_lossy(&run.stdout);
    Ok(text.split_whitespace().filter_map(|word| word.parse().ok()).collect())
}

/// What the software GPU computes.
fn on_gpu(
    object: Vec<u8>,
    (target, watch): (Target, &str),
    (grid, group, words): (u32, u32, u32),
) -> Result<Vec<u32>, String> {
    let engine = Engine::new(0);
    let observer = Arc::new(Observer::new(watch.parse().map_err(|e| format!("{e}"))?).unwrap());
    if !watch.is_empty() {
        engine.observe(Arc::clone(&observer));
    }
    let case = Case {
        name: "program".to_owned(),
        object: Box::leak(object.into_boxed_slice()),
        kernel: "program",
        grid: [grid, 1, 1],
        group: [group, 1, 1],
        dynamic_lds_bytes: 0,
        args: vec![Arg::Buffer(vec![0; 4 * words as usize])],
        check: Box::new(|_| Ok(())),
    };
    let run = observe(&engine, Some(100_000), target, &case)?;
    if run.outcome != Some(Outcome::Completed) {
        return Err(format!("{:?}, faults {:x?}, {}", run.outcome, run.faults, run.says()));
    }
    if !run.diagnoses.is_empty() {
        return Err(run.says());
    }
    Ok(run.buffers[0].as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect())
}

/// Compiles a program for a target and compares with what the CPU says.
fn compare(
    directory: &Path,
    source: &Path,
    (target, level, watch): (Target, &str, &str),
    want: &[u32],
) -> Result<(), String> {
    let object = directory.join("gpu.co");
    let wave = if target.is_gfx9() { 64 } else { 32 };
    clang(
        &[
            "-x",
            "hip",
            "--cuda-device-only",
            "--no-gpu-bundle-output",
            "-nogpuinc",
            "-nogpulib",
            "-w",
            "-ffp-contract=off",
            "-fwrapv",
            &format!("-O{level}"),
            &format!("-DWAVE={wave}"),
            &format!("--offload-arch={target}"),
        ],
        source,
        &object,
    )?;
    let object = std::fs::read(&object).map_err(|error| error.to_string())?;
    let words = GROUP * GROUPS * WORDS + SUMS;
    let got = on_gpu(object, (target, watch), (GROUP * GROUPS, GROUP, words))?;
    match got.iter().zip(want).position(|(got, want)| got != want) {
        None => Ok(()),
        Some(at) => Err(format!(
            "word {} of work-item {}: {:#x}, the CPU says {:#x}",
            at as u32 % WORDS,
            at as u32 / WORDS,
            got[at],
            want[at]
        )),
    }
}

/// One program on every target at every level: what differs first.
fn check(
    program: &Program,
    options: &Options,
    only: Option<(Target, &str)>,
) -> Result<(), (Target, String, String)> {
    let directory = tempfile::tempdir().unwrap();
    let source = directory.path().join("program.cpp");
    std::fs::write(&source, program.source()).unwrap();
    let failed = |target, level: &str, why| (target, level.to_owned(), why);
    let want = on_cpu(directory.path(), &source, "c++")
        .map_err(|why| failed(Target::Gfx900, "cpu", why))?;
    for &target in &options.targets {
        for level in &options.levels {
            if only.is_some_and(|only| only != (target, level)) {
                continue;
            }
            compare(directory.path(), &source, (target, level, &options.watch), &want)
                .map_err(|why| failed(target, level, why))?;
        }
    }
    Ok(())
}

/// Makes a program smaller that differs on a target at a level.
fn shrink(mut program: Program, options: &Options, at: (Target, &str)) -> Program {
    let fails = |program: &Program| match check(program, options, Some(at)) {
        // A program that no longer compiles is no smaller one.
        Err((_, level, why)) => level != "cpu" && !why.starts_with("clang"),
        Ok(()) => false,
    };
    loop {
        let smaller = (0..program.parts())
            .flat_map(|k| [program.without(k, false), program.without(k, true)])
            .filter(|smaller| smaller.parts() < program.parts())
            .find(|smaller| fails(smaller));
        match smaller {
            Some(smaller) => program = smaller,
            None => return program,
        }
    }
}

fn main() -> ExitCode {
    let options = match Options::read() {
        Ok(options) => options,
        Err(why) => {
            eprintln!("{why}");
            return ExitCode::from(2);
        }
    };
    if let Some(directory) = &options.csmith {
        return csmith::run(Path::new(directory), &options);
    }
    let mut wrong = 0;
    for seed in options.first..options.first + options.seeds {
        let program = Program::new(seed);
        let Err((target, level, why)) = check(&program, &options, None) else { continue };
        wrong += 1;
        eprintln!("seed {seed} on {target} at -O{level}: {why}");
        if level == "cpu" {
            continue;
        }
        let small = shrink(program, &options, (target, &level));
        let why = check(&small, &options, Some((target, &level))).err().map(|(.., why)| why);
        println!("{}\n// {target} -O{level}: {}", small.source(), why.unwrap_or_default());
    }
    let runs = options.seeds * (options.targets.len() * options.levels.len()) as u64;
    println!("{} programs, {runs} builds, {wrong} programs differ", options.seeds);
    if wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
