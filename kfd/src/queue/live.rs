//! A queue while it lives: what submission touches, and what reports read.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use aql::{Packet, Ring};
use pm4::GpuAddr;

use super::REPORT;
use super::doorbell::{Doorbell, QueueMemory};
use crate::context::Context;
use crate::core::{Core, lock};
use crate::error::{Error, Result};
use crate::ids::{GpuId, QueueId};
use crate::memory::Allocation;
use crate::report::{Exception, HangReport, PacketInFlight, QueueFault, QueueState};
use crate::trap::InactiveValue;

/// Offset in the queue's page of the word that KFD stores exceptions to, bytes: past the 2304 of
/// the descriptor.
pub(super) const PAYLOAD: u64 = 0x940;
/// Offset in the queue's page of its `queue_inactive_signal`, bytes.
pub(super) const INACTIVE: u64 = 0x980;

/// Payload bits that are news for a debugger and no error: queue created, queue destroyed.
const NOT_ERRORS: u64 = 1 << 30 | 1 << 31;

/// A number for a kernel's name, for reports: [`Kfd::register_kernel`](crate::Kfd::register_kernel).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct KernelLabel(pub(crate) u32);

impl KernelLabel {
    /// No name.
    pub const NONE: Self = Self(0);
}

/// What a queue reported, loaded once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reported {
    payload: u64,
    inactive: u64,
}

impl Reported {
    /// Whether a page fault may be behind it.
    pub fn may_be_a_memory_fault(self) -> bool {
        // Memory violation, aperture violation, memory violation of the device.
        let codes = self.payload | InactiveValue(self.inactive).exceptions();
        codes & (1 << 4 | 1 << 5 | 1 << 32) != 0
    }

    fn reasons(self) -> Vec<Exception> {
        let value = InactiveValue(self.inactive);
        let mut codes = self.payload | value.exceptions();
        let rest = self.inactive & 0xffff_ffff;
        let waves =
            InactiveValue::MEMORY | InactiveValue::ILLEGAL_INSTRUCTION | InactiveValue::TRAP;
        codes &= !NOT_ERRORS;
        let mut reasons = Exception::from_payload(codes);
        reasons.extend(Exception::from_inactive(rest & !waves));
        reasons
    }
}

/// Everything a queue owns. Freed only after the queue is gone.
#[derive(Debug)]
pub(crate) struct QueueCore {
    pub(super) core: Arc<Core>,
    pub(super) gpu: usize,
    pub(super) id: QueueId,
    pub(super) doorbell: Doorbell,
    pub(super) doorbell_offset: u64,
    pub(super) memory: QueueMemory,
    /// Save area and end-of-pipe buffer.
    pub(super) save_area: Arc<Allocation>,
    pub(super) _eop: Option<Arc<Allocation>>,
    pub(super) scratch: Mutex<Option<Arc<Allocation>>>,
    pub(super) scratch_lane_bytes: AtomicU32,
    /// Label of each slot's packet.
    pub(super) labels: Box<[AtomicU32]>,
    pub(super) priority: AtomicU32,
    /// Set when nothing more may be submitted.
    pub(super) stopped: AtomicBool,
    pub(super) fault: OnceLock<Arc<QueueFault>>,
}

impl QueueCore {
    pub fn id(&self) -> QueueId {
        self.id
    }

    /// Index of the GPU.
    pub fn gpu(&self) -> usize {
        self.gpu
    }

    pub fn gpu_id(&self) -> GpuId {
        self.core.gpu(self.gpu).map_or(GpuId(0), |gpu| gpu.id())
    }

