//! What happens when the engine reports from a dispatch.

use std::sync::{Arc, Weak};

use super::{Queue, Runner};
use crate::exec::{Diagnosis, Listener, MemoryFault, Outcome};

/// Stands for one dispatch.
#[derive(Debug)]
pub(super) struct DispatchListener {
    pub(super) runner: Weak<Runner>,
    pub(super) queue: Arc<Queue>,
    pub(super) index: u64,
    /// Started by PM4: the index is the launch's number, not a packet's.
    pub(super) pm4: bool,
}

impl Listener for DispatchListener {
    fn finished(&self, outcome: Outcome) {
        if let Some(runner) = self.runner.upgrade() {
            runner.dispatch_finished(&self.queue, self.index, self.pm4, outcome);
        }
    }

    fn memory_fault(&self, fault: MemoryFault) {
        if let Some(runner) = self.runner.upgrade() {
            runner.memory_fault(&self.queue.setup.device, fault);
        }
    }

    fn interrupt(&self, data: u32, privileged: bool) {
        if let Some(runner) = self.runner.upgrade() {
            runner.wave_interrupt(&self.queue.setup.device, data, privileged);
        }
    }

    fn diagnosis(&self, diagnosis: &Diagnosis) {
        if let Some(runner) = self.runner.upgrade() {
            let what = if self.pm4 { "dispatch" } else { "packet" };
            let text = format!("{what} {}: {}", self.index, diagnosis.text);
            runner.say(&self.queue, text);
        }
    }
}
