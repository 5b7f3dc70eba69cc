//! What is known when something went wrong: only what KFD and the driver's own records give.

use std::fmt;

use pm4::GpuAddr;

use crate::ids::{GpuId, QueueId};
use crate::memory::{AllocationInfo, Neighbours};
use crate::queue::QueueKind;
use crate::snapshot::Snapshot;

/// What stopped a GPU for this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FaultCause {
    /// An access without translation or permission.
    Memory {
        /// Start of the page.
        page: GpuAddr,
        /// No page there.
        not_present: bool,
        /// A write to a read-only page.
        read_only: bool,
        /// Execution of a page that is not executable.
        no_execute: bool,
        /// The address is not exact.
        imprecise: bool,
        /// 0 when it was the access itself, else a memory error (docs/ABI.md §Events).
        error_type: u32,
    },
    /// The GPU was reset, or consumed poisoned memory.
    Hardware {
        /// 0 whole GPU, 1 one engine.
        reset_type: u32,
        /// 0 hang, 1 memory error.
        reset_cause: u32,
        /// Whether the content of VRAM is gone.
        memory_lost: bool,
    },
}

impl fmt::Display for FaultCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory { page, not_present, read_only, no_execute, imprecise, error_type } => {
                write!(f, "memory fault in the page at {page}")?;
                let flags = [
                    (*not_present, "not present"),
                    (*read_only, "read-only"),
                    (*no_execute, "not executable"),
                    (*imprecise, "imprecise"),
                    (*error_type != 0, "memory error"),
                ];
                for (_, text) in flags.iter().filter(|(set, _)| *set) {
                    write!(f, ", {text}")?;
                }
                Ok(())
            }
            Self::Hardware { reset_type, reset_cause, memory_lost } => {
                let extent = if *reset_type == 0 { "GPU" } else { "engine" };
                let cause = if *reset_cause == 0 { "a hang" } else { "a memory error" };
                let lost = if *memory_lost { ", VRAM content lost" } else { "" };
                write!(f, "{extent} reset after {cause}{lost}")
            }
        }
    }
}

/// A packet that the device had not finished.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PacketInFlight {
    /// Index in the queue: [`QueueKind::unit`].
    pub index: u64,
    /// Name of the kernel, when the packet was submitted with one.
    pub kernel: Option<String>,
    /// The packet, decoded; empty when it was gone by then.
    pub text: String,
}

/// A queue and what it had in flight.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueState {
    /// The queue.
    pub queue: QueueId,
    /// What it is, and so what the indices count: [`QueueKind::unit`].
    pub kind: QueueKind,
    /// What the device has taken.
    pub read_index: u64,
    /// What was submitted.
    pub write_index: u64,
    /// The oldest packets in flight, up to [`QueueState::PACKETS`].
    pub packets: Vec<PacketInFlight>,
}

impl QueueState {
    /// How many packets a report lists.
    pub const PACKETS: usize = 16;
}

impl fmt::Display for QueueState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "queue {} read {} write {}", self.queue, self.read_index, self.write_index)?;
        if self.kind != QueueKind::Aql {
            write!(f, " {} of {}", self.kind.unit(), self.kind)?;
        }
        for PacketInFlight { index, kernel, text } in &self.packets {
            match (kernel, self.kind) {
                (Some(kernel), _) => write!(f, ", packet {index} {kernel}")?,
                (None, QueueKind::Aql) => write!(f, ", packet {index} unnamed")?,
                (None, _) => write!(f, ", at {index} {text}")?,
            }
        }
        Ok(())
    }
}

/// Why a GPU is lost for this process: the first cause, shared by all who waited.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FaultReport {
    /// The GPU.
    pub gpu: GpuId,
    /// The cause.
    pub cause: FaultCause,
    /// Allocations around the faulting page.
    pub neighbours: Neighbours,
    /// Queues of this process on the GPU.
    pub queues: Vec<QueueState>,
}

impl fmt::Display for FaultReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GPU {} is lost: {}", self.gpu, self.cause)?;
        let FaultCause::Memory { page, .. } = self.cause else { return Ok(()) };
        let Neighbours { inside, before, after, freed } = &self.neighbours;
        let offset = |from: &AllocationInfo| page.get().wrapping_sub(from.addr.get());
        if let Some(info) = inside {
            write!(f, "; inside {info} at +{}", offset(info))?;
        }
        if let Some(info) = freed {
            write!(f, "; inside freed {info} at +{}", offset(info))?;
        }
        if let Some(info) = before {
            write!(f, "; {info} lies before, the page is at +{}", offset(info))?;
        }
        if let Some(info) = after {
            write!(f, "; {info} lies after")?;
        }
        for queue in &self.queues {
            write!(f, "; {queue}")?;
        }
        Ok(())
    }
}

