//! `run`: an unmodified program on the software GPU.
//!
//! The program gets a library by `LD_PRELOAD` that stands before the C library's file functions.
//! What is not the software GPU's passes through it untouched.

use std::convert::Infallible;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{Read as _, Seek as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill, raise};
use nix::unistd::Pid;
use object::read::elf::{FileHeader as _, ProgramHeader as _};
use object::{Endianness, elf};
use serde::Serialize;
use serde_json::Value;

use crate::cli::RunArgs;
use crate::exit::Failure;

/// The library's file name.
const LIBRARY: &str = "libkfd_model.so";

/// How to make it.
const BUILD: &str = "cargo build --release -p kfd-model-preload";

/// What a run came to.
#[derive(Debug, Serialize)]
struct Report {
    schema: u32,
    command: &'static str,
    program: Vec<String>,
    model: Vec<&'static str>,
    seconds: f64,
    /// Exit status, if it exited.
    status: Option<i32>,
    /// Signal, if one killed it.
    signal: Option<i32>,
    timed_out: bool,
    /// What each process that used the software GPU told when it exited.
    processes: Vec<Value>,
}

/// Runs the program and ends this process as it ended.
///
/// # Errors
/// [`Failure::BadInput`] when it cannot be run so, with the reason in one line.
pub fn run(args: &RunArgs) -> Result<Infallible, Failure> {
    let library = find_library()?;
    let (program, arguments) = args
        .program
        .split_first()
        .ok_or_else(|| Failure::BadInput { what: "no program is named".to_owned() })?;
    let path = find_program(program).ok_or_else(|| Failure::BadInput {
        what: format!("{} is not there or cannot be executed", program.display()),
    })?;
    check_loader(&path)?;
    let mut report_file = match &args.report {
        Some(_) => Some(scratch_file()?),
        None => None,
    };
    let mut command = Command::new(&path);
    command.arg0(program).args(arguments);
    command.env("LD_PRELOAD", preload(&library, std::env::var_os("LD_PRELOAD")));
    command.env("KFD_MODEL", args.model.0.join(","));
    if args.kfd_offsets {
        command.env("KFD_MODEL_OFFSETS", "kfd");
    }
    if let Some((path, _)) = &report_file {
        command.env("KFD_MODEL_REPORT", path);
    }
    if args.timeout.is_some() {
        // All that the program starts ends with it.
        command.process_group(0);
    }
    let started = Instant::now();
    let mut child = command
        .spawn()
        .map_err(|source| Failure::Read { path: path.display().to_string(), source })?;
    let (status, timed_out) = wait(&mut child, args.timeout)?;
    if let (Some(path), Some((_, file))) = (&args.report, &mut report_file) {
        let report = Report {
            schema: 1,
            command: "run",
            program: args.program.iter().map(|part| part.display().to_string()).collect(),
            model: args.model.0.clone(),
            seconds: started.elapsed().as_secs_f64(),
            status: status.code(),
            signal: status.signal(),
            timed_out,
            processes: told(file)?,
        };
        let mut text = serde_json::to_string_pretty(&report)?;
        text.push('\n');
        fs::write(path, text)?;
    }
    std::process::exit(exit_status(status, timed_out))
}

/// What to exit with. Does not return when a signal killed the program that kills this one too.
fn exit_status(status: ExitStatus, timed_out: bool) -> i32 {
    if timed_out {
        return 124; // as timeout(1) has it
    }
    if let Some(code) = status.code() {
        return code;
    }
    let number = status.signal().unwrap_or(0);
    if let Ok(signal) = Signal::try_from(number) {
        // Ends this process the same way, unless the signal is ignored here.
        let _ = raise(signal);
    }
    128 + number
}

