//! Event ioctls.

use std::time::{Duration, Instant};

use kfd::EventId;
use kfd::abi::{
    AllocFlags, CreateEventArgs, DestroyEventArgs, EventData, ResetEventArgs, SetEventArgs,
    TIMEOUT_INFINITE, WaitEventsArgs, WaitResult,
};
use kfd::sys::Errno;
use zerocopy::IntoBytes;

use super::super::process::{Memory, Process};
use super::super::{Model, user};
use super::Context;
use crate::event::Payload;

/// Bytes of `struct kfd_event_waiter`, and the largest allocation of `kcalloc`.
const WAITER_BYTES: u64 = 56;
const LARGEST_ALLOCATION: u64 = 4 << 20;

/// The kernel waits one tick more than asked (HZ=250).
const TICK: Duration = Duration::from_millis(4);

/// `kfd_kmap_event_page`.
fn set_event_page(process: &mut Process, handle: u64) -> Result<(), Errno> {
    if process.events.has_page() {
        return Err(Errno::INVAL);
    }
    let (gpu_id, number) = super::split_handle(handle);
    let device = process.device(gpu_id)?;
    device.bound()?;
    let buffer = device.buffers.get(&number).ok_or(Errno::INVAL)?;
    if buffer.flags.contains(AllocFlags::USERPTR) {
        return Err(Errno::INVAL);
    }
    match buffer.memory.clone() {
        Memory::Region(region) => process.events.set_page(region, handle),
        Memory::User(_) => Err(Errno::INVAL),
    }
}

impl Context<'_> {
    pub(super) fn create_event(&mut self, args: &mut CreateEventArgs) -> Result<(), Errno> {
        let process = self.process()?;
        if args.event_page_offset != 0 {
            set_event_page(process, args.event_page_offset)?;
        }
        args.event_page_offset = 0;
        let auto_reset = args.auto_reset != 0;
        let created = process.events.create(args.event_type, auto_reset, &process.arena)?;
        if created.has_slot {
            args.event_page_offset = process.events.mmap_offset();
            args.event_slot_index = created.id;
        }
        args.event_id = EventId(created.id);
        args.event_trigger_data = created.id;
        Ok(())
    }

    pub(super) fn destroy_event(&mut self, args: &mut DestroyEventArgs) -> Result<(), Errno> {
        self.process()?.events.destroy(args.event_id.0)
    }

    pub(super) fn set_event(&mut self, args: &mut SetEventArgs) -> Result<(), Errno> {
        self.process()?.events.set(args.event_id.0, true)
    }

    pub(super) fn reset_event(&mut self, args: &mut ResetEventArgs) -> Result<(), Errno> {
        self.process()?.events.set(args.event_id.0, false)
    }
}

impl Model {
    /// `kfd_wait_on_events`.
    pub(super) fn wait_events(&self, args: &mut WaitEventsArgs) -> Result<(), Errno> {
        let result = self.wait_events_inner(args);
        match result {
            Err(_) => args.wait_result = WaitResult::FAIL,
            Ok(()) if args.wait_result == WaitResult::FAIL => return Err(Errno::IO),
            Ok(()) => {}
        }
        result
    }

    fn wait_events_inner(&self, args: &mut WaitEventsArgs) -> Result<(), Errno> {
        let (events, runner) = {
            let state = self.lock();
            let process = state.processes.get(&std::process::id()).ok_or(Errno::BADF)?;
            (std::sync::Arc::clone(&process.events), std::sync::Arc::clone(&process.runner))
        };
        if u64::from(args.num_events) * WAITER_BYTES > LARGEST_ALLOCATION {
            return Err(Errno::NOMEM);
        }
        let deadline = match args.timeout {
            0 => Some(Instant::now()),
            TIMEOUT_INFINITE => None,
            ms => {
                Some(Instant::now() + Duration::from_millis(u64::from(ms.min(0x7fff_ffff))) + TICK)
            }
        };
        let stride = size_of::<EventData>() as u64;
        let at = |index: usize| args.events_ptr.wrapping_add(index as u64 * stride);
        let count = usize::try_from(args.num_events).unwrap_or(0);
        let wait = events.wait(count, args.wait_for_all != 0, |index| {
            let data: EventData = user::read(at(index))?;
            Ok((data.event_id.0, data.signal_event_data().last_event_age))
        })?;
        args.wait_result = wait.test();
        if args.timeout != 0 && args.wait_result == WaitResult::TIMEOUT && !self.config.stepped {
            runner.help();
        }
        while args.wait_result == WaitResult::TIMEOUT {
            if deadline.is_some_and(|at| Instant::now() >= at) {
                break;
            }
            let slice = self.config.stepped.then(|| {
                // Nobody else moves the GPUs, so sleep only when they have nothing to do.
                if runner.step() { Duration::ZERO } else { Duration::from_micros(100) }
            });
            match wait.sleep(deadline, slice) {
                Ok(result) => args.wait_result = result,
                Err(errno) => {
                    // What is left is given back, so that the call can be made again.
                    if let (Some(at), 1..=0x7fff_fffe) = (deadline, args.timeout) {
                        let left = at.saturating_duration_since(Instant::now() + TICK);
                        args.timeout = u32::try_from(left.as_millis()).unwrap_or(u32::MAX);
                    }
                    return Err(errno);
                }
            }
        }
        if args.wait_result == WaitResult::COMPLETE {
            for (index, payload) in wait.payloads()? {
                match payload {
                    Payload::None => {}
                    Payload::Memory(data) => user::write_bytes(at(index), data.as_bytes())?,
                    Payload::Hardware(data) => user::write_bytes(at(index), data.as_bytes())?,
                    Payload::Age(age) => user::write(at(index), &age)?,
                }
            }
        }
        Ok(())
    }
}
