//! How a queue reports an error (docs/ABI.md §Queue errors).

use kfd::GpuId;
use kfd::abi::{
    ContextSaveAreaHeader, ExceptionCode, HsaMemoryExceptionData, MemoryExceptionFailure,
};

use super::signal::field;
use super::turn::Reason;
use super::{Device, Format, Halt, Queue, Runner, State};
use crate::exec::MemoryFault;
use crate::gpu::PAGE;
use crate::kernel::user;
use crate::memory::AccessError;
use crate::smi;

/// A packet that the command processor refuses: its bit in the inactive signal, and KFD's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PacketError {
    pub(super) signal_bit: i64,
    pub(super) code: u32,
    pub(super) text: &'static str,
}

impl PacketError {
    const fn new(signal_bit: i64, code: u32, text: &'static str) -> Self {
        Self { signal_bit, code, text }
    }

    pub(super) const DIMENSION: Self = Self::new(0x2, 16, "dimensions or sizes");
    pub(super) const GROUP_SEGMENT: Self = Self::new(0x4, 17, "group segment size");
    pub(super) const CODE: Self = Self::new(0x8, 18, "kernel object");
    pub(super) const UNSUPPORTED: Self = Self::new(0x20, 20, "packet type");
    pub(super) const GROUP_SIZE: Self = Self::new(0x40, 21, "workgroup size");
    pub(super) const REGISTERS: Self = Self::new(0x80, 22, "register count");
    pub(super) const VENDOR: Self = Self::new(0x100, 23, "vendor packet format");
}

/// Bits that a queue can raise: `KFD_EC_MASK_QUEUE`.
const QUEUE_CODES: [u32; 16] = [1, 2, 3, 4, 5, 6, 16, 17, 18, 19, 20, 21, 22, 23, 30, 31];

fn bit(code: u32) -> u64 {
    1 << (code - 1)
}

fn queue_mask() -> u64 {
    QUEUE_CODES.into_iter().map(bit).sum()
}

impl Runner {
    /// Stops the queue at its next packet, which stays unconsumed, and tells whoever listens.
    pub(super) fn packet_error(&self, queue: &Queue, state: &mut State, error: PacketError) {
        state.halt = Halt::Dead;
        let index = state.next;
        self.say(queue, format!("packet {index} refused: {} is invalid", error.text));
        let space = &queue.setup.device.space;
        let raised = queue.descriptor().and_then(|descriptor| {
            let signal = space.load_u64(descriptor + field::INACTIVE_SIGNAL)?;
            if signal != 0 {
                self.change_signal(queue, signal, |_| error.signal_bit)?;
            }
            Ok(())
        });
        if let Err(access) = raised {
            self.access_error(queue, state, access);
        }
        // CP_BAD_OPCODE: the debugger or the process's runtime hears of it, and MES chips lose
        // the queue.
        self.queue_exception(queue, bit(error.code));
        if self.suspends_bad_queues() && queue.setup.device.info.has_mes() {
            state.suspended = true;
            state.mapped = false;
        }
    }

    /// A command processor met PM4 that it cannot carry out: it stops there, and its bad opcode
    /// interrupt goes the same way as a bad AQL packet's.
    pub(super) fn bad_packet(
        &self,
        queue: &Queue,
        state: &mut State,
        place: &str,
        reason: &Reason,
    ) {
        state.halt = Halt::Dead;
        self.say(queue, format!("{place}: {}", reason.text));
        self.queue_exception(queue, bit(reason.code));
        if self.suspends_bad_queues() && queue.setup.device.info.has_mes() {
            state.suspended = true;
            state.mapped = false;
        }
    }

