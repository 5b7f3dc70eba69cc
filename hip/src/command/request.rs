//! [`CommandRequest`]: how to record; [`CommandKind`]: what becomes of it.

use std::fmt;
use std::sync::Arc;

use pm4::IndirectBuffer;

use crate::error::LaunchProblem;

/// What a command buffer is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CommandKind {
    /// A buffer of PM4 packets in memory. A submission is one packet, however long the buffer is, on
    /// PM4 streams and on AQL streams of GPUs with one XCC.
    IndirectBuffer,
    /// AQL packets, which a submission copies into the ring. For AQL streams of every GPU.
    Packets,
}

impl fmt::Display for CommandKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::IndirectBuffer => "indirect buffer",
            Self::Packets => "packets",
        })
    }
}

/// Why a command buffer is of its kind.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// [`CommandRequest::kind`] said so.
    Asked,
    /// Submissions of an indirect buffer take the same time whatever its length.
    Fastest,
    /// The GPU has so many XCCs, of which only AQL's own dispatches use all.
    Xccs(u32),
    /// The PM4 packets of the GPU are not known.
    UnknownPm4,
    /// A kernel cannot be launched by PM4 packets.
    Kernel(Arc<str>, LaunchProblem),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Asked => f.write_str("asked for"),
            Self::Fastest => f.write_str("a submission takes the same time whatever the length"),
            Self::Xccs(count) => write!(f, "the GPU has {count} XCCs, which only AQL uses all of"),
            Self::UnknownPm4 => f.write_str("the PM4 packets of the GPU are not known"),
            Self::Kernel(kernel, problem) => {
                write!(f, "kernel {kernel} cannot be launched by PM4 packets: {problem}")
            }
        }
    }
}

/// How to record. Everything has a default.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct CommandRequest {
    pub(crate) kind: Option<CommandKind>,
    pub(crate) explicit_order: bool,
    pub(crate) instances: usize,
    pub(crate) buffer_dwords: u32,
}

impl CommandRequest {
    /// The best kind for the GPU, in order, up to eight submissions in flight.
    pub const fn new() -> Self {
        let buffer_dwords = IndirectBuffer::MAX_BUFFER_DWORDS;
        Self { kind: None, explicit_order: false, instances: 8, buffer_dwords }
    }

    /// Makes it of one kind.
    pub const fn kind(mut self, kind: CommandKind) -> Self {
        self.kind = Some(kind);
        self
    }

    /// Kernels, copies and fills between two [barriers](super::CommandRecorder::barrier) may overlap.
    /// Without it each waits for the one before.
    pub const fn explicit_order(mut self) -> Self {
        self.explicit_order = true;
        self
    }

    /// Submissions in flight at most; each has a copy of the commands and their arguments, made when
    /// it is first needed. One more waits until the first is done.
    pub const fn instances(mut self, instances: usize) -> Self {
        self.instances = instances;
        self
    }

    /// Most dwords of one indirect buffer, up to what hardware takes, which is the default. What is
    /// longer becomes a chain of them.
    pub const fn buffer_dwords(mut self, dwords: u32) -> Self {
        self.buffer_dwords = dwords;
        self
    }
}

impl Default for CommandRequest {
    fn default() -> Self {
        Self::new()
    }
}
