//! What KFD keeps for a debugger: exceptions that are raised, who wants them, and who waits.
//!
//! Source: Linux 6.12.117, drivers/gpu/drm/amd/amdkfd/kfd_debug.c (docs/ABI.md §Model, Debugging).

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use kfd::abi::{DbgTrapFlags, ExceptionCode, HsaMemoryExceptionData, RuntimeInfo, RuntimeState};

/// `KFD_EC_MASK` of a code.
pub(crate) fn bit(code: ExceptionCode) -> u64 {
    code.mask().unwrap_or(0)
}

/// Under one lock, the kernel's `event_mutex`.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) runtime: RuntimeInfo,
    /// `debug_trap_enabled`.
    pub(super) enabled: bool,
    pub(super) flags: DbgTrapFlags,
    /// Exceptions that go to the debugger. Survives DISABLE, as in the kernel.
    pub(super) wanted: u64,
    /// Raised for the process, for GPUs by id, for queues by id.
    pub(super) process: u64,
    pub(super) devices: BTreeMap<u32, u64>,
    pub(super) queues: BTreeMap<u32, u64>,
    /// The first memory violation of a GPU that was not taken.
    pub(super) violations: BTreeMap<u32, HsaMemoryExceptionData>,
    /// Gets a byte for every exception that the debugger wants; `None` for a file that takes none.
    pub(super) notify: Option<File>,
    /// `runtime_enable_sema`.
    permits: u32,
    /// Counts RESUME_QUEUES.
    resumes: u64,
}

impl State {
    /// Tells the debugger that there is something. `kernel_write` at offset 0; what becomes of it
    /// is nobody's business.
    pub(super) fn tell(&mut self) {
        if let Some(file) = &mut self.notify
            && file.write_at(b".", 0).is_err()
        {
            let _ = file.write(b".");
        }
    }

    /// Tells the debugger if it wants one of `codes`. True if it does.
    fn tell_of(&mut self, codes: u64) -> bool {
        let wants = self.wanted & codes != 0;
        if wants {
            self.tell();
        }
        wants
    }
}

/// The debugger's view of a process.
#[derive(Debug, Default)]
pub(crate) struct Debug {
    state: Mutex<State>,
    changed: Condvar,
}

impl Debug {
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a debugger is attached.
    pub(crate) fn is_enabled(&self) -> bool {
        self.lock().enabled
    }

    /// Whether exceptions go to the process's runtime.
    pub(crate) fn runtime_enabled(&self) -> bool {
        self.lock().runtime.runtime_state == RuntimeState::ENABLED
    }

    /// `kfd_dbg_ev_raise` for a queue. True if the debugger takes it.
    pub(crate) fn raise_queue(&self, queue: u32, codes: u64) -> bool {
        let mut state = self.lock();
        if !state.enabled {
            return false;
        }
        *state.queues.entry(queue).or_default() |= codes;
        state.tell_of(codes)
    }

    /// `kfd_dbg_ev_raise` for a GPU. True if the debugger takes it.
    pub(crate) fn raise_device(
        &self,
        gpu_id: u32,
        code: ExceptionCode,
        violation: Option<HsaMemoryExceptionData>,
    ) -> bool {
        let mut state = self.lock();
        if !state.enabled {
            return false;
        }
        *state.devices.entry(gpu_id).or_default() |= bit(code);
        if let Some(data) = violation {
            state.violations.entry(gpu_id).or_insert(data);
        }
        state.tell_of(bit(code))
    }

    /// `kfd_dbg_ev_raise` for the process.
    pub(super) fn raise_process(&self, code: ExceptionCode) {
        let mut state = self.lock();
        if state.enabled {
            state.process |= bit(code);
            state.tell_of(bit(code));
        }
    }

    /// A queue starts as new, debugger or not.
    pub(super) fn queue_created(&self, queue: u32) {
        let new = bit(ExceptionCode::QUEUE_NEW);
        let mut state = self.lock();
        state.queues.insert(queue, new);
        if state.enabled {
            state.tell_of(new);
        }
    }

    pub(super) fn queue_destroyed(&self, queue: u32, gpu_id: u32) {
        self.lock().queues.remove(&queue);
        self.raise_device(gpu_id, ExceptionCode::DEVICE_QUEUE_DELETE, None);
    }

    /// Lets a RUNTIME_ENABLE go on, one that waits or the next.
    pub(super) fn permit(&self) {
        let mut state = self.lock();
        state.permits = state.permits.saturating_add(1);
        self.changed.notify_all();
    }

    /// Waits for a [`permit`](Self::permit) and takes it.
    pub(super) fn wait_for_permit(&self) {
        let state = self.lock();
        let waited = self.changed.wait_while(state, |state| state.permits == 0);
        waited.unwrap_or_else(PoisonError::into_inner).permits -= 1;
    }

    /// How often queues were resumed.
    pub(super) fn resumes(&self) -> u64 {
        self.lock().resumes
    }

    pub(super) fn queues_resumed(&self) {
        self.lock().resumes += 1;
        self.changed.notify_all();
    }

    /// Waits until queues were resumed more often than `seen`.
    pub(super) fn wait_for_resume(&self, seen: u64) {
        let state = self.lock();
        let waited = self.changed.wait_while(state, |state| state.resumes == seen);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }
}
