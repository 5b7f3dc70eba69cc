//! A queue while it lives, whatever its packets: what submission touches, and what reports read.

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use pm4::GpuAddr;

use super::doorbell::Doorbell;
use super::{QueueKind, REPORT};
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

/// How long a producer looks for room before it sleeps between looks.
const SPIN: Duration = Duration::from_micros(20);

/// The read index that a device lied with, when a look at it was refused for that.
pub(super) fn lie(look: Result<u64, aql::Error>) -> Option<u64> {
    match look {
        Err(aql::Error::ReadIndexOutOfRange { read, .. }) => Some(read),
        _ => None,
    }
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

/// Everything that queues of all kinds own. Freed only after the queue is gone.
#[derive(Debug)]
pub(crate) struct QueueCore {
    pub(super) core: Arc<Core>,
    pub(super) gpu: usize,
    pub(super) id: QueueId,
    pub(super) kind: QueueKind,
    pub(super) doorbell: Doorbell,
    pub(super) doorbell_offset: u64,
    pub(super) ring: Arc<Allocation>,
    /// Descriptor, pointers, exception word and signal.
    pub(super) page: Arc<Allocation>,
    /// Not of SDMA queues.
    pub(super) save_area: Option<Arc<Allocation>>,
    pub(super) eop: Option<Arc<Allocation>>,
    pub(super) scratch: Mutex<Option<Arc<Allocation>>>,
    pub(super) scratch_lane_bytes: AtomicU32,
    pub(super) priority: AtomicU32,
    /// Bits of `queue_percentage` above the percentage: the XCC of a PM4 queue.
    pub(super) percentage_bits: u32,
    pub(super) suspended: AtomicBool,
    /// Set when nothing more may be submitted.
    pub(super) stopped: AtomicBool,
    pub(super) fault: OnceLock<Arc<QueueFault>>,
    pub(super) oldest: Mutex<Option<Oldest>>,
}

/// A word in memory that a packet waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WaitsFor {
    pub address: u64,
    /// 32 or 64.
    pub bits: u32,
    /// What it has to be.
    pub wants: String,
}

/// The packet that was the oldest one pending at the last look, and since when.
#[derive(Clone, Copy, Debug)]
pub(super) struct Oldest {
    index: u64,
    since: Duration,
}

/// A queue in the list of live ones.
pub(crate) trait Live: fmt::Debug + Send + Sync {
    /// What all kinds have.
    fn core(&self) -> &QueueCore;

    /// Looks how far the device is, and returns what it has not taken. A position that breaks the
    /// rules is not used, and returned as well: the last good one stands. Unit:
    /// [`QueueKind::unit`].
    fn look_closely(&self) -> (Range<u64>, Option<u64>);

    /// Rings for everything published: harmless, and heals a lost ring. Only for who holds a
    /// borrow of the queue: a producer of dwords that rings at the same time could be overtaken by
    /// this older position, which the device would take for a turn of the ring.
    fn ring_again(&self);

    /// The oldest packets of `pending`, up to `limit`, for reports.
    fn packets(&self, context: &Context, pending: Range<u64>, limit: usize) -> Vec<PacketInFlight>;

    /// The oldest dwords of `pending`, up to `limit`.
    fn dwords(&self, pending: Range<u64>, limit: usize) -> Vec<u32>;

    /// What the oldest packet of `pending` waits for.
    fn waits_for(&self, pending: Range<u64>) -> Vec<WaitsFor>;

    /// What the device has not taken.
    fn look(&self) -> Range<u64> {
        self.look_closely().0
    }

    /// How far it is, and what is in flight.
    fn state(&self, context: &Context) -> QueueState {
        let pending = self.look();
        QueueState {
            queue: self.core().id,
            kind: self.core().kind,
            read_index: pending.start,
            write_index: pending.end,
            packets: self.packets(context, pending, QueueState::PACKETS),
        }
    }
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