/// Why a queue stopped. The packet it stopped at is the one at its read index.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueFault {
    /// The GPU.
    pub gpu: GpuId,
    /// What happened.
    pub reasons: Vec<Exception>,
    /// The queue and what it had in flight.
    pub state: QueueState,
}

impl fmt::Display for QueueFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "queue {} of GPU {} is lost: ", self.state.queue, self.gpu)?;
        for (n, reason) in self.reasons.iter().enumerate() {
            write!(f, "{}{reason}", if n == 0 { "" } else { ", " })?;
        }
        write!(f, "; {}", self.state)
    }
}

/// What a queue reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Exception {
    /// An exception code of KFD (docs/ABI.md §Exceptions).
    Kfd(u32),
    /// A bit of the value in `queue_inactive_signal` (docs/ABI.md §Exceptions).
    Inactive(u64),
}

impl Exception {
    /// All exceptions of a payload word: bit n is code n + 1.
    pub(crate) fn from_payload(bits: u64) -> Vec<Self> {
        (0..64).filter(|bit| bits >> bit & 1 != 0).map(|bit| Self::Kfd(bit + 1)).collect()
    }

    /// All exceptions in a value of `queue_inactive_signal`.
    pub(crate) fn from_inactive(value: u64) -> Vec<Self> {
        let bits = (0..64).map(|bit| value & 1 << bit).filter(|bit| *bit != 0);
        bits.map(Self::Inactive).collect()
    }

    /// What it means.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Kfd(code) => match code {
                1 => "a wave aborted (s_trap 2)",
                2 => "a wave trapped",
                3 => "a math exception",
                4 => "an illegal instruction",
                5 => "a memory violation",
                6 => "an aperture violation",
                16 => "a packet with invalid dimensions",
                17 => "a packet with too much group memory",
                18 => "a packet with an invalid kernel object",
                19 => "a packet with reserved bits set",
                20 => "a packet of an unsupported type",
                21 => "a packet with an invalid work-group size",
                22 => "a kernel with too many registers",
                23 => "an unsupported vendor packet",
                30 => "a failed preemption",
                33 => "a memory violation of the device",
                34 => "a memory error",
                35 => "a fatal halt",
                49 => "the device was removed",
                _ => "an unknown exception",
            },
            Self::Inactive(bit) => match bit {
                0x1 | 0x400 => "a kernel with more private memory than the queue has",
                0x2 => "a packet with invalid dimensions",
                0x4 => "a packet with too much group memory",
                0x8 => "a packet with an invalid kernel object",
                0x20 => "a packet of an unsupported type",
                0x40 => "a packet with an invalid work-group size",
                0x80 => "a kernel with too many registers",
                0x100 => "an unsupported vendor packet",
                0x2000_0000 => "a memory violation",
                0x4000_0000 => "an illegal instruction",
                0x8000_0000 => "a wave aborted or trapped",
                _ => "an unknown reason",
            },
        }
    }
}

impl fmt::Display for Exception {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kfd(code) => write!(f, "{} (code {code})", self.meaning()),
            Self::Inactive(bit) => write!(f, "{} (inactive {bit:#x})", self.meaning()),
        }
    }
}

/// What a wait that ran out of time knows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HangReport {
    /// How long the wait was, milliseconds.
    pub waited_ms: u64,
    /// Value waited on, as last seen.
    pub value: i64,
    /// The queue, when the wait named one.
    pub queue: Option<QueueState>,
    /// The packet at the read index, decoded.
    pub packet: Option<String>,
    /// What every queue stood at. Empty after a wait of less than 10 ms: that was a look and no hang.
    pub snapshot: Snapshot,
}

impl fmt::Display for HangReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "waited {} ms, value {}", self.waited_ms, self.value)?;
        if let Some(queue) = &self.queue {
            write!(f, "; {queue}")?;
        }
        if let Some(packet) = &self.packet {
            write!(f, "; stands at {packet}")?;
        }
        let queue = self.queue.as_ref().map(|state| state.queue);
        let Some(record) = self.snapshot.queues.iter().find(|record| Some(record.queue) == queue)
        else {
            return Ok(());
        };
        record.waits.iter().try_for_each(|wait| write!(f, "; waits for {wait}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payload_bits_decode_to_the_kernels_codes() {
        let codes = Exception::from_payload(1 << 3 | 1 << 19);
        assert_eq!(codes, [Exception::Kfd(4), Exception::Kfd(20)]);
        assert_eq!(codes[0].to_string(), "an illegal instruction (code 4)");
        assert_eq!(Exception::from_payload(0), []);
        assert_eq!(Exception::from_payload(1 << 63), [Exception::Kfd(64)]);
    }

    #[test]
    fn inactive_values_decode_bit_by_bit() {
        let reasons = Exception::from_inactive(0x401);
        assert_eq!(reasons, [Exception::Inactive(0x1), Exception::Inactive(0x400)]);
    }
}
