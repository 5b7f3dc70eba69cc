//! How `kfd-probe` ends: documented exit codes, and the one error type of the program.

use std::io;
use std::process::ExitCode;

/// Exit codes. Stable: scripts depend on them. Usage errors are 2, as clap has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Code {
    /// Everything asked for was done, and every check passed.
    Passed = 0,
    /// A test or check failed: the report says which.
    Failed = 1,
    /// There is no `/dev/kfd`: no driver, or it took no device.
    NoDevice = 3,
    /// `/dev/kfd` or the render node may not be opened: the text names the group by number.
    NotPermitted = 4,
    /// `/dev/kfd` exists but opening or asking it failed with another errno.
    DeviceFailed = 5,
    /// KFD works but shows no GPU that can be used.
    NoGpu = 6,
    /// An input file is missing, truncated, foreign or of an unknown version.
    BadInput = 7,
    /// Output could not be written.
    Output = 8,
}

impl From<Code> for ExitCode {
    fn from(code: Code) -> Self {
        Self::from(code as u8)
    }
}

/// An error with all its causes, in one line.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

/// Why a command ended early.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Writing the report failed.
    #[error("cannot write the output")]
    Output(#[from] io::Error),
    /// Turning the report into JSON failed.
    #[error("cannot write the output as JSON")]
    Json(#[from] serde_json::Error),
    /// A file cannot be read.
    #[error("cannot read {path}")]
    Read {
        /// As given.
        path: String,
        /// The reason.
        #[source]
        source: io::Error,
    },
    /// A file or argument holds something else than it should.
    #[error("{what}")]
    BadInput {
        /// What and where.
        what: String,
    },
    /// No device can be used.
    #[error("{what}")]
    Device {
        /// How to exit.
        code: Code,
        /// The whole story, in one line.
        what: String,
    },
    /// The driver refused something in the middle of a command.
    #[error(transparent)]
    Driver(#[from] kfd::Error),
}

impl Failure {
    /// Whether the reader of standard output went away.
    pub fn is_closed_pipe(&self) -> bool {
        match self {
            Self::Output(error) => error.kind() == io::ErrorKind::BrokenPipe,
            Self::Json(error) => error.io_error_kind() == Some(io::ErrorKind::BrokenPipe),
            _ => false,
        }
    }

    /// The exit code.
    pub fn code(&self) -> Code {
        match self {
            Self::Output(_) | Self::Json(_) => Code::Output,
            Self::Read { .. } | Self::BadInput { .. } => Code::BadInput,
            Self::Device { code, .. } => *code,
            Self::Driver(_) => Code::DeviceFailed,
        }
    }
}
