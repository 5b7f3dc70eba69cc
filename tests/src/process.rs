//! Forked children.
#![allow(unsafe_code)] // fork and _exit

use std::fs::File;
use std::io::{PipeWriter, Read as _, Write as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork};

/// One fork at a time: no child inherits the pipe of another.
static FORKING: Mutex<()> = Mutex::new(());

/// Runs `body` in a forked child, which has one thread, and waits for it to end. What the body
/// prints with `println!` is lost.
///
/// # Errors
/// The child's panic with its place, or how it died. A child that takes longer than `limit` is
/// killed.
pub fn in_child(limit: Duration, body: impl FnOnce()) -> Result<(), String> {
    let guard = FORKING.lock().unwrap_or_else(PoisonError::into_inner);
    let (mut from_child, to_parent) = std::io::pipe().map_err(|error| error.to_string())?;
    // SAFETY: the child runs test code on one thread. glibc makes its allocator usable there, no
    // lock of ours is held across the fork by another thread but std's for printing, which the
    // child does not use, and it leaves by `_exit` without running the parent's exit handlers.
    let forked = unsafe { fork() };
    let child = match forked.map_err(|errno| errno.to_string())? {
        ForkResult::Child => {
            drop(guard); // the child's own copy: its body may fork too
            run(to_parent, body)
        }
        ForkResult::Parent { child } => child,
    };
    drop(to_parent);
    drop(guard);
    let status = wait(child, limit)?;
    let mut message = String::new();
    let _ = from_child.read_to_string(&mut message);
    match status {
        WaitStatus::Exited(_, 0) => Ok(()),
        WaitStatus::Exited(..) => Err(message),
        other => Err(format!("the child ended with {other:?} {message}")),
    }
}

/// Sends what this process prints from here on to `file`. For children only.
///
/// # Panics
/// When the descriptors cannot be replaced.
pub fn redirect_output(file: &File) {
    nix::unistd::dup2_stdout(file).expect("the standard output is replaced");
    nix::unistd::dup2_stderr(file).expect("the error output is replaced");
}

fn run(to_parent: PipeWriter, body: impl FnOnce()) -> ! {
    // The hook lives as long as the process, and so does its end of the pipe.
    std::panic::set_hook(Box::new(move |panic| {
        let _ = write!(&to_parent, "{panic}");
    }));
    let failed = catch_unwind(AssertUnwindSafe(body)).is_err();
    // SAFETY: ends the process; nothing of the parent's is run.
    unsafe { nix::libc::_exit(i32::from(failed)) }
}

fn wait(child: Pid, limit: Duration) -> Result<WaitStatus, String> {
    let deadline = Instant::now() + limit;
    loop {
        match waitpid(child, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::StillAlive) if Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(1));
            }
            Ok(WaitStatus::StillAlive) => {
                let _ = kill(child, Signal::SIGKILL);
                let _ = waitpid(child, None);
                return Err(format!("the child was killed after {limit:?}"));
            }
            Ok(status) => return Ok(status),
            Err(errno) => return Err(errno.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(20);

    #[test]
    fn a_child_that_returns_is_ok_and_one_that_panics_says_why() {
        assert_eq!(in_child(LIMIT, || {}), Ok(()));
        let message = in_child(LIMIT, || panic!("because")).unwrap_err();
        assert!(message.contains("because") && message.contains("process.rs"), "{message}");
    }

    #[test]
    fn a_child_can_have_a_child() {
        assert_eq!(in_child(LIMIT, || in_child(LIMIT, || {}).unwrap()), Ok(()));
    }

    #[test]
    fn a_child_that_hangs_is_killed_and_one_that_dies_says_how() {
        let hang = || std::thread::sleep(Duration::from_secs(3600));
        assert!(in_child(Duration::from_millis(50), hang).unwrap_err().contains("killed"));
        let dead = in_child(LIMIT, || std::process::abort()).unwrap_err();
        assert!(dead.contains("SIGABRT"), "{dead}");
    }
}
