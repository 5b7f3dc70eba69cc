//! Submitting command buffers.

use std::sync::Arc;

use aql::{BarrierAnd, FenceScope, Packet, Pm4Ib};
use kfd::KernelLabel;

use super::core::Core;
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
        self.check_kind(kind)?;
        self.ready()?;
        if private_bytes > 0 {
            self.reserve_scratch(private_bytes)?;
        }
        let queue = &self.shared.ring.queue;
        let binding = command.binding(queue.descriptor(), || queue.dispatch_scratch());
        let at = command.prepare(&binding, self.patience)?;
        let Some(instance) = command.instance(at) else { return Err(no_instance()) };
        let scope = self.acquire_scope()?;
        let memory = Arc::clone(&instance.memory);
        let number = match instance.buffer() {
            Some(buffer) => {
                let packet = Pm4Ib::new(buffer)
                    .barrier()
                    .acquire(scope)
                    .release(FenceScope::AGENT)
                    .completion(self.progress());
                self.submit(&packet.encode(), label)?
            }
            None => self.submit_packets(scope, instance.packets(), label)?,
        };
        self.retire(Retire::Keep(memory));
        Ok(command.submitted(at, &self.shared, number))
    }

    /// Makes sure that the queue has scratch, before anything depends on where it is.
    #[cold]
    fn reserve_scratch(&mut self, bytes: u32) -> Result<()> {
        let queue = &self.shared.ring.queue;
        if bytes > queue.scratch_bytes() {
            queue.grow_scratch(bytes, self.patience)?;
        }
        Ok(())
    }

    #[inline]
    fn check_kind(&self, kind: CommandKind) -> Result<()> {
        if kind == CommandKind::IndirectBuffer && self.shared.device.gpu.node().num_xcc() > 1 {
            return Err(several_xccs(kind));
        }
        Ok(())
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

    fn push_batches(&mut self, packets: &[(Packet, KernelLabel)]) -> Result<()> {
        let most = usize::try_from(self.shared.ring.queue.size() / 4).unwrap_or(BATCH);
        for batch in packets.chunks(most.clamp(1, BATCH)) {
            match self.shared.ring.queue.submit_all(batch) {
                Ok(_) => {}
                Err(error) if error.is_full() => {
                    // Room for one at a time, as the device makes it.
                    for (packet, label) in batch {
                        self.push(packet, *label)?;
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

#[cold]
fn several_xccs(kind: CommandKind) -> Error {
    let why = "the GPU has several XCCs: record it as packets";
    CommandError::Stream { stream: "an AQL stream", kind, why }.into()
}

#[cold]
fn no_instance() -> Error {
    Error::InvalidArgument { call: "submit", what: "the instance of a command buffer", value: 0 }
}
