//! SUSPEND_QUEUES and RESUME_QUEUES of DBG_TRAP.
//!
//! Source: Linux 6.12.117, kfd_device_queue_manager.c (docs/ABI.md §Model, Debugging).

use std::sync::Arc;

use kfd::abi::{DbgTrapArgs, ExceptionCode};
use kfd::sys::Errno;
use zerocopy::IntoBytes;

use super::super::debug::{Debug, bit};
use super::super::process::Process;
use super::super::user;
use super::Context;

/// `resume_queues`: how many queues were asked for, suspended or not.
pub(super) fn resume(process: &Process, wanted: impl Fn(u32) -> bool) -> u32 {
    let mut count = 0;
    for (_, record) in process.queues.iter().filter(|(id, _)| wanted(**id)) {
        process.runner.hold(&record.queue, false);
        count += 1;
    }
    process.debug.queues_resumed();
    count
}

/// `get_queue_ids`.
fn queue_ids(pointer: u64, count: u32) -> Result<Vec<u32>, Errno> {
    const MOST: u32 = 1024;
    if pointer == 0 && count != 0 || count > MOST {
        return Err(Errno::INVAL);
    }
    let mut ids = vec![0_u32; usize::try_from(count).unwrap_or(0)];
    user::read_bytes(pointer, ids.as_mut_bytes())?;
    Ok(ids)
}

/// A queue id that was not found, is new, or is being destroyed (`KFD_DBG_QUEUE_INVALID_MASK`).
const INVALID: u32 = 1 << 31;

impl Context<'_> {
    /// `suspend_queues`.
    pub(super) fn suspend_queues(
        &mut self,
        debug: &Debug,
        args: &DbgTrapArgs,
    ) -> Result<u32, Errno> {
        let wanted = args.suspend_queues();
        let mut ids = queue_ids(wanted.queue_array_ptr, wanted.num_queues)?;
        let diagnostics = Arc::clone(&self.model.diagnostics);
        let process = self.process()?;
        ids.iter_mut().for_each(|id| *id |= INVALID);
        let mut count = 0;
        let new = bit(ExceptionCode::QUEUE_NEW);
        for index in 0..process.devices.len() {
            let own = || process.queues.iter().filter(|(_, record)| record.device == index);
            let mut suspended = 0;
            let mut cleared = Vec::new();
            for (id, record) in own() {
                let Some(slot) = ids.iter_mut().find(|slot| **slot & !INVALID == *id) else {
                    continue;
                };
                let is_new = debug.lock().queues.get(id).is_some_and(|raised| raised & new != 0);
                // Firmware without MES clears the exceptions of all that were named, if any was
                // suspended.
                let held = record.queue.is_held();
                if !held && (is_new || record.dying) {
                    if !record.queue.device().info.has_mes() {
                        cleared.push(*id);
                    }
                    continue;
                }
                if process.runner.hold(&record.queue, true) {
                    let text = "suspended with waves: they are kept, its save area holds none";
                    diagnostics.add(record.queue.gpu_id(), Some(*id), text.to_owned());
                }
                *slot &= !INVALID;
                cleared.push(*id);
                suspended += 1;
            }
            if suspended > 0 {
                let mut state = debug.lock();
                for id in cleared {
                    if let Some(raised) = state.queues.get_mut(&id) {
                        *raised &= !wanted.exception_mask;
                    }
                }
            }
            count += suspended;
        }
        if count > 0 {
            // `get_wave_state` of every queue, to the head of its save area; errors are not told.
            for record in process.queues.values().filter(|record| record.sysfs_type == 0) {
                let _ = user::write_bytes(record.queue.save_area(), &[0; 16]);
            }
        }
        // Not told either.
        let _ = user::write_bytes(wanted.queue_array_ptr, ids.as_bytes());
        Ok(count)
    }

    /// `resume_queues`.
    pub(super) fn resume_queues(&mut self, args: &DbgTrapArgs) -> Result<u32, Errno> {
        let wanted = args.resume_queues();
        if wanted.queue_array_ptr == 0 {
            return Ok(resume(self.process()?, |_| true));
        }
        let mut ids = queue_ids(wanted.queue_array_ptr, wanted.num_queues)?;
        let process = self.process()?;
        for id in &mut ids {
            *id &= !INVALID;
            if !process.queues.contains_key(id) {
                *id |= INVALID;
            }
        }
        let count = resume(process, |id| ids.contains(&id));
        let _ = user::write_bytes(wanted.queue_array_ptr, ids.as_bytes());
        Ok(count)
    }
}
