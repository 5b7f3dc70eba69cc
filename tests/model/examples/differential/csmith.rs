//! Programs of csmith: C without floats, one work-item. The checksum that they print is compared.

use std::path::Path;
use std::process::ExitCode;

use super::{Options, clang, on_cpu, on_gpu};
use kfd_model::Target;

/// What csmith's runtime header wants of the C library, for either machine, and the checksum.
const STUB: &str = include_str!("csmith_stub.h");

/// Runs every `.c` file of a directory.
pub fn run(directory: &Path, options: &Options) -> ExitCode {
    let mut files: Vec<_> = std::fs::read_dir(directory)
        .map(|entries| entries.filter_map(|entry| Some(entry.ok()?.path())).collect())
        .unwrap_or_default();
    files.retain(|path: &std::path::PathBuf| path.extension().is_some_and(|end| end == "c"));
    files.sort();
    let (mut wrong, mut runs, mut unusable) = (0, 0, 0);
    for file in files.iter().take(options.seeds as usize) {
        let Ok(text) = std::fs::read_to_string(file) else { continue };
        let work = tempfile::tempdir().unwrap();
        let source = work.path().join("program.c");
        // The program's own includes are replaced, and its main is called by ours.
        let body: String = text
            .lines()
            .filter(|line| !line.starts_with("#include"))
            .map(|line| format!("{line}\n"))
            .collect::<String>()
            .replace("int main (", "static int csmith_main (");
        std::fs::write(&source, STUB.replace("PROGRAM_GOES_HERE", &body)).unwrap();
        let Ok(want) = on_cpu(work.path(), &source, "c") else {
            unusable += 1; // does not end within five seconds, or does not build
            continue;
        };
        for &target in &options.targets {
            for level in &options.levels {
                runs += 1;
                if let Err(why) = compare(work.path(), &source, target, level, options, &want) {
                    wrong += 1;
                    eprintln!("{} on {target} at -O{level}: {why}", file.display());
                }
            }
        }
    }
    println!("{} programs, {unusable} of no use, {runs} builds, {wrong} differ", files.len());
    if wrong == 0 && runs != 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn compare(
    work: &Path,
    source: &Path,
    target: Target,
    level: &str,
    options: &Options,
    want: &[u32],
) -> Result<(), String> {
    let object = work.join("gpu.co");
    let built = clang(
        &[
            "-x",
            "c",
            "-target",
            "amdgcn-amd-amdhsa",
            &format!("-mcpu={target}"),
            "-nogpulib",
            "-w",
            "-fwrapv",
            super::HEADERS,
            &format!("-O{level}"),
        ],
        source,
        &object,
    );
    if let Err(why) = built {
        // Some programs are too much for the compiler itself.
        return if why.contains("PLEASE submit a bug report") { Ok(()) } else { Err(why) };
    }
    let object = std::fs::read(&object).map_err(|error| error.to_string())?;
    let got = on_gpu(object, (target, &options.watch), (1, 1, 1))?;
    if got == want { Ok(()) } else { Err(format!("{got:x?}, the CPU says {want:x?}")) }
}
