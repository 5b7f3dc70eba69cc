//! Looking at a queue's memory, and trying its doorbell: for tools, never needed to submit.

use aql::Packet;

use super::Queue;
use crate::error::Result;

impl Queue {
    /// What is in the slot of an index now: a packet of this or of an earlier round, or what the
    /// device left of it. Another thread may be writing it.
    pub fn slot(&self, index: u64) -> Packet {
        self.core().ring().slot(index)
    }

    /// Rings the doorbell for one packet more than were submitted. The device finds a free slot
    /// and waits there, as it does for a doorbell that overtakes its packet.
    ///
    /// # Errors
    /// [`Error::DeviceLost`](crate::Error::DeviceLost) and
    /// [`Error::QueueLost`](crate::Error::QueueLost) once known.
    pub fn ring_one_past(&self) -> Result<()> {
        let queue = self.core();
        queue.check()?;
        if !queue.is_stopped() {
            queue.doorbell().ring(queue.ring().pending().end);
        }
        Ok(())
    }
}