    /// An access of the packet processor itself that the page table does not allow.
    pub(super) fn access_error(&self, queue: &Queue, state: &mut State, error: AccessError) {
        state.halt = Halt::Dead;
        let place = match queue.setup.format {
            Format::Aql => format!("packet {}: packet processor", state.next),
            Format::Pm4 => format!("dword {}: command processor", state.next),
            Format::Sdma => format!("byte {}: SDMA engine {}", state.next, queue.setup.engine),
        };
        match error {
            AccessError::Fault(fault) => {
                self.say(queue, format!("{place} faults"));
                self.memory_fault(&queue.setup.device, fault);
            }
            AccessError::Misaligned { address } => {
                self.say(queue, format!("{place}: access at {address:#x} is not aligned"));
            }
        }
    }

    /// A VM fault: evicts the process's queues on this GPU for good and fires the events.
    pub(super) fn memory_fault(&self, device: &Device, fault: MemoryFault) {
        self.diagnostics().add(
            device.info.id,
            None,
            format!(
                "memory fault: {} at {:#x}, {}",
                match (fault.fetch, fault.write) {
                    (true, _) => "instruction fetch",
                    (false, true) => "store or atomic",
                    (false, false) => "load",
                },
                fault.address,
                if fault.not_present { "nothing mapped" } else { "access not allowed" },
            ),
        );
        if device.is_evicted() {
            return; // hardware no longer runs the process
        }
        // The fault status has a bit for a missing translation and one for a refused write, which
        // is set for writes to missing pages as well. NoExecute is never set on gfx9 and later.
        let data = HsaMemoryExceptionData {
            failure: MemoryExceptionFailure {
                not_present: fault.not_present.into(),
                read_only: fault.write.into(),
                no_execute: 0,
                imprecise: 0,
            },
            va: fault.address - fault.address % PAGE,
            gpu_id: GpuId(device.info.id),
            ..HsaMemoryExceptionData::default()
        };
        let violation = ExceptionCode::DEVICE_MEMORY_VIOLATION;
        // A debugger that wants it decides what becomes of the process.
        let taken = self.debug().raise_device(device.info.id, violation, Some(data));
        if !taken {
            if !self.evict(device) {
                return;
            }
            self.events().memory_exception(data);
        }
        let name = std::fs::read_to_string("/proc/self/comm").unwrap_or_default();
        device
            .smi
            .raise(smi::event::VM_FAULT, &format!("{:x}:{}", std::process::id(), name.trim()));
    }

    /// `s_sendmsg MSG_INTERRUPT` of a wave on `device`.
    pub(super) fn wave_interrupt(&self, device: &Device, data: u32, privileged: bool) {
        if privileged {
            let (doorbell, codes) = (data & 0x3ff, u64::from(data >> 10 & 0x3fff));
            if codes & queue_mask() != 0 {
                let queue = self.find(|queue| {
                    std::ptr::eq(&*queue.setup.device, device) && queue.setup.doorbell == doorbell
                });
                if let Some(queue) = queue
                    && self.queue_exception(&queue, codes)
                {
                    return;
                }
            }
        }
        self.interrupt(data & 0xff_ffff, 24);
    }

    /// `kfd_set_dbg_ev_from_interrupt` for a queue: the debugger takes the exception, or the
    /// process's runtime. False if there is neither.
    fn queue_exception(&self, queue: &Queue, codes: u64) -> bool {
        if self.debug().raise_queue(queue.setup.id, codes) {
            return true;
        }
        let enabled = self.debug().runtime_enabled();
        if enabled {
            self.send_to_runtime(queue, codes);
        }
        enabled
    }

    /// `kfd_send_exception_to_runtime`: ORs the codes into the word that the save area's header
    /// names, then sets its event.
    pub(crate) fn send_to_runtime(&self, queue: &Queue, codes: u64) {
        let header: Result<ContextSaveAreaHeader, _> = user::read(queue.setup.save_area);
        let Ok(header) = header else { return };
        let Ok(old) = user::read::<u64>(header.err_payload_addr) else { return };
        if user::write(header.err_payload_addr, &(old | codes)).is_ok() {
            self.events().set_for_kernel(header.err_event_id.0);
        }
    }
}
