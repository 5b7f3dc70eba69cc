//! A snapshot for people.

use std::fmt;

use super::{QueueRecord, Snapshot, WaitRecord};

/// Packets shown of a queue; the rest is counted.
const SHOWN: usize = 8;

impl fmt::Display for WaitRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x} to be {}", self.address, self.wants)?;
        match self.value {
            Some(value) => write!(f, ", it is {value:#x}")?,
            None => f.write_str(", which is not in memory of signals")?,
        }
        if self.named_by.is_empty() {
            return f.write_str(
                "; no pending packet names it: the host or a running kernel has to change it",
            );
        }
        for (n, by) in self.named_by.iter().enumerate() {
            let lead = if n == 0 { "; named by" } else { "," };
            write!(f, "{lead} {} of queue {}", by.index, by.queue)?;
        }
        Ok(())
    }
}

impl QueueRecord {
    /// What state it is in, in few words.
    pub fn condition(&self) -> &'static str {
        match self {
            Self { fault: Some(_), .. } => "lost",
            Self { stopped: true, .. } => "stopped",
            Self { suspended: true, .. } => "suspended",
            Self { bad_read_word: Some(_), .. } => "bad read index",
            _ if self.pending() == 0 => "idle",
            Self { waits, .. } if !waits.is_empty() => "waits",
            _ => "busy",
        }
    }
}

impl fmt::Display for QueueRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { queue, gpu, target, kind, read_index, write_index, .. } = self;
        write!(f, "queue {queue} of GPU {gpu} ({target}), {kind}, {}", self.condition())?;
        write!(f, ": read {read_index} write {write_index} {}", kind.unit())?;
        write!(f, ", ring {} bytes, doorbell {:#x}", self.ring_bytes, self.doorbell_offset)?;
        if let Some(age) = self.oldest_ms {
            write!(f, ", oldest for {age} ms or more")?;
        }
        if let Some(word) = self.bad_read_word {
            write!(f, "\n  the device's read index is {word:#x}: impossible")?;
        }
        if let Some(fault) = &self.fault {
            write!(f, "\n  {fault}")?;
        }
        if let Some(bits) = self.exceptions.filter(|bits| *bits != 0) {
            write!(f, "\n  exceptions {bits:#x}")?;
        }
        if let Some(waves) = self.saved_waves {
            let (stack, area) = (waves.control_stack_bytes, waves.save_area_bytes);
            write!(f, "\n  saved waves: control stack {stack} bytes, save area {area} bytes")?;
        }
        for packet in self.packets.iter().take(SHOWN) {
            write!(f, "\n  {:>8} ", packet.index)?;
            if let Some(kernel) = &packet.kernel {
                write!(f, "[{kernel}] ")?;
            }
            f.write_str(&packet.text)?;
        }
        if self.packets.len() > SHOWN {
            write!(f, "\n  and {} more decoded", self.packets.len() - SHOWN)?;
        }
        self.waits.iter().try_for_each(|wait| write!(f, "\n  waits for {wait}"))
    }
}

impl fmt::Display for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {}, KFD {}, {} queues", self.pid, self.kfd_version, self.queues.len())?;
        for record in &self.memory {
            write!(f, ", {} {} of {} bytes", record.count, record.kind, record.bytes)?;
        }
        write!(f, ", {} events", self.events)?;
        for gpu in &self.gpus {
            if let Some(lost) = &gpu.lost {
                write!(f, "\nGPU {} ({}): {lost}", gpu.gpu, gpu.target)?;
            }
        }
        self.queues.iter().try_for_each(|queue| write!(f, "\n{queue}"))?;
        let leak = |leak: &super::LeakRecord| (leak.what.clone(), leak.bytes, leak.why.clone());
        for (what, bytes, why) in self.leaks.iter().map(leak) {
            write!(f, "\nleaked: {what}, {bytes} bytes: {why}")?;
        }
        Ok(())
    }
}