    /// Remembers the oldest pending packet, and returns how long it has been seen to be that.
    pub fn note(&self, pending: Range<u64>, now: Duration) -> Option<Duration> {
        let mut oldest = lock(&self.oldest);
        if pending.is_empty() {
            *oldest = None;
            return None;
        }
        let index = pending.start;
        let known = oldest.filter(|known| known.index == index);
        let Oldest { since, .. } = *oldest.insert(known.unwrap_or(Oldest { index, since: now }));
        Some(now.saturating_sub(since))
    }

    pub fn scratch_lane_bytes(&self) -> u32 {
        self.scratch_lane_bytes.load(Ordering::Relaxed)
    }

    /// What the queue has reported that is not known yet.
    pub fn reported(&self) -> Option<Reported> {
        if self.fault.get().is_some() {
            return None;
        }
        let page = self.page.mapping().ok()?;
        let reported = Reported {
            payload: page.u64(PAYLOAD).ok()?.load(REPORT),
            inactive: page.u64(INACTIVE + 8).ok()?.load(REPORT),
        };
        (reported.payload & !NOT_ERRORS != 0 || reported.inactive != 0).then_some(reported)
    }

    /// The queue is gone: the trap handler's table must not name its signal any more.
    pub fn forget_signal(&self, context: &Context) {
        if self.kind.is_compute()
            && let Ok(Some(handler)) = context.trap_handler(self.gpu)
        {
            let _ = handler.set_signal(self.doorbell_offset, GpuAddr::NULL);
        }
    }

    /// Bytes of memory it owns.
    pub fn bytes(&self) -> u64 {
        let scratch = lock(&self.scratch).clone();
        let parts = [&self.save_area, &self.eop, &scratch].into_iter().flatten();
        let owned = [&self.ring, &self.page].into_iter().chain(parts);
        owned.map(|memory| memory.info().bytes).sum()
    }
}

impl dyn Live + '_ {
    /// The packet at the read index, decoded.
    pub fn current_packet(&self, context: &Context) -> Option<String> {
        let packets = self.packets(context, self.look(), 1);
        packets.into_iter().next().map(|packet| packet.text)
    }

    /// Records why the queue is lost. Whether that was news.
    pub fn lose(&self, context: &Context, reported: &Reported) -> bool {
        let core = self.core();
        let mut news = false;
        core.fault.get_or_init(|| {
            news = true;
            Arc::new(QueueFault {
                gpu: core.gpu_id(),
                reasons: reported.reasons(),
                state: self.state(context),
            })
        });
        core.stop();
        news
    }

    /// Waits for room in the ring: `again` submits, and is tried until it is not refused for that.
    #[cold]
    pub fn wait_for_room<T>(
        &self,
        context: &Context,
        timeout: Duration,
        mut again: impl FnMut() -> Result<T>,
    ) -> Result<T> {
        let core = self.core();
        let kernel = &*core.core.kernel;
        let start = kernel.now();
        for rounds in 0.. {
            match again() {
                Err(error) if error.is_full() => {}
                result => return result,
            }
            let waited = kernel.now().saturating_sub(start);
            if waited >= timeout {
                context.poll()?;
                core.check()?;
                return Err(Error::Timeout(Arc::new(HangReport {
                    waited_ms: u64::try_from(waited.as_millis()).unwrap_or(u64::MAX),
                    value: 0,
                    queue: Some(self.state(context)),
                    packet: self.current_packet(context),
                    snapshot: context.snapshot_after(waited),
                })));
            }
            if waited < SPIN {
                kernel.relax(rounds);
                continue;
            }
            // Nothing announces room: look once a millisecond, and at the faults meanwhile.
            core.check()?;
            self.ring_again();
            core.note(self.look(), kernel.now());
            let events = context.any_events()?;
            let fired = events.wait(&[(&events.alert, events.alert.age())], 1)?;
            context.record(&fired)?;
            context.scan_queues()?;
        }
        Err(Error::Timeout(Arc::default())) // after 2^31 rounds
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
