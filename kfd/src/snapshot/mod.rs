//! What every queue of a [`Kfd`](crate::Kfd) stands at, at one moment: for reports of hangs, and for
//! tools.
//!
//! A snapshot is plain data. With the cargo feature `serde` it can be serialised, and written to and
//! read from a file ([`Snapshot::write_to`], [`Snapshot::read_from`]); `kfd-probe decode --from`
//! shows such a file.

mod collect;
#[cfg(feature = "serde")]
mod file;
mod text;

#[cfg(feature = "serde")]
pub use file::{SnapshotFileError, VERSION};

use crate::ids::{GpuId, QueueId};
use crate::queue::QueueKind;

/// Queues, memory, events and leaks of a [`Kfd`](crate::Kfd).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Snapshot {
    /// The process.
    pub pid: u32,
    /// KFD's version.
    pub kfd_version: String,
    /// When, on the clock of [`Kernel::now`](crate::sys::Kernel::now), milliseconds.
    pub at_ms: u64,
    /// The usable GPUs.
    pub gpus: Vec<GpuRecord>,
    /// Live queues, in the order they were made.
    pub queues: Vec<QueueRecord>,
    /// Memory in use, by kind.
    pub memory: Vec<MemoryRecord>,
    /// Events in use: those of signals that were ever waited for asleep, and three of the driver's.
    pub events: u32,
    /// What was not freed since the device might still use it.
    pub leaks: Vec<LeakRecord>,
}

/// A GPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct GpuRecord {
    /// KFD's id.
    pub gpu: GpuId,
    /// Instruction set: `gfx1100`.
    pub target: String,
    /// Why it is lost, if it is known to be.
    pub lost: Option<String>,
}

/// A queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct QueueRecord {
    /// KFD's id.
    pub queue: QueueId,
    /// Its GPU.
    pub gpu: GpuId,
    /// Instruction set of its GPU.
    pub target: String,
    /// What it is, and so what the indices count: [`QueueKind::unit`].
    pub kind: QueueKind,
    /// Address of the ring.
    pub ring: u64,
    /// Bytes of the ring.
    pub ring_bytes: u64,
    /// What the device has taken.
    pub read_index: u64,
    /// What was submitted.
    pub write_index: u64,
    /// The word that the device writes its read index to, where it broke the rules.
    pub bad_read_word: Option<u64>,
    /// How long the oldest pending packet has been seen to be the oldest, milliseconds: since the
    /// first look that found it so, by a snapshot or by a wait that slept. So it is a lower bound,
    /// and 0 at the first look: submission keeps no times.
    pub oldest_ms: Option<u64>,
    /// The oldest pending packets.
    pub packets: Vec<PacketRecord>,
    /// The oldest pending dwords, from `read_index` on.
    pub dwords: Vec<u32>,
    /// What the oldest pending packet waits for, if it waits.
    pub waits: Vec<WaitRecord>,
    /// Where its doorbell is in the doorbell page of its GPU, bytes.
    pub doorbell_offset: u64,
    /// Priority, 0 to 15.
    pub priority: u32,
    /// Private memory a work-item can have, bytes.
    pub private_bytes: u32,
    /// Taken off the GPU by [`suspend`](crate::Queue::suspend).
    pub suspended: bool,
    /// Nothing can be submitted any more.
    pub stopped: bool,
    /// Why it is lost, if it is known to be.
    pub fault: Option<String>,
    /// Waves that the kernel saved: of suspended compute queues.
    pub saved_waves: Option<SavedWaves>,
    /// Exceptions that KFD holds for the queue, bit n for code n + 1: from
    /// [`Kfd::snapshot_with_debugger`](crate::Kfd::snapshot_with_debugger) only.
    pub exceptions: Option<u64>,
}

impl QueueRecord {
    /// Most packets of a record.
    pub const PACKETS: usize = 64;
    /// Most dwords of a record.
    pub const DWORDS: usize = 4096;

    /// What is pending, in the unit of its kind.
    pub fn pending(&self) -> u64 {
        self.write_index.saturating_sub(self.read_index)
    }
}

/// A pending packet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct PacketRecord {
    /// Index in the queue: [`QueueKind::unit`].
    pub index: u64,
    /// Name of the kernel, when it was submitted with one.
    pub kernel: Option<String>,
    /// The packet as text.
    pub text: String,
}

/// A word that a packet waits for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct WaitRecord {
    /// Its address.
    pub address: u64,
    /// What it has to be.
    pub wants: String,
    /// What it is, where it is in memory of signals. Of a 32-bit wait its 32 bits.
    pub value: Option<u64>,
    /// Pending packets that name it: it may be they that have to change it. With none, only the host
    /// or a running kernel can.
    pub named_by: Vec<NamedBy>,
}

/// A pending packet that names an address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct NamedBy {
    /// Its queue.
    pub queue: QueueId,
    /// Its index there.
    pub index: u64,
}

/// What the kernel saved of a suspended queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct SavedWaves {
    /// Bytes used of the control stack.
    pub control_stack_bytes: u32,
    /// Bytes used of the save area.
    pub save_area_bytes: u32,
}

/// Memory of a kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct MemoryRecord {
    /// `Vram`, `Gtt` and so on.
    pub kind: String,
    /// Allocations.
    pub count: u64,
    /// Bytes asked for.
    pub bytes: u64,
}

/// Something that was deliberately not freed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct LeakRecord {
    /// What.
    pub what: String,
    /// Bytes it holds.
    pub bytes: u64,
    /// Why it could not be freed.
    pub why: String,
}
