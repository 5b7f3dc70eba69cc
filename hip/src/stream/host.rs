//! Host functions in a stream.

use std::sync::Arc;

use aql::{BarrierAnd, FenceScope};
use kfd::{KernelLabel, Signal};
use pm4::GpuAddr;

use super::core::{Core, Engine};
use super::deferred::Pending;
use super::retire::Retire;
use crate::error::Result;
use crate::host::{Call, Job, Then, When};

impl Core {
    /// Calls `call` here.
    pub fn host_call(&mut self, call: Call) -> Result<()> {
        let device = Arc::clone(self.device());
        let host = &device.shared.host;
        // First of all: a packet that waits for a thread that cannot be would wait for ever.
        host.start(&device.shared.kfd, &device.gpu)?;
        self.ready()?;
        // A PM4 packet raises no event with its store.
        let reached = match self.engine {
            Engine::Pm4(_) => device.gpu.create_silent_signal(1)?,
            _ => device.gpu.create_signal(1)?,
        };
        let reached = Arc::new(reached);
        match self.engine {
            Engine::Shared(_) => self.call_behind(reached, call),
            Engine::Own(_) => {
                let done = Arc::new(device.gpu.create_silent_signal(1)?);
                let told = BarrierAnd::noop().barrier().release(FenceScope::SYSTEM);
                let told = told.completion(reached.addr()).encode();
                let none = GpuAddr::NULL;
                let wait = BarrierAnd::new([done.addr(), none, none, none, none])
                    .barrier()
                    .acquire(FenceScope::SYSTEM)
                    .completion(self.progress())
                    .encode();
                let label = KernelLabel::NONE;
                self.submit_two(&[(told, label), (wait, label)])?;
                self.add_job(reached, done, call);
                Ok(())
            }
            Engine::Pm4(_) => {
                let done = Arc::new(device.gpu.create_silent_signal(1)?);
                self.pm4_host_call(&reached, &done)?;
                self.add_job(reached, done, call);
                Ok(())
            }
        }
    }

    /// The latest operation waits for `done`, which the job sets.
    fn add_job(&mut self, reached: Arc<Signal>, done: Arc<Signal>, call: Call) {
        self.host_bound = self.count;
        self.note_released();
        self.retire(Retire::Keep(Arc::<Signal>::clone(&reached)));
        self.retire(Retire::Keep(Arc::<Signal>::clone(&done)));
        let stream = Arc::downgrade(&self.shared);
        let (when, then) = (When::Signal(reached), Then::Set(done));
        self.device().shared.host.add(Job { when, call: Some(call), then, stream });
    }

    /// In a queue that others use, too: everything behind it is held back.
    fn call_behind(&mut self, reached: Arc<Signal>, call: Call) -> Result<()> {
        let told = BarrierAnd::noop().barrier().release(FenceScope::SYSTEM);
        self.push(&told.completion(reached.addr()).encode(), KernelLabel::NONE)?;
        let keep = Arc::<Signal>::clone(&reached);
        self.shared.deferred.hold_at(&self.shared, Pending::Call { reached, call })?;
        let packet = BarrierAnd::noop().barrier().acquire(FenceScope::SYSTEM);
        self.submit(&packet.completion(self.progress()).encode(), KernelLabel::NONE)?;
        self.note_released();
        self.retire(Retire::Keep(keep));
        Ok(())
    }
}
