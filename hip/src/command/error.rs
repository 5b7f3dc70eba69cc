//! Why a command buffer cannot be recorded, changed or submitted as asked.

use std::sync::Arc;

use super::CommandKind;

/// Why a command buffer cannot be recorded, changed or submitted as asked. Nothing was submitted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CommandError {
    /// A kernel needs memory of each of its launches, which one recorded launch cannot have.
    #[error("kernel {kernel} cannot be recorded: {service} needs memory of each launch")]
    Service {
        /// The kernel.
        kernel: Arc<str>,
        /// What it needs.
        service: &'static str,
    },
    /// The id of a kernel, a time or a submission is another command buffer's.
    #[error("{what} {number} is of another command buffer")]
    OtherBuffer {
        /// "kernel", "time" or "submission".
        what: &'static str,
        /// Its number there.
        number: u64,
    },
    /// A recorded kernel has no such argument.
    #[error("kernel {kernel} has {count} arguments, none has number {index}")]
    NoArgument {
        /// The kernel.
        kernel: Arc<str>,
        /// The number asked for, from 0.
        index: usize,
        /// How many there are.
        count: usize,
    },
    /// A stream cannot take command buffers of a kind.
    #[error("{stream} cannot take a command buffer of kind {kind}: {why}")]
    Stream {
        /// The stream.
        stream: &'static str,
        /// The kind.
        kind: CommandKind,
        /// Why, and what to do instead.
        why: &'static str,
    },
    /// More than a command buffer can hold.
    #[error("{found} {what}, at most {max}")]
    TooLarge {
        /// Of what.
        what: &'static str,
        /// How many.
        found: u64,
        /// Most.
        max: u64,
    },
    /// Later submissions have used the memory that held the results.
    #[error("the times of submission {number} were overwritten by a later one")]
    Overwritten {
        /// The submission.
        number: u64,
    },
}