    #[inline]
    pub fn ring(&self) -> &Ring<'_> {
        self.memory.ring()
    }

    #[inline]
    pub fn doorbell(&self) -> &Doorbell {
        &self.doorbell
    }

    #[inline]
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
    }

    /// Fails when the queue or its GPU is known to be lost; the GPU's loss comes first.
    pub fn check(&self) -> Result<()> {
        self.core.gpu(self.gpu)?.check()?;
        match self.fault.get() {
            Some(fault) => Err(Error::QueueLost(Arc::clone(fault))),
            None => Ok(()),
        }
    }

    #[cold]
    pub fn why_stopped(&self) -> Error {
        let gone = Error::InvalidArgument {
            call: "submit",
            what: "a destroyed queue, by id,",
            value: u64::from(self.id.0),
        };
        self.check().err().unwrap_or(gone)
    }

    #[cold]
    pub fn ring_error(&self, cause: aql::Error) -> Error {
        Error::Ring { queue: self.id, cause }
    }

    pub fn scratch_lane_bytes(&self) -> u32 {
        self.scratch_lane_bytes.load(Ordering::Relaxed)
    }

    /// Refuses a kernel dispatch that needs more private memory than there is. The firmware would
    /// stop the queue for it.
    #[inline]
    pub fn check_scratch(&self, packet: &Packet) -> Result<()> {
        let [_, _, _, _, _, _, needed, ..] = packet.0;
        let available = self.scratch_lane_bytes.load(Ordering::Relaxed);
        if needed > available {
            return Err(Error::ScratchTooSmall { queue: self.id, needed, available });
        }
        Ok(())
    }

    /// Notes whose packet has an index, before the packet is visible.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // masked to the number of slots
    pub fn label(&self, index: u64, label: KernelLabel) {
        let slot = index as usize & self.labels.len().wrapping_sub(1);
        if let Some(place) = self.labels.get(slot) {
            place.store(label.0, Ordering::Relaxed);
        }
    }

    #[allow(clippy::cast_possible_truncation)] // masked to the number of slots
    fn label_of(&self, index: u64) -> KernelLabel {
        let slot = index as usize & self.labels.len().wrapping_sub(1);
        self.labels
            .get(slot)
            .map_or(KernelLabel::NONE, |label| KernelLabel(label.load(Ordering::Relaxed)))
    }

    /// Rings for everything published: harmless, and heals a lost ring.
    pub fn ring_again(&self) {
        if let Some(last) = self.ring().doorbell_value()
            && !self.is_stopped()
        {
            self.doorbell.ring(last);
        }
    }

    /// How far it is, and what is in flight.
    pub fn state(&self, context: &Context) -> QueueState {
        // A read index that breaks the rules is not used: the last good one stands.
        let _ = self.ring().refresh();
        let pending = self.ring().pending();
        let packets = pending.clone().take(QueueState::PACKETS).map(|index| PacketInFlight {
            index,
            kernel: context.kernel_name(self.label_of(index)),
        });
        QueueState {
            queue: self.id,
            read_index: pending.start,
            write_index: pending.end,
            packets: packets.collect(),
        }
    }

    /// The packet at the read index, decoded.
    pub fn current_packet(&self) -> Option<String> {
        let ring = self.ring();
        let packet = ring.packet(ring.pending().start)?;
        Some(packet.decode().to_string())
    }

    /// Waits for room in the ring: `again` submits, and is tried until it is not refused for that.
    #[cold]
    pub fn wait_for_room(
        &self,
        context: &Context,
        timeout: Duration,
        again: impl Fn() -> Result<u64>,
    ) -> Result<u64> {
        let kernel = &*self.core.kernel;
        let start = kernel.now();
        for rounds in 0.. {
            match again() {
                Err(Error::Ring { cause: aql::Error::Full { .. }, .. }) => {}
                result => return result,
            }
            let waited = kernel.now().saturating_sub(start);
            if waited >= timeout {
                context.poll()?;
                self.check()?;
                let report = HangReport {
                    waited_ms: u64::try_from(waited.as_millis()).unwrap_or(u64::MAX),
                    value: 0,
                    queue: Some(self.state(context)),
                    packet: self.current_packet(),
                };
                return Err(Error::Timeout(Arc::new(report)));
            }
            if waited < Duration::from_micros(20) {
                kernel.relax(rounds);
                continue;
            }
            // No event tells of a read index that moves: sleep for as little as can be.
            self.ring_again();
            let events = context.any_events()?;
            let fired = events.wait(&[(&events.alert, events.alert.age())], 1)?;
            context.record(&fired)?;
            context.scan_queues()?;
        }
        Err(self.ring_error(aql::Error::BatchSize { packets: 1, size: self.ring().size() }))
    }

    /// What the queue has reported that is not known yet.
    pub fn reported(&self) -> Option<Reported> {
        if self.fault.get().is_some() {
            return None;
        }
        let page = self.memory.page().mapping().ok()?;
        let reported = Reported {
            payload: page.u64(PAYLOAD).ok()?.load(REPORT),
            inactive: page.u64(INACTIVE + 8).ok()?.load(REPORT),
        };
        (reported.payload & !NOT_ERRORS != 0 || reported.inactive != 0).then_some(reported)
    }

    /// Records why the queue is lost. Whether that was news.
    pub fn lose(&self, context: &Context, reported: &Reported) -> bool {
        let mut news = false;
        self.fault.get_or_init(|| {
            news = true;
            Arc::new(QueueFault {
                gpu: self.gpu_id(),
                reasons: reported.reasons(),
                state: self.state(context),
            })
        });
        self.stop();
        news
    }

    /// Address of the signal that the device reports through.
    pub fn inactive_signal(&self) -> GpuAddr {
        GpuAddr::new(self.memory.page().addr().get() + INACTIVE)
    }

    /// The queue is gone: the trap handler's table must not name its signal any more.
    pub fn forget_signal(&self, context: &Context) {
        if let Ok(Some(handler)) = context.trap_handler(self.gpu) {
            let _ = handler.set_signal(self.doorbell_offset, GpuAddr::NULL);
        }
    }

    /// Bytes of memory it owns.
    pub fn bytes(&self) -> u64 {
        let scratch = lock(&self.scratch).as_ref().map_or(0, |scratch| scratch.info().bytes);
        let owned = [self.memory.ring_memory(), self.memory.page(), &self.save_area];
        owned.iter().map(|memory| memory.info().bytes).sum::<u64>() + scratch
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn news_for_debuggers_is_no_error() {
        let reported = Reported { payload: 1 << 30 | 1 << 3, inactive: 0 };
        assert_eq!(reported.reasons(), [Exception::Kfd(4)]);
        assert!(!reported.may_be_a_memory_fault());
    }

    #[test]
    fn a_value_of_the_trap_handler_gives_its_code_once() {
        let value = 1 << 32 | InactiveValue::TRAP;
        let reported = Reported { payload: 0, inactive: value };
        assert_eq!(reported.reasons(), [Exception::Kfd(1)]);
    }

    #[test]
    fn a_value_of_the_firmware_gives_its_bits() {
        let reported = Reported { payload: 0, inactive: 0x401 };
        assert_eq!(reported.reasons(), [Exception::Inactive(1), Exception::Inactive(0x400)]);
    }

    #[test]
    fn violations_may_be_memory_faults() {
        for code in [5, 6, 33] {
            let reported = Reported { payload: 1 << (code - 1), inactive: 0 };
            assert!(reported.may_be_a_memory_fault());
        }
    }
}