/// Waits for the program, at most `timeout` seconds. True when it had to be killed.
fn wait(child: &mut Child, timeout: Option<u64>) -> Result<(ExitStatus, bool), Failure> {
    let Some(seconds) = timeout else { return Ok((child.wait()?, false)) };
    let deadline = Instant::now() + Duration::from_secs(seconds);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok((status, false));
        }
        if Instant::now() >= deadline {
            let group = i32::try_from(child.id()).unwrap_or(i32::MAX);
            let _ = kill(Pid::from_raw(-group), Signal::SIGKILL);
            return Ok((child.wait()?, true));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// What processes wrote into the report file, one JSON document a line.
fn told(file: &mut fs::File) -> Result<Vec<Value>, Failure> {
    let mut text = String::new();
    file.rewind()?;
    file.read_to_string(&mut text)?;
    Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
}

/// A file without a name that the program's processes can open: nothing stays behind.
fn scratch_file() -> Result<(PathBuf, fs::File), Failure> {
    let flags = nix::sys::memfd::MFdFlags::MFD_CLOEXEC;
    let fd = nix::sys::memfd::memfd_create(c"kfd-probe report", flags)
        .map_err(|errno| Failure::Output(errno.into()))?;
    let file = fs::File::from(fd);
    let number = std::os::fd::AsRawFd::as_raw_fd(&file);
    Ok((PathBuf::from(format!("/proc/{}/fd/{number}", std::process::id())), file))
}

/// The library, and what was preloaded before.
fn preload(library: &Path, before: Option<OsString>) -> OsString {
    let mut all = library.as_os_str().to_owned();
    if let Some(before) = before.filter(|before| !before.is_empty()) {
        all.push(":");
        all.push(before);
    }
    all
}

/// Beside this executable, where cargo puts both; else where the environment says.
fn find_library() -> Result<PathBuf, Failure> {
    let beside = std::env::current_exe().ok().map(|path| path.with_file_name(LIBRARY));
    let named = std::env::var_os("KFD_MODEL_PRELOAD").map(PathBuf::from);
    let found = beside.into_iter().chain(named).find(|path| path.is_file());
    let found = found.and_then(|path| fs::canonicalize(path).ok());
    found.ok_or_else(|| Failure::BadInput {
        what: format!(
            "{LIBRARY} is neither beside kfd-probe nor named by KFD_MODEL_PRELOAD; build it with: {BUILD}"
        ),
    })
}

/// The file that a shell would run.
fn find_program(program: &OsStr) -> Option<PathBuf> {
    let executable = |path: &Path| {
        path.is_file() && nix::unistd::access(path, nix::unistd::AccessFlags::X_OK).is_ok()
    };
    let path = Path::new(program);
    if path.components().count() > 1 || path.is_absolute() {
        return executable(path).then(|| path.to_owned());
    }
    let directories = std::env::var_os("PATH")?;
    std::env::split_paths(&directories).map(|at| at.join(path)).find(|path| executable(path))
}

/// Refuses what the loader would not give the library to: static and set-user-id programs, and those
/// of another machine. Scripts are for their interpreters.
fn check_loader(path: &Path) -> Result<(), Failure> {
    let refuse = |why: &str| Err(Failure::BadInput { what: format!("{}: {why}", path.display()) });
    let read = |source| Failure::Read { path: path.display().to_string(), source };
    let mut head = [0; 4];
    let mut file = fs::File::open(path).map_err(read)?;
    if file.read(&mut head).map_err(read)? < 4 || head != elf::ELFMAG {
        return Ok(());
    }
    let data = fs::read(path).map_err(read)?;
    let Ok(header) = elf::FileHeader64::<Endianness>::parse(&*data) else {
        return refuse("not a 64-bit program");
    };
    let Ok(endian) = header.endian() else { return refuse("an ELF file of an unknown byte order") };
    if header.e_machine(endian) != elf::EM_X86_64 {
        return refuse("not a program for x86-64");
    }
    let segments = header.program_headers(endian, &*data).unwrap_or_default();
    if !segments.iter().any(|segment| segment.p_type(endian) == elf::PT_INTERP) {
        return refuse(
            "a static program cannot be given a library; link it dynamically to run it on the software GPU",
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_preloaded_before_stays_behind_the_library() {
        let library = Path::new("/x/lib.so");
        assert_eq!(preload(library, None), "/x/lib.so");
        assert_eq!(preload(library, Some(OsString::new())), "/x/lib.so");
        assert_eq!(preload(library, Some("/a.so /b.so".into())), "/x/lib.so:/a.so /b.so");
    }

    #[test]
    fn a_program_is_found_as_a_shell_finds_it() {
        assert!(find_program(OsStr::new("sh")).is_some_and(|path| path.is_absolute()));
        assert_eq!(find_program(OsStr::new("/bin/sh")), Some(PathBuf::from("/bin/sh")));
        assert_eq!(find_program(OsStr::new("/dev/null")), None);
        assert_eq!(find_program(OsStr::new("no-such-program")), None);
    }
}
