//! RUNTIME_ENABLE, and DBG_TRAP of a process on itself.
//!
//! Source: Linux 6.12.117, kfd_chardev.c and kfd_debug.c (docs/ABI.md §Model, Debugging).

use std::sync::Arc;

use kfd::abi::{
    Capability, DbgTrapAddressWatchMode, DbgTrapArgs, DbgTrapFlags, DbgTrapMask, DbgTrapOp,
    DbgTrapOverrideMode, DbgTrapWaveLaunchMode, DestroyQueueArgs, ExceptionCode,
    HsaMemoryExceptionData, MemoryExceptionFailure, RuntimeEnableArgs, RuntimeEnableMode,
    RuntimeInfo, RuntimeState,
};
use kfd::sys::{Errno, FileId};
use zerocopy::IntoBytes;

use super::super::debug::{Debug, bit};
use super::super::files::Kind;
use super::super::process::Process;
use super::super::{Model, user};
use super::Context;
use super::debug_queues::resume;
use crate::gpu::GpuInfo;

/// `kfd_dbg_trap_activate`. False, with the runtime marked busy, when the process has chosen compute
/// units that the workaround wants to choose.
fn activate(process: &mut Process) -> bool {
    let affected = |gpu: &GpuInfo| gpu.has_debug_workaround();
    let queues = process.queues.values_mut();
    let mut affected: Vec<_> = queues.filter(|r| affected(&r.queue.device().info)).collect();
    if affected.iter().any(|record| record.has_cu_mask) {
        affected.iter_mut().for_each(|record| record.debug_workaround = false);
        process.debug.lock().runtime.runtime_state = RuntimeState::ENABLED_BUSY;
        return false;
    }
    affected.iter_mut().for_each(|record| record.debug_workaround = true);
    process.devices.iter().for_each(|device| device.device.set_debugged(true));
    true
}

/// `kfd_dbg_trap_deactivate`.
fn deactivate(process: &mut Process) {
    resume(process, |_| true);
    process.debug.lock().flags = DbgTrapFlags::default();
    process.devices.iter().for_each(|device| device.device.set_debugged(false));
    process.queues.values_mut().for_each(|record| record.debug_workaround = false);
}

impl Model {
    /// `kfd_ioctl_runtime_enable`. With a debugger attached it sleeps until that one lets it go
    /// on, so it must not hold the process's lock.
    pub(super) fn runtime_enable(&self, args: &mut RuntimeEnableArgs) -> Result<(), Errno> {
        let mut context = Context { model: self, state: self.lock() };
        let process = context.process()?;
        let debug = Arc::clone(&process.debug);
        let debugged = debug.is_enabled();
        if args.mode_mask.contains(RuntimeEnableMode::ENABLE) {
            if debug.lock().runtime.runtime_state != RuntimeState::DISABLED {
                return Err(Errno::BUSY);
            }
            if !process.queues.is_empty() {
                return Err(Errno::EXIST);
            }
            debug.lock().runtime = RuntimeInfo {
                r_debug: args.r_debug,
                runtime_state: RuntimeState::ENABLED,
                ttmp_setup: args.mode_mask.contains(RuntimeEnableMode::TTMP_SAVE).into(),
            };
        } else {
            let before = std::mem::take(&mut debug.lock().runtime);
            if debugged && before.runtime_state == RuntimeState::ENABLED {
                deactivate(process);
            }
        }
        if debugged {
            if args.mode_mask.contains(RuntimeEnableMode::ENABLE) {
                activate(process);
            }
            drop(context);
            debug.raise_process(ExceptionCode::PROCESS_RUNTIME);
            debug.wait_for_permit();
        }
        Ok(())
    }

    /// `kfd_ioctl_destroy_queue`: sleeps while the debugger has the queue suspended.
    pub(super) fn destroy_queue_unheld(&self, args: &mut DestroyQueueArgs) -> Result<(), Errno> {
        let mut again = false;
        loop {
            let mut context = Context { model: self, state: self.lock() };
            if !context.destroy_must_wait(args.queue_id, again)? {
                return context.destroy_queue(args);
            }
            let debug = Arc::clone(&context.process()?.debug);
            let seen = debug.resumes();
            drop(context);
            debug.wait_for_resume(seen);
            again = true;
        }
    }
}

/// `HSA_CAP_TRAP_DEBUG_PRECISE_ALU_OPERATIONS_SUPPORTED`.
const PRECISE_ALU: u64 = 1 << 30;

fn is_own_thread(pid: u32) -> bool {
    pid == std::process::id() || std::fs::exists(format!("/proc/self/task/{pid}")).unwrap_or(false)
}

