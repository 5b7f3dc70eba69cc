//! Submitting command buffers.

use std::sync::Arc;

use aql::{BarrierAnd, FenceScope, Packet, Pm4Ib};
use kfd::KernelLabel;
use pm4::dispatch::Scratch;
use pm4::{GpuAddr, IndirectBuffer};

use super::core::{Core, Engine};
use super::launch::queue_address;
use super::retire::Retire;
use crate::command::{CommandBuffer, CommandError, CommandKind, Submission};
use crate::device::same_device;
use crate::error::{Error, Result};

/// Packets put into the ring at a time.
const BATCH: usize = 256;

impl Core {
    /// Submits a command buffer as one operation. All checks come first, and so does all waiting that
    /// is not for the ring.
    #[inline]
    pub fn submit_command(&mut self, command: &mut CommandBuffer) -> Result<Submission> {
        let recorded = command.recorded();
        same_device(&self.shared.device, &recorded.device, "the command buffer")?;
        let (kind, private_bytes, label) = (recorded.kind, recorded.private_bytes, recorded.label);
        if kind == CommandKind::Packets && matches!(self.engine, Engine::Pm4(_)) {
            return Err(packets_on_pm4(kind));
        }
        self.ready()?;
        let scratch = match private_bytes {
            0 => Scratch::default(),
            bytes => self.reserve_scratch(bytes)?,
        };
        // Others may have the scratch of a shared queue replaced before the device gets there.
        let as_packets = kind == CommandKind::Packets
            || private_bytes > 0 && matches!(self.engine, Engine::Shared(_));
        let queue = GpuAddr::new(queue_address(&self.engine));
        let binding = command.binding(queue, scratch, as_packets);
        let at = command.prepare(&binding, self.shared.patience)?;
        let Some(instance) = command.instance(at) else { return Err(no_instance()) };
        let scope = self.acquire_scope()?;
        let memory = Arc::clone(&instance.memory);
        let number = match instance.buffer() {
            Some(buffer) if !as_packets => self.enter(buffer, scope, label)?,
            _ => self.submit_packets(scope, instance.packets(), label)?,
        };
        self.retire(Retire::Keep(memory));
        Ok(command.submitted(at, &self.shared, number))
    }

    /// Makes sure that the queue has scratch, before anything depends on where it is.
    #[cold]
    fn reserve_scratch(&mut self, bytes: u32) -> Result<Scratch> {
        let (Engine::Own(ring) | Engine::Shared(ring)) = &self.engine else {
            return self.pm4_scratch(bytes);
        };
        if bytes > ring.queue.scratch_bytes() {
            ring.grow(bytes, self.shared.patience)?;
        }
        Ok(ring.queue.dispatch_scratch())
    }

    #[inline]
    fn enter(
        &mut self,
        buffer: IndirectBuffer,
        scope: FenceScope,
        label: KernelLabel,
    ) -> Result<u64> {
        if let Engine::Pm4(_) = self.engine {
            return self.pm4_enter(buffer, scope);
        }
        let packet = Pm4Ib::new(buffer)
            .barrier()
            .acquire(scope)
            .release(FenceScope::AGENT)
            .completion(self.progress());
        self.submit(&packet.encode(), label)
    }

    /// Submits packets as one operation: in front of them one that acquires, behind them one that
    /// waits for all and counts.
    fn submit_packets(
        &mut self,
        scope: FenceScope,
        packets: &[(Packet, KernelLabel)],
        label: KernelLabel,
    ) -> Result<u64> {
        let first = BarrierAnd::noop().barrier().acquire(scope).encode();
        self.push(&first, label)?;
        self.push_batches(packets).map_err(|error| self.shared.lose(error))?;
        let last = BarrierAnd::noop().barrier().release(FenceScope::AGENT);
        let last = last.completion(self.progress()).encode();
        // Without an end, what follows would not be ordered behind it.
        self.submit(&last, label).map_err(|error| self.shared.lose(error))
    }

    fn push_batches(&self, packets: &[(Packet, KernelLabel)]) -> Result<()> {
        let one_by_one = |packets: &[(Packet, KernelLabel)]| {
            packets.iter().try_for_each(|(packet, label)| self.push(packet, *label))
        };
        // What is shared may have to be held back.
        let Engine::Own(ring) = &self.engine else { return one_by_one(packets) };
        let most = usize::try_from(ring.queue.size() / 4).unwrap_or(BATCH);
        for batch in packets.chunks(most.clamp(1, BATCH)) {
            match ring.queue.submit_all(batch) {
                Ok(_) => {}
                // Room for one at a time, as the device makes it.
                Err(error) if error.is_full() => one_by_one(batch)?,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

#[cold]
fn packets_on_pm4(kind: CommandKind) -> Error {
    let why = "its queue takes no AQL packets; use an AQL stream";
    CommandError::Stream { stream: "a PM4 stream", kind, why }.into()
}

#[cold]
fn no_instance() -> Error {
    Error::InvalidArgument { call: "submit", what: "the instance of a command buffer", value: 0 }
}
