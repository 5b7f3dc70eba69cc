//! `watch`: rings, again and again.

use std::io::{self, IsTerminal, Read, Write};
use std::os::fd::AsFd;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::termios::{LocalFlags, SetArg, Termios, tcgetattr, tcsetattr};

use super::demo::Demo;
use super::device;
use super::rings::{self, Rings};
use crate::cli::WatchArgs;
use crate::exit::{Code, Failure};
use crate::render::Output;

/// Top left corner, and nothing below.
const CLEAR: &str = "\x1b[H\x1b[2J";

/// Where rings come from.
enum Source {
    File(std::path::PathBuf),
    Own(Box<Demo>),
}

impl Source {
    fn rings(&mut self, first: bool) -> Result<Rings, Failure> {
        match self {
            Self::File(path) => rings::read(path),
            Self::Own(demo) => {
                if !first {
                    demo.step()?;
                }
                let (snapshot, missing) = (demo.snapshot(), demo.missing.clone());
                Ok(Rings { file: None, snapshot, missing })
            }
        }
    }
}

/// Runs `watch`.
pub fn run(args: &WatchArgs, out: &Output) -> Result<Code, Failure> {
    let mut source = match &args.from {
        Some(path) => Source::File(path.clone()),
        None => {
            let device = device::select(&args.device)?;
            Source::Own(Box::new(Demo::start(&device.kfd)?))
        }
    };
    let interval = Duration::from_millis(args.interval.max(10));
    let keys = Keys::new(out);
    let screen = out.is_text_terminal();
    let mut shown = 0;
    loop {
        let rings = source.rings(shown == 0)?;
        if screen {
            out.line(&format!(
                "{CLEAR}kfd-probe watch, every {} ms; q ends",
                interval.as_millis()
            ))?;
        }
        out.report("watch", &rings)?;
        shown += 1;
        if args.count == Some(shown) || keys.quit_within(interval)? {
            break;
        }
        if !screen {
            out.line("")?;
        }
    }
    drop(keys);
    if let Source::Own(demo) = source {
        demo.finish()?;
    }
    Ok(Code::Passed)
}

/// Single keys from a terminal: `q` and ^C end. The terminal is as before when this is dropped.
/// Without a terminal there are no keys, and ^C ends the process as usual.
struct Keys {
    before: Option<Termios>,
}

impl Keys {
    fn new(out: &Output) -> Self {
        let stdin = io::stdin();
        if !out.is_text_terminal() || !stdin.is_terminal() {
            return Self { before: None };
        }
        let Ok(before) = tcgetattr(&stdin) else { return Self { before: None } };
        let mut raw = before.clone();
        raw.local_flags.remove(LocalFlags::ICANON | LocalFlags::ECHO | LocalFlags::ISIG);
        match tcsetattr(&stdin, SetArg::TCSANOW, &raw) {
            Ok(()) => Self { before: Some(before) },
            Err(_) => Self { before: None },
        }
    }

    /// Waits for `time`. Whether a key ended it.
    fn quit_within(&self, time: Duration) -> Result<bool, Failure> {
        if self.before.is_none() {
            std::thread::sleep(time);
            return Ok(false);
        }
        let end = std::time::Instant::now() + time;
        loop {
            let left = end.saturating_duration_since(std::time::Instant::now());
            let milliseconds = u16::try_from(left.as_millis()).unwrap_or(u16::MAX);
            let stdin = io::stdin();
            let mut files = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
            match poll(&mut files, PollTimeout::from(milliseconds)) {
                Ok(0) if left <= Duration::from_millis(milliseconds.into()) => return Ok(false),
                Ok(0) | Err(nix::errno::Errno::EINTR) => continue,
                Ok(_) => {}
                Err(errno) => return Err(Failure::Output(errno.into())),
            }
            let mut key = [0];
            match stdin.lock().read(&mut key) {
                // The terminal is gone, q, ^C, ^D.
                Ok(0) => return Ok(true),
                Ok(_) if matches!(key, [b'q' | b'Q' | 3 | 4]) => return Ok(true),
                Ok(_) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            let _ = tcsetattr(io::stdin(), SetArg::TCSANOW, before);
            let _ = io::stdout().flush();
        }
    }
}