impl Context<'_> {
    /// `kfd_ioctl_set_debug_trap`. Gives the number of queues suspended or resumed.
    pub(super) fn debug_trap(&mut self, args: &mut DbgTrapArgs) -> Result<u32, Errno> {
        if args.pid == 0 || !is_own_thread(args.pid) {
            if args.pid != 0 && std::fs::exists(format!("/proc/{}", args.pid)).unwrap_or(false) {
                self.unmodelled(format!("DBG_TRAP of process {}: only of oneself", args.pid));
            }
            return Err(Errno::SRCH);
        }
        let debug = Arc::clone(&self.process()?.debug);
        if args.op != DbgTrapOp::ENABLE && !debug.is_enabled() {
            return Err(Errno::INVAL);
        }
        let needs_runtime = matches!(
            args.op,
            DbgTrapOp::SET_WAVE_LAUNCH_OVERRIDE
                | DbgTrapOp::SET_WAVE_LAUNCH_MODE
                | DbgTrapOp::SUSPEND_QUEUES
                | DbgTrapOp::RESUME_QUEUES
                | DbgTrapOp::SET_NODE_ADDRESS_WATCH
                | DbgTrapOp::CLEAR_NODE_ADDRESS_WATCH
                | DbgTrapOp::SET_FLAGS
        );
        if needs_runtime && !debug.runtime_enabled() {
            return Err(Errno::PERM);
        }
        match args.op {
            DbgTrapOp::ENABLE => self.debug_enable(&debug, args)?,
            DbgTrapOp::DISABLE => self.debug_disable(&debug)?,
            DbgTrapOp::SEND_RUNTIME_EVENT => self.send_runtime_event(&debug, args)?,
            DbgTrapOp::SET_EXCEPTIONS_ENABLED => {
                set_wanted(&debug, args.set_exceptions_enabled().exception_mask);
            }
            DbgTrapOp::SET_WAVE_LAUNCH_OVERRIDE => self.launch_override(args)?,
            DbgTrapOp::SET_WAVE_LAUNCH_MODE => self.launch_mode(args)?,
            DbgTrapOp::SUSPEND_QUEUES => return self.suspend_queues(&debug, args),
            DbgTrapOp::RESUME_QUEUES => return self.resume_queues(args),
            DbgTrapOp::SET_NODE_ADDRESS_WATCH => {
                let watch = args.set_node_address_watch();
                self.process()?.device(watch.gpu_id.0).map_err(|_| Errno::NODEV)?;
                let DbgTrapAddressWatchMode(mode) = watch.mode;
                let text =
                    format!("address watch on {:#x}, mode {mode}: no watch point", watch.address);
                self.unmodelled(text);
                return Err(Errno::NOMEM);
            }
            DbgTrapOp::CLEAR_NODE_ADDRESS_WATCH => {
                let watch = args.clear_node_address_watch();
                self.process()?.device(watch.gpu_id.0).map_err(|_| Errno::NODEV)?;
                return Err(Errno::INVAL); // none was ever given out
            }
            DbgTrapOp::SET_FLAGS => self.debug_flags(&debug, args)?,
            _ => self.debug_query(&debug, args)?,
        }
        Ok(0)
    }

    /// Tells that a real kernel would have done more.
    fn unmodelled(&self, text: String) {
        self.model.diagnostics.add_unmodelled(0, None, text);
    }

    /// `kfd_dbg_trap_enable`.
    fn debug_enable(&mut self, debug: &Debug, args: &mut DbgTrapArgs) -> Result<(), Errno> {
        let mut enable = args.enable();
        if debug.is_enabled() {
            return Err(Errno::ALREADY);
        }
        let conflict = |gpu: &GpuInfo| !gpu.debugs_with_gws() || gpu.has_debug_workaround();
        let mut queues = self.process()?.queues.values();
        if queues.any(|record| record.has_gws && conflict(&record.queue.device().info)) {
            return Err(Errno::BUSY);
        }
        let file = i32::try_from(enable.dbg_fd).map_err(|_| Errno::BADF)?;
        let notify = match self.state.files.get(FileId(file))? {
            Kind::Host(file) => file.try_clone().ok(),
            _ => None,
        };
        let process = self.process()?;
        if debug.runtime_enabled() {
            // Whether it succeeded is told by the runtime's state only.
            activate(process);
        }
        let mut state = debug.lock();
        let info = state.runtime;
        let size = usize::try_from(enable.rinfo_size).unwrap_or(usize::MAX);
        let copy = info.as_bytes();
        let copy = copy.get(..size).unwrap_or(copy);
        let copied = user::write_bytes(enable.rinfo_ptr, copy);
        enable.rinfo_size = u32::try_from(size_of_val(&info)).unwrap_or(0);
        args.set_enable(enable);
        if let Err(errno) = copied {
            drop(state);
            deactivate(process);
            return Err(errno);
        }
        state.notify = notify;
        state.enabled = true;
        state.wanted = enable.exception_mask;
        Ok(())
    }

    /// `kfd_dbg_trap_disable`.
    fn debug_disable(&mut self, debug: &Debug) -> Result<(), Errno> {
        let process = self.process()?;
        if debug.runtime_enabled() {
            deactivate(process);
        }
        let mut state = debug.lock();
        if state.runtime.runtime_state != RuntimeState::DISABLED {
            state.runtime.runtime_state = RuntimeState::ENABLED;
        }
        state.notify = None;
        state.enabled = false;
        state.process = 0;
        state.devices.clear();
        state.queues.values_mut().for_each(|exceptions| *exceptions = 0);
        Ok(())
    }

    /// `kfd_dbg_send_exception_to_runtime`.
    fn send_runtime_event(&mut self, debug: &Debug, args: &DbgTrapArgs) -> Result<(), Errno> {
        let event = args.send_runtime_event();
        let mut codes = event.exception_mask;
        let process = self.process()?;
        let violation = bit(ExceptionCode::DEVICE_MEMORY_VIOLATION);
        if codes & violation != 0 {
            let device = process.device(event.gpu_id.0).map_err(|_| Errno::NODEV)?;
            let device = Arc::clone(&device.device);
            process.runner.evict(&device);
            let known = debug.lock().violations.get(&event.gpu_id.0).copied();
            process.events.memory_exception(known.unwrap_or(HsaMemoryExceptionData {
                gpu_id: event.gpu_id,
                failure: MemoryExceptionFailure { imprecise: 1, ..Default::default() },
                ..Default::default()
            }));
            codes &= !violation;
        }
        let runtime = bit(ExceptionCode::PROCESS_RUNTIME);
        if codes & runtime != 0 {
            debug.permit();
            codes &= !runtime;
        }
        // Nobody hears of a queue that does not exist, or whose save area cannot be read.
        if codes != 0
            && let Some(record) = process.queues.get(&event.queue_id.0)
        {
            process.runner.send_to_runtime(&record.queue, codes);
        }
        Ok(())
    }

    /// Exceptions of floating-point operations, watch points and memory that a kernel can be made
    /// to trap on. The model's waves trap on what they ask for themselves, no more.
    fn launch_override(&mut self, args: &mut DbgTrapArgs) -> Result<(), Errno> {
        let mut wanted = args.launch_override();
        let known = [DbgTrapOverrideMode::OR, DbgTrapOverrideMode::REPLACE];
        if !known.contains(&wanted.override_mode) {
            return Err(Errno::PERM);
        }
        let asked = wanted.support_request_mask;
        wanted.support_request_mask = DbgTrapMask::default();
        if !asked.is_empty() {
            let text = format!("wave launch override of {:#x}: not supported", asked.bits());
            self.unmodelled(text);
            args.set_launch_override(wanted);
            return Err(Errno::ACCESS);
        }
        wanted.enable_mask = DbgTrapMask::default();
        args.set_launch_override(wanted);
        Ok(())
    }

    fn launch_mode(&mut self, args: &DbgTrapArgs) -> Result<(), Errno> {
        match args.launch_mode().launch_mode {
            DbgTrapWaveLaunchMode::NORMAL => Ok(()),
            mode @ (DbgTrapWaveLaunchMode::HALT | DbgTrapWaveLaunchMode::DEBUG) => {
                self.unmodelled(format!("wave launch mode {}: not supported", mode.0));
                Err(Errno::INVAL)
            }
            _ => Err(Errno::INVAL),
        }
    }

    /// `kfd_dbg_trap_set_flags`. The model's waves have one operation in flight anyway.
    fn debug_flags(&mut self, debug: &Debug, args: &mut DbgTrapArgs) -> Result<(), Errno> {
        let mut wanted = args.set_flags();
        let mut state = debug.lock();
        let before = state.flags;
        let memory = Capability::TRAP_DEBUG_PRECISE_MEMORY_OPERATIONS_SUPPORTED.bits();
        let lacks = |bits: u64| {
            let mut devices = self.model.gpus.iter().filter(|gpu| !gpu.hidden);
            devices.any(|gpu| gpu.capability() & bits == 0)
        };
        let refused = wanted.flags.contains(DbgTrapFlags::SINGLE_MEM_OP) && lacks(memory.into())
            || wanted.flags.contains(DbgTrapFlags::SINGLE_ALU_OP) && lacks(PRECISE_ALU);
        if !refused {
            state.flags = wanted.flags;
        }
        wanted.flags = before;
        args.set_set_flags(wanted);
        if refused { Err(Errno::ACCESS) } else { Ok(()) }
    }
}

/// `kfd_dbg_set_enabled_debug_exception_mask`.
fn set_wanted(debug: &Debug, wanted: u64) {
    let mut state = debug.lock();
    let raised = state.devices.values().chain(state.queues.values());
    let raised = raised.fold(state.process, |all, codes| all | codes);
    if raised & wanted != 0 {
        state.tell();
    }
    state.wanted = wanted;
}
