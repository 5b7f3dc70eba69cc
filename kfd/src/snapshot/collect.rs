//! Taking a snapshot. Holds no lock while it looks at a queue, and changes nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{
    GpuRecord, LeakRecord, MemoryRecord, NamedBy, PacketRecord, QueueRecord, Snapshot, WaitRecord,
};
use crate::context::Context;
use crate::device::Kfd;
use crate::error::{Error, Result};
use crate::queue::WaitsFor;
use crate::topology::GfxVersion;

/// A wait that ran out of time sooner was a look and no hang: nothing is collected for it.
const LOOK: Duration = Duration::from_millis(10);

impl Kfd {
    /// What every queue stands at. Looks only: no packet is submitted, and the kernel is asked only
    /// about the waves of suspended queues.
    pub fn snapshot(&self) -> Snapshot {
        self.context.snapshot()
    }

    /// As [`Kfd::snapshot`], with the exceptions that KFD holds for each queue: attaches to this
    /// process as a debugger and detaches again, which stops the waves of the process for a moment.
    ///
    /// # Errors
    /// As [`Kfd::snapshot_queues`].
    pub fn snapshot_with_debugger(&self) -> Result<Snapshot> {
        let known = self.snapshot_queues()?;
        let mut snapshot = self.context.snapshot();
        for queue in &mut snapshot.queues {
            let same = known.iter().find(|known| known.id == queue.queue);
            queue.exceptions = same.map(|known| known.exceptions);
        }
        Ok(snapshot)
    }
}

impl Context {
    /// See [`Kfd::snapshot`].
    pub fn snapshot(&self) -> Snapshot {
        let core = &self.core;
        let now = core.kernel.now();
        let lives = self.queues();
        let mut queues: Vec<QueueRecord> = lives.iter().map(|live| live.record(self)).collect();
        for (at, live) in lives.iter().enumerate() {
            let pending = queues.get(at).map(|record| record.read_index..record.write_index);
            let waits = pending.map(|pending| live.waits_for(pending)).unwrap_or_default();
            let waits =
                waits.into_iter().map(|wait| self.wait_record(&queues, at, &wait)).collect();
            if let Some(record) = queues.get_mut(at) {
                record.waits = waits;
            }
        }
        Snapshot {
            pid: std::process::id(),
            kfd_version: core.version.to_string(),
            at_ms: u64::try_from(now.as_millis()).unwrap_or(u64::MAX),
            gpus: core.gpus.iter().map(gpu_record).collect(),
            queues,
            memory: self.memory_records(),
            events: self.event_count(),
            leaks: core.leaks().into_iter().map(leak_record).collect(),
        }
    }

    /// See [`HangReport::snapshot`](crate::report::HangReport::snapshot).
    pub fn snapshot_after(&self, waited: Duration) -> Snapshot {
        match waited < LOOK {
            true => Snapshot::default(),
            false => self.snapshot(),
        }
    }

    fn wait_record(&self, queues: &[QueueRecord], waiter: usize, wait: &WaitsFor) -> WaitRecord {
        let word = self.shared_word(wait.address & !7);
        let value = word.map(|word| match (wait.bits, wait.address & 4) {
            (64, _) => word,
            (_, 0) => word & u64::from(u32::MAX),
            _ => word >> 32,
        });
        // Packets name a signal by its handle, or the value in it.
        let names = [wait.address, wait.address.wrapping_sub(8)].map(|at| format!("{at:#x}"));
        let mut named_by = Vec::new();
        for (at, queue) in queues.iter().enumerate() {
            // The waiting packet names it as well.
            let skipped = usize::from(at == waiter);
            let packets = queue.packets.iter().skip(skipped);
            let naming = packets.filter(|packet| names.iter().any(|name| names_it(packet, name)));
            named_by
                .extend(naming.map(|packet| NamedBy { queue: queue.queue, index: packet.index }));
        }
        WaitRecord { address: wait.address, wants: wait.wants.clone(), value, named_by }
    }

    fn memory_records(&self) -> Vec<MemoryRecord> {
        let mut kinds: BTreeMap<String, MemoryRecord> = BTreeMap::new();
        for info in self.core.registry.live() {
            let kind = format!("{:?}", info.kind);
            let record = kinds.entry(kind.clone()).or_default();
            record.kind = kind;
            record.count += 1;
            record.bytes = record.bytes.saturating_add(info.bytes);
        }
        kinds.into_values().collect()
    }
}

/// Whether the text of a packet has `name`, an address, as a word.
fn names_it(packet: &PacketRecord, name: &str) -> bool {
    packet.text.match_indices(name).any(|(at, _)| {
        let next = packet.text.get(at + name.len()..).and_then(|rest| rest.chars().next());
        !next.is_some_and(|next| next.is_ascii_hexdigit())
    })
}

fn gpu_record(gpu: &crate::core::GpuCore) -> GpuRecord {
    GpuRecord {
        gpu: gpu.id(),
        target: gpu.node.gfx_version().unwrap_or(GfxVersion::UNKNOWN).to_string(),
        lost: gpu.check().err().map(|error| error.to_string()),
    }
}

fn leak_record(leak: crate::core::Leak) -> LeakRecord {
    let why = match (&leak.why, std::error::Error::source(&leak.why)) {
        (Error::Ioctl { .. }, Some(cause)) => format!("{}: {cause}", leak.why),
        _ => leak.why.to_string(),
    };
    LeakRecord { what: leak.what, bytes: leak.bytes, why }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_found_as_a_word_only() {
        let packet = |text: &str| PacketRecord { text: text.to_owned(), ..Default::default() };
        assert!(names_it(&packet("FENCE dst=0x1040 data=0"), "0x1040"));
        assert!(names_it(&packet("signal=0x1040"), "0x1040"));
        assert!(!names_it(&packet("FENCE dst=0x10408 data=0"), "0x1040"));
        assert!(names_it(&packet("0x10408, 0x1040"), "0x1040"));
    }
}
