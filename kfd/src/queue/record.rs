//! A queue as a [`QueueRecord`] of a snapshot.

use std::sync::atomic::Ordering;

use super::live::Live;
use crate::context::Context;
use crate::snapshot::{PacketRecord, QueueRecord, SavedWaves};
use crate::topology::GfxVersion;

impl dyn Live + '_ {
    /// What it stands at, without what it waits for.
    pub fn record(&self, context: &Context) -> QueueRecord {
        let core = self.core();
        let (pending, bad_read_word) = self.look_closely();
        let packets = self.packets(context, pending.clone(), QueueRecord::PACKETS);
        let packets = packets.into_iter().map(|packet| PacketRecord {
            index: packet.index,
            kernel: packet.kernel,
            text: packet.text,
        });
        let age = core.note(pending.clone(), core.core.kernel.now());
        let suspended = core.suspended.load(Ordering::Relaxed);
        let saved_waves = match suspended && core.kind.is_compute() {
            true => core.wave_state().ok().map(|waves| SavedWaves {
                control_stack_bytes: waves.control_stack_bytes,
                save_area_bytes: waves.save_area_bytes,
            }),
            false => None,
        };
        let gfx = core.core.gpu(core.gpu()).ok().and_then(|gpu| gpu.node.gfx_version());
        QueueRecord {
            queue: core.id(),
            gpu: core.gpu_id(),
            target: gfx.unwrap_or(GfxVersion::UNKNOWN).to_string(),
            kind: core.kind,
            ring: core.ring.addr().get(),
            ring_bytes: core.ring.info().bytes,
            read_index: pending.start,
            write_index: pending.end,
            bad_read_word,
            oldest_ms: age.map(|age| u64::try_from(age.as_millis()).unwrap_or(u64::MAX)),
            packets: packets.collect(),
            dwords: self.dwords(pending, QueueRecord::DWORDS),
            waits: Vec::new(),
            doorbell_offset: core.doorbell_offset & (crate::abi::DOORBELL_PAGE_BYTES - 1),
            priority: core.priority.load(Ordering::Relaxed),
            private_bytes: core.scratch_lane_bytes(),
            suspended,
            stopped: core.is_stopped(),
            fault: core.fault.get().map(ToString::to_string),
            saved_waves,
            exceptions: None,
        }
    }
}
