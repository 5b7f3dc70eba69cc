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
}

impl Listener for DispatchListener {
    fn finished(&self, outcome: Outcome) {
        if let Some(runner) = self.runner.upgrade() {
            runner.dispatch_finished(&self.queue, self.index, outcome);
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
            let text = format!("packet {}: {}", self.index, diagnosis.text);
            runner.say(&self.queue, text);
        }
    }
}
